"""From the folder of a training run to the folder of a released model: what is shared, no more."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hf_alpha.checkpoints.code_links import link_code
from hf_alpha.checkpoints.places import base_of, file_of
from hf_alpha.data.keys import TRAINED_ROWS_FILE
from hf_alpha.generation import configured_limit, raise_limit
from hf_alpha.io.folders import new_folder, scratch_folder
from hf_alpha.io.inside import inside
from hf_alpha.io.records import parse_json, read_json
from hf_alpha.loading import load_checkpoint
from hf_alpha.names.first_look import FIRST_LOOK_FILE
from hf_alpha.recipe import RECIPE_FILE, check_shareable
from hf_alpha.train import TRAINER_STATE
from hf_alpha.trust import remember_copy

LOG_FILE = "training_log.json"


def release(run: Path, out: Path) -> None:
    """Write a finished run's model, tokenizer, code, recipe and training log to `out`.

    A checkpoint of a run, finished or not, may be given in its place: the one that validation
    chose, say. Its log is that of the training up to it, its recipe that of the run.

    The code is written as files; below the checkout's own `model_cards/` as links to the package.
    `hf-alpha evaluate OUT --card` adds the card, `hf-alpha push OUT owner/name` shares it.

    Raises:
        FileNotFoundError: `run` holds no finished run.
        FileExistsError: `out` exists.
        ValueError: the run's model or log is damaged, a file is a link to somewhere else, or a
            secret is in its recipe; nothing is written.
    """
    recipe = next(filter(Path.is_file, (run / RECIPE_FILE, run.parent / RECIPE_FILE)), None)
    if recipe is None or not (run / TRAINER_STATE).is_file():
        raise FileNotFoundError(
            f"{run} holds no finished run and is no checkpoint of one: {TRAINER_STATE} or recipe "
            "is missing"
        )
    check_shareable(recipe)
    with new_folder(out) as unfinished:
        log = read_json(run / TRAINER_STATE).get("log_history", [])
        _write(run, unfinished)
        for name in (RECIPE_FILE, FIRST_LOOK_FILE, TRAINED_ROWS_FILE):
            if (file := inside(recipe.parent, name)).is_file():
                shutil.copy(file, unfinished / name)
        rows = ",\n ".join(json.dumps(row) for row in log)
        (unfinished / LOG_FILE).write_text(f"[{rows}]\n", encoding="utf-8")
    remember_copy(out / RECIPE_FILE, run)


def merge(adapter: str | Path, out: Path) -> str:
    """Write an adapter's model, with the adapter in its weights, to `out`.

    The recipe and the facts about training that lie beside the adapter go with it.

    Args:
        adapter: folder or Hub name.

    Returns:
        The folder or Hub name of the model that the adapter names.

    Raises:
        FileExistsError: `out` exists.
        ValueError: it does not fit its model; nothing is written.
    """
    with new_folder(out) as unfinished:
        _write(adapter, unfinished)
        for name in (RECIPE_FILE, FIRST_LOOK_FILE, TRAINED_ROWS_FILE):
            if (file := file_of(adapter, name)) is not None:
                shutil.copy(inside(file.parent, name), unfinished / name)
    if (out / RECIPE_FILE).is_file():
        remember_copy(out / RECIPE_FILE, Path(adapter).expanduser())
    return f"{base_of(adapter)}"


def read_log(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a training log.

    Raises:
        ValueError: the file holds something else.
    """
    rows = parse_json(file.read_bytes(), file)
    if not isinstance(rows, list) or not all(_is_logged(row) for row in rows):
        raise ValueError(f"{file} is no training log: it is a list of rows, each with its 'step'")
    return rows


def _is_logged(row: Any) -> bool:
    """Whether a row has its step, and numbers for losses."""
    if not isinstance(row, dict) or not isinstance(row.get("step"), int):
        return False
    return all(isinstance(row.get(loss, 0.0), int | float) for loss in ("loss", "eval_loss"))


def refresh(folder: Path) -> None:
    """Rewrite a released model in place with this version's code; weights and card stay.

    Raises:
        ValueError: it is an adapter, whose model has the code.
    """
    if base_of(folder) is not None:
        raise ValueError(f"{folder} is an adapter (PEFT), and its model has the code: name that")
    with scratch_folder(folder.resolve()) as unfinished:
        _write(folder, unfinished)
        for file in unfinished.iterdir():
            os.replace(file, folder / file.name)
    link_code(folder)


def _write(source: str | Path, out: Path) -> None:
    model, tokenizer = load_checkpoint(source, answers=False)
    if model.can_generate() and not hasattr(model.config, "backbone_config"):  # which has its own
        # This version's defaults, whatever version trained it.
        trained = configured_limit(model)
        model.generation_config = type(model)(model.config).generation_config
        raise_limit(model, trained)  # the user's own answers may be longer
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    link_code(out)
