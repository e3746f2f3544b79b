"""Records as lines of JSON, written as they come: a killed run leaves half a line at most."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hf_alpha.folders import check_folder_of, parse_json


class Records:
    """A file with a line of JSON for each record; as a context, it is this process's to write.

    Attributes:
        path: of the file.
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


__all__ = ["Records"]
