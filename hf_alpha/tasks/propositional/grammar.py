"""The notations of propositional logic."""

from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks.connectives import DERIVED, SPELLINGS

PROPOSITIONAL = Grammar(
    operators={"!": 1, "&": 2, "|": 2, "=": 2, "^": 2},
    constants=("0", "1"),
    infix={
        "=": [1, "right"],
        "->": [1, "right"],
        "<-": [1, "right"],
        "|": [2, "left"],
        "^": [3, "left"],
        "&": [4, "left"],
    },
    spellings={
        **{text: "=" if token == "<->" else token for text, token in SPELLINGS.items()},
        "<->": "=",
        "==": "=",
    },
    derived=DERIVED,
)
"""Propositional logic: not, and, or, iff, xor. Precedences follow Spot's."""
