"""Not, and, or, exclusive or, if, if and only if, and the constants: how logics write them."""

SPELLINGS = {
    "~": "!",
    "¬": "!",
    "not": "!",
    "&&": "&",
    "/\\": "&",
    "∧": "&",
    "∩": "&",
    "*": "&",
    "and": "&",
    "||": "|",
    "\\/": "|",
    "\u2228": "|",  # logical or
    "\u222a": "|",  # union
    "+": "|",
    "or": "|",
    "⊕": "^",
    "xor": "^",
    "-->": "->",
    "=>": "->",
    "→": "->",
    "⟶": "->",
    "⇒": "->",
    "⟹": "->",
    "implies": "->",
    "<-->": "<->",
    "<=>": "<->",
    "↔": "<->",
    "⇔": "<->",
    "iff": "<->",
    "true": "1",
    "false": "0",
}
"""Other ways to write a connective or a constant -> its token: Spot's, and some words."""

DERIVED = {"->": "| ! $1 $2", "<-": "| $1 ! $2"}
"""Connectives that are rewritten while reading, as prefix templates."""
