"""Questions in which some words are only names, four kinds of names, and what a suite is.

A question is written with slots in the place of names: characters of Unicode's private use area,
the first one for its first name. To rename a question is to fill its slots with other names, and
an answer is compared after its names have become slots again. So a renaming changes names alone:
numbers, words and order stay, and the checker never sees a name.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from hf_alpha.modeling.spans import MarkedText

FIRST_SLOT = 0xE000
SLOT = re.compile("[\ue000-\uf8ff]")
CONSONANTS = "bcdfghjklmnpqrstvwxz"
THOUGHTS, THOUGHT = "<think>", "</think>"
LABEL = "Answer:"
LABELLED = re.compile(r"answer\W*?:", re.IGNORECASE)
MARKUP = " \t`*$\"'"
"""What may stand around an answer."""
ATTEMPTS = 1000


class Kind(StrEnum):
    """What the names of a question are like, to whom has read the examples before it."""

    SEEN = "seen"
    UNSEEN = "unseen"
    NONSENSE = "nonsense"
    MISLEADING = "misleading"


def slot(number: int) -> str:
    """Return the character that stands for a name."""
    return chr(FIRST_SLOT + number)


@dataclass(frozen=True)
class Pool:
    """The names of a class.

    Attributes:
        seen: those of examples, and of questions with names that examples show.
        unseen: others of the same sort.
        misleading: words that mean something else where they stand.
    """

    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    misleading: tuple[str, ...]

    @classmethod
    def of(cls, seen: str, unseen: str, misleading: str) -> "Pool":
        """Make a pool from words with spaces between."""
        return cls(tuple(seen.split()), tuple(unseen.split()), tuple(misleading.split()))

    def draw(self, kind: Kind, rng: random.Random, count: int) -> list[str]:
        """Draw so many different names of a kind."""
        if kind is not Kind.NONSENSE:
            return rng.sample(getattr(self, kind), count)
        names: dict[str, None] = {}
        while len(names) < count:
            name = "".join(rng.choices(CONSONANTS, k=5))
            names[name.capitalize() if self.seen[0][0].isupper() else name] = None
        return list(names)


@dataclass(frozen=True)
class Question:
    """A question whose names are slots.

    Attributes:
        text: what is asked.
        target: a right answer, as `Suite.read` writes it.
        classes: the class of each slot's name.
        facts: what the checker needs beside the target.
        fitting: misleading names that would not mislead in a slot, slot by slot; () for none.
    """

    text: str
    target: str
    classes: tuple[str, ...]
    facts: Any = None
    fitting: tuple[frozenset[str], ...] = ()


class Suite(ABC):
    """Questions of one kind, and a checker of their answers.

    Attributes:
        name: in options and reports.
        title: what the questions are about, for people.
        instructions: what is asked, and how an answer is written; one paragraph.
        pools: the names of each class.
        hardest: largest difficulty for which the pools have names enough.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    instructions: ClassVar[str]
    pools: ClassVar[Mapping[str, Pool]]
    hardest: ClassVar[int]

    @abstractmethod
    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw a question; all of one difficulty have equally many names of each class."""

    @abstractmethod
    def read(self, text: str) -> str | None:
        """Write an answer, its names slots, in the one way in which it is compared.

        Returns:
            None if the text is no answer.
        """

    def is_right(self, question: Question, answer: str) -> bool:
        """Say whether an answer that `read` has written is right."""
        return answer == question.target


def draw_names(
    suite: Suite, question: Question, kind: Kind, rng: random.Random, shown: Iterable[str] = ()
) -> tuple[str, ...]:
    """Draw a name for each slot.

    Args:
        suite: that the question is of.
        question: whose slots are filled.
        kind: of the names.
        rng: source of randomness.
        shown: names of the examples, of which those of kind `seen` are; () for all of the pools.
    """
    shown = set(shown)
    for _ in range(ATTEMPTS):
        names = dict.fromkeys(range(len(question.classes)), "")
        for class_name, pool in suite.pools.items():
            slots = [i for i, of in enumerate(question.classes) if of == class_name]
            if kind is Kind.SEEN and shown:
                pool = Pool(tuple(name for name in pool.seen if name in shown), (), ())
            names.update(zip(slots, pool.draw(kind, rng, len(slots)), strict=True))
        fits = zip(names.values(), question.fitting, strict=False)
        if len(set(names.values())) == len(names) and not any(name in fit for name, fit in fits):
            return tuple(names.values())
    raise ValueError(f"suite {suite.name}: no {kind} names for a question with {len(names)} names")


def example_names(suite: Suite, question: Question, start: int) -> tuple[str, ...]:
    """Name an example by the pools' seen names, in turn, so that examples show many of them.

    Args:
        suite: that the example is of.
        question: the example.
        start: how many names of each class examples before it had.
    """
    counts = dict.fromkeys(suite.pools, start)
    names = []
    for class_name in question.classes:
        seen = suite.pools[class_name].seen
        names.append(seen[counts[class_name] % len(seen)])
        counts[class_name] += 1
    return tuple(names)


def marked(text: str, names: Sequence[str], classes: Sequence[str]) -> MarkedText:
    """Fill the slots of a text with names, and mark where they are."""
    return joined([(text, names, classes)])


def joined(pieces: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> MarkedText:
    """Join texts with slots, each with its own names and their classes."""
    text, spans = "", []
    for piece, names, classes in pieces:
        for part in re.split(f"({SLOT.pattern})", piece):
            if SLOT.fullmatch(part):
                number = ord(part) - FIRST_SLOT
                part, start = names[number], len(text)
                spans.append((start, start + len(part), classes[number]))
            text += part
    return MarkedText(text, spans)


def unnamed(text: str, names: Sequence[str]) -> str:
    """Put slots in the place of names, which are whole words."""
    slots = {name: slot(number) for number, name in enumerate(names)}
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda match: slots[match[0]], text)


def ask(
    suite: Suite,
    question: Question,
    names: Sequence[str],
    examples: Sequence[tuple[Question, Sequence[str]]],
    plain: bool,
) -> MarkedText:
    """Write the prompt for a question.

    A model that only continues texts, and gets no examples, gets the question alone: it is asked
    what it was trained for.

    Args:
        suite: that the question is of.
        question: what is asked.
        names: of the question.
        examples: questions that are answered in the prompt, and their names.
        plain: for a model that only continues a text: the prompt ends where the answer begins.
    """
    pieces: list[tuple[str, Sequence[str], Sequence[str]]] = []
    for number, (example, its_names) in enumerate(examples, 1):
        text = f"Example {number}\n{example.text}\n{LABEL} {example.target}\n\n"
        pieces.append((text, its_names, example.classes))
    end = LABEL if plain else f'End with one line that begins with "{LABEL}".'
    if examples or not plain:
        pieces.insert(0, (f"{suite.instructions}\n\n", (), ()))
    turn = "Your turn\n" if examples else ""
    pieces.append((f"{turn}{question.text}\n{end}", names, question.classes))
    return joined(pieces)


def read_reply(suite: Suite, reply: str, names: Sequence[str], plain: bool) -> str | None:
    """Find the answer in a reply: what stands behind the last `Answer:`, or else on the last line.

    What stands up to the last `</think>` is left out. The answer of a model that only continues a
    text is its first line.

    Returns:
        None if there is no answer that can be read.
    """
    conclusion = reply.rpartition(THOUGHT)[2]
    if THOUGHTS in conclusion:  # which have no end
        return None
    labels = [] if plain else list(LABELLED.finditer(conclusion))
    if labels:
        conclusion = conclusion[labels[-1].end() :]
    lines = [line.strip(MARKUP) for line in conclusion.splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        return None
    line = lines[0] if plain or labels else lines[-1]
    return suite.read(unnamed(SLOT.sub("?", line), names))


__all__ = [
    "LABEL",
    "Kind",
    "Pool",
    "Question",
    "Suite",
    "ask",
    "draw_names",
    "example_names",
    "joined",
    "marked",
    "read_reply",
    "slot",
    "unnamed",
]
