"""FOLNet, by name: Transformers' Auto classes make its models of a configuration."""

from hf_alpha.modeling.configuration_folnet import FolnetConfig

__all__ = ["FolnetConfig"]
