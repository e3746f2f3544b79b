"""Answers that need new names, by decoders alone that are given names in several ways.

    python benchmarks/archive/new_names.py --task anf --out new-names-anf    # or tseitin, extract, proofs
    python benchmarks/archive/new_names.py --task proofs --ways relational,learned --seeds 0
    python benchmarks/archive/new_names.py --task anf --ways learned,renamed --host llama

Models are trained by the recipe text/TASK, with `--steps` steps and the learning rate schedule cut
to them, on pairs with few names, and answer problems with as many and with more, greedily: once
with names of training, and once the same problems with names that training lacks. The task's check
says which answers are right, whatever their new names are called. Ways are:

- `relational`: names have no vectors, and what is new is the first unused symbol
- `dual_part`: each sequence has random vectors for its names
- `learned`: a vector for each name
- `renamed`: the same, each sequence renamed at random in training
- `ordered`: as `learned`, new names in the data being the first ones that a source lacks, which
  greedy search has an easier time with than with any of many
- `canonical`: as `learned`, names of a pair being numbered by first occurrence, new ones too

All have symbols for the names of both sets. `--host llama` puts symbols around a Llama of that size
in place of the package's own decoder. Runs that are finished are not trained or tested again.

Cells are right answers in %, means over the seeds; +- is half the distance between the largest and
the smallest. There is a table for each column of the tests that has several values.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hf_alpha.answer.models import answer_limit
from hf_alpha.cli.options import integers
from hf_alpha.folders import write_text
from hf_alpha.generation import generate_answers
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import Recipe, read_recipe
from hf_alpha.tasks import Verdict

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from runs import check_names, train_once

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
from pair_files import Row, shape


@dataclass(frozen=True)
class Way:
    """How a model is given names.

    Attributes:
        encoding: of the model.
        changes: to the recipe.
        new_symbols: whether it has a way of its own to write what its text lacks so far.
        names: how the names of a pair are changed before the model sees it, a key of `NAMES`.
    """

    encoding: str
    changes: tuple[str, ...] = ()
    new_symbols: bool = False
    names: str = ""


WAYS = {
    "relational": Way("relational", new_symbols=True),
    "dual_part": Way("dual_part"),
    "learned": Way("learned"),
    "renamed": Way("learned", ("model.symbol_renaming=random",)),
    "ordered": Way("learned", names="ordered"),
    "canonical": Way("learned", names="numbered"),
}
TASKS = ("anf", "tseitin", "extract", "proofs")
TESTS = {"test": "names seen", "new-names": "names never seen"}
RIGHT = (Verdict.exact, Verdict.correct)
BETWEEN = "\n\n\n"  # source and target, where both are numbered
OWN_SIZES = ("d_model", "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim")
HOSTS: dict[str, tuple[str, ...]] = {
    "alpha": (),
    "llama": (
        "model.model_type=alpha-retrofit",
        "model.backbone_config.model_type=llama",
        "model.backbone_config.hidden_size=96",
        "model.backbone_config.intermediate_size=256",  # of three matrices in place of two
        "model.backbone_config.num_hidden_layers=3",
        "model.backbone_config.num_attention_heads=4",
        *(f"model.{name}=null" for name in ("is_encoder_decoder", *OWN_SIZES)),
    ),
}


# -- data -----------------------------------------------------------------------------------------


def make_data(task: str, args: argparse.Namespace) -> None:
    """Draw the pairs, once, and write them with other names as well."""
    drawn: Any = import_module(task)
    folder = folder_of(task, "", args)
    if not (folder / "new-names.jsonl").is_file():  # written last
        drawn.FILES.save(folder, args.rows, args.tests)
    for names, change in NAMES.items():
        for part in ("train", *TESTS):
            if not (file := folder_of(task, names, args) / f"{part}.jsonl").is_file():
                pairs = [change(row, drawn) for row in rows_of(folder / file.name)]
                file.parent.mkdir(parents=True, exist_ok=True)
                write_text(file, "".join(json.dumps(pair) + "\n" for pair in pairs))


def numbered(row: Row, drawn: Any) -> Row:
    """A pair with the first names of the task, by first occurrence."""
    text = f"{row['source']}{BETWEEN}{row['target']}"
    changed = shape(text, [*drawn.SEEN, *drawn.UNSEEN], drawn.SEEN.__getitem__)
    source, target = changed.split(BETWEEN)
    return {**row, "source": source, "target": target}


def ordered(row: Row, drawn: Any) -> Row:
    """A pair whose new names are the first ones of the task that the source lacks."""
    words = set(re.findall(r"\w+", row["source"]))
    new_names = {*drawn.SEEN, *drawn.UNSEEN} - words
    unused = [name for name in drawn.SEEN if name not in words]
    return {**row, "target": shape(row["target"], new_names, unused.__getitem__)}


NAMES: dict[str, Callable[[Row, Any], Row]] = {"numbered": numbered, "ordered": ordered}


def folder_of(task: str, names: str, args: argparse.Namespace) -> Path:
    """Where the pairs are that a model is trained and tested on."""
    return args.runs / f"data-{task}{names and '-'}{names}"


def rows_of(file: Path) -> list[Row]:
    """The rows of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


