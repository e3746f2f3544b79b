"""Encoder-decoder over hidden states with a stream axis (arXiv 2601.23169), from ids to logits.

Shapes: B batch, N sources (B, or one for all beams of a sample), S streams (1 unless the encoding
opens streams), L source length, T target length, D model width, V vocabulary. Inside the model a
hidden state is (B, S, L, D); outside it is (B, L, S * D), so that caches and generation see an
ordinary encoder-decoder.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.generation import GenerationMixin
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils import ModelOutput, can_return_tuple

from .attention import AlphaAttention, CosSin
from .checks import check_cache, check_ids, check_rows, is_recorded, refuse_vectors
from .configuration_alpha import AlphaConfig
from .encoding import TextStates
from .logit_scale import LogitScale
from .masks import causal_mask, padding_mask
from .new_symbols import NewSymbols
from .positions import decoder_positions, rotary, sinusoidal, token_positions, tree
from .relations import MadeOnce, match_rows
from .streams import Streams, SymbolEncoderOutput
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import QuickOutput, SymbolHead, SymbolModel, shift_right
from .symbols import pack_streams, unpack_streams


class AlphaPreTrainedModel(SymbolModel):
    """Initialisation and what the library has to know about these models."""

    config: AlphaConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _can_compile_fullgraph = True
    _no_split_modules = ["AlphaLayer"]  # noqa: RUF012
    _input_embed_layer = "shared"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draws weights: linear layers as PyTorch does it, embedding rows from N(0, 1)."""
        if isinstance(module, nn.Linear) and not hasattr(module, "reset"):
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight)
        else:
            super()._init_weights(module)

    def _add_symbols(self) -> None:
        """Make the trained rows of tokens, and the symbol layer that reads them."""
        config = self.config
        self.shared: nn.Module = nn.Embedding(*config.encoding(config).shape)
        if config.decodes_alone:
            self.start = nn.Embedding(1, config.d_model)
        self.symbol_draws = SymbolDraws.of(config)
        self.symbol_memory = None
        if config.memory is not None:
            self.symbol_memory = config.memory(config, config.decoder_attention_heads)
        if config.new_symbols:
            self.new_symbols = NewSymbols(config.d_model, len(config.symbol_classes))
        self.symbols = SymbolLayer(config, self.symbol_draws, self)


# Layers -------------------------------------------------------------------------------------------

TABLE = 64  # positions are made so many at a time
# Switch -> name of the module.
CROSS_ATTENTION = {"per_stream": "encoder_attn", "aggregated": "encoder_aggregated_attn"}


