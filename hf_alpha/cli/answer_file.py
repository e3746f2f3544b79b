"""The file of answers that `hf-alpha solve --out` writes, and goes on with after a stop."""

import fcntl
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO


class AnswerFile:
    """A file with a line of JSON for each problem, in the order of the input.

    Args:
        path: of the file; a last line that was not written to its end is taken off.
        resume: go on with a file that is there.

    Attributes:
        statuses: how many problems have which status.

    Raises:
        FileExistsError: the file is there and is not to be gone on with.
        ValueError: another command writes it, or it holds something else.
    """

    def __init__(self, path: Path, resume: bool):
        self._path, self.statuses = path, Counter[str]()
        if path.exists() and not resume:
            raise FileExistsError(f"{path} is there already: --resume goes on with it")
        self._file: BinaryIO = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another command is writing {path}") from None

    def __enter__(self) -> "AnswerFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def rest(self, problems: Iterator[str]) -> Iterator[str]:
        """Return the problems that have no answer yet.

        Raises:
            ValueError: those that have one are others.
        """
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                break
            record = self._read(line, number)
            if (problem := next(problems, None)) is None or str(problem) != record["problem"]:
                given = "ends" if problem is None else f"has {str(problem)[:80]!r}"
                raise ValueError(
                    f"{self._path}, line {number} answers {record['problem'][:80]!r}, but the "
                    f"input {given} there: resume with the input that it was begun with"
                )
            self.statuses[record["status"]] += 1
            whole += len(line)
        self._file.truncate(whole)
        return problems

    def _read(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
            assert isinstance(record["problem"], str) and isinstance(record["status"], str)
        except (ValueError, KeyError, TypeError, AssertionError):
            raise ValueError(f"{self._path}, line {number}: no answer of this command") from None
        return dict(record)

    def add(self, record: dict[str, Any]) -> None:
        """Write the answer to the next problem."""
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()
        self.statuses[record["status"]] += 1


__all__ = ["AnswerFile"]
