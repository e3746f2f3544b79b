"""A symbol layer around any encoder-decoder of Transformers, which stays as Transformers made it.

The backbone sees token ids, as ever. With `streams`, each stream of a sample is a row of the
backbone's batch, in which the stream's own symbol is the actual token and the others of its class
are the placeholder (2601.23169, Algorithm 1); what comes out is joined as in Algorithm 5. With
`dual_part`, a symbol is a row of its class and a random part (2410.17161, Section 4.1).

Shapes: B batch, S streams (1 unless the encoding opens streams), L source length, T target length,
D width of the backbone, R rows of its table, V vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM
from transformers import initialization as init
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache
from transformers.generation import GenerationMixin
from transformers.masking_utils import create_masks_for_generate
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .attention import AlphaAttention, CosSin
from .checks import check_cache, check_ids, check_label_rows, check_rows, refuse_vectors
from .configuration_retrofit import SIDES, RetrofitConfig
from .host_calls import (
    Calls,
    HeadCall,
    Hook,
    HostEncoderOutput,
    StackCall,
    by_sample,
    each,
    keep_weights,
    packed,
    repeat_rows,
)
from .host_layers import hidden_of, layers_of, with_hidden
from .host_relations import HostRelations, silent
from .masks import causal_mask, padding_mask
from .positions import decoder_positions, rotary, token_positions
from .streams import Streams, SymbolEncoderOutput, match_rows
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import SymbolHead, shift_right
from .symbols import mean_streams, unpack_streams


class AggregatedBlock(GradientCheckpointingLayer):
    """Attention of each stream to the aggregated view of all of them, added to a layer's output.

    The norm sits inside the branch and the output projection is 0 at first, so that a new block is
    an exact identity.

    Args:
        config: of the model.
        slot: of the decoder's cache; None in an encoder.
    """

    def __init__(self, config: RetrofitConfig, slot: int | None):
        super().__init__()
        self.attention = AlphaAttention(config, config.num_aggregated_heads, slot)
        silent(self.attention.out_proj)
        self.layer_norm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden_BSLD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        rope: CosSin,
        past_key_values: EncoderDecoderCache | None = None,
    ) -> torch.Tensor:
        """Returns the new hidden state; arguments as of [`AlphaAttention`]."""
        # A backbone may keep its states, or all its weights, in another precision.
        hidden = hidden_BSLD.to(self.layer_norm.weight.dtype)
        mask = None if mask is None else mask.to(hidden.dtype)
        view = self.layer_norm(streams.aggregate(hidden))
        hidden = self.layer_norm(hidden)
        update, *_ = self.attention(hidden, view, mask, rope, rope, past_key_values)
        return hidden_BSLD + self.dropout(update).to(hidden_BSLD.dtype)


@dataclass
class HostOutput:
    """What the backbone's decoder and head gave: logits (B * S or B, T, R), and what went in."""

    logits: torch.Tensor
    head: HeadCall


class RetrofitEncoder(nn.Module):
    """The encoder of a model as generation sees it; it owns nothing."""

    main_input_name = "input_ids"

    def __init__(self, model: "RetrofitForConditionalGeneration"):
        super().__init__()
        self.__dict__["encode"] = model.encode  # no child: its weights are not this module's

    def forward(self, *args: Any, **kwargs: Any) -> SymbolEncoderOutput:
        """Encodes as `RetrofitForConditionalGeneration.encode` does."""
        return self.__dict__["encode"](*args, **kwargs)


