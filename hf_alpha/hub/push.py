"""Sharing on the Hub, and what of a folder is shared: what belongs to a model or a dataset."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from datasets import load_dataset
from datasets.exceptions import DatasetsError
from huggingface_hub import CommitOperationAdd, HfApi
from transformers.tokenization_utils_base import (
    ADDED_TOKENS_FILE,
    FULL_TOKENIZER_FILE,
    SPECIAL_TOKENS_MAP_FILE,
    TOKENIZER_CONFIG_FILE,
)
from transformers.utils import (
    CHAT_TEMPLATE_DIR,
    CHAT_TEMPLATE_FILE,
    CONFIG_NAME,
    GENERATION_CONFIG_NAME,
    SAFE_WEIGHTS_INDEX_NAME,
)

from hf_alpha.checkpoints.code_links import CODE, code_files
from hf_alpha.checkpoints.places import ADAPTER
from hf_alpha.data.files import SETTINGS, check_card, check_whole
from hf_alpha.data.keys import TRAINED_ROWS_FILE
from hf_alpha.hub.card import NOTES_FILE, how_to_write
from hf_alpha.hub.release import LOG_FILE
from hf_alpha.io.inside import inside
from hf_alpha.io.plain_text import printable
from hf_alpha.io.records import read_json
from hf_alpha.loading import load_checkpoint
from hf_alpha.names.first_look import FIRST_LOOK_FILE
from hf_alpha.recipe import HUB_TOKEN, RECIPE_FILE, check_shareable

WEIGHTS = re.compile(r"(adapter_)?model(-\d+-of-\d+)?\.safetensors")
SAVED = (
    *(CONFIG_NAME, ADAPTER, GENERATION_CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, CHAT_TEMPLATE_FILE),
    *(ADDED_TOKENS_FILE, FULL_TOKENIZER_FILE, SPECIAL_TOKENS_MAP_FILE, TOKENIZER_CONFIG_FILE),
)
"""What `save_pretrained` writes beside weights, code, and what a tokenizer has of its own."""
CARD_LINES = 24
"""Lines of a card that a dry run shows."""
CARD = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
LINK = re.compile(r"""\]\(\s*<?([^)>\s]+)|\bsrc=["']?([^"'>\s]+)""")


def push(
    folder: Path,
    repository: str,
    private: bool = False,
    say: Callable[[str], object] = print,
    dry_run: bool = False,
) -> str:
    """Upload what belongs to the model or the dataset in a folder, after checking that it loads.

    A model folder has a `config.json`, or an adapter's `adapter_config.json`, a dataset folder
    parquet files below `data/`. Its README.md
    becomes the card. Nothing else that lies there is uploaded, and no target of a link out of it
    but the package's own code.

    Args:
        repository: owner/name on the Hub.
        private: make it so that others do not see it, if it is new.
        say: is told before the upload which files are uploaded, and which are left out.
        dry_run: upload nothing; `say` is told how the card begins, too.

    Returns:
        The address of the repository.

    Raises:
        ValueError: it is neither, it does not load, a file of it is a link to somewhere else, or a
            secret is in it.
    """
    kind, belongs = _contents(folder)
    files = {
        name: _real(folder, name)
        for name in sorted(belongs)
        if (folder / name).is_file() or (folder / name).is_symlink()
    }
    _check_secrets(folder, files)
    say(f"{repository} gets these files of {folder}, with their bytes:")
    for name, path in files.items():
        say(f"{path.stat().st_size:>15,}  {name}")
    if left_out := sorted(_left_out(folder, files)):
        say(f"left out, as no part of a {kind}: {', '.join(left_out)}")
    api = HfApi()
    if dry_run:
        card = files.get(CARD[0])
        lines = [] if card is None else card.read_text(encoding="utf-8").splitlines()
        begins = "\n".join(f"  {printable(line)}" for line in lines[:CARD_LINES])
        way = f": {how_to_write(folder)}" if kind == "model" else ""
        say(f"the card begins:\n{begins}" if lines else f"there is no card, {CARD[0]}{way}")
        return f"nothing was uploaded to {api.endpoint}/{repository}: this was a dry run"
    url = api.create_repo(repository, private=private, repo_type=kind, exist_ok=True)
    api.create_commit(
        repository,
        [CommitOperationAdd(name, path) for name, path in files.items()],
        repo_type=kind,
        commit_message=f"Upload {kind}",
    )
    return str(url)


def _contents(folder: Path) -> tuple[str, set[str]]:
    """Tell model from dataset, either of which has to load, and what may belong to it."""
    if any((folder / name).is_file() for name in (CONFIG_NAME, ADAPTER)):
        _check_base(folder)
        _, tokenizer = load_checkpoint(folder, answers=False)
        names = model_files(folder, tokenizer)
        if not any(map(WEIGHTS.fullmatch, names)):
            raise ValueError(f"{folder} has no *.safetensors: save the model by save_pretrained")
        return "model", names
    check_whole(folder)
    if data := [f"data/{path.name}" for path in folder.glob("data/[!.]*.parquet")]:
        check_card(folder)
        try:
            load_dataset(str(folder))
        except DatasetsError as error:
            raise ValueError(f"{folder}: the dataset does not load: {error}") from error
        return "dataset", {*data, SETTINGS, *CARD, *pictures(folder)}
    raise ValueError(f"{folder} is neither a model (config.json) nor a dataset (data/*.parquet)")


def _check_base(folder: Path) -> None:
    """Raise ValueError for an adapter whose model only this machine has."""
    file = folder / ADAPTER
    base = read_json(file).get("base_model_name_or_path") if file.is_file() else None
    if base is not None and Path(f"{base}").expanduser().is_dir():
        raise ValueError(
            f"{folder} is an adapter (PEFT) for {base!r}, a folder of this machine: push that "
            f"model first, and write its name on the Hub into base_model_name_or_path of {file}; "
            f"or push it merged (hf-alpha convert {folder} MERGED)"
        )


def _real(folder: Path, name: str) -> Path:
    """Return the file of that name: in the folder, or the package's own code."""
    real = (folder / name).resolve()
    return real if real == CODE / Path(name).name else inside(folder, name)


def _check_secrets(folder: Path, files: dict[str, Path]) -> None:
    """Raise ValueError if the recipe or another text has a secret in it."""
    if RECIPE_FILE in files:
        check_shareable(folder / RECIPE_FILE)
    for name, path in files.items():
        text = path.suffix in (".json", ".jinja", ".md", ".py", ".txt", ".yaml")
        if text and HUB_TOKEN.search(path.read_text(encoding="utf-8", errors="replace")):
            raise ValueError(
                f"{folder / name} has a token of the Hub in it (hf_...): take it out, and replace "
                "it by a new one if others may have seen it"
            )


def _left_out(folder: Path, files: dict[str, Path]) -> Iterator[str]:
    """Return what else lies in a folder; of one within it that shares nothing, its name."""
    shared = {folder / name for name in files}
    opened_folders = {folder / parent for name in files for parent in Path(name).parents}
    for place in opened_folders:
        for path in set(place.iterdir()) - shared - opened_folders:
            yield f"{path.relative_to(folder)}{'/' * path.is_dir()}"


def model_files(folder: Path, tokenizer: Any) -> set[str]:
    """Return the names of a model's files, as `save_pretrained`, `release` and cards write them.

    Raises:
        ValueError: code that the model names is not there.
    """
    names = {*SAVED, *CARD, NOTES_FILE, RECIPE_FILE, LOG_FILE, FIRST_LOOK_FILE, TRAINED_ROWS_FILE}
    names |= _code(folder)
    names |= {*tokenizer.vocab_files_names.values(), *pictures(folder)}
    names |= {path.name for path in folder.iterdir() if WEIGHTS.fullmatch(path.name)}
    templates = folder.glob(f"{CHAT_TEMPLATE_DIR}/*.jinja")
    return names | {f"{CHAT_TEMPLATE_DIR}/{path.name}" for path in templates}


def _code(folder: Path) -> set[str]:
    """Return the code of the folder, of this version or another, that its configurations name."""
    try:
        return code_files(folder, own=True)
    except FileNotFoundError as error:
        missing = Path(error.filename)
        is_link = missing.is_symlink() or missing.parent.is_symlink()
        fault = "a link that leads nowhere" if is_link else "not there"
        raise ValueError(
            f"{missing} is {fault}: copy model folders of a checkout with cp -rL, or write the "
            f"code again with hf-alpha release {folder}"
        ) from None


def pictures(folder: Path) -> Iterator[str]:
    """Return the names of pictures in a folder that its README.md shows or links to."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    for link in LINK.finditer(text):
        path = Path(unquote(link[1] or link[2]))
        hidden = any(part.startswith(".") for part in path.parts)  # .. as well
        if path.suffix.lower() in PICTURES and not (hidden or path.is_absolute()):
            yield str(path)
