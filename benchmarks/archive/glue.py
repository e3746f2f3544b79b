"""What minutes of pretraining on a CPU are worth on GLUE: a FOLNet beside a BERT of its size.

    python benchmarks/archive/glue.py --data data --minutes 0,2,8 --seeds 0,1,2 \\
        --change training.disable_tqdm=true --out glue

Both have half a million parameters, and read masked tokens of the same texts (those of
geometric_pretrained.py) for the same minutes of one thread: how many steps that are, a run of 200
steps measures first. Each number of minutes is a run of its own, as the learning rate falls to
zero; 0 minutes are weights as they are drawn. Then all are fine-tuned alike on four tasks, with
several seeds, and tested on data that has labels: the official test set of MRPC, SST-2 as sentences
with its test set, the validation sets of RTE and CoLA (in domain). Runs that are finished are not
run again.

Cells are in %, means over the seeds; +- is half the distance between the largest and the smallest.
CoLA has Matthews' correlation, MRPC F1 of paraphrases, the others accuracy. `most frequent` answers
everything with the most frequent class of training.
"""

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hf_alpha.cli.options import integers
from hf_alpha.data.formats import read_format
from hf_alpha.evaluation.curves import COLORS, MARKERS
from hf_alpha.folders import read_json, write_text
from hf_alpha.recipe import read_recipe
from hf_alpha.train import TRAINER_STATE

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from geometric_pretrained import PRETRAINING, add_texts, write_texts
from geometric_study import test
from runs import check_names, train_once
from studies.formats import FORMATS

BERT = (
    "model.model_type=bert",
    "model.num_hidden_layers=4",  # as many parameters as FOLNet with 3
    "model.max_position_embeddings=512",
    *(f"model.{name}=null" for name in ("head_size", "binary_hidden_size")),
    "model.binary_intermediate_size=null",
)
MODELS: dict[str, tuple[str, ...]] = {"FOLNet": (), "BERT": BERT}
"""Model -> changes to the recipe of its pretraining."""
ALIKE = ("objective.sentences=none", "objective.documents=null", "training.eval_strategy=no")
MEASURED_STEPS = 200


class Task(NamedTuple):
    """A task of GLUE: its files, its metric, and what a recipe says of the data."""

    train: str
    test: str
    metric: str
    data: Mapping[str, str]


TASKS = {
    "sst2": Task("sst2/train.tsv", "sst2/test.tsv", "accuracy", {"format": FORMATS["sst2"]}),
    "cola": Task(
        "cola/in_domain_train.tsv", "cola/in_domain_dev.tsv", "matthews",
        {"format": FORMATS["cola"]},
    ),
    "mrpc": Task(
        "mrpc/msr_paraphrase_train.txt", "mrpc/msr_paraphrase_test.txt", "f1",
        {"format": FORMATS["mrpc"], "pair": "pair"},
    ),
    "rte": Task(
        "rte/train.jsonl", "rte/val.jsonl", "accuracy",
        {"source": "premise", "pair": "hypothesis", "target": "label"},
    ),
}  # fmt: skip
FREQUENT = "most frequent"

Cells = dict[str, dict[int, dict[str, list[float]]]]
"""Model -> minutes of pretraining -> task -> metric of each seed, in %."""


# -- pretraining ----------------------------------------------------------------------------------


def pretrain(model: str, name: str, steps: int, texts: Path, args: argparse.Namespace) -> Path:
    """Train a model on texts for some steps; returns its folder. Of no step: as it is drawn."""
    out = args.runs / f"{model.lower()}-{name}"
    changes = [
        f"data.train={texts}",
        f"training.max_steps={steps or 1}",
        f"training.output_dir={out}",
        *MODELS[model],
        *PRETRAINING,
        *ALIKE,
        *(() if steps else ("training.learning_rate=0",)),
        *args.change,
    ]
    return train_once(read_recipe("folnet/pretrain-small", changes), out)


def rates(texts: Path, args: argparse.Namespace) -> dict[str, float]:
    """Steps of pretraining in a second for each model: measured once, one after the other."""
    file = args.runs / "rates.json"
    if not file.is_file():
        measured = {}
        for model in MODELS:
            state = read_json(
                pretrain(model, "measured", MEASURED_STEPS, texts, args) / TRAINER_STATE,
                "log_history",
            )
            log = {name: value for entry in state["log_history"] for name, value in entry.items()}
            seconds = log["train_runtime"] - log.get("eval_runtime", 0)
            measured[model] = MEASURED_STEPS / seconds
        write_text(file, json.dumps(measured))
    return read_json(file, *MODELS)


# -- fine-tuning ----------------------------------------------------------------------------------


