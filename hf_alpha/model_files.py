"""What belongs to a model in its folder, and so is shared; all else there is the user's own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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

from hf_alpha.card import NOTES_FILE
from hf_alpha.code_links import code_files
from hf_alpha.first_look import FIRST_LOOK_FILE
from hf_alpha.recipe import RECIPE_FILE
from hf_alpha.release import LOG_FILE

WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors")
SAVED = (
    *(CONFIG_NAME, GENERATION_CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, CHAT_TEMPLATE_FILE),
    *(ADDED_TOKENS_FILE, FULL_TOKENIZER_FILE, SPECIAL_TOKENS_MAP_FILE, TOKENIZER_CONFIG_FILE),
)
"""What `save_pretrained` writes beside weights, code, and what a tokenizer has of its own."""
CARD = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
LINK = re.compile(r"""\]\(\s*<?([^)>\s]+)|\bsrc=["']?([^"'>\s]+)""")


def model_files(folder: Path, tokenizer: Any) -> set[str]:
    """Return the names of a model's files, as `save_pretrained`, `release` and cards write them.

    Args:
        folder: of the model.
        tokenizer: that of the model.

    Raises:
        ValueError: code that the model names is not there.
    """
    names = {*SAVED, *CARD, NOTES_FILE, RECIPE_FILE, LOG_FILE, FIRST_LOOK_FILE}
    names |= _code(folder)
    names |= {*tokenizer.vocab_files_names.values(), *pictures(folder)}
    names |= {path.name for path in folder.iterdir() if WEIGHTS.fullmatch(path.name)}
    templates = folder.glob(f"{CHAT_TEMPLATE_DIR}/*.jinja")
    return names | {f"{CHAT_TEMPLATE_DIR}/{path.name}" for path in templates}


def _code(folder: Path) -> set[str]:
    """Return the code of the folder, of this version or another, that its configurations name."""
    try:
        return code_files(folder, folder)
    except FileNotFoundError as error:
        missing = Path(error.filename)
        fault = "a link that leads nowhere" if missing.is_symlink() else "not there"
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


__all__ = ["CARD", "WEIGHTS", "model_files", "pictures"]
