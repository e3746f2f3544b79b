"""Stacks of FOLNet's layers: an encoder, and a decoder with or without a source.

Shapes: B batch, S streams (1 unless the encoding opens streams), N = B * S, L source length, T
target length, M positions that a row of binary atoms relates to, D1 and D2 widths of unary and
binary atoms, H heads. Inside a stack unary atoms are (N, L, D1) and binary ones (N, L, M, D2);
outside of it they are (B, L, S * D1) and (B, L, M, S * D2).
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.utils import can_return_tuple

from .checks import (
    check_by_token,
    check_cache,
    check_dimensions,
    check_ids,
    check_rows,
    check_types,
    refuse_positions,
    refuse_vectors,
)
from .configuration_folnet import FolnetConfig
from .folnet_layers import FolnetEmbeddings, FolnetLayer, for_streams, layer_norm
from .folnet_outputs import FolnetOutput, completed
from .logic_operators import SLOTS, Scope
from .masks import additive, self_attention_part
from .positions import clipped_ids, distance_ids, token_positions
from .premises import HISTORY, Columns, Source, use_premise_layers
from .segment_relations import Segments, distances_and_names
from .streams import Streams, match_rows
from .symbol_layer import SymbolLayer
from .symbol_model import SymbolModel
from .symbols import unpack_streams


class FolnetPreTrainedModel(SymbolModel):
    """The base of FOLNet's stacks, models and heads: what Transformers has to know of them."""

    config: FolnetConfig
    base_model_prefix = "folnet"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["FolnetLayer"]  # noqa: RUF012
    _can_compile_fullgraph = True
    folnet: Any  # the FolnetModel beneath a head

    def _encode(self, input_ids: torch.Tensor | None, *inputs: Any, **more: Any) -> Any:
        """Returns the output of the model beneath a head, with binary atoms only if asked for."""
        more = {"output_binary_states": False, "return_dict": True, **more}
        return self.folnet(input_ids, *inputs, **more)


class FolnetStack(FolnetPreTrainedModel):
    """Base atoms, layers and last norms, which encoder and decoder have alike.

    Args:
        config: of the model.
        symbols: the symbol layer of the model, which encoder and decoder share.
        layers: how many layers there are.
        decodes, has_source: as in [`FolnetLayer`].
    """

    def __init__(
        self,
        config: FolnetConfig,
        symbols: SymbolLayer,
        layers: int,
        decodes: bool = False,
        has_source: bool = False,
    ):
        super().__init__(config)
        self.symbols = symbols
        self.embeddings = FolnetEmbeddings(config, decodes)
        self.layers = nn.ModuleList(FolnetLayer(config, decodes, has_source) for _ in range(layers))
        self.final_unary_norm = layer_norm(config, config.hidden_size)
        self.final_binary_norm = layer_norm(config, config.binary_hidden_size)
        self.gradient_checkpointing = False

    def get_input_embeddings(self) -> nn.Module:
        return self.symbols.owner.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.symbols.owner.set_input_embeddings(value)

    def _deduce(
        self,
        unary_NTD: torch.Tensor,
        binary_NTMD: torch.Tensor,
        scopes: list[Scope],
        streams: int,
        output_attentions: bool | None,
        output_hidden_states: bool | None,
        output_binary_states: bool,
    ) -> tuple[FolnetOutput, torch.Tensor | None]:
        """Chains the layers (Equation 3).

        Args:
            unary_NTD: unary base atoms, D1 wide.
            binary_NTMD: binary base atoms, D2 wide.
            scopes: what the atoms of each layer relate to.
            streams: S.
            output_attentions, output_hidden_states: None for what the configuration says.
            output_binary_states: return the last binary atoms.

        Returns:
            The atoms of the stack, and the last kernel of join: (N, H, T, M), or None.
        """
        config = self.config
        if output_attentions is None:
            output_attentions = config.output_attentions
        if output_hidden_states is None:
            output_hidden_states = config.output_hidden_states
        states: tuple[torch.Tensor, ...] = ()
        attentions: tuple[torch.Tensor, ...] = ()
        kernel = None
        for layer, scope in zip(self.layers, scopes, strict=True):
            states += (packed(unary_NTD, streams),) if output_hidden_states else ()
            only_unary = layer is self.layers[-1] and not output_binary_states
            unary_NTD, binary_NTMD, kernel = layer(
                unary_NTD, binary_NTMD, scope, only_unary, *scope.traced()
            )
            if output_attentions and kernel is not None:
                attentions += (kernel,)
        last, binary = packed(self.final_unary_norm(unary_NTD), streams), None
        if output_binary_states:
            binary = packed(self.final_binary_norm(binary_NTMD), streams)
        outputs = FolnetOutput(
            last_hidden_state=last,
            binary_hidden_state=binary,
            hidden_states=(*states, last) if output_hidden_states else None,
            attentions=attentions if output_attentions else None,
        )
        return outputs, kernel


