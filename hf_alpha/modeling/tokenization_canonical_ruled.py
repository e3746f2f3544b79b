"""The tokenizer with canonical spelling, and the ready-made rules: saved where it uses one."""

from .ready_rules import READY_RULES
from .tokenization_canonical import CanonicalTokenizer

__all__ = ["READY_RULES", "CanonicalTokenizer"]
