"""What lies in a folder, to compare it with another one; a copy of the repository."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "benchmarks",
    "docs",
    "examples",
    "hf_alpha",
    "tests",
    "tokenizer",
    "training",
    "pyproject.toml",
)


def files_of(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The path in the folder and the content of each file beneath it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def copy_tree(copy: Path) -> None:
    """Copy what the tests need; the model cards, which are large, are linked."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, copy / name)
    (copy / "model_cards").symlink_to(ROOT / "model_cards")
