"""Right answers of every checkpoint of training runs: does extrapolation to more names pass a peak?

    python benchmarks/archive/checkpoints.py runs/ltl-relational-small --task ltl --out checkpoints-ltl

All checkpoints answer the same new problems, and every answer is checked. Beside them stand the
validation loss of the run and, by each measure, which checkpoint it would choose: the last one, the
one of the smallest loss, and the one that is right most often on other problems (seed 1) with all
numbers of names, or with those of training only.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_alpha.answer.base import Search
from hf_alpha.answer.models import Model
from hf_alpha.cli.options import integers
from hf_alpha.data.rows import training_problems
from hf_alpha.evaluation.compare import compare, draw_problems
from hf_alpha.evaluation.report import Report
from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks import get_task

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure


def checkpoints(run: Path) -> dict[int, Path]:
    """Step -> folder of the checkpoints of a run, in order."""
    return dict(sorted((int(f.name.split("-")[1]), f) for f in run.glob("checkpoint-*")))


def losses(run: Path) -> dict[int, float]:
    """Step -> validation loss, as the last checkpoint has them."""
    *_, last = checkpoints(run).values()
    history = json.loads((last / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    return {entry["step"]: entry["eval_loss"] for entry in history if "eval_loss" in entry}


def test(run: Path, args: argparse.Namespace, seed: int, samples: int) -> dict[int, Report]:
    """Reports of all checkpoints on the same problems."""
    task = get_task(args.task)
    rows = draw_problems(
        task,
        args.work / f"problems-{args.task}-{seed}",
        integers(args.symbols),
        integers(args.sizes),
        samples,
        seed,
        exclude=[] if args.exclude is None else training_problems(args.exclude),
    )
    entrants = [
        Model(f"step {step}", *load_checkpoint(folder), Search(num_beams=args.beams))
        for step, folder in checkpoints(run).items()
    ]
    out = args.work / f"{run.name}-{seed}"
    _, reports = compare(entrants, task, rows, out, covariance=0)
    return dict(zip(checkpoints(run), reports, strict=False))  # the last report is the random one


def rates(report: Report, most: int | None = None) -> list[float]:
    """Share of right answers for each number of names, up to `most`."""
    groups = sorted(report.by_num_symbols.items())
    return [share.correct for names, share in groups if most is None or names <= most]


def choices(
    tested: dict[int, Report], others: dict[int, Report], loss: dict[int, float], trained: int
) -> dict[str, int]:
    """The step that each rule chooses."""

    def best(most: int | None) -> int:
        return max(others, key=lambda step: sum(rates(others[step], most)))

    known_losses = {step: loss[step] for step in tested if step in loss}
    rules = {"the last": max(tested)}
    if known_losses:
        rules["smallest validation loss"] = min(known_losses, key=lambda step: known_losses[step])
    rules["right on others, names of training"] = best(trained)
    rules["right on others, all names"] = best(None)
    return rules


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("runs", nargs="+", type=Path, help="folders of runs that kept their checkpoints")
    add("--task", default="propositional", help="(propositional)")
    add("--trained", type=int, default=3, help="names at most in training (3)")
    add("--symbols", default="1-8", help="in the test (1-8)")
    add("--sizes", default="1-15", help="in the test (1-15)")
    add("--samples", type=int, default=200, help="problems for each number of names (200)")
    add("--others", type=int, default=50, help="likewise, those to choose by (50)")
    add("--beams", type=int, default=None, help="(as the task has it)")
    add("--exclude", type=Path, default=None, help="dataset whose problems are not tested")
    add("--work", type=Path, default=Path("runs/checkpoints"), help="where reports are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Test and print."""
    args = parse(argv)
    symbols = integers(args.symbols)
    data: dict[str, Any] = {}
    texts = []
    for run in args.runs:
        tested, loss = test(run, args, 0, args.samples), losses(run)
        others = test(run, args, 1, args.others)
        chosen = choices(tested, others, loss, args.trained)
        shares = {step: rates(report) for step, report in tested.items()}
        data[run.name] = {"correct": shares, "loss": loss, "chosen": chosen}
        texts.append(f"{run.name}\n\n{_table(symbols, shares, loss)}\n\n{_rules(chosen, shares)}")
    measure.finish("\n\n".join(texts), data, args.out, argv)


def _cells(shares: Sequence[float]) -> list[str]:
    return [f"{100 * share:.1f}" for share in [*shares, sum(shares) / len(shares)]]


def _table(symbols: Sequence[int], shares: dict[int, list[float]], loss: dict[int, float]) -> str:
    columns = ["correct, %; symbols:", *map(str, symbols), "all", "validation loss"]
    lines = [
        [f"step {step}", *_cells(values), f"{loss[step]:.4f}" if step in loss else "-"]
        for step, values in shares.items()
    ]
    return measure.table(columns, lines)


def _rules(chosen: dict[str, int], shares: dict[int, list[float]]) -> str:
    lines = [[rule, str(step), _cells(shares[step])[-1]] for rule, step in chosen.items()]
    return measure.table(["checkpoint chosen by", "step", "all"], lines)


if __name__ == "__main__":
    main()