# -- training and testing -------------------------------------------------------------------------


def recipe_of(task: str, name: str, seed: int, args: argparse.Namespace) -> Recipe:
    """The task's recipe, as one that learns to go on from sources: models may differ in names."""
    way, drawn = WAYS[name], import_module(task)
    (symbol_class,) = read_recipe(f"text/{task}").symbols
    changes = [
        *HOSTS[args.host],
        f"model.new_symbols={'true' if way.new_symbols else 'null'}",
        f"model.symbol_encoding={way.encoding}",
        *way.changes,
        f"symbols.{symbol_class}.count={len(drawn.SEEN) + len(drawn.UNSEEN)}",
        "objective.name=causal",
        "objective.pairs=true",
        f"objective.max_length={args.length}",
        "check=null",
        f"data.train={folder_of(task, way.names, args) / 'train.jsonl'}",
        "data.validation={}",
        "data.test=null",
        "training.eval_strategy=no",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={args.runs / f'{task}-{args.host}-{name}-{seed}'}",
        *args.change,
    ]
    return read_recipe(f"text/{task}", changes)


def test(task: str, name: str, part: str, model: Path, args: argparse.Namespace) -> list[bool]:
    """Whether each answer to the problems of a file is right, found out once."""
    file = model / f"{part}-right.json"
    if not file.is_file():
        rows = rows_of(folder_of(task, WAYS[name].names, args) / f"{part}.jsonl")
        write_text(file, json.dumps(judged(task, rows, model)))
    return list(json.loads(file.read_text(encoding="utf-8")))


def judged(task: str, rows: Sequence[Row], folder: Path) -> list[bool]:
    """Whether each answer of a model is right."""
    model, tokenizer = load_checkpoint(folder)
    solved = read_recipe(f"text/{task}").configured_task
    pairs = [(row["source"], row["target"]) for row in rows]
    answers = generate_answers(
        model,
        tokenizer,
        [row["source"] for row in rows],
        num_beams=1,
        max_new_tokens=answer_limit(solved, tokenizer, pairs),
        progress=False,
    )
    return [
        given is not None and solved.check(row["source"], spelled(given[0]), row["target"]) in RIGHT
        for row, given in zip(rows, answers, strict=True)
    ]


def spelled(answer: str) -> str:
    """An answer in which symbols without a name, if there are some, are names."""
    return re.sub(r"<\w+_(\d+)>", r"new_\1", answer)


# -- tables ---------------------------------------------------------------------------------------


def grouped(rows: Sequence[Row], column: str, right: Sequence[bool]) -> dict[int, float]:
    """Share of right answers for each value of a column, in per cent."""
    groups: dict[int, list[bool]] = {}
    for row, is_right in zip(rows, right, strict=True):
        groups.setdefault(row[column], []).append(is_right)
    return {value: 100 * sum(group) / len(group) for value, group in sorted(groups.items())}


def tables(rows: Sequence[Row], results: Mapping[str, Mapping[str, Any]]) -> str:
    """A table for each column that has several values.

    Args:
        rows: of a test.
        results: way -> part -> for each seed whether each answer is right.
    """
    columns = [key for key in rows[0] if key not in ("source", "target")]
    texts = []
    for column in (c for c in columns if len({row[c] for row in rows}) > 1):
        lines = []
        for way, parts in results.items():
            for part, seeds in parts.items():
                shares = [grouped(rows, column, right) for right in seeds]
                cells = [measure.mean_and_spread([one[v] for one in shares]) for v in shares[0]]
                overall = [100 * sum(right) / len(right) for right in seeds]
                lines.append([f"{way}, {TESTS[part]}", *cells, measure.mean_and_spread(overall)])
        values = sorted({row[column] for row in rows})
        heads = [f"right, %; {column}:", *map(str, values), "all"]
        texts.append(measure.table(heads, lines))
    return "\n\n".join(texts)


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--task", choices=TASKS, default="anf", help="(anf)")
    add("--ways", default=",".join(WAYS), help=f"of {','.join(WAYS)}")
    add("--host", choices=HOSTS, default="alpha", help="(alpha)")
    add("--seeds", default="0,1", help="seeds of weights and batches (0,1)")
    add("--steps", type=int, default=3000, help="training steps (3000)")
    add("--rows", type=int, default=20_000, help="pairs of training (20000)")
    add("--tests", type=int, default=100, help="problems of each size (100)")
    add("--length", type=int, default=1024, help="tokens of a pair at most (1024)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/new-names"), help="where data and models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "ways", args.ways, WAYS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args = parse(argv)
    make_data(args.task, args)
    results: dict[str, dict[str, list[list[bool]]]] = {}
    for name in args.ways.split(","):
        results[name] = {part: [] for part in TESTS}
        for seed in integers(args.seeds):
            recipe = recipe_of(args.task, name, seed, args)
            model = train_once(recipe, Path(recipe.training["output_dir"]))
            for part, seeds in results[name].items():
                seeds.append(test(args.task, name, part, model, args))
    rows = rows_of(folder_of(args.task, "", args) / "test.jsonl")
    measure.finish(tables(rows, results), results, args.out, argv)


if __name__ == "__main__":
    main()
