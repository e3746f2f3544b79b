"""Where `generate` and `generate_grid` were before they moved to the part on logic."""

from typing import Any

from hf_alpha import wings


def __getattr__(name: str) -> Any:
    return wings.moved(name, __name__, "hf_alpha.logic.drawing.generate")
