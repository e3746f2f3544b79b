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
            version: `weight_version` of the model's weights.
        """
        if self._watch.has_passed(version):
            self.step += 1
            self._ahead = self._ahead[1:]
        self._watch.see(version)

    def key(self) -> torch.Tensor:
        """Key of the current optimiser step."""
        return draw_key(self.config.symbol_seed, self.step)

    def columns(self, training: bool) -> torch.Tensor:
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


class AlphaEmbedding(nn.Embedding):
    """Base tokens' rows, then the symbols' rows; shared by encoder, decoder and projection.

    `learned` has one row per symbol. `streams` has two per symbol class, whatever the vocabulary:
    the actual row, which a stream gives to its own symbol, and the placeholder row, which it gives
    to all others of the class (2601.23169, Algorithm 1). `dual_part` trains one row per class, of
    D - K dimensions; a symbol's row is that and K random numbers of its own, 0 for base tokens
    (2410.17161, Section 4.1).

    Attributes:
        draws: what is drawn for symbols, if anything. Whoever makes the embedding registers it as
            a submodule: the embedding itself has several names in a state dict, which only
            parameters may have.
    """

    draws: SymbolDraws | None

    def __init__(self, config: AlphaConfig):
        self.streams = config.symbol_encoding == "streams"
        self.dual_part = config.symbol_encoding == "dual_part"
        classes = len(config.symbol_classes)
        symbols = 2 * classes if self.streams else classes if self.dual_part else config.num_symbols
        super().__init__(config.num_base_tokens + symbols, config.embedding_dim)
        self.config = config
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        draws = SymbolDraws(config) if config.draws_symbols else None
        object.__setattr__(self, "draws", draws)  # not as a submodule

    def advance(self) -> None:
        """Draw anew if an optimiser step has happened since the last call."""
        if self.draws is not None:
            self.draws.advance(self._weight_version())

    @torch.compiler.disable
    def _weight_version(self) -> int:
        return weight_version(self.weight)

    def _dual_rows(self) -> torch.Tensor:
        learned = F.normalize(self.weight, dim=-1) if self.config.normalize_parts else self.weight
        base = self.config.num_base_tokens
        spans = [
            (start, stop, base + number)
            for number, ranges in enumerate(self.config.symbol_ranges.values())
            for start, stop in ranges
        ]
        shared = [learned[row].expand(stop - start, -1) for start, stop, row in sorted(spans)]
        assert self.draws is not None
        columns = self.draws.columns(self.training).to(learned.dtype)
        return torch.cat((torch.cat((learned[:base], *shared)), columns), dim=-1)

    # -- rows -------------------------------------------------------------------------------------

    def rows(self) -> torch.Tensor:
        """The table as it is used, of unit rows where `normalize_embeddings` is set: (R, D)."""
        table = self._dual_rows() if self.dual_part else self.weight
        return F.normalize(table, dim=-1) if self.config.normalize_embeddings else table

    def placeholder_rows(self, ids_BL: torch.Tensor) -> torch.Tensor:
        """Row of each token in a stream of another symbol; base tokens keep theirs: (B, L)."""
        rows = ids_BL
        for row, ranges in zip(
            self._placeholders(), self.config.symbol_ranges.values(), strict=True
        ):
            for start, stop in ranges:
                rows = torch.where((ids_BL >= start) & (ids_BL < stop), row, rows)
        return rows

    def _check_ids(self, ids_BL: torch.Tensor) -> None:
        if torch.compiler.is_compiling() or ids_BL.device.type != "cpu":
            return  # elsewhere it would cost a synchronisation
        largest = int(ids_BL.max()) if ids_BL.numel() else 0
        if largest >= self.config.vocab_size:
            raise ValueError(
                f"token id {largest} is outside the model's vocabulary of "
                f"{self.config.vocab_size}: model and tokenizer must come from the same folder, "
                "and extend_symbols must be called on both"
            )

    def _placeholders(self) -> range:
        first = self.config.num_base_tokens + 1
        return range(first, first + 2 * len(self.config.symbol_classes), 2)

    # -- renaming ---------------------------------------------------------------------------------

    def renaming(
        self, ids_BL: torch.Tensor, mask_BL: torch.Tensor | None, symbol_ids_BS: torch.Tensor
    ) -> torch.Tensor | None:
        """What each id is called inside the model, sample by sample: (B, V); None if ids stay.

        Args:
            symbol_ids_BS: for `first_occurrence`, the samples' symbols in that order, -1 padded.
        """
        config = self.config
        if not config.renames:
            return None
        self._check_ids(ids_BL)
        if config.symbol_renaming == "first_occurrence":
            return canonical_renaming(symbol_ids_BS, self._classes())
        if not self.training:
            return None
        assert self.draws is not None
        key = self.draws.key()
        if config.symbol_renaming == "random_per_batch":
            keys = key.expand(len(ids_BL))
        else:
            mask = ids_BL != config.pad_token_id if mask_BL is None else mask_BL > 0
            keys = sample_keys(ids_BL, mask, key)
        return random_renaming(keys, self._classes())

    def _classes(self) -> torch.Tensor:
        """Number of each id's class, from 1 on, 0 for base tokens: (V,)."""
        ids = torch.arange(self.config.vocab_size, device=self.weight.device)
        classes = torch.zeros_like(ids)
        for number, ranges in enumerate(self.config.symbol_ranges.values(), start=1):
            for start, stop in ranges:
                classes = torch.where((ids >= start) & (ids < stop), number, classes)
        return classes

    def forward(  # type: ignore[override]
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
        self._check_ids(ids_BL)
        if renaming_BV is not None:
            ids_BL = renaming_BV.gather(1, ids_BL)
        if not self.streams:
            rows_BSL = ids_BL[:, None]
        else:
            placeholder = self.placeholder_rows(ids_BL)[:, None]
            stream = torch.arange(num_streams, device=ids_BL.device)[None, :, None]
            rows_BSL = torch.where(own_BL[:, None] == stream, placeholder - 1, placeholder)
        return F.embedding(rows_BSL, self.rows()) * self.scale


__all__ = ["AlphaEmbedding", "SymbolDraws"]
