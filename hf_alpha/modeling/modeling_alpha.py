"""Encoder-decoder with three ways to see symbols, in one set of modules.

Symbol-invariant streams (arXiv 2601.23169), dual-part embeddings (2410.17161), the vanilla model.

Shapes: B batch, S streams (1 but for `streams`), L source length, T target length, D model width,
V vocabulary, R rows of the embedding. Inside the model a hidden state is (B, S, L, D); outside it
is (B, L, S * D), so that caches and generation see an ordinary encoder-decoder.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.generation import GenerationMixin
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .adacos import LogitScale, token_loss
from .attention import AlphaAttention, CosSin
from .caches import reorder
from .checks import check_ids, check_labels, check_symbols
from .configuration_alpha import AlphaConfig
from .embeddings import SymbolDraws, SymbolEmbedding
from .linear import BlockLinear, in_blocks
from .positions import rotary, sinusoidal, token_positions, tree
from .saving import SavesCode
from .symbols import (
    aggregate,
    first_occurrence,
    mean_streams,
    own_streams,
    pack_streams,
    stream_weights,
    unpack_streams,
)

# Logit of a column that a sample cannot use: out of reach of any other, and finite in all dtypes.
UNUSABLE = -1e4
# Switch -> name of the module.
CROSS_ATTENTION = {"per_stream": "encoder_attn", "aggregated": "encoder_aggregated_attn"}

OUTSIDE_LOSS = (
    "num_items_in_batch without labels: a loss is computed outside of the model, as by Trainer's "
    "label_smoothing_factor. It would count the columns of symbols that a sample lacks, which hold "
    f"{UNUSABLE:g}. For label smoothing, set label_smoothing in the model's configuration; for a "
    "loss of your own, leave out the columns that model.usable_columns(stream_ids) lacks and set "
    "model.accepts_loss_kwargs = False"
)

Rows = TypeVar("Rows", bound=torch.Tensor | None)


@dataclass
class AlphaEncoderOutput(BaseModelOutput):
    """Encoder output with what the decoder has to know about the streams and names.

    Attributes:
        last_hidden_state: (B, L, S * D).
        stream_ids: each stream's symbol, by first occurrence, -1 padded: (B, S). Without streams,
            the input's symbols where `first_occurrence` asks for them, else -1.
        own_streams: index of the stream of the symbol at each input position, or -1: (B, L).
        renaming: what each id is called inside the model, where symbols are renamed: (B, V).
    """

    # Optional only because every field of a ModelOutput is.
    stream_ids: torch.Tensor = None  # type: ignore[assignment]
    own_streams: torch.Tensor = None  # type: ignore[assignment]
    renaming: torch.Tensor | None = None


@dataclass
class Streams:
    """The streams of a batch as layers need them.

    Attributes:
        own_BL: stream centred on each token, -1 for none.
        weights_BS: weights of the mean over streams.
    """

    own_BL: torch.Tensor
    weights_BS: torch.Tensor


def by_chunks(
    function: Callable[..., tuple[torch.Tensor, torch.Tensor | None]],
    chunk: int | None,
    hidden_BSLD: torch.Tensor,
    source: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Apply a function of streams and their sources to so many at a time; results as of all.

    Args:
        source: one for each stream, or one for all.
    """
    streams = hidden_BSLD.shape[1]
    if chunk is None or streams <= chunk:
        return function(hidden_BSLD, source)
    parts = hidden_BSLD.split(chunk, dim=1)
    own = source.shape[1] == streams
    sources = source.split(chunk, dim=1) if own else [source] * len(parts)
    found = [function(*part) for part in zip(parts, sources, strict=True)]
    hidden, weights = zip(*found, strict=True)
    return torch.cat(hidden, 1), None if weights[0] is None else torch.cat(weights, 1)