class AlphaLayer(GradientCheckpointingLayer):
    """Algorithms 3 and 4: attention per stream and aggregated, to the source, and feed-forward.

    Layers of an encoder, and of a decoder alone, have no attention to a source.

    Args:
        config: of the model.
        side: `"encoder"` or `"decoder"`.
        index: of the layer.
    """

    self_attn: AlphaAttention | None
    aggregated_attn: AlphaAttention | None

    def __init__(self, config: AlphaConfig, side: str, index: int):
        super().__init__()
        self.config = config
        self.num_heads: int = getattr(config, f"{side}_attention_heads")
        ffn_dim = getattr(config, f"{side}_ffn_dim")
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.activation = ACT2FN[config.activation_function]
        self.dropout = nn.Dropout(config.dropout)
        # A decoder's layer owns cache slots 2i and 2i + 1, filled in order: slot 0 always tells the
        # length.
        slots = iter((2 * index, 2 * index + 1) if side == "decoder" else (None, None))
        for kind in ("per_stream", "aggregated"):
            name = "self_attn" if kind == "per_stream" else "aggregated_attn"
            if getattr(config, f"{side}_{kind}_attention"):
                self._add_attention(name, next(slots), cross=False)
            else:
                setattr(self, name, None)
        crosses = side == "decoder" and config.is_encoder_decoder
        self.cross = [CROSS_ATTENTION[mode] for mode in config.cross_attention if crosses]
        for offset, name in enumerate(self.cross):
            self._add_attention(name, 2 * index + offset, cross=True)

    def _add_attention(self, name: str, slot: int | None, cross: bool) -> None:
        """Make an attention block, and its norm."""
        config = self.config
        setattr(self, name, AlphaAttention(config, self.num_heads, slot, cross))
        norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        setattr(self, f"{name}_layer_norm", norm)

    def forward(
        self,
        hidden_BSLD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        rope: CosSin,
        encoder_NSLD: torch.Tensor | None = None,
        encoder_view_N1LD: torch.Tensor | None = None,
        encoder_mask: torch.Tensor | None = None,
        cross_query_rope: CosSin = None,
        cross_key_rope: CosSin = None,
        past_key_values: Cache | None = None,
        query_scale: torch.Tensor | None = None,
        output_attentions: bool = False,
        points: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Returns the new hidden state and, on demand, self- and cross-attention weights, masses.

        Args:
            encoder_NSLD: what cross-attention attends to.
            encoder_view_N1LD: what aggregated cross-attention attends to.
            cross_query_rope: of cross-attention; `cross_key_rope` likewise.
            query_scale: of self-attention, (B or 1, 1, L, 1).
            output_attentions: return weights per stream.
            points: return the sums of the weights of the first cross-attention over each symbol.
        """
        weights = cross_weights = masses = None
        own: dict[str, Any] = {
            "mask": mask,
            "query_rope": rope,
            "key_rope": rope,
            "query_scale": query_scale,
            "cache": past_key_values,
            "relations": streams.within,
        }
        if self.self_attn is not None:
            hidden_BSLD, weights, _ = self._attend(
                "self_attn", hidden_BSLD, hidden_BSLD, output_weights=output_attentions, **own
            )
        if self.aggregated_attn is not None:
            view = streams.aggregate(hidden_BSLD)
            pre = self.config.aggregated_attention_norm == "pre"
            hidden_BSLD, *_ = self._attend("aggregated_attn", hidden_BSLD, view, pre, **own)
        for name in self.cross:
            hidden_BSLD, block_weights, block_masses = self._attend(
                name,
                hidden_BSLD,
                encoder_NSLD if name == CROSS_ATTENTION["per_stream"] else encoder_view_N1LD,
                mask=encoder_mask,
                query_rope=cross_query_rope,
                key_rope=cross_key_rope,
                cache=past_key_values,
                output_weights=output_attentions,
                relations=streams.across,
                output_masses=points and masses is None and streams.across is not None,
            )
            cross_weights = block_weights if cross_weights is None else cross_weights
            masses = block_masses if masses is None else masses
        update = self._feed_forward(hidden_BSLD)
        hidden_BSLD = self.final_layer_norm(hidden_BSLD + self.dropout(update))
        return hidden_BSLD, weights, cross_weights, masses

    def _feed_forward(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.activation(self.fc1(hidden_BSLD)))

    def _attend(
        self, name: str, hidden_BSLD: torch.Tensor, source: Any, pre: bool = False, **inputs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Returns the hidden state behind a block of attention and its norm, weights and masses.

        Args:
            source: what is attended to.
            pre: the norm lies inside the branch.
            **inputs: of [`AlphaAttention`].
        """
        attention, norm = getattr(self, name), getattr(self, f"{name}_layer_norm")
        if pre:
            update, weights, masses = attention(norm(hidden_BSLD), norm(source), **inputs)
            return hidden_BSLD + self.dropout(update), weights, masses
        update, weights, masses = attention(hidden_BSLD, source, **inputs)
        return norm(hidden_BSLD + self.dropout(update)), weights, masses


# Encoder ------------------------------------------------------------------------------------------


class AlphaStack(AlphaPreTrainedModel):
    """Layers, and what lies around them alike: of an encoder, of a decoder, or of one alone.

    Args:
        config: of the model.
        symbols: the model's; without it the stack stands alone and has an embedding.
    """

    side: ClassVar[str]

    def __init__(self, config: AlphaConfig, symbols: SymbolLayer | None = None):
        super().__init__(config)
        if symbols is None:
            self._add_symbols()
        else:
            self.symbols = symbols
        self.dropout = nn.Dropout(config.dropout)
        number = getattr(config, f"{self.side}_layers")
        self.layers = nn.ModuleList(AlphaLayer(config, self.side, i) for i in range(number))
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        owner = self.symbols.owner
        return self.shared if owner is self else owner.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.symbols.owner.shared = value

    def _place(
        self,
        hidden_BSLD: torch.Tensor,
        ids_BL: torch.Tensor,
        positions: Callable[[], torch.Tensor],
        streams: Streams,
        past: int | None,
    ) -> tuple[torch.Tensor, CosSin]:
        """Returns vectors of tokens with sinusoidal positions, if any, dropped out; and `_rope`.

        Args:
            ids_BL: of the tokens.
            positions: makes their positions: (B or 1, L).
            streams: over them, or over their source.
            past: how many tokens come before; None where positions are no places.
        """
        if getattr(self.config, f"{self.side}_position") == "sinusoidal":
            added = sinusoidal(positions(), self.config.d_model, hidden_BSLD.dtype)
            hidden_BSLD = hidden_BSLD + added[:, None]
        return self.dropout(hidden_BSLD), self._rope(ids_BL, positions, streams, past)

    def _rope(
        self,
        ids_BL: torch.Tensor,
        positions: Callable[[], torch.Tensor],
        streams: Streams,
        past: int | None = 0,
    ) -> CosSin:
        """Returns what rotates queries and keys of tokens, where the stack has RoPE; as `_place`.

        Where places are positions, it is cut off a table, which all parts of a model share.
        """
        config, device = self.config, ids_BL.device
        if getattr(config, f"{self.side}_position") != "rope":
            return None
        heads = getattr(config, f"{self.side}_attention_heads")
        sizes = config.d_model // heads, config.rope_theta, heads
        if past is None or streams.kept is None or is_recorded(ids_BL):
            return rotary(positions(), *sizes)
        stop = past + ids_BL.shape[1]
        end = stop + -stop % TABLE
        table = streams.once(
            ("rope", end, sizes, device),
            lambda: rotary(torch.arange(end, device=device)[None], *sizes),
        )
        cos, sin = table
        return cos[:, :, past:stop], sin[:, :, past:stop]

    def _through_layers(
        self,
        hidden_BSLD: torch.Tensor,
        context: tuple[Any, ...],
        output_attentions: bool | None,
        output_hidden_states: bool | None,
        **more: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, dict[str, Any]]:
        """Returns the last hidden state, masses of the last layer, and fields of the output.

        Hidden states are returned as they are outside of the model, (B, L, S * D), and lie on the
        graph that leads to the logits.

        Args:
            context: what layers get behind the hidden state.
            output_attentions: as of the model's forward; `output_hidden_states` likewise.
            **more: what layers get by name.
        """
        config = self.config
        weighs = config.output_attentions if output_attentions is None else output_attentions
        keeps = output_hidden_states
        keeps = config.output_hidden_states if keeps is None else keeps
        kept: dict[str, list[Any]] = {"hidden_states": [], "attentions": [], "cross_attentions": []}
        states, masses = kept["hidden_states"], None

        def keep(hidden_BSLD: torch.Tensor) -> torch.Tensor:
            if not keeps:
                return hidden_BSLD
            states.append(pack_streams(hidden_BSLD))
            return unpack_streams(states[-1], config.d_model)

        hidden_BSLD = keep(hidden_BSLD)
        for layer in self.layers:
            points = layer is self.layers[-1]
            hidden_BSLD, weights, cross_weights, masses = layer(
                hidden_BSLD, *context, output_attentions=weighs, points=points, **more
            )
            hidden_BSLD = keep(hidden_BSLD)
            kept["attentions"] += [weights] if weighs else []
            kept["cross_attentions"] += [] if cross_weights is None else [cross_weights]
        last = states[-1] if keeps else pack_streams(hidden_BSLD)
        fields = {name: tuple(values) for name, values in kept.items() if values}
        return hidden_BSLD, masses, {"last_hidden_state": last, **fields}


class AlphaEncoder(AlphaStack):
    """Stack of encoder layers over the streams of the input."""

    side = "encoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        tree_paths: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        kept: MadeOnce | None = None,
        **kwargs: Any,
    ) -> SymbolEncoderOutput:
        """Encodes the input, each stream by itself and through the aggregated view.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, at the price of one synchronisation with the device, where
                they are needed (`config.needs_stream_ids`).
            tree_paths: heap number of each token, for tree positions: (B, L).
            kept: what the call of the whole model keeps.
        """
        inputs = input_ids, attention_mask, stream_ids
        streams = self.symbols.open(*inputs, self.training, kept)
        hidden = self.symbols.embed(input_ids, streams)
        if self.config.encoder_position == "tree":
            if tree_paths is None:
                raise ValueError(
                    "this model has tree positions and needs tree_paths (B, L): pass everything "
                    "that the tokenizer returns, or set encoder_position in the config"
                )
            hidden = hidden + tree(tree_paths, self.config.d_model, hidden.dtype)[:, None]
        mask = padding_mask(attention_mask, hidden.dtype)
        # Where nothing is hidden, all rows have the same positions.
        shown, past = (None, 0) if mask is None else (attention_mask, None)
        positions = partial(token_positions, shown, input_ids)
        hidden, rope = self._place(hidden, input_ids, positions, streams, past)
        returned = (output_attentions, output_hidden_states)
        context = (streams, mask, rope)
        hidden, _, outputs = self._through_layers(hidden, context, *returned)
        streams = self.symbols.remember(hidden[:, 0], streams)
        return SymbolEncoderOutput(**outputs, **streams.fields())


