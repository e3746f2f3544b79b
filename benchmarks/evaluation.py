"""Evaluation with checks, end to end, against generation alone, in the same run.

    python benchmarks/evaluation.py --threads 1 --out evaluation      # minutes
    python benchmarks/evaluation.py --tasks ltl --formulas 8 --rounds 1 --sizes 3 8

Both sides have the same formulas (new ones, as many for each number of symbols), the same batches
and the same search: a released model, three beams. Generation alone encodes nothing: its time is
that of `answer_batch`, from encoded problems to answers as text. Evaluation is everything from rows
of a dataset to the report on disk: reading, encoding, generation, checks, records, rates. Besides
the time that passes, the processor time of this process is compared: of that other processes on the
machine take nothing away.
"""

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from hf_alpha.data.rows import load
from hf_alpha.evaluation import evaluate
from hf_alpha.generation import (
    beam_search,
    encode_problems,
    evaluation_mode,
    extend_vocabulary,
    plan_batches,
    search_settings,
)
from hf_alpha.loading import load_checkpoint
from hf_alpha.logic.drawing.generate import generate_grid
from hf_alpha.resources import released_model
from hf_alpha.tasks import get_task
from measure import clocked_in_turns, finish, parser_of, ratios, run, table, three

GOAL = 1.1


def draw_rows(task: str, symbols: int, sizes: Sequence[int], count: int) -> list[dict[str, Any]]:
    """`count` test problems with targets: as many of each number of symbols, of any size."""
    share = -(-count // symbols)
    with tempfile.TemporaryDirectory() as folder:
        grid = range(1, symbols + 1), range(sizes[0], sizes[1] + 1)
        generate_grid(task, folder, *grid, per_cell=share, progress=False)
        rows = list(load(folder, "test"))
    random.Random(0).shuffle(rows)
    rows = [
        row for k in grid[0] for row in [row for row in rows if row["num_symbols"] == k][:share]
    ]
    return rows[:count]


def measure(task: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Seconds of every side, and what evaluation found."""
    name = options.model or str(released_model(f"{task}-streams-small"))
    model, tokenizer = load_checkpoint(name)
    model.to(options.device)
    extend_vocabulary(model, tokenizer, options.symbols)
    rows = draw_rows(task, options.symbols, options.sizes, options.formulas)
    search = search_settings(get_task(task).num_beams, 1.0, 128, 1)
    encodings = encode_problems(tokenizer, [row["problem"] for row in rows])
    batches = plan_batches(encodings, options.batch)
    answer = beam_search(model, tokenizer, encodings, search)
    runs = iter(range(10**6))

    def generation() -> None:
        with evaluation_mode(model):
            for batch in batches:
                answer(batch)

    def evaluation() -> Any:
        return evaluate(
            *(model, tokenizer, task, rows),
            batch_size=options.batch,
            folder=folder / f"{task}-{next(runs)}",
            progress=False,
        )

    sides: dict[str, Callable[[], Any]] = {"generation alone": generation, "evaluation": evaluation}
    seconds, processor = clocked_in_turns(sides, options.rounds, options.device)
    return {
        "model": Path(name).name,
        "rows": len(rows),
        "correct": evaluation().overall.correct,
        "seconds": seconds,
        "processor_seconds": processor,
    }


def show(results: dict[str, dict[str, Any]]) -> str:
    lines = []
    for task, data in results.items():
        base = data["seconds"]["generation alone"]
        for side, seconds in data["seconds"].items():
            each = [1e3 * s / data["rows"] for s in seconds]
            processor = data["processor_seconds"]
            pairs = (seconds, base), (processor[side], processor["generation alone"])
            cells = [three(ratios(*pair), 3) if seconds is not base else "" for pair in pairs]
            lines.append([f"{task}: {side}", f"{data['rows']}", three(each), *cells])
    by = f"by generation alone (goal {GOAL})"
    columns = ["side", "formulas", "ms a formula", by, "the same, processor time"]
    return table(columns, lines)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--tasks", nargs="+", default=["propositional", "ltl"])
    parser.add_argument("--model", help="folder; by default the released TASK-streams-small")
    parser.add_argument("--formulas", type=int, default=1000)
    parser.add_argument("--symbols", type=int, default=8, help="1 to so many, in equal parts")
    parser.add_argument("--sizes", type=int, nargs=2, default=[1, 15])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        results = {task: measure(task, options, Path(folder)) for task in options.tasks}
    finish(show(results), results, options.out, arguments, options.device)


if __name__ == "__main__":
    run(main)