class AlphaLayer(GradientCheckpointingLayer):
    """What encoder and decoder layers share: post-norm residuals around attention and FFN."""

    aggregated_attn: AlphaAttention | None
    aggregated_attn_layer_norm: nn.LayerNorm

    def __init__(self, config: AlphaConfig, ffn_dim: int):
        super().__init__()
        self.config = config
        self.fc1 = BlockLinear(config.d_model, ffn_dim)
        self.fc2 = BlockLinear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.activation = ACT2FN[config.activation_function]
        self.dropout = nn.Dropout(config.dropout)

    def _norm(self) -> nn.LayerNorm:
        return nn.LayerNorm(self.config.d_model, eps=self.config.layer_norm_eps)

    def _feed_forward(self, hidden: torch.Tensor) -> torch.Tensor:
        def feed(hidden: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor, None]:
            update = in_blocks(lambda rows: self.fc2(self._activate(self.fc1(rows))), hidden)
            return self.final_layer_norm(hidden + self.dropout(update)), None

        return by_chunks(feed, self.config.stream_chunk, hidden, hidden)[0]

    def _activate(self, x: torch.Tensor) -> torch.Tensor:
        # Not in place in training: there a block's input to it is gone at once, and its place is
        # still in the cache when the next block needs one. Nor where others may have kept it.
        ours = type(self.fc1) is BlockLinear and not self.fc1._forward_hooks
        if ours and isinstance(self.activation, nn.ReLU) and not torch.is_grad_enabled():
            return x.relu_()
        return self.activation(x)

    def _attend(
        self, name: str, hidden_BSLD: torch.Tensor, source: torch.Tensor, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Residual around an attention block, by chunks of streams; see [`AlphaAttention`]."""
        attention, norm = getattr(self, name), getattr(self, f"{name}_layer_norm")

        def attend(
            hidden: torch.Tensor, source: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor | None]:
            if self.config.aggregated_attention_norm == "pre" and name == "aggregated_attn":
                update, weights = attention(norm(hidden), norm(source), **kwargs)
                return hidden + self.dropout(update), weights
            update, weights = attention(hidden, source, **kwargs)
            return norm(hidden + self.dropout(update)), weights

        # What is cached is cached for all streams at once.
        chunk = self.config.stream_chunk if kwargs.get("cache") is None else None
        return by_chunks(attend, chunk, hidden_BSLD, source)

    def _attend_aggregated(
        self, hidden_BSLD: torch.Tensor, streams: Streams, **kwargs: Any
    ) -> torch.Tensor:
        """Each stream attends to the aggregated view of all of them."""
        view = aggregate(hidden_BSLD, streams.own_BL, streams.weights_BS)[:, None]
        return self._attend("aggregated_attn", hidden_BSLD, view, **kwargs)[0]


class AlphaEncoderLayer(AlphaLayer):
    """Algorithm 3: per-stream attention, aggregated attention, feed-forward."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config, config.encoder_ffn_dim)
        heads = config.encoder_attention_heads
        self.self_attn = self.aggregated_attn = None
        if config.encoder_per_stream_attention:
            self.self_attn = AlphaAttention(config, heads)
            self.self_attn_layer_norm = self._norm()
        if config.encoder_aggregated_attention:
            self.aggregated_attn = AlphaAttention(config, heads)
            self.aggregated_attn_layer_norm = self._norm()

    def forward(
        self,
        hidden_BSLD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        rope: CosSin,
        output_attentions: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns the new hidden state and per-stream attention weights on demand."""
        weights = None
        shared = {"mask": mask, "query_rope": rope, "key_rope": rope}
        if self.self_attn is not None:
            hidden_BSLD, weights = self._attend(
                "self_attn", hidden_BSLD, hidden_BSLD, output_weights=output_attentions, **shared
            )
        if self.aggregated_attn is not None:
            hidden_BSLD = self._attend_aggregated(hidden_BSLD, streams, **shared)
        return self._feed_forward(hidden_BSLD), weights


class AlphaDecoderLayer(AlphaLayer):
    """Algorithm 4: causal per-stream and aggregated attention, cross-attention, feed-forward."""

    def __init__(self, config: AlphaConfig, index: int):
        super().__init__(config, config.decoder_ffn_dim)
        heads = config.decoder_attention_heads
        self.self_attn = self.aggregated_attn = None
        # A layer owns cache slots 2i and 2i + 1, filled in order: slot 0 always tells the length.
        slot = 2 * index
        if config.decoder_per_stream_attention:
            self.self_attn = AlphaAttention(config, heads, slot)
            self.self_attn_layer_norm = self._norm()
            slot += 1
        if config.decoder_aggregated_attention:
            self.aggregated_attn = AlphaAttention(config, heads, slot)
            self.aggregated_attn_layer_norm = self._norm()
        for offset, mode in enumerate(config.cross_attention):
            name = CROSS_ATTENTION[mode]
            setattr(self, name, AlphaAttention(config, heads, 2 * index + offset, cross=True))
            setattr(self, f"{name}_layer_norm", self._norm())

    def forward(
        self,
        hidden_BSTD: torch.Tensor,
        encoder_NSLD: torch.Tensor,
        encoder_view_N1LD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        encoder_mask: torch.Tensor | None,
        rope: CosSin,
        encoder_rope: CosSin,
        past_key_values: EncoderDecoderCache | None = None,
        output_attentions: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Returns the new hidden state and, on demand, self- and cross-attention weights.

        Args:
            encoder_view_N1LD: what aggregated cross-attention attends to.
        """
        weights = cross_weights = None
        own = {"mask": mask, "query_rope": rope, "key_rope": rope, "cache": past_key_values}
        if self.self_attn is not None:
            hidden_BSTD, weights = self._attend(
                "self_attn", hidden_BSTD, hidden_BSTD, output_weights=output_attentions, **own
            )
        if self.aggregated_attn is not None:
            hidden_BSTD = self._attend_aggregated(hidden_BSTD, streams, **own)
        cross_rope = rope if encoder_rope is not None else None
        for mode in self.config.cross_attention:
            hidden_BSTD, mode_weights = self._attend(
                CROSS_ATTENTION[mode],
                hidden_BSTD,
                encoder_NSLD if mode == "per_stream" else encoder_view_N1LD,
                mask=encoder_mask,
                query_rope=cross_rope,
                key_rope=encoder_rope,
                cache=past_key_values,
                output_weights=output_attentions,
            )
            cross_weights = mode_weights if cross_weights is None else cross_weights
        return self._feed_forward(hidden_BSTD), weights, cross_weights


class AlphaPreTrainedModel(SavesCode, PreTrainedModel):
    """Initialisation and what the library has to know about these models."""

    config: AlphaConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _can_compile_fullgraph = True
    _no_split_modules = ["AlphaEncoderLayer", "AlphaDecoderLayer"]  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """PyTorch's own initialisation for linear layers; embedding rows are N(0, 1)."""
        if isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight)
        elif isinstance(module, (LogitScale, SymbolDraws)):
            module.reset()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not available: the vocabulary grows by symbols, which `extend_symbols` adds."""
        raise NotImplementedError(
            "resize_token_embeddings would move the symbols' ids; add symbols with "
            'model.extend_symbols({"proposition": 20}) and the same call on the tokenizer'
        )

    def extend_symbols(self, counts: dict[str, int]) -> None:
        """Add symbols at the end of the vocabulary: class name -> how many. No training is needed.

        Old ids never move. Call the tokenizer's method of the same name too.

        Raises:
            ValueError: this encoding has one trained vector per symbol, the class is unknown, or
                there are not as many random parts.
        """
        if self.config.symbol_encoding == "learned":
            raise ValueError(
                "symbol_encoding 'learned' has one trained vector per symbol, and none for new "
                "ones; convert the model to 'streams' first (hf-alpha convert)"
            )
        self.config.extend_symbols(counts)
        for module in self.modules():
            if isinstance(module, SymbolDraws):
                module.extend()

    def redraw_symbols(self, seed: int) -> None:
        """Draw the random parts of a `dual_part` model's symbols anew, for inference.

        The same seed gives the same vectors; `config.symbol_seed` starts the first draw and keeps
        the last one. Training draws from it too, in every step.

        Raises:
            ValueError: this encoding has no random parts.
        """
        if self.config.symbol_encoding != "dual_part":
            raise ValueError(
                f"symbol_encoding {self.config.symbol_encoding!r} has no random parts to draw; "
                "only 'dual_part' has"
            )
        self.config.symbol_seed = seed
        for module in self.modules():
            if isinstance(module, SymbolDraws):
                module.redraw()


class ReturnedStates:
    """Hidden states as they are returned, on the graph that leads to the logits.

    Args:
        width: D.
        wanted: whether they are returned at all.

    Attributes:
        packed: the states so far, each (B, L, S * D).
    """

    def __init__(self, width: int, wanted: bool):
        self.width = width
        self.wanted = wanted
        self.packed: tuple[torch.Tensor, ...] = ()

    def keep(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        """Keep a state; returns what to go on from, so that gradients pass through what is kept."""
        if not self.wanted:
            return hidden_BSLD
        self.packed += (pack_streams(hidden_BSLD),)
        return unpack_streams(self.packed[-1], self.width)

    def last(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        """The last state: (B, L, S * D)."""
        return self.packed[-1] if self.wanted else pack_streams(hidden_BSLD)


def token_embedding(config: AlphaConfig) -> nn.Embedding:
    """The trained rows that [`SymbolEmbedding`] reads."""
    return nn.Embedding(config.num_embedding_rows, config.embedding_dim)


class AlphaStack(AlphaPreTrainedModel):
    """What encoder and decoder share: they embed by the model's table, or by one of their own.

    Args:
        config: of the model.
        symbols: the model's; without it the stack stands alone and has an embedding.
    """

    def __init__(self, config: AlphaConfig, symbols: SymbolEmbedding | None = None):
        super().__init__(config)
        if symbols is None:
            self.embed_tokens = token_embedding(config)
            self.symbol_draws = SymbolDraws.of(config)
            symbols = SymbolEmbedding(config, self.symbol_draws, self)
        self.symbols = symbols

    def get_input_embeddings(self) -> nn.Module:
        owner = self.symbols.owner
        return self.embed_tokens if owner is self else owner.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        owner = self.symbols.owner
        if owner is self:
            self.embed_tokens = value
        else:
            owner.set_input_embeddings(value)


class AlphaEncoder(AlphaStack):
    """Stack of encoder layers over the streams of the input."""

    def __init__(self, config: AlphaConfig, symbols: SymbolEmbedding | None = None):
        super().__init__(config, symbols)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(AlphaEncoderLayer(config) for _ in range(config.encoder_layers))
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        tree_paths: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> AlphaEncoderOutput:
        """Encode.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, at the price of one synchronisation with the device, where
                they are needed: for `streams` and for `first_occurrence`.
            tree_paths: heap number of each token, for tree positions: (B, L).
        """
        output_attentions, output_hidden_states = self._outputs(
            output_attentions, output_hidden_states
        )
        if self.training:
            self.symbols.advance()
        check_ids(self.config, input_ids)
        stream_ids = self._stream_ids(input_ids, attention_mask, stream_ids)
        own_BL = own_streams(input_ids, stream_ids)
        if self.config.lists_symbols:
            check_symbols(self.config, input_ids, attention_mask, own_BL)
        renaming = self.symbols.renaming(input_ids, attention_mask, stream_ids, self.training)
        hidden = self.symbols.embed(input_ids, own_BL, stream_ids.shape[1], renaming)
        positions = token_positions(attention_mask, input_ids)
        hidden = self.dropout(self._add_positions(hidden, positions, tree_paths))
        rope = None
        if self.config.encoder_position == "rope":
            width = self.config.d_model // self.config.encoder_attention_heads
            rope = rotary(positions, width, self.config.rope_theta)
        mask = padding_mask(attention_mask, hidden.dtype)
        streams = Streams(own_BL, stream_weights(stream_ids, hidden.dtype))
        states = ReturnedStates(self.config.d_model, output_hidden_states)
        hidden = states.keep(hidden)
        attentions: tuple[torch.Tensor, ...] = ()
        for layer in self.layers:
            hidden, weights = layer(hidden, streams, mask, rope, output_attentions)
            hidden = states.keep(hidden)
            attentions += (weights,) if output_attentions else ()
        return AlphaEncoderOutput(
            last_hidden_state=states.last(hidden),
            hidden_states=states.packed or None,
            attentions=attentions or None,
            stream_ids=stream_ids,
            own_streams=own_BL,
            renaming=renaming,
        )

    def _stream_ids(
        self, ids_BL: torch.Tensor, mask_BL: torch.Tensor | None, stream_ids: torch.Tensor | None
    ) -> torch.Tensor:
        if not self.config.lists_symbols:
            # One stream of no symbol in particular, whatever the tokenizer lists.
            return ids_BL.new_full((ids_BL.shape[0], 1), -1)
        if stream_ids is not None:
            if stream_ids.shape[0] != ids_BL.shape[0]:
                raise ValueError(
                    f"stream_ids has {stream_ids.shape[0]} rows for {ids_BL.shape[0]} inputs"
                )
            return stream_ids
        ids = ids_BL if mask_BL is None else ids_BL.where(mask_BL > 0, self.config.pad_token_id)
        return first_occurrence(ids, self.config.num_base_tokens)

    def _outputs(self, attentions: bool | None, states: bool | None) -> tuple[bool, bool]:
        return (
            self.config.output_attentions if attentions is None else attentions,
            self.config.output_hidden_states if states is None else states,
        )

    def _add_positions(
        self, hidden_BSLD: torch.Tensor, positions: torch.Tensor, tree_paths: torch.Tensor | None
    ) -> torch.Tensor:
        kind, width = self.config.encoder_position, self.config.d_model
        if kind == "tree":
            if tree_paths is None:
                raise ValueError(
                    "this model has tree positions and needs tree_paths (B, L): pass everything "
                    "that the tokenizer returns, or set encoder_position in the config"
                )
            return hidden_BSLD + tree(tree_paths, width, hidden_BSLD.dtype)[:, None]
        if kind == "sinusoidal":
            return hidden_BSLD + sinusoidal(positions, width, hidden_BSLD.dtype)[:, None]
        return hidden_BSLD


class AlphaDecoder(AlphaStack):
    """Stack of decoder layers over the streams that the encoder opened."""

    def __init__(self, config: AlphaConfig, symbols: SymbolEmbedding | None = None):
        super().__init__(config, symbols)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            AlphaDecoderLayer(config, index) for index in range(config.decoder_layers)
        )
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_outputs: AlphaEncoderOutput,
        attention_mask: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode.

        Args:
            input_ids: (B, T), without the tokens that `past_key_values` already holds.
            encoder_outputs: output of [`AlphaEncoder`], of B inputs or of fewer: each is that of
                the same number of consecutive rows, the beams of a search.
            attention_mask: (B, past + T), or a mask (B, 1, T, M) as generation prepares it.
            encoder_attention_mask: (B, L).
        """
        config = self.config
        attentions_on = config.output_attentions if output_attentions is None else output_attentions
        states_on = (
            config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        if past_key_values is not None and not isinstance(past_key_values, EncoderDecoderCache):
            raise ValueError(
                "past_key_values must be an EncoderDecoderCache, e.g. "
                "EncoderDecoderCache(DynamicCache(), DynamicCache())"
            )
        if (
            past_key_values is not None
            and past_key_values.get_seq_length()
            and not past_key_values.is_updated.get(0)
        ):
            raise ValueError(
                "past_key_values hold keys that this model did not make: prefix tuning is not "
                "supported, as each stream has keys of its own; LoRA and its kin are"
            )
        if (
            use_cache
            and past_key_values is None
            and not (self.training and self.gradient_checkpointing)
        ):
            side = config.get_text_config(decoder=True)
            past_key_values = EncoderDecoderCache(
                DynamicCache(config=side), DynamicCache(config=side)
            )
        encoder_NSLD = unpack_streams(encoder_outputs.last_hidden_state, config.d_model)
        rows, samples = input_ids.shape[0], encoder_NSLD.shape[0]
        check_rows(rows, samples)
        check_ids(config, input_ids)
        stream_ids = match_rows(encoder_outputs.stream_ids, rows)
        own_BT = own_streams(input_ids, stream_ids)
        renaming = match_rows(encoder_outputs.renaming, rows)
        hidden = self.symbols.embed(input_ids, own_BT, stream_ids.shape[1], renaming)
        weights_BS = stream_weights(stream_ids, hidden.dtype)
        streams = Streams(own_BT, weights_BS)
        encoder_view = encoder_NSLD[:, :1]
        if "aggregated" in config.cross_attention:
            view = aggregate(
                encoder_NSLD, encoder_outputs.own_streams, match_rows(weights_BS, samples)
            )
            encoder_view = view[:, None]
        encoder_attention_mask = match_rows(encoder_attention_mask, samples)
        positions = self._positions(input_ids, attention_mask, past_key_values)
        if config.decoder_position == "sinusoidal":
            hidden = hidden + sinusoidal(positions, config.d_model, hidden.dtype)[:, None]
        hidden = self.dropout(hidden)
        rope, encoder_rope = self._rope(positions, encoder_NSLD, encoder_attention_mask)
        mask = causal_mask(input_ids, attention_mask, past_key_values, hidden.dtype)
        # A cache that is gone on from may have been made for each beam, or for all of a sample.
        kept = kept_sources(past_key_values)
        encoder_mask = padding_mask(
            match_rows(encoder_attention_mask, kept or samples), hidden.dtype
        )

        states = ReturnedStates(config.d_model, states_on)
        hidden = states.keep(hidden)
        attentions: tuple[torch.Tensor, ...] = ()
        cross: tuple[torch.Tensor, ...] = ()
        for layer in self.layers:
            hidden, weights, cross_weights = layer(
                hidden,
                encoder_NSLD,
                encoder_view,
                streams,
                mask,
                encoder_mask,
                rope,
                encoder_rope,
                past_key_values=past_key_values,
                output_attentions=attentions_on,
            )
            hidden = states.keep(hidden)
            attentions += (weights,) if attentions_on else ()
            cross += (cross_weights,) if attentions_on else ()
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=states.last(hidden),
            past_key_values=past_key_values,
            hidden_states=states.packed or None,
            attentions=attentions or None,
            cross_attentions=cross or None,
        )

    @staticmethod
    def _positions(
        ids_BT: torch.Tensor, attention_mask: torch.Tensor | None, past_key_values: Cache | None
    ) -> torch.Tensor:
        length = ids_BT.shape[1]
        if attention_mask is not None and attention_mask.dim() == 2:
            return token_positions(attention_mask, ids_BT)[:, -length:]
        if attention_mask is not None:
            # A prepared mask (B, 1, T, M): a token's position is the number of keys before it.
            visible = attention_mask if attention_mask.dtype == torch.bool else attention_mask == 0
            return (visible[:, 0].sum(-1) - 1).clamp(min=0)
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        return token_positions(None, ids_BT) + past

    def _rope(
        self,
        positions: torch.Tensor,
        encoder_NSLD: torch.Tensor,
        encoder_mask: torch.Tensor | None,
    ) -> tuple[CosSin, CosSin]:
        config = self.config
        if config.decoder_position != "rope":
            return None, None
        width = config.d_model // config.decoder_attention_heads
        rope = rotary(positions, width, config.rope_theta)
        if not config.cross_attention_rope:
            return rope, None
        encoder_positions = token_positions(encoder_mask, encoder_NSLD[:, 0, :, 0])
        return rope, rotary(encoder_positions, width, config.rope_theta)


def check_rows(rows: int, samples: int) -> None:
    """Raise a ValueError if decoder rows cannot be shared out among the inputs."""
    if rows < samples or rows % samples:
        raise ValueError(
            f"decoder_input_ids has {rows} rows for {samples} inputs: give one for each input, or "
            "for each input as many, those of an input side by side"
        )


def match_rows(x: Rows, rows: int) -> Rows:
    """One row for each beam of a sample, or one for all of them; None stays None."""
    if x is None or x.shape[0] == rows:
        return x
    if x.shape[0] > rows:
        return x[:: x.shape[0] // rows]  # type: ignore[return-value]
    return x.repeat_interleave(rows // x.shape[0], dim=0)  # type: ignore[return-value]


def kept_sources(past_key_values: EncoderDecoderCache | None) -> int:
    """How many sources the keys and values of cross-attention have been kept of; 0 for none."""
    if past_key_values is None or not past_key_values.is_updated.get(0):
        return 0
    return past_key_values.cross_attention_cache.layers[0].keys.shape[0]


def padding_mask(mask_BL: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """Additive mask (B, 1, 1, L) that hides padding."""
    if mask_BL is None:
        return None
    return additive(mask_BL[:, None, None].bool(), dtype)


def causal_mask(
    ids_BT: torch.Tensor,
    mask: torch.Tensor | None,
    past_key_values: EncoderDecoderCache | None,
    dtype: torch.dtype,
) -> torch.Tensor | None:
    """Additive mask (B or 1, 1, T, M) that hides later tokens, unused cache and padding."""
    if mask is not None and mask.dim() == 4:
        return additive(mask, dtype) if mask.dtype == torch.bool else mask
    length = keys = ids_BT.shape[1]
    past = 0
    if past_key_values is not None:
        cache = past_key_values.self_attention_cache
        past = cache.get_seq_length()
        keys, _ = cache.get_mask_sizes(length, 0)
        if mask is None and length == 1 and not cache.is_compileable:
            return None  # one new token sees all that is cached
    query = torch.arange(length, device=ids_BT.device) + past
    key = torch.arange(keys, device=ids_BT.device)
    visible = (key[None, :] <= query[:, None])[None, None]
    if mask is not None:
        given = F.pad(mask, (0, keys - mask.shape[1])) if mask.shape[1] < keys else mask
        visible = visible & given[:, None, None].bool()
    return additive(visible, dtype)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """0 where visible, the lowest finite number elsewhere: a row without any stays finite."""
    lowest = torch.finfo(dtype).min
    return torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, lowest)


class AlphaModel(AlphaPreTrainedModel):
    """Encoder and decoder without the projection to the vocabulary."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        self.shared: nn.Module = token_embedding(config)
        self.symbol_draws = SymbolDraws.of(config)
        self.symbols = SymbolEmbedding(config, self.symbol_draws, self)
        self.encoder = AlphaEncoder(config, self.symbols)
        self.decoder = AlphaDecoder(config, self.symbols)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def embedding_table(self, device: torch.device | None = None) -> torch.Tensor:
        """Rows of base tokens and symbols as they are used, normalised and complete: (R, D)."""
        return self.symbols.rows(device or self.device)

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.shared = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        tree_paths: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqModelOutput:
        """Encode, unless `encoder_outputs` are given, and decode; arguments as in the stacks."""
        if decoder_input_ids is None:
            raise ValueError(
                "decoder_input_ids are missing (or give labels to the model with a head)"
            )
        shown = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
        }
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("give input_ids or encoder_outputs")
            encoder_outputs = self.encoder(
                input_ids, attention_mask, stream_ids, tree_paths, return_dict=True, **shown
            )
        encoder_outputs = self._complete(encoder_outputs, stream_ids, input_ids, attention_mask)
        use_cache = self.config.use_cache if use_cache is None else use_cache
        decoded = self.decoder(
            decoder_input_ids,
            encoder_outputs,
            decoder_attention_mask,
            attention_mask,
            past_key_values,
            use_cache=use_cache,
            return_dict=True,
            **shown,
        )
        return AlphaModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
            stream_ids=match_rows(encoder_outputs.stream_ids, decoder_input_ids.shape[0]),
            renaming=match_rows(encoder_outputs.renaming, decoder_input_ids.shape[0]),
        )

    def _complete(
        self,
        outputs: ModelOutput | tuple,
        stream_ids: torch.Tensor | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
    ) -> AlphaEncoderOutput:
        """Accept what other code makes of an encoder output, as long as the streams are known."""
        if isinstance(outputs, (tuple, list)):
            # As the encoder returns it with `return_dict=False`: the streams and names come last.
            names = ["stream_ids", "own_streams", "renaming"][: 3 if self._is_renaming() else 2]
            tail = outputs[-len(names) :] if len(outputs) > len(names) else ()
            outputs = AlphaEncoderOutput(outputs[0], **dict(zip(names, tail, strict=False)))
        if getattr(outputs, "stream_ids", None) is not None:
            return outputs
        hidden = outputs.last_hidden_state
        if not self.config.lists_symbols and not self._is_renaming():
            stream_ids = torch.full((hidden.shape[0], 1), -1, device=hidden.device)
            own = torch.full(hidden.shape[:2], -1, device=hidden.device)
            renaming = None
        elif stream_ids is None or input_ids is None:
            raise ValueError(
                "encoder_outputs lack stream_ids and own_streams: pass the output of "
                "model.get_encoder() as it is, or stream_ids and input_ids beside it"
            )
        else:
            stream_ids = match_rows(stream_ids, hidden.shape[0])
            input_ids = match_rows(input_ids, hidden.shape[0])
            attention_mask = match_rows(attention_mask, hidden.shape[0])
            own = own_streams(input_ids, stream_ids)
            renaming = self.symbols.renaming(input_ids, attention_mask, stream_ids, self.training)
        return AlphaEncoderOutput(
            last_hidden_state=hidden,
            hidden_states=getattr(outputs, "hidden_states", None),
            attentions=getattr(outputs, "attentions", None),
            stream_ids=stream_ids,
            own_streams=own,
            renaming=renaming,
        )

    def _is_renaming(self) -> bool:
        """Whether the encoder's output comes with a renaming."""
        config = self.config
        return config.renames and (self.training or config.symbol_renaming == "first_occurrence")


@dataclass
class AlphaModelOutput(Seq2SeqModelOutput):
    """Seq2SeqModelOutput with the table of streams and the renaming.

    Attributes:
        last_hidden_state: (B, T, S * D).
        stream_ids: (B, S), as in [`AlphaEncoderOutput`]; `renaming` (B, V) likewise.
    """

    stream_ids: torch.Tensor | None = None
    renaming: torch.Tensor | None = None


class AlphaForConditionalGeneration(AlphaPreTrainedModel, GenerationMixin):
    """[`AlphaModel`] with the projection to the vocabulary (Algorithm 5), tied to the embedding."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        self.model = AlphaModel(config)
        self.logit_scale = LogitScale(config.initial_logit_scale, config.adacos)
        self.post_init()
        # Settings of the paper: padding and start are never predicted, answers have at most 128
        # tokens behind the start. (With `max_new_tokens` a caller's `max_length` would not count.)
        never = {config.pad_token_id, config.decoder_start_token_id}
        self.generation_config.suppress_tokens = sorted(never)
        self.generation_config.max_length = 129
        # Trainer writes the opposite into every configuration that it trains, which would make
        # generation from what is converted or released after that several times slower.
        self.generation_config.use_cache = True

    def get_encoder(self, *args: Any, **kwargs: Any) -> AlphaEncoder:
        return self.model.encoder

    def get_decoder(self) -> AlphaDecoder:
        return self.model.decoder

    def get_input_embeddings(self) -> nn.Module:
        return self.model.shared

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.model.set_input_embeddings(value)

    def get_output_embeddings(self) -> None:
        """None: the projection is the embedding itself."""
        return None

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        tree_paths: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Next-token logits, and the loss where labels are given.

        Args:
            input_ids: (B, L); `attention_mask` (B, L); `stream_ids` (B, S) and `tree_paths` (B, L)
                as the tokenizer returns them.
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.

        Returns:
            `logits` (B, T, V); for `streams` and with `first_occurrence`, columns of symbols that
            are not in a sample's input hold -1e4.
        """
        for name in ("inputs_embeds", "decoder_inputs_embeds"):
            if kwargs.get(name) is not None:
                raise ValueError(
                    f"{name} is not supported: give token ids. A symbol's vector depends on the "
                    "stream, so prompt tuning and other methods that put vectors before the input "
                    "do not work with this model; LoRA and its kin do"
                )
        if labels is None and num_items_in_batch is not None and self.config.lists_symbols:
            raise ValueError(OUTSIDE_LOSS)
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.model(
            input_ids,
            attention_mask,
            stream_ids,
            tree_paths,
            decoder_input_ids,
            decoder_attention_mask,
            encoder_outputs,
            past_key_values,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        samples = outputs.encoder_last_hidden_state.shape[0]
        if labels is not None and labels.shape[0] != samples:
            raise ValueError(f"labels has {labels.shape[0]} rows for {samples} inputs")
        adapting = labels is not None and torch.is_grad_enabled() and self._adapts_scale()
        if adapting:
            self.advance_logit_scale()
        logits = self.project(outputs.last_hidden_state, outputs.stream_ids, outputs.renaming)
        loss = None
        if labels is not None:
            labels = labels.to(logits.device)
            usable = self.usable_columns(outputs.stream_ids)
            check_labels(labels, usable)
            loss = token_loss(
                logits, labels, usable, self.config.label_smoothing, num_items_in_batch
            )
            if adapting:
                self.logit_scale.observe(
                    logits.detach(), labels, usable, self.model.symbols.weight_version()
                )
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            decoder_hidden_states=outputs.decoder_hidden_states,
            decoder_attentions=outputs.decoder_attentions,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
            encoder_attentions=outputs.encoder_attentions,
        )

    def project(
        self,
        hidden: torch.Tensor,
        stream_ids_BS: torch.Tensor,
        renaming_BV: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits (B, T, V) from the decoder's hidden state (B, T, S * D): Algorithm 5.

        A base token's logit is the mean over a sample's streams, a symbol's that of its own stream
        against the actual row of its class. Without streams, a token's logit is that of its row;
        a renaming is undone.
        """
        config = self.config
        features_BSTD = unpack_streams(hidden, config.d_model)
        if config.normalize_features:
            features_BSTD = F.normalize(features_BSTD, dim=-1)
        # All rows at once: one matrix shape, one order of summation for `learned` and `streams`.
        table_RD = self.model.embedding_table(features_BSTD.device)
        scores_BSTR = self.logit_scale(F.linear(features_BSTD, table_RD))
        if config.symbol_encoding != "streams":
            logits = scores_BSTR[:, 0]
            if renaming_BV is not None:
                logits = logits.gather(-1, renaming_BV[:, None].expand_as(logits))
            if config.lists_symbols:
                logits = logits.masked_fill(~self.usable_columns(stream_ids_BS)[:, None], UNUSABLE)
            return logits
        base = config.num_base_tokens
        weights = stream_weights(stream_ids_BS, scores_BSTR.dtype)
        base_BTV = mean_streams(scores_BSTR[..., :base], weights)
        actual_BS = self.model.symbols.placeholder_rows(stream_ids_BS.clamp(min=base)) - 1
        index = actual_BS[:, :, None, None].expand(-1, -1, scores_BSTR.shape[2], 1)
        own_BTS = scores_BSTR.gather(-1, index)[..., 0].transpose(1, 2)
        # Columns of padded streams go to one that is cut off.
        b, t, s = own_BTS.shape
        column_BS = torch.where(stream_ids_BS >= 0, stream_ids_BS - base, config.num_symbols)
        symbols = own_BTS.new_full((b, t, config.num_symbols + 1), UNUSABLE)
        symbols = symbols.scatter(-1, column_BS[:, None].expand(b, t, s), own_BTS)
        return torch.cat((base_BTV, symbols[..., :-1]), dim=-1)

    def usable_columns(self, stream_ids_BS: torch.Tensor) -> torch.Tensor:
        """Which logits a sample can use: (B, V).

        All, or with streams and `first_occurrence` the base tokens and the symbols of its input.
        """
        config = self.config
        shape = (stream_ids_BS.shape[0], config.vocab_size + 1)
        if not config.lists_symbols:
            return torch.ones(shape, dtype=torch.bool, device=stream_ids_BS.device)[:, :-1]
        usable = torch.zeros(shape, dtype=torch.bool, device=stream_ids_BS.device)
        usable[:, : config.num_base_tokens] = True
        column = torch.where(stream_ids_BS >= 0, stream_ids_BS, config.vocab_size)
        return usable.scatter(1, column, True)[:, :-1]

    def _expand_inputs_for_generation(
        self, expand_size: int = 1, is_encoder_decoder: bool = False, **kwargs: Any
    ) -> tuple[torch.Tensor | None, dict[str, Any]]:
        """Repeat rows for beams, but what the encoder found: a sample's beams share that."""
        encoder_outputs = kwargs.pop("encoder_outputs", None)
        if encoder_outputs is not None and kwargs.get("input_ids") is not None:
            check_rows(len(kwargs["input_ids"]), len(encoder_outputs[0]))
        ids, kwargs = super()._expand_inputs_for_generation(expand_size, **kwargs)
        return ids, {**kwargs, "encoder_outputs": encoder_outputs}

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """As in Transformers; layers that recompute their activations in training keep no cache."""
        if self.training and self.model.decoder.gradient_checkpointing:
            kwargs["use_cache"] = False
        given = kwargs.get("generation_config", args[1] if len(args) > 1 else None)
        new_tokens = kwargs.get("max_new_tokens") or getattr(given, "max_new_tokens", None)
        with self._without_limit() if new_tokens is not None else nullcontext():
            return super().generate(*args, **kwargs)

    @contextmanager
    def _without_limit(self) -> Iterator[None]:
        """Meanwhile forget the model's own `max_length`, which beside another limit warns."""
        config, limit = self.generation_config, self.generation_config.max_length
        config.max_length = None
        try:
            yield
        finally:
            config.max_length = limit

    def _reorder_cache(
        self, past_key_values: EncoderDecoderCache, beam_idx: torch.Tensor
    ) -> EncoderDecoderCache:
        """Let rows go on from other beams of their samples, whose sources are the same."""
        reorder(past_key_values.self_attention_cache, beam_idx)
        return past_key_values

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Labels shifted right behind the start token; -100 becomes padding."""
        shifted = labels.new_full(labels.shape, self.config.decoder_start_token_id)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == -100, self.config.pad_token_id)

    def _adapts_scale(self) -> bool:
        """Whether AdaCos is at work.

        It belongs to the training of the model's own weights: adapters leave them frozen, and are
        saved without the scale that they would need.
        """
        if not (self.training and self.logit_scale.adaptive):
            return False
        last_layer = self.model.decoder.layers[-1:].named_parameters()
        return all(w.requires_grad for name, w in last_layer if "final_layer_norm" in name)

    def advance_logit_scale(self) -> None:
        """Let AdaCos take in the last optimiser step's statistics (see [`LogitScale`])."""
        self.logit_scale.advance(self.model.symbols.weight_version())

    def advance_step(self) -> None:
        """Take in that an optimiser step is done, if one is: what changes once per step does.

        That is the scale of AdaCos, and the step that random parts and renamings are drawn for.
        Training forwards and saving do so by themselves.
        """
        self.advance_logit_scale()
        self.model.symbols.advance()

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        """As in the base class, with the state after the last optimiser step."""
        self.advance_step()
        return super().save_pretrained(*args, **kwargs)


__all__ = [
    "AlphaDecoder",
    "AlphaEncoder",
    "AlphaEncoderOutput",
    "AlphaForConditionalGeneration",
    "AlphaModel",
    "AlphaPreTrainedModel",
]
