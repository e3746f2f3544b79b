"""Published specification patterns, with their own names: which are solved, and which are not.

`specifications.tsv` has them as `spot.gen` writes them; those of Dwyer et al. come first, each with
the name of its pattern and scope (FMSP 1998 and ICSE 1999).
"""

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hf_alpha.data.keys import key_in, split_of
from hf_alpha.evaluation.report import OUTCOMES, OUTSIDE, Rates, Record
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task
from hf_alpha.tasks.base import EQUIVALENCES

from . import encodings, measures
from .results import Results
from .sizes import Size
from .table import Block, Column, Row, Table, percent, ranked

TASK = "ltl"
DWYER = "DAC"
FILE = Path(__file__).with_name("specifications.tsv")
FAMILIES = {
    DWYER: "Dwyer, Avrunin and Corbett",
    "EH": "Etessami and Holzmann",
    "SB": "Somenzi and Bloem",
    "HKRSS": "Holeček et al.",
    "P": "Pelánek",
    "LILY": "Lily",
}
"""Family of patterns, as Spot calls it -> by whom it is."""
RANDOM = f"{TASK}-random"
SHORT = 15
"""From so many tokens on a pattern counts as long: what released models were trained on."""
TRAINED = ("streams", "relational", "learned")


class Specifications(Table):
    """Released models and models of the table `encodings` on published patterns."""

    name = "specifications"
    title = "Real specifications"
    summary = "published LTL patterns with their own names, the 55 of Dwyer et al. first"

    def rows(self, size: Size) -> list[Row]:
        released = [
            Row(name, TASK, (f"{name} (released)",), released=folder)
            for name, folder in released_models().items()
            if name.startswith(f"{TASK}-")
        ]
        trained = [
            Row(f"{TASK}-{key}-normal", TASK, (key,), encodings.model(TASK, key, "normal"))
            for key in TRAINED
        ]
        return [*released, *trained, Row(RANDOM, TASK, (get_task(TASK).random_name,))]

    def tested(self, size: Size) -> dict[str, Any]:
        return {"test": "published patterns", "patterns": len(patterns())}

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        problems = [{"problem": pattern["formula"]} for pattern in patterns()]
        report = measures.answers(folder or row.released, TASK, problems, self.name, runs)
        values = measures.rates(report.overall)
        for part, records in _parts(report.records, size).items():
            values |= measures.rates(Rates.of(records), f" {part}") if records else {}
        return {**values, "failed": [_failure(x) for x in report.records if not x.any_correct]}

    def blocks(self, size: Size) -> tuple[Block, ...]:
        counts = {family: sum(p["family"] == family for p in patterns()) for family in FAMILIES}
        families = tuple(
            Column(f"{family} ({count})", f"correct {family}") for family, count in counts.items()
        )
        parts = tuple(Column(part, f"correct {part}") for part in _parts([], size) if part != DWYER)
        return (
            Block("correct answers by family, %", (*families, Column("all", "correct"))),
            Block(
                "correct answers, %",
                tuple(column for column in parts if column.title not in FAMILIES),
            ),
        )

    def text(self, size: Size) -> str:
        dwyer = [pattern for pattern in patterns() if pattern["family"] == DWYER]
        people = "; ".join(f"{family}: {people}" for family, people in FAMILIES.items())
        return (
            "The formulas are patterns that people wrote, as Spot's `genltl` has them, not random "
            f"formulas. {people}. Names are those of the patterns (`p0`, `p1`). Short patterns are "
            "not held out and may be among the training formulas of a model: "
            f"{_may_be_trained(patterns(), size)} of the {len(patterns())} "
            f"({_may_be_trained(dwyer, size)} of the {len(dwyer)} of {FAMILIES[DWYER]}) have no "
            "more tokens and names than this size's training data, and belong to the `train` split "
            "of all such formulas. The training data holds a part of that split. Formulas that "
            "differ only in names or in the order of operands count as the same. Released models "
            "are those under `model_cards/`; the others were trained for the table of encodings. A "
            "pattern with more names than a model's vocabulary counts as not correct. Tokens are "
            "counted after `W`, `F`, `G` and others are rewritten with the task's operators. "
            "Models read patterns with `|` rewritten too, since training formulas have no `|`. "
            "Steps are those of the shortest witness. Patterns that need more than 5 steps, or for "
            "which the number of steps is unknown, are in no column of steps."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        rows = [row for row in self.rows(size) if row.name in results.rows]
        models = [row for row in rows if row.name != RANDOM]
        sentences = [_failures(row.cells[0], results.measured(row.name)[0]) for row in models]
        rates = dict(ranked(models, results, "correct"))
        for row, chance in ranked([row for row in rows if row.name == RANDOM], results, "correct"):
            above = sum(rate > chance for rate in rates.values())
            sentences.append(
                f"Chance: {_solved(row.cells[0], results.measured(row.name)[0])}. Over all "
                f"{len(patterns())} patterns it is right in {percent(chance)} %; {above} of "
                f"{len(rates)} models are above that."
            )
        return sentences


@cache
def patterns() -> tuple[dict[str, str], ...]:
    """All patterns: `family`, `n`, `name` and `formula`."""
    with FILE.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _may_be_trained(some: Iterable[dict[str, str]], size: Size) -> int:
    """How many patterns may be in the training data: its tokens, its names and its split."""
    task, data = get_task(TASK), size.recipe(f"{TASK}/learned").data
    generation = data.generate
    (smallest, largest), names = generation["sizes"], generation["num_symbols"]
    equivalence = generation.get("equivalence", EQUIVALENCES[0])
    formulas = [task.parse(pattern["formula"]) for pattern in some]
    fitting = [
        tokens
        for tokens in formulas
        if smallest <= len(tokens) <= largest and len(task.symbols_in(tokens)) <= names
    ]
    return sum(split_of(key_in(task, tokens, equivalence)) == "train" for tokens in fitting)


def _parts(records: Iterable[Record], size: Size) -> dict[str, list[Record]]:
    """Part of the test -> its records."""
    rows = list(records)
    steps = {record.index: record.facts["witness_length"] for record in rows}
    families = {
        family: [r for r in rows if patterns()[r.index]["family"] == family] for family in FAMILIES
    }
    return {
        **families,
        f"fewer than {SHORT} tokens": [r for r in rows if r.size < SHORT],
        f"{SHORT} tokens or more": [r for r in rows if r.size >= SHORT],
        f"at most {size.names} names": [r for r in rows if r.num_symbols <= size.names],
        "more names": [r for r in rows if r.num_symbols > size.names],
        "1 step": [r for r in rows if steps[r.index] == 1],
        "2 steps or more": [r for r in rows if (steps[r.index] or 0) > 1],
    }


def _failure(record: Record) -> list[int | None]:
    """A pattern that was not solved: its place, names, tokens, steps, and place of the outcome."""
    steps = record.facts["witness_length"]
    outcome = OUTCOMES.index(record.outcome)
    return [record.index, record.num_symbols, record.size, steps, outcome]


def _failures(label: str, measured: dict[str, Any]) -> str:
    """Which of Dwyer's patterns a model does not solve, and what is hard about them."""
    failed = _dwyers(measured)
    answered = [row for row in failed if OUTCOMES[row[-1]] != OUTSIDE]
    problems = "; ".join(
        f"{patterns()[place]['name']} ({_count(names, 'name')}, {_count(tokens, 'token')}, "
        f"{'witness not known' if steps is None else 'witness of ' + _count(steps, 'step')}: "
        f"{OUTCOMES[outcome]})"
        for place, names, tokens, steps, outcome in answered
    )
    num_outside = len(failed) - len(answered)
    parts = [_solved(label, measured)]
    parts += [f"{num_outside} have more names than the vocabulary"] * bool(num_outside)
    parts += [f"not solved: {problems}"] * bool(problems)
    return f"{'; '.join(parts)}."


def _solved(label: str, measured: dict[str, Any]) -> str:
    of = sum(pattern["family"] == DWYER for pattern in patterns())
    return f"{label} solves {of - len(_dwyers(measured))} of the {of} patterns of Dwyer et al"


def _dwyers(measured: dict[str, Any]) -> list[list[Any]]:
    """What is known of those of Dwyer's patterns that were not solved."""
    return [row for row in measured["failed"] if patterns()[row[0]]["family"] == DWYER]


def _count(number: int, of: str) -> str:
    return f"{number} {of}{'s' * (number != 1)}"


__all__ = ["Specifications", "patterns"]
