"""FOLNet: two branches of atoms, deduced from each other by neural logic operators.

The source is Chen, "Learning Language Representations with Logical Inductive Bias" (ICLR 2023). Its
three forms are here: an encoder, a decoder, and an encoder with a decoder (Appendix A.5).

Shapes: B batch, S streams (1 unless the encoding opens streams), N = B * S, L source length, T
target length, M positions that a row of binary atoms relates to, D1 and D2 widths of unary and
binary atoms, V vocabulary. Inside the model unary atoms are (N, L, D1) and binary ones
(N, L, M, D2); outside of it they are (B, L, S * D1) and (B, L, M, S * D2).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.generation import GenerationMixin
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils import ModelOutput, can_return_tuple

from .checks import (
    IGNORE,
    check_cache,
    check_cached_prefix,
    check_classes,
    check_dimensions,
    check_ids,
    check_label_rows,
    check_label_shape,
    check_mask,
    check_memory,
    check_positions,
    check_prefix,
    check_rows,
    check_span,
    check_told_apart,
    check_types,
    refuse_positions,
    refuse_vectors,
)
from .configuration_folnet import FolnetConfig
from .cpu import BitDropout
from .logic_operators import (
    OPERATORS,
    SLOTS,
    Atoms,
    BinaryBool,
    Join,
    Scope,
    UnaryBool,
)
from .logit_scale import LogitScale
from .losses import class_loss, labels_for_loss, place_loss
from .masks import additive, first_states
from .positions import clipped_ids, distance_ids, token_positions
from .premises import HISTORY, Columns, Source, use_premise_layers
from .segment_relations import Segments, distances_and_names
from .streams import Streams, match_rows
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import SymbolHead, SymbolModel, shift_right
from .symbols import unpack_streams


@dataclass
class FolnetOutput(ModelOutput):
    """Atoms that a stack has deduced.

    Attributes:
        last_hidden_state: unary atoms u_L(x): (B, L, S * D1).
        pooler_output: of [CLS], in an encoder: (B, D1).
        binary_hidden_state: binary atoms u_L(x, y): (B, L, M, S * D2); in a decoder, 0 where y is
            hidden from x.
        past_key_values: premises of a decoder.
        hidden_states: unary atoms of all layers, each (B, L, S * D1).
        attentions: kernels of the join operators, each (N, H, L, M).
        stream_ids, own_streams, renaming, symbol_memory: as in [`SymbolEncoderOutput`].
        symbol_pointer: what the head adds to the scores of symbols: (B, T, S); see [`Streams`].
    """

    # Optional only because every field of a ModelOutput is.
    last_hidden_state: torch.Tensor = None  # type: ignore[assignment]
    pooler_output: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    stream_ids: torch.Tensor = None  # type: ignore[assignment]
    own_streams: torch.Tensor = None  # type: ignore[assignment]
    renaming: torch.Tensor | None = None
    symbol_memory: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None


@dataclass
class FolnetSeq2SeqOutput(ModelOutput):
    """Atoms of a decoder, and of its encoder.

    Attributes:
        last_hidden_state: unary atoms of the decoder: (B, T, S * D1).
        binary_hidden_state: its binary atoms, first those that relate to the source: (B, T, L + T,
            S * D2); with a cache, of the present positions only.
        encoder_binary_hidden_state: (B, L, L, S * D2). The other fields are as in Transformers, and
            in [`FolnetOutput`].
    """

    last_hidden_state: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    decoder_attentions: tuple[torch.Tensor, ...] | None = None
    cross_attentions: None = None  # a decoder has one kernel over source and target
    encoder_last_hidden_state: torch.Tensor | None = None
    encoder_binary_hidden_state: torch.Tensor | None = None
    encoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    encoder_attentions: tuple[torch.Tensor, ...] | None = None
    stream_ids: torch.Tensor | None = None
    own_streams: torch.Tensor | None = None
    renaming: torch.Tensor | None = None
    symbol_memory: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None


@dataclass
class FolnetLMOutput(ModelOutput):
    """Predictions of a model of any form, with the atoms that they were made from.

    Attributes:
        logits: (B, T, V).
        seq_relationship_logits: of sentence pairs, by [`FolnetForPreTraining`]: (B, 2). The other
            fields are as in [`FolnetOutput`] and [`FolnetSeq2SeqOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    seq_relationship_logits: torch.Tensor | None = None
    past_key_values: Cache | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    decoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    decoder_attentions: tuple[torch.Tensor, ...] | None = None
    cross_attentions: None = None  # a decoder has one kernel over source and target
    encoder_last_hidden_state: torch.Tensor | None = None
    encoder_binary_hidden_state: torch.Tensor | None = None
    encoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    encoder_attentions: tuple[torch.Tensor, ...] | None = None


@dataclass
class FolnetClassOutput(ModelOutput):
    """Scores of classes or choices.

    Attributes:
        logits: (B, classes); of tokens (B, L, classes). The other fields are as in
            [`FolnetOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


@dataclass
class FolnetSpanOutput(ModelOutput):
    """Scores of where answers begin and end.

    Attributes:
        start_logits, end_logits: (B, L). The other fields are as in [`FolnetOutput`].
    """

    loss: torch.Tensor | None = None
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


def completed(outputs: Any, **fields: Any) -> Any:
    """An output with further fields, in the order of its class; set later, they would come last."""
    return type(outputs)(**{**outputs, **fields})


def layer_norm(config: FolnetConfig, width: int) -> nn.LayerNorm:
    """The norm in front of a deduction; without weights unless `layer_norm_affine` is set."""
    affine = config.layer_norm_affine
    return nn.LayerNorm(width, eps=config.layer_norm_eps, elementwise_affine=affine)


class FolnetEmbeddings(nn.Module):
    """Base atoms u_0(x) and u_0(x, y) of one side (Equation 10); words come from the symbol layer.

    Args:
        config: of the model.
        decodes: for a decoder, which has no kinds of tokens and no [CLS].
    """

    def __init__(self, config: FolnetConfig, decodes: bool):
        super().__init__()
        self.config, self.decodes = config, decodes
        d1, d2 = config.hidden_size, config.binary_hidden_size
        if not decodes:
            self.token_type_embeddings = nn.Embedding(config.type_vocab_size, d1)
        self.segment_embeddings: nn.Embedding | None = None
        if config.segment_labels:
            self.segment_embeddings = nn.Embedding(len(config.segment_labels) + 1, d1, 0)
        scheme = config.position_scheme
        if scheme == "absolute":
            self.position_embeddings = nn.Embedding(config.max_position_embeddings, d1)
        elif scheme == "relative":
            self.distance_embeddings = nn.Embedding(config.num_relations, d2)
        elif scheme == "shaw":
            self.key_distances = nn.Embedding(config.num_distances, config.head_size)
            self.value_distances = nn.Embedding(config.num_distances, config.head_size)
        self.diagonal = nn.Linear(d1, d2) if config.diagonal_link else None
        # "The same symbol as": within a sequence; in a decoder also across, and whether written.
        relations = 3 if decodes else 1
        self.relations = nn.Linear(relations, d2, bias=False) if config.encoding.relates else None
        self.unary_norm, self.binary_norm = layer_norm(config, d1), layer_norm(config, d2)
        self.dropout = BitDropout(config.hidden_dropout_prob)

    def forward(
        self,
        words_BSTD: torch.Tensor,
        positions: torch.Tensor,
        distances: torch.Tensor,
        relations: tuple[torch.Tensor, ...] = (),
        token_type_ids: torch.Tensor | None = None,
        segments: Segments | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Unary base atoms (N, T, D1) and binary ones (N, T, M, D2).

        With segments, T and M count them behind the tokens.

        Args:
            words_BSTD: from the symbol layer.
            positions: (B or 1, T).
            distances: numbers of the distances: (B or 1, T, M).
            relations: of the symbol layer, each (B, 1, T, M).
            token_type_ids: (B, T); all 0 by default. A segment has that of its first token.
            segments: beside the tokens of `words_BSTD` and `positions`.

        Raises:
            ValueError: a position has no vector.
        """
        unary = words_BSTD
        if segments is not None and self.segment_embeddings is not None:
            behind = self.segment_embeddings(segments.ids)[:, None]
            behind = behind.expand(-1, unary.shape[1], -1, -1)
            unary = torch.cat((unary, behind), dim=2)
        if not self.decodes:
            types = torch.zeros_like(positions) if token_type_ids is None else token_type_ids
            if segments is not None:
                types = segments.starting(types)
            unary = unary + self.token_type_embeddings(types)[:, None]
        if self.config.position_scheme == "absolute":
            unary = unary + self._positions(positions)[:, None]
        binary = self._binary(unary, distances, relations)
        binary = binary.expand(*unary.shape[:2], -1, -1, -1).flatten(0, 1)
        unary = self.unary_norm(unary).flatten(0, 1)
        return self.dropout(unary), self.dropout(binary)

    def _positions(self, positions: torch.Tensor) -> torch.Tensor:
        check_positions(positions, self.config.max_position_embeddings)
        return self.position_embeddings(positions)

    def _binary(
        self,
        unary_BSTD: torch.Tensor,
        distances: torch.Tensor,
        relations: tuple[torch.Tensor, ...],
    ) -> torch.Tensor:
        """(B or 1, S or 1, T, M, D2)."""
        if self.config.position_scheme == "relative":
            atoms = self.distance_embeddings(distances)[:, None]
        else:
            width = self.config.binary_hidden_size
            atoms = unary_BSTD.new_zeros(1, 1, *distances.shape[1:], width)
        if self.diagonal is not None:
            on_diagonal = self.diagonal(unary_BSTD).transpose(2, 3)
            atoms = atoms + on_diagonal.diag_embed(dim1=2, dim2=3)
        if self.relations is not None:
            atoms = atoms + self.relations(torch.stack(relations, dim=-1).to(atoms))
        return self.binary_norm(atoms)

    def vectors(self, distances: torch.Tensor, streams: int) -> dict[str, Any]:
        """The static vectors of Shaw et al. where the model has such; see [`Scope`]."""
        if self.config.position_scheme != "shaw":
            return {}
        return {
            "key_vectors": for_streams(self.key_distances(distances), streams),
            "value_vectors": for_streams(self.value_distances(distances), streams),
        }


class FolnetLayer(GradientCheckpointingLayer):
    """One step of deduction: the operators of both branches, then the Boolean ones (Figure 1).

    Args:
        config: of the model.
        decodes: for a decoder.
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
        self.dropout = BitDropout(config.hidden_dropout_prob)

    def operator(self, letter: str) -> Any:
        """The operator that Table 2 calls so."""
        return getattr(self, OPERATORS[letter].name)

    def forward(
        self,
        unary_NTD: torch.Tensor,
        binary_NTMD: torch.Tensor,
        scope: Scope,
        only_unary: bool,
        *traced: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Both branches with what is deduced, and join's kernel (N, H, T, M) if there is one.

        Args:
            scope: what the atoms relate to.
            only_unary: leave the binary branch as it is: nobody wants it behind the last layer.
            traced: of the scope, as arguments: what reentrant checkpointing knows of.
        """
        scope = scope.carrying(*traced)
        by_unary, by_binary, attention = self._deduce(unary_NTD, binary_NTMD, scope, only_unary)
        unary_NTD, binary_NTMD = self._add(unary_NTD, by_unary), self._add(binary_NTMD, by_binary)
        del by_unary, by_binary
        if self.cascade:
            unary_NTD = self._add(unary_NTD, self.unary_bool(self.unary_bool_norm(unary_NTD)))
            if not only_unary:
                last = self.binary_bool(self.binary_bool_norm(binary_NTMD))
                binary_NTMD = self._add(binary_NTMD, last)
        return unary_NTD, binary_NTMD, attention

    def _deduce(
        self, unary_NTD: torch.Tensor, binary_NTMD: torch.Tensor, scope: Scope, only_unary: bool
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """What is added to each branch, None for nothing, and join's kernel."""
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
        """The operators that are at work."""
        return self.unary_letters + ("" if only_unary else self.binary_letters)

    def _add(self, atoms: torch.Tensor, deduced: torch.Tensor | None) -> torch.Tensor:
        return atoms if deduced is None else atoms + self.dropout(deduced)


def _plus(total: torch.Tensor | None, more: torch.Tensor) -> torch.Tensor:
    return more if total is None else total + more


class FolnetPreTrainedModel(SymbolModel):
    """What the library has to know about these models."""

    config: FolnetConfig
    base_model_prefix = "folnet"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["FolnetLayer"]  # noqa: RUF012
    _can_compile_fullgraph = True
    folnet: Any  # the FolnetModel beneath a head

    def _encode(
        self,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
        stream_ids: torch.Tensor | None,
        output_attentions: bool | None,
        output_hidden_states: bool | None,
        output_binary_states: bool,
        **kwargs: Any,
    ) -> FolnetOutput:
        """What the encoder beneath a head returns."""
        return self.folnet(
            input_ids, attention_mask, token_type_ids, stream_ids, return_dict=True,
            output_attentions=output_attentions, output_hidden_states=output_hidden_states,
            output_binary_states=output_binary_states, **kwargs,
        )  # fmt: skip


class FolnetStack(FolnetPreTrainedModel):
    """What encoder and decoder share.

    Args:
        config: of the model.
        symbols: the model's.
        layers: how many.
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

    def _keeps(self) -> tuple[str, str]:
        """What of each layer is kept for gradients, and what to do if that is too much."""
        trains = any(x.requires_grad for x in self.symbols.owner.parameters())
        if not (trains and torch.is_grad_enabled()):
            return "nothing", ""
        if not self.training:
            return "all", ", or compute under torch.no_grad()"
        if self.gradient_checkpointing:
            return "inputs", ""
        return "all", ", or set gradient_checkpointing"

    def _check_memory(
        self, rows: int, queries: int, keys: int, device: torch.device, output_binary_states: bool
    ) -> None:
        """Raise a ValueError if there is no memory for the binary atoms.

        Args:
            rows, queries, keys: N, T and M.
            output_binary_states: otherwise the last layer does not deduce them.
        """
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or device.type == "meta":
            return
        keeps, way_out = self._keeps()
        layers = len(self.layers) - (not output_binary_states)
        autocast = torch.is_autocast_enabled(device.type)
        numbers = self.config.numbers_per_pair(layers, keeps, autocast)
        check_memory(
            rows * queries * keys * numbers * self.symbols.owner.dtype.itemsize, device,
            f"relations of {queries} times {keys} positions in {rows} rows", way_out,
        )  # fmt: skip

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
        """Chain the layers (Equation 3); returns join's last kernel too: (N, H, T, M).

        Args:
            scopes: of each layer.
            streams: S.
        """
        config = self.config
        attentions_on = config.output_attentions if output_attentions is None else output_attentions
        states_on = (
            config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        states: tuple[torch.Tensor, ...] = ()
        attentions: tuple[torch.Tensor, ...] = ()
        kernel = None
        for layer, scope in zip(self.layers, scopes, strict=True):
            states += (packed(unary_NTD, streams),) if states_on else ()
            only_unary = layer is self.layers[-1] and not output_binary_states
            unary_NTD, binary_NTMD, kernel = layer(
                unary_NTD, binary_NTMD, scope, only_unary, *scope.traced()
            )
            if attentions_on and kernel is not None:
                attentions += (kernel,)
        unary_NTD = self.final_unary_norm(unary_NTD)
        last = packed(unary_NTD, streams)
        outputs = FolnetOutput(
            last_hidden_state=last,
            binary_hidden_state=packed(self.final_binary_norm(binary_NTMD), streams)
            if output_binary_states
            else None,
            hidden_states=(*states, last) if states_on else None,
            attentions=attentions if attentions_on else None,
        )
        return outputs, kernel


class FolnetEncoder(FolnetStack):
    """Deduces atoms of an input, in both directions."""

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
        """Encode.

        Args:
            input_ids: (B, L).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
            token_type_ids: to which sequence each token belongs, 0 by default: (B, L).
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                `input_ids` when absent, where they are needed (`config.needs_stream_ids`).
            output_binary_states: return u_L(x, y); without them, the last layer need not deduce
                them.
            segment_ids, segment_starts, segment_ends: symbolic segments beside the tokens, each
                (B, S); see [`Segments`]. What is returned is that of the tokens; `hidden_states`
                before the last one, and `attentions`, hold the segments behind them.

        Raises:
            ValueError: ids are out of range, or there is not enough memory for the binary atoms.
        """
        config = self.config
        refuse_vectors(kwargs)
        refuse_positions(kwargs)
        check_dimensions(input_ids, 2)
        check_mask(attention_mask, *input_ids.shape)
        check_types(token_type_ids, input_ids, config.type_vocab_size)
        deduces = output_binary_states or self.diagonal is not None
        batch, length = input_ids.shape
        segments = Segments.of(
            segment_ids, segment_starts, segment_ends, batch, length, len(config.segment_labels)
        )
        if segments is None and config.segment_labels and self.training:
            segments = Segments.nothing(batch, input_ids.device)
        more = 0 if segments is None else segments.ids.shape[1]
        size = length + more, length + more, input_ids.device, deduces
        self._check_memory(batch, *size)  # before symbols have relations, which are pairs too
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        words = self.symbols.embed(input_ids, streams)
        number = words.shape[1]
        if number > 1:
            self._check_memory(batch * number, *size)
        shown = None if attention_mask is None else attention_mask > 0
        within = streams.within
        if segments is not None:
            shown = segments.shown(attention_mask, length)
            within = tuple(F.pad(relation, (0, more, 0, more)) for relation in within)
        positions = token_positions(attention_mask, input_ids)
        distances = self._distances(positions, token_type_ids, segments)
        unary, binary = self.embeddings(
            words, positions, distances, within, token_type_ids, segments
        )
        mask = None
        if shown is not None:
            mask = for_streams(additive(shown[:, None], words.dtype), number)
        vectors = self.embeddings.vectors(distances, number)
        scope = Scope(mask, relations=one_stream(within), **vectors)
        outputs, _ = self._deduce(
            unary, binary, [scope] * len(self.layers), number, output_attentions,
            output_hidden_states, deduces,
        )  # fmt: skip
        if self.diagonal is not None:
            self._add_diagonal(outputs, number)
        if segments is not None:
            _keep_tokens(outputs, length)
        last = unpack_streams(outputs.last_hidden_state, config.hidden_size)
        if self.symbols.owner.symbol_memory is not None:
            streams = self.symbols.remember(last[:, 0], streams)
        binary = outputs.binary_hidden_state if output_binary_states else None
        return completed(outputs, binary_hidden_state=binary, **streams.fields())

    def _distances(
        self,
        positions: torch.Tensor,
        token_type_ids: torch.Tensor | None,
        segments: Segments | None,
    ) -> torch.Tensor:
        """Numbers of the distances of Appendix A.4: (B or 1, L, L).

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

    def _add_diagonal(self, outputs: FolnetOutput, streams: int) -> None:
        assert self.diagonal is not None and outputs.binary_hidden_state is not None
        binary = outputs.binary_hidden_state.unflatten(-1, (streams, -1))
        update = self.diagonal(binary.diagonal(dim1=1, dim2=2).permute(0, 3, 1, 2))
        outputs.last_hidden_state = outputs.last_hidden_state + update.flatten(2)


class FolnetDecoder(FolnetStack):
    """Deduces atoms of a text from those before them, and from a source if there is one."""

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
        """Decode.

        Args:
            input_ids: (B, T), without the tokens that `past_key_values` already holds.
            encoder_outputs: of [`FolnetEncoder`], in an encoder-decoder; of B inputs, or of fewer:
                each is that of the same number of consecutive rows, the beams of a search.
            attention_mask: 1 for tokens, 0 for padding: (B, past + T).
            encoder_attention_mask: (B, L).
            prefix_mask: 1 for tokens of the text that see each other in both directions (prefix
                language models): (B, past + T) or shorter.
            output_binary_states: as in [`FolnetEncoder`].

        Raises:
            ValueError: masks or the cache do not fit.
        """
        check_dimensions(
            input_ids, 2, "decoder_input_ids" if self.config.is_encoder_decoder else "input_ids"
        )
        batch, length = input_ids.shape
        past_key_values = self._cache(past_key_values, use_cache)
        own = past_key_values
        if isinstance(past_key_values, EncoderDecoderCache):
            own = past_key_values.self_attention_cache
        past = 0 if own is None else own.get_seq_length()
        check_mask(attention_mask, batch, past + length)
        number, columns = 1, past + length
        if encoder_outputs is not None:
            hidden = encoder_outputs.last_hidden_state
            number = hidden.shape[-1] // self.config.hidden_size
            columns += hidden.shape[1]
        self._check_memory(batch * number, length, columns, input_ids.device, output_binary_states)
        streams, source = self._streams(input_ids, attention_mask, encoder_outputs, own)
        words = self.symbols.embed(input_ids, streams)
        keys = token_positions(attention_mask, input_ids)
        if attention_mask is None:
            keys = torch.arange(past + length, device=input_ids.device)[None]
        visible = seen(keys.shape[1], length, attention_mask, prefix_mask, keys.device)
        distances = distance_ids(keys[:, -length:], keys, self.config.max_distance)
        if source is not None:
            visible, distances = self._before(
                visible, distances, source.unary.shape[1], match_rows(encoder_attention_mask, batch)
            )
        relations = self._relations(streams)
        unary, pairs = self.embeddings(words, keys[:, -length:], distances, relations)
        mask = for_streams(additive(visible, words.dtype), number)
        vectors = self.embeddings.vectors(distances, number)
        vectors["relations"] = one_stream(relations)
        scopes = [
            Scope(mask, self._columns(index, number, source, past_key_values, own), **vectors)
            for index in range(len(self.layers))
        ]
        outputs, kernel = self._deduce(
            unary, pairs, scopes, number, output_attentions, output_hidden_states,
            output_binary_states,
        )  # fmt: skip
        binary = outputs.binary_hidden_state
        if binary is not None:
            binary = binary.masked_fill(~visible[..., None], 0.0)
        if source is not None and kernel is not None and self.symbols.points:
            weights = kernel[..., : source.unary.shape[1]]
            streams = self.symbols.point(streams, weights)
        return completed(
            outputs, binary_hidden_state=binary, past_key_values=past_key_values,
            symbol_pointer=streams.pointer, **streams.fields(),
        )  # fmt: skip

    def _cache(self, cache: Cache | None, use_cache: bool | None) -> Cache | None:
        """The cache to go on from, or a new one."""
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
            use_premise_layers(cache.self_attention_cache if has_source else cache, slots)
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
        """The streams over the tokens, and the encoder's atoms, a row for each row of them."""
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
            known = Streams.of(encoder_outputs, hidden.dtype)
            streams = self.symbols.follow(known, ids_BT, mask, cache, HISTORY)
            number = streams.ids.shape[1] if self.config.encoding.opens_streams else 1
            source = Source(
                unpacked(match_rows(hidden, batch), number),
                unpacked(pairs, number),
            )
        if cache is not None and not streams.within:  # else `follow` has noted the tokens
            count = ids_BT[:, None, :, None]
            cache.update(count, count[..., :0], HISTORY)
        return streams, source

    def _before(
        self,
        visible: torch.Tensor,
        distances: torch.Tensor,
        source: int,
        mask_BL: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What is visible, and distances, with the columns of the source in front."""
        rows = distances.shape[1]
        # The source is another sequence.
        other = distances.new_full((distances.shape[0], rows, source), self.config.max_distance)
        shown = visible.new_ones(1, 1, source) if mask_BL is None else mask_BL[:, None] > 0
        batch = max(visible.shape[0], shown.shape[0])
        parts = (shown.expand(batch, rows, -1), visible.expand(batch, -1, -1))
        return torch.cat(parts, dim=-1), torch.cat((other, distances), dim=-1)

    def _relations(self, streams: Streams) -> tuple[torch.Tensor, ...]:
        """What `FolnetEmbeddings` takes: within the text, across, and written; over all columns."""
        if not streams.within:
            return ()
        within, (across, written) = streams.within[0], streams.across
        before, behind = across.shape[-1], within.shape[-1]
        return (
            F.pad(within, (before, 0)), F.pad(across, (0, behind)), F.pad(written, (0, behind)),
        )  # fmt: skip

    def _columns(
        self,
        index: int,
        streams: int,
        source: Source | None,
        cache: Cache | None,
        own: Cache | None,
    ) -> Columns:
        across = cache if source is not None else None
        return Columns(1 + len(SLOTS) * index, streams, source, own, across)


def _keep_tokens(outputs: FolnetOutput, length: int) -> None:
    """Leave out the segments behind the tokens."""
    assert outputs.last_hidden_state is not None
    outputs.last_hidden_state = outputs.last_hidden_state[:, :length]
    if outputs.hidden_states is not None:
        outputs.hidden_states = (*outputs.hidden_states[:-1], outputs.last_hidden_state)
    if outputs.binary_hidden_state is not None:
        outputs.binary_hidden_state = outputs.binary_hidden_state[:, :length, :length]


def packed(x: torch.Tensor, streams: int) -> torch.Tensor:
    """(B * S, ..., D) -> (B, ..., S * D)."""
    if streams == 1:
        return x
    return x.unflatten(0, (-1, streams)).movedim(1, -2).flatten(-2)


def unpacked(x: torch.Tensor, streams: int) -> torch.Tensor:
    """(B, ..., S * D) -> (B * S, ..., D)."""
    if streams == 1:
        return x
    return x.unflatten(-1, (streams, -1)).movedim(-2, 1).flatten(0, 1)


def for_streams(x: torch.Tensor, streams: int) -> torch.Tensor:
    """What there is (B or 1, ...) for each sample, for each of its streams: (N or 1, ...)."""
    return x if streams == 1 or x.shape[0] == 1 else x.repeat_interleave(streams, dim=0)


def one_stream(relations: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Relations (B, 1, T, M) as the layers take them: (B, T, M)."""
    return tuple(relation[:, 0] for relation in relations)


def seen(
    keys: int,
    rows: int,
    mask: torch.Tensor | None,
    prefix: torch.Tensor | None,
    device: torch.device,
) -> torch.Tensor:
    """Which of all tokens each of the last `rows` sees: (B or 1, rows, keys).

    Args:
        mask: 1 for tokens, 0 for padding: (B, keys).
        prefix: 1 for tokens that see each other in both directions, from the first one on:
            (B, keys) or shorter.
    """
    number = torch.arange(keys, device=device)
    visible = (number[None] <= number[-rows:, None])[None]
    if prefix is not None:
        inside = F.pad(prefix > 0, (0, max(0, keys - prefix.shape[1])))[:, :keys]
        visible = visible | (inside[:, -rows:, None] & inside[:, None])
    if mask is not None:
        visible = visible & (mask[:, None] > 0)
    return visible


class FolnetModel(FolnetPreTrainedModel):
    """The atoms that a text, or a source and a target, give.

    Args:
        config: its form says whether there is an encoder, a decoder, or both.
        remembers: keep what the encoder finds about each symbol, where the encoding asks for that;
            a head that gives no tokens has no use for it.
        pools: give a vector of the whole input, in an encoder.
    """

    def __init__(self, config: FolnetConfig, remembers: bool = True, pools: bool = True):
        super().__init__(config)
        encoding = config.encoding(config)
        self.shared: nn.Module = nn.Embedding(encoding.num_rows, encoding.row_dim)
        self.symbol_draws = SymbolDraws.of(config)
        memory = config.encoding.memory(config, config.num_attention_heads)
        self.symbol_memory = memory if remembers else None
        self.symbols = SymbolLayer(config, self.symbol_draws, self)
        self.encoder = None if config.is_decoder else FolnetEncoder(config, self.symbols)
        decodes = config.is_decoder or config.is_encoder_decoder
        self.decoder = FolnetDecoder(config, self.symbols) if decodes else None
        self.pooler = FolnetPooler(config) if pools and not decodes else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.shared = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        prefix_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = True,
        segment_ids: torch.Tensor | None = None,
        segment_starts: torch.Tensor | None = None,
        segment_ends: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> FolnetOutput | FolnetSeq2SeqOutput:
        """Encode, decode, or both; arguments as in [`FolnetEncoder`] and [`FolnetDecoder`].

        Raises:
            ValueError: an input is missing, or does not fit the form of the model.
        """
        refuse_vectors(kwargs)
        refuse_positions(kwargs)
        if prefix_mask is not None and self.encoder is not None:
            raise ValueError(
                "prefix_mask is for a decoder alone (is_decoder=True): an encoder sees its input "
                "in both directions, and the decoder beside it has no prefix. Leave it out"
            )
        returned = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
            "return_dict": True,
        }
        if self.encoder is None:
            assert self.decoder is not None
            return self.decoder(
                input_ids, None, attention_mask, None, past_key_values, use_cache, prefix_mask,
                output_binary_states=output_binary_states, **returned,
            )  # fmt: skip
        if encoder_outputs is None:
            wanted = output_binary_states or self.decoder is not None
            encoder_outputs = self.encoder(
                input_ids, attention_mask, token_type_ids, stream_ids,
                output_binary_states=wanted, segment_ids=segment_ids,
                segment_starts=segment_starts, segment_ends=segment_ends, **returned,
            )  # fmt: skip
        if self.decoder is None:
            encoded: Any = encoder_outputs
            if self.pooler is None:
                return encoded
            pooled = self.pooler(self.view(encoded), attention_mask)
            return completed(encoded, pooler_output=pooled)
        if decoder_input_ids is None:
            raise ValueError(
                "decoder_input_ids are missing (or give labels to the model with a head)"
            )
        source = self._complete(encoder_outputs, stream_ids, input_ids, attention_mask)
        decoded = self.decoder(
            decoder_input_ids, source, decoder_attention_mask, attention_mask, past_key_values,
            use_cache, output_binary_states=output_binary_states, **returned,
        )  # fmt: skip
        return _both(decoded, source)

    def _complete(
        self,
        outputs: ModelOutput | tuple,
        stream_ids: torch.Tensor | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
    ) -> FolnetOutput:
        """Accept what other code makes of the encoder's output, if no atoms are lost.

        Raises:
            ValueError: they are.
        """
        if isinstance(outputs, (tuple, list)):
            binary = outputs[1] if len(outputs) > 1 else None
        else:
            binary = getattr(outputs, "binary_hidden_state", None)
        if binary is None or binary.dim() != 4:
            raise ValueError(
                "encoder_outputs lack binary_hidden_state: pass the output of model.get_encoder() "
                "as it is"
            )
        known = self.complete_encoder_output(outputs, stream_ids, input_ids, attention_mask)
        return FolnetOutput(**{**known, "binary_hidden_state": binary})

    def view(self, outputs: FolnetOutput) -> torch.Tensor:
        """One vector for each position of an encoder's input: (B, L, D1).

        At a symbol it is that of its own stream, elsewhere the mean over the streams.
        """
        hidden = outputs.last_hidden_state
        if not self.config.encoding.opens_streams:
            return hidden
        hidden_BSLD = unpack_streams(hidden, self.config.hidden_size)
        return Streams.of(outputs, hidden.dtype).aggregate(hidden_BSLD)[:, 0]


def _both(decoded: FolnetOutput, source: FolnetOutput) -> FolnetSeq2SeqOutput:
    return FolnetSeq2SeqOutput(
        last_hidden_state=decoded.last_hidden_state,
        binary_hidden_state=decoded.binary_hidden_state,
        past_key_values=decoded.past_key_values,
        decoder_hidden_states=decoded.hidden_states,
        decoder_attentions=decoded.attentions,
        encoder_last_hidden_state=source.last_hidden_state,
        encoder_binary_hidden_state=source.binary_hidden_state,
        encoder_hidden_states=source.hidden_states,
        encoder_attentions=source.attentions,
        stream_ids=decoded.stream_ids,
        own_streams=decoded.own_streams,
        renaming=decoded.renaming,
        symbol_memory=decoded.symbol_memory,
        symbol_pointer=decoded.symbol_pointer,
    )


class FolnetPooler(nn.Module):
    """A vector of the whole input, from its first token (Appendix A.4)."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, view_BLD: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        """(B, D1)."""
        return self.dense(first_states(view_BLD, attention_mask)).tanh()


class FolnetLMHead(FolnetPreTrainedModel, SymbolHead):
    """A FOLNet whose output is a score for each id, and its loss."""

    form: str
    pairs = False

    def __init__(self, config: FolnetConfig):
        check_form(config, type(self).__name__, self.form)
        super().__init__(config)
        self.folnet = FolnetModel(config, pools=self.pairs)
        self.logit_scale = LogitScale(config.initial_logit_scale, config.adacos)

    def get_input_embeddings(self) -> nn.Module:
        return self.folnet.shared

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.folnet.set_input_embeddings(value)

    def get_output_embeddings(self) -> None:
        """None: the projection is the embedding itself."""
        return None


class FolnetPredictions(nn.Module):
    """What masked prediction does before and behind the tied projection, as BERT does."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.transform = FolnetTransform(config)
        self.vocabulary_of = config
        self.bias = nn.Parameter(torch.zeros(config.num_base_tokens))

    def resize(self) -> None:
        """Cut the bias, or add zeros to it, where the vocabulary has another size."""
        more = self.vocabulary_of.num_base_tokens - len(self.bias)
        self.bias = nn.Parameter(F.pad(self.bias.detach(), (0, more)), self.bias.requires_grad)

    def forward(self, logits_BTV: torch.Tensor) -> torch.Tensor:
        """Logits with the bias of base tokens; symbols have none, as they have no names."""
        vocabulary = self.vocabulary_of.vocabulary
        symbols = self.bias.new_zeros(vocabulary.num_symbols)
        return logits_BTV + vocabulary.join(self.bias, symbols, dim=0)


class FolnetTransform(nn.Module):
    """A dense layer, an activation and a norm."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACT2FN[config.hidden_act]
        self.norm = layer_norm(config, config.hidden_size)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Of the same shape."""
        return self.norm(self.activation(self.dense(hidden)))


class FolnetPreTrainingHeads(nn.Module):
    """Masked prediction, and whether two sentences belong together or stand in order."""

    def __init__(self, config: FolnetConfig, pairs: bool):
        super().__init__()
        self.predictions = FolnetPredictions(config)
        if pairs:
            self.seq_relationship = nn.Linear(config.hidden_size, 2)


class FolnetForMaskedLM(FolnetLMHead):
    """FOLNet that predicts masked tokens (MLM)."""

    form = "encoder"

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.cls = FolnetPreTrainingHeads(config, self.pairs)
        self.post_init()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        embedding = super().resize_token_embeddings(*args, **kwargs)
        self.cls.predictions.resize()
        return embedding

    def _logits(self, hidden_BSTD: Any, streams: Streams) -> torch.Tensor:
        predictions = self.cls.predictions
        logits = super()._logits(predictions.transform(hidden_BSTD), streams)
        return predictions(logits)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetLMOutput:
        """Scores of each id at each position, and the loss where labels are given.

        Args:
            labels: (B, L), -100 where no loss is wanted. The others are as in [`FolnetEncoder`].
            num_items_in_batch: labelled tokens of the whole optimiser step.
        """
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, output_attentions,
            output_hidden_states, output_binary_states, **kwargs,
        )  # fmt: skip
        return self._predict(outputs, labels, num_items_in_batch)

    def _predict(
        self,
        outputs: FolnetOutput,
        labels: torch.Tensor | None,
        num_items: torch.Tensor | int | None,
    ) -> FolnetLMOutput:
        check_label_rows(labels, *outputs.last_hidden_state.shape[:2])
        hidden_BSLD = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
        streams = Streams.of(outputs, hidden_BSLD.dtype)
        logits, loss = self.predict(hidden_BSLD, streams, labels, num_items)
        return FolnetLMOutput(loss=loss, logits=logits, **states_of(outputs))


class FolnetForPreTraining(FolnetForMaskedLM):
    """FOLNet that predicts masked tokens, and how two sentences belong together (NSP or SOP)."""

    pairs = True

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        next_sentence_label: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetLMOutput:
        """As in [`FolnetForMaskedLM`], and scores of the pair.

        Args:
            next_sentence_label: (B,); by convention 0 where the second sentence follows the first
                (NSP) or both are in order (SOP), else 1. The loss is the sum of both; with
                `num_items_in_batch`, that of the pairs counts by the share of labelled tokens.

        Raises:
            ValueError: there are such labels, and no `token_type_ids` that tell sentences apart.
        """
        if next_sentence_label is not None:
            check_dimensions(input_ids, 2)
            assert input_ids is not None
            check_label_shape(next_sentence_label, len(input_ids), name="next_sentence_label")
            next_sentence_label = next_sentence_label.flatten()
            check_told_apart(token_type_ids, next_sentence_label)
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, output_attentions,
            output_hidden_states, output_binary_states, **kwargs,
        )  # fmt: skip
        predicted = self._predict(outputs, labels, num_items_in_batch)
        pairs, total = self.cls.seq_relationship(outputs.pooler_output), predicted.loss
        if next_sentence_label is not None:
            check_classes(next_sentence_label, 2, "next_sentence_label")
            loss = class_loss(pairs, next_sentence_label)
            if labels is not None and num_items_in_batch is not None:
                items = torch.as_tensor(num_items_in_batch, device=loss.device).clamp(min=1)
                loss = loss * (labels != IGNORE).sum().to(loss.device) / items
            total = loss if total is None else total + loss
        return completed(predicted, loss=total, seq_relationship_logits=pairs)


class FolnetHead(FolnetPreTrainedModel):
    """A FOLNet with an output of its own on the view of an encoder's atoms.

    Its loss is a mean over the batch, which Trainer divides by the number of micro-batches.
    """

    accepts_loss_kwargs = False

    pools = True

    def __init__(self, config: FolnetConfig):
        check_form(config, type(self).__name__, "encoder")
        super().__init__(config)
        self.folnet = FolnetModel(config, remembers=False, pools=self.pools)
        dropout = config.classifier_dropout
        self.dropout = nn.Dropout(config.hidden_dropout_prob if dropout is None else dropout)


def states_of(outputs: FolnetOutput) -> dict[str, Any]:
    """The fields of the encoder's output that every output has."""
    return {
        "binary_hidden_state": outputs.binary_hidden_state,
        "hidden_states": outputs.hidden_states,
        "attentions": outputs.attentions,
    }


class FolnetForSequenceClassification(FolnetHead):
    """FOLNet that gives a text, or a pair of texts, a class or a number."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        **kwargs: Any,
    ) -> FolnetClassOutput:
        """Scores of the classes, and the loss where labels are given.

        Args:
            labels: (B,); classes, or numbers where `config.num_labels` is 1; (B, num_labels) where
                `config.problem_type` says that there are several, each from 0 to 1 in
                `"multi_label_classification"`. The others are as in [`FolnetEncoder`].

        Raises:
            ValueError: labels are too few or too many, or no such label exists.
        """
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, output_attentions,
            output_hidden_states, output_binary_states, **kwargs,
        )  # fmt: skip
        logits = self.classifier(self.dropout(outputs.pooler_output))
        loss = None
        if labels is not None:
            wanted = labels_for_loss(labels, logits, self.config)
            loss = self.loss_function(wanted, logits.float(), self.config)
        return FolnetClassOutput(loss=loss, logits=logits, **states_of(outputs))


class FolnetForTokenClassification(FolnetHead):
    """FOLNet that gives each token a class."""

    pools = False

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        **kwargs: Any,
    ) -> FolnetClassOutput:
        """Scores of the classes at each position; `labels` (B, L), -100 where no loss is wanted."""
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, output_attentions,
            output_hidden_states, output_binary_states, **kwargs,
        )  # fmt: skip
        logits = self.classifier(self.dropout(self.folnet.view(outputs)))
        loss = None
        if labels is not None:
            check_label_rows(labels, *logits.shape[:2])
            check_classes(labels, self.num_labels)
            loss = class_loss(logits, labels)
        return FolnetClassOutput(loss=loss, logits=logits, **states_of(outputs))


class FolnetForMultipleChoice(FolnetHead):
    """FOLNet that chooses between several texts, or pairs."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        **kwargs: Any,
    ) -> FolnetClassOutput:
        """Scores (B, choices); inputs are (B, choices, L), `labels` (B,)."""
        refuse_vectors(kwargs)
        check_dimensions(input_ids, 3)
        assert input_ids is not None
        choices = input_ids.shape[1]
        for name, value in kwargs.items():
            if name.startswith("segment_") and value is not None:
                kwargs[name] = value.flatten(0, 1)
        ids, mask, types, streams = (
            None if x is None else x.flatten(0, 1)
            for x in (input_ids, attention_mask, token_type_ids, stream_ids)
        )
        outputs = self._encode(
            ids, mask, types, streams, output_attentions, output_hidden_states,
            output_binary_states, **kwargs,
        )  # fmt: skip
        logits = self.classifier(self.dropout(outputs.pooler_output)).view(-1, choices)
        loss = None
        if labels is not None:
            check_label_shape(labels, len(logits))
            check_classes(labels, choices)
            loss = class_loss(logits, labels)
        return FolnetClassOutput(loss=loss, logits=logits, **states_of(outputs))


