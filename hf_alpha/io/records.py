"""JSON: what tools of ours wrote, of anybody, and files with a line for each record."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hf_alpha.io.folders import check_folder_of

DEEPEST = 100
"""Lists and mappings in each other, in files of others; readers of deeper ones may crash."""


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """Read a record that one of the tools wrote.

    Raises:
        ValueError: it is no JSON object with these keys; the message names the file.
    """
    record = parse_json(path.read_bytes(), f"{path} is damaged: it")
    if not isinstance(record, dict) or not record.keys() >= set(keys):
        listed = f" with {' and '.join(keys)}" if keys else ""
        raise ValueError(f"{path} is damaged: it holds no record{listed}")
    return record


def parse_json(text: str | bytes, place: object, once: bool = False) -> Any:
    """Read JSON of anybody.

    Args:
        once: refuse an object that has a key twice, of which the last one counts otherwise.

    Raises:
        ValueError: it is none, or nested too deeply to be read.
    """
    try:
        return json.loads(text, object_pairs_hook=_keys_once if once else None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is no JSON: {error}") from error


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(content := dict(pairs)) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return content


def entries_in(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield keys and values of mappings at any depth."""
    if isinstance(content, dict):
        yield from content.items()
        content = [*content.values()]
    for part in content if isinstance(content, list) else ():
        yield from entries_in(part)


def texts_in(content: Any) -> Iterator[str]:
    """Yield all texts in lists and mappings, keys aside."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | dict):
        for part in content.values() if isinstance(content, dict) else content:
            yield from texts_in(part)


def check_settings(folder: Path, stored: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder with other settings than those of the run that began there.

    Args:
        stored: the settings that it wrote down, in JSON.

    Raises:
        ValueError: naming each difference.
    """
    settings = json.loads(json.dumps(settings))
    if differences := [
        f"{key} is {stored.get(key)!r} there and {settings.get(key)!r} here"
        for key in {**stored, **settings}
        if stored.get(key) != settings.get(key)
    ]:
        raise ValueError(
            f"{folder} holds a run with other settings: {', '.join(differences)}; "
            "choose another folder, or delete that one"
        )


class Records:
    """A file with a line of JSON for each record: a killed run leaves half a line at most.

    As a context, it is this process's to write.

    Attributes:
        torn: what is behind the last whole line, once all were read.
    """

    def __init__(self, path: Path):
        self.path, self.torn = path, b""
        self._file: BinaryIO

    def __enter__(self) -> "Records":
        """Open the file for writing.

        Raises:
            FileNotFoundError, IsADirectoryError: see `check_folder_of`.
            ValueError: another process writes it.
        """
        check_folder_of(self.path)
        self._file = self.path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(f"another command is writing {self.path}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the records of whole lines.

        Raises:
            ValueError: a line is no record.
        """
        for number, line in enumerate(self._lines(), start=1):
            record = parse_json(line, f"{self.path}, line {number}")
            if not isinstance(record, dict):
                raise ValueError(f"{self.path}, line {number} is no record")
            yield record

    def _lines(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    self.torn = line
                    return
                yield line

    def mend(self) -> None:
        """Take off what is behind the last whole line."""
        self._file.truncate(sum(map(len, self._lines())))

    def add(self, *records: Mapping[str, Any]) -> None:
        """Write records behind the others."""
        # In ASCII: a line is a record, whatever line separators a text contains.
        self._file.write("".join(json.dumps(record) + "\n" for record in records).encode())
        self._file.flush()
