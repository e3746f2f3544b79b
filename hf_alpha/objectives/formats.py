"""Rows of benchmarks' files, as those that gave them out wrote them, and of formats of the user's.

A format is a function from a file to its rows: mappings with the columns `source`, `target`, and
`pair` where there are two texts.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hf_alpha.own_code import own_object

Row = dict[str, Any]
Format = Callable[[Path], Iterator[Row]]

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


def squad(path: Path) -> Iterator[Row]:
    """SQuAD's JSON, 1.1 or 2.0: for each question `id`, `question`, `context` and `answers`."""
    with open_text(path) as file:
        try:
            content = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no JSON: {error}") from error
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = [] if asked.get("is_impossible") else asked["answers"]
                yield {
                    "id": asked["id"],
                    "question": asked["question"],
                    "context": paragraph["context"],
                    "answers": {
                        "text": [answer["text"] for answer in answers],
                        "answer_start": [answer["answer_start"] for answer in answers],
                    },
                }


def conll(path: Path) -> Iterator[Row]:
    """A word and its tag in a line, as in WNUT-17; or number, word and tag, as in UNER (IOB2).

    Cells are separated by tabs, texts by lines without text. A line that begins with # and has no
    tab is a comment.
    """
    for lines in _blocks(path):
        words, tags = [], []
        for number, line in lines:
            if line.startswith("#") and "\t" not in line:
                continue
            cells = line.split("\t")
            if len(cells) != 2 and not (len(cells) > 2 and cells[0].isdecimal()):
                raise ValueError(
                    f"{path}, line {number}: {line!r} is neither word and tag nor number, word and "
                    "tag, with tabs between them"
                )
            word, tag = cells if len(cells) == 2 else cells[1:3]
            words.append(word)
            tags.append(tag)
        if words:
            yield {"source": words, "target": tags}


def dimsum(path: Path) -> Iterator[Row]:
    """DiMSUM 2016: nine cells in a line; the second is a word, the fifth its tag, one of BIObio."""
    for lines in _blocks(path):
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
        for goes_on, joined, opens in _UNIT.findall(text):
            parts = joined.split("_") if joined.strip("_") else [joined]
            in_gap = in_gap and not goes_on
            first = "I" if goes_on else "B" if opens or len(parts) > 1 else "O"
            some = first + "I" * (len(parts) - 1)
            words += parts
            tags += some.lower() if in_gap else some
            in_gap = in_gap or bool(opens)
        yield {"source": words, "target": tags}


_UNIT = re.compile(r"(?<![^ ~])(_(?!_*(?:[ ~|]|$)))?([^_ ~][^ ~|]*?|_+|[|])(_?)(?=[ ~|]|$)")
"""Words joined by `_`; that before or behind them says that the expression has a gap there."""

_FORMATS = (clutrr, folio, mrpc, cola, sst2, squad, conll, dimsum, streusle)
FORMATS: dict[str, Format] = {each.__name__: each for each in _FORMATS}


def read_format(name: str, where: str) -> list[Row]:
    """Read the rows of a file.

    Args:
        name: one of `FORMATS`, or `package.module:function` of the user's.
        where: the file; also compressed by gzip.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no such format, or the file has another one; the message names the
            line.
    """
    read = FORMATS.get(name)
    if read is None:
        if ":" not in name:
            known = ", ".join(FORMATS)
            raise ValueError(
                f"no format {name!r}: known are {known}, or write package.module:function"
            )
        read = own_object(name, "the format", "package.module:function")
    path = Path(where)
    if not path.is_file():
        raise FileNotFoundError(f"no file {where} to read as {name!r}")
    try:
        return list(read(path))
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not of the format {name!r}: {_said(error)}") from error


def open_text(path: Path) -> Any:
    """Open a text file, which may be compressed."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="\n")


def _said(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)


def _json_lines(path: Path) -> Iterator[Row]:
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number} is no JSON: {error}") from error
            yield row


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines between those without text, with their numbers."""
    held: list[tuple[int, str]] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                held.append((number, line.rstrip("\r\n")))
            elif held:
                yield held
                held = []
    if held:
        yield held


def _cells(path: Path, count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the number of each line and its cells; quotes are characters like others."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != count:
                raise ValueError(f"{path}, line {number}: {len(cells)} cells, {count} are expected")
            yield number, *cells


__all__ = ["FORMATS", "open_text", "read_format"]