class FolnetForQuestionAnswering(FolnetHead):
    """FOLNet that finds where an answer begins and ends (Equation 5)."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        **kwargs: Any,
    ) -> FolnetSpanOutput:
        """Scores of starts and ends, and the loss where both are given.

        Args:
            start_positions, end_positions: tokens at which the answers begin and end, beyond the
                input for no loss: (B,). The others are as in [`FolnetEncoder`].

        Raises:
            ValueError: one of them is missing or negative, or has not B numbers.
        """
        check_span(start_positions, end_positions)
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, output_attentions,
            output_hidden_states, output_binary_states, **kwargs,
        )  # fmt: skip
        start, end = self.qa_outputs(self.folnet.view(outputs)).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            check_label_shape(start_positions, len(start), name="start_positions")
            check_label_shape(end_positions, len(end), name="end_positions")
            loss = (place_loss(start, start_positions) + place_loss(end, end_positions)) / 2
        return FolnetSpanOutput(
            loss=loss,
            start_logits=start.contiguous(),
            end_logits=end.contiguous(),
            **states_of(outputs),
        )


class FolnetGenerator(FolnetLMHead, GenerationMixin):
    """A FOLNet that writes."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.post_init()
        # Trainer writes the opposite into every configuration that it trains.
        self.generation_config.use_cache = True

    def get_encoder(self, *args: Any, **kwargs: Any) -> Any:
        return self.folnet.encoder

    def get_decoder(self, *args: Any, **kwargs: Any) -> Any:
        return self.folnet.decoder


