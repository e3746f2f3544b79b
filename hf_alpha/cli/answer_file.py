"""The file of answers that `hf-alpha solve --out` writes, and goes on with after a stop."""

import fcntl
import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from hf_alpha.folders import check_folder_of, parse_json


class AnswerFile:
    """A file with a line of JSON for each problem, in the order of the input.

    Args:
        path: of the file; a last line that was not written to its end is taken off, if it begins
            as the answer to the next problem does.
        resume: go on with a file that is there.

    Attributes:
        statuses: how many problems have which status.

    Raises:
        FileNotFoundError, IsADirectoryError: see `check_folder_of`.
        FileExistsError: the file is there and is not to be gone on with.
        ValueError: another command writes it, or it holds something else.
    """

    def __init__(self, path: Path, resume: bool):
        self._path, self.statuses = path, Counter[str]()
        check_folder_of(path)
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
            ValueError: those that have one are others, or the file is not of this command; it stays
                as it is.
        """
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, start=1):
            problem = next(problems, None)
            if not line.endswith(b"\n"):
                if problem is None or not _begins(line, problem):
                    raise self._foreign(number)
                problems = chain([problem], problems)
                break
            record = self._read(line, number)
            if problem is None or str(problem) != record["problem"]:
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
            record = parse_json(line, self._path)
            assert isinstance(record["problem"], str) and isinstance(record["status"], str)
        except (ValueError, KeyError, TypeError, AssertionError):
            raise self._foreign(number) from None
        return dict(record)

    def _foreign(self, number: int) -> ValueError:
        return ValueError(f"{self._path}, line {number}: no answer of this command")

    def add(self, record: dict[str, Any]) -> None:
        """Write the answer to the next problem."""
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()
        self.statuses[record["status"]] += 1


def _begins(line: bytes, problem: str) -> bool:
    """Return whether a line can be the beginning of the answer to a problem."""
    start = json.dumps({"problem": str(problem)}).encode().removesuffix(b"}")
    return line.startswith(start) or start.startswith(line)


__all__ = ["AnswerFile"]
