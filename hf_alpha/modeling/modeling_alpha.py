"""Encoder-decoder over hidden states with a stream axis (arXiv 2601.23169).

Shapes: B batch, S streams (1 unless the encoding opens streams), L source length, T target length,
D model width, V vocabulary, R rows of the embedding. Inside the model a hidden state is
(B, S, L, D); outside it is (B, L, S * D), so that caches and generation see an ordinary
encoder-decoder.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn
from transformers import initialization as init
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils import ModelOutput, can_return_tuple

from .alpha_layers import AlphaDecoderLayer, AlphaEncoderLayer
from .attention import CosSin
from .checks import check_cache, check_ids, check_label_rows, check_rows, refuse_vectors
from .configuration_alpha import AlphaConfig
from .logit_scale import LogitScale
from .masks import causal_mask, padding_mask
from .positions import decoder_positions, rotary, sinusoidal, token_positions, tree
from .streams import Streams, SymbolEncoderOutput, match_rows
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import RESETTING, SymbolHead, SymbolModel, shift_right
from .symbols import pack_streams, unpack_streams


@dataclass
class AlphaDecoderOutput(BaseModelOutputWithPastAndCrossAttentions):
    """Decoder output with what the head adds to the scores of symbols.

    Attributes:
        last_hidden_state: (B, T, S * D).
        own_streams: index of the stream of the symbol at each position, or -1: (B, T).
        symbol_pointer: (B, T, S), where the encoding has such; see [`Streams`].
    """

    own_streams: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None


class AlphaPreTrainedModel(SymbolModel):
    """Initialisation and what the library has to know about these models."""

    config: AlphaConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _can_compile_fullgraph = True
    _no_split_modules = ["AlphaEncoderLayer", "AlphaDecoderLayer"]  # noqa: RUF012
    _input_embed_layer = "shared"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draws weights: linear layers as PyTorch does it, embedding rows from N(0, 1)."""
        if isinstance(module, RESETTING):
            super()._init_weights(module)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight)
        else:
            super()._init_weights(module)


