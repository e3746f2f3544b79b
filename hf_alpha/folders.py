"""Folders that several runs may want, and that a killed run leaves half-made."""

import difflib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from glob import escape
from inspect import signature
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar
from uuid import uuid4

from hf_alpha.resources import released_models

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
_HEX = 32 * "[0-9a-f]"
ADAPTER = "adapter_config.json"
_FILES = {
    ".bin", ".conll", ".csv", ".gz", ".json", ".jsonl", ".md", ".parquet", ".pt", ".rst",
    ".safetensors", ".tsv", ".txt", ".yaml", ".zip",
}  # fmt: skip
"""Endings of names of files; names on the Hub end in other ways."""
DEEPEST = 100
"""Lists and mappings in each other, in files of others; readers of deeper ones may crash."""
_descriptors: set[int] = set()
"""Of the locks that this process holds."""
_claimed: set[Path] = set()
"""The folders in which only this process writes."""


class OutsideError(ValueError):
    """A folder of others names what lies outside of it."""


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


def may_be_on_hub(name: str) -> bool:
    """Return whether a name can be one of the Hub, `owner/name`; otherwise it is a path.

    It is a path if it begins like one, ends like a file, or lies in a folder that is here.
    """
    path = Path(name)
    is_path = name.startswith((".", "/", "~")) or path.suffix in _FILES or path.parent.is_dir()
    return name.count("/") == 1 and not is_path


def inside(folder: Path, name: str, root: Path | None = None) -> Path:
    """Return the path of a file or folder that a folder of others names: one within that folder.

    Every path that stands in somebody's folder or repository goes through here, and is followed
    nowhere else, whoever trusts its code. What the user names does not.

    Args:
        folder: what the name is relative to.
        name: a path, or a pattern of paths.
        root: in which it has to lie, if that is not `folder`.

    Raises:
        OutsideError: it lies elsewhere, or a link leads elsewhere.
    """
    path, root = folder / name, root or folder
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root)):
        raise OutsideError(
            f"{folder} names {name!r}, which lies outside of it: a folder may name only what it "
            "holds, since others may have written it; put a copy there, or name it yourself"
        )
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(_around(root)):
        raise OutsideError(
            f"{path} is a link to {real}, outside of the folder: put a copy of that in its place, "
            "or remove the link"
        )
    return path


def _around(folder: Path) -> Path:
    """Return the folder itself; of a repository in the Hub's cache, where files are links, all."""
    real = Path(os.path.realpath(folder))
    for place in (real, *real.parents):
        if place.parent.name == "snapshots" and "--" in place.parent.parent.name:
            return place.parent.parent
    return real


def check_links(
    folder: Path, but: Callable[[Path], bool] | None = None, hidden: bool = False
) -> None:
    """Refuse links out of a folder of others, at any depth; links to folders are links.

    Args:
        but: says which links are not looked at.
        hidden: look into folders whose names begin with a point, too.

    Raises:
        OutsideError: naming the first.
    """
    for place, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            path = Path(place, name)
            if path.is_symlink() and not (but and but(path)):
                inside(folder, f"{path.relative_to(folder)}")
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]


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
        FileNotFoundError: there is no such folder, or neither model nor adapter in it.
    """
    folder = Path(path).expanduser()
    place = str(folder)
    if not folder.is_dir() and not may_be_on_hub(str(path)):
        meant = similar_names(folder)
        with suppress(FileNotFoundError, KeyError):
            meant = f" (did you mean {released_models()[place]}?)"
        raise FileNotFoundError(f"no checkpoint folder {place!r}{meant}")
    if folder.is_dir() and not any((folder / name).is_file() for name in ("config.json", ADAPTER)):
        raise FileNotFoundError(f"{place!r} is no checkpoint folder: it has no config.json")
    return place


def file_of(place: str | Path, name: str, reachable: bool = True) -> Path | None:
    """Return a file of a folder or repository; None where there is none.

    Args:
        reachable: a repository that cannot be reached is an error; else it has no file.
    """
    folder = Path(place).expanduser()
    if folder.is_dir():
        return folder / name if (folder / name).is_file() else None
    from transformers.utils import cached_file

    file = cached_file(
        f"{folder}", name, _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_gated_repo=reachable,
        _raise_exceptions_for_connection_errors=reachable,
    )  # fmt: skip
    return None if file is None else Path(file)


def base_of(place: str | Path) -> str | None:
    """Return where the model of an adapter (PEFT) is; None of a folder that holds a whole model.

    It is the folder or Hub name that the adapter names: whoever names an adapter means its base
    too. A folder is relative to the current one, as for PEFT. Of a revision, it is the copy of that
    revision in the Hub's cache.

    Raises:
        FileNotFoundError: the base, or its revision, is not there; or the name cannot be reached.
        ValueError: the adapter names none, or one that is an adapter itself.
    """
    if not Path(place).expanduser().is_dir() and not may_be_on_hub(f"{place}"):
        return None
    try:
        file = file_of(place, ADAPTER)
    except OSError as error:
        raise FileNotFoundError(
            f"{str(place)!r} is neither a folder here nor a complete model that can be reached on "
            f"the Hub: {' '.join(f'{error}'.split())}"
        ) from error
    if file is None:
        return None
    record = read_json(file)
    named, revision = record.get("base_model_name_or_path"), record.get("revision")
    advice = f"write where its model lies into base_model_name_or_path of its {ADAPTER}"
    if not isinstance(named, str) or not named:
        raise ValueError(f"{place} is an adapter (PEFT) that names no model: {advice}")
    try:
        base = checkpoint_place(named)
        if revision not in (None, "main"):
            base = _at_revision(base, f"{revision}")
        is_adapter = file_of(base, ADAPTER) is not None
    except OSError as error:
        at = "" if revision is None else f", revision {revision!r}"
        raise FileNotFoundError(
            f"{place} is an adapter (PEFT) for {named!r}{at}, which is not there: "
            f"{' '.join(f'{error}'.split())}; {advice}"
        ) from error
    if is_adapter:
        raise ValueError(
            f"{place} is an adapter (PEFT) for {named!r}, which holds an adapter itself: {advice}"
        )
    return base


def _at_revision(base: str, revision: str) -> str:
    """Return the copy of a repository's revision in the Hub's cache, to load a model from."""
    from huggingface_hub import snapshot_download

    if Path(base).is_dir():
        raise FileNotFoundError(f"{base!r} is a folder here, which has no revisions")
    read = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py", "*.yaml"]
    return snapshot_download(base, revision=revision, allow_patterns=read)


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
