"""The code beside a model or tokenizer: links to `hf_alpha/modeling` in a checkout, else files.

`python -m hf_alpha.code_links` renews the links of all folders in a checkout.
"""

import os
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files

from hf_alpha.folders import read_json, replacing
from hf_alpha.resources import checkout_folders

CODE = Path(__file__).resolve().parent / "modeling"
CONFIGURATIONS = ("config.json", "tokenizer_config.json")


def code_files(folder: Path, code: Path = CODE) -> set[str]:
    """Return the names of the files of code that a saved model or tokenizer comes with.

    These are the modules that the `auto_map` of its configuration files names, and what they
    import, found by the function that `save_pretrained` itself uses.

    Args:
        code: where the files are read: this version's, or the folder itself.

    Raises:
        FileNotFoundError: a module is not there.
    """
    names = set()
    for configuration in CONFIGURATIONS:
        if (folder / configuration).is_file():
            for module in _modules(folder / configuration):
                file = code / f"{module}.py"
                names |= {file.name, *(Path(path).name for path in get_relative_import_files(file))}
    return names


def _modules(configuration: Path) -> set[str]:
    """Return the modules of the classes in an `auto_map`; a tokenizer's entry is a list of two."""
    modules = set()
    for entry in read_json(configuration).get("auto_map", {}).values():
        classes = entry if isinstance(entry, list) else [entry]
        modules |= {name.split(".")[0] for name in classes if name}
    return modules


def link_code(folder: Path) -> None:
    """Put links in place of the code in a folder of this checkout; leave any other folder alone.

    Only folders below the checkout's `model_cards/` and `tokenizer/` get links: there the code is
    in git already. Links that are not needed any more are removed.
    """
    folder = folder.resolve()
    if not any(place in folder.parents for place in checkout_folders()):
        return
    names = code_files(folder)
    for name in names:
        with replacing(folder / name) as link:
            link.symlink_to(os.path.relpath(CODE / name, folder))
    for path in folder.glob("*.py"):
        if path.is_symlink() and path.name not in names:
            path.unlink()


def main() -> None:
    """Renew all links in this checkout."""
    for place in checkout_folders():
        for folder in sorted(path for path in place.rglob("*") if path.is_dir()):
            link_code(folder)


if __name__ == "__main__":
    main()