class FolnetForCausalLM(FolnetGenerator):
    """FOLNet that goes on with a text: a causal or a prefix language model (Appendix A.5)."""

    form = "decoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        prefix_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs: Any,
    ) -> FolnetLMOutput:
        """Scores of the next token at each position, and the loss where labels are given.

        Args:
            prefix_mask: 1 for tokens that see each other in both directions, (B, T) or shorter; by
                default, with `config.prefix_lm` and `labels`, the tokens before the first label.
            labels: the same ids, -100 where no loss is wanted: (B, T). The model compares each with
                the prediction of the position before. The others are as in [`FolnetDecoder`].
            logits_to_keep: how many of the last positions have scores and a loss, 0 for all; or
                which ones, as indices.
            **kwargs: `shift_labels`, in place of `labels`: the token that follows each one, (B, T);
                where a text is cut into parts, the last token of a part needs it.

        Raises:
            ValueError: an input is missing or does not fit the others.
        """
        refuse_vectors(kwargs)
        check_dimensions(input_ids, 2)
        assert input_ids is not None
        # No parameter: Trainer would ask for whatever is called labels.
        shift_labels = kwargs.pop("shift_labels", None)
        if shift_labels is None and labels is not None:
            check_label_rows(labels, *input_ids.shape)
            shift_labels = F.pad(labels[:, 1:], (0, 1), value=IGNORE)
        check_label_rows(shift_labels, *input_ids.shape)
        if shift_labels is not None and self.config.prefix_lm and prefix_mask is None:
            before_BT = F.pad(shift_labels, (1, 0), value=IGNORE)[:, :-1]
            prefix_mask = (before_BT != IGNORE).cumsum(1) == 0
        check_prefix(prefix_mask, len(input_ids))
        if shift_labels is not None and prefix_mask is not None:
            # Within the prefix, a position sees the token behind it.
            seen_BT = F.pad(prefix_mask, (0, shift_labels.shape[1] + 1 - prefix_mask.shape[1]))
            shift_labels = shift_labels.masked_fill(seen_BT[:, 1:] > 0, IGNORE)
        outputs = self.folnet(
            input_ids, attention_mask, past_key_values=past_key_values,
            use_cache=False if shift_labels is not None else use_cache, prefix_mask=prefix_mask,
            output_attentions=output_attentions, output_hidden_states=output_hidden_states,
            output_binary_states=output_binary_states, return_dict=True, **kwargs,
        )  # fmt: skip
        hidden_BSTD = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
        streams = Streams.of(outputs, hidden_BSTD.dtype)
        last = isinstance(logits_to_keep, int)
        kept = slice(-logits_to_keep, None) if last else logits_to_keep
        wanted = None if shift_labels is None else shift_labels[:, kept]
        logits, loss = self.predict(hidden_BSTD[:, :, kept], streams, wanted, num_items_in_batch)
        return FolnetLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            **states_of(outputs),
        )

    def generate(self, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """As in Transformers; with `config.prefix_lm`, the prompt is a prefix.

        Raises:
            ValueError: with `config.prefix_lm`, `past_key_values` holds tokens and there is no
                `prefix_mask`: what is cached has not seen the rest of the prompt.
        """
        prompt = kwargs.get("input_ids") if inputs is None else inputs
        if prompt is not None:
            check_dimensions(prompt, 2)
        if self.config.prefix_lm and prompt is not None and kwargs.get("prefix_mask") is None:
            # An assistant only proposes tokens, and the model that it assists may have no prefix.
            if not getattr(kwargs.get("generation_config"), "is_assistant", False):
                check_cached_prefix(kwargs.get("past_key_values"))
            mask = kwargs.get("attention_mask")
            kwargs["prefix_mask"] = torch.ones_like(prompt) if mask is None else mask
        return super().generate(inputs, *args, **kwargs)


class FolnetForConditionalGeneration(FolnetGenerator):
    """FOLNet that writes an answer to an input (Appendix A.5)."""

    form = "encoder-decoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetLMOutput:
        """Next-token logits, and the loss where labels are given.

        Args:
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`. The
                others are as in [`FolnetEncoder`] and [`FolnetDecoder`].
        """
        if labels is not None:
            use_cache = False
            check_dimensions(labels, 2, "labels")
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.folnet(
            input_ids, attention_mask, token_type_ids, stream_ids, decoder_input_ids,
            decoder_attention_mask, encoder_outputs, past_key_values, use_cache,
            output_attentions=output_attentions, output_hidden_states=output_hidden_states,
            output_binary_states=output_binary_states, return_dict=True, **kwargs,
        )  # fmt: skip
        rows = outputs.encoder_last_hidden_state.shape[0]
        check_label_rows(labels, rows, outputs.last_hidden_state.shape[1])
        hidden_BSTD = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
        streams = Streams.of(outputs, hidden_BSTD.dtype)
        logits, loss = self.predict(hidden_BSTD, streams, labels, num_items_in_batch)
        shared = {name: value for name, value in outputs.items() if name in SHARED}
        return FolnetLMOutput(loss=loss, logits=logits, **shared)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Labels shifted right behind the start token; -100 becomes padding.

        Raises:
            ValueError: the configuration names no start token or no padding.
        """
        if self.config.decoder_start_token_id is None or self.config.pad_token_id is None:
            raise ValueError(
                "set decoder_start_token_id and pad_token_id in the configuration, or make it by "
                "FolnetConfig.for_tokenizer(tokenizer, is_encoder_decoder=True)"
            )
        return shift_right(labels, self.config)


SHARED = (
    "past_key_values",
    "binary_hidden_state",
    "decoder_hidden_states",
    "decoder_attentions",
    "encoder_last_hidden_state",
    "encoder_binary_hidden_state",
    "encoder_hidden_states",
    "encoder_attentions",
)
FORMS = {
    "encoder": "is_decoder=False, is_encoder_decoder=False",
    "decoder": "is_decoder=True",
    "encoder-decoder": "is_encoder_decoder=True",
}


def check_form(config: FolnetConfig, name: str, wanted: str) -> None:
    """Raise a ValueError if a model needs a configuration of another form."""
    form = "decoder" if config.is_decoder else "encoder"
    form = "encoder-decoder" if config.is_encoder_decoder else form
    if form != wanted:
        raise ValueError(
            f"{name} is a model of the form {wanted!r}, and the configuration is of {form!r}: make "
            f"it with FolnetConfig({FORMS[wanted]})"
        )


__all__ = [
    "FolnetDecoder",
    "FolnetEncoder",
    "FolnetForCausalLM",
    "FolnetForConditionalGeneration",
    "FolnetForMaskedLM",
    "FolnetForMultipleChoice",
    "FolnetForPreTraining",
    "FolnetForQuestionAnswering",
    "FolnetForSequenceClassification",
    "FolnetForTokenClassification",
    "FolnetModel",
    "FolnetPreTrainedModel",
]
