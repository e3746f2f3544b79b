"""Encoders that read segments beside a text, by name. `hf_alpha.transduction` finds segments."""

from hf_alpha.convert.geometric import to_geometric
from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer

__all__ = ["GeometricConfig", "GeometricTokenizer", "to_geometric"]
