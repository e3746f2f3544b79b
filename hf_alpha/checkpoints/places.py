"""Where a checkpoint is: a folder here or a name on the Hub, and of an adapter, its base."""

import difflib
from contextlib import suppress
from pathlib import Path

from hf_alpha.io.records import read_json
from hf_alpha.resources import released_models

ADAPTER = "adapter_config.json"
_FILES = {
    ".bin", ".conll", ".csv", ".gz", ".json", ".jsonl", ".md", ".parquet", ".pt", ".rst",
    ".safetensors", ".tsv", ".txt", ".yaml", ".zip", ".zst",
}  # fmt: skip
"""Endings of names of files; names on the Hub end in other ways."""


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
        FileNotFoundError: there is no such folder, or neither model nor adapter in it.
    """
    folder = Path(path).expanduser()
    place = str(folder)
    if not folder.is_dir() and not may_be_on_hub(str(path)):
        meant = ": it is a file" if folder.is_file() else similar_names(folder)
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

    try:
        file = cached_file(
            f"{folder}", name, _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_gated_repo=reachable,
            _raise_exceptions_for_connection_errors=reachable,
        )  # fmt: skip
    except OSError:  # there is no such repository
        if reachable:
            raise
        return None
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
