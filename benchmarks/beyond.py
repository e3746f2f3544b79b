"""Released models on more than their training had, further and further out, until they fail.

    python benchmarks/beyond.py --data FOLDER_OF_CLUTRR --out beyond
    python benchmarks/beyond.py --only inline-t5                         # one of them

A line of the table is one model and one thing of which problems have more than training had: names,
tokens, operations, steps or facts. The others stay within training, as far as they can: more
names make a text longer, and a term of seven operations has room for eight names. Formulas with
more tokens have 1 to 10 names, and at most ten tokens fewer than the cell says. Every problem but
those about kinship is new: none is, up to renaming (formulas: and the order of operands), one of
training. Cells are right answers in %, of formulas with those of a random answer in brackets.

Longer stories about kinship are the test's of ten facts, in which one fact after another is told by
two, as training's stories of two facts tell it. A run that was killed goes on where it stopped.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

import measure
from hf_alpha.answer.base import Random, Search
from hf_alpha.answer.models import load_answerer
from hf_alpha.data.keys import pair_key
from hf_alpha.evaluation.compare import draw_problems
from hf_alpha.evaluation.evaluate import run
from hf_alpha.generation import extend_vocabulary
from hf_alpha.loading import load_checkpoint
from hf_alpha.objectives.evaluate import ALL, evaluate_model
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.tasks import DrawnTask
from runs import check_names

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
import anf
import inline
import kinship
import proofs
from pair_files import PairFiles, files_of_operations, letter_names

CARDS = measure.ROOT / "model_cards"
KINSHIP = "kinship-folnet"
POOL = letter_names(500)[1]
Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """Problems with more than training had.

    Attributes:
        axis: what there is more of.
        value: how much.
        sizes: what is drawn, in turns; what the numbers are hangs on the task: names and tokens
            from and to, names and operations (anf), names and steps (proofs), names (inline), facts
            (kinship).
    """

    axis: str
    value: str
    sizes: Sequence[tuple[int, ...]]


def formulas(axis: str, value: str, *bounds: int) -> Point:
    """A point of formulas: fewest and most names, fewest and most tokens."""
    return Point(axis, value, [bounds])


def each(axis: str, values: Sequence[int], sizes: Callable[[int], Any]) -> list[Point]:
    """A point for each value."""
    return [Point(axis, str(value), sizes(value)) for value in values]


OPERATIONS = 16
"""Most of a term in the training of anf-relational."""
POINTS = {
    "propositional-relational": [
        *(formulas("names", str(n), n, n, 45, 50) for n in (12, 15, 18)),
        *(formulas("tokens", str(n), 1, 10, n - 9, n) for n in (60, 75, 100, 150, 200)),
    ],
    "ltl-relational": [
        *(formulas("names", str(n), n, n, 2 * n - 1, 100) for n in (12, 15, 20, 30, 45)),
        *(formulas("tokens", str(n), 1, 10, n - 9, n) for n in (120, 150, 200, 300)),
    ],
    "anf-relational": each(
        "operations", (17, 18, 20, 24, 32), lambda size: [(names, size) for names in (4, 8, 12, 16)]
    ),
    "proofs-relational": [
        *each("names", (64, 100, 200), lambda names: [(names, n) for n in range(1, 5)]),
        *each("steps", (5, 8, 12, 16, 31), lambda steps: [(proofs.TRAINED, steps)]),
    ],
    "inline-t5": each("names", (21, 22, 24, 28, 32), lambda names: [(names,)]),
    KINSHIP: each("facts", (9, 10, 12, 16, 24, 32, 48), lambda facts: [(facts,)]),
}
"""What each model is asked."""


# -- problems -------------------------------------------------------------------------------------


def problems_of(model: str, point: Point, task: Any, args: argparse.Namespace) -> list[Row]:
    """New problems of a point, as evaluation takes them."""
    if isinstance(task, DrawnTask):
        ((fewest, most, least, longest),) = point.sizes
        folder = args.runs / f"{model}-{point.axis}-{point.value}" / "data"
        each_number = -(-args.samples // (most - fewest + 1))
        return draw_problems(
            task, folder, range(fewest, most + 1), range(least, longest + 1), each_number
        )
    draw, seen = SOURCES[model][1], keys_of_training(model)
    rng, rows = random.Random(f"{model} {point.axis} {point.value}"), list[Row]()
    while len(rows) < args.samples:
        drawn = draw(rng, *point.sizes[len(rows) % len(point.sizes)])
        if pair_key(drawn["source"], task.finder) not in seen:
            rows.append({"problem": drawn["source"], "answer": drawn["target"]})
    return rows


@cache
def keys_of_training(model: str) -> frozenset[bytes]:
    """What renaming leaves of the problems of training."""
    task: Any = read_recipe(CARDS / model / RECIPE_FILE).configured_task
    return frozenset(pair_key(row["source"], task.finder) for row in SOURCES[model][0]())


def training_pairs(files: PairFiles, rows: int = 20_000) -> Iterator[Row]:
    """The pairs that `python examples/tasks/TASK.py` writes for training."""
    rng = random.Random("0 train")
    for _ in range(rows):
        yield files.draw(rng, files.seen, *rng.choice(files.train))


def normal_forms() -> Iterator[Row]:
    """The pairs of text/anf, text/anf-longer and text/anf-wider."""
    yield from training_pairs(anf.FILES)
    for names in (4, OPERATIONS + 1):
        yield from training_pairs(files_of_operations(anf.draw, OPERATIONS, names), 60_000)


def inlined_before() -> Iterator[Row]:
    """The pairs of all trainings of inline-t5, and of text/inline-t5-wider."""
    for most in (*inline.STAGES, 20):
        yield from inline.training(random.Random(0), most)


def with_names(draw: Callable[..., Row]) -> Callable[..., Row]:
    """How pairs are drawn with names that training lacks, and enough of them."""
    return lambda rng, *size: draw(rng, POOL, *size)


SOURCES: dict[str, tuple[Callable[[], Iterator[Row]], Callable[..., Row]]] = {
    "anf-relational": (normal_forms, with_names(anf.draw)),
    "proofs-relational": (partial(training_pairs, proofs.FILES), with_names(proofs.draw)),
    "inline-t5": (inlined_before, inline.pair),
}
"""Model -> its pairs of training, and how a pair is drawn."""


def stories_of(facts: int, args: argparse.Namespace) -> list[Row]:
    """The test's stories of so many facts, or those of ten with more."""
    files = (args.data / f"k234_{part}.jsonl.gz" for part in ("train", "test"))
    train, test = map(measure.lines_of, files)
    longest = max(len(story["edge_types"]) for story in test)
    chosen = [story for story in test if len(story["edge_types"]) == min(facts, longest)]
    rng, (told_by, genders) = random.Random(facts), kinship.what_two_tell(train)
    return [
        kinship.pair(kinship.with_facts(story, facts, told_by, genders, rng), rng, ())
        for story in chosen
    ]


