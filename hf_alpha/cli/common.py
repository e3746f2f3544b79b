"""What several commands do: load quietly, check and read what they are given."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hf_alpha.plain_text import printable

if TYPE_CHECKING:
    from hf_alpha.recipe import OwnRecipe


def say(text: str, err: bool = False) -> None:
    """Print a text, whatever it quotes of files and models of others; `err` for standard error."""
    typer.echo(printable(text), err=err)


def quiet_bars() -> None:
    """Switch off the bars of Transformers, whose import takes a second or more.

    Those of datasets stay in a terminal: a log file is no place for bars.
    """
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    from transformers.utils import logging

    logging.disable_progress_bar()


def check_places(*models: str) -> None:
    """Refuse a mistyped folder before torch is loaded, which takes seconds."""
    from hf_alpha.folders import checkpoint_place

    for model in models:
        checkpoint_place(model)


def read_inputs(
    arguments: list[str] | None,
    file: Path | None,
    name: str,
    text_of: Callable[[dict[str, Any], int], str] | None = None,
) -> list[str]:
    """Return texts given as arguments and in the lines of a file, or else on standard input.

    Args:
        arguments: texts of the command line.
        file: with a text in each line; in JSON, if it is called `*.jsonl`.
        name: what errors call a text.
        text_of: gives the text of a row in JSON, from the row and its number.

    Raises:
        ValueError: there are none, or they cannot be read.
    """
    from hf_alpha.modeling.grammar import FormulaError, check_unicode

    texts = list(arguments or [])
    if file is not None:
        try:  # some editors begin a file with a mark of its encoding
            lines = file.read_text(encoding="utf-8-sig").split("\n")
            texts += _of_json(file, lines, text_of) if file.suffix == ".jsonl" else lines
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is no text in UTF-8: {error}") from None
    elif not texts:
        if sys.stdin.isatty():
            raise ValueError(
                f"no {name}: give one as an argument, with --file or on standard input"
            )
        try:
            texts = sys.stdin.read().split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input is no text in UTF-8: {error}") from None
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise ValueError(f"no {name}: the input is empty")
    for text in texts:
        try:
            check_unicode(text)  # no terminal could print it
        except FormulaError as error:
            raise ValueError(f"{name} {text!a} is no text in UTF-8: {error}") from None
    return texts


def _of_json(
    file: Path, lines: list[str], text_of: Callable[[dict[str, Any], int], str] | None
) -> list[str]:
    """Return the texts of lines in JSON, which are strings or rows."""
    texts = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{file}, row {number}: no JSON: {error}") from None
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, dict) and text_of is not None:
            texts.append(text_of(content, number))
        else:
            row = " or a row" if text_of is not None else ""
            raise ValueError(f"{file}, row {number}: write a string{row}")
    return texts


def own_test_rows(recipe: "OwnRecipe", data: str | None, split: str | None) -> list[dict[str, Any]]:
    """Return rows of the user's own pairs: those of `data`, or else the recipe's test."""
    from hf_alpha.data.own import own_rows, read_own

    place = test_data(recipe, data)
    solved = recipe.solved
    pairs = read_own(recipe.data, place, solved.finder, "test", split)  # type: ignore[attr-defined]
    return own_rows(pairs, solved)


def test_data(recipe: "OwnRecipe", data: str | None) -> Any:
    """Return where test data is: `data`, or else the recipe's `data.test`."""
    from hf_alpha.folders import may_be_on_hub

    place = data or recipe.data.test
    if place is None:
        raise ValueError("name a file of pairs with --data: no recipe of the model has data.test")
    path = place if isinstance(place, str) else place["path"]
    if data is None and not Path(path).exists() and not may_be_on_hub(path):
        raise ValueError(
            f"the recipe's data.test, {path}, is not here (it is relative to the folder in which "
            "training was started): name a file of pairs with --data"
        )
    return place


__all__ = ["check_places", "own_test_rows", "quiet_bars", "read_inputs", "say", "test_data"]
