"""Which trace satisfies a formula of linear temporal logic?"""

import random
import re
from collections.abc import Mapping
from typing import ClassVar

from benchmarks.names.questions import Pool, Question, Suite
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.ltl.lasso import decide, is_contradictory
from hf_alpha.logic.ltl.trace import Trace, cube_step, read_cube, read_trace, write_trace
from hf_alpha.tasks import get_task

from .formulas import LETTERS, PROPOSITIONS, draw_formula, letters_of, slots_of

WORD = re.compile(r"[^\W\d_]{2,}")


class Temporal(Suite):
    """Formulas with `difficulty` + 1 names; the checker needs no solver.

    A name that a step of the answer leaves out is false there, so that an answer is one word.
    """

    name: ClassVar[str] = "ltl"
    title: ClassVar[str] = "traces of linear temporal logic"
    instructions: ClassVar[str] = (
        "Find a trace that satisfies a formula of linear temporal logic. The operators are X "
        "(next), U (until), ! (not), & (and), | (or), 0 is false and 1 is true; every other word "
        "is the name of a proposition. A trace is a list of steps with semicolons between, and "
        "then the steps that are repeated forever, in braces: x; y & !z; {1}. A step says what "
        "holds at that time; names that it leaves out are false."
    )
    pools: ClassVar[Mapping[str, Pool]] = {"proposition": PROPOSITIONS}
    hardest: ClassVar[int] = 7

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw a formula that a trace of the solver at hand satisfies, with that as the target."""
        task, count = get_task("ltl"), difficulty + 1
        while True:
            tokens, answer = draw_formula(task, rng, count)  # type: ignore[arg-type]
            target = self.read(slots_of(" ".join(answer)))
            text = slots_of(f"Formula: {LTL.format(tokens, 'infix')}")
            question = Question(text, target or "", ("proposition",) * count, tuple(tokens))
            if target is not None and self.is_right(question, target):
                return question

    def read(self, text: str) -> str | None:
        """Write a trace in infix, its steps as they stand; None if it is none, or contradicts."""
        letters = letters_of(re.sub(r"\bcycle\b", "", text.rstrip(". ")))
        if letters is None or WORD.search(letters):
            return None
        trace = read_trace(letters)
        if trace is None or any(is_contradictory(step) is not False for step in trace.steps):
            return None
        return slots_of(write_trace(trace, "infix").replace("cycle", ""))

    def is_right(self, question: Question, answer: str) -> bool:
        """Evaluate the formula on the word that an answer says."""
        trace = read_trace(letters_of(answer) or "", "infix")
        assert trace is not None
        steps = []
        for step in trace.steps:
            cube = read_cube(step)
            if cube is None:  # a disjunction says no word
                return False
            values = [(name, cube.get(name, False)) for name in LETTERS[: len(question.classes)]]
            steps.append(cube_step(values))
        return decide(question.facts, Trace(tuple(steps), trace.loop)) is True
