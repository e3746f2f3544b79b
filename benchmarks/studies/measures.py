"""What tables measure of a trained model, or of random answers: the same problems for all rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_alpha.answer.base import Random
from hf_alpha.data.rows import load
from hf_alpha.evaluation import AlphaCovariance, Rates, Report, alpha_covariance
from hf_alpha.evaluation.compare import draw_problems
from hf_alpha.evaluation.evaluate import evaluate, run
from hf_alpha.generation import MAX_NEW_TOKENS, extend_vocabulary
from hf_alpha.loading import load_checkpoint
from hf_alpha.logic.drawing.generate import generate_grid
from hf_alpha.processes import choose_device
from hf_alpha.tasks import get_task

from .models import generated
from .sizes import Size
from .table import Row

Problems = Sequence[Mapping[str, Any]]
DIGITS = 6


def in_distribution(task: str, size: Size) -> list[dict[str, Any]]:
    """The first problems of the test split of the training data, unperturbed."""
    folder = generated(size.recipe(f"{task}/learned"))
    rows = load(folder, "test")
    return list(rows.select(range(min(size.samples, len(rows)))))


def by_names(task: str, size: Size, runs: Path) -> list[dict[str, Any]]:
    """Problems of the lengths of training with 1 to the most names, as many of each number."""
    out = runs / "problems" / f"{task}-names"
    names, sizes = range(1, size.most_names + 1), range(1, size.length + 1)
    return draw_problems(get_task(task), out, names, sizes, size.per_names, progress=False)


def grid(task: str, size: Size, runs: Path) -> list[dict[str, Any]]:
    """The problems of a heatmap: as many of each number of names and each length, both exact."""
    out, names = runs / "problems" / f"{task}-grid", range(size.most_names + 1)
    lengths = range(1, size.grid_lengths + 1)
    generate_grid(task, out, names, lengths, size.per_cell, progress=False)
    return list(load(out, "test"))


def answers(
    folder: Path | None, task: str, problems: Problems, test: str, runs: Path, top_n: int = 1
) -> Report:
    """The checked answers of a trained model, or random ones.

    A vocabulary is extended to the problems' names where the encoding needs no training for that.
    Problems outside of the vocabulary, and checks that end in a timeout, count as not correct.

    Args:
        folder: of the model; None for random answers.
        task: which is solved.
        problems: what is to be answered.
        test: name of the problems; another one for others.
        runs: where the report is kept, so that a run that is killed goes on.
        top_n: answers to each problem, of a search with as many beams; 1 for the task's search.
    """
    solved = get_task(task)
    if folder is None:
        return run(Random(solved.random_name), solved, problems, progress=False)
    model, tokenizer = load_checkpoint(folder)
    model = model.eval().to(choose_device())
    solved.prepare(tokenizer)
    symbol_counts = solved.needed_symbols([row["problem"] for row in problems])
    extend_vocabulary(model, tokenizer, symbol_counts)
    return evaluate(
        model,
        tokenizer,
        solved,
        problems,
        name=folder.name,
        top_n=top_n,
        folder=runs / "reports" / test / folder.name,
        progress=False,
    )


def three_tests(row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
    """Rates on the test split, by number of names (` by names`) and of a heatmap (` heatmap`)."""
    tests = {
        "": ("split", in_distribution(row.task, size)),
        " by names": ("names", by_names(row.task, size, runs)),
        " heatmap": ("grid", grid(row.task, size, runs)),
    }
    values: dict[str, Any] = {}
    for suffix, (test, problems) in tests.items():
        values |= rates(answers(folder, row.task, problems, test, runs).overall, suffix)
    return values


def three_tests_settings(size: Size) -> dict[str, Any]:
    """Settings of these tests."""
    names = ("samples", "per_names", "most_names", "length", "grid_lengths", "per_cell")
    return size.tested("test split, problems by number of names, grid", *names)


def three_tests_text(size: Size) -> str:
    """What these tests are, in words."""
    return (
        "`test split`: problems like those of the training data, with at most "
        f"{size.names} names. `by names`: the same number of problems for each number of names "
        f"from 1 to {size.most_names}. `heatmap`: the problems of the heatmaps above. A problem "
        "with names outside a model's vocabulary counts as not correct."
    )


def parameters(folder: Path) -> int:
    """The number of a model's parameters, as it was trained."""
    model, _ = load_checkpoint(folder)
    return model.num_parameters()


def covariance(folder: Path, task: str, problems: Problems, names: int) -> AlphaCovariance:
    """Alpha-covariance over all renamings within the first so many names of the vocabulary."""
    model, tokenizer = load_checkpoint(folder)
    solved = get_task(task)
    solved.prepare(tokenizer)
    return alpha_covariance(
        model.eval().to(choose_device()),
        tokenizer,
        [row["problem"] for row in problems],
        symbols=solved.default_symbols(names),
        max_renamings=None,
        generate_kwargs={
            "num_beams": solved.num_beams,
            "max_new_tokens": MAX_NEW_TOKENS,
        },
        progress=False,
    )


def rates(counts: Rates, suffix: str = "") -> dict[str, Any]:
    """Number of problems and shares of answers; without shares where all are outside.

    Args:
        counts: what an evaluation counted.
        suffix: of the keys.
    """
    is_inside = not counts.is_outside
    shares = {name: round(counts.rate(name), DIGITS) for name in ("correct", "exact", "timeout")}
    return {f"samples{suffix}": counts.count} | {
        f"{name}{suffix}": share if is_inside else None for name, share in shares.items()
    }


__all__ = [
    "answers",
    "by_names",
    "covariance",
    "grid",
    "in_distribution",
    "parameters",
    "rates",
    "three_tests",
    "three_tests_settings",
    "three_tests_text",
]
