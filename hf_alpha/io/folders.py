"""Folders that several runs may want, and that a killed run leaves half-made."""

import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from glob import escape
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TypeVar
from uuid import uuid4

from hf_alpha.processes import is_first

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
_HEX = 32 * "[0-9a-f]"
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
        for made in missing:  # perhaps for nothing, the innermost first
            with suppress(OSError):  # something is in it, as it should
                made.rmdir()


def _leave_locks() -> None:
    """Close a child's copies of locks: it may outlive a run that is killed, and keep others out."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_leave_locks)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes that write out of a folder, which is made if it is absent.

    What this process does meanwhile may ask for the same folder again. Of several that are started
    together (accelerate), the first claims it for all.

    Raises:
        ValueError: another process writes there.
        FileExistsError: there is a file in its place.
    """
    place = folder.resolve()
    if place in _claimed or not is_first():
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


def locks_folder(argument: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to lock the folder that an argument names; see `lock_folder`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        bind = signature(function).bind

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with lock_folder(Path(bind(*args, **kwargs).arguments[argument])):
                return function(*args, **kwargs)

        return run

    return decorate


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        logger.warning("%s cannot be locked (%s): start no other run there", folder, error)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write a file under; it becomes `path` when all is written, or is removed.

    Raises:
        FileNotFoundError, IsADirectoryError: see `check_folder_of`.
    """
    check_folder_of(path)
    temporary = temporary_name(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_folder_of(path: Path) -> None:
    """Check that a file can be written where a path says.

    Raises:
        FileNotFoundError: there is no folder to write it in.
        IsADirectoryError: there is a folder in its place.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file")


def write_text(path: Path, text: str) -> None:
    """Write a file in one step: a killed run leaves the old one or the new one."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_own(folder: Path, files: Iterable[str], sign: str) -> None:
    """Refuse to write over files of somebody else.

    Args:
        files: that are about to be written.
        sign: a pattern of files, one of which is there if this package wrote the others.

    Raises:
        FileExistsError: naming the first.
    """
    others = [name for name in files if os.path.lexists(folder / name)]
    if others and not any(folder.glob(sign)):
        raise FileExistsError(
            f"{folder / others[0]} is there already, and not by this command: choose another "
            "folder, or move it"
        )


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
    with scratch_folder(path) as unfinished:
        yield unfinished
        unfinished.rename(path)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write to beside `path`; what is still in it at the end is removed.

    Raises:
        ValueError: another process does so.
    """
    remove_leftovers(path.parent, path.name)
    if any(place.is_dir() for place in _unfinished(path.parent, path.name)):
        raise ValueError(f"another process writes {path}: wait until it has ended")
    unfinished = temporary_name(path)
    with lock_folder(unfinished):
        try:
            yield unfinished
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def temporary_name(path: Path) -> Path:
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
