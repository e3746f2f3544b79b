"""Saving into a folder whose code files are links, as in a checkout or in a copy of one."""

import os
import shutil
from pathlib import Path
from typing import Any

SUFFIX = ".unlinked"


def unlink_code(folder: str | os.PathLike) -> None:
    """Replace links to Python files by files of the same contents; drop those that lead nowhere.

    `save_pretrained` copies code over what is there: through a link it would change the file that
    the link leads to, or stop because both are one file.
    """
    for link in Path(folder).glob("*.py"):
        if not link.is_symlink():
            continue
        if link.exists():
            copy = link.with_name(link.name + SUFFIX)
            shutil.copyfile(link, copy)
            os.replace(copy, link)
        else:
            link.unlink()


class SavesCode:
    """Mixin in front of a class with `save_pretrained`: it never writes through links to code."""

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> Any:
        """As in the base class; code files that are links become files of the folder's own."""
        unlink_code(save_directory)
        return super().save_pretrained(save_directory, *args, **kwargs)  # type: ignore[misc]


__all__ = ["SavesCode", "unlink_code"]
