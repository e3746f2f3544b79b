"""Conversion of trained models into others, each with a proof by logits."""

from hf_alpha.convert.learned import (
    convert_checkpoint,
    to_dual_part,
    to_relational,
    to_streams,
)
from hf_alpha.convert.retrofit import SymbolConfig, convert_host, get_symbol_model
from hf_alpha.convert.shared import ConversionError

__all__ = [
    "ConversionError",
    "SymbolConfig",
    "convert_checkpoint",
    "convert_host",
    "get_symbol_model",
    "to_dual_part",
    "to_relational",
    "to_streams",
]
