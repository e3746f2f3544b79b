"""Folders that several runs may want, and that a killed run leaves half-made."""

import difflib
import errno
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from glob import escape
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from hf_alpha.resources import released_models

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
_HEX = 32 * "[0-9a-f]"
TEMPORARY = f"*.{_HEX}"
"""Pattern of the names that files and folders have while they are written."""
_FILES = {
    ".bin", ".conll", ".csv", ".gz", ".json", ".jsonl", ".md", ".parquet", ".pt", ".rst",
    ".safetensors", ".tsv", ".txt", ".yaml", ".zip",
}  # fmt: skip
"""Endings of names of files; names on the Hub end in other ways."""
_descriptors: set[int] = set()
"""Of the locks that this process holds."""
_claimed: set[Path] = set()
"""The folders in which only this process writes."""


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Keep other runs on this machine out of a folder, which is made if it is absent.

    The lock is on the folder itself: it leaves no file, and ends with the process, however that
    ends. Others that ask for it do not wait.

    Yields:
        Whether the folder is this run's; False if another run has it.

    Raises:
        FileExistsError: there is a file in its place.
    """
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file: name a folder")
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    _descriptors.add(descriptor)
    try:
        yield _lock(descriptor, folder)
    finally:
        _descriptors.discard(descriptor)
        os.close(descriptor)
        _remove_empty(missing)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that were made for nothing, the innermost first."""
    with suppress(OSError):  # something is in it, as it should
        for folder in folders:
            folder.rmdir()


def _leave_locks() -> None:
    """Close a child's copies of locks: it may outlive a run that is killed, and keep others out."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_leave_locks)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes that write out of a folder, which is made if it is absent.

    What this process does meanwhile may ask for the same folder again.

    Raises:
        ValueError: another process writes there.
        FileExistsError: there is a file in its place.
    """
    place = folder.resolve()
    if place in _claimed:
        yield
        return
    with locked(folder) as is_locked:
        if not is_locked:
            raise ValueError(
                f"another process writes {folder}: wait until it has ended, or choose another "
                "folder"
            )
        _claimed.add(place)
        try:
            yield
        finally:
            _claimed.discard(place)


def alone_in(argument: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to keep others out of the folder that an argument names; see `alone`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        bind = signature(function).bind

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with alone(Path(bind(*args, **kwargs).arguments[argument])):
                return function(*args, **kwargs)

        return run

    return decorate


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN):
            return False
        logger.warning("%s cannot be locked (%s): start no other run there", folder, error)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write a file under; it becomes `path` when all is written, or is removed.

    Raises:
        FileNotFoundError: there is no folder to write it in.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} in")
    temporary = _temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file in one step: a killed run leaves the old one or the new one."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write to; it becomes `path` when all is written, or is removed.

    Raises:
        FileExistsError: there is a file or folder at `path`; it stays as it is.
        ValueError: another process makes it.
    """
    if path.exists():
        kind = "folder" if path.is_dir() else "file"
        raise FileExistsError(f"{kind} {path} exists: remove it, or choose another folder")
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with scratch_folder(path) as unfinished:
            yield unfinished
            unfinished.rename(path)
    except BaseException:
        _remove_empty(missing)
        raise


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write to beside `path`; what is still in it at the end is removed.

    Raises:
        ValueError: another process does so.
    """
    remove_leftovers(path.parent, path.name)
    if any(place.is_dir() for place in _unfinished(path.parent, path.name)):
        raise ValueError(f"another process writes {path}: wait until it has ended")
    unfinished = _temporary(path)
    with alone(unfinished):
        try:
            yield unfinished
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _temporary(path: Path) -> Path:
    """Name a file beside another one; processes on different machines may have the same number."""
    return path.with_name(f".{path.name}.{uuid4().hex}")


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed runs left half-written in a folder, of this name only if one is given."""
    for path in _unfinished(folder, name):
        if path.is_dir():
            with locked(path) as abandoned:
                if abandoned:
                    shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _unfinished(folder: Path, name: str | None) -> Iterator[Path]:
    """Return what is being written in a folder, or was."""
    return folder.glob(f".{'*' if name is None else escape(name)}.{_HEX}")


def check_file(path: Path, role: str) -> None:
    """Check that there is a file, of which kind ever.

    Raises:
        FileNotFoundError: there is none; the message says what it shall be.
    """
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(f"there is no file {path}: name {role}")


def may_be_on_hub(name: str) -> bool:
    """Return whether a name can be one of the Hub, `owner/name`; otherwise it is a path.

    It is a path if it begins like one, ends like a file, or lies in a folder that is here.
    """
    path = Path(name)
    is_path = name.startswith((".", "/", "~")) or path.suffix in _FILES or path.parent.is_dir()
    return name.count("/") == 1 and not is_path


def similar_names(path: Path) -> str:
    """Say which names a mistyped path may mean, as the end of a message; nothing if there are none.

    They lie where the first part of the path is missing.
    """
    missing = next((part for part in (*reversed(path.parents), path) if not part.exists()), path)
    if not missing.parent.is_dir():
        return ""
    names = [entry.name for entry in missing.parent.iterdir()]
    similar = difflib.get_close_matches(missing.name, set(names) - {missing.name})
    suggestions = " or ".join(str(missing.with_name(name)) for name in similar)
    return f" (did you mean {suggestions}?)" if similar else ""


def checkpoint_place(path: str | Path) -> str:
    """Return where a checkpoint is: a folder with a configuration, or what may be a Hub name.

    Raises:
        FileNotFoundError: there is no such folder, or no `config.json` in it.
    """
    folder = Path(path).expanduser()
    place = str(folder)
    if not folder.is_dir() and not may_be_on_hub(str(path)):
        meant = similar_names(folder)
        with suppress(FileNotFoundError, KeyError):
            meant = f" (did you mean {released_models()[place]}?)"
        raise FileNotFoundError(f"no checkpoint folder {place!r}{meant}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{place!r} is no checkpoint folder: it has no config.json")
    return place


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """Read a record that one of the tools wrote.

    Raises:
        ValueError: it is no JSON object with these keys; the message names the file.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(record, dict) or not record.keys() >= set(keys):
        raise ValueError(f"{path} is damaged: it holds no record{_with(keys)}")
    return record


def _with(keys: tuple[str, ...]) -> str:
    return f" with {' and '.join(keys)}" if keys else ""


__all__ = [
    "TEMPORARY",
    "alone",
    "alone_in",
    "check_file",
    "checkpoint_place",
    "locked",
    "may_be_on_hub",
    "new_folder",
    "read_json",
    "remove_leftovers",
    "replacing",
    "scratch_folder",
    "similar_names",
    "write_text",
]
