"""Linear temporal logic: a formula is answered by a symbolic lasso trace that satisfies it."""

from .task import LTLTask

__all__ = ["LTLTask"]