class FolnetEncoder(FolnetStack):
    """Deduces the atoms of an input, in both directions."""

    def __init__(self, config: FolnetConfig, symbols: SymbolLayer):
        super().__init__(config, symbols, config.num_hidden_layers)
        width = config.binary_hidden_size
        self.diagonal = nn.Linear(width, config.hidden_size) if config.diagonal_link else None
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = True,
        segment_ids: torch.Tensor | None = None,
        segment_starts: torch.Tensor | None = None,
        segment_ends: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns the atoms of the tokens.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            token_type_ids: to which sequence each token belongs, 0 by default: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, where they are needed (`config.needs_stream_ids`).
            output_attentions, output_hidden_states: by default what the configuration says.
            output_binary_states: return u_L(x, y); else the last layer need not deduce them.
            segment_ids, segment_starts, segment_ends: symbolic segments beside the tokens, each
                (B, S); see [`Segments`]. `hidden_states` before the last one, and `attentions`,
                hold the segments behind the tokens.

        Raises:
            ValueError: inputs are out of range or do not fit each other.
        """
        refuse_vectors(kwargs)
        refuse_positions(kwargs)
        check_dimensions(input_ids, 2)
        check_by_token(
            *input_ids.shape, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        check_types(token_type_ids, self.config.type_vocab_size)
        segments = self._segments(input_ids, segment_ids, segment_starts, segment_ends)
        deduces = output_binary_states or self.diagonal is not None
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        words = self.symbols.embed(input_ids, streams)
        unary, binary, scope = self._base_atoms(
            words, streams, token_positions(attention_mask, input_ids), attention_mask,
            token_type_ids, segments,
        )  # fmt: skip
        outputs, _ = self._deduce(
            unary, binary, [scope] * len(self.layers), words.shape[1], output_attentions,
            output_hidden_states, deduces,
        )  # fmt: skip
        return self._completed(outputs, streams, input_ids.shape[1], output_binary_states)

    def _segments(
        self,
        ids_BL: torch.Tensor,
        labels: torch.Tensor | None,
        starts: torch.Tensor | None,
        ends: torch.Tensor | None,
    ) -> Segments | None:
        """Returns the segments beside the tokens; in training, padding where there are none."""
        batch, length = ids_BL.shape
        num_labels = len(self.config.segment_labels)
        segments = Segments.of(labels, starts, ends, batch, length, num_labels)
        if segments is None and num_labels and self.training:
            return Segments.nothing(batch, ids_BL.device)
        return segments

    def _base_atoms(
        self,
        words_BSLD: torch.Tensor,
        streams: Streams,
        positions: torch.Tensor,
        mask_BL: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
        segments: Segments | None,
    ) -> tuple[torch.Tensor, torch.Tensor, Scope]:
        """Returns unary and binary base atoms of tokens and segments, and what they relate to."""
        number = words_BSLD.shape[1]
        shown = None if mask_BL is None else mask_BL > 0
        relations = () if streams.within is None else streams.within.matrices
        if segments is not None:
            shown = segments.shown(mask_BL, words_BSLD.shape[2])
            count = segments.ids.shape[1]
            relations = tuple(F.pad(relation, (0, count, 0, count)) for relation in relations)
        distances = self._distances(positions, token_type_ids, segments)
        unary, binary = self.embeddings(
            words_BSLD, positions, distances, relations, token_type_ids, segments
        )
        mask = None
        if shown is not None:
            mask = for_streams(additive(shown[:, None], words_BSLD.dtype), number)
        vectors = self.embeddings.vectors(distances, number)
        return unary, binary, Scope(mask, relations=one_stream(relations), **vectors)

    def _distances(
        self,
        positions: torch.Tensor,
        token_type_ids: torch.Tensor | None,
        segments: Segments | None,
    ) -> torch.Tensor:
        """Returns numbers of the distances of Appendix A.4: (B or 1, L, L).

        With segments, elements that share positions have one of `RELATIONS` behind these numbers.
        """
        limit, types = self.config.max_distance, token_type_ids
        if segments is None:
            ids, first = distance_ids(positions, positions, limit), positions == 0
        else:
            starts, ends = segments.starting(positions), segments.ending(positions)
            between, named, apart = distances_and_names(starts, ends)
            ids, first = clipped_ids(between, limit), ends == 0
            types = None if types is None else segments.starting(types)
        if types is not None:
            other = types[:, :, None] != types[:, None]
            ids = torch.where(other, limit, ids)
        if self.config.cls_atoms:
            ids = torch.where(first[:, :, None] & ~first[:, None], 2 * limit, ids)
            ids = torch.where(~first[:, :, None] & first[:, None], 2 * limit + 1, ids)
        if segments is not None:
            ids = torch.where(apart, ids, named + self.config.num_distances)
        return ids

    def _completed(
        self, outputs: FolnetOutput, streams: Streams, tokens: int, output_binary_states: bool
    ) -> FolnetOutput:
        """Returns the atoms of the tokens, without those of segments, and the streams over them."""
        if self.diagonal is not None:
            self._add_diagonal(outputs)
        if outputs.last_hidden_state.shape[1] > tokens:
            _keep_tokens(outputs, tokens)
        if self.symbols.owner.symbol_memory is not None:
            last = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
            streams = self.symbols.remember(last[:, 0], streams)
        binary = outputs.binary_hidden_state if output_binary_states else None
        return completed(outputs, binary_hidden_state=binary, **streams.fields())

    def _add_diagonal(self, outputs: FolnetOutput) -> None:
        """Adds a projection of u_L(x, x) to u_L(x)."""
        assert self.diagonal is not None and outputs.binary_hidden_state is not None
        streams = outputs.last_hidden_state.shape[-1] // self.config.hidden_size
        binary = outputs.binary_hidden_state.unflatten(-1, (streams, -1))
        update = self.diagonal(binary.diagonal(dim1=1, dim2=2).permute(0, 3, 1, 2))
        outputs.last_hidden_state = outputs.last_hidden_state + update.flatten(2)


class FolnetDecoder(FolnetStack):
    """Deduces the atoms of a text from those before them, and from a source if there is one."""

    def __init__(self, config: FolnetConfig, symbols: SymbolLayer):
        has_source = config.is_encoder_decoder
        super().__init__(config, symbols, config.num_decoder_layers, True, has_source)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_outputs: FolnetOutput | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        prefix_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = True,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns the atoms of the present tokens.

        Args:
            input_ids: (B, T), without the tokens that `past_key_values` already holds.
            encoder_outputs: of [`FolnetEncoder`], in an encoder-decoder; of B inputs, or of fewer:
                each is that of the same number of consecutive rows, the beams of a search.
            attention_mask: 1 for tokens, 0 for padding: (B, past + T).
            encoder_attention_mask: (B, L).
            prefix_mask: 1 for tokens of the text that see each other in both directions (prefix
                language models): (B, past + T) or shorter.
            output_attentions, output_hidden_states, output_binary_states: as in [`FolnetEncoder`].

        Raises:
            ValueError: masks or the cache do not fit.
        """
        name = "decoder_input_ids" if self.config.is_encoder_decoder else "input_ids"
        check_dimensions(input_ids, 2, name)
        cache = self._cache(past_key_values, use_cache)
        past = 0 if cache is None else self_attention_part(cache).get_seq_length()
        rows, length = input_ids.shape
        check_by_token(rows, past + length, attention_mask=attention_mask)
        streams, source = self._streams(input_ids, attention_mask, encoder_outputs, cache)
        unary, binary, visible, scope = self._base_atoms(
            input_ids, streams, source, attention_mask, encoder_attention_mask, prefix_mask, cache
        )
        number = unary.shape[0] // input_ids.shape[0]
        outputs, kernel = self._deduce(
            unary, binary, self._scopes(scope, number, source, cache), number, output_attentions,
            output_hidden_states, output_binary_states,
        )  # fmt: skip
        shown = outputs.binary_hidden_state
        if shown is not None:
            shown = shown.masked_fill(~visible[..., None], 0.0)
        if source is not None and kernel is not None:
            weights = kernel[..., : source.unary.shape[1]]
            streams = self.symbols.point(streams, streams.masses(weights))
        return completed(
            outputs, binary_hidden_state=shown, past_key_values=cache,
            symbol_pointer=streams.pointer, **streams.fields(),
        )  # fmt: skip

    def _cache(self, cache: Cache | None, use_cache: bool | None) -> Cache | None:
        """Returns the cache to go on from, or a new one; None where none is used."""
        if self.training and self.gradient_checkpointing:
            return None
        has_source = self.config.is_encoder_decoder
        if cache is None:
            if not (self.config.use_cache if use_cache is None else use_cache):
                return None
            cache = DynamicCache()
            cache = EncoderDecoderCache(cache, DynamicCache()) if has_source else cache
        if has_source:
            check_cache(cache)
        if not cache.get_seq_length():
            slots = 1 + len(SLOTS) * len(self.layers)
            use_premise_layers(self_attention_part(cache), slots)
            if has_source:
                use_premise_layers(cache.cross_attention_cache, slots)
                cache.is_updated = dict.fromkeys(range(slots), False)
        return cache

    def _streams(
        self,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None,
        encoder_outputs: FolnetOutput | None,
        cache: Cache | None,
    ) -> tuple[Streams, Source | None]:
        """Returns the streams over the tokens, and the encoder's atoms for each row of them."""
        own = self_attention_part(cache)
        if encoder_outputs is None:
            check_ids(self.config, ids_BT)
            streams = self.symbols.open(ids_BT, None, None, self.training)
            source = None
        else:
            batch, hidden = ids_BT.shape[0], encoder_outputs.last_hidden_state
            pairs = match_rows(encoder_outputs.binary_hidden_state, batch)
            assert pairs is not None
            check_rows(batch, hidden.shape[0])
            check_ids(self.config, ids_BT)
            encoded = Streams.of(encoder_outputs, hidden.dtype)
            streams = self.symbols.follow(encoded, ids_BT, mask, own, HISTORY)
            number = streams.ids.shape[1] if self.config.encoding.opens_streams else 1
            source = Source(unpacked(match_rows(hidden, batch), number), unpacked(pairs, number))
        if own is not None and streams.within is None:  # else `follow` has noted the tokens
            count = ids_BT[:, None, :, None]
            own.update(count, count[..., :0], HISTORY)
        return streams, source

    def _base_atoms(
        self,
        ids_BT: torch.Tensor,
        streams: Streams,
        source: Source | None,
        mask: torch.Tensor | None,
        source_mask_BL: torch.Tensor | None,
        prefix_mask: torch.Tensor | None,
        cache: Cache | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Scope]:
        """Returns unary and binary base atoms, which pairs are visible, and their scope.

        What is visible is (B or 1, T, M); the scope has no columns yet, which differ by layer.
        """
        batch, length = ids_BT.shape
        words = self.symbols.embed(ids_BT, streams)
        if mask is not None:
            positions = token_positions(mask, ids_BT)
        else:
            # The cache counts the present tokens already: `_streams` has noted them.
            total = length if cache is None else self_attention_part(cache).get_seq_length()
            positions = torch.arange(total, device=ids_BT.device)[None]
        visible = seen(positions.shape[1], length, mask, prefix_mask, ids_BT.device)
        distances = distance_ids(positions[:, -length:], positions, self.config.max_distance)
        if source is not None:
            visible, distances = self._behind_source(
                visible, distances, source.unary.shape[1], match_rows(source_mask_BL, batch)
            )
        relations = _over_all_columns(streams)
        unary, binary = self.embeddings(words, positions[:, -length:], distances, relations)
        number = words.shape[1]
        vectors = self.embeddings.vectors(distances, number)
        additive_mask = for_streams(additive(visible, words.dtype), number)
        scope = Scope(additive_mask, relations=one_stream(relations), **vectors)
        return unary, binary, visible, scope

    def _behind_source(
        self,
        visible: torch.Tensor,
        distances: torch.Tensor,
        source: int,
        mask_BL: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns what is visible, and distances, with the columns of the source in front."""
        rows = distances.shape[1]
        # The source is another sequence.
        other = distances.new_full((distances.shape[0], rows, source), self.config.max_distance)
        shown = visible.new_ones(1, 1, source) if mask_BL is None else mask_BL[:, None] > 0
        batch = max(visible.shape[0], shown.shape[0])
        parts = (shown.expand(batch, rows, -1), visible.expand(batch, -1, -1))
        return torch.cat(parts, dim=-1), torch.cat((other, distances), dim=-1)

    def _scopes(
        self, scope: Scope, streams: int, source: Source | None, cache: Cache | None
    ) -> list[Scope]:
        """Returns the scope of each layer, which has slots of its own in the cache."""
        across = None if source is None else cache
        return [
            replace(
                scope,
                columns=Columns(
                    1 + len(SLOTS) * index, streams, source, self_attention_part(cache), across
                ),
            )
            for index in range(len(self.layers))
        ]


def _over_all_columns(streams: Streams) -> tuple[torch.Tensor, ...]:
    """Returns the relations over the columns of source and text, each (B, 1, T, M).

    They hold within the text, across to the source, and where a symbol was written before.
    """
    if streams.within is None or streams.across is None:
        return ()
    (within,), (across, written) = streams.within.matrices, streams.across.matrices
    source, text = across.shape[-1], within.shape[-1]
    return F.pad(within, (source, 0)), F.pad(across, (0, text)), F.pad(written, (0, text))


def _keep_tokens(outputs: FolnetOutput, length: int) -> None:
    """Leaves out the atoms of the segments, which stand behind the tokens."""
    assert outputs.last_hidden_state is not None
    outputs.last_hidden_state = outputs.last_hidden_state[:, :length]
    if outputs.hidden_states is not None:
        outputs.hidden_states = (*outputs.hidden_states[:-1], outputs.last_hidden_state)
    if outputs.binary_hidden_state is not None:
        outputs.binary_hidden_state = outputs.binary_hidden_state[:, :length, :length]


def packed(x: torch.Tensor, streams: int) -> torch.Tensor:
    """Puts the streams of a sample side by side: (B * S, ..., D) -> (B, ..., S * D)."""
    if streams == 1:
        return x
    return x.unflatten(0, (-1, streams)).movedim(1, -2).flatten(-2)


def unpacked(x: torch.Tensor, streams: int) -> torch.Tensor:
    """Gives each stream of a sample a row: (B, ..., S * D) -> (B * S, ..., D)."""
    if streams == 1:
        return x
    return x.unflatten(-1, (streams, -1)).movedim(-2, 1).flatten(0, 1)


def one_stream(relations: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Takes the axis of streams, which is 1, out of relations: (B, 1, T, M) -> (B, T, M)."""
    return tuple(relation[:, 0] for relation in relations)


def seen(
    keys: int,
    rows: int,
    mask: torch.Tensor | None,
    prefix: torch.Tensor | None,
    device: torch.device,
) -> torch.Tensor:
    """Returns which of all tokens each of the last `rows` sees: (B or 1, rows, keys).

    Args:
        keys: number of tokens, those of the past included.
        rows: number of tokens that see.
        mask: 1 for tokens, 0 for padding: (B, keys).
        prefix: 1 for tokens that see each other in both directions, from the first one on:
            (B, keys) or shorter.
        device: of the result.
    """
    number = torch.arange(keys, device=device)
    visible = (number[None] <= number[-rows:, None])[None]
    if prefix is not None:
        inside = F.pad(prefix > 0, (0, max(0, keys - prefix.shape[1])))[:, :keys]
        visible = visible | (inside[:, -rows:, None] & inside[:, None])
    if mask is not None:
        visible = visible & (mask[:, None] > 0)
    return visible


__all__ = ["FolnetDecoder", "FolnetEncoder", "FolnetPreTrainedModel", "FolnetStack"]
