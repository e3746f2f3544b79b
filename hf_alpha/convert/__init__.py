"""Conversion of trained models into others, each with a proof by logits."""

from hf_alpha.convert.symbol_invariant import ConversionError, convert_checkpoint, to_streams

__all__ = ["ConversionError", "convert_checkpoint", "to_streams"]
