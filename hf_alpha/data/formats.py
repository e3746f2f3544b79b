"""Rows of files in formats that many datasets share, and in formats of the user's.

A format is a function from a file to its rows: mappings with the columns `source`, `target`, and
`pair` where there are two texts.
"""

import codecs
import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hf_alpha.checkpoints.imported_code import import_object
from hf_alpha.io.records import parse_json

Row = Mapping[str, Any]
Format = Callable[[Path], Iterator[Row]]

FILES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".arrow": "arrow",
}  # fmt: skip
BINARY = ("parquet", "arrow")
"""Kinds of files that are no texts."""
TEXT_FILES = (".txt", ".md", ".rst")
ADVICE = {
    ".txt": "; plain text has no columns: make it a .tsv",
    ".xlsx": "; save the sheet as one of them",
}
"""End of a file's name -> what to do with it where rows are read."""
MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE,
}  # fmt: skip
"""Encoding that says an order of bytes -> the mark that may say it too."""


def kind_of(path: Path) -> str | None:
    """Return what a file's name says: a kind of `FILES`, "text", or None; capitals do not matter.

    All but what is `BINARY` may be compressed, see `COMPRESSED`.
    """
    name = Path(path.name.lower())
    is_packed = name.suffix in COMPRESSED
    suffix = Path(name.stem).suffix if is_packed else name.suffix
    kind = "text" if suffix in TEXT_FILES else FILES.get(suffix)
    return None if kind in BINARY and is_packed else kind


def unknown_kind(path: Path, fault: str, others: Sequence[str]) -> ValueError:
    """Return the error for files of no kind that is read, with what to do.

    Args:
        fault: what is wrong with the path.
        others: ends of names that are read there beside those of `FILES`.
    """
    suffix = path.suffix.lower()
    advice = "" if suffix in others else ADVICE.get(suffix, "")
    return ValueError(
        f"{path} {fault} that rows are read from: give one of "
        f"{', '.join([*FILES, *others])}{advice}"
    )


def squad(path: Path) -> Iterator[Row]:
    """Read SQuAD's JSON, 1.1 or 2.0: per question `id`, `question`, `context`, `answers`."""
    with open_text(path) as file:
        content = parse_json(file.read(), path)
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = [] if question.get("is_impossible") else question["answers"]
                yield {
                    "id": question["id"],
                    "question": question["question"],
                    "context": paragraph["context"],
                    "answers": {
                        "text": [answer["text"] for answer in answers],
                        "answer_start": [answer["answer_start"] for answer in answers],
                    },
                }


def conll(path: Path) -> Iterator[Row]:
    """Read lines of word and tag, as in WNUT-17, or of number, word and tag, as in UNER (IOB2).

    Cells are separated by tabs, texts by lines without text. A line that begins with # and has no
    tab is a comment.
    """
    for lines in blocks(path):
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


FORMATS: dict[str, Format] = {"squad": squad, "conll": conll}


def reader_of(name: str | None) -> Callable[[str], list[Row]] | None:
    """Return what reads a file of a format; None for none, where files have columns."""
    return None if name is None else partial(read_format, name)


def read_format(name: str, path: str) -> list[Row]:
    """Read the rows of a file.

    Args:
        name: one of `FORMATS`, or `package.module:function` of the user's.
        path: of the file; also compressed, see `COMPRESSED`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no such format, or the file has another one; the message names the
            line.
    """
    reader = FORMATS.get(name)
    if reader is None:
        if ":" not in name:
            formats = ", ".join(FORMATS)
            raise ValueError(
                f"no format {name!r}: known are {formats}, or write package.module:function. "
                "Formats of a single benchmark are in a checkout of the repository, such as "
                "benchmarks.studies.formats:clutrr"
            )
        reader = import_object(name, "the format", "package.module:function")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {file} to read as {name!r}")
    try:
        return list(reader(file))
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{file} is not of the format {name!r}: {reason}") from error


def open_text(path: Path, encoding: str | None = None, newline: str = "\n") -> io.TextIOWrapper:
    """Open a text file, which may be compressed."""
    return io.TextIOWrapper(open_bytes(path), encoding=codec_of(path, encoding), newline=newline)


def codec_of(path: Path, encoding: str | None) -> str:
    """Return what decodes a file, by default UTF-8, with or without a byte order mark."""
    name = codecs.lookup(encoding or "utf-8").name
    if name in MARKS:
        with open_bytes(path) as file:  # Python takes the mark for a character of such a file
            return name[:6] if file.read(4).startswith(MARKS[name]) else name
    return "utf-8-sig" if name == "utf-8" else name


def open_bytes(path: Path) -> BinaryIO:
    """Open a file, which may be compressed; one that is cut off is an error where it ends."""
    opener: Any = COMPRESSED.get(path.suffix.lower(), open)
    return opener(path, "rb")


def _open_zst(path: Path, mode: str) -> io.BufferedReader:
    from pyarrow import input_stream  # which takes long to import

    return io.BufferedReader(input_stream(str(path), compression="zstd"))


COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".zst": _open_zst}
"""Ending of a compressed file -> what opens it."""


def blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines between those without text, with their numbers."""
    numbered: list[tuple[int, str]] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                numbered.append((number, line.rstrip("\r\n")))
            elif numbered:
                yield numbered
                numbered = []
    if numbered:
        yield numbered
