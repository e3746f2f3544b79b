"""What symbolic segments are worth: learning curves of a tagger with and without them, on a CPU.

    python benchmarks/geometric_study.py --data data --out geometric-study   # train what is missing
    python benchmarks/geometric_study.py --tasks dimsum --sizes 300,1200,0 --seeds 0,1,2

Tasks: multiword expressions (DiMSUM 2016; the strong ones of STREUSLE 4.7), named entities of the
web (WNUT-17), and masked tokens (the sentences of DiMSUM, WNUT-17, English-EWT, SST-2, CoLA and
MRPC). Every model is trained from nothing, by the recipes training/geometric/TASK-*.yaml, on nested
parts of the training data. Taggers are chosen by their F1 on 500 sentences that are held out from
it, and tested on the official test set, by F1 of exact spans; models of masked tokens by the share
of tokens that they find in 1,000 sentences.

Segments come from a lexicon:

- `oewn`: the multiword entries of Open English WordNet with their part of speech, and their regular
  plurals; it knows nothing of the labels;
- `known`: these, and the phrases that training marks at least twice, with a label of their own;
- `closed`: all phrases that training, validation or test data mark, with their type. That is no
  fair lexicon but a ceiling: what segments would be worth if a lexicon knew the domain.

Entries: `none` is BERT; `graph` and `rotary` see relations of tokens only; with a lexicon behind a
`+` they have its segments too. A run that was killed goes on where it stopped, and finished ones
are not run again. Cells are F1, or the share of masked tokens, in %, means over the seeds; +- is
half the distance between the largest and the smallest.
"""

import argparse
import csv
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.cli.options import integers
from hf_alpha.data.formats import read_format
from hf_alpha.evaluation.curves import COLORS, MARKERS
from hf_alpha.objectives.evaluate import ALL, METRICS_FILE, evaluate_checkpoint
from hf_alpha.objectives.tokens import spans_of
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.train import TRAINER_STATE
from hf_alpha.transduction import Lexicon, Transducer
from runs import check_names, train_once
from studies.formats import FORMATS

TAGGED = {
    "dimsum": (FORMATS["dimsum"], "dimsum/dimsum16.train", "dimsum/dimsum16.test"),
    "streusle": (FORMATS["streusle"], "streusle/train.vis", "streusle/test.vis"),
    "wnut17": ("conll", "wnut17/train.conll", "wnut17/test.conll"),
}
"""Task -> format, training file, test file."""
MASKED = "masked"
TEXTS = {
    "dimsum/dimsum16.train": FORMATS["dimsum"],
    "wnut17/train.conll": "conll",
    "uner_ewt/dev.iob2": "conll",
    "sst2/train.tsv": FORMATS["sst2"],
    "cola/in_domain_train.tsv": FORMATS["cola"],
    "mrpc/msr_paraphrase_train.txt": FORMATS["mrpc"],
}
"""What masked tokens are learned from: file -> format."""
METRICS = {**dict.fromkeys(TAGGED, "f1"), MASKED: "masked_accuracy"}
ENTRIES = {
    "none": ("none", None),
    "graph": ("graph", None),
    "graph+oewn": ("graph", "oewn"),
    "graph+known": ("graph", "known"),
    "graph+closed": ("graph", "closed"),
    "rotary": ("rotary", None),
    "rotary+oewn": ("rotary", "oewn"),
    "rotary+closed": ("rotary", "closed"),
}
"""Entry -> the end of its recipe's name, and its lexicon."""
WORDNET = "oewn_mwe/mwe.tsv"
HELD_OUT, TESTED = 500, 1000

Row = Mapping[str, Any]
Cells = dict[str, dict[str, list[float]]]
"""Entry -> number of training sentences -> metric of each seed, in %."""


# -- data -----------------------------------------------------------------------------------------


def rows_of(task: str, data: Path) -> dict[str, list[dict[str, Any]]]:
    """Training sentences in a random order, those held out from them, and the test's."""
    if task == MASKED:
        rows = sorted({text for name in TEXTS for text in texts_of(data / name, TEXTS[name])})
        random.Random(0).shuffle(rows)
        parts = rows[HELD_OUT + TESTED :], rows[:HELD_OUT], rows[HELD_OUT : HELD_OUT + TESTED]
        named_parts = zip(("train", "validation", "test"), parts, strict=True)
        return {name: [{"source": text} for text in part] for name, part in named_parts}
    format_name, train, test = TAGGED[task]
    tagged = read_format(format_name, str(data / train))
    random.Random(0).shuffle(tagged)
    return {
        "train": tagged[HELD_OUT:],
        "validation": tagged[:HELD_OUT],
        "test": read_format(format_name, str(data / test)),
    }


