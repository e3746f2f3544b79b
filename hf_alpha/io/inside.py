"""Paths that a folder of others names are followed inside it, and nowhere else."""

import os
from collections.abc import Callable
from pathlib import Path


class OutsideError(ValueError):
    """A folder of others names what lies outside of it."""


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
