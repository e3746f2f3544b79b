"""Kinship by length of the story (CLUTRR, Figure 5 of FOLNet's paper), from scratch on a CPU.

    python benchmarks/clutrr.py --data data/clutrr --out clutrr           # train what is missing
    python benchmarks/clutrr.py --data data/clutrr --splits k234 --only bert,folnet --seeds 0,1

Every model is trained by its recipe training/folnet/clutrr-*-small for the same number of steps on
stories of k = 2, 3 (or 2, 3, 4) facts, and tested on k = 2 to 10. A run that was killed goes on
where it stopped, and finished ones are not run again.

Beside them stands what needs no story: the most frequent answer that training gives to the same
two people of a query. The names of training and of its test stories are the same, and so are many
pairs, so a model that keeps names can answer by heart.

So `--redraw-names` gives the people of every story, in training and test, other names of the same
gender, drawn from the names of training, and training has each story with several draws
(`--copies`). Nothing can be answered by heart then, which the table shows; models that do not see
names have the same task as before.

`--facts` puts the facts themselves, in random order and always the same words, in place of the
stories that people wrote about them: "the son of Ann is Bob .". What is left is the reasoning.
The table then says too which problems are in training up to their names. `--all-pairs` has half of
the training stories ask about any two of their people whose relation other stories of training tell
(examples/tasks/kinship.py, `pairs`); nothing is told that is not in the training data. `--longer 8`
makes half of the training stories longer, up to 8 facts: one after another is told by two in its
place, as stories of two facts tell it. The table also says what these stories' rules alone answer,
with a guess where they allow more than one relation.

Cells are accuracies in %, means over the seeds; +- is half the distance between the largest and
the smallest.
"""

import argparse
import gzip
import itertools
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.evaluation.curves import BASELINE, COLORS, MARKERS
from hf_alpha.io.folders import replacing
from hf_alpha.objectives.evaluate import ALL, Scores, evaluate_checkpoint
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from runs import check_names, train_once

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
from kinship import Story, facts_in_words, genders_of, longer_stories, with_other_questions

RECIPES = {
    "bert": "clutrr-bert-small",
    "folnet": "clutrr-small",
    "first_occurrence": "clutrr-names-small",
    "dual_part": "clutrr-dual_part-small",
    "streams": "clutrr-streams-small",
    "relational": "clutrr-relational-small",
}
LABELS = {
    "by_heart": "the same pair in training",
    "same_facts": "the same facts in training",
    "rules": "the rules of stories of two facts",
    "bert": "BERT",
    "folnet": "FOLNet",
    "first_occurrence": "FOLNet, people numbered",
    "dual_part": "FOLNet, people dual-part",
    "streams": "FOLNet, people streams",
    "relational": "FOLNet, people relational",
}
BY_HEART, SAME_FACTS, BY_RULES = "by_heart", "same_facts", "rules"
SPLITS = ("k23", "k234")

Cells = dict[str, list[float]]
"""Group, a number of facts or `all` -> accuracy of each seed, in %."""


# -- other names, and facts in place of sentences -------------------------------------------------


def redraw_names(
    data: Path,
    split: str,
    copies: int,
    out: Path,
    facts: bool = False,
    all_pairs: bool = False,
    longer: int = 0,
) -> None:
    """Write a split's files with people renamed, `copies` times each training story.

    With `facts`, each story is told by its facts alone. With `longer`, half of the training stories
    have up to so many facts. With `all_pairs`, half of the training stories ask about any two of
    their people whose relation training tells.
    """
    stories = {part: read_stories(data / file_name(split, part)) for part in ("train", "test")}
    names: dict[str, list[str]] = defaultdict(list)
    for name, gender in sorted({one for story in stories["train"] for one in genders_of(story)}):
        names[gender].append(name)
    out.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", copies), ("test", 1)):
        rng = random.Random(f"{split}/{part}")
        part_stories = [
            {**story, "story": facts_in_words(story, rng, "[{}]")} if facts else story
            for story in longer_stories(
                stories[part] * count, longer if part == "train" else 0, rng
            )
        ]
        if all_pairs and part == "train":
            part_stories = with_other_questions(part_stories, rng)
        lines = "".join(json.dumps(renamed(story, names, rng)) + "\n" for story in part_stories)
        with replacing(out / file_name(split, part)) as temporary:
            temporary.write_bytes(gzip.compress(lines.encode(), mtime=0))