class RetrofitModel(SymbolHead, GenerationMixin):
    """A backbone with a symbol layer around it: what all such models share.

    Args:
        config: of the model.
        backbone: a model that is there already, of `config.backbone_config`. It becomes part of
            this one, and is not copied.

    Attributes:
        auto: the Auto class that makes a backbone of its configuration.
    """

    config: RetrofitConfig
    auto: ClassVar[Any]
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    def __init__(self, config: RetrofitConfig, backbone: PreTrainedModel | None = None):
        super().__init__(config)
        if backbone is None:
            backbone = self.auto.from_config(config.backbone_config)
        else:
            keep_weights(backbone)
        self.backbone = backbone
        config.backbone_config = backbone.config  # one object: changes reach both
        self.symbol_draws = SymbolDraws.of(config)
        self.symbols = SymbolLayer(config, self.symbol_draws, self)
        self.logit_scale = None
        self._no_split_modules = backbone._no_split_modules

    def get_decoder(self) -> nn.Module:
        return self.backbone.get_decoder()

    def get_input_embeddings(self) -> nn.Module:
        return self.backbone.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.backbone.set_input_embeddings(value)

    def get_output_embeddings(self) -> nn.Module:
        return self.backbone.get_output_embeddings()

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.backbone.set_output_embeddings(value)

    def create_masks_for_generate(self, config: Any, **kwargs: Any) -> Any:
        """Returns masks for static caches, as the backbone's decoder takes them."""
        create = getattr(self.backbone, "create_masks_for_generate", create_masks_for_generate)
        return create(config=self.config.get_text_config(decoder=True), **kwargs)

    def _recomputes(self) -> bool:
        return self.training and self.is_activation_checkpointing

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Generates as Transformers does; layers that recompute their activations keep no cache."""
        if self._recomputes():
            kwargs["use_cache"] = False
        return super().generate(*args, **kwargs)


class RetrofitForConditionalGeneration(RetrofitModel):
    """An encoder-decoder with a symbol layer around it; arguments as of [`RetrofitModel`]."""

    auto = AutoModelForSeq2SeqLM

    def __init__(self, config: RetrofitConfig, backbone: PreTrainedModel | None = None):
        super().__init__(config, backbone)
        backbone = self.backbone
        # Configurations are slow to ask.
        self.width, self.num_slots = config.hidden_size, config.num_slots
        self.relations: HostRelations | None = None
        if self.symbols.encoding.relates:
            heads = (self._num_heads("encoder"), self._num_heads("decoder"))
            self.relations = HostRelations(self.width, *heads)
        self._add_blocks()
        for part in (
            self.relations,
            *(getattr(self, f"{side}_aggregated", None) for side in SIDES),
        ):
            if part is not None:
                part.to(backbone.dtype)
        self._calls = Calls()
        encoding = self.symbols.encoding
        if encoding.rows_per_class is not None:
            backbone.get_output_embeddings().register_forward_pre_hook(Hook(self, "_before_head"))
        for side in SIDES:
            self._watch_table(side)
        self.post_init()

    def _add_blocks(self) -> None:
        """Puts blocks of aggregated attention behind the backbone's layers."""
        for side in self.config.aggregated_attention:
            layers = layers_of(self._stack(side))
            first = self.num_slots if side == "decoder" else None
            blocks = nn.ModuleList(
                AggregatedBlock(self.config, None if first is None else first + index)
                for index in range(len(layers))
            )
            setattr(self, f"{side}_aggregated", blocks)
            for index, layer in enumerate(layers):
                layer.register_forward_hook(Hook(self, "_behind_layer", side, index))

    def _stack(self, side: str) -> nn.Module:
        return self.backbone.get_encoder() if side == "encoder" else self.backbone.get_decoder()

    def _num_heads(self, side: str) -> int:
        config: Any = self._stack(side).config
        return getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads

    def _table(self, side: str) -> nn.Module:
        return self._stack(side).get_input_embeddings()  # type: ignore[operator]

    def _watch_table(self, side: str) -> None:
        """Have a hook behind the table of tokens, where something is added to what it gives.

        Adapters may have put a module of their own in its place.
        """
        encoding, table = self.symbols.encoding, self._table(side)
        watched = any(isinstance(hook, Hook) for hook in table._forward_hooks.values())
        if (encoding.random_parts or encoding.relates) and not watched:
            table.register_forward_hook(Hook(self, "_behind_table"))

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        # Not by the block itself: modules without parameters of their own are not asked.
        if getattr(module, "starts_at_zero", False):
            init.zeros_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)

    def _number(self, streams: Streams) -> int:
        """Returns how many rows of the backbone's batch a sample has: S, or 1 without streams."""
        return streams.ids.shape[1] if self.symbols.encoding.opens_streams else 1

    def _check_attention(self) -> None:
        """Raise a ValueError for attention that takes no scores to be added."""
        kind = str(self.config._attn_implementation)
        if "flash" in kind and (self.relations is not None or self.config.aggregated_attention):
            raise ValueError(
                f"{kind} takes no masks of numbers, as `relational` and aggregated attention need "
                "them: use attn_implementation='sdpa' or 'eager'"
            )

    # -- parts ------------------------------------------------------------------------------------

    def get_encoder(self, *args: Any, **kwargs: Any) -> RetrofitEncoder:
        return RetrofitEncoder(self)

    def freeze_backbone(self) -> None:
        """Leave the backbone as it is in training.

        What is trained are blocks of aggregated attention and what `relational` adds; without
        either there is nothing to train but adapters.
        """
        self.backbone.requires_grad_(False)

    def activation_checkpointing_enable(
        self, activation_checkpointing_kwargs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Switches recomputation on, as Transformers does, where the relations allow it.

        Raises:
            ValueError: reentrant checkpointing of a model whose layers share a mask that is
                trained: each layer's part of the backward pass would free the mask's graph.
        """
        settings = activation_checkpointing_kwargs
        # PyTorch's default is True, Transformers' False.
        if (
            self.relations is not None
            and settings is not None
            and settings.get("use_reentrant", True)
        ):
            raise ValueError(
                "`relational` models cannot be checkpointed in the reentrant way: give "
                "use_reentrant=False"
            )
        super().activation_checkpointing_enable(activation_checkpointing_kwargs, **kwargs)

    # -- forward ----------------------------------------------------------------------------------

    def encode(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> SymbolEncoderOutput:
        """Encode each stream.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, where `config.needs_stream_ids`.
            **kwargs: for the backbone's encoder; tensors with a row for each sample.
        """
        self._check_attention()
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        number = self._number(streams)
        call = partial(self._encoder_call, input_ids, attention_mask, streams)
        with self._calling("encoder", call), self._embedding("encoder", input_ids, streams) as rows:
            outputs = self._stack("encoder")(
                input_ids=rows,
                attention_mask=self._encoder_mask(rows, attention_mask, streams),
                return_dict=True,
                **{name: repeat_rows(value, number) for name, value in kwargs.items()},
            )
        streams = self.remember(outputs.last_hidden_state, streams)
        return SymbolEncoderOutput(
            last_hidden_state=packed(outputs.last_hidden_state, number),
            hidden_states=each(packed, outputs.get("hidden_states"), number),
            attentions=each(by_sample, outputs.get("attentions"), number),
            **streams.fields(),
        )

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        return streams if self.relations is None else self.relations.remember(hidden_BLD, streams)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: Any = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Returns next-token logits, and the loss where labels are given.

        Args:
            input_ids: (B, L); `attention_mask` (B, L) and `stream_ids` (B, S) as the tokenizer
                returns them.
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`, as the
                backbone does it.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.
            **kwargs: for the backbone's encoder; tensors with a row for each sample.

        Returns:
            The loss is that of the answers alone: what a backbone adds to its own, such as that of
            the choice of experts, is not in it. `logits` (B, T, V); where
            `config.needs_stream_ids`, columns of symbols that are not in a sample's input hold
            -1e4.
        """
        refuse_vectors(kwargs)
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if decoder_input_ids is None:
            raise ValueError("decoder_input_ids are missing (or give labels)")
        returned = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
        }
        returned = {name: value for name, value in returned.items() if value is not None}
        encoder_outputs = self._encoded(
            encoder_outputs, input_ids, attention_mask, stream_ids, **returned, **kwargs
        )
        samples = encoder_outputs.last_hidden_state.shape[0]
        check_rows(decoder_input_ids.shape[0], samples)
        check_label_rows(labels, samples)
        use_cache = self.config.use_cache if use_cache is None else use_cache
        outputs, head = self._decode(
            decoder_input_ids, decoder_attention_mask, encoder_outputs, attention_mask,
            past_key_values, use_cache, returned,
        )  # fmt: skip
        host_output = HostOutput(outputs.logits, head)
        logits, loss = self.predict(host_output, head.streams, labels, num_items_in_batch)
        return self._scored(outputs, encoder_outputs, self._number(head.streams), logits, loss)

    def _encoded(
        self,
        encoder_outputs: ModelOutput | tuple | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        stream_ids: torch.Tensor | None,
        **kwargs: Any,
    ) -> SymbolEncoderOutput:
        """Returns the encoder's output, which is made unless it is given, with its streams."""
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("give input_ids or encoder_outputs")
            encoder_outputs = self.encode(input_ids, attention_mask, stream_ids, **kwargs)
        return self.complete_encoder_output(encoder_outputs, stream_ids, input_ids, attention_mask)

    def _scored(
        self,
        outputs: ModelOutput,
        source: SymbolEncoderOutput,
        number: int,
        logits: torch.Tensor,
        loss: torch.Tensor | None,
    ) -> Seq2SeqLMOutput:
        """Returns the backbone's output and its encoder's, of `number` streams, with scores."""
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.get("past_key_values"),
            decoder_hidden_states=each(packed, outputs.get("decoder_hidden_states"), number),
            decoder_attentions=each(by_sample, outputs.get("decoder_attentions"), number),
            cross_attentions=each(by_sample, outputs.get("cross_attentions"), number),
            encoder_last_hidden_state=source.last_hidden_state,
            encoder_hidden_states=source.hidden_states,
            encoder_attentions=source.attentions,
        )

    def _decode(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        source: SymbolEncoderOutput,
        source_mask: torch.Tensor | None,
        past_key_values: Cache | None,
        use_cache: bool,
        returned: dict[str, bool | None],
    ) -> tuple[ModelOutput, HeadCall]:
        """Returns what the backbone gives for rows of the decoder, and what passed its head."""
        rows = ids_BT.shape[0]
        check_ids(self.config, ids_BT)
        check_cache(past_key_values)
        if past_key_values is None and use_cache and not self._recomputes():
            past_key_values = self._new_cache()
        streams = self._follow(source, ids_BT, mask, past_key_values)
        hidden = unpack_streams(match_rows(source.last_hidden_state, rows), self.width)
        head = HeadCall(streams)
        call = partial(self._decoder_call, ids_BT, mask, streams, past_key_values)
        with (
            self._known(head=head),
            self._calling("decoder", call),
            self._embedding("decoder", ids_BT, streams) as decoder_rows,
        ):
            masks = self._masks(
                decoder_rows, ids_BT, mask, match_rows(source_mask, rows), streams, past_key_values
            )
            outputs = self.backbone(
                decoder_input_ids=decoder_rows,
                **masks,
                # Of one sample, flattened streams are not contiguous, as some layers want them.
                encoder_outputs=HostEncoderOutput(hidden.flatten(0, 1).contiguous()),
                past_key_values=past_key_values,
                use_cache=use_cache,
                return_dict=True,
                **returned,
            )
        return outputs, head

    def _follow(
        self, source: SymbolEncoderOutput, ids_BT: torch.Tensor, mask: Any, cache: Cache | None
    ) -> Streams:
        """Returns the streams over the decoder's tokens."""
        streams = Streams.of(source, source.last_hidden_state.dtype)
        if self.relations is None:
            return streams.expand(ids_BT.shape[0]).over(ids_BT)
        history = None if cache is None else cache.self_attention_cache
        return self.symbols.follow(streams, ids_BT, mask, history, self.num_slots)

    def _encoder_mask(
        self, rows_BL: torch.Tensor, mask: torch.Tensor | None, streams: Streams
    ) -> torch.Tensor | None:
        if self.relations is None:
            return repeat_rows(mask, self._number(streams))
        vectors = self._table("encoder")(rows_BL)
        return self.relations.encoder_mask(padding_mask(mask, vectors.dtype), vectors, streams)

    def _masks(
        self,
        rows_BT: torch.Tensor,
        ids_BT: torch.Tensor,
        mask: Any,
        source_mask: torch.Tensor | None,
        streams: Streams,
        cache: Any,
    ) -> dict[str, Any]:
        """Returns what the backbone's decoder may see, of itself and of the source."""
        if self.relations is None:
            own, cross = (repeat_rows(x, self._number(streams)) for x in (mask, source_mask))
        else:
            parts = self._calls.now.pop("parts")
            vectors = self._table("decoder")(rows_BT)  # as they are
            self._calls.now["parts"] = parts
            own, cross = self.relations.decoder_masks(
                causal_mask(ids_BT, mask, cache, vectors.dtype),
                padding_mask(source_mask, vectors.dtype),
                vectors,
                streams,
            )
        return {"decoder_attention_mask": own, "attention_mask": cross}

    @contextmanager
    def _embedding(
        self, side: str, ids_BL: torch.Tensor, streams: Streams
    ) -> Iterator[torch.Tensor]:
        """Yields the backbone's ids, (B * S, L), and meanwhile has parts added to their vectors.

        Raises:
            RuntimeError: the backbone embedded them in a way of its own.
        """
        rows = self.symbols.rows(ids_BL, streams).flatten(0, 1)
        parts = None
        if self.symbols.encoding.random_parts:
            parts = self._widened(self.symbols.parts(self.symbols.renamed(ids_BL, streams)), 0)
        elif self.relations is not None and streams.memory is not None:  # in the decoder
            parts = self.relations.enter(streams) * self.config.random_scale[0]
        if parts is None:
            yield rows
            return
        self._watch_table(side)
        with self._known(parts=parts):
            yield rows
            if "parts" in self._calls.now:
                raise RuntimeError(
                    f"the {side} did not call its table of tokens, {type(self._table(side))}: what "
                    f"symbol_encoding {self.symbols.encoding.name!r} adds there is lost"
                )

    def _behind_table(self, table: nn.Module, args: tuple, vectors: torch.Tensor) -> Any:
        """Returns the table's vectors with parts added: random ones, or what the encoder found."""
        # Once: behind the table itself, or behind an adapter around it.
        parts = self._calls.now.pop("parts", None)
        if parts is None:  # the backbone is called by itself
            return None
        return vectors + parts.to(vectors)

    def _widened(self, parts: torch.Tensor, place: int) -> torch.Tensor:
        """Returns random parts as they are added: in the last dimensions of D, scaled.

        Args:
            parts: (..., K).
            place: 0 for the input, 1 for the head.
        """
        missing = self.width - parts.shape[-1]
        return F.pad(parts, (missing, 0)) * self.config.random_scale[place]

    # -- the head ---------------------------------------------------------------------------------

    def _before_head(self, head: nn.Module, args: tuple) -> tuple | None:
        """Keep what goes into the head, and let it see the mean over streams where that is linear.

        A head's matrix has as many rows as there are tokens, so that it may cost as much as all
        layers together; the mean of its outputs is its output for the mean.
        """
        call = self._calls.now.get("head")
        if call is None:  # the backbone is called by itself
            return None
        if args[0].dim() != 3:  # ProphetNet predicts several tokens at each place
            raise ValueError(
                f"the head gets states of shape {tuple(args[0].shape)}, not (rows, tokens, width)"
            )
        number = self._number(call.streams)
        call.hidden_BSTD = args[0].unflatten(0, (-1, number))
        # Adapters that go around the head see each stream; so do weights that are not there yet.
        plain = type(head) is nn.Linear and head is self.get_output_embeddings()
        call.averaged = number > 1 and plain and not head.weight.is_meta
        if not call.averaged:
            return None
        weights = call.streams.weights.to(args[0])
        return (mean_streams(call.hidden_BSTD, weights), *args[1:])

    def _logits(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        encoding = self.symbols.encoding
        streams = streams.to(host_output.logits.device)  # layers may lie on several devices
        if encoding.opens_streams:
            logits = self._joined_streams(host_output, streams)
        elif encoding.random_parts:
            logits = self._with_parts(host_output, streams)
        elif self.relations is not None:
            logits = self._pointed(host_output, streams)
        else:
            logits = host_output.logits[..., : self.config.vocab_size]
        return self.symbols.finish(logits, streams)

    def _joined_streams(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits by Algorithm 5: base tokens' by the mean over streams, symbols' own."""
        encoding, vocabulary = self.symbols.encoding, self.config.vocabulary
        actual_BS = vocabulary.rows(streams.ids.clamp(min=0), per_class=2, nth=0)
        if not host_output.head.averaged:
            logits_BSTR = host_output.logits.unflatten(0, (-1, streams.ids.shape[1]))
            base_BTR = logits_BSTR[:, 0]
            if logits_BSTR.shape[1] > 1:
                weights = streams.weights.to(logits_BSTR)
                base_BTR = self._capped(mean_streams(self._products(logits_BSTR), weights))
            index = actual_BS[:, :, None, None].expand(-1, -1, logits_BSTR.shape[2], 1)
            own_BTS = logits_BSTR.gather(-1, index)[..., 0].transpose(1, 2)
            return encoding.join(base_BTR, own_BTS, streams)
        hidden_BSTD = host_output.head.hidden_BSTD
        assert hidden_BSTD is not None
        weight: Any = self.get_output_embeddings().weight
        row_BSD = F.embedding(actual_BS, weight)
        mean_BTD = mean_streams(hidden_BSTD, streams.weights.to(hidden_BSTD))
        off_BSTD = hidden_BSTD - mean_BTD[:, None]
        off_BTS = torch.einsum("bstd,bsd->bts", off_BSTD, row_BSD)
        index = actual_BS[:, None].expand(-1, host_output.logits.shape[1], -1)
        own_BTS = self._shifted(host_output.logits.gather(-1, index), off_BTS)
        return encoding.join(host_output.logits, own_BTS, streams)

    def _pointed(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits; a symbol's is that of its class and what is known about the symbol."""
        vocabulary = self.config.vocabulary
        assert self.relations is not None and host_output.head.hidden_BSTD is not None
        rows_BS = vocabulary.rows(streams.ids.clamp(min=0), per_class=1)
        index = rows_BS[:, None].expand(-1, host_output.logits.shape[1], -1)
        more = self.relations.point(host_output.head.hidden_BSTD[:, 0], streams)
        more_BTS = more * self.config.random_scale[1]
        own_BTS = self._shifted(host_output.logits.gather(-1, index), more_BTS)
        return self.symbols.encoding.join(host_output.logits, own_BTS, streams)

    def _with_parts(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits; a symbol's is that of its class and what its random part adds."""
        vocabulary = self.config.vocabulary
        assert host_output.head.hidden_BSTD is not None and self.symbols.draws is not None
        hidden_BTD = host_output.head.hidden_BSTD[:, 0]
        parts_ND = self._widened(self.symbols.draws(self.training), 1).to(hidden_BTD)
        index_N = torch.arange(len(parts_ND), device=hidden_BTD.device)
        rows_N = vocabulary.rows(vocabulary.symbol_ids(index_N), per_class=1)
        own_BTN = self._shifted(host_output.logits[..., rows_N], F.linear(hidden_BTD, parts_ND))
        return self.symbols.encoding.join(host_output.logits, own_BTN, streams)

    def _shifted(self, logits: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        """Returns logits with something added to the products that they come from."""
        return self._capped(self._products(logits) + more).to(logits.dtype)

    @property
    def _cap(self) -> float | None:
        """The cap of backbones that squash logits, cap * tanh(products / cap); else None."""
        return getattr(self._stack("decoder").config, "final_logit_softcapping", None)

    def _products(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns what logits were before they were squashed, if they were."""
        if (cap := self._cap) is None:
            return logits
        limit = 1.0 - 1e-6
        return (logits.float() / cap).clamp(-limit, limit).atanh() * cap

    def _capped(self, products: torch.Tensor) -> torch.Tensor:
        """Squashes products as the backbone does; undoes `_products`."""
        return products if (cap := self._cap) is None else cap * (products / cap).tanh()

    # -- aggregated attention ---------------------------------------------------------------------

    def _behind_layer(
        self, side: str, index: int, layer: nn.Module, args: tuple, output: Any
    ) -> Any:
        """Returns a layer's output with what the block behind it adds."""
        call = self._calls.now.get(side)
        if call is None:  # the backbone is called by itself
            return None
        hidden = hidden_of(output)
        call = call.padded(hidden.shape[1])
        block = getattr(self, f"{side}_aggregated")[index]
        rope = rotary(call.positions, block.attention.head_dim, self.config.rope_theta)
        streams = hidden.unflatten(0, (-1, call.streams.ids.shape[1]))
        updated = block(streams, call.streams, call.mask, rope, past_key_values=call.cache)
        return with_hidden(output, updated.flatten(0, 1))

    @contextmanager
    def _calling(self, side: str, call: Callable[[], StackCall]) -> Iterator[None]:
        """Lets the blocks of a side, if there are such, know its call within a `with` block."""
        if side not in self.config.aggregated_attention:
            yield
            return
        with self._known(**{side: call()}):
            yield

    @contextmanager
    def _known(self, **calls: Any) -> Iterator[None]:
        before = self._calls.now
        self._calls.now = {**before, **calls}
        try:
            yield
        finally:
            self._calls.now = before

    def _encoder_call(
        self, ids_BL: torch.Tensor, mask: torch.Tensor | None, streams: Streams
    ) -> StackCall:
        return StackCall(streams, padding_mask(mask, self.dtype), token_positions(mask, ids_BL))

    def _decoder_call(
        self, ids_BT: torch.Tensor, mask: Any, streams: Streams, cache: EncoderDecoderCache | None
    ) -> StackCall:
        if isinstance(mask, dict):  # one for each kind of the backbone's layers
            mask = mask["full_attention"]
        visible = causal_mask(ids_BT, mask, cache, self.dtype)
        return StackCall(streams, visible, decoder_positions(ids_BT, mask, cache), cache)

    # -- generation -------------------------------------------------------------------------------

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        """Makes a cache as the base class does, without the decoder's window for the source."""
        super()._prepare_cache_for_generation(generation_config, model_kwargs, *args, **kwargs)
        side = self.config.get_text_config(decoder=True)
        cache = model_kwargs.get("past_key_values")
        if cache is None or not getattr(side, "sliding_window", None):
            return
        side.sliding_window, side.layer_types = None, ["full_attention"] * side.num_hidden_layers
        kind = type(cache.cross_attention_cache)
        length = model_kwargs["encoder_outputs"][0].shape[1]
        limit = {"max_cache_len": length} if issubclass(kind, StaticCache) else {}
        cache.cross_attention_cache = kind(config=side, **limit)

    def _new_cache(self) -> EncoderDecoderCache:
        side = self.config.get_text_config(decoder=True)
        return EncoderDecoderCache(DynamicCache(config=side), DynamicCache())

    def _reorder_cache(
        self, past_key_values: EncoderDecoderCache, beam_idx: torch.Tensor
    ) -> EncoderDecoderCache:
        """Let rows go on from other beams of their samples, with all their streams."""
        for layer in past_key_values.self_attention_cache.layers:
            if layer.get_seq_length():
                number = layer.keys.shape[0] // beam_idx.shape[0]
                streams = torch.arange(number, device=beam_idx.device)
                layer.reorder_cache((beam_idx[:, None] * number + streams).flatten())
        return past_key_values

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels shifted right as the backbone does it; -100 becomes padding."""
        own = getattr(self.backbone, "prepare_decoder_input_ids_from_labels", None)
        if own is not None:
            return own(labels)
        return shift_right(labels, self.config)


__all__ = ["AggregatedBlock", "RetrofitForConditionalGeneration", "RetrofitModel"]
