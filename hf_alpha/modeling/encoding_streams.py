"""Encoding `streams`: one stream for each symbol of the input (2601.23169).

    row(i, s) = actual row of the class of i       if s is the stream of i,
                placeholder row of that class      in all other streams (Algorithm 1)
    logit(t, i) = h_ts . actual row                of a symbol i, from its own stream s
                  mean over s of h_ts . w_i        of a base token (Algorithm 5)

In between, streams see each other through an aggregated view (`Streams.aggregate`, Algorithm 2). In
a host, the streams of a sample are rows of the host's batch.

Shapes: B batch, S streams, L or T length, D width, R rows, V vocabulary.
"""

from collections.abc import Callable

import torch

from .encoding import SymbolEncoding, listed_logits
from .streams import Streams
from .symbols import mean_streams


class StreamsEncoding(SymbolEncoding):
    """A class has two rows, whatever the vocabulary: the actual one, then the placeholder."""

    name = "streams"
    description = (
        "A symbol-invariant model (arXiv 2601.23169): one stream per symbol, so renaming "
        "a problem renames its answer and changes nothing else, and symbols can be added after "
        "training with `extend_symbols`."
    )
    promises = frozenset({"renaming", "extension"})
    lists_symbols = True
    opens_streams = True
    sees_names = False
    rows_per_class = 2

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        actual, placeholder = (
            self.vocabulary.rows(ids_BL, per_class=2, nth=nth)[:, None] for nth in (0, 1)
        )
        stream = torch.arange(streams.ids.shape[1], device=ids_BL.device)[None, :, None]
        return torch.where(streams.own[:, None] == stream, actual, placeholder)

    def actual_rows(self, streams: Streams) -> torch.Tensor:
        """Returns the row of each stream's symbol, any row for padding: (B, S)."""
        return self.vocabulary.rows(streams.ids.clamp(min=0), per_class=2, nth=0)

    def logits(
        self,
        scores_BSTR: torch.Tensor,
        streams: Streams,
        mean: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = mean_streams,
    ) -> torch.Tensor:
        """Returns logits by Algorithm 5; symbols that a sample has no stream for: `UNUSABLE`.

        Args:
            mean: over streams, with weights (B, S).
        """
        base = scores_BSTR[..., : self.vocabulary.num_base_rows]
        base_BTV = mean(base, streams.weights.to(base))
        actual_BS = self.actual_rows(streams)
        index = actual_BS[:, :, None, None].expand(-1, -1, scores_BSTR.shape[2], 1)
        own_BTS = scores_BSTR.gather(-1, index)[..., 0].transpose(1, 2)
        return listed_logits(base_BTV, own_BTS, streams, self.vocabulary)
