"""Calls into a backbone: hooks on its parts, what they have to know, and the rows of its batch.

A backbone is a model of Transformers that knows nothing of symbols. What has to reach its parts
goes through hooks, which find it in `Calls` while a call is under way.

Shapes: B batch, S streams, L source length, T target length, M keys, D width, H heads.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from threading import local
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import TransformersKwargs

from .streams import Streams
from .symbols import pack_streams


class Calls(local):
    """The calls that are under way, by what they are of; each thread has its own.

    A copy has none: locals of threads cannot be copied.

    Attributes:
        now: `StackCall` of a side with blocks, `"parts"` to be added to embedded tokens, `HeadCall`
            of `"head"`.
    """

    def __init__(self) -> None:
        self.now: dict[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Hook:
    """A hook on a part of the backbone: it calls a method of the model around it.

    In a deep copy of the model, hooks call the copy. In a copy of the part alone, which adapters
    make, they call the same model still.

    Args:
        model: around the backbone.
        method: its name.
        args: what the method gets before the arguments of the hook.
    """

    def __init__(self, model: nn.Module, method: str, *args: Any):
        self.model, self.method, self.args = model, method, args

    def __call__(self, *args: Any) -> Any:
        return getattr(self.model, self.method)(*self.args, *args)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Hook":
        return Hook(memo.get(id(self.model), self.model), self.method, *self.args)


@dataclass
class StackCall:
    """What blocks between the layers of a stack have to know about the call that is under way.

    Attributes:
        streams: over the stack's sequence.
        mask: additive, of the blocks' attention, see [`AlphaAttention`].
        positions: of the tokens: (B or 1, T).
        cache: of a decoder.
    """

    streams: Streams
    mask: torch.Tensor | None
    positions: torch.Tensor
    cache: EncoderDecoderCache | None = None

    def padded(self, length: int) -> "StackCall":
        """Returns this call for an encoder that pads its input on the right, as LED's does."""
        more = length - self.streams.own.shape[1]
        if not more:
            return self
        own, hidden = self.streams.own, torch.finfo(self.streams.weights.dtype).min
        mask = self.streams.weights.new_zeros(own.shape[0], 1, 1, own.shape[1])
        mask = F.pad(mask if self.mask is None else self.mask, (0, more), value=hidden)
        streams = replace(self.streams, own=F.pad(own, (0, more), value=-1))
        return StackCall(streams, mask, F.pad(self.positions, (0, more)))


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


class HostEncoderOutput(BaseModelOutput):
    """What the backbone's decoder gets of its encoder.

    Families ask for fields of their own, such as attention to all tokens or the choice of experts.
    Of several streams there is no such thing: they are None. Their names have two words or more;
    a name of one word, such as `to`, is a method of tensors that other code asks for.
    """

    def __getattr__(self, name: str) -> None:
        if "_" not in name.strip("_"):
            raise AttributeError(name)
        return None


def taken_arguments(call: Callable[..., Any]) -> frozenset[str]:
    """Returns the names of keyword arguments that a call of a backbone does something with."""
    return frozenset((*inspect.signature(call).parameters, *TransformersKwargs.__annotations__))


def check_arguments(kwargs: dict[str, Any], taken: frozenset[str]) -> None:
    """Raise a TypeError for an argument with a value that a backbone would take and forget."""
    for name, value in kwargs.items():
        if value is None or name in taken:
            continue
        similar = get_close_matches(name, sorted(taken), n=1)
        hint = f": did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(f"forward got {name!r}, which the backbone does not take{hint}")


def keep_weights(model: nn.Module) -> None:
    """Mark a model's weights as they are: the model around it initialises only its own."""
    for module in model.modules():
        module._is_hf_initialized = True  # type: ignore[assignment]
    for tensor in (*model.parameters(), *model.buffers()):
        tensor._is_hf_initialized = True  # type: ignore[attr-defined]


def repeat_rows(x: Any, number: int) -> Any:
    """Repeat each sample's row for its streams; what has no row for each sample stays."""
    if isinstance(x, dict):
        return {name: repeat_rows(value, number) for name, value in x.items()}
    if number == 1 or not isinstance(x, torch.Tensor) or x.dim() == 0:
        return x
    if x.dim() == 4 and x.shape[0] == 1:  # a mask for all rows
        return x
    return x.repeat_interleave(number, dim=0)


def packed(hidden: torch.Tensor, number: int) -> torch.Tensor:
    """Puts the streams of a sample side by side: (B * S, L, D) -> (B, L, S * D)."""
    if number == 1:
        return hidden
    return pack_streams(hidden.unflatten(0, (-1, number)))


def by_sample(weights: torch.Tensor, number: int) -> torch.Tensor:
    """Puts the heads of all streams side by side: (B * S, H, T, M) -> (B, S * H, T, M)."""
    if number == 1:
        return weights
    return weights.unflatten(0, (-1, number)).flatten(1, 2)


def each(change: Callable[..., Any], values: Any, number: int) -> Any:
    """Applies a function to each of several tensors; None stays None."""
    if values is None:
        return None
    return tuple(None if value is None else change(value, number) for value in values)


__all__ = [
    "Calls",
    "HeadCall",
    "Hook",
    "HostEncoderOutput",
    "StackCall",
    "by_sample",
    "check_arguments",
    "each",
    "keep_weights",
    "packed",
    "repeat_rows",
    "taken_arguments",
]
