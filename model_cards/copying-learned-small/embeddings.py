"""Embeddings of base tokens and symbols.

Shapes: B batch, S streams, L length, D model width, R rows of the table.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .configuration_alpha import AlphaConfig


class AlphaEmbedding(nn.Embedding):
    """Base tokens' rows, then the symbols' rows; shared by encoder, decoder and projection.

    `learned` has one row per symbol. `streams` has two per symbol class, whatever the vocabulary:
    the actual row, which a stream gives to its own symbol, and the placeholder row, which it gives
    to all others of the class (2601.23169, Algorithm 1).
    """

    def __init__(self, config: AlphaConfig):
        self.streams = config.symbol_encoding == "streams"
        symbols = 2 * len(config.symbol_classes) if self.streams else config.num_symbols
        super().__init__(config.num_base_tokens + symbols, config.d_model)
        self.config = config
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def rows(self) -> torch.Tensor:
        """The table as it is used, of unit rows where `normalize_embeddings` is set: (R, D)."""
        if self.config.normalize_embeddings:
            return F.normalize(self.weight, dim=-1)
        return self.weight

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

    def forward(self, ids_BL: torch.Tensor, own_BL: torch.Tensor, num_streams: int) -> torch.Tensor:  # type: ignore[override]
        """Embed tokens once per stream: (B, S, L, D).

        Args:
            ids_BL: token ids.
            own_BL: index of the stream centred on each token, -1 for none.
            num_streams: S; 1 for `learned`.
        """
        if not torch.compiler.is_compiling() and ids_BL.device.type == "cpu":
            self._check_ids(ids_BL)  # elsewhere it would cost a synchronisation
        if not self.streams:
            rows_BSL = ids_BL[:, None]
        else:
            placeholder = self.placeholder_rows(ids_BL)[:, None]
            stream = torch.arange(num_streams, device=ids_BL.device)[None, :, None]
            rows_BSL = torch.where(own_BL[:, None] == stream, placeholder - 1, placeholder)
        return F.embedding(rows_BSL, self.rows()) * self.scale


__all__ = ["AlphaEmbedding"]
