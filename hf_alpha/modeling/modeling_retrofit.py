"""A symbol layer around any encoder-decoder of Transformers, and what decoders have of it.

The backbone sees token ids, as ever. With `streams`, each stream of a sample is a row of the
backbone's batch, in which the stream's own symbol is the actual token and the others of its class
are the placeholder (2601.23169, Algorithm 1); what comes out is joined as in Algorithm 5. With
`dual_part`, a symbol is a row of its class and a random part (2410.17161, Section 4.1). What an
encoding does with the backbone is a `HostEncoding`.

Shapes: B batch, S streams (1 unless the encoding opens streams), L source length, T target length,
D width of the backbone, R rows of its table, V vocabulary.
"""

import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
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
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, TransformersKwargs, can_return_tuple

from .attention import AlphaAttention, CosSin
from .checks import check_cache, check_ids, check_rows, refuse_vectors
from .choices import refuse
from .configuration_retrofit import SIDES, RetrofitConfig
from .host_attention import UnreachedError, relate_attention
from .host_encoding import HeadCall, HostOutput, host_encoding, silent
from .masks import causal_mask, full_mask, padding_mask, self_attention_part
from .new_symbols import NewSymbols
from .positions import decoder_positions, rotary, token_positions
from .relations import match_rows
from .streams import Streams, SymbolEncoderOutput
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import SymbolHead, shift_right
from .symbols import mean_streams, pack_streams, unpack_streams


