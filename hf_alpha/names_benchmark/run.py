"""The benchmark: which questions are asked with which names, and what came of them."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hf_alpha.evaluation.evaluate import digest
from hf_alpha.evaluation.instructed import CUT_OFF, KeptReplies, Reply
from hf_alpha.evaluation.instructed import Asked as Model
from hf_alpha.folders import alone_in, write_text
from hf_alpha.generation import answer_batches
from hf_alpha.modeling.names_in_text import MarkedText
from hf_alpha.tasks.prompts import NoAnswer

from .card import card
from .picture import draw
from .questions import Kind, Question, Suite, ask, draw_names, example_names, read_reply
from .scores import Asked, Scores, by_question, outcomes, score, summary
from .suites import SUITES
from .table import ALL, table

REPORT_FILE, TABLE_FILE = "report.json", "table.txt"
PICTURE_FILE, CARD_FILE = "names.png", "card.md"
BATCH_SIZE = 32


@dataclass(frozen=True)
class Plan:
    """What is asked; everything drawn is a function of it.

    Attributes:
        suites: their names.
        questions: of each suite.
        difficulty: of all questions, from 1 on; each suite says what it means.
        namings: how often a question is asked with names of each kind.
        examples: questions that each prompt answers; with none, a model that only continues texts
            gets the question alone.
        seed: of questions and names.

    Raises:
        ValueError: there is no such suite, or no names for such questions.
    """

    suites: tuple[str, ...] = tuple(SUITES)
    questions: int = 20
    difficulty: int = 2
    namings: int = 2
    examples: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.suites:
            if name not in SUITES:
                raise ValueError(f"no suite {name!r}: choose from {', '.join(SUITES)}")
            if not 1 <= self.difficulty <= SUITES[name].hardest:
                raise ValueError(
                    f"difficulty {self.difficulty}: questions of {name} have names for 1 to "
                    f"{SUITES[name].hardest}"
                )
        if not self.suites or min(self.questions, self.namings) < 1 or self.examples < 0:
            raise ValueError("a plan needs a suite, and a question and a naming or more")

    def items(self) -> Iterator["Item"]:
        """Give all that is asked, in order."""
        for name in self.suites:
            suite = SUITES[name]
            examples = self._examples(suite)
            shown = {name for _, names in examples for name in names}
            asked = {question.text for question, _ in examples}
            for number in range(self.questions):
                question = self._draw(suite, f"question {number}", asked)
                asked.add(question.text)
                for kind, naming in self._ways():
                    rng = random.Random(f"{self.seed} {name} {number} {kind} {naming}")
                    names = draw_names(suite, question, kind, rng, shown)
                    yield Item(suite, number, question, kind, naming, names, examples)

    def _ways(self) -> Iterator[tuple[Kind, int]]:
        return ((kind, naming) for kind in Kind for naming in range(self.namings))

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
        for _ in range(100):
            question = suite.draw(rng, self.difficulty)
            if question.text not in asked:
                break
        return question


@dataclass(frozen=True)
class Item:
    """A question with names, as it is asked once."""

    suite: Suite
    number: int
    question: Question
    kind: Kind
    naming: int
    names: tuple[str, ...]
    examples: tuple[tuple[Question, tuple[str, ...]], ...]

    def prompt(self, plain: bool) -> MarkedText:
        """Write the prompt."""
        return ask(self.suite, self.question, self.names, self.examples, plain)

    def judge(self, reply: Reply, plain: bool) -> Asked:
        """Find the answer in a reply, and check it."""
        is_whole = reply.ended or (plain and "\n" in reply.text.strip())
        answer = read_reply(self.suite, reply.text, self.names, plain) if is_whole else CUT_OFF
        place = self.suite.name, self.number, self.kind, self.naming
        if isinstance(answer, NoAnswer):
            return Asked(*place, None, False, answer.reason)
        return Asked(*place, answer, self.suite.is_right(self.question, answer))


def ask_all(
    name: str,
    model: Model,
    items: Sequence[Item],
    out: Path | None = None,
    batch_size: int = BATCH_SIZE,
    progress: bool = False,
) -> list[Asked]:
    """Ask a model all items of a plan; replies that are in the folder are not asked for again.

    Args:
        name: of the bar.
        model: whom to ask.
        items: of a plan.
        out: folder that keeps the replies; None to keep none.
        batch_size: prompts at a time, all of one length.
        progress: show a bar.
    """
    prompts = [item.prompt(model.plain) for item in items]
    replies = KeptReplies(model, out)
    missing = {prompt: None for prompt in prompts if prompt not in replies.replies}
    batches = _batches(model, list(missing), batch_size)
    work = answer_batches(
        model.module, batches, replies.ask, name, progress, len(set(prompts)) - len(missing)
    )
    with closing(work):
        for _ in work:
            pass
    return [
        item.judge(replies.replies[prompt], model.plain)
        for item, prompt in zip(items, prompts, strict=True)
    ]


def _batches(model: Model, prompts: Sequence[str], size: int) -> list[list[str]]:
    """Form batches of prompts of one length, the longest first: no answer depends on padding."""
    groups: dict[Any, list[str]] = {}
    for prompt in prompts:
        groups.setdefault(model.length(prompt), []).append(prompt)
    ordered = [groups[length] for length in sorted(groups, reverse=True)]
    return [row[i : i + size] for row in ordered for i in range(0, len(row), size)]


def scores_of(asked: Sequence[Asked], seed: int = 0) -> dict[str, Scores]:
    """Score each suite, and all together."""
    suites = list(dict.fromkeys(one.suite for one in asked))
    scores = {name: score([one for one in asked if one.suite == name], seed) for name in suites}
    return {**scores, ALL: score(asked, seed)}


@alone_in("out")
def names_benchmark(
    models: Mapping[str, Model],
    plan: Plan,
    out: Path,
    *,
    command: str = "",
    date: str = "",
    batch_size: int = BATCH_SIZE,
    progress: bool = True,
) -> tuple[str, dict[str, dict[str, Scores]]]:
    """Ask models the questions of a plan, and score them.

    `out` gets `replies-*.jsonl`, each reply as soon as it is there, so that a run that was stopped
    goes on; then `report.json`, `table.txt`, `names.png` and `card.md`.

    Args:
        models: by the name of their row.
        plan: what is asked.
        out: a folder, which is made if it is absent.
        command: that is run; for the card.
        date: of the run; likewise.
        batch_size: prompts at a time; it changes no answer.
        progress: show a bar for each model.

    Returns:
        The table, and the scores of each model by suite and for `all`.

    Raises:
        ValueError: answers of a model are drawn at random, or another process writes in `out`.
        ServiceError: a service does not answer.
    """
    for name, model in models.items():
        if model.sampled:
            raise ValueError(
                f"answers of {name} are drawn at random, and so change by themselves: ask without "
                "sampling"
            )
    items = list(plan.items())
    answers, scores = {}, {}
    for name, model in models.items():
        answers[name] = ask_all(name, model, items, out, batch_size, progress)
        scores[name] = scores_of(answers[name], plan.seed)
    report = {
        "plan": asdict(plan),
        "prompts": digest([item.prompt(False) for item in items]),
        "models": {name: _row(answers[name], scores[name]) for name in models},
    }
    write_text(out / REPORT_FILE, json.dumps(report, indent=1) + "\n")
    shares = {name: outcomes(rows) for name, rows in answers.items()}
    draw(scores, shares, out / PICTURE_FILE)
    text = table(scores)
    write_text(out / TABLE_FILE, text + "\n")
    write_text(out / CARD_FILE, card(scores, plan, command, date, PICTURE_FILE))
    return text, scores


def _row(asked: Sequence[Asked], scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {
        "scores": summary(scores),
        "outcomes": outcomes(asked),
        "questions": by_question(asked),
        "answers": [asdict(one) for one in asked],
    }


__all__ = ["Item", "Plan", "ask_all", "names_benchmark", "scores_of"]
