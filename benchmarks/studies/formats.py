"""Rows of benchmarks' files, as those that gave them out wrote them.

A recipe names a format as `benchmarks.studies.formats:clutrr`, and is started in the checkout.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hf_alpha.data.formats import Row, blocks, open_text

_NO_BRACKETS = str.maketrans("", "", "[]")


def clutrr(path: Path) -> Iterator[Row]:
    """CLUTRR: story, query (two people) and how the second one is related to the first.

    Beside them `k`, the number of steps of the reasoning, and the names in the row: `people`, and
    of them `women` and `men`. The square brackets around names are left out.
    """
    for row in _json_lines(path):
        people = [person.split(":") for person in row["genders"].split(",")]
        yield {
            "source": row["story"].translate(_NO_BRACKETS),
            "pair": " ".join(row["query"]),
            "target": row["target"],
            "k": int(row["task_name"].rpartition(".")[2]),
            "people": [name for name, _ in people],
            "women": [name for name, gender in people if gender == "female"],
            "men": [name for name, gender in people if gender == "male"],
        }


def folio(path: Path) -> Iterator[Row]:
    """FOLIO: premises, conclusion and True, False or Unknown; some files call it Uncertain."""
    for row in _json_lines(path):
        label = row["label"]
        yield {
            "source": " ".join(row["premises"]),
            "pair": row["conclusion"],
            "target": "Unknown" if label == "Uncertain" else label,
        }


def mrpc(path: Path) -> Iterator[Row]:
    """MRPC as Microsoft gives it out: a header, then label, two numbers and two sentences."""
    for number, label, _, _, source, pair in _cells(path, 5):
        if number > 1:
            yield {"source": source, "pair": pair, "target": label}


def cola(path: Path) -> Iterator[Row]:
    """CoLA 1.1: origin, label, the linguists' mark and the sentence; no header."""
    for _, _, label, _, source in _cells(path, 4):
        yield {"source": source, "target": label}


def sst2(path: Path) -> Iterator[Row]:
    """SST-2 as a sentence and its label, without a header."""
    for _, source, label in _cells(path, 2):
        yield {"source": source, "target": label}


def dimsum(path: Path) -> Iterator[Row]:
    """DiMSUM 2016: nine cells in a line; the second is a word, the fifth its tag, one of BIObio."""
    for lines in blocks(path):
        rows = []
        for number, line in lines:
            if len(cells := line.split("\t")) != 9:
                raise ValueError(f"{path}, line {number}: {len(cells)} cells, 9 are expected")
            rows.append(cells)
        yield {"source": [cells[1] for cells in rows], "target": [cells[4] for cells in rows]}


def streusle(path: Path) -> Iterator[Row]:
    """STREUSLE's readable form (`.vis`): a line has a number and a text with its expressions.

    `had_ a|DET routine|ADJ _surgery|V.LVC.full` has the tags B o o I. `_` joins the words of a
    strong expression; those of a weak one (`~`) and what follows `|` are left out. A word that has
    one of these letters itself, such as `^_^`, cannot be told from that.
    """
    for _, _, text in _cells(path, 2):
        words, tags, in_gap = list[str](), list[str](), False
        for goes_on, unit, opens in _UNIT.findall(text):
            parts = unit.split("_") if unit.strip("_") else [unit]
            in_gap = in_gap and not goes_on
            first = "I" if goes_on else "B" if opens or len(parts) > 1 else "O"
            some = first + "I" * (len(parts) - 1)
            words += parts
            tags += some.lower() if in_gap else some
            in_gap = in_gap or bool(opens)
        yield {"source": words, "target": tags}


_UNIT = re.compile(r"(?<![^ ~])(_(?!_*(?:[ ~|]|$)))?([^_ ~][^ ~|]*?|_+|[|])(_?)(?=[ ~|]|$)")
"""Words joined by `_`; that before or behind them says that the expression has a gap there."""

FORMATS = {
    each.__name__: f"benchmarks.studies.formats:{each.__name__}"
    for each in (clutrr, folio, mrpc, cola, sst2, dimsum, streusle)
}
"""Format -> its name in a recipe."""


def _json_lines(path: Path) -> Iterator[Row]:
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number} is no JSON: {error}") from error
            yield row


def _cells(path: Path, count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the number of each line and its cells; quotes are characters like others."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != count:
                raise ValueError(f"{path}, line {number}: {len(cells)} cells, {count} are expected")
            yield number, *cells


__all__ = ["FORMATS", "clutrr", "cola", "dimsum", "folio", "mrpc", "sst2", "streusle"]