# Decoder ------------------------------------------------------------------------------------------


@dataclass
class AlphaDecoderOutput(QuickOutput, BaseModelOutputWithPastAndCrossAttentions):
    """Decoder output with the streams over its tokens.

    Attributes:
        last_hidden_state: (B, T, S * D).
        streams: with what the head adds to the scores of symbols.
    """

    streams: Streams | None = None


class AlphaDecoder(AlphaStack):
    """Stack of decoder layers over the streams that the encoder opened."""

    side = "decoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_outputs: SymbolEncoderOutput,
        attention_mask: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> AlphaDecoderOutput:
        """Decode.

        Args:
            input_ids: (B, T), without the tokens that `past_key_values` already holds.
            encoder_outputs: output of [`AlphaEncoder`], of B inputs or of fewer: each is that of
                the same number of consecutive rows, the beams of a search.
            attention_mask: (B, past + T), or a mask (B, 1, T, M) as generation prepares it.
            encoder_attention_mask: (B, L).
        """
        check_cache(past_key_values)
        sources = _kept_sources(past_key_values)
        cache = self._cache(past_key_values, use_cache)
        encoder_NSLD = unpack_streams(encoder_outputs.last_hidden_state, self.config.d_model)
        check_rows(input_ids.shape[0], encoder_NSLD.shape[0])
        source = Streams.of(encoder_outputs, encoder_NSLD.dtype)
        if not (source.by_token and sources):  # whose tokens the model itself has chosen
            check_ids(self.config, input_ids, "decoder_input_ids")

        slots = self.config.num_slots
        history = cache.self_attention_cache if cache is not None and len(self.layers) else None
        streams = self.symbols.follow(source, input_ids, attention_mask, history, slots)
        vectors = self.symbols.embed(input_ids, streams)
        past = 0 if cache is None else cache.get_seq_length()
        past = past if attention_mask is None and isinstance(past, int) else None
        positions = partial(decoder_positions, input_ids, attention_mask, cache)
        hidden, rope = self._place(vectors, input_ids, positions, source, past)
        mask = causal_mask(input_ids, attention_mask, cache, hidden.dtype)
        shown = match_rows(encoder_attention_mask, encoder_NSLD.shape[0])
        to_source = self._to_source(source, encoder_NSLD, shown, rope, sources, hidden.dtype)

        hidden, masses, outputs = self._through_layers(
            hidden,
            (streams, mask, rope, *to_source),
            output_attentions,
            output_hidden_states,
            past_key_values=cache,
        )
        states = TextStates(hidden[:, 0], history, slots)
        streams = self.symbols.point(streams, masses, states)
        return AlphaDecoderOutput(past_key_values=cache, **streams.fields(), **outputs)

    def _cache(
        self, cache: EncoderDecoderCache | None, use_cache: bool | None
    ) -> EncoderDecoderCache | None:
        """Returns the cache to go on from, or a new one; None where none is used."""
        if cache is not None or not use_cache or self.recomputes():
            return cache
        side = self.config.get_text_config(decoder=True)
        return EncoderDecoderCache(DynamicCache(config=side), DynamicCache(config=side))

    def _to_source(
        self,
        source: Streams,
        encoder_NSLD: torch.Tensor,
        mask_NL: torch.Tensor | None,
        query_rope: CosSin,
        cached: int,
        dtype: torch.dtype,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, CosSin, CosSin]:
        """Returns what cross-attention gets, in the order of [`AlphaLayer`].

        Args:
            mask_NL: 1 for tokens of the source, 0 for padding.
            query_rope: of the tokens.
            cached: number of sources whose keys the cache holds: one for each beam, or each sample.
            dtype: of masks.
        """
        rows = cached or encoder_NSLD.shape[0]
        shown = match_rows(mask_NL, rows)
        mask = source.once(("mask", rows), lambda: padding_mask(shown, dtype))
        query_rope, key_rope = query_rope if self.config.cross_attention_rope else None, None
        if query_rope is not None and not cached:  # whose keys are rotated already
            like_NL, shown = encoder_NSLD[:, 0, :, 0], None if mask is None else mask_NL
            positions = partial(token_positions, shown, like_NL)
            key_rope = self._rope(like_NL, positions, source, 0 if mask is None else None)
        aggregated = "aggregated" in self.config.cross_attention
        view = source.aggregate(encoder_NSLD) if aggregated else None
        return encoder_NSLD, view, mask, query_rope, key_rope


