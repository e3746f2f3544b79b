"""What passes the head of a backbone: a model of Transformers that knows nothing of symbols.

Shapes: B batch, S streams, T target length, D width.
"""

from dataclasses import dataclass

import torch
from transformers.cache_utils import Cache

from .streams import Streams


@dataclass
class HeadCall:
    """What passes the backbone's head in the call that is under way.

    Attributes:
        streams: of the decoder's sequence.
        keep: how many of the last positions get logits; 0 for all.
        hidden_BSTD: what goes in of the positions that get logits, stream by stream; seen when it
            does.
        all_BSTD: the same of all positions.
        averaged: whether the head has seen the mean over streams.
        cache: of a decoder alone.
    """

    streams: Streams
    keep: int = 0
    hidden_BSTD: torch.Tensor | None = None
    all_BSTD: torch.Tensor | None = None
    averaged: bool = False
    cache: Cache | None = None


__all__ = ["HeadCall"]
