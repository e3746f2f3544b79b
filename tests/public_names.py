"""The public names: those of the package itself, and of its wings, which say their modules."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import hf_alpha

WINGS = ("folnet", "geometric", "transduction")


def public_names() -> dict[str, Any]:
    """Name, such as `evaluate` or `geometric.to_geometric` -> what is meant."""
    return dict(sorted(_all()))


def _all() -> Iterator[tuple[str, Any]]:
    for name in set(hf_alpha.__all__) - {"__version__"}:
        yield name, getattr(hf_alpha, name)
    for wing in WINGS:
        module = import_module(f"hf_alpha.{wing}")
        for name in module.__all__:
            yield f"{wing}.{name}", getattr(module, name)
