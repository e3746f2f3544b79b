"""Conversion of trained models into others, each with a proof by logits."""

from hf_alpha.convert.dual_part import convert_checkpoint_to_dual_part, to_dual_part
from hf_alpha.convert.folnet import convert_folnet
from hf_alpha.convert.geometric import convert_encoder, to_geometric
from hf_alpha.convert.relational import convert_checkpoint_to_relational, to_relational
from hf_alpha.convert.retrofit import SymbolConfig, convert_host, get_symbol_model
from hf_alpha.convert.shared import ConversionError
from hf_alpha.convert.symbol_invariant import convert_checkpoint, to_streams

__all__ = [
    "ConversionError",
    "SymbolConfig",
    "convert_checkpoint",
    "convert_checkpoint_to_dual_part",
    "convert_checkpoint_to_relational",
    "convert_encoder",
    "convert_folnet",
    "convert_host",
    "get_symbol_model",
    "to_dual_part",
    "to_geometric",
    "to_relational",
    "to_streams",
]