def texts_of(path: Path, format_name: str) -> Iterator[str]:
    """The sentences of a file; words are joined by spaces."""
    for row in read_format(format_name, str(path)):
        for text in (row["source"], row.get("pair")):
            if text:
                yield text if isinstance(text, str) else " ".join(text)


def write_parts(
    rows: Mapping[str, list[dict[str, Any]]], sizes: Sequence[int], folder: Path
) -> dict[str, Path]:
    """Write the parts of a task's data as JSON lines; returns name or size -> file."""
    parts = {str(size or len(rows["train"])): rows["train"][: size or None] for size in sizes}
    parts |= {name: rows[name] for name in ("validation", "test")}
    folder.mkdir(parents=True, exist_ok=True)
    for name, some in parts.items():
        lines = (
            json.dumps({key: row[key] for key in ("source", "target") if key in row}) + "\n"
            for row in some
        )
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return {name: folder / f"{name}.jsonl" for name in parts}


def lexicon(name: str, rows: Mapping[str, list[Row]], data: Path) -> Lexicon:
    """One of the lexicons."""
    if name == "closed":
        return Lexicon.from_entries(sorted(set().union(*map(marked_phrases, rows.values()))))
    with (data / WORDNET).open(encoding="utf-8", newline="") as file:
        entries = [(row["lemma"], row["pos"]) for row in csv.DictReader(file, delimiter="\t")]
    if name == "known":
        counts = Counter(phrase.lower() for phrase, _ in marked_phrases(rows["train"]))
        entries += sorted((phrase, "known") for phrase, count in counts.items() if count > 1)
    return Lexicon.from_entries(entries, plurals=True)


