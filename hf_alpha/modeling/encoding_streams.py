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
from typing import Any

import torch
from torch.nn import functional as F

from .encoding import SymbolEncoding, listed_logits
from .host_encoding import HostEncoding, HostOutput
from .streams import Streams
from .symbols import mean_streams


class HostStreams(HostEncoding):
    """Algorithm 5 with a host's head, which sees the mean over streams where it is linear."""

    averages = True
    asks = frozenset()

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        encoding = self.symbols.encoding
        if not output.head.averaged:
            return encoding.logits(self.scores(output, streams), streams, self._mean)
        hidden_BSTD = output.head.hidden_BSTD
        assert hidden_BSTD is not None
        actual_BS = encoding.actual_rows(streams)
        weight: Any = self.model.get_output_embeddings().weight
        row_BSD = F.embedding(actual_BS, weight)
        mean_BTD = mean_streams(hidden_BSTD, streams.weights.to(hidden_BSTD))
        off_BSTD = hidden_BSTD - mean_BTD[:, None]
        off_BTS = torch.einsum("bstd,bsd->bts", off_BSTD, row_BSD)
        index = actual_BS[:, None].expand(-1, output.logits.shape[1], -1)
        own_BTS = self.shifted(output.logits.gather(-1, index), off_BTS)
        return listed_logits(output.logits, own_BTS, streams, self.config.vocabulary)

    def _mean(self, logits_BSTR: torch.Tensor, weights_BS: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the mean of states; logits may be squashed."""
        if logits_BSTR.shape[1] == 1:
            return logits_BSTR[:, 0]
        return self.capped(mean_streams(self.products(logits_BSTR), weights_BS))


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
    hosts = (HostStreams, HostStreams)

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
