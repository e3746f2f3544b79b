"""The tables, by name."""

from hf_alpha.reproduce.encodings import Encodings
from hf_alpha.reproduce.table import Table

TABLES: dict[str, Table] = {table.name: table for table in (Encodings(),)}
"""In the order of the document."""

__all__ = ["TABLES"]
