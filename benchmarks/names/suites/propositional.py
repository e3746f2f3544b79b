"""Which values make a formula true?"""

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from benchmarks.names.questions import SLOT, Pool, Question, Suite
from hf_alpha.logic import truth_table
from hf_alpha.logic.propositional.notation import PROPOSITIONAL, read_assignment
from hf_alpha.tasks import get_task

from .formulas import LETTERS, PROPOSITIONS, draw_formula, letters_of, slots_of

WORDS = {"=": "<->", "^": "xor"}
SHOWN = replace(
    PROPOSITIONAL,
    operators={"!": 1, "&": 2, "|": 2, "xor": 2, "<->": 2},
    infix={"<->": [1, "right"], "xor": [2, "left"], "|": [3, "left"], "&": [4, "left"]},
    spellings={},
    derived={},
)
"""The infix of 2601.23169, in which `|` binds more tightly than `xor`."""
VALUE = re.compile(rf"({SLOT.pattern})\s*(?:=|:)\s*([01])")


class Propositional(Suite):
    """Formulas with `difficulty` + 1 names; an answer is right if it makes all of one true."""

    name: ClassVar[str] = "propositional"
    title: ClassVar[str] = "assignments of propositional logic"
    instructions: ClassVar[str] = (
        "Find values that make a formula of propositional logic true. The operators are ! (not), "
        "& (and), | (or), xor and <-> (if and only if), 0 is false and 1 is true; every other word "
        "is the name of a proposition. Answer with a value for each name, as in x=1, y=0; a name "
        "whose value does not matter may be left out."
    )
    pools: ClassVar[Mapping[str, Pool]] = {"proposition": PROPOSITIONS}
    hardest: ClassVar[int] = 7

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw a formula that some values satisfy, and not whatever values there are."""
        task, count = get_task("propositional"), difficulty + 1
        answer = ""
        while not answer:
            tokens, answer = draw_formula(task, rng, count)  # type: ignore[arg-type]
        shown = SHOWN.format([WORDS.get(token, token) for token in tokens], "infix")
        values = read_assignment(answer) or {}
        target = slots_of(", ".join(f"{name}={value:d}" for name, value in values.items()))
        text = slots_of(f"Formula: {shown}")
        return Question(text, self.read(target) or "", ("proposition",) * count, tuple(tokens))

    def read(self, text: str) -> str | None:
        """Write values in the order of slots; None if one is given twice, or there are others."""
        parts = [part.strip() for part in re.split("[,;]", text.rstrip(". "))]
        matches = [VALUE.fullmatch(part) for part in parts]
        values = {match[1]: match[2] for match in matches if match}
        if len(values) < len(parts):
            return None
        return ", ".join(f"{name}={values[name]}" for name in sorted(values))

    def is_right(self, question: Question, answer: str) -> bool:
        """Say whether the formula is true whatever values the names have that are left out."""
        letters = letters_of(answer) or ""
        known = {part[0]: part[2] for part in letters.split(", ")}
        free = [letter for letter in LETTERS[: len(question.classes)] if letter not in known]
        tables = truth_table.leaf_tables(free)
        values = {letter: tables["1"] if known[letter] == "1" else 0 for letter in known}
        full: int = tables["1"]
        return truth_table.evaluate(question.facts, {**tables, **values}, full) == full
