"""The tokenizer of texts, and the ready-made rules: saved where it uses one."""

from .ready_rules import READY_RULES
from .tokenization_text import TextTokenizer

__all__ = ["READY_RULES", "TextTokenizer"]
