"""How propositional logic is written: formulas, and partial assignments as answers."""

import re

from hf_alpha.logic.formulas import DERIVED, FOREIGN_CONSTANTS, SPELLINGS
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import NAME, FormulaError, Grammar, split_at, words

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
    refused=FOREIGN_CONSTANTS,
)
"""Propositional logic: not, and, or, iff, xor. Precedences follow Spot's."""

Assignment = dict[str, bool]
NOTATIONS = ("compact", "prefix", "infix")

_VALUES = {"0": False, "1": True}
_COMPACT = re.compile(r"(?:[^\W\d][01])*")
_EQUATION = re.compile(rf"({NAME})\s*(?:=|:)\s*([01])")


def write_assignment(assignment: Assignment) -> str:
    """Write in the given order: compact if every name is one character, else spaced."""
    if all(len(name) == 1 for name in assignment):
        return "".join(f"{name}{value:d}" for name, value in assignment.items())
    return " ".join(f"{name} {value:d}" for name, value in assignment.items())


def read_assignment(text: str, notation: str | None = None) -> Assignment | None:
    """Read an assignment; None if the text is none, or if a symbol occurs twice.

    Args:
        text: any string.
        notation: "compact" (`a1b0`), "prefix" (`request 1 grant 0`), "infix" (`a & !b`, or
            `a=1, b=0`), or None to detect it. A lone name is infix, and read only when named so:
            a model that stopped before the value has not answered.

    Raises:
        ValueError: if the notation is unknown.
    """
    check_known("notation", notation, NOTATIONS)
    if not text or text.isspace():
        return {}
    if notation in (None, "compact"):
        stripped = text.strip()
        if _COMPACT.fullmatch(stripped):
            return _unique([*stripped[::2]], [*stripped[1::2]])
    if notation in (None, "prefix"):
        tokens = [PROPOSITIONAL.named(word)[0] for word in words(text)]
        if len(tokens) % 2 == 0 and all(value in _VALUES for value in tokens[1::2]):
            return _unique(tokens[::2], tokens[1::2])
    if notation == "infix" or (notation is None and ("=" in text or ":" in text)):
        equations = _read_equations(text)
        if equations is not None:
            return equations
    if notation is None and PROPOSITIONAL.is_name(text.strip()):
        return None
    return _read_cube(text) if notation in (None, "infix") else None


def _unique(names: list[str], values: list[str]) -> Assignment | None:
    assignment = {name: value == "1" for name, value in zip(names, values, strict=True)}
    if len(assignment) != len(names) or not all(map(PROPOSITIONAL.is_name, assignment)):
        return None
    return assignment


def _read_equations(text: str) -> Assignment | None:
    parts = split_at(text, ",;")
    if len(parts) == 1:
        parts = [word for word, _ in words(text)]
    elif not parts[-1].strip():
        parts.pop()
    matches = [_EQUATION.fullmatch(part.strip()) for part in parts]
    if None in matches:
        return None
    pairs = [match.groups() for match in matches if match is not None]
    names = [PROPOSITIONAL.named((name, 0))[0] for name, _ in pairs]
    return _unique(names, [value for _, value in pairs])


def _read_cube(text: str) -> Assignment | None:
    """Read a conjunction of literals."""
    try:
        tokens = PROPOSITIONAL.parse(text, "infix")
    except FormulaError:
        return None
    names, values, value = [], [], "1"
    for token in tokens:
        if token == "!" and value == "1":
            value = "0"
        elif PROPOSITIONAL.is_name(token):
            names.append(token)
            values.append(value)
            value = "1"
        elif token != "&" or value == "0":
            return None
    return _unique(names, values)
