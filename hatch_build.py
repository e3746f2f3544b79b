"""Build hook: puts the data folders of the checkout into the wheel.

An editable install needs no copy (`hf_alpha.resources` finds the checkout's own folders), and a
copy would hide the package behind a folder of the same name, so only the standard wheel gets one.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA_FOLDERS = ("tokenizer", "training", "model_cards")


class DataFolders(BuildHookInterface[Any]):
    """Maps each data folder onto `hf_alpha/_data/<folder>` inside the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {name: f"hf_alpha/_data/{name}" for name in DATA_FOLDERS}