class RetrofitModel(SymbolHead, GenerationMixin):
    """A backbone with a symbol layer around it: what all such models share.

    Args:
        backbone: a model that is there already, of `config.backbone_config`. It becomes part of
            this one, and is not copied.

    Attributes:
        auto: the Auto class that makes a backbone of its configuration.
        sides: of the backbone, `"encoder"` or `"decoder"`.
        host: what the encoding does with the backbone.
        relations: what is trained for an encoding by relations, if it is one.
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
        self.relations = self.host.make_relations() if self.host.relates else None
        if self.relations is not None:
            relate_attention(backbone)
            self.relations.to(backbone.dtype)
        classes = len(config.symbol_classes)
        self.new_symbols = NewSymbols(self.width, classes) if config.new_symbols else None
        for side in self.sides:
            self._watch_parts(side)

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

    def host_masks(self, masks: Any, number: int) -> Any:
        """Returns masks as the backbone's decoder takes them, with so many rows for each sample."""
        if (
            isinstance(masks, dict)
            and getattr(self.config.decoder_config, "layer_types", None) is None
        ):
            masks = masks["sliding_attention"]  # of all layers; slots of ours have another one
        return repeat_rows(masks, number)

    def stack(self, side: str) -> nn.Module:
        """Returns the backbone's encoder or decoder."""
        return self.backbone.get_encoder() if side == "encoder" else self.backbone.get_decoder()

    def _table(self, side: str) -> nn.Module:
        return self.stack(side).get_input_embeddings()  # type: ignore[operator]

    def _watch(self, part: nn.Module, method: str, before: bool = False) -> None:
        """Have a hook behind a part of the backbone, or before it, that calls a method.

        Copies of a part have hooks of others, too.
        """
        hooks = part._forward_pre_hooks if before else part._forward_hooks
        if not any(isinstance(hook, Hook) and hook.model is self for hook in hooks.values()):
            add = part.register_forward_pre_hook if before else part.register_forward_hook
            add(Hook(self, method))

    def _watch_parts(self, side: str) -> nn.Module:
        """Have hooks before the head, and behind the table of a side if anything is added there.

        Adapters may have put modules of their own in the place of both. Returns the table.
        """
        self._watch(self.get_output_embeddings(), "_before_head", before=True)
        table = self._table(side)
        if self.host.adds_vectors:
            self._watch(table, "_behind_table")
        return table

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
        if self.relations is not None:
            relate_attention(self.backbone)

    def freeze_backbone(self) -> None:
        """Leave the backbone as it is in training.

        What is trained are blocks of aggregated attention and `relations`; without
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
        # PyTorch's default is True, Transformers' False.
        given = activation_checkpointing_kwargs
        reentrant = given is not None and given.get("use_reentrant", True)
        refuse(
            self.relations is not None and reentrant,
            f"{self.config.symbol_encoding!r} models cannot be checkpointed in the reentrant way: "
            "give use_reentrant=False",
        )
        super().activation_checkpointing_enable(activation_checkpointing_kwargs, **kwargs)

    def post_init(self) -> None:
        super().post_init()
        # Marian would leave out its positions, sinusoids if nobody has trained others.
        self._keys_to_ignore_on_save: set[str] = set()

    # -- a call of the backbone --------------------------------------------------------------------

    def _call(
        self,
        part: nn.Module,
        side: str,
        ids_BL: torch.Tensor,
        streams: Streams,
        known: dict[str, Any],
        **arguments: Any,
    ) -> Any:
        """Returns what the backbone, or its encoder, gives for tokens, stream by stream.

        Args:
            side: of the backbone, that reads the tokens.
            known: what hooks have to know while the call is under way, see [`Calls`].
            **arguments: of the part's forward, beside the tokens.

        Raises:
            RuntimeError: the backbone embedded tokens in a way of its own.
            UnreachedError: attention has not asked for its relations.
        """
        rows = self.symbols.rows(ids_BL, streams).flatten(0, 1)
        table = streams.once(("host's table", side), lambda: self._watch_parts(side))
        relations = {}
        if self.relations is not None:
            relations = self.host.relations(table, rows, streams)
        additions = self.host.additions(ids_BL, streams) if self.host.adds_vectors else None
        name = "decoder_input_ids" if len(self.sides) == 2 and side == "decoder" else "input_ids"
        calls = {**self._calls.now, **known}
        if additions is not None:
            calls["additions"] = additions
        before, self._calls.now = self._calls.now, calls
        try:
            outputs = part(**{name: rows}, **arguments, **relations, return_dict=True)
            if "additions" in calls:
                raise RuntimeError(
                    f"the {side} did not call its table of tokens, {type(table)}: what "
                    f"symbol_encoding {self.symbols.encoding.name!r} adds there is lost"
                )
        finally:
            self._calls.now = before
        for relation in relations.values():
            # In training, layers may be left out at random, but not all of them.
            if relation.unreached and not (self.training and relation.reached):
                family, encoding = self.config.host_config.model_type, self.config.symbol_encoding
                raise UnreachedError(family, encoding, relation.unreached[0])
        return outputs

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
        all_BSTD = args[0][:, None] if number == 1 else args[0].unflatten(0, (-1, number))
        some = call.keep and call.keep < args[0].shape[1]
        call.all_BSTD = call.hidden_BSTD = all_BSTD
        if some:
            call.hidden_BSTD = all_BSTD[:, :, -call.keep :]
        # Adapters that go around the head see each stream; so do weights that are not there yet.
        plain = type(head) is nn.Linear and not head.weight.is_meta
        may = self.host.averages and number > 1 and plain
        call.averaged = may and head is self.get_output_embeddings()
        if not call.averaged:
            return (args[0][:, -call.keep :], *args[1:]) if some else None
        weights = call.streams.weights.to(args[0])
        return (mean_streams(call.hidden_BSTD, weights), *args[1:])

    def _logits(self, host_output: HostOutput, streams: Streams) -> torch.Tensor:
        streams = streams.to(host_output.logits.device)  # layers may lie on several devices
        streams = streams.of_last(host_output.logits.shape[1])
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


# Hooks ---------------------------------------------------------------------------------------


class Calls:
    """The calls of a model that are under way, by what they are of; each thread has its own.

    They are a [`StackCall`] of a side with blocks, `"additions"` to vectors of tokens, and the
    [`HeadCall`] of the `"head"`. A context variable holds them. The compiler does not trace one, so
    that a compiled call is held by an attribute, which is seen while the call is compiled, or where
    something breaks the graph: then one thread may call the model at a time. A copy of the model
    has its own.
    """

    def __init__(self) -> None:
        self._now: ContextVar[dict[str, Any]] = ContextVar("calls", default={})  # noqa: B039
        self._compiled: dict[str, Any] = {}

    @property
    def now(self) -> dict[str, Any]:
        """What is under way."""
        if torch.compiler.is_compiling():
            return self._compiled
        return self._now.get() or self._compiled

    @now.setter
    def now(self, calls: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            self._compiled = calls
        else:
            self._now.set(calls)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Hook:
    """A hook on a part of the backbone: it calls a method of the model around it.

    In a deep copy of the model, hooks call the copy. In a copy of the part alone, which adapters
    make, they call the same model still.

    Args:
        args: what the method gets before the arguments of the hook.
    """

    def __init__(self, model: nn.Module, method: str, *args: Any):
        self.model, self.method, self.args = model, method, args

    def __call__(self, *args: Any) -> Any:
        return getattr(self.model, self.method)(*self.args, *args)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Hook":
        return Hook(memo.get(id(self.model), self.model), self.method, *self.args)


# An encoder with a decoder ---------------------------------------------------------------------


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

    def get_encoder(self, *args: Any, **kwargs: Any) -> "RetrofitEncoder":
        return RetrofitEncoder(self)

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
        kind = str(self.config._attn_implementation)
        refuse(
            "flash" in kind and self.config.aggregated_attention,
            f"{kind} takes no masks of numbers, as aggregated attention needs them: use "
            "attn_implementation='sdpa' or 'eager'",
        )
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        number = self.host.number(streams)
        known = {}
        if "encoder" in self.config.aggregated_attention:
            mask = padding_mask(attention_mask, self.dtype)
            known["encoder"] = StackCall(streams, mask, token_positions(attention_mask, input_ids))
        arguments = {"attention_mask": attention_mask, **kwargs}
        outputs = self._call(
            self.stack("encoder"),
            "encoder",
            input_ids,
            streams,
            known,
            **{name: repeat_rows(value, number) for name, value in arguments.items()},
        )
        return SymbolEncoderOutput(
            last_hidden_state=packed(outputs.last_hidden_state, number),
            **side_by_side(outputs, number, "hidden_states", "attentions"),
            **self.remember(outputs.last_hidden_state, streams).fields(),
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
            **kwargs: that the backbone's encoder takes; tensors with a row for each sample. The
                decoder gets `output_attentions` and `output_hidden_states` as well.

        Returns:
            The loss is that of the answers alone: what a backbone adds to its own, such as that of
            the choice of experts, is not in it. `logits` (B, T, V); where
            `config.answers_are_listed`, columns of symbols that are not in a sample's input hold
            -1e4; with `config.new_symbols`, those of symbols that input and answer lack so far, but
            the first of each class, which has the score of a new one.
        """
        refuse_vectors(kwargs)
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if decoder_input_ids is None:
            raise ValueError("decoder_input_ids are missing (or give labels)")
        check_arguments(kwargs, self.taken)
        wanted = {name: kwargs.get(name) for name in ("output_attentions", "output_hidden_states")}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("give input_ids or encoder_outputs")
            encoder_outputs = self.encode(input_ids, attention_mask, stream_ids, **kwargs)
        source = self.complete_encoder_output(
            encoder_outputs, stream_ids, input_ids, attention_mask
        )
        rows, samples = decoder_input_ids.shape[0], source.last_hidden_state.shape[0]
        check_rows(rows, samples, labels)
        check_ids(self.config, decoder_input_ids, "decoder_input_ids")
        check_cache(past_key_values)
        use_cache = self.config.use_cache if use_cache is None else use_cache
        if past_key_values is None and use_cache and not self.recomputes():
            side = self.config.get_text_config(decoder=True)
            past_key_values = EncoderDecoderCache(DynamicCache(config=side), DynamicCache())

        history = None if past_key_values is None else past_key_values.self_attention_cache
        visible = full_mask(decoder_attention_mask)
        streams = Streams.of(source, source.last_hidden_state.dtype)
        streams = self.symbols.follow(streams, decoder_input_ids, visible, history, self.num_slots)
        number = self.host.number(streams)
        hidden = unpack_streams(match_rows(source.last_hidden_state, rows), self.width)
        known: dict[str, Any] = {"head": HeadCall(streams, cache=history)}
        if "decoder" in self.config.aggregated_attention:
            mask = causal_mask(decoder_input_ids, visible, past_key_values, self.dtype)
            positions = decoder_positions(decoder_input_ids, visible, past_key_values)
            known["decoder"] = StackCall(streams, mask, positions, past_key_values)
        outputs = self._call(
            self.backbone,
            "decoder",
            decoder_input_ids,
            streams,
            known,
            decoder_attention_mask=self.host_masks(decoder_attention_mask, number),
            attention_mask=repeat_rows(match_rows(attention_mask, rows), number),
            # Of one sample, flattened streams are not contiguous, as some layers want them.
            encoder_outputs=HostEncoderOutput(hidden.flatten(0, 1).contiguous()),
            past_key_values=past_key_values,
            use_cache=use_cache,
            **wanted,
        )
        output = HostOutput(outputs.logits, known["head"])
        logits, loss = self.predict(output, streams, labels, num_items_in_batch)
        names = ("decoder_hidden_states", "decoder_attentions", "cross_attentions")
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.get("past_key_values"),
            **side_by_side(outputs, number, *names),
            encoder_last_hidden_state=source.last_hidden_state,
            encoder_hidden_states=source.hidden_states,
            encoder_attentions=source.attentions,
        )

    def _behind_layer(
        self, side: str, index: int, layer: nn.Module, args: tuple, output: Any
    ) -> Any:
        """Returns a layer's output with what the block behind it adds."""
        call = self._calls.now.get(side)
        if call is None:  # the backbone is called by itself
            return None
        hidden = output[0] if isinstance(output, tuple) else output
        call = call.padded(hidden.shape[1])
        block = getattr(self, f"{side}_aggregated")[index]
        sizes = block.attention.head_dim, self.config.rope_theta, block.attention.num_heads
        rope = rotary(call.positions, *sizes)
        streams = hidden.unflatten(0, (-1, call.streams.ids.shape[1]))
        updated = block(streams, call.streams, call.mask, rope, past_key_values=call.cache)
        updated = updated.flatten(0, 1)
        return (updated, *output[1:]) if isinstance(output, tuple) else updated

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

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels shifted right as the backbone does it; -100 becomes padding."""
        own = getattr(self.backbone, "prepare_decoder_input_ids_from_labels", None)
        if own is not None:
            return own(labels)
        return shift_right(labels, self.config)


class RetrofitEncoder:
    """The encoder of a model as generation sees it; it owns nothing."""

    main_input_name = "input_ids"

    def __init__(self, model: RetrofitForConditionalGeneration):
        self.forward = model.encode

    def __call__(self, *args: Any, **kwargs: Any) -> SymbolEncoderOutput:
        return self.forward(*args, **kwargs)


@dataclass
class HostEncoderOutput(BaseModelOutput):
    """What the backbone's decoder gets of its encoder.

    Families read fields of their own: attention to all tokens (LED), the choice of experts (Switch
    Transformers, NLLB-MoE). Of several streams there is no such thing.
    """

    global_attentions: None = None
    router_probs: None = None
    router_logits: None = None


class AggregatedBlock(GradientCheckpointingLayer):
    """Attention of each stream to the aggregated view of all of them, added to a layer's output.

    The norm sits inside the branch and the output projection is 0 at first, so that a new block is
    an exact identity.

    Args:
        slot: of the decoder's cache; None in an encoder.
    """

    of_symbols = True

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
class StackCall:
    """What blocks between the layers of a stack have to know about the call that is under way.

    Attributes:
        streams: over the stack's sequence.
        mask: additive, of the blocks' attention, see [`AlphaAttention`].
        positions: of the tokens: (B or 1, T).
    """

    streams: Streams
    mask: torch.Tensor | None
    positions: torch.Tensor
    cache: EncoderDecoderCache | None = None

    def padded(self, length: int) -> "StackCall":
        """Returns this call for an encoder that pads its input on the right, as LED's does."""
        more = length - self.streams.own.shape[1]
        if not more:
            return self
        own, hidden = self.streams.own, torch.finfo(self.streams.weights.dtype).min
        mask = self.streams.weights.new_zeros(own.shape[0], 1, 1, own.shape[1])
        mask = F.pad(mask if self.mask is None else self.mask, (0, more), value=hidden)
        streams = self.streams.but(own=F.pad(own, (0, more), value=-1))
        return StackCall(streams, mask, F.pad(self.positions, (0, more)))


