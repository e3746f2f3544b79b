"""What becomes of a T5 and a BART of 3 names: converted in several ways, and trained on.

    python benchmarks/archive/retrofit_study.py --out retrofit-study         # train what is missing, test
    python benchmarks/archive/retrofit_study.py --hosts t5 --only streams    # a part of it

A host is trained from scratch as Transformers made it, with one vector for each of 3 symbols
(recipe propositional/HOST-small, `--steps` steps). It is converted, and every conversion is trained
for the same number of steps more on the same data (`--tuning-steps`); so is the host itself. All
are tested on the same formulas with 1 to 8 symbols, every answer checked. The host itself and
`first_occurrence` have vectors for 3 symbols only. A run that was killed goes on where it stopped.

Cells are means over the seeds; +- is half the distance between the largest and the smallest.
"""

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_alpha.cli.options import integers
from hf_alpha.convert import SymbolConfig, get_symbol_model
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks import get_task

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from runs import train_once

TASK = "propositional"
ROWS = {"actual": "a", "placeholder": "b"}
VARIANTS = {
    "untouched": SymbolConfig("learned"),
    "first_occurrence": SymbolConfig("learned", renaming="first_occurrence"),
    "dual_part": SymbolConfig("dual_part"),
    "relational": SymbolConfig("relational"),
    "streams": SymbolConfig("streams", **ROWS),
    "streams, aggregated": SymbolConfig(
        "streams", **ROWS, aggregated_attention=("encoder", "decoder")
    ),
}


def encodings() -> Any:
    """The script that compares encodings; its name is that of a module of Python."""
    file = measure.ROOT / "benchmarks" / "encodings.py"
    spec = importlib.util.spec_from_file_location("benchmark_encodings", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(recipe: str, out: Path, seed: int, changes: Sequence[str]) -> None:
    """Train one model, or go on with it, unless it is done."""
    settings = [*changes, f"training.seed={seed}", f"training.output_dir={out}"]
    training_recipe = read_recipe(f"{TASK}/{recipe}-small", settings)
    training_recipe.data.generate["equivalence"] = "renaming"
    train_once(training_recipe, out)


def convert(vanilla: Path, out: Path, config: SymbolConfig) -> Path:
    """Convert a trained host, once."""
    if not (out / "config.json").is_file():
        shutil.rmtree(out, ignore_errors=True)
        model, tokenizer = get_symbol_model(*load_checkpoint(vanilla), config)
        tokenizer.save_pretrained(out)
        model.save_pretrained(out)
    return out


def run(host: str, seed: int, names: Sequence[str], args: argparse.Namespace) -> dict[str, str]:
    """Train a host and its conversions; returns the folder's name of each and its label."""
    vanilla = args.runs / f"{host}-{seed}"
    train(f"{host}", vanilla, seed, [*args.change, f"training.max_steps={args.steps}"])
    labels = {}
    for name in names:
        folder = f"{host}-{name.replace(', ', '-')}"
        start = convert(vanilla, args.runs / f"{folder}-{seed}-start", VARIANTS[name])
        tuned = [f"checkpoint={start}", f"training.max_steps={args.tuning_steps}"]
        train("converted", args.runs / f"{folder}-{seed}", seed, [*args.change, *tuned])
        labels[folder] = f"{host}: {name}"
    return labels


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", default="t5,bart", help="(t5,bart)")
    add("--only", default=";".join(VARIANTS), help=f"of {';'.join(VARIANTS)}")
    add("--seeds", default="0", help="seeds of weights and batches (0)")
    add("--steps", type=int, default=6000, help="of a host's training (6000)")
    add("--tuning-steps", type=int, default=2000, help="behind each conversion (2000)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--symbols", default="1-8", help="in the test (1-8)")
    add("--sizes", default="1-15", help="in the test (1-15)")
    add("--samples", type=int, default=200, help="formulas for each number of symbols (200)")
    add("--covariance", type=int, default=5, help="of these, for alpha-covariance (5)")
    add("--runs", type=Path, default=Path("runs/retrofit"), help="where models and reports are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    args.task, args.equivalence = TASK, "renaming"
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args, table = parse(argv), encodings()
    names, symbols = args.only.split(";"), integers(args.symbols)
    if unknown := set(names) - set(VARIANTS):
        raise SystemExit(f"{sorted(unknown)[0]!r} is none of {'; '.join(VARIANTS)}")
    reports, labels = {}, {}
    for seed in integers(args.seeds):
        for host in args.hosts.split(","):
            labels |= run(host, seed, names, args)
        reports[seed] = table.test(labels, seed, args)
    summary = table.summarise(reports, [*labels.values(), get_task(TASK).random_name])
    if args.out:
        path = (measure.RESULTS / args.out).with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        table.make_figure(summary, symbols).savefig(path)
    text = table.accuracy_table(summary, symbols)
    measure.finish(text, {"models": summary}, args.out, argv)


if __name__ == "__main__":
    main()
