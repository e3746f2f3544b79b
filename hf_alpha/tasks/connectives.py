"""Not, and, or, exclusive or, if and the constants: how logics write them."""

SPELLINGS = {
    "~": "!",
    "¬": "!",
    "not": "!",
    "&&": "&",
    "/\\": "&",
    "∧": "&",
    "and": "&",
    "||": "|",
    "\\/": "|",
    "\u2228": "|",  # logical or
    "or": "|",
    "⊕": "^",
    "xor": "^",
    "=>": "->",
    "→": "->",
    "implies": "->",
    "true": "1",
    "false": "0",
}
"""Other ways to write a connective or a constant -> its token."""

DERIVED = {"->": "| ! $1 $2", "<-": "| $1 ! $2"}
"""Connectives that are rewritten while reading, as prefix templates."""
