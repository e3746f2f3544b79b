"""What FOLNet's stacks and heads are built of: base atoms, a step of deduction, parts of heads.

Shapes: B batch, S streams (1 unless the encoding opens streams), N = B * S, T positions whose atoms
are deduced, M positions that they relate to, D1 and D2 widths of unary and binary atoms, H heads.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer

from .checks import check_positions
from .configuration_folnet import FolnetConfig
from .logic_operators import OPERATORS, Atoms, BinaryBool, Join, Scope, UnaryBool
from .masks import first_states
from .segment_relations import Segments


def layer_norm(config: FolnetConfig, width: int) -> nn.LayerNorm:
    """Returns the norm in front of a deduction; it has weights where `layer_norm_affine` is set."""
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
        segments: Segments | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns unary base atoms (N, T, D1) and binary ones (N, T, M, D2).

        With segments, T and M count them behind the tokens.

        Args:
            words_BSTD: vectors of the tokens, from the symbol layer.
            positions: where tokens stand, counted from the first one: (B or 1, T).
            distances: numbers of the distances: (B or 1, T, M).
            relations: of the symbol layer, each (B, 1, T, M).
            token_type_ids: (B, T); all 0 by default. A segment has that of its first token.
            segments: symbolic segments beside the tokens.

        Raises:
            ValueError: a position has no vector.
        """
        unary = words_BSTD
        if segments is not None and self.segment_embeddings is not None:
            segment_vectors = self.segment_embeddings(segments.ids)[:, None]
            segment_vectors = segment_vectors.expand(-1, unary.shape[1], -1, -1)
            unary = torch.cat((unary, segment_vectors), dim=2)
        if not self.decodes:
            types = torch.zeros_like(positions) if token_type_ids is None else token_type_ids
            if segments is not None:
                types = segments.starting(types)
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
        if self.diagonal is not None:
            on_diagonal = self.diagonal(unary_BSTD).transpose(2, 3)
            atoms = atoms + on_diagonal.diag_embed(dim1=2, dim2=3)
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
            scope: what the atoms relate to.
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


class FolnetPooler(nn.Module):
    """Makes a vector of the whole input from its first token (Appendix A.4)."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, view_BLD: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        """Returns the vectors of the inputs: (B, D1).

        Args:
            view_BLD: a vector for each position, D1 wide.
            attention_mask: 1 for tokens, 0 for padding on either side: (B, L).
        """
        return self.dense(first_states(view_BLD, attention_mask)).tanh()


class FolnetPredictions(nn.Module):
    """What masked prediction does before and behind the tied projection, as in BERT."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.transform = FolnetTransform(config)
        self.vocabulary_of = config
        self.bias = nn.Parameter(torch.zeros(config.num_base_tokens))

    def resize(self) -> None:
        """Cuts the bias, or adds zeros to it, where the vocabulary has another size."""
        added = self.vocabulary_of.num_base_tokens - len(self.bias)
        self.bias = nn.Parameter(F.pad(self.bias.detach(), (0, added)), self.bias.requires_grad)

    def forward(self, logits_BTV: torch.Tensor) -> torch.Tensor:
        """Returns logits with the bias of base tokens; symbols have none, as they have no names."""
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
        """Transforms hidden states (..., D1); the shape stays."""
        return self.norm(self.activation(self.dense(hidden)))


class FolnetPreTrainingHeads(nn.Module):
    """Masked prediction, and whether two sentences belong together or stand in order."""

    def __init__(self, config: FolnetConfig, pairs: bool):
        super().__init__()
        self.predictions = FolnetPredictions(config)
        if pairs:
            self.seq_relationship = nn.Linear(config.hidden_size, 2)


__all__ = [
    "FolnetEmbeddings",
    "FolnetLayer",
    "FolnetPooler",
    "FolnetPreTrainingHeads",
    "for_streams",
    "layer_norm",
]
