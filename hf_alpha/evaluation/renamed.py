"""Rows under other names: are answers still right, and do they follow the names?

Every row is asked again under other namings. A naming takes the names of a row to other names of
their class, all at once and back again by the same table, so that the right answer is the row's
with its names renamed.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

from hf_alpha.data.formats import Row
from hf_alpha.evaluation.names import Renamings, examples_of
from hf_alpha.evaluation.report import Record
from hf_alpha.modeling.spans import MarkedText, Span, parts, without_spelling
from hf_alpha.names.first_look import mark
from hf_alpha.tasks import Task

Name = tuple[str, str]
"""Class and spelling."""
TRIES = 4
"""Namings that are drawn for one that is used: some are none, as a name becomes another word."""


@dataclass(frozen=True)
class Naming:
    """A row under other names.

    Attributes:
        index: of the row as it was.
        problem: of that row.
        table: name -> name in its place.
        row: with the names of the table.
    """

    index: int
    problem: str
    table: Mapping[Name, str]
    row: Row


@dataclass(frozen=True)
class Followed:
    """What became of a model's answers under other namings.

    Attributes:
        rows: that have other namings.
        right_before: how many of them were answered right as they are.
        asked: namings of all of them.
        right: how many of these were answered right.
        changed: how many answers are not the row's own with its names renamed.
        rows_changed: rows with such an answer.
    """

    rows: int
    right_before: int
    asked: int
    right: int
    changed: int
    rows_changed: int

    @classmethod
    def of(
        cls,
        task: Task,
        namings: Sequence[Naming],
        before: Sequence[Record],
        after: Sequence[Record],
    ) -> "Followed":
        """Compare answers to rows with those to their namings."""
        changed = [
            naming.index
            for naming, record in zip(namings, after, strict=True)
            if not _follows(task, naming, before[naming.index], record)
        ]
        asked_rows = {naming.index for naming in namings}
        return cls(
            rows=len(asked_rows),
            right_before=sum(_is_right(before[index]) for index in asked_rows),
            asked=len(namings),
            right=sum(map(_is_right, after)),
            changed=len(changed),
            rows_changed=len({*changed}),
        )

    def __str__(self) -> str:
        def told(count: int, total: int) -> str:
            low, high = interval(count / total, self.rows)
            return f"{100 * count / total:.1f} % ({100 * low:.1f} to {100 * high:.1f})"

        return (
            f"{told(self.right_before, self.rows)} right as they are, "
            f"{told(self.right, self.asked)} under other names; {self.changed:,} of {self.asked:,} "
            f"answers changed, {told(self.changed, self.asked)}, in {self.rows_changed:,} rows"
        )


def interval(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of so many independent samples."""
    z = NormalDist().inv_cdf(0.975)
    middle = share + z * z / (2 * count)
    width = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max((middle - width) / scale, 0.0), min((middle + width) / scale, 1.0)


def namings_of(task: Task, rows: Sequence[Row], count: int, seed: int = 0) -> list[Naming]:
    """Draw other namings of rows, row by row, at most `count` of each.

    Names are those of the class in all rows, and those that a rule lists or knows as examples. A
    row without names, or whose names have no others, has none.

    Args:
        rows: as evaluation takes them.
    """
    names = [_names(task, row["problem"]) for row in rows]
    pools: dict[str, dict[Name, None]] = {}
    for listed in [*names, _listed(task)]:
        for name in listed:
            pools.setdefault(name[0], {})[name] = None
    classes = [[*pool] for pool in pools.values()]
    found = []
    for index, (row, present) in enumerate(zip(rows, names, strict=True)):
        rng = random.Random(f"{seed} {index}")
        items: Any = tuple(present)
        plan = Renamings.of(items, classes, TRIES * count + 1, rng)
        numbers, drawn = plan.numbers[1:], 0  # the first one changes nothing
        rng.shuffle(numbers)
        for number in numbers:
            table = {old: new for old, (_, new) in plan.renaming(number).items()}
            if drawn < count and (renamed := _renamed_row(task, row, table)) is not None:
                found.append(Naming(index, row["problem"], table, renamed))
                drawn += 1
    return found


def _names(task: Task, problem: str) -> list[Name]:
    """Return the names of a problem, by first occurrence."""
    finder = getattr(task, "finder", None)
    if finder is None:
        return [("", name) for name in task.symbols_in(task.parse(problem))]
    spans = finder.find(problem)
    return [*dict.fromkeys((s.symbol_class, str(problem)[s.start : s.stop]) for s in spans)]


def _listed(task: Task) -> list[Name]:
    rules = getattr(getattr(task, "finder", None), "rules", {})
    return [(kind, name) for kind, rule in rules.items() for name in examples_of(rule)]


def _renamed_row(task: Task, row: Row, table: Mapping[Name, str]) -> Row | None:
    """Return a row under other names; None if these are not found in it as the names were."""
    problem, target = row["problem"], row["answer"]
    finder = getattr(task, "finder", None)
    if finder is None:
        mapping = {old: new for (_, old), new in table.items()}
        text = task.rename(problem, mapping)
        if task.parse(text) != [mapping.get(token, token) for token in task.parse(problem)]:
            return None
        answer = None if target is None else task.rename(target, mapping)
        return {**row, "problem": text, "answer": answer}
    source, answer = mark(problem, target or "", finder)
    marked = [_renamed(text, table) for text in (source, answer)]
    told = marked[0] if isinstance(problem, MarkedText) else str(marked[0])
    found = mark(told, str(marked[1]), finder)
    if [[span[:3] for span in text.spans] for text in found] != [
        [span[:3] for span in text.spans] for text in marked
    ]:
        return None
    return {**row, "problem": told, "answer": None if target is None else str(marked[1])}


def _renamed(text: MarkedText, table: Mapping[Name, str]) -> MarkedText:
    """Return a text with other names, which are marked."""
    plain, written, spans = str(text), "", []
    for part, span in parts(plain, text.spans):
        written += part
        if span is not None:
            name = plain[span.start : span.stop]
            new = table.get((span.symbol_class, name), name)
            spans.append(Span(len(written), len(written) + len(new), *span[2:]))
            written += new
    return MarkedText(written, spans)


def _follows(task: Any, naming: Naming, before: Record, after: Record) -> bool:
    """Whether an answer under other names is the one before, with its names renamed.

    How names of an answer's own are spelled, as rings of molecules, is no part of it.
    """
    if before.answers is None or after.answers is None or not (before.answers and after.answers):
        return not before.answers and not after.answers
    (old, *_), (new, *_) = before.answers, after.answers
    finder = getattr(task, "finder", None)
    if finder is None:
        old = task.rename(old, {name: other for (_, name), other in naming.table.items()})
        return "".join(old.split()) == "".join(new.split())
    marked = _renamed(mark(naming.problem, old, finder)[1], naming.table)
    answers = marked, mark(naming.row["problem"], new, finder)[1]
    return task.same(*(without_spelling(text, text.spans) for text in answers))


def _is_right(record: Record) -> bool:
    return record.outcome in ("exact", "correct")
