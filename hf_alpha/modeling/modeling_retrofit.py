"""A symbol layer around any encoder-decoder of Transformers, and what decoders have of it.

The backbone sees token ids, as ever. With `streams`, each stream of a sample is a row of the
backbone's batch, in which the stream's own symbol is the actual token and the others of its class
are the placeholder (2601.23169, Algorithm 1); what comes out is joined as in Algorithm 5. With
`dual_part`, a symbol is a row of its class and a random part (2410.17161, Section 4.1). What an
encoding does with the backbone is in `host_encodings`.

Shapes: B batch, S streams (1 unless the encoding opens streams), L source length, T target length,
D width of the backbone, R rows of its table, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
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
from .host_attention import UnreachedError
from .host_calls import (
    Calls,
    HeadCall,
    Hook,
    HostEncoderOutput,
    StackCall,
    by_sample,
    check_arguments,
    each,
    keep_weights,
    packed,
    repeat_rows,
    taken_arguments,
)
from .host_encodings import HostOutput, host_encoding
from .host_layers import hidden_of, layers_of, with_hidden
from .host_relations import silent
from .masks import causal_mask, full_mask, padding_mask, self_attention_part
from .new_symbols import NewSymbols
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
        sides: of the backbone, `"encoder"` or `"decoder"`.
        host: what the encoding does with the backbone.
        relations: what `relational` encoding adds to it, if that is the encoding.
    """

    config: RetrofitConfig
    auto: ClassVar[Any]
    sides: ClassVar[tuple[str, ...]]
    base_model_prefix = ""
    _tied_weights_keys: ClassVar[dict[str, str]] = {}  # the backbone's are all
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
        # Configurations are slow to ask.
        self.width, self.num_slots = config.hidden_size, config.num_slots
        self._calls = Calls()
        self.host = host_encoding(self)
        self.relations = self.host.make_relations()
        self.host.relate_attention()
        if self.relations is not None:
            self.relations.to(backbone.dtype)
        classes = len(config.symbol_classes)
        self.new_symbols = NewSymbols(self.width, classes) if config.new_symbols else None
        self._watch_head()
        for side in self.sides:
            self._watch_table(side)

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

    def stack(self, side: str) -> nn.Module:
        """Returns the backbone's encoder or decoder."""
        return self.backbone.get_encoder() if side == "encoder" else self.backbone.get_decoder()

    def _table(self, side: str) -> nn.Module:
        return self.stack(side).get_input_embeddings()  # type: ignore[operator]

    def _watch_table(self, side: str) -> None:
        """Have a hook behind the table of tokens, where something is added to what it gives.

        Adapters may have put a module of their own in its place.
        """
        table = self._table(side)
        if self.host.adds_vectors and not self._watches(table._forward_hooks):
            table.register_forward_hook(Hook(self, "_behind_table"))

    def _watch_head(self) -> None:
        """Have a hook before the head: symbols need what goes into it.

        Adapters may have put a module of their own in its place.
        """
        head = self.get_output_embeddings()
        if not self._watches(head._forward_pre_hooks):
            head.register_forward_pre_hook(Hook(self, "_before_head"))

    def _watches(self, hooks: Mapping[int, Any]) -> bool:
        """Returns whether one of these hooks is this model's; copies of a part have others' too."""
        return any(isinstance(hook, Hook) and hook.model is self for hook in hooks.values())

    def tie_weights(self, *args: Any, **kwargs: Any) -> None:
        """Ties as Transformers does; the configuration says whether all tables of tokens are one.

        Its own tables are the backbone's to tie: this is for PEFT, which trains rows of them.
        """
        super().tie_weights(*args, **kwargs)
        head = self.get_output_embeddings().weight
        self.config.tie_word_embeddings = all(self._table(x).weight is head for x in self.sides)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        # Not by the block itself: modules without parameters of their own are not asked.
        if getattr(module, "starts_at_zero", False):
            init.zeros_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)

    def set_attn_implementation(self, *args: Any, **kwargs: Any) -> None:
        """Sets it as Transformers does, for the backbone and what is added to it."""
        super().set_attn_implementation(*args, **kwargs)
        self.host.relate_attention()

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

    # -- calls of the backbone ---------------------------------------------------------------------

    @contextmanager
    def _known(self, **calls: Any) -> Iterator[None]:
        before = self._calls.now
        self._calls.now = {**before, **calls}
        try:
            yield
        finally:
            self._calls.now = before

    def post_init(self) -> None:
        """Initialises as Transformers does, and tries the relations where there are weights."""
        super().post_init()
        if self.relations is not None and self.config.num_symbols and not _is_hollow(self):
            self._try_relations()

    @torch.no_grad()
    def _try_relations(self) -> None:
        """Run on a symbol that comes again.

        Weights that are still to come are not tried: each run outside of training looks, too.

        Raises:
            UnreachedError: attention of the backbone is not told of the relations.
        """
        training = [module for module in self.modules() if module.training]
        self.eval()
        first = torch.zeros(1, 4, dtype=torch.long, device=self.device)
        ids = self.config.vocabulary.symbol_ids(first)
        answers = {"decoder_input_ids": ids} if self.config.is_encoder_decoder else {}
        try:
            self(input_ids=ids, use_cache=False, **answers)
        except UnreachedError:
            raise
        except Exception:  # some run on another device only, or on longer texts
            pass
        finally:
            for module in training:
                module.training = True

    def _check_reached(self, relations: dict[str, Any]) -> None:
        """Raise an UnreachedError for attention that has not asked for its relations.

        In training, layers may be left out at random.
        """
        for relation in relations.values() if not self.training else ():
            if relation.unreached:
                raise UnreachedError(self.config.host_config.model_type, relation.unreached[0])

    @contextmanager
    def _passing(self, head: HeadCall) -> Iterator[None]:
        """Has what passes the head kept within a `with` block."""
        self._watch_head()
        with self._known(head=head):
            yield

    @contextmanager
    def _adding(self, side: str, ids_BL: torch.Tensor, streams: Streams) -> Iterator[None]:
        """Has what the encoding adds to vectors of tokens added within a `with` block.

        Raises:
            RuntimeError: the backbone embedded them in a way of its own.
        """
        additions = self.host.additions(ids_BL, streams)
        if additions is None:
            yield
            return
        self._watch_table(side)
        with self._known(additions=additions):
            yield
            if "additions" in self._calls.now:
                raise RuntimeError(
                    f"the {side} did not call its table of tokens, {type(self._table(side))}: what "
                    f"symbol_encoding {self.symbols.encoding.name!r} adds there is lost"
                )

    def _behind_table(self, table: nn.Module, args: tuple, vectors: torch.Tensor) -> Any:
        """Returns the table's vectors with something added: random parts, or what was found."""
        # Once: behind the table itself, or behind an adapter around it.
        additions = self._calls.now.pop("additions", None)
        if additions is None:  # the backbone is called by itself
            return None
        return vectors + additions.to(vectors)

    def _before_head(self, head: nn.Module, args: tuple) -> tuple | None:
        """Keep what goes into the head, and let it see the mean over streams where that is linear.

        It sees the positions that are to get logits.
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
        number = self.host.number(call.streams)
        call.all_BSTD = args[0].unflatten(0, (-1, number))
        call.hidden_BSTD = call.all_BSTD[:, :, -call.keep :]
        # Adapters that go around the head see each stream; so do weights that are not there yet.
        plain = type(head) is nn.Linear and head is self.get_output_embeddings()
        call.averaged = number > 1 and plain and not head.weight.is_meta
        if not call.averaged:
            return (args[0][:, -call.keep :], *args[1:]) if call.keep else None
        weights = call.streams.weights.to(args[0])
        return (mean_streams(call.hidden_BSTD, weights), *args[1:])

    def _logits(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        streams = streams.to(host_output.logits.device)  # layers may lie on several devices
        new_BTC = self.host.scores_of_new(host_output)
        return self.symbols.finish(self.host.logits(host_output, streams), streams, new_BTC)

    # -- generation -------------------------------------------------------------------------------

    def _reorder_cache(self, past_key_values: Any, beam_idx: torch.Tensor) -> Any:
        """Let rows go on from other beams of their samples, with all their streams."""
        for layer in self_attention_part(past_key_values).layers:
            if layer.get_seq_length():
                number = layer.keys.shape[0] // beam_idx.shape[0]
                streams = torch.arange(number, device=beam_idx.device)
                layer.reorder_cache((beam_idx[:, None] * number + streams).flatten())
        return past_key_values


def _is_hollow(model: nn.Module) -> bool:
    """Returns whether weights of a model are not there, or not here."""
    return any(weight.is_meta or not weight.numel() for weight in model.parameters())


class RetrofitForConditionalGeneration(RetrofitModel):
    """An encoder-decoder with a symbol layer around it; arguments as of [`RetrofitModel`]."""

    auto = AutoModelForSeq2SeqLM
    sides = SIDES

    def __init__(self, config: RetrofitConfig, backbone: PreTrainedModel | None = None):
        super().__init__(config, backbone)
        self.taken = taken_arguments(self.stack("encoder").forward)
        self._add_blocks()
        self.post_init()

    def _add_blocks(self) -> None:
        """Puts blocks of aggregated attention behind the backbone's layers."""
        for side in self.config.aggregated_attention:
            layers = layers_of(self.stack(side))
            first = self.num_slots if side == "decoder" else None
            blocks = nn.ModuleList(
                AggregatedBlock(self.config, None if first is None else first + index)
                for index in range(len(layers))
            )
            setattr(self, f"{side}_aggregated", blocks.to(self.backbone.dtype))
            for index, layer in enumerate(layers):
                layer.register_forward_hook(Hook(self, "_behind_layer", side, index))

    def _check_attention(self) -> None:
        """Raise a ValueError for attention that takes no scores to be added."""
        kind = str(self.config._attn_implementation)
        if "flash" in kind and self.config.aggregated_attention:
            raise ValueError(
                f"{kind} takes no masks of numbers, as aggregated attention needs them: use "
                "attn_implementation='sdpa' or 'eager'"
            )

    # -- parts ------------------------------------------------------------------------------------

    def get_encoder(self, *args: Any, **kwargs: Any) -> RetrofitEncoder:
        return RetrofitEncoder(self)

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
        number = self.host.number(streams)
        rows = self.symbols.rows(input_ids, streams).flatten(0, 1)
        relations = self.host.relations(self._table("encoder"), rows, streams)
        call = partial(self._encoder_call, input_ids, attention_mask, streams)
        with self._calling("encoder", call), self._adding("encoder", input_ids, streams):
            outputs = self.stack("encoder")(
                input_ids=rows,
                attention_mask=repeat_rows(attention_mask, number),
                return_dict=True,
                **{name: repeat_rows(value, number) for name, value in kwargs.items()},
                **relations,
            )
        self._check_reached(relations)
        streams = self.remember(outputs.last_hidden_state, streams)
        return SymbolEncoderOutput(
            last_hidden_state=packed(outputs.last_hidden_state, number),
            hidden_states=each(packed, outputs.get("hidden_states"), number),
            attentions=each(by_sample, outputs.get("attentions"), number),
            **streams.fields(),
        )

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        return self.host.remember(hidden_BLD, streams)

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
            **kwargs: that the backbone's encoder takes; tensors with a row for each sample.

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
        return self._scored(outputs, encoder_outputs, self.host.number(head.streams), logits, loss)

    def _encoded(
        self,
        encoder_outputs: ModelOutput | tuple | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        stream_ids: torch.Tensor | None,
        **kwargs: Any,
    ) -> SymbolEncoderOutput:
        """Returns the encoder's output, which is made unless it is given, with its streams."""
        check_arguments(kwargs, self.taken)
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
        if past_key_values is None and use_cache and not self.recomputes():
            past_key_values = self._new_cache()
        history = None if past_key_values is None else past_key_values.self_attention_cache
        known = Streams.of(source, source.last_hidden_state.dtype)
        streams = self.symbols.follow(known, ids_BT, full_mask(mask), history, self.num_slots)
        number = self.host.number(streams)
        hidden = unpack_streams(match_rows(source.last_hidden_state, rows), self.width)
        decoder_rows = self.symbols.rows(ids_BT, streams).flatten(0, 1)
        relations = self.host.relations(self._table("decoder"), decoder_rows, streams)
        head = HeadCall(streams)
        call = partial(self._decoder_call, ids_BT, mask, streams, past_key_values)
        with (
            self._passing(head),
            self._calling("decoder", call),
            self._adding("decoder", ids_BT, streams),
        ):
            outputs = self.backbone(
                decoder_input_ids=decoder_rows,
                decoder_attention_mask=repeat_rows(mask, number),
                attention_mask=repeat_rows(match_rows(source_mask, rows), number),
                # Of one sample, flattened streams are not contiguous, as some layers want them.
                encoder_outputs=HostEncoderOutput(hidden.flatten(0, 1).contiguous()),
                past_key_values=past_key_values,
                use_cache=use_cache,
                return_dict=True,
                **returned,
                **relations,
            )
        self._check_reached(relations)
        return outputs, head

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

    def _encoder_call(
        self, ids_BL: torch.Tensor, mask: torch.Tensor | None, streams: Streams
    ) -> StackCall:
        return StackCall(streams, padding_mask(mask, self.dtype), token_positions(mask, ids_BL))

    def _decoder_call(
        self, ids_BT: torch.Tensor, mask: Any, streams: Streams, cache: EncoderDecoderCache | None
    ) -> StackCall:
        mask = full_mask(mask)
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

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels shifted right as the backbone does it; -100 becomes padding."""
        own = getattr(self.backbone, "prepare_decoder_input_ids_from_labels", None)
        if own is not None:
            return own(labels)
        return shift_right(labels, self.config)


__all__ = ["AggregatedBlock", "RetrofitForConditionalGeneration", "RetrofitModel"]
