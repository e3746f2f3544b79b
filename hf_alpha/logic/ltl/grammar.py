"""The notations of linear temporal logic."""

from dataclasses import replace

from hf_alpha.logic.formulas import DERIVED, FOREIGN_CONSTANTS, SPELLINGS, by_spelling
from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks.problem import Problem

TEMPORAL = {
    "X": "() ○ ◯ Ⓧ next",
    "U": "until",
    "F": "<> ◇ ⋄ ♢ eventually",
    "G": "[] □ ◻ ⬜ always",
    "R": "V",
}
"""Temporal operator -> other ways to write it: Spot's, and some words."""

LTL = Grammar(
    operators={"!": 1, "&": 2, "|": 2, "X": 1, "U": 2},
    constants=("0", "1"),
    infix={
        "<->": [1, "right"],
        "->": [1, "right"],
        "<-": [1, "right"],
        "|": [2, "left"],
        "^": [3, "left"],
        "&": [4, "left"],
        "U": [5, "right"],
        "W": [5, "right"],
        "R": [5, "right"],
        "M": [5, "right"],
    },
    spellings={**SPELLINGS, **by_spelling(TEMPORAL)},
    derived={
        **DERIVED,
        "<->": "| & $1 $2 & ! $1 ! $2",
        "^": "| & $1 ! $2 & ! $1 $2",
        "F": "U 1 $1",
        "G": "! U 1 ! $1",
        "R": "! U ! $1 ! $2",
        "W": "! U ! $2 & ! $1 ! $2",
        "M": "U $2 & $1 $2",
    },
    glued="FGXUVRWM",
    refused={
        **FOREIGN_CONSTANTS,
        **dict.fromkeys(
            (*"YOHSP", "once", "historically", "since"),
            "past operators are not read: use those of the future; a name stands in double quotes",
        ),
        "[": "numbers and ranges are not read: write X X p for X[2] p, X p for X[!] p, and a name "
        "like p[2] in double quotes",
        "{": "regular expressions are not read: use temporal operators only",
        "=": "write p <-> q for 'p if and only if q', !p for p=0",
    },
)
"""Linear temporal logic: not, and, or, next, until.

The derived operators `-> <- <-> ^ F G R W M` are rewritten while reading. Infix is Spot's syntax,
with its precedences and all its spellings, and some more words (`not`, `and`, `until`, `always`);
regular expressions, comments, ranges such as `X[2] p` and past operators (`Y O H S P`, `once`) are
not read, nor are `ff` and `tt`, which other tools read as constants: such names stand in quotes.
Beyond Spot, names in Unicode need no quotes, so that a line over a name is a part of it, and not
its negation; infix is written with them, so that Spot reads it.

Beware of names that begin with F, G or X: as in Spot, infix reads `Grant` as G of `rant`. Write
`"Grant"`, or use spaced prefix notation, where words stay whole.
"""

LTL_OF_SOLVERS = replace(
    LTL,
    operators={**LTL.operators, **dict.fromkeys(sorted(LTL.repeating), 2)},
    derived={x: template for x, template in LTL.derived.items() if x not in LTL.repeating},
)
"""How solvers read formulas: `<-> ^ W M`, which repeat operands when rewritten, they know. So what
they read grows with what was written, and not by 2 ** n for n of these."""

LTL_WITHOUT_OR = replace(
    LTL,
    operators={token: arity for token, arity in LTL.operators.items() if token != "|"},
    derived={
        **LTL.derived,
        "|": "! & ! $1 ! $2",
        "->": "! & $1 ! $2",
        "<-": "! & ! $1 $2",
        "<->": "& ! & $1 ! $2 ! & ! $1 $2",
        "^": "& ! & $1 $2 ! & ! $1 ! $2",
    },
)
"""How models read formulas: training formulas have no `|`, as DeepLTL's have none.

A model that is given one all the same reads a token that it was never trained to read, though it
writes it in answers.
"""


def for_solvers(problem: Problem) -> list[str]:
    """Return a formula's tokens as solvers read them."""
    return LTL_OF_SOLVERS.rewritten([*problem.written])
