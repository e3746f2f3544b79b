"""The questions as tasks of lm-evaluation-harness: `question.yaml` beside this file names these.

A row of a task is one question with one choice of names. What a checker needs beside the row is
drawn again from the settings that the row repeats, so that rows are plain data.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

# The harness loads this file by its path.
if (checkout := str(Path(__file__).parents[2])) not in sys.path:
    sys.path.append(checkout)

from benchmarks.names.questions import (
    Kind,
    Question,
    Suite,
    ask,
    draw_names,
    example_names,
    read_reply,
)
from benchmarks.names.suites import SUITES
from hf_alpha.modeling.spans import MarkedText

ATTEMPTS = 100


@dataclass(frozen=True)
class Plan:
    """What is asked of a suite; everything that is drawn is a function of it.

    Attributes:
        suite: its name.
        questions: how many.
        difficulty: of all questions, from 1 on; each suite says what it means.
        namings: how often a question is asked with names of each kind.
        examples: questions that each prompt answers; with none, a model that only continues texts
            gets the question alone.
        seed: of questions and names.
        chat: whether models follow instructions; else they only continue a text.

    Raises:
        ValueError: there is no such suite, or there are no names for such questions.
    """

    suite: str
    questions: int = 20
    difficulty: int = 2
    namings: int = 2
    examples: int = 3
    seed: int = 0
    chat: bool = False

    def __post_init__(self) -> None:
        if self.suite not in SUITES:
            raise ValueError(f"no suite {self.suite!r}: choose from {', '.join(SUITES)}")
        hardest = SUITES[self.suite].hardest
        if not 1 <= self.difficulty <= hardest:
            raise ValueError(
                f"difficulty {self.difficulty}: questions of {self.suite} have names for 1 to "
                f"{hardest}"
            )
        if min(self.questions, self.namings) < 1 or self.examples < 0:
            raise ValueError("ask at least one question with at least one naming of each kind")

    def items(self) -> Iterator["Item"]:
        """Give all that is asked, in order."""
        suite = SUITES[self.suite]
        examples = self._examples(suite)
        shown = {name for _, names in examples for name in names}
        asked = {question.text for question, _ in examples}
        for number in range(self.questions):
            question = self._draw(suite, f"question {number}", asked)
            asked.add(question.text)
            for kind in Kind:
                for naming in range(self.namings):
                    rng = random.Random(f"{self.seed} {self.suite} {number} {kind} {naming}")
                    names = draw_names(suite, question, kind, rng, shown)
                    yield Item(self, number, question, kind, naming, names, examples)

    def _examples(self, suite: Suite) -> tuple[tuple[Question, tuple[str, ...]], ...]:
        examples: list[tuple[Question, tuple[str, ...]]] = []
        for number in range(self.examples):
            asked = {question.text for question, _ in examples}
            question = self._draw(suite, f"example {number}", asked)
            most = max(question.classes.count(name) for name in suite.pools)
            examples.append((question, example_names(suite, question, number * most)))
        return tuple(examples)

    def _draw(self, suite: Suite, which: str, asked: set[str]) -> Question:
        """Draw a question that differs from others in more than names, if there are such."""
        rng = random.Random(f"{self.seed} {suite.name} {self.difficulty} {which}")
        for _ in range(ATTEMPTS):
            question = suite.draw(rng, self.difficulty)
            if question.text not in asked:
                break
        return question


@dataclass(frozen=True)
class Item:
    """A question with names, as it is asked once."""

    plan: Plan
    number: int
    question: Question
    kind: Kind
    naming: int
    names: tuple[str, ...]
    examples: tuple[tuple[Question, tuple[str, ...]], ...]

    @property
    def prompt(self) -> MarkedText:
        """The prompt, which knows where its names are."""
        suite = SUITES[self.plan.suite]
        return ask(suite, self.question, self.names, self.examples, not self.plan.chat)

    @property
    def row(self) -> dict[str, Any]:
        """What the harness keeps of it."""
        return {
            **asdict(self.plan),
            "number": self.number,
            "kind": str(self.kind),
            "naming": self.naming,
            "prompt": str(self.prompt),
            "names": list(self.names),
        }

    def judge(self, reply: str) -> tuple[str | None, bool]:
        """Return the answer in a reply, its names slots, and whether it is right."""
        suite = SUITES[self.plan.suite]
        answer = read_reply(suite, reply, self.names, not self.plan.chat)
        return answer, answer is not None and suite.is_right(self.question, answer)


@cache
def _items(plan: Plan) -> dict[tuple[int, str, int], Item]:
    return {(item.number, str(item.kind), item.naming): item for item in plan.items()}


def item_of(row: Mapping[str, Any]) -> Item:
    """Return the item that a row was made of."""
    plan = Plan(**{name: row[name] for name in Plan.__dataclass_fields__})
    return _items(plan)[row["number"], row["kind"], row["naming"]]


def rows(**settings: Any) -> dict[str, Any]:
    """Return the rows of a task; `settings` are attributes of `Plan`, others are left out.

    The harness passes on what `--metadata` says, and the model's own arguments.
    """
    from datasets import Dataset

    plan = Plan(**{name: settings[name] for name in Plan.__dataclass_fields__ if name in settings})
    return {"test": Dataset.from_list([item.row for item in _items(plan).values()])}


Asked = tuple[int, str, int, str | None, bool]
"""A question as it was asked once: number, kind, naming, answer, and whether that is right."""


def results(row: Mapping[str, Any], replies: Sequence[str]) -> dict[str, Any]:
    """Judge a reply; each measure gets all of a question's namings, and each of them whole."""
    answer, is_right = item_of(row).judge(replies[0])
    asked: Asked = (row["number"], row["kind"], row["naming"], answer, is_right)
    return dict.fromkeys(MEASURES, asked)


