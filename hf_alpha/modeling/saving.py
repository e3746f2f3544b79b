"""Saving where code lies elsewhere: configurations name it there, or files of it are links."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformers.dynamic_module_utils import get_relative_import_files


class SavesCode:
    """Mixin in front of a class with `save_pretrained`, which writes code beside what it saves.

    It never writes through links to code.
    """

    _auto_class: str | None

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> Any:
        """Saves as the base class does; links to code become files of the folder's own."""
        if self._auto_class is not None:
            _replace_links(self, Path(save_directory))
            _name_code_beside(getattr(self, "config", self))
        return super().save_pretrained(save_directory, *args, **kwargs)  # type: ignore[misc]


def _name_code_beside(config: Any) -> None:
    """Name code where it is about to be written, wherever it was loaded from."""
    for auto, name in (getattr(config, "auto_map", None) or {}).items():
        if isinstance(name, str):
            config.auto_map[auto] = name.removeprefix("code/")  # of a checkout


def _replace_links(saved: object, folder: Path) -> None:
    """Put files in place of links where saving is about to write the code of an object's class.

    `save_pretrained` copies code over what is there: through a link it would change the file that
    the link leads to, or stop because both are one file. Several processes may do this at once:
    each puts the same file there, in one step. Any other file in the folder is somebody else's.
    """
    links = {path for path in folder.glob("*.py") if path.is_symlink()}
    for source in code_files(saved) if links else ():
        if (place := folder / source.name) in links:
            with TemporaryDirectory(dir=folder) as own:
                os.replace(shutil.copyfile(source, Path(own) / place.name), place)


def code_files(saved: Any) -> Iterator[Path]:
    """Returns the files that are saved: an object's `code_module` or its class's, and imports."""
    module = type(saved).__module__
    if module != "__main__":  # which is not saved
        file = Path(str(sys.modules[module].__file__))
        file = file.with_stem(getattr(saved, "code_module", file.stem))
        yield from map(Path, (file, *get_relative_import_files(file)))
