"""FOLNet's stacks from the bottom up: base atoms, a step of deduction, an encoder, a decoder.

Shapes: B batch, S streams (1 unless the encoding opens streams), N = B * S, L source length, T
target length or positions whose atoms are deduced, M positions that a row of binary atoms relates
to, D1 and D2 widths of unary and binary atoms, H heads, V vocabulary. Inside a stack unary atoms
are (N, L, D1) and binary ones (N, L, M, D2); outside of it they are (B, L, S * D1) and
(B, L, M, S * D2).
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils import ModelOutput, can_return_tuple

from .checks import (
    check_by_token,
    check_cache,
    check_dimensions,
    check_ids,
    check_positions,
    check_rows,
    refuse_vectors,
)
from .configuration_folnet import FolnetConfig
from .encoder_heads import check_types
from .logic_operators import (
    HISTORY,
    OPERATORS,
    Atoms,
    BinaryBool,
    Columns,
    Join,
    Scope,
    Source,
    UnaryBool,
    use_premise_layers,
)
from .masks import additive, self_attention_part, visible_in_prefix
from .positions import token_positions
from .relations import match_rows
from .streams import Streams
from .symbol_layer import SymbolLayer
from .symbol_model import SymbolModel
from .symbols import unpack_streams


@dataclass
class FolnetOutput(ModelOutput):
    """What a FOLNet of any form, or a head on it, returns; what does not apply is None.

    Attributes:
        logits: scores of each id at each position (B, T, V), of classes (B, C) or (B, L, C), or of
            choices (B, choices).
        start_logits, end_logits: scores of where answers begin and end: (B, L).
        seq_relationship_logits: scores of sentence pairs, by [`FolnetForPreTraining`]: (B, 2).
        last_hidden_state: unary atoms u_L(x): (B, L, S * D1); of the decoder, if there is one.
        pooler_output: the vector of the whole input, read off [CLS], in an encoder: (B, D1).
        binary_hidden_state: binary atoms u_L(x, y): (B, L, M, S * D2). In a decoder, 0 where y is
            hidden from x; those that relate to the source come first, and with a cache, x is one of
            the present positions.
        hidden_states: unary atoms of all layers, each (B, L, S * D1).
        attentions: kernels of the join operators, each (N, H, L, M).
        decoder_hidden_states, decoder_attentions, encoder_last_hidden_state,
            encoder_binary_hidden_state, encoder_hidden_states, encoder_attentions: both sides' of
            an encoder-decoder, in place of `hidden_states` and `attentions`. A decoder has one
            kernel over source and target: `cross_attentions` stay None.
        streams: over the tokens of the last hidden state, as in [`SymbolEncoderOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None
    seq_relationship_logits: torch.Tensor | None = None
    # Optional only because every field of a ModelOutput is.
    last_hidden_state: torch.Tensor = None  # type: ignore[assignment]
    pooler_output: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    decoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    decoder_attentions: tuple[torch.Tensor, ...] | None = None
    cross_attentions: None = None
    encoder_last_hidden_state: torch.Tensor | None = None
    encoder_binary_hidden_state: torch.Tensor | None = None
    encoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    encoder_attentions: tuple[torch.Tensor, ...] | None = None
    streams: Streams = None  # type: ignore[assignment]

    def completed(self, **fields: Any) -> "FolnetOutput":
        """Returns a copy with further fields, in the order of the class.

        A field that is set on the output itself comes last, which Trainer would take for another.
        """
        return FolnetOutput(**{**self, **fields})

    def scored(self, **scores: Any) -> "FolnetOutput":
        """Returns the output of a head: its scores, and the atoms without those it was made for."""
        unseen = ("last_hidden_state", "pooler_output", "streams")
        return FolnetOutput(**{n: x for n, x in self.items() if n not in unseen}, **scores)

    def behind(self, source: "FolnetOutput") -> "FolnetOutput":
        """Returns a decoder's output and that of the encoder before it as one."""
        states = ("hidden_states", "attentions")
        fields = {f"decoder_{n}" if n in states else n: x for n, x in self.items()}
        own = ("last_hidden_state", "binary_hidden_state", *states)
        return FolnetOutput(**fields, **{f"encoder_{n}": source[n] for n in own if n in source})


def layer_norm(config: FolnetConfig, width: int) -> nn.LayerNorm:
    """Returns the norm in front of a deduction, without weights: the original code's."""
    return nn.LayerNorm(width, eps=config.layer_norm_eps, elementwise_affine=False)


class FolnetEmbeddings(nn.Module):
    """Base atoms u_0(x) and u_0(x, y) of one side (Equation 10); words come from the symbol layer.

    Args:
        decodes: for a decoder, which has no kinds of tokens and no [CLS].
    """

    def __init__(self, config: FolnetConfig, decodes: bool):
        super().__init__()
        self.config, self.decodes = config, decodes
        d1, d2 = config.hidden_size, config.binary_hidden_size
        if not decodes:
            self.token_type_embeddings = nn.Embedding(config.type_vocab_size, d1)
        scheme = config.position_scheme
        if scheme == "absolute":
            self.position_embeddings = nn.Embedding(config.max_position_embeddings, d1)
        elif scheme == "relative":
            self.distance_embeddings = nn.Embedding(config.num_distances, d2)
        elif scheme == "shaw":
            self.key_distances = nn.Embedding(config.num_distances, config.head_size)
            self.value_distances = nn.Embedding(config.num_distances, config.head_size)
        # "The same symbol as": within a sequence; in a decoder also across, and whether written.
        relations = 3 if decodes else 1
        self.relations = None if config.memory is None else nn.Linear(relations, d2, bias=False)
        self.unary_norm, self.binary_norm = layer_norm(config, d1), layer_norm(config, d2)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        words_BSTD: torch.Tensor,
        positions: torch.Tensor,
        distances: torch.Tensor,
        relations: tuple[torch.Tensor, ...] = (),
        token_type_ids: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns unary base atoms (N, T, D1) and binary ones (N, T, M, D2).

        Args:
            words_BSTD: vectors of the tokens, from the symbol layer.
            positions: where tokens stand, counted from the first one: (B or 1, T).
            distances: numbers of the distances: (B or 1, T, M).
            relations: of the symbol layer, each (B, 1, T, M).
            token_type_ids: (B, T); all 0 by default.

        Raises:
            ValueError: a position has no vector.
        """
        unary = words_BSTD
        if not self.decodes:
            types = torch.zeros_like(positions) if token_type_ids is None else token_type_ids
            unary = unary + self.token_type_embeddings(types)[:, None]
        if self.config.position_scheme == "absolute":
            check_positions(positions, self.config.max_position_embeddings)
            unary = unary + self.position_embeddings(positions)[:, None]
        binary = self._binary_atoms(unary, distances, relations)
        binary = binary.expand(*unary.shape[:2], -1, -1, -1).flatten(0, 1)
        unary = self.unary_norm(unary).flatten(0, 1)
        return self.dropout(unary), self.dropout(binary)

    def _binary_atoms(
        self,
        unary_BSTD: torch.Tensor,
        distances: torch.Tensor,
        relations: tuple[torch.Tensor, ...],
    ) -> torch.Tensor:
        """Returns u_0(x, y): (B or 1, S or 1, T, M, D2)."""
        if self.config.position_scheme == "relative":
            atoms = self.distance_embeddings(distances)[:, None]
        else:
            width = self.config.binary_hidden_size
            atoms = unary_BSTD.new_zeros(1, 1, *distances.shape[1:], width)
        if self.relations is not None:
            atoms = atoms + self.relations(torch.stack(relations, dim=-1).to(atoms))
        return self.binary_norm(atoms)

    def vectors(self, distances: torch.Tensor, streams: int) -> dict[str, Any]:
        """Returns the vectors of Shaw et al. as arguments of [`Scope`]; none in other schemes.

        Args:
            distances: numbers of the distances: (B or 1, T, M).
            streams: S.
        """
        if self.config.position_scheme != "shaw":
            return {}
        return {
            "key_vectors": for_streams(self.key_distances(distances), streams),
            "value_vectors": for_streams(self.value_distances(distances), streams),
        }


class FolnetLayer(GradientCheckpointingLayer):
    """One step of deduction: the operators of both branches, then the Boolean ones (Figure 1).

    Args:
        has_source: for a decoder behind an encoder.
    """

    def __init__(self, config: FolnetConfig, decodes: bool = False, has_source: bool = False):
        super().__init__()
        d1, d2 = config.hidden_size, config.binary_hidden_size
        self.cascade = config.boolean_cascade
        self.unary_letters, self.binary_letters = config.unary_operators, config.binary_operators
        for letter in config.unary_operators + config.binary_operators:
            setattr(self, OPERATORS[letter].name, OPERATORS[letter](config, has_source))
        self.unary_bool = UnaryBool(config, d1, config.intermediate_size)
        self.binary_bool = BinaryBool(config, config.transposed_boolean and not decodes)
        self.unary_norm, self.binary_norm = layer_norm(config, d1), layer_norm(config, d2)
        if self.cascade:
            self.unary_bool_norm = layer_norm(config, d1)
            self.binary_bool_norm = layer_norm(config, d2)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def operator(self, letter: str) -> Any:
        """Returns the operator that Table 2 calls by this letter."""
        return getattr(self, OPERATORS[letter].name)

    def forward(
        self,
        unary_NTD: torch.Tensor,
        binary_NTMD: torch.Tensor,
        scope: Scope,
        only_unary: bool,
        *traced: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Returns both branches with what is deduced, and join's kernel (N, H, T, M) or None.

        Args:
            unary_NTD: unary atoms of the layer before, D1 wide.
            binary_NTMD: binary atoms of the layer before, D2 wide.
            only_unary: leave the binary branch as it is, where nothing behind this layer reads it.
            traced: the tensors of `scope.traced()`. Reentrant checkpointing gives gradients to
                arguments only, so they are taken from here.
        """
        scope = scope.carrying(*traced)
        by_unary, by_binary, attention = self._deduce(unary_NTD, binary_NTMD, scope, only_unary)
        unary_NTD, binary_NTMD = self._add(unary_NTD, by_unary), self._add(binary_NTMD, by_binary)
        del by_unary, by_binary
        if self.cascade:
            unary_NTD = self._add(unary_NTD, self.unary_bool(self.unary_bool_norm(unary_NTD)))
            if not only_unary:
                by_binary = self.binary_bool(self.binary_bool_norm(binary_NTMD))
                binary_NTMD = self._add(binary_NTMD, by_binary)
        return unary_NTD, binary_NTMD, attention

    def _deduce(
        self, unary_NTD: torch.Tensor, binary_NTMD: torch.Tensor, scope: Scope, only_unary: bool
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Returns what is added to each branch (None for nothing), and join's kernel or None."""
        operators = [self.operator(letter) for letter in self.letters(only_unary)]
        atoms = Atoms.of(
            self.unary_norm(unary_NTD), self.binary_norm(binary_NTMD), scope, operators
        )
        attention = None
        if (kernel := atoms.kernels.get(Join.letter)) is not None:
            attention = kernel.transpose(0, 1)
            # Gradients pass through what is returned, for those who look at them.
            atoms.kernels[Join.letter] = attention.transpose(0, 1)
        by_unary = by_binary = None
        for operator in operators:  # one after the other: what each deduces is not kept
            if operator.letter in self.unary_letters:
                by_unary = _plus(by_unary, operator(atoms))
            else:
                by_binary = _plus(by_binary, operator(atoms))
        if not self.cascade:
            by_unary = _plus(by_unary, self.unary_bool(atoms.unary))
            if not only_unary:
                by_binary = _plus(by_binary, self.binary_bool(atoms.binary))
        return by_unary, by_binary, attention

    def letters(self, only_unary: bool) -> str:
        """Returns the letters of the operators that are at work."""
        return self.unary_letters + ("" if only_unary else self.binary_letters)

    def _add(self, atoms: torch.Tensor, deduced: torch.Tensor | None) -> torch.Tensor:
        return atoms if deduced is None else atoms + self.dropout(deduced)


def _plus(total: torch.Tensor | None, deduced: torch.Tensor) -> torch.Tensor:
    return deduced if total is None else total + deduced


def for_streams(x: torch.Tensor, streams: int) -> torch.Tensor:
    """Repeats what belongs to a sample for each of its streams: (B or 1, ...) -> (N or 1, ...)."""
    return x if streams == 1 or x.shape[0] == 1 else x.repeat_interleave(streams, dim=0)


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
        symbols: the symbol layer of the model, which encoder and decoder share.
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
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns the atoms of the tokens.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            token_type_ids: to which sequence each token belongs, 0 by default: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, where they are needed (`config.needs_stream_ids`).
            output_binary_states: return u_L(x, y); else the last layer need not deduce them.

        Raises:
            ValueError: inputs are out of range or do not fit each other.
        """
        refuse_vectors(kwargs)
        refuse_positions(kwargs)
        check_dimensions(input_ids, 2)
        check_by_token(*input_ids.shape, token_type_ids=token_type_ids)
        check_types(token_type_ids, self.config.type_vocab_size)
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        words = self.symbols.embed(input_ids, streams)
        number = words.shape[1]
        relations = () if streams.within is None else streams.within.matrices
        positions = token_positions(attention_mask, input_ids)
        distances = self._distances(positions, token_type_ids)
        unary, binary = self.embeddings(words, positions, distances, relations, token_type_ids)
        mask = None
        if attention_mask is not None:
            mask = for_streams(additive(attention_mask[:, None] > 0, words.dtype), number)
        vectors = self.embeddings.vectors(distances, number)
        scope = Scope(mask, relations=one_stream(relations), **vectors)
        outputs, _ = self._deduce(
            unary, binary, [scope] * len(self.layers), number, output_attentions,
            output_hidden_states, output_binary_states,
        )  # fmt: skip
        if self.symbols.owner.symbol_memory is not None:
            last = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
            streams = self.symbols.remember(last[:, 0], streams)
        binary = outputs.binary_hidden_state if output_binary_states else None
        return outputs.completed(binary_hidden_state=binary, **streams.fields())

    def _distances(
        self, positions: torch.Tensor, token_type_ids: torch.Tensor | None
    ) -> torch.Tensor:
        """Returns numbers of the distances of Appendix A.4: (B or 1, L, L)."""
        limit, first = self.config.max_distance, positions == 0
        ids = distance_ids(positions, positions, limit)
        if token_type_ids is not None:
            other = token_type_ids[:, :, None] != token_type_ids[:, None]
            ids = torch.where(other, limit, ids)
        if self.config.cls_atoms:
            ids = torch.where(first[:, :, None] & ~first[:, None], 2 * limit, ids)
            ids = torch.where(~first[:, :, None] & first[:, None], 2 * limit + 1, ids)
        return ids


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
        across = None if source is None else cache
        scopes = [
            replace(scope, columns=Columns(i, number, source, self_attention_part(cache), across))
            for i in range(len(self.layers))
        ]
        outputs, kernel = self._deduce(
            unary, binary, scopes, number, output_attentions, output_hidden_states,
            output_binary_states,
        )  # fmt: skip
        shown = outputs.binary_hidden_state
        if shown is not None:
            shown = shown.masked_fill(~visible[..., None], 0.0)
        if source is not None and kernel is not None:
            weights = kernel[..., : source.unary.shape[1]]
            streams = self.symbols.point(streams, streams.masses(weights))
        return outputs.completed(
            binary_hidden_state=shown, past_key_values=cache, **streams.fields()
        )

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
            slots = use_premise_layers(self_attention_part(cache), len(self.layers))
            if has_source:
                use_premise_layers(cache.cross_attention_cache, len(self.layers))
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


def _over_all_columns(streams: Streams) -> tuple[torch.Tensor, ...]:
    """Returns the relations over the columns of source and text, each (B, 1, T, M).

    They hold within the text, across to the source, and where a symbol was written before.
    """
    if streams.within is None or streams.across is None:
        return ()
    (within,), (across, written) = streams.within.matrices, streams.across.matrices
    source, text = across.shape[-1], within.shape[-1]
    return F.pad(within, (source, 0)), F.pad(across, (0, text)), F.pad(written, (0, text))


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


def distance_ids(query_BT: torch.Tensor, key_BM: torch.Tensor, limit: int) -> torch.Tensor:
    """Returns the number of the clipped distance of each pair of positions: (B or 1, T, M).

    Distance d = key - query is clipped to lie between 1 - limit and limit - 1. From 0 on it has its
    own number, below 0 the number 2 * limit + d (Chen 2023, Appendix A.4).
    """
    distance = (key_BM[:, None] - query_BT[..., None]).clamp(1 - limit, limit - 1)
    return torch.where(distance < 0, distance + 2 * limit, distance)


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
    """
    number = torch.arange(keys, device=device)
    visible = (number[None] <= number[-rows:, None])[None]
    if prefix is not None:
        visible = visible | visible_in_prefix(prefix, number[-rows:], keys)[:, 0]
    if mask is not None:
        visible = visible & (mask[:, None] > 0)
    return visible


def refuse_positions(kwargs: dict[str, Any]) -> None:
    """Raise a ValueError for positions of tokens."""
    for name in ("position_ids", "decoder_position_ids"):
        if kwargs.get(name) is not None:
            raise ValueError(
                f"{name} is not supported: the tokens of a row are counted from the first one that "
                "is no padding, by attention_mask. Leave it out, and give each text a row of its "
                "own"
            )
