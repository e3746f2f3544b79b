"""Which problems count as one, and which split a problem is in: by hashes of canonical forms."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hf_alpha.checkpoints.places import file_of
from hf_alpha.io.folders import replacing
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import parts
from hf_alpha.tasks import Task

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
KEY_BYTES = 16
TRAINED_ROWS_FILE = "trained_rows.npy"
"""Beside a trained model: keys of the rows that it was trained on, 8 bytes each."""


def split_of(key: bytes) -> str:
    """Return the split that a problem with this key (see `key_of`) belongs to."""
    position = int.from_bytes(key[:8], "big") / 2**64
    for split, share in SPLITS.items():
        if position < share:
            return split
        position -= share
    return split


def key_of(canonical: str) -> bytes:
    """Return the 16-byte hash of a canonical form: equivalent problems, equal keys."""
    return hashlib.blake2b(canonical.encode(), digest_size=KEY_BYTES).digest()


def positions_of(texts: Iterable[str], seed: int) -> np.ndarray:
    """Return where each text stands between 0 and 1: by chance, but equal texts together."""
    keys = b"".join(key_of(f"{seed} {text}")[:8] for text in texts)
    return np.frombuffer(keys, dtype=">u8") / 2.0**64


def key_in(task: Task, tokens: Sequence[str], equivalence: str) -> bytes:
    """Return the key of a problem; without an equivalence that of its text."""
    return key_of(task.canonical_form(tokens, equivalence) if equivalence else task.write(tokens))


def canonical_text(text: str, finder: NameFinder) -> str:
    """Return a text with its names replaced by their class and order of first occurrence.

    Two texts are equal up to a renaming within the classes if and only if theirs are equal: a name
    becomes NUL, its class and number, and `;`; a NUL of the text becomes two.
    """
    numbers: dict[str, int] = {}
    canonical = ""
    for part, span in parts(text, finder.find(text)):
        canonical += part.replace("\0", "\0\0")
        if span is not None:
            number = numbers.setdefault(span.key(text), len(numbers))
            canonical += f"\0{span.symbol_class} {number};"
    return canonical


def pair_key(problem: str, finder: NameFinder) -> bytes:
    """Return a hash of 8 bytes: problems that are equal up to renaming have the same one."""
    return key_of(canonical_text(problem, finder))[:8]


def form_keys(forms: Iterable[str]) -> np.ndarray:
    """Return a hash of 8 bytes of each canonical form: (forms,) of uint64."""
    keys = b"".join(key_of(form)[:8] for form in forms)
    return np.frombuffer(keys, dtype=">u8").astype(np.uint64)


def problem_keys(problems: Iterable[str], finder: NameFinder) -> np.ndarray:
    """Return the keys of problems, see `pair_key`, each once, in order: (keys,) of uint64."""
    return np.unique(form_keys(canonical_text(problem, finder) for problem in problems))


def rows_seen(problems: Iterable[str], finder: NameFinder, keys: np.ndarray) -> list[int]:
    """Return the numbers of the rows whose problem, or a renaming of it, has one of the keys.

    Args:
        keys: in order, of `problem_keys`.
    """
    return forms_seen((canonical_text(problem, finder) for problem in problems), keys)


def forms_seen(forms: Iterable[str], keys: np.ndarray) -> list[int]:
    """Return the numbers of the rows whose canonical form has one of the keys."""
    return np.flatnonzero(np.isin(form_keys(forms), keys)).tolist()


def save_keys(folder: Path, keys: np.ndarray, checkpoint: str | None = None) -> None:
    """Write the keys of the rows that a model was trained on beside it.

    Args:
        checkpoint: the model that training began with; what it was trained on counts too.
    """
    if checkpoint is not None and (before := keys_beside(checkpoint)) is not None:
        keys = np.union1d(before, keys)
    with replacing(folder / TRAINED_ROWS_FILE) as place, place.open("wb") as file:
        np.save(file, keys, allow_pickle=False)


def keys_beside(model: str) -> np.ndarray | None:
    """Return the keys of the problems that a model was trained on; None where nothing says it.

    Args:
        model: folder or Hub name.

    Raises:
        ValueError: the file is damaged.
    """
    file = file_of(model, TRAINED_ROWS_FILE, reachable=False)
    if file is None:
        return None
    try:
        keys = np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    if keys.ndim != 1 or keys.dtype != np.uint64:
        raise ValueError(f"{file} is damaged: it holds {keys.dtype} {keys.shape}, and no keys")
    return keys