def tune(checkpoint: Path, name: str, seed: int, args: argparse.Namespace) -> float:
    """Fine-tune a model for one task and test it: the task's metric in %."""
    task = TASKS[name]
    out = args.runs / f"{checkpoint.name}-{name}-{seed}"
    changes = [
        f"checkpoint={checkpoint}",
        "objective.name=class",
        f"objective.max_length={args.length}",
        f"objective.metrics=[{task.metric}]",
        f"data.train={args.data / task.train}",
        "data.validation=0.1",
        f"data.test={args.data / task.test}",
        *(f"data.{key}={value}" for key, value in task.data.items()),
        f"training.num_train_epochs={args.epochs}",
        f"training.learning_rate={args.learning_rate}",
        "training.train_sampling_strategy=group_by_length",
        "training.max_grad_norm=1",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *args.change,
    ]
    return test(train_once(read_recipe("folnet/finetune", changes), out), task.metric)


def most_frequent(name: str, data: Path) -> float:
    """The metric of the most frequent class of training, in %."""
    task = TASKS[name]
    train, tested = (labels_of(data / file, task) for file in (task.train, task.test))
    (most_common, _), *_ = Counter(train).most_common(1)
    accuracy = tested.count(most_common) / len(tested)
    values = {"accuracy": accuracy, "matthews": 0.0, "f1": 2 * accuracy / (1 + accuracy)}
    return 100 * values[task.metric]


def labels_of(path: Path, task: Task) -> list[Any]:
    """The labels of a file, in its order."""
    column = task.data.get("target", "target")
    if format_name := task.data.get("format"):
        return [row[column] for row in read_format(format_name, str(path))]
    return [json.loads(line)[column] for line in path.read_text(encoding="utf-8").splitlines()]


# -- results --------------------------------------------------------------------------------------


def mean_of_tasks(tasks: Mapping[str, Sequence[float]]) -> list[float]:
    """The mean of all tasks, for each seed."""
    return [statistics.fmean(values) for values in zip(*tasks.values(), strict=True)]


def draw(cells: Cells, path: Path) -> None:
    """The mean of the tasks by minutes of pretraining: a line for each model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for (model, by_minutes), color, marker in zip(cells.items(), COLORS, MARKERS, strict=False):
        seeds = [mean_of_tasks(tasks) for tasks in by_minutes.values()]
        minutes, means = list(by_minutes), [statistics.fmean(values) for values in seeds]
        axes.plot(minutes, means, color=color, marker=marker, label=model)
        lows, highs = [min(values) for values in seeds], [max(values) for values in seeds]
        axes.fill_between(minutes, lows, highs, color=color, alpha=0.15, linewidth=0)
    axes.set_xlabel("minutes of pretraining, one thread")
    axes.set_ylabel("mean of the tasks, %")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add_texts(parser)
    add("--tasks", default=",".join(TASKS), help=f"of {','.join(TASKS)}")
    add("--minutes", type=integers, default=[0, 5, 20], help="of pretraining (0,5,20)")
    add("--seeds", type=integers, default=[0, 1, 2], help="of fine-tuning (0,1,2)")
    add("--epochs", type=int, default=3, help="of fine-tuning (3)")
    add("--learning-rate", type=float, default=3e-4, help="of fine-tuning (3e-4)")
    add("--length", type=int, default=128, help="tokens at most, in fine-tuning (128)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/glue"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "tasks", args.tasks, TASKS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test, print and draw."""
    args = parse(argv)
    tasks = args.tasks.split(",")
    texts = write_texts(args)
    steps = {
        model: {minutes: round(60 * minutes * rate) for minutes in args.minutes}
        for model, rate in rates(texts, args).items()
    }
    cells: Cells = {model: {} for model in MODELS}
    for minutes in args.minutes:
        for model in MODELS:
            folder = pretrain(model, str(minutes), steps[model][minutes], texts, args)
            cells[model][minutes] = {
                name: [tune(folder, name, seed, args) for seed in args.seeds] for name in tasks
            }
    frequent = [most_frequent(name, args.data) for name in tasks]
    lines = [[FREQUENT, "", *(f"{value:.1f}" for value in [*frequent, statistics.fmean(frequent)])]]
    for model, by_minutes in cells.items():
        for minutes, values in by_minutes.items():
            shown = [*values.values(), mean_of_tasks(values)]
            cell = f"{minutes} min, {steps[model][minutes]:,} steps"
            lines.append([model, cell, *map(measure.mean_and_spread, shown)])
    heads = ["%", "pretraining"]
    columns = [*heads, *(f"{name}, {TASKS[name].metric}" for name in tasks), "mean"]
    data = {FREQUENT: dict(zip(tasks, frequent, strict=True)), **cells}
    measure.finish(measure.table(columns, lines, words=heads), data, args.out, argv)
    if args.out:
        draw(cells, measure.RESULTS / f"{args.out}.png")


if __name__ == "__main__":
    main()
