"""Encodings side by side: the same recipe trained with each, for the same steps or time."""

from .compare import CURVES_FILE, TABLE_FILE, compare_encodings
from .runs import ENCODINGS, with_encoding

__all__ = ["CURVES_FILE", "ENCODINGS", "TABLE_FILE", "compare_encodings", "with_encoding"]
