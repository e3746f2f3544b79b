"""Which files those of a model name or link to: every key by which their readers find a path.

Whatever a folder or repository of others names goes through here before it is read.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers.dynamic_module_utils import get_relative_import_files
from transformers.tokenization_utils_base import SPECIAL_TOKENS_MAP_FILE, TOKENIZER_CONFIG_FILE
from transformers.utils import (
    CONFIG_NAME,
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    WEIGHTS_INDEX_NAME,
)

from hf_alpha.checkpoints.code_links import CODE, CONFIGURATIONS, LINK
from hf_alpha.checkpoints.places import file_of
from hf_alpha.io.inside import OutsideError, check_links, inside
from hf_alpha.io.records import entries_in, read_json, texts_in

WEIGHTS = SAFE_WEIGHTS_NAME
PARTS = {
    CONFIG_NAME: (CONFIG_NAME,),
    "tokenizer": (CONFIG_NAME, TOKENIZER_CONFIG_FILE, SPECIAL_TOKENS_MAP_FILE),
    WEIGHTS: (CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME),
}
"""Part of a checkpoint -> the files that name further ones."""
NAMING = ("transformers_weights", "configuration_files", "fast_tokenizer_files", "weight_map")
"""Keys whose values name files of the folder; one that ends in .json may name others in turn."""
_OPENED = re.compile(r"(.*_)?(file|path|vocab|merges)|init_inputs")
"""Keys of a tokenizer whose values are opened as they stand, also from the current folder."""
_FOUND = ("tokenizer_file", "special_tokens_map_file", "added_tokens_file")
"""Those of tokenizer_config.json that Transformers replaces by what it finds in the folder."""


def check_files(place: str, part: str) -> None:
    """Refuse files elsewhere that those of a checkpoint link to or name.

    What is read is written again by `release`, `convert` and `train`, and then shared. All of it
    has an ending, or is named. Code is not read without trust: `check_code` looks at it, and `push`
    sees what links to it are.

    Args:
        place: folder or Hub name.
        part: a key of `PARTS`, or another part, which names no files.

    Raises:
        OutsideError: naming the file or the link.
    """
    if Path(place).is_dir():
        check_links(Path(place), but=_is_not_read)
    elif part == CONFIG_NAME:  # is first: without a network, ask once; the others look at it again
        return
    for _, folder, record in _records(place, *PARTS.get(part, ())):
        for key, value in entries_in(record):
            if _OPENED.fullmatch(key) and not key.endswith("name_or_path"):
                for path in value if isinstance(value, list) else [value]:
                    # Of old tokenizers, most are nowhere.
                    if isinstance(path, str) and os.path.isfile(path):
                        inside(folder, os.path.abspath(path))


def _is_not_read(link: Path) -> bool:
    """Whether a link leads to code, or to a file without an ending: it is read if it is named."""
    return link.name == LINK or (link.suffix in ("", ".py") and not link.is_dir())


def check_code(place: str) -> None:
    """Refuse code elsewhere that the `auto_map` of a folder or repository leads to.

    Who trusts its code trusts what lies in it, and links to this package's own code.

    Raises:
        OutsideError: naming the class, or the link.
    """
    folder = Path(place)
    for link in folder.rglob("*.py"):
        _check_module(folder, link)
    for file, _, record in _records(place, *CONFIGURATIONS):
        for name in texts_in([value for key, value in entries_in(record) if key == "auto_map"]):
            repository, _, reference = name.rpartition("--")
            module = Path(f"{reference.rpartition('.')[0]}.py")
            if repository not in ("", place) or not re.fullmatch(r"[\w/]+\.py", f"{module}"):
                raise OutsideError(
                    f"{file} names the class {name!r}, which lies outside of it: code is trusted "
                    "of the folder or repository alone that is named; write module.Class, and put "
                    "a copy of the module there"
                )
            _check_module(folder, folder / module)
            if (folder / module).is_file():
                for imported in get_relative_import_files(folder / module):
                    _check_module(folder, Path(imported))


def _check_module(folder: Path, file: Path) -> None:
    if file.resolve().parent != CODE:
        inside(folder, os.path.relpath(file, folder))


def _records(place: str, *names: str) -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """Yield files of a folder or repository, and those that they name: file, folder, content.

    Raises:
        OutsideError: a file that is named lies elsewhere.
    """
    left, seen = [*names], set[str]()
    while left:
        name = left.pop()
        if name in seen or (file := file_of(place, name)) is None:
            continue
        seen.add(name)
        folder, record = file.parents[len(Path(name).parts) - 1], read_json(file)
        for named in texts_in([record.get(key) for key in NAMING]):
            inside(folder, named)
            left += [named] * named.endswith(".json")
        if name == TOKENIZER_CONFIG_FILE:
            record = {key: value for key, value in record.items() if key not in _FOUND}
        yield file, folder, record
