"""Encoding `dual_part`: a learned part that a class shares, and a random part of each symbol.

    w_i = [c(i) ; r_i]    for a symbol i of class c(i), with a random r_i of K dimensions
    w_i = [b_i ; 0]       for a base token

(2410.17161, Section 4.1; Section 4.2 says how random parts are drawn.) Draws are those of
`SymbolDraws`: one for inference, a new one in each step of training. In a host, random parts are
added to the last dimensions of the row of the class, on the way in and before the head.

Shapes: B batch, L or T length, D width, K random dimensions, R rows, N symbols of the vocabulary,
V vocabulary.
"""

import torch
from torch.nn import functional as F
from transformers import PreTrainedConfig

from .encoding import SymbolEncoding
from .random_numbers import capacity
from .streams import Streams


class DualPartEncoding(SymbolEncoding):
    """One row per class is trained, of D - K dimensions; the table has a row for each symbol."""

    name = "dual_part"
    description = (
        "A model with dual-part embeddings (arXiv 2410.17161): symbols share a learned "
        "part and each has a random part of its own, so symbols can be added after training with "
        "`extend_symbols`. The draw of random parts lies in the checkpoint; "
        "`model.redraw_symbols(seed)` makes another one."
    )
    promises = frozenset({"close extension"})
    random_parts = True
    rows_per_class = 1

    @classmethod
    def validate(cls, config: PreTrainedConfig, num_symbols: int) -> None:
        super().validate(config, num_symbols)
        widest = config.max_random_dim
        if not 0 < config.random_dim <= widest:
            raise ValueError(
                f"random_dim must lie between 1 and {widest}, not {config.random_dim}: the model "
                f"is {config.hidden_size} wide"
            )
        vectors = capacity(config.random_method, config.random_dim)
        if vectors is not None and num_symbols > vectors:
            raise ValueError(
                f"{num_symbols} symbols need as many random parts, but there are only {vectors} "
                f"{config.random_method} with random_dim {config.random_dim}: choose a larger "
                'random_dim, or random_method "normal"'
            )

    @property
    def shape(self) -> tuple[int, int]:
        # Without `super().shape`, which torch.compile does not follow.
        return len(self.vocabulary.ranges) + self.vocabulary.num_base_tokens, (
            self.config.hidden_size - self.config.random_dim
        )

    def table(self, trained_RD: torch.Tensor, parts: torch.Tensor | None) -> torch.Tensor:
        """Returns a row for each id: w_i above."""
        assert parts is not None
        learned = F.normalize(trained_RD, dim=-1) if self.config.normalize_parts else trained_RD
        vocabulary = self.vocabulary
        base, classes = learned.split([vocabulary.num_base_tokens, len(vocabulary.ranges)])
        shared = [classes[number - 1].expand(stop - start, -1)
                  for start, stop, number in vocabulary.spans]  # fmt: skip
        symbols = torch.cat((torch.cat((classes[:0], *shared)), parts), dim=-1)
        table = vocabulary.join(F.pad(base, (0, parts.shape[-1])), symbols, dim=0)
        return super().table(table, None)

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns the ids themselves; over a host's table, rows of classes."""
        if self.vocabulary.class_rows is None:
            return ids_BL[:, None]
        return super().rows(ids_BL, streams)
