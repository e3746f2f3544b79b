"""Whose code is obeyed: a name of code counts where the user wrote it, and nowhere else.

Recipes, rules for names and configurations can name code, as `module:function` or in `auto_map`.
The user's own word is obeyed: a recipe given on the command line, an option, Python. A folder or
the Hub is a stranger's, whose names of code are refused, unless

- they are checks that the package itself brings (`PACKAGE_CHECK`); or
- the user trusts it for this command: `--trust-remote-code`, [`trusting`], which holds for an
  adapter and for the model that it names; or
- this user's `train` wrote it on this machine, or `release` copied it from there, and it lies there
  unchanged: [`remember_recipe`] keeps a digest of its recipe in the user's cache. Nothing in the
  folder itself counts.

Which files count is said by `hf_alpha.io.inside`; trust in code changes nothing there.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from hf_alpha.checkpoints.places import base_of
from hf_alpha.io.folders import write_text

TRUST_OPTION = "--trust-remote-code"
CACHE = "HF_ALPHA_CACHE"
"""Environment variable with the folder of what is remembered; by default in `~/.cache`."""

PACKAGE_CHECK = re.compile(r"hf_alpha\.tasks\.text\.\w+:(?:check|check_step)")
"""The checks that the package brings: these judge, and do nothing else."""

logger = logging.getLogger(__name__)
_trusted: ContextVar[frozenset[str]] = ContextVar("trusted", default=frozenset())


class UntrustedCodeError(ValueError):
    """A folder or the Hub names code that nobody here has allowed."""

    def __init__(self, place: object, names: Mapping[str, str]):
        """Say what would run.

        Args:
            place: the file or folder that names the code.
            names: key -> name of code.
        """
        listed = ", ".join(f"{key}: {name!r}" for key, name in names.items())
        super().__init__(
            f"{place} names code that would run on this machine: {listed}. It is refused, since "
            "others may have written it. If you know the code and trust it, pass "
            f"{TRUST_OPTION}; that holds for this folder and this command only"
        )


@contextmanager
def trusting(*places: str | Path | None) -> Iterator[None]:
    """Obey the code that these folders and Hub names name, and no other, within a `with` block.

    Args:
        places: folders or Hub names; None is left out. With an adapter, its model is trusted.
    """
    named = [place for place in places if place is not None]
    keys = {_key(place) for place in (*named, *filter(None, map(base_of, named)))}
    token = _trusted.set(_trusted.get() | keys)
    try:
        yield
    finally:
        _trusted.reset(token)


def is_trusted(place: str | Path) -> bool:
    """Return whether the user trusts the code of a folder or Hub name, within `trusting`."""
    return _key(place) in _trusted.get()


def refused_code(place: str | Path, names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of code that a place may not have run.

    Args:
        names: key -> name of code.
    """
    if is_trusted(place):
        return {}
    remembered = _remembered(Path(place).expanduser())
    return {
        key: name
        for key, name in names.items()
        if name not in remembered and not PACKAGE_CHECK.fullmatch(name)
    }


def remember_recipe(file: Path, names: Collection[str]) -> None:
    """Remember that this user's training wrote a recipe here, and which code the user named in it.

    Args:
        names: of the code that the user's own recipe names.
    """
    record = _record(file)
    try:
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(record, json.dumps(sorted(names)))
    except OSError as error:
        logger.warning(
            "%s cannot be written (%s): evaluating this run will need --data, and %s for code",
            record, error, TRUST_OPTION,
        )  # fmt: skip


def remember_copy(file: Path, folder: Path) -> None:
    """Remember that `release` copied the recipe of a run, if the run is this user's.

    Args:
        folder: the run, or a checkpoint of it.
    """
    if was_trained_here(folder):
        remember_recipe(file, _remembered(folder))


def was_trained_here(folder: Path) -> bool:
    """Return whether this user's training wrote the recipe of a run, or of a checkpoint's run."""
    return _recorded(folder) is not None


def _remembered(folder: Path) -> frozenset[str]:
    """Return the names of code in the recipe of a run of this user."""
    record = _recorded(folder)
    return frozenset() if record is None else frozenset(json.loads(record.read_text()))


def _recorded(folder: Path) -> Path | None:
    for file in (folder / "recipe.yaml", folder.parent / "recipe.yaml"):
        if file.is_file():
            return record if (record := _record(file)).is_file() else None
    return None


def _record(file: Path) -> Path:
    """Return where a recipe is remembered: by place and content, so that no copy counts."""
    place = str(file.resolve()).encode()
    digest = hashlib.sha256(place + b"\0" + file.read_bytes()).hexdigest()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = os.environ.get(CACHE) or f"{caches}/hf_alpha"
    return Path(folder).expanduser() / "recipes" / f"{digest}.json"


def _key(place: str | Path) -> str:
    """Return one key for all ways to write a place."""
    folder = Path(place).expanduser()
    return str(folder.resolve()) if folder.exists() else str(place)