def seen(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names that the examples show."""
    return _right(asked, Kind.SEEN)


def unseen(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with other names of the same sort."""
    return _right(asked, Kind.UNSEEN)


def nonsense(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with random consonants for names."""
    return _right(asked, Kind.NONSENSE)


def misleading(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names that mean something else where they stand."""
    return _right(asked, Kind.MISLEADING)


def changed(asked: Sequence[Asked]) -> float:
    """Return the share of namings whose answer is another one than that of the reference.

    The first naming of kind `seen` is a question's reference. Answers are compared with slots in
    the place of names; no answer is an answer as well.
    """
    return _share(asked, lambda one, reference: one[3] != reference[3])


def right_to_wrong(asked: Sequence[Asked]) -> float:
    """Return the share of namings that turn the reference's right answer wrong."""
    return _share(asked, lambda one, reference: reference[4] and not one[4])


def wrong_to_right(asked: Sequence[Asked]) -> float:
    """Return the share of namings that turn the reference's wrong answer right."""
    return _share(asked, lambda one, reference: one[4] and not reference[4])


def always(asked: Sequence[Asked]) -> float:
    """Return the share of questions that are right whatever their names."""
    questions = _questions(asked)
    return sum(all(one[4] for one in question) for question in questions) / len(questions)


def alpha_covariance(asked: Sequence[Asked]) -> float:
    """Return the mean of 1 - (different answers - 1) / (namings - 1) (2601.23169, equation 2)."""
    questions = _questions(asked)
    scores = [1 - (len({one[3] for one in q}) - 1) / (len(q) - 1) for q in questions if len(q) > 1]
    return sum(scores) / len(scores) if scores else math.nan


def no_answer(asked: Sequence[Asked]) -> float:
    """Return the share of namings without an answer that can be read."""
    return sum(one[3] is None for one in asked) / len(asked)


MEASURES = (
    *("seen", "unseen", "nonsense", "misleading", "always"),
    *("changed", "right_to_wrong", "wrong_to_right", "alpha_covariance", "no_answer"),
)
"""Each is the function of its name."""


def _right(asked: Sequence[Asked], kind: Kind) -> float:
    """Return the share of right answers to a kind; not a number where `--limit` left none of it."""
    right = [one[4] for one in asked if one[1] == kind]
    return sum(right) / len(right) if right else math.nan


def _questions(asked: Sequence[Asked]) -> list[list[Asked]]:
    """Group by question, each with its reference first."""
    questions: dict[int, list[Asked]] = {}
    for one in asked:
        questions.setdefault(one[0], []).append(one)
    return [sorted(one, key=lambda a: (a[1] != Kind.SEEN, a[2])) for one in questions.values()]


def _pairs(asked: Sequence[Asked]) -> Iterator[tuple[Asked, Asked]]:
    """Give each naming but the references, with the reference of its question."""
    for reference, *others in _questions(asked):
        for one in others:
            yield one, reference


def _share(asked: Sequence[Asked], is_so: Callable[[Asked, Asked], bool]) -> float:
    changes = [is_so(*pair) for pair in _pairs(asked)]
    return sum(changes) / len(changes) if changes else math.nan