class ReturnedStates:
    """Hidden states as they are returned, on the graph that leads to the logits.

    Args:
        width: D.
        enabled: whether they are returned at all.

    Attributes:
        packed: the states so far, each (B, L, S * D).
    """

    def __init__(self, width: int, enabled: bool):
        self.width = width
        self.enabled = enabled
        self.packed: tuple[torch.Tensor, ...] = ()

    def keep(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        """Stores a state; returns it for the next layer, so that its gradient is available."""
        if not self.enabled:
            return hidden_BSLD
        self.packed += (pack_streams(hidden_BSLD),)
        return unpack_streams(self.packed[-1], self.width)

    def last(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        """Returns the last state: (B, L, S * D)."""
        return self.packed[-1] if self.enabled else pack_streams(hidden_BSLD)


class AlphaStack(AlphaPreTrainedModel):
    """What encoder and decoder share: they embed by the model's table, or by one of their own.

    Args:
        config: of the model.
        symbols: the model's; without it the stack stands alone and has an embedding.
    """

    def __init__(self, config: AlphaConfig, symbols: SymbolLayer | None = None):
        super().__init__(config)
        if symbols is None:
            self.embed_tokens = token_embedding(config)
            self.symbol_draws = SymbolDraws.of(config)
            self.symbol_memory = config.encoding.memory(config, config.decoder_attention_heads)
            symbols = SymbolLayer(config, self.symbol_draws, self)
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

    def _outputs(self, attentions: bool | None, states: bool | None) -> tuple[bool, bool]:
        """Returns whether attention weights and hidden states are returned."""
        return (
            self.config.output_attentions if attentions is None else attentions,
            self.config.output_hidden_states if states is None else states,
        )


def token_embedding(config: AlphaConfig) -> nn.Embedding:
    """Returns the trained rows that [`SymbolLayer`] reads."""
    encoding = config.encoding(config)
    return nn.Embedding(encoding.num_rows, encoding.row_dim)


class AlphaEncoder(AlphaStack):
    """Stack of encoder layers over the streams of the input."""

    def __init__(self, config: AlphaConfig, symbols: SymbolLayer | None = None):
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
    ) -> SymbolEncoderOutput:
        """Encodes the input, each stream by itself and through the aggregated view.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, at the price of one synchronisation with the device, where
                they are needed (`config.needs_stream_ids`).
            tree_paths: heap number of each token, for tree positions: (B, L).
        """
        output_attentions, output_hidden_states = self._outputs(
            output_attentions, output_hidden_states
        )
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        hidden = self.symbols.embed(input_ids, streams)
        positions = token_positions(attention_mask, input_ids)
        hidden = self.dropout(self._add_positions(hidden, positions, tree_paths))
        rope = None
        if self.config.encoder_position == "rope":
            width = self.config.d_model // self.config.encoder_attention_heads
            rope = rotary(positions, width, self.config.rope_theta)
        mask = padding_mask(attention_mask, hidden.dtype)
        states = ReturnedStates(self.config.d_model, output_hidden_states)
        hidden = states.keep(hidden)
        attentions: tuple[torch.Tensor, ...] = ()
        shared = streams.for_layers()
        for layer in self.layers:
            hidden, weights = layer(hidden, shared, mask, rope, output_attentions)
            hidden = states.keep(hidden)
            attentions += (weights,) if output_attentions else ()
        streams = self.symbols.remember(hidden[:, 0], streams)
        return SymbolEncoderOutput(
            last_hidden_state=states.last(hidden),
            hidden_states=states.packed or None,
            attentions=attentions or None,
            **streams.fields(),
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

    def __init__(self, config: AlphaConfig, symbols: SymbolLayer | None = None):
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
        attentions_on, states_on = self._outputs(output_attentions, output_hidden_states)
        past_key_values = self._cache(past_key_values, use_cache)
        encoder_NSLD = unpack_streams(encoder_outputs.last_hidden_state, self.config.d_model)
        samples = encoder_NSLD.shape[0]
        check_rows(input_ids.shape[0], samples)
        check_ids(self.config, input_ids)
        source = Streams.of(encoder_outputs, encoder_NSLD.dtype)
        streams = self._follow(source, input_ids, attention_mask, past_key_values)
        positions = decoder_positions(input_ids, attention_mask, past_key_values)
        hidden = self._embed(input_ids, streams, positions)
        encoder_attention_mask = match_rows(encoder_attention_mask, samples)
        sources = kept_sources(past_key_values)
        rope, cross_rope = self._rope(positions, encoder_NSLD, encoder_attention_mask, sources)
        mask = causal_mask(input_ids, attention_mask, past_key_values, hidden.dtype)
        # An earlier call may have cached cross-attention once per beam, or once per sample.
        rows = sources or samples
        encoder_mask = padding_mask(match_rows(encoder_attention_mask, rows), hidden.dtype)
        encoder_view = self._encoder_view(encoder_NSLD, source)
        shared = streams.for_layers()
        context = (shared, mask, rope, encoder_NSLD, encoder_view, encoder_mask, cross_rope)
        calls = {"past_key_values": past_key_values, "output_attentions": attentions_on}
        states = ReturnedStates(self.config.d_model, states_on)
        hidden = states.keep(hidden)
        attentions: tuple[torch.Tensor, ...] = ()
        cross: tuple[torch.Tensor, ...] = ()
        masses = None
        for layer in self.layers:
            points = layer is self.layers[-1]
            hidden, weights, cross_weights, masses = layer(hidden, *context, **calls, points=points)
            hidden = states.keep(hidden)
            attentions += (weights,) if attentions_on else ()
            cross += (cross_weights,) if attentions_on else ()
        streams = self.symbols.point(streams, masses)
        return AlphaDecoderOutput(
            last_hidden_state=states.last(hidden),
            past_key_values=past_key_values,
            hidden_states=states.packed or None,
            attentions=attentions or None,
            cross_attentions=cross or None,
            own_streams=streams.own,
            symbol_pointer=streams.pointer,
        )

    def _follow(
        self, source: Streams, ids_BT: torch.Tensor, mask: Any, cache: EncoderDecoderCache | None
    ) -> Streams:
        """Returns the streams over the decoder's tokens, with those in the cache before them."""
        history = None if cache is None or not len(self.layers) else cache.self_attention_cache
        return self.symbols.follow(source, ids_BT, mask, history, self.config.history_slot)

    def _encoder_view(self, encoder_NSLD: torch.Tensor, source: Streams) -> torch.Tensor:
        """Returns what aggregated cross-attention sees, if there is such: (N, 1, L, D)."""
        aggregated = "aggregated" in self.config.cross_attention
        return source.aggregate(encoder_NSLD) if aggregated else encoder_NSLD[:, :1]

    def _embed(
        self, ids_BT: torch.Tensor, streams: Streams, positions: torch.Tensor
    ) -> torch.Tensor:
        hidden = self.symbols.embed(ids_BT, streams)
        if self.config.decoder_position == "sinusoidal":
            hidden = hidden + sinusoidal(positions, self.config.d_model, hidden.dtype)[:, None]
        return self.dropout(hidden)

    def _recomputes(self) -> bool:
        """Returns whether layers compute their activations a second time for the gradients."""
        return self.training and self.gradient_checkpointing

    def _cache(self, past_key_values: Cache | None, use_cache: bool | None) -> Cache | None:
        """Returns the cache to go on from, or a new one; None where none is used."""
        _check_cache(past_key_values)
        if past_key_values is not None or not use_cache or self._recomputes():
            return past_key_values
        side = self.config.get_text_config(decoder=True)
        return EncoderDecoderCache(DynamicCache(config=side), DynamicCache(config=side))

    def _rope(
        self,
        positions: torch.Tensor,
        encoder_NSLD: torch.Tensor,
        encoder_mask: torch.Tensor | None,
        sources: int,
    ) -> tuple[CosSin, tuple[CosSin, CosSin]]:
        """Returns what rotates self-attention, and queries and keys of cross-attention.

        Args:
            sources: whose keys are in the cache, rotated already.
        """
        config = self.config
        if config.decoder_position != "rope":
            return None, (None, None)
        width = config.d_model // config.decoder_attention_heads
        rope = rotary(positions, width, config.rope_theta)
        if not config.cross_attention_rope:
            return rope, (None, None)
        if sources:
            return rope, (rope, None)
        encoder_positions = token_positions(encoder_mask, encoder_NSLD[:, 0, :, 0])
        return rope, (rope, rotary(encoder_positions, width, config.rope_theta))


def _check_cache(past_key_values: Cache | None) -> None:
    """Raise a ValueError for a cache that this model cannot go on from."""
    check_cache(past_key_values)
    if not isinstance(past_key_values, EncoderDecoderCache):
        return
    if past_key_values.get_seq_length() and not past_key_values.is_updated.get(0):
        raise ValueError(
            "past_key_values hold keys that this model did not make: prefix tuning is not "
            "supported, as each stream has keys of its own; LoRA and its kin are"
        )


def kept_sources(past_key_values: EncoderDecoderCache | None) -> int:
    """Returns how many sources the cache holds keys and values of; 0 for none."""
    if past_key_values is None or not past_key_values.is_updated.get(0):
        return 0
    return past_key_values.cross_attention_cache.layers[0].keys.shape[0]


class AlphaModel(AlphaPreTrainedModel):
    """Encoder and decoder without the projection to the vocabulary."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        if not config.is_encoder_decoder:
            raise ValueError(
                "the configuration is that of a decoder alone: take AlphaForCausalLM, or set "
                "is_encoder_decoder=True"
            )
        self.shared: nn.Module = token_embedding(config)
        self.symbol_draws = SymbolDraws.of(config)
        self.symbol_memory = config.encoding.memory(config, config.decoder_attention_heads)
        self.symbols = SymbolLayer(config, self.symbol_draws, self)
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
        }
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("give input_ids or encoder_outputs")
            encoder_outputs = self.encoder(
                input_ids, attention_mask, stream_ids, tree_paths, return_dict=True, **returned
            )
        encoder_outputs = self.complete_encoder_output(
            encoder_outputs, stream_ids, input_ids, attention_mask
        )
        use_cache = self.config.use_cache if use_cache is None else use_cache
        decoded = self.decoder(
            decoder_input_ids,
            encoder_outputs,
            decoder_attention_mask,
            attention_mask,
            past_key_values,
            use_cache=use_cache,
            return_dict=True,
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
            stream_ids=match_rows(encoder_outputs.stream_ids, decoder_input_ids.shape[0]),
            renaming=match_rows(encoder_outputs.renaming, decoder_input_ids.shape[0]),
            symbol_memory=encoder_outputs.symbol_memory,
            symbol_pointer=decoded.symbol_pointer,
            own_streams=decoded.own_streams,
        )


@dataclass
class AlphaModelOutput(Seq2SeqModelOutput):
    """Seq2SeqModelOutput with the table of streams and the renaming.

    Attributes:
        last_hidden_state: (B, T, S * D).
        stream_ids: (B, S), as in [`SymbolEncoderOutput`]; `renaming` (B, symbols) likewise.
        symbol_memory: as in [`SymbolEncoderOutput`], one for each source: (N, S, 2, D).
        symbol_pointer: as in [`AlphaDecoderOutput`]: (B, T, S); `own_streams` (B, T) likewise.
    """

    stream_ids: torch.Tensor | None = None
    renaming: torch.Tensor | None = None
    symbol_memory: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None
    own_streams: torch.Tensor | None = None


class AlphaForConditionalGeneration(AlphaPreTrainedModel, SymbolHead, GenerationMixin):
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
        """Returns next-token logits, and the loss where labels are given.

        Args:
            input_ids: (B, L); `attention_mask` (B, L); `stream_ids` (B, S) and `tree_paths` (B, L)
                as the tokenizer returns them.
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.

        Returns:
            `logits` (B, T, V); where `config.needs_stream_ids`, columns of symbols that are not in
            a sample's input hold -1e4.
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
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        samples = outputs.encoder_last_hidden_state.shape[0]
        check_label_rows(labels, samples)
        features_BSTD = unpack_streams(outputs.last_hidden_state, self.config.d_model)
        streams = Streams.of(outputs, features_BSTD.dtype)
        logits, loss = self.predict(features_BSTD, streams, labels, num_items_in_batch)
        return _scored(outputs, logits, loss)

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
        """Generates as Transformers does.

        Layers that recompute their activations in training keep no cache, nor does a decoder
        without layers.
        """
        decoder = self.model.decoder
        if not len(decoder.layers) or (self.training and decoder.gradient_checkpointing):
            kwargs["use_cache"] = False
        return super().generate(*args, **kwargs)

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
        last_layer = self.model.decoder.layers[-1:].named_parameters()
        trained = all(w.requires_grad for name, w in last_layer if "final_layer_norm" in name)
        return trained and super()._adapts_scale()


SCORED = tuple(field.name for field in fields(Seq2SeqLMOutput))


def _scored(
    outputs: AlphaModelOutput, logits: torch.Tensor, loss: torch.Tensor | None
) -> Seq2SeqLMOutput:
    """Returns a model's output with scores in place of the states that they were made from."""
    kept = {name: value for name, value in outputs.items() if name in SCORED}
    return Seq2SeqLMOutput(loss=loss, logits=logits, **kept)


__all__ = [
    "AlphaDecoder",
    "AlphaEncoder",
    "AlphaForConditionalGeneration",
    "AlphaModel",
    "AlphaPreTrainedModel",
]