def file_name(split: str, part: str) -> str:
    """As CLUTRR's files are called here."""
    return f"{split}_{part}.jsonl.gz"


def read_stories(path: Path) -> list[Story]:
    """The lines of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def renamed(story: Story, names: Mapping[str, Sequence[str]], rng: random.Random) -> Story:
    """A story in which everybody has a name of the same gender, drawn without repetition."""
    people = genders_of(story)
    new: dict[str, str] = {}
    for gender in names:
        old = [name for name, theirs in people if theirs == gender]
        new |= dict(zip(old, rng.sample(names[gender], len(old)), strict=True))
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, new))})\b")
    return {
        **story,
        "story": words.sub(lambda match: new[match[0]], story["story"]),
        "query": [new[name] for name in story["query"]],
        "genders": ",".join(f"{new[name]}:{gender}" for name, gender in people),
        "proof_state": "",  # has the old names, and nobody reads it
    }


# -- training and test ----------------------------------------------------------------------------


def train(name: str, split: str, seed: int, args: argparse.Namespace) -> Path:
    """Train one model, or go on with it, unless it is done; returns its folder."""
    out = args.runs / f"{split}-{name}-{seed}"
    changes = [
        f"data.train={args.data / file_name(split, 'train')}",
        f"data.test={args.data / file_name(split, 'test')}",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *args.change,
    ]
    recipe = read_recipe(f"folnet/{RECIPES[name]}", changes)
    return train_once(recipe, out)


def test(folder: Path) -> Scores:
    """What a trained model answers on its test data, by number of facts."""
    recipe: Any = read_recipe(folder / RECIPE_FILE)
    scores = evaluate_checkpoint(folder, recipe.aim, recipe.data, recipe.data.test, by="k")
    scores.save(folder / "test")
    return scores


def by_heart(split: str, data: Path, key: Callable[[Story], Hashable]) -> Cells:
    """Accuracy of the most frequent answer of training to what is the same by a key."""
    train, test = (read_stories(data / file_name(split, part)) for part in ("train", "test"))
    targets: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for story in train:
        targets[key(story)][story["target"]] += 1
    right: dict[int, list[float]] = defaultdict(list)
    for story in test:
        most_frequent = targets[key(story)].most_common(1)
        facts = int(story["task_name"].rpartition(".")[2])
        right[facts].append(bool(most_frequent) and most_frequent[0][0] == story["target"])
    return by_group(right)


def same_pair(story: Story) -> Hashable:
    """The two people of a query."""
    return tuple(story["query"])


def same_facts(story: Story) -> Hashable:
    """What a story says, whatever the names of its people, who are numbered as they occur."""
    people = dict.fromkeys(person for edge in story["story_edges"] for person in edge)
    numbers = {person: number for number, person in enumerate(people)}
    edges = [tuple(numbers[person] for person in edge) for edge in story["story_edges"]]
    facts = frozenset(zip(edges, story["edge_types"], strict=True))
    return tuple(numbers[person] for person in story["query_edge"]), facts


def by_rules(split: str, data: Path) -> Cells:
    """Accuracy of the rules that training stories of two facts tell, applied in every order.

    Where they allow several relations, one is guessed: the expected accuracy.
    """
    train, test = (read_stories(data / file_name(split, part)) for part in ("train", "test"))
    rules: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for story in train:
        if len(story["edge_types"]) == 2:
            rules[tuple(story["edge_types"])].add(story["target"])
    shares: dict[int, list[float]] = defaultdict(list)
    for story in test:
        relations = composed(story["edge_types"], rules)
        share = (story["target"] in relations) / max(len(relations), 1)
        shares[len(story["edge_types"])].append(share)
    return by_group(shares)


def composed(facts: Sequence[str], rules: Mapping[tuple[str, ...], set[str]]) -> set[str]:
    """The relations that a chain of facts can be composed to, as a chart parser finds them."""
    chart = {(start, start + 1): {fact} for start, fact in enumerate(facts)}
    for length in range(2, len(facts) + 1):
        for start in range(len(facts) - length + 1):
            end = start + length
            pairs = (
                pair
                for middle in range(start + 1, end)
                for pair in itertools.product(chart[start, middle], chart[middle, end])
            )
            chart[start, end] = {one for pair in pairs for one in rules.get(pair, ())}
    return chart[0, len(facts)]


def by_group(shares: Mapping[int, Sequence[float]]) -> Cells:
    """Means in %, of each number of facts and of all."""
    groups = {f"{facts}": shares[facts] for facts in sorted(shares)}
    groups[ALL] = [share for some in groups.values() for share in some]
    return {group: [100 * sum(some) / len(some)] for group, some in groups.items()}


def accuracies(runs: Sequence[Scores]) -> Cells:
    """Of one model on one split, each seed."""
    groups = runs[0].metrics
    return {group: [100 * one.metrics[group]["accuracy"] for one in runs] for group in groups}


def draw(results: Mapping[str, Mapping[str, Cells]], path: Path) -> None:
    """A panel for each split, a line for each model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(results), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(results), squeeze=False, sharey=True)[0]
    for panel, (split, models) in zip(panels, results.items(), strict=True):
        panel.axvspan(1.5, int(split[-1]) + 0.5, color="0.93", zorder=0)
        for name, cells in models.items():
            facts = [group for group in cells if group != ALL]
            means = [sum(cells[group]) / len(cells[group]) for group in facts]
            panel.plot([int(group) for group in facts], means, label=LABELS[name], **style(name))
        panel.set_title(f"trained on k = {', '.join(split[1:])} (shaded)", fontsize=10)
        panel.set_xlabel("facts in the story, k")
        panel.set_ylim(0, 100)
        panel.grid(axis="y", color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("right answers, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def style(name: str) -> dict[str, Any]:
    """How a line looks: those without a model are grey."""
    if name not in RECIPES:
        dashes = {BY_HEART: "--", SAME_FACTS: ":", BY_RULES: "-."}[name]
        return {"color": BASELINE, "ls": dashes, "lw": 1.5}
    index = list(RECIPES).index(name)
    return {"color": COLORS[index], "marker": MARKERS[index], "ms": 5, "lw": 1.8}


def tables(results: Mapping[str, Mapping[str, Cells]]) -> str:
    """A table for each split."""
    parts = []
    for split, models in results.items():
        groups = list(next(iter(models.values())))
        lines = [
            [
                LABELS[name],
                *(measure.mean_and_spread(cells[group]) for group in groups),
                f"{len(cells[ALL])}",
            ]
            for name, cells in models.items()
        ]
        heads = [f"trained on {split}; k:", *groups, "seeds"]
        parts.append(measure.table(heads, lines, words=[heads[0]]))
    return "\n\n".join(parts)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data/clutrr"), help="folder of CLUTRR's files")
    add("--splits", default=",".join(SPLITS), help=f"({','.join(SPLITS)})")
    add("--only", default=",".join(RECIPES), help=f"of {','.join(RECIPES)}")
    add("--seeds", default="0", help="seeds of weights and batches (0)")
    add("--steps", type=int, default=6000, help="of each model (6000)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/clutrr-folnet"), help="where models are")
    add("--redraw-names", action="store_true", help="give people other names in every story")
    add("--copies", type=int, default=4, help="of a training story, with --redraw-names (4)")
    add("--facts", action="store_true", help="tell stories by their facts; with --redraw-names")
    add("--all-pairs", action="store_true", help="half of training asks about other people too")
    add("--longer", type=int, default=0, help="half of training has up to so many facts (0: no)")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    if (args.facts or args.all_pairs) and not args.redraw_names:
        parser.error("--facts and --all-pairs need --redraw-names")
    if args.longer and not args.facts:
        parser.error("--longer needs --facts: nobody has written sentences about new people")
    check_names(parser, "only", args.only, RECIPES)
    check_names(parser, "splits", args.splits, SPLITS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test, print and draw."""
    args = parse(argv)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    results: dict[str, dict[str, Cells]] = {}
    original_data, splits = args.data, args.splits.split(",")
    if args.redraw_names:
        args.data = args.runs / f"{'facts' if args.facts else 'redrawn-names'}-{args.copies}"
        for split in splits:
            redraw_names(
                original_data,
                split,
                args.copies,
                args.data,
                args.facts,
                args.all_pairs,
                args.longer,
            )
    for split in splits:
        results[split] = {BY_HEART: by_heart(split, args.data, same_pair)}
        if args.facts:
            results[split][SAME_FACTS] = by_heart(split, args.data, same_facts)
            results[split][BY_RULES] = by_rules(split, original_data)
        for name in args.only.split(","):
            folders = [train(name, split, seed, args) for seed in seeds]
            results[split][name] = accuracies([test(folder) for folder in folders])
    if args.out:
        draw(results, measure.picture(args.out))
    measure.finish(tables(results), {"accuracy": results}, args.out, argv)


if __name__ == "__main__":
    main()