# Any backbone --------------------------------------------------------------------------------


def taken_arguments(call: Callable[..., Any]) -> frozenset[str]:
    """Returns the names of keyword arguments that a call of a backbone does something with."""
    return frozenset((*inspect.signature(call).parameters, *TransformersKwargs.__annotations__))


def check_arguments(kwargs: dict[str, Any], taken: frozenset[str]) -> None:
    """Raise a TypeError for an argument with a value that a backbone would take and forget."""
    for name, value in kwargs.items():
        if value is None or name in taken:
            continue
        similar = get_close_matches(name, sorted(taken), n=1)
        hint = f": did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(f"forward got {name!r}, which the backbone does not take{hint}")


def keep_weights(model: nn.Module) -> None:
    """Mark a model's weights as they are: the model around it initialises only its own."""
    for module in model.modules():
        module._is_hf_initialized = True  # type: ignore[assignment]
    for tensor in (*model.parameters(), *model.buffers()):
        tensor._is_hf_initialized = True  # type: ignore[attr-defined]


def repeat_rows(x: Any, number: int) -> Any:
    """Repeat each sample's row for its streams; what has no row for each sample stays."""
    if isinstance(x, dict):
        return {name: repeat_rows(value, number) for name, value in x.items()}
    if number == 1 or not isinstance(x, torch.Tensor) or x.dim() == 0:
        return x
    if x.dim() == 4 and x.shape[0] == 1:  # a mask for all rows
        return x
    return x.repeat_interleave(number, dim=0)