def _kept_sources(cache: EncoderDecoderCache | None) -> int:
    """Returns how many sources the cache holds keys and values of; 0 for none."""
    if cache is None:
        return 0
    if cache.is_updated.get(0):
        return cache.cross_attention_cache.layers[0].keys.shape[0]
    if cache.get_seq_length():
        raise ValueError(
            "past_key_values hold keys that this model did not make: prefix tuning is not "
            "supported, as each stream has keys of its own; LoRA and its kin are"
        )
    return 0


# Model and head -----------------------------------------------------------------------------------


@dataclass
class AlphaModelOutput(QuickOutput, Seq2SeqModelOutput):
    """Seq2SeqModelOutput with the streams over the decoder's tokens.

    Attributes:
        last_hidden_state: (B, T, S * D).
        streams: as in [`AlphaDecoderOutput`].
    """

    streams: Streams | None = None


class AlphaModel(AlphaPreTrainedModel):
    """Encoder and decoder without the projection to the vocabulary."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        if not config.is_encoder_decoder:
            raise ValueError(
                "the configuration is that of a decoder alone: take AlphaForCausalLM, or set "
                "is_encoder_decoder=True"
            )
        self._add_symbols()
        self.encoder = AlphaEncoder(config, self.symbols)
        self.decoder = AlphaDecoder(config, self.symbols)
        self.post_init()

    def embedding_table(self, device: torch.device | None = None) -> torch.Tensor:
        """Returns rows of base tokens and symbols as used, normalised and complete: (R, D)."""
        return self.symbols.table(device or self.device)

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
        """Encodes, unless `encoder_outputs` are given, and decodes; arguments as in the stacks."""
        if decoder_input_ids is None:
            raise ValueError(
                "decoder_input_ids are missing (or give labels to the model with a head)"
            )
        returned = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
            "return_dict": True,
        }
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("give input_ids or encoder_outputs")
            encoder_outputs = self.encoder(
                input_ids, attention_mask, stream_ids, tree_paths, kept=MadeOnce(), **returned
            )
        encoder_outputs = self.complete_encoder_output(
            encoder_outputs, stream_ids, input_ids, attention_mask
        )
        decoded = self.decoder(
            decoder_input_ids,
            encoder_outputs,
            decoder_attention_mask,
            attention_mask,
            past_key_values,
            self.config.use_cache if use_cache is None else use_cache,
            **returned,
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
            streams=decoded.streams,
        )


class AlphaForConditionalGeneration(AlphaPreTrainedModel, SymbolHead, GenerationMixin):
    """[`AlphaModel`] with the projection to the vocabulary (Algorithm 5), tied to the embedding.

    Examples:
        >>> batch = tokenizer(["a & !b"], return_tensors="pt")
        >>> tokenizer.batch_decode(model.generate(**batch, num_beams=3), names=batch.names)
        ['a1b0']
    """

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
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Returns next-token logits, and the loss where labels are given.

        Args:
            input_ids: (B, L); `attention_mask` (B, L); `stream_ids` (B, S) and `tree_paths` (B, L)
                as the tokenizer returns them.
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.
            **kwargs: `output_attentions`, `output_hidden_states`, as of [`AlphaModel`].

        Returns:
            `logits` (B, T, V); where `config.answers_are_listed`, columns of symbols that are not
            in a sample's input hold -1e4; with `config.new_symbols`, those of symbols that input
            and answer lack so far, but the first of each class, which has the score of a new one.
        """
        refuse_vectors(kwargs)
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
            use_cache,
            return_dict=True,
            **kwargs,
        )
        samples = outputs.encoder_last_hidden_state.shape[0]
        check_rows(outputs.last_hidden_state.shape[0], samples, labels)
        features_BSTD = unpack_streams(outputs.last_hidden_state, self.config.d_model)
        streams = Streams.of(outputs, features_BSTD.dtype)
        logits, loss = self.predict(features_BSTD, streams, labels, num_items_in_batch)
        # With scores in place of the states that they were made from.
        kept = {name: value for name, value in outputs.items() if name in SCORED}
        return Seq2SeqLMOutput(loss=loss, logits=logits, **kept)

    def _expand_inputs_for_generation(
        self, expand_size: int = 1, is_encoder_decoder: bool = False, **kwargs: Any
    ) -> tuple[torch.Tensor | None, dict[str, Any]]:
        """Repeat rows for beams, but what the encoder found: a sample's beams share that.

        What is kept with it is of this generation: weights may change between two.
        """
        encoder_outputs = kwargs.pop("encoder_outputs", None)
        if encoder_outputs is not None and kwargs.get("input_ids") is not None:
            check_rows(len(kwargs["input_ids"]), len(encoder_outputs[0]))
        if isinstance(encoder_outputs, SymbolEncoderOutput) and not self.training:
            streams = encoder_outputs.streams.but(kept=MadeOnce(of_generation=True))
            encoder_outputs = SymbolEncoderOutput(**{**encoder_outputs, "streams": streams})
        ids, kwargs = super()._expand_inputs_for_generation(expand_size, **kwargs)
        return ids, {**kwargs, "encoder_outputs": encoder_outputs}

    def _reorder_cache(
        self, past_key_values: EncoderDecoderCache, beam_idx: torch.Tensor
    ) -> EncoderDecoderCache:
        """Let rows go on from other beams of their samples, whose sources are the same."""
        past_key_values.self_attention_cache.reorder_cache(beam_idx)
        return past_key_values

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels shifted right behind the start token; -100 becomes padding."""
        return shift_right(labels, self.config)

    def _adapts_scale(self) -> bool:
        """Returns whether AdaCos is at work.

        It belongs to the training of the model's own weights: adapters leave them frozen, and are
        saved without the scale that they would need.
        """
        last_layer = self.model.decoder.layers[-1:]
        return super()._adapts_scale() and all(
            w.requires_grad
            for name, w in last_layer.named_parameters()
            if "final_layer_norm" in name
        )


SCORED = tuple(field.name for field in fields(Seq2SeqLMOutput))
