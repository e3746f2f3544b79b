"""A small FOLNet pretrained on a CPU, then fine-tuned on RTE and FOLIO, beside a BERT of its size.

    python benchmarks/finetuning.py --data data --out finetuning

Both are pretrained by training/folnet/pretrain-small (masked tokens and the order of sentences) for
the same number of steps on the same texts: those of the training files of RTE, FOLIO and MRPC, and
SQuAD's paragraphs of XQuAD, some hundred thousand words. That is next to nothing for pretraining;
what it is worth is told by the same model without it: pretraining of one step with a learning rate
of 0. Then all are fine-tuned alike, with several seeds. Runs that are finished are not run again.

Cells are accuracies in %, means over the seeds; +- is half the distance between the largest and
the smallest. `most frequent` answers everything with the most frequent class of training.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.cli.options import integers
from hf_alpha.folders import write_text
from hf_alpha.objectives.evaluate import ALL, evaluate_checkpoint
from hf_alpha.objectives.formats import read_format
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from runs import check_names, train_once
from studies.formats import FORMATS

BERT = (
    "model.model_type=bert",
    "model.num_hidden_layers=4",  # as many parameters as FOLNet with 3
    "model.max_position_embeddings=512",
    *(f"model.{name}=null" for name in ("head_size", "binary_hidden_size")),
    "model.binary_intermediate_size=null",
)
MODELS: dict[str, tuple[str, ...]] = {"folnet": (), "bert": BERT}
LABELS = {"folnet": "FOLNet", "bert": "BERT"}
STARTS = ("pretrained", "from scratch")
TASKS: dict[str, dict[str, Any]] = {
    "rte": {
        "folder": "rte",
        "files": ("train.jsonl", "val.jsonl"),
        "data": {"source": "premise", "pair": "hypothesis", "target": "label"},
    },
    "folio": {
        "folder": "folio",
        "files": ("folio-train.jsonl", "folio-validation.jsonl"),
        "data": {"format": FORMATS["folio"], "pair": "pair"},
    },
}
FREQUENT = "most frequent"
TEXTS = "texts.txt"


# -- pretraining ----------------------------------------------------------------------------------


def texts(data: Path) -> Iterator[str]:
    """What is read in pretraining: training files only, labels left aside."""
    for row in rows_of(data / "rte" / "train.jsonl", TASKS["rte"]):
        yield row["premise"]
    for row in read_format(FORMATS["folio"], str(data / "folio" / "folio-train.jsonl")):
        yield row["source"]
    for row in read_format(FORMATS["mrpc"], str(data / "mrpc" / "msr_paraphrase_train.txt")):
        yield f"{row['source']} {row['pair']}"
    for row in read_format("squad", str(data / "xquad" / "xquad.en.json")):
        yield row["context"]


def write_texts(args: argparse.Namespace) -> None:
    """Write them into one file, each text once."""
    args.runs.mkdir(parents=True, exist_ok=True)
    documents = dict.fromkeys(" ".join(text.split()) for text in texts(args.data))
    write_text(args.runs / TEXTS, "\n\n".join(documents) + "\n")


def pretrain(name: str, start: str, args: argparse.Namespace) -> Path:
    """Train a model on texts, or leave it as it began; returns its folder."""
    out = args.runs / f"{name}-{start.replace(' ', '-')}"
    steps = args.pretraining if start == STARTS[0] else 1
    changes = [
        f"data.train={args.runs / TEXTS}",
        f"training.max_steps={steps}",
        f"training.output_dir={out}",
        *(["training.learning_rate=0"] if start != STARTS[0] else []),
        *MODELS[name],
        *args.change,
    ]
    return train_once(read_recipe("folnet/pretrain-small", changes), out)


# -- fine-tuning ----------------------------------------------------------------------------------


def tune(name: str, start: str, task: str, seed: int, args: argparse.Namespace) -> float:
    """Fine-tune a model for one task and test it: accuracy in %."""
    settings = TASKS[task]
    train, test = (args.data / settings["folder"] / file for file in settings["files"])
    out = args.runs / f"{name}-{start.replace(' ', '-')}-{task}-{seed}"
    changes = [
        f"checkpoint={pretrain(name, start, args)}",
        "objective.name=class",
        f"objective.max_length={args.length}",
        f"data.train={train}",
        "data.validation=0.1",
        f"data.test={test}",
        *(f"data.{key}={value}" for key, value in settings["data"].items()),
        f"training.num_train_epochs={args.epochs}",
        f"training.learning_rate={args.learning_rate}",
        "training.per_device_train_batch_size=16",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *args.change,
    ]
    train_once(read_recipe("folnet/finetune", changes), out)
    recipe: Any = read_recipe(out / RECIPE_FILE)
    scores = evaluate_checkpoint(out, recipe.aim, recipe.data, recipe.data.test)
    scores.save(out / "test")
    return 100 * scores.metrics[ALL]["accuracy"]


def most_frequent(task: str, data: Path) -> float:
    """Accuracy of the most frequent class of training, in %."""
    settings = TASKS[task]
    columns = settings["data"]
    train, test = (
        [
            row[columns.get("target", "target")]
            for row in rows_of(data / settings["folder"] / f, settings)
        ]
        for f in settings["files"]
    )
    (most_common, _), *_ = Counter(train).most_common(1)
    return 100 * test.count(most_common) / len(test)


def rows_of(path: Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a task's file."""
    if form := settings["data"].get("format"):
        return read_format(form, str(path))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folders rte, folio, mrpc, xquad (data)")
    add("--only", default=",".join(MODELS), help=f"of {','.join(MODELS)}")
    add("--tasks", default=",".join(TASKS), help=f"of {','.join(TASKS)}")
    add("--seeds", default="0,1,2", help="of fine-tuning (0,1,2)")
    add("--pretraining", type=int, default=4000, help="steps (4000)")
    add("--epochs", type=int, default=10, help="of fine-tuning (10)")
    add("--learning-rate", type=float, default=3e-4, help="of fine-tuning (3e-4)")
    add("--length", type=int, default=256, help="tokens at most, in fine-tuning (256)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/finetuning"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "only", args.only, MODELS)
    check_names(parser, "tasks", args.tasks, TASKS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args = parse(argv)
    tasks, seeds = args.tasks.split(","), integers(args.seeds)
    data: dict[str, dict[str, list[float]]] = {
        FREQUENT: {task: [most_frequent(task, args.data)] for task in tasks}
    }
    write_texts(args)
    for name in args.only.split(","):
        for start in STARTS:
            data[f"{LABELS[name]}, {start}"] = {
                task: [tune(name, start, task, seed, args) for seed in seeds] for task in tasks
            }
    lines = [
        [row, *(measure.mean_and_spread(values) for values in results.values())]
        for row, results in data.items()
    ]
    measure.finish(measure.table(["accuracy, %", *tasks], lines), data, args.out, argv)


if __name__ == "__main__":
    main()
