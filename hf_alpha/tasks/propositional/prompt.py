"""The prompt of propositional logic: answers are JSON objects, `{"a": true, "b": false}`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hf_alpha.modeling.grammar import Grammar, unquoted
from hf_alpha.tasks.prompts import Prompt

from .assignment import read_assignment, write_assignment
from .grammar import PROPOSITIONAL

WORDS = {"=": "<->", "^": "xor"}
SHOWN = replace(
    PROPOSITIONAL,
    operators={"!": 1, "&": 2, "|": 2, "xor": 2, "<->": 2},
    infix={"<->": [1, "right"], "xor": [2, "left"], "|": [3, "left"], "&": [4, "left"]},
    spellings={},
    derived={},
)
"""The papers' infix, in which `|` binds more tightly than `xor`."""


class AssignmentPrompt(Prompt):
    """Asks for an assignment as a JSON object, and reads it wherever it stands in a reply.

    Values are `true` and `false`, or 1 and 0. An object with another value, or with a name that
    occurs twice, is no answer; `{}` is the empty assignment.
    """

    grammar: ClassVar[Grammar] = PROPOSITIONAL
    instructions: ClassVar[str] = """\
Find an assignment that makes a formula of propositional logic true.
Atomic propositions are names, such as a or b.
An assignment is a JSON object that maps names to true or false. \
It may leave out a name whose value does not matter.

Logical operators, those that bind most tightly first:
!: not
&: and
|: or
xor: exclusive or
<->: if and only if

Constants:
0: false
1: true
There are no other numbers."""
    examples: ClassVar[tuple[tuple[str, str], ...]] = (
        ("|!a&c=bc", "a0"),
        ("!=a^!a!e", "a1e1"),
        ("&a=!a|!cd", "a1c1d0"),
        ("!|a!|!d&bd", "a0d0"),
    )
    label: ClassVar[str] = "Assignment"
    request: ClassVar[str] = (
        "Give an assignment that makes this formula true. Answer with the JSON object only."
    )
    missing: ClassVar[str] = "no JSON object"
    unreadable: ClassVar[str] = "a JSON object that is no assignment"

    def write_problem(self, tokens: Sequence[str]) -> str:
        """Write a formula in the papers' infix."""
        return SHOWN.format([WORDS.get(token, token) for token in tokens], "infix")

    def write_answer(self, answer: str) -> str:
        """Write an assignment as a JSON object.

        Raises:
            ValueError: the answer is no assignment.
        """
        assignment = read_assignment(answer)
        if assignment is None:
            raise ValueError(f"{answer!r} is no assignment")
        return json.dumps({unquoted(name): value for name, value in assignment.items()})

    def candidates(self, text: str) -> Iterator[Any]:
        """Find all JSON objects, as lists of pairs."""
        decoder = json.JSONDecoder(object_pairs_hook=list)
        start = text.find("{")
        while start >= 0:
            try:
                value, end = decoder.raw_decode(text, start)
            except ValueError:
                end = start + 1
            except RecursionError:  # for each brace again, that takes very long
                return
            else:
                yield value
            start = text.find("{", end)

    def read_answer(self, candidate: Any) -> str | None:
        """Read the pairs of an object."""
        names = [PROPOSITIONAL.token_of(name) for name, _ in candidate]
        if len(set(names)) < len(names) or not all(map(PROPOSITIONAL.is_name, names)):
            return None
        if any(type(value) not in (bool, int) or value not in (0, 1) for _, value in candidate):
            return None
        values = (bool(value) for _, value in candidate)
        return write_assignment(dict(zip(names, values, strict=True)))


__all__ = ["AssignmentPrompt"]