def marked_phrases(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """The phrases of several words, without gaps, that sentences mark, and their types."""
    for row in rows:
        for (first, last), kind in gold(row).items():
            if last > first:
                yield " ".join(row["source"][first : last + 1]), kind


def gold(row: Row) -> dict[tuple[int, int], str]:
    """The spans of a sentence without gaps: first and last word -> type."""
    kinds = {}
    for kind, places in spans_of(row["target"]):
        if places[-1] - places[0] + 1 == len(places):
            kinds[places[0], places[-1]] = kind or "span"
    return kinds


def segment_spans(row: Row, transducer: Transducer) -> Iterator[tuple[int, int]]:
    """First and last word of each segment that begins and ends with words."""
    starts, ends, place = {}, {}, 0
    for number, word in enumerate(row["source"]):
        starts[place], ends[place + len(word)] = number, number
        place += len(word) + 1
    for start, end, _ in transducer.spans(" ".join(row["source"])):
        if start in starts and end in ends:
            yield starts[start], ends[end]


def quality(rows: Sequence[Row], transducer: Transducer) -> dict[str, float]:
    """Share of segments that are marked spans, of marked spans that are segments, and their F1."""
    num_right = num_found = num_marked = 0
    for row in rows:
        marked = {
            (places[0], places[-1]) if len(places) == places[-1] - places[0] + 1 else places
            for _, places in spans_of(row["target"])
        }
        segments = set(segment_spans(row, transducer))
        num_right += len(segments & marked)
        num_found += len(segments)
        num_marked += len(marked)
    precision, recall = num_right / max(num_found, 1), num_right / max(num_marked, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {"segments": num_found, "precision": precision, "recall": recall, "f1": f1}


# -- runs -----------------------------------------------------------------------------------------


def train(
    task: str, entry: str, size: str, seed: int, files: Mapping[str, Path], args: argparse.Namespace
) -> Path:
    """Train one model, or go on with it, unless it is done; returns its folder."""
    kind, lexicon_name = ENTRIES[entry]
    out = args.runs / f"{task}-{entry}-{size}-{seed}"
    changes = [
        "data.format=null",
        f"data.train={files[size]}",
        f"data.validation={files['validation']}",
        f"data.test={files['test']}",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        f"transducer={args.runs / f'{task}-{lexicon_name}' if lexicon_name else 'null'}",
        *args.change,
    ]
    recipe = read_recipe(f"geometric/{task}-{kind}", changes)
    return train_once(recipe, out)


def test(folder: Path, metric: str) -> float:
    """A metric on the test data, in %; a finished model is tested once."""
    metrics_file = folder / "test" / METRICS_FILE
    if (
        not metrics_file.is_file()
        or metrics_file.stat().st_mtime < (folder / TRAINER_STATE).stat().st_mtime
    ):
        recipe: Any = read_recipe(folder / RECIPE_FILE)
        scores = evaluate_checkpoint(folder, recipe.aim, recipe.data, recipe.data.test)
        scores.save(folder / "test")
    return 100 * json.loads(metrics_file.read_text(encoding="utf-8"))["metrics"][ALL][metric]


def run_task(task: str, args: argparse.Namespace) -> tuple[Cells, dict[str, Any]]:
    """All runs of a task; returns their metric, and the quality of the lexicons' segments."""
    rows = rows_of(task, args.data)
    files = write_parts(rows, args.sizes, args.runs / f"{task}-data")
    entries = [entry for entry in ENTRIES if entry in args.only.split(",")]
    if task == MASKED:  # there are no phrases that are marked
        entries = [entry for entry in entries if not entry.endswith("closed")]
    segments = {}
    for name in sorted({name for _, name in map(ENTRIES.get, entries) if name}):
        transducer = Transducer.compile(lexicon(name, rows, args.data), match="longest")
        transducer.save(args.runs / f"{task}-{name}")
        if task != MASKED:
            segments[name] = {part: quality(rows[part], transducer) for part in rows}
    cells: Cells = {}
    for size in sorted(filter(str.isdecimal, files), key=int):
        for entry in entries:
            folders = [train(task, entry, size, seed, files, args) for seed in args.seeds]
            cells.setdefault(entry, {})[size] = [test(folder, METRICS[task]) for folder in folders]
    return cells, segments


# -- results --------------------------------------------------------------------------------------


def text_of(results: Mapping[str, tuple[Cells, dict[str, Any]]]) -> str:
    """Two tables for each task."""
    parts = []
    for task, (cells, segments) in results.items():
        sizes = list(next(iter(cells.values())))
        measure_name = "masked tokens found" if task == MASKED else "F1"
        head = f"{task}: {measure_name}, %; training sentences:"
        lines = [
            [entry, *(measure.mean_and_spread(of[size]) for size in sizes)]
            for entry, of in cells.items()
        ]
        parts.append(measure.table([head, *sizes], lines, words=[head]))
        rates = ("precision", "recall", "f1")
        quality_lines = [
            [name, part, f"{q['segments']:,}", *(f"{100 * q[rate]:.1f}" for rate in rates)]
            for name, of in segments.items()
            for part, q in of.items()
        ]
        if quality_lines:
            heads = [f"{task}: segments of", "in", "segments", "precision, %", "recall, %", "F1, %"]
            parts.append(measure.table(heads, quality_lines, words=heads[:2]))
    return "\n\n".join(parts)


def draw(results: Mapping[str, tuple[Cells, dict[str, Any]]], path: Path) -> None:
    """A panel for each task, a line for each entry."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(results) + 1.8, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(results), squeeze=False)[0]
    for panel, (task, (cells, _)) in zip(panels, results.items(), strict=True):
        for entry, of in cells.items():
            index = list(ENTRIES).index(entry)
            means = [sum(values) / len(values) for values in of.values()]
            panel.plot(
                [int(size) for size in of], means, label=entry, ms=5, lw=1.8,
                ls="--" if entry.endswith("closed") else "-",
                color=COLORS[index % len(COLORS)], marker=MARKERS[index % len(MARKERS)],
            )  # fmt: skip
        sizes = [int(size) for size in next(iter(cells.values()))]
        panel.set_xscale("log")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.set_title(task, fontsize=10)
        panel.set_xlabel("training sentences")
        panel.set_ylim(bottom=0)
        panel.grid(axis="y", color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("F1 of exact spans, or masked tokens found, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folder of the data's folders (data)")
    add("--tasks", default=",".join(METRICS), help=f"({','.join(METRICS)})")
    add("--only", default=",".join(ENTRIES), help=f"of {','.join(ENTRIES)}")
    add("--sizes", type=integers, default=[300, 1200, 0], help="(300,1200,0); 0 is all")
    add("--seeds", type=integers, default=[0], help="seeds of weights and batches (0)")
    add("--steps", type=int, default=1000, help="of each model (1000)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/geometric"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "only", args.only, ENTRIES)
    check_names(parser, "tasks", args.tasks, METRICS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test, print and draw."""
    args = parse(argv)
    results = {task: run_task(task, args) for task in args.tasks.split(",")}
    if args.out and len(args.sizes) > 1:
        draw(results, measure.picture(args.out))
    data = {task: {"metric": cells, "segments": some} for task, (cells, some) in results.items()}
    measure.finish(text_of(results), data, args.out, argv)


if __name__ == "__main__":
    main()
