"""Embeddings of base tokens and symbols.

Shapes: B batch, S streams, L length, D model width, R rows of the table, V vocabulary, K random
dimensions.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init
from transformers.modeling_utils import PreTrainedModel

from .configuration_alpha import AlphaConfig
from .draws import draw_key, sample_keys, symbol_vectors
from .steps import StepWatch, weight_version
from .symbols import canonical_renaming, random_renaming

INFERENCE = -1  # the step whose draw is kept for inference
AHEAD = 16  # steps that are drawn together, in as many operations as one


class SymbolDraws(nn.Module):
    """What is drawn for symbols: random parts and the keys of random renamings.

    Drawn anew in each optimiser step of training, the same in all its micro-batches and processes;
    inference uses one draw of random parts that is kept with the weights.

    Attributes:
        random_parts: of the symbols in inference, in the order of their ids: (V - base, K).
        step: optimiser steps so far.
    """

    random_parts: torch.Tensor
    step: torch.Tensor

    def __init__(self, config: AlphaConfig):
        super().__init__()
        self.config = config
        self.dual_part = config.symbol_encoding == "dual_part"
        if self.dual_part:
            self.register_buffer("random_parts", torch.empty(config.num_symbols, config.random_dim))
        self.register_buffer("step", torch.tensor(0))
        self.reset()

    @classmethod
    def of(cls, config: AlphaConfig) -> "SymbolDraws | None":
        """What a model of this configuration draws; None if nothing."""
        return cls(config) if config.draws_symbols else None

    @torch.no_grad()
    def reset(self) -> None:
        """Initialise what a checkpoint did not bring."""
        init.zeros_(self.step)
        if self.dual_part:
            init.copy_(self.random_parts, self._draw(0, INFERENCE))
        self._forget()

    def _forget(self) -> None:
        self._watch = StepWatch()
        self._ahead: list[torch.Tensor] = []  # columns of the current step and those to come

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """A state that is replaced is no optimiser step."""
        super()._load_from_state_dict(*args, **kwargs)
        self._forget()

    def redraw(self) -> None:
        """Draw the random parts for inference by the seed in the configuration."""
        self.random_parts = self._draw(0, INFERENCE).to(self.random_parts)
        self._ahead = []

    def extend(self) -> None:
        """Draw random parts for the symbols that the configuration has got; old ones stay."""
        self._ahead = []
        if self.dual_part:
            new = self._draw(len(self.random_parts), INFERENCE).to(self.random_parts)
            self.random_parts = torch.cat((self.random_parts, new))

    @torch.no_grad()
    def _draw(self, first: int, step: int | torch.Tensor) -> torch.Tensor:
        """Random parts of all symbols from number `first` on."""
        config, device = self.config, self.step.device
        symbols = torch.arange(first, config.num_symbols, device=device)
        key = draw_key(config.symbol_seed, torch.as_tensor(step, device=device))
        return symbol_vectors(config.random_method, symbols, config.random_dim, key)

    @torch.compiler.disable
    @torch.no_grad()
    def advance(self, version: int) -> None:
        """Count a step if the optimiser has moved the weights since the last call.

        Args:
            version: `weight_version` of the model.
        """
        if self._watch.has_passed(version):
            self.step += 1
            self._ahead = self._ahead[1:]
        self._watch.see(version)

    def key(self) -> torch.Tensor:
        """Key of the current optimiser step."""
        return draw_key(self.config.symbol_seed, self.step)

    def forward(self, training: bool) -> torch.Tensor:
        """Columns of all random parts as they are used, 0 for base tokens: (V, K)."""
        return self._current() if training else self._finish(self.random_parts)

    @torch.compiler.disable
    def _current(self) -> torch.Tensor:
        if not self._ahead or self._ahead[0].device != self.step.device:
            steps = self.step + torch.arange(AHEAD, device=self.step.device)
            self._ahead = list(self._finish(self._draw(0, steps[:, None])).unbind())
        return self._ahead[0]

    def _finish(self, parts: torch.Tensor) -> torch.Tensor:
        if self.config.normalize_parts:
            parts = F.normalize(parts, dim=-1)
        return F.pad(parts, (0, 0, self.config.num_base_tokens, 0))


class SymbolEmbedding:
    """How tokens become vectors, from the trained rows of an embedding and what is drawn.

    Base tokens' rows come first, then the symbols'. `learned` has one row per symbol. `streams` has
    two per symbol class, whatever the vocabulary: the actual row, which a stream gives to its own
    symbol, and the placeholder row, which it gives to all others of the class (2601.23169,
    Algorithm 1). `dual_part` trains one row per class, of D - K dimensions; a symbol's row is that
    and K random numbers of its own, 0 for base tokens (2410.17161, Section 4.1).

    Encoder, decoder and projection share one object, which is no module: the model that owns it has
    the only embedding module and what is drawn. The rows are always read by that module's
    `forward`, so that adapters in its place and offloading hooks, which work there, take part.

    Args:
        config: of the model.
        draws: what is drawn for symbols, if anything.
        owner: has the embedding; its trainable parameters tell when an optimiser step has happened.
    """

    def __init__(self, config: AlphaConfig, draws: SymbolDraws | None, owner: PreTrainedModel):
        self.config = config
        self.draws = draws
        self.owner = owner
        self.streams = config.symbol_encoding == "streams"
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    @torch.compiler.disable
    def weight_version(self) -> int:
        """A number that is larger after each optimiser step."""
        return weight_version(self.owner)

    def advance(self) -> None:
        """Draw anew if an optimiser step has happened since the last call."""
        if self.draws is not None:
            self.draws.advance(self.weight_version())

    # -- rows -------------------------------------------------------------------------------------

    def rows(self, device: torch.device) -> torch.Tensor:
        """The table as it is used, of unit rows where `normalize_embeddings` is set: (R, D)."""
        embedding = self.owner.get_input_embeddings()
        # With layers on several devices, the embedding may lie on another one.
        table = embedding(torch.arange(self.config.num_embedding_rows, device=device)).to(device)
        if self.config.symbol_encoding == "dual_part":
            table = self._dual_rows(table, embedding.training)
        return F.normalize(table, dim=-1) if self.config.normalize_embeddings else table

    def _dual_rows(self, learned: torch.Tensor, training: bool) -> torch.Tensor:
        if self.config.normalize_parts:
            learned = F.normalize(learned, dim=-1)
        base = self.config.num_base_tokens
        spans = [
            (start, stop, base + number)
            for number, ranges in enumerate(self.config.symbol_ranges.values())
            for start, stop in ranges
        ]
        shared = [learned[row].expand(stop - start, -1) for start, stop, row in sorted(spans)]
        assert self.draws is not None
        columns = self.draws(training).to(learned.dtype)
        return torch.cat((torch.cat((learned[:base], *shared)), columns), dim=-1)

    def placeholder_rows(self, ids_BL: torch.Tensor) -> torch.Tensor:
        """Row of each token in a stream of another symbol; base tokens keep theirs: (B, L)."""
        rows = ids_BL
        for row, ranges in zip(
            self._placeholders(), self.config.symbol_ranges.values(), strict=True
        ):
            for start, stop in ranges:
                rows = torch.where((ids_BL >= start) & (ids_BL < stop), row, rows)
        return rows

    def _placeholders(self) -> range:
        first = self.config.num_base_tokens + 1
        return range(first, first + 2 * len(self.config.symbol_classes), 2)

    # -- renaming ---------------------------------------------------------------------------------

    def renaming(
        self,
        ids_BL: torch.Tensor,
        mask_BL: torch.Tensor | None,
        symbol_ids_BS: torch.Tensor,
        training: bool,
    ) -> torch.Tensor | None:
        """What each id is called inside the model, sample by sample: (B, V); None if ids stay.

        Args:
            symbol_ids_BS: for `first_occurrence`, the samples' symbols in that order, -1 padded.
        """
        config = self.config
        if not config.renames:
            return None
        if config.symbol_renaming == "first_occurrence":
            return canonical_renaming(symbol_ids_BS, self._classes(ids_BL.device))
        if not training:
            return None
        assert self.draws is not None
        key = self.draws.key()
        if config.symbol_renaming == "random_per_batch":
            keys = key.expand(ids_BL.shape[0])
        else:
            mask = ids_BL != config.pad_token_id if mask_BL is None else mask_BL > 0
            keys = sample_keys(ids_BL, mask, key)
        return random_renaming(keys, self._classes(ids_BL.device))

    def _classes(self, device: torch.device) -> torch.Tensor:
        """Number of each id's class, from 1 on, 0 for base tokens: (V,)."""
        ids = torch.arange(self.config.vocab_size, device=device)
        classes = torch.zeros_like(ids)
        for number, ranges in enumerate(self.config.symbol_ranges.values(), start=1):
            for start, stop in ranges:
                classes = torch.where((ids >= start) & (ids < stop), number, classes)
        return classes

    # -- vectors ----------------------------------------------------------------------------------

    def embed(
        self,
        ids_BL: torch.Tensor,
        own_BL: torch.Tensor,
        num_streams: int,
        renaming_BV: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Embed tokens once per stream: (B, S, L, D).

        Args:
            ids_BL: token ids.
            own_BL: index of the stream centred on each token, -1 for none.
            num_streams: S; any number but for `streams`, which alone has more than one.
            renaming_BV: what ids are called inside the model.
        """
        if renaming_BV is not None:
            ids_BL = renaming_BV.gather(1, ids_BL)
        if not self.streams:
            rows_BSL = ids_BL[:, None]
        else:
            placeholder = self.placeholder_rows(ids_BL)[:, None]
            stream = torch.arange(num_streams, device=ids_BL.device)[None, :, None]
            rows_BSL = torch.where(own_BL[:, None] == stream, placeholder - 1, placeholder)
        return F.embedding(rows_BSL, self.rows(ids_BL.device)) * self.scale


__all__ = ["SymbolDraws", "SymbolEmbedding"]
