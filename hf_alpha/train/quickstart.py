"""The tour of `hf-alpha quickstart`: a recipe, three encodings, more names than trained on."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from datasets import disable_progress_bars
from transformers.utils import logging

from hf_alpha.data.keys import pair_key
from hf_alpha.data.pairs import evaluation_rows, read_pairs
from hf_alpha.evaluation.report import Rates, Report
from hf_alpha.io.folders import check_own, locks_folder, write_text
from hf_alpha.recipe import Recipe, read_recipe
from hf_alpha.resources import resource_path
from hf_alpha.tasks.text.swapping import swapping_pairs
from hf_alpha.train.side_by_side import CURVES_FILE, TABLE_FILE, compare_encodings

ENCODINGS = ("relational", "canonical", "learned")
STEPS = 600
"""Of each encoding: about a minute of a processor for all three, with what is around."""
TRAIN_ROWS = 12_000
LEAVES = 6
"""Of the terms that are tested: as long as the longest of training, with any number of names."""
NAMES = range(3, 2 * LEAVES)
"""Names of a term that is tested, variables and functions together."""
TRAINED = (3, 6)
VARIABLES, FUNCTIONS = "wxyz", "FGHK"
"""The names of the training data; a test has all letters."""
RECIPE = "swap.yaml"
CAPTION = (
    "The terms are equally long everywhere; only the number of different names grows. "
    "An invariant encoding\n(relational) treats a tenth name as it treats the first."
)


@locks_folder("output")
def quickstart(
    output: Path,
    steps: int = STEPS,
    samples: int = 50,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> str:
    """Run the tour; everything it makes is in `output`.

    Args:
        output: folder for the data, the recipe, the models, table and pictures.
        samples: problems for each number of names.
        seed: of the data; training has the recipe's.

    Returns:
        The table that it prints.

    Raises:
        FileExistsError: it holds files of that name that are others, or the recipe was changed.
        ValueError: another process writes in `output`.
    """
    start = time.monotonic()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()
    torch.set_num_threads(1)  # models of this size gain nothing by more, and may lose by them
    count = min(TRAIN_ROWS, 100 * steps)
    recipe = _recipe(output, steps)
    first = next(_training_pairs(1, seed))
    say("1. The task: two names of a term change places. Small letters are variables, capital")
    say("   letters functions; all are only names. In training there are four of each,")
    say(f"   {TRAINED[0]} to {TRAINED[1]} in a term. {count:,} pairs such as")
    say(f"     {first['source']}  ->  {first['target']}")
    rows = _make_data(output, recipe, count, samples, seed)
    say(f"2. The same model with three encodings of names, each trained for {steps:,} steps:")
    table, reports = compare_encodings(
        recipe, ENCODINGS, rows, output, trained=TRAINED, covariance=min(2, samples // 2),
        max_renamings=12, title="Exactly right, by number of names", caption=CAPTION,
        say=lambda text: say("\n".join(f"   {line}" for line in text.splitlines())),
    )  # fmt: skip
    say(f"3. On new terms with {NAMES[0]} to {NAMES[-1]} names, checked letter by letter:")
    say(f"\n{table}\n")
    _show_answers(reports, say)
    say(f"Picture: {output / CURVES_FILE}")
    say(f"Model:   {output / 'relational'}")
    say(f"{time.monotonic() - start:.0f} seconds in all.")
    say(closing(reports[:-1], TRAINED[1]))
    say(f"Next:    put your own file and names into {output / RECIPE}, then")
    say(f"         hf-alpha train {output / RECIPE}")
    return table


def _make_data(
    output: Path, recipe: Recipe, count: int, samples: int, seed: int
) -> list[dict[str, Any]]:
    """Write training and test pairs; return the test as evaluation takes it."""
    _write_pairs(output / "train.jsonl", _training_pairs(count, seed))
    finder = recipe.configured_task.finder  # type: ignore[attr-defined]
    training_keys = {pair_key(pair["source"], finder) for pair in _training_pairs(count, seed)}
    tests: list[Mapping[str, str]] = []
    for names in NAMES:
        variables = (names + 1) // 2
        test_pairs = swapping_pairs(
            20 * samples, [variables], [names - variables], [LEAVES], seed=seed + 1000 * names
        )
        new = (pair for pair in test_pairs if pair_key(pair["source"], finder) not in training_keys)
        tests += islice(new, samples)
    _write_pairs(output / "test.jsonl", tests)
    return evaluation_rows(
        read_pairs(recipe.data, str(output / "test.jsonl"), finder, "test"), recipe.configured_task
    )


def _training_pairs(count: int, seed: int) -> Iterator[Mapping[str, str]]:
    return swapping_pairs(count, seed=seed, variables=VARIABLES, functions=FUNCTIONS)


def _write_pairs(path: Path, pairs: Iterable[Mapping[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(pair) + "\n" for pair in pairs))


def _recipe(output: Path, steps: int) -> Recipe:
    """Return the shipped recipe, with this folder's data; a copy of it is left there."""
    file = resource_path("training", "text", RECIPE)
    text = file.read_text(encoding="utf-8")
    for name in ("train.jsonl", "test.jsonl"):  # paths are those of the current folder
        text = text.replace(f": {name}", f": {json.dumps(str(output / name))}")
    output.mkdir(parents=True, exist_ok=True)
    written = ("train.jsonl", "test.jsonl", TABLE_FILE, CURVES_FILE)
    check_own(output, written, RECIPE)
    if (output / RECIPE).exists() and (output / RECIPE).read_text(encoding="utf-8") != text:
        raise FileExistsError(
            f"{output / RECIPE} was changed, or is another: choose another folder, or move it"
        )
    write_text(output / RECIPE, text)
    changes = {
        "data.train": output / "train.jsonl",
        "data.test": output / "test.jsonl",
        "training.output_dir": output / "model",
        "training.max_steps": steps,
    }
    return read_recipe(file, [f"{key}={value}" for key, value in changes.items()])


def _show_answers(reports: Sequence[Report], say: Callable[[str], None]) -> None:
    """Show what each answers to a term with many names: one that the first model has right."""
    records = [r for r in reports[0].records if r.num_symbols == NAMES[-1]]
    example = next((record for record in records if record.outcome == "exact"), records[0])
    say(f"For example {example.problem}")
    for report in reports[:-1]:
        record = report.records[example.index]
        answer = record.answers[0] if record.answers else "(outside its vocabulary)"
        say(f"  {report.model:<11} {record.outcome:<7} {answer}")


def closing(reports: Sequence[Report], most_trained: int) -> str:
    """Say in three lines what the models did with more names, and with other ones.

    Args:
        reports: one for each model, without the baseline.
        most_trained: the most names in a problem of the training data.
    """
    more = [
        f"{report.model} {100 * rates.correct:.0f} %"
        for report in reports
        for rates in [Rates.of(r for r in report.records if r.num_symbols > most_trained)]
    ]
    renamed = [
        f"{report.model} {100 * mean:.0f} %"
        for report in reports
        if report.alpha_covariance and (mean := report.alpha_covariance.mean) is not None
    ]
    return "\n".join(
        [
            f"Shown:   training had at most {most_trained} names in a problem, the test has more.",
            f"         Right answers with more: {', '.join(more)}.",
            f"         Same answer when names are renamed: {', '.join(renamed) or 'not measured'}.",
        ]
    )