# -- answers --------------------------------------------------------------------------------------


def answered(name: str, point: Point, args: argparse.Namespace) -> Row:
    """How many problems of a point a model, and where there is one a random answer, has right."""
    search = Search(batch_size=args.batch)
    model = load_answerer(name, str(CARDS / name), torch.device("cpu"), search)
    task = read_recipe(CARDS / name / RECIPE_FILE).configured_task
    rows = problems_of(name, point, task, args)
    model.extend(task, [row["problem"] for row in rows])
    folder = args.runs / f"{name}-{point.axis}-{point.value}"
    report = run(model, task, rows, folder, progress=False)
    found = {"problems": len(rows), "right": report.overall.correct}
    if isinstance(task, DrawnTask):
        found["random"] = run(Random("chance"), task, rows, progress=False).overall.correct
    return found


def told(point: Point, args: argparse.Namespace) -> Row:
    """How many stories of a point the model of kinship has right."""
    recipe: Any = read_recipe(CARDS / KINSHIP / RECIPE_FILE)
    ((facts,),) = point.sizes
    file = args.runs / f"{KINSHIP}-{facts}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    stories = stories_of(facts, args)
    file.write_text("".join(json.dumps(row) + "\n" for row in stories), encoding="utf-8")
    model, tokenizer = load_checkpoint(CARDS / KINSHIP, answers=False)
    extend_vocabulary(model, tokenizer, facts + 1)
    objective = replace(recipe.aim, max_length=12 * facts)  # a fact has eight tokens
    rows = objective.read(recipe.data, str(file), "test", None, [])
    scores = evaluate_model(objective, model, tokenizer, rows, recipe.data, progress=False)
    return {"problems": scores.samples[ALL], "right": scores.metrics[ALL]["accuracy"]}


def point_of(name: str, point: Point, args: argparse.Namespace) -> Row:
    """What is found at a point, found once."""
    file = args.runs / f"{name}-{point.axis}-{point.value}.json"
    if not file.is_file():
        found = told(point, args) if name == KINSHIP else answered(name, point, args)
        file.write_text(json.dumps({"axis": point.axis, "value": point.value, **found}))
    found = json.loads(file.read_text(encoding="utf-8"))
    print(f"{name}: {found}", file=sys.stderr, flush=True)
    return found


# -- the table ------------------------------------------------------------------------------------


def cell(found: Mapping[str, Any]) -> str:
    """Right answers, and those of chance."""
    chance = f" ({100 * found['random']:.1f})" if "random" in found else ""
    return f"{100 * found['right']:.1f}{chance}"


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A line for each model and what there is more of."""
    lines = []
    for name, points in results.items():
        for axis in dict.fromkeys(point["axis"] for point in points):
            chosen = [point for point in points if point["axis"] == axis]
            cells = ", ".join(f"{point['value']}: {cell(point)}" for point in chosen)
            lines.append([name, axis, cells, str(min(point["problems"] for point in chosen))])
    heads = ["model", "more", "right, % (random)", "problems of each, at least"]
    return measure.table(heads, lines, words=heads[1:3])


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = measure.parser_of(__doc__)
    add = parser.add_argument
    add("--only", default=",".join(POINTS), help="of these; what --out has of others stays")
    add("--data", type=Path, default=Path("data/clutrr"), help="folder of CLUTRR's files")
    add("--samples", type=int, default=100, help="problems of a point (100)")
    add("--batch", type=int, default=16, help="problems in a batch (16)")
    add("--runs", type=Path, default=Path("runs/beyond"), help="where problems and answers are")
    args = parser.parse_args(argv)
    check_names(parser, "only", args.only, POINTS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Ask and print."""
    args = parse(argv)
    asked = args.only.split(",")
    results = (args.out and measure.kept(args.out)) or {}
    results |= {name: [point_of(name, point, args) for point in POINTS[name]] for name in asked}
    given = sys.argv[1:] if argv is None else list(argv)
    if results.keys() == POINTS.keys():  # of all models, whichever were asked now
        given = [word for word in given if word not in ("--only", args.only, f"--only={args.only}")]
    measure.finish(table(results), results, args.out, given)


if __name__ == "__main__":
    measure.run(main)