def packed(hidden: torch.Tensor, number: int) -> torch.Tensor:
    """Puts the streams of a sample side by side: (B * S, L, D) -> (B, L, S * D)."""
    if number == 1:
        return hidden
    return pack_streams(hidden.unflatten(0, (-1, number)))


def side_by_side(outputs: Any, number: int, *names: str) -> dict[str, Any]:
    """Returns states and attention weights of an output with a sample's streams side by side.

    States (B * S, L, D) become (B, L, S * D), weights (B * S, H, T, M) become (B, S * H, T, M).

    Args:
        outputs: of the backbone; fields that it lacks are None.
        number: S.
    """

    def change(name: str, x: torch.Tensor | None) -> torch.Tensor | None:
        if x is None or number == 1:
            return x
        if name.endswith("hidden_states"):
            return packed(x, number)
        return x.unflatten(0, (-1, number)).flatten(1, 2)

    fields = {name: outputs.get(name) for name in names}
    return {
        name: values and tuple(change(name, x) for x in values) for name, values in fields.items()
    }


def layers_of(stack: nn.Module) -> list[nn.Module]:
    """Returns the layers of an encoder or decoder, as of `model.get_encoder()`, first to last.

    They are the members of the one ModuleList below the stack that lies in no other ModuleList and
    holds modules of one class. Lists inside a layer (its sublayers, its experts) do not count.

    Raises:
        ValueError: there is no such list, or more than one.
    """
    layer_lists = [
        (name, list(layers))
        for name, layers in _outer_lists(stack)
        if len({type(layer) for layer in layers}) == 1
    ]
    if len(layer_lists) != 1:
        names = " and ".join(name for name, _ in layer_lists) or "none"
        raise ValueError(
            f"cannot tell which modules are the layers of {type(stack).__name__}: exactly one "
            f"ModuleList with members of one class is expected, found {names}"
        )
    return layer_lists[0][1]


def _outer_lists(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    """Yields each ModuleList below a module that lies in no other one, with its name."""
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            yield f"{prefix}{name}", child
        else:
            yield from _outer_lists(child, f"{prefix}{name}.")
