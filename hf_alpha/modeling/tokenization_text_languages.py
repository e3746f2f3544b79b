"""The tokenizer of texts, and all ready-made rules: saved with one of a language."""

from .names_in_languages import LANGUAGE_RULES
from .ready_rules import READY_RULES
from .tokenization_text import TextTokenizer

__all__ = ["LANGUAGE_RULES", "READY_RULES", "TextTokenizer"]
