"""Build hook: puts the data folders of the checkout into the wheel.

An editable install needs no copy (`hf_alpha.resources` finds the checkout's own folders), and a
copy would hide the package behind a folder of the same name, so only the standard wheel gets one.

Left out is what an installed package does not read: the pictures of cards, the code beside models
and tokenizers, which is the package's own, and the small models that are there to be compared with;
and a model that is as large as all others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA_FOLDERS = ("tokenizer", "training", "model_cards")
LEFT_OUT = {".png", ".py", ".pyc"}
LARGE = "reactions-relational"
SMALL = "small"
SMALL_BUT_NEEDED = {"copying-relational-small"}
"""The only released model of its task."""


def data_files(root: Path) -> Iterator[Path]:
    """Return what the wheel has of the data folders, relative to the checkout."""
    for path in (file for name in DATA_FOLDERS for file in (root / name).rglob("*")):
        is_small = path.parent.parent.name == SMALL and path.parent.name not in SMALL_BUT_NEEDED
        is_left_out = is_small or path.suffix in LEFT_OUT or path.parent.name == LARGE
        if path.is_file() and not is_left_out:
            yield path.relative_to(root)


class DataFolders(BuildHookInterface[Any]):
    """Maps each data file onto `hf_alpha/_data/` inside the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            files = map(str, data_files(Path(self.root)))
            build_data["force_include"] |= {name: f"hf_alpha/_data/{name}" for name in files}
