"""The code beside a model or tokenizer: files, and in a checkout one link to `hf_alpha/modeling`.

`save_pretrained` writes the files that a model needs beside its weights. In this checkout they are
there already, so each of its folders has a link, `code`, and its configurations name the classes
below it (`code/modeling_...`). Transformers finds them there as it does on the Hub.

`python -m hf_alpha.checkpoints.code_links` makes all folders of the checkout so.
"""

import os
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files

from hf_alpha.io.folders import write_text
from hf_alpha.io.records import read_json
from hf_alpha.resources import checkout_folders

CODE = Path(__file__).resolve().parents[1] / "modeling"
LINK = "code"
CONFIGURATIONS = ("config.json", "tokenizer_config.json")


def code_files(folder: Path, own: bool = False) -> set[str]:
    """Return the files of code that a saved model or tokenizer comes with, relative to its folder.

    These are the modules that the `auto_map` of its configuration files names, and what they
    import, found by the function that `save_pretrained` itself uses.

    Args:
        own: read the files in the folder itself; else those of this version.

    Raises:
        FileNotFoundError: a module is not there.
    """
    names = set()
    for name in _classes(folder):
        file = Path(f"{name.split('.')[0]}.py")
        source = folder / file if own else CODE / file.name
        needed = (source, *map(Path, get_relative_import_files(source)))
        names |= {f"{file.parent / path.name}" for path in needed}
    return names


def _classes(folder: Path) -> set[str]:
    """Return what the configurations of a folder name; a tokenizer's entry is a list of two."""
    names: set[str] = set()
    for configuration in (folder / name for name in CONFIGURATIONS):
        entries = read_json(configuration).get("auto_map", {}) if configuration.is_file() else {}
        for entry in entries.values():
            names.update(filter(None, entry if isinstance(entry, list) else [entry]))
    return names


def link_code(folder: Path) -> None:
    """Put a link in place of the code in a folder of this checkout; leave any other folder alone.

    Only folders below the checkout's `model_cards/` and `tokenizer/` get one: there the code is in
    git already.
    """
    folder = folder.resolve()
    names = _classes(folder)
    if not names or not any(place in folder.parents for place in checkout_folders()):
        return
    if not os.path.lexists(folder / LINK):
        (folder / LINK).symlink_to(os.path.relpath(CODE, folder), target_is_directory=True)
    for configuration in filter(Path.is_file, (folder / name for name in CONFIGURATIONS)):
        text = configuration.read_text(encoding="utf-8")
        for name in names:
            text = text.replace(f'"{name}"', f'"{LINK}/{name.rpartition("/")[2]}"')
        write_text(configuration, text)
    for path in folder.glob("*.py"):
        if path.is_symlink() or (CODE / path.name).is_file():
            path.unlink()


def main() -> None:
    """Link the code in all folders of this checkout."""
    for place in checkout_folders():
        for folder in sorted(path for path in place.rglob("*") if path.is_dir()):
            link_code(folder)


if __name__ == "__main__":
    main()
