"""Real files under other names: `python tests/language_texts.py LANGUAGE FOLDER COPY [SUFFIX ...]`.

Renames the files of a folder at random in a copy of it, by the rule of a language, and prints how
many names there were. What the copy does is then compared with what the folder does: by running
it, or by compiling both.
"""

import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hf_alpha.modeling.names_in_languages import declared_names

FRESH = [f"{a}{b}{n}" for n in range(400) for a in "qvwxyz" for b in "kjo"]
SUFFIXES = {
    "go": [".go"],
    "typescript": [".ts", ".mts", ".cts"],
    "javascript": [".js", ".cjs", ".mjs"],
    "java": [".java"],
    "c": [".c", ".h"],
}


_PACKAGES = TemporaryDirectory()


@cache
def npm_package(name: str) -> Path:
    """Return the folder of a package of npm, such as `rxjs@7.8.2`, which this process removes."""
    folder = Path(_PACKAGES.name, name)
    folder.mkdir(parents=True)
    command = ["npm", "pack", "--silent", name, "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def typescript() -> Path:
    """Return TypeScript itself, which compiles, and says what means what."""
    return npm_package("typescript@5.9.3")


@cache
def node_modules() -> Path:
    """Return a folder with esbuild, which takes types out, and terser, which numbers names."""
    folder = Path(_PACKAGES.name, "node_modules")
    folder.mkdir()
    command = ["npm", "install", "--silent", "esbuild@0.25.12", "terser@5.44.1"]
    subprocess.run(command, cwd=folder.parent, check=True, capture_output=True)
    return folder


class Renamed(NamedTuple):
    """A text under other names, binding -> new name, and at how many places they stand."""

    text: str
    table: dict[str, str]
    places: int


def renamed(find: Callable[[str], list[tuple[Any, ...]]], text: str, rng: random.Random) -> Renamed:
    """Rename a text; what finds names has to find the same in it again."""
    found = find(text)
    words = {*re.findall(r"\w+", text.lower())}
    bindings = [*dict.fromkeys(binding for *_, binding in found)]
    free = [name for name in FRESH if name not in words]
    table = dict(zip(bindings, rng.sample(free, len(bindings)), strict=True))
    parts, end = [], 0
    for start, stop, binding in found:
        parts += [text[end:start], table[binding]]
        end = stop
    other = "".join([*parts, text[end:]])
    again = [other[start:stop] for start, stop, _ in find(other)]
    assert again == [table[binding] for *_, binding in found], (text, other)
    return Renamed(other, table, len(found))


def rename_folder(language: str, folder: Path, copy: Path, suffixes: Sequence[str] = ()) -> str:
    """Copy a folder with its files renamed; return what there was."""
    rng, done = random.Random(0), list[Renamed]()
    find = partial(declared_names, language=language)
    shutil.copytree(folder, copy)
    for file in sorted(copy.rglob("*")):
        if file.is_file() and file.suffix in (suffixes or SUFFIXES[language]):
            done.append(renamed(find, file.read_text(), rng))
            file.write_text(done[-1].text)
    without = sum(not file.table for file in done)
    names, places = sum(len(file.table) for file in done), sum(file.places for file in done)
    return f"{len(done)} files ({without} without names), {names} names at {places} places"


if __name__ == "__main__":
    language, folder, copy, *suffixes = sys.argv[1:]
    print(rename_folder(language, Path(folder), Path(copy), suffixes))
