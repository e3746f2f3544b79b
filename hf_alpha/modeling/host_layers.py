"""The layers of any encoder or decoder of Transformers, found by structure, and what they return.

A forward hook on such a layer sees its output and may return another one:
`with_hidden(output, change(hidden_of(output)))`.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn


def layers_of(stack: nn.Module) -> list[nn.Module]:
    """Returns the layers of an encoder or decoder, as of `model.get_encoder()`, first to last.

    They are the members of the one ModuleList below the stack that lies in no other ModuleList and
    holds modules of one class. Lists inside a layer (its sublayers, its experts) do not count.

    Raises:
        ValueError: there is no such list, or more than one.
    """
    layer_lists = [
        (name, list(layers))
        for name, layers in _outer_lists(stack)
        if len({type(layer) for layer in layers}) == 1
    ]
    if len(layer_lists) != 1:
        names = " and ".join(name for name, _ in layer_lists) or "none"
        raise ValueError(
            f"cannot tell which modules are the layers of {type(stack).__name__}: exactly one "
            f"ModuleList with members of one class is expected, found {names}"
        )
    return layer_lists[0][1]


def hidden_of(output: Any) -> Tensor:
    """Returns the hidden state in what a layer returns: the output itself, or the first of a tuple.

    Raises:
        TypeError: it is neither.
    """
    hidden = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(hidden, Tensor):
        raise TypeError(f"a layer returned {type(output).__name__}, not a tensor or tuple with one")
    return hidden


def with_hidden(output: Any, hidden: Tensor) -> Any:
    """Returns what a layer returned, with this hidden state in place of its own."""
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


def _outer_lists(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    """Yields each ModuleList below a module that lies in no other one, with its name."""
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            yield f"{prefix}{name}", child
        else:
            yield from _outer_lists(child, f"{prefix}{name}.")


__all__ = ["hidden_of", "layers_of", "with_hidden"]
