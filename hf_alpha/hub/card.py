"""Model cards: what a model is, how it was made and what it reaches, from files that say so.

[`write_card`] is for models that answer, [`write_score_card`] for those of other objectives.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedConfig

from hf_alpha.checkpoints.places import base_of
from hf_alpha.evaluation.compare import trained_region
from hf_alpha.evaluation.heatmap import Heatmap, Region, draw
from hf_alpha.evaluation.pictures import COLORS, take_literally
from hf_alpha.evaluation.report import (
    EDIT_DISTANCE,
    OUTSIDE,
    Rates,
    Record,
    Report,
    rates_table,
)
from hf_alpha.generation import NEW_NAME
from hf_alpha.hub.release import LOG_FILE, read_log
from hf_alpha.io.plain_text import fenced, printable, within_line
from hf_alpha.io.yaml_files import read_yaml
from hf_alpha.loading import auto_class, load_checkpoint, load_config, tokenizer_place
from hf_alpha.names.given_names import classes_by_row
from hf_alpha.objectives import RowsObjective
from hf_alpha.objectives.base import Finder, Texts
from hf_alpha.objectives.evaluate import ALL, Scores
from hf_alpha.objectives.evaluate import table as score_table
from hf_alpha.objectives.names import finder_of
from hf_alpha.objectives.rows import DataSource
from hf_alpha.recipe import RECIPE_FILE, check_shareable, recipe_beside, writes_answers
from hf_alpha.tasks import DrawnTask, Task, get_task, name_of
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEMPLATE_FILE = Path(__file__).with_name("model_card.md.jinja")
RENAMINGS = {
    "none": "",
    "random": " Each sample was renamed at random in training (alpha-renaming).",
    "random_per_batch": " Samples were renamed at random in training, anew in each step.",
    "first_occurrence": (
        " Inside the model, symbols are renamed by order of first occurrence: renaming a problem "
        "renames its answer and changes nothing else."
    ),
}
HEATMAP_FILE, CURVE_FILE, PICTURE_FILE = "heatmap.png", "training_log.png", "results.png"
NOTES_FILE = "NOTES.md"
CLASSIFIER = "AutoModelForSequenceClassification"
RATES = ("accuracy", "f1", "exact")
"""Metrics that are shares, from 0 to 1, and so can be drawn as such."""
METRICS = {
    "correct": ("accuracy", "correct answers"),
    "edit_distance": ("edit_distance", "mean edit distance"),
}


def write_card(
    folder: Path,
    report: Report,
    baseline: Report,
    command: str,
    date: str,
    license: str | None = None,
    region: Region | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
    data: str | None = None,
) -> ModelCard:
    """Write README.md beside a model, and its pictures: a heatmap, and the course of training.

    Args:
        folder: a checkpoint; its `recipe.yaml`, if there is one, is quoted, and its
            `training_log.json` is drawn.
        baseline: of the random assignment on the same problems.
        license: of the model, as the Hub names it; by default Apache 2.0, or for a converted model
            none, as that of its backbone holds.
        region: symbols and sizes of the training data, where the recipe does not say.
        rows: that the model was tested with, whose texts say where names stand.
        data: where they are from; None if the task draws them, or the recipe says it.
    """
    model, tokenizer = load_checkpoint(folder)
    config, task = model.config, get_task(report.settings["task"])
    recipe = recipe_beside(str(folder))
    if recipe is not None:
        region = trained_region(recipe) or region
    draw([Heatmap.of(report, task.measure, region)], folder / HEATMAP_FILE)
    if license is None and backbone_type(config) is None:  # a backbone has its own
        license = "apache-2.0"
    num_tokens = f"{config.num_base_tokens} base tokens"
    return save_card(
        folder,
        license=license,
        tags=["alpha-equivalence", *["logic"] * (task.grammar is not None), task.name],
        results=_results(task, report),
        config=config,
        auto=auto_class(config).__name__,
        custom_code=True,
        facts=[
            ("symbol encoding", f"`{config.symbol_encoding}`"),
            ("parameters", f"{model.num_parameters():,}"),
            ("size", config.size_text),
            ("vocabulary", f"{num_tokens}, symbols: {symbol_counts(tokenizer)}"),
        ],
        task=task,
        task_option=f" --task {name_of(task)}" * (task.name != DEFAULT_TASK),
        is_drawn=isinstance(task, DrawnTask) and data is None,
        not_measured=_not_measured(task, report, data),
        example=_example(task, report, rows),
        marked=_is_marked(tokenizer),
        names_option="".join(f" --names {name}=zoe,max" for name in classes_by_row(tokenizer)),
        new_name=NEW_NAME,
        command=command,
        date=date,
        table=fenced(rates_table([report, baseline], task)),
        measure=METRICS[task.measure][1],
        picture=HEATMAP_FILE,
        examples=_examples(task, report),
        region=region,
        rates_by_region=region and _rates_by_region(region, report, task.measure),
        low=_not_better(report, baseline, task.measure),
        listed=_listed,
    )


def write_score_card(
    folder: Path,
    objective: RowsObjective,
    scores: Scores,
    read: Callable[[Finder], Dataset],
    settings: DataSource,
    *,
    by: str | None,
    command: str,
    date: str,
    license: str | None = None,
) -> ModelCard:
    """Write README.md beside a model, with a picture where its metrics are given by groups.

    Args:
        folder: a checkpoint; its `recipe.yaml`, if there is one, is quoted, and its
            `training_log.json` is drawn.
        read: gives the rows, as of `reader_of_rows`.
        settings: the recipe's, which name the columns of the rows.
        by: the column whose values are the groups of `scores`.
    """
    model, tokenizer = load_checkpoint(folder, answers=False)
    config = model.config
    finder = finder_of(tokenizer)
    texts = list(Texts(objective, read(finder), settings, finder).by_row())
    is_classifier = objective.auto_name == CLASSIFIER and config.problem_type != "regression"
    labels = [config.id2label[index] for index in sorted(config.id2label)] if is_classifier else []
    metric, percents = next(iter(scores.metrics[ALL])), {}
    if metric in RATES:
        percents = {g: 100 * of[metric] for g, of in scores.metrics.items() if g != ALL}
    if percents:
        _bars(percents, metric, str(by)).savefig(folder / PICTURE_FILE, dpi=150)
    marked = _is_marked(tokenizer)
    shortest = min(filter(any, texts), key=lambda row: sum(map(len, row)))
    facts = [
        ("model type", f"`{config.model_type}`"),
        ("trained for", f"`{objective.name}`, {objective.auto_name}"),
        ("parameters", f"{model.num_parameters():,}"),
        ("vocabulary", f"{len(tokenizer):,}"),
    ]
    tags = []
    if getattr(config, "symbol_classes", {}):
        tags = ["alpha-equivalence"]
        encoding = f"`{config.symbol_encoding}`, symbols: {symbol_counts(tokenizer)}"
        facts.insert(2, ("symbol encoding", encoding))
    return save_card(
        folder,
        license=license,
        tags=tags,
        results=_score_results(folder.resolve().name, objective, scores, by),
        pipeline=objective.pipeline,
        config=config,
        auto=objective.auto_name,
        custom_code=hasattr(config, "auto_map"),
        facts=facts,
        layers=getattr(config, "decoder_config", config).num_hidden_layers,
        objective=objective.name,
        labels=[within_line(f"{label}") for label in labels],
        marked=marked,
        texts=", ".join(_as_code(text, marked) for text in shortest),
        command=command,
        date=date,
        table=fenced(score_table({folder.resolve().name: scores}, by)),
        metric=metric,
        by=by,
        picture=PICTURE_FILE if percents else None,
        extremes=_extremes(percents),
        examples=_score_examples(texts, scores, by) if is_classifier else {},
    )


def how_to_write(folder: Path) -> str:
    """Return how a model gets its card; no command measures one without symbols for a card."""
    scored = (folder / RECIPE_FILE).is_file() and not writes_answers(f"{folder}")
    if scored or hasattr(load_config(folder), "symbol_classes"):
        return f"`hf-alpha evaluate {folder} --card` writes one"
    return "write one by hand"


def check_own_card(folder: Path) -> None:
    """Refuse to write over a card that was written by hand, not by a program.

    Raises:
        FileExistsError: there is one; what a user writes belongs into `NOTES_FILE`.
    """
    card = folder / "README.md"
    if not card.is_file():
        return
    header, text = read_yaml(card), card.read_text(encoding="utf-8")
    is_own = isinstance(header, dict) and "hf_alpha" in (header.get("tags") or ())
    if not is_own and "# Framework versions" not in text:  # as PEFT and trainers write it
        raise FileExistsError(
            f"{card} was written by hand: move what you wrote to {NOTES_FILE}, which cards take in"
        )


def save_card(
    folder: Path,
    *,
    config: PreTrainedConfig,
    license: str | None,
    tags: Sequence[str],
    results: list[EvalResult],
    pipeline: str | None = None,
    **fields: Any,
) -> ModelCard:
    """Fill in the template of cards and write it as README.md, with how the model was trained.

    Args:
        fields: variables of the template, for Markdown: the texts of others in them are cleaned.
    """
    check_own_card(folder)
    name, base = folder.resolve().name, base_of(folder)
    metadata = ModelCardData(
        license=license,
        library_name="transformers" if base is None else "peft",
        pipeline_tag=pipeline,
        tags=["hf_alpha", *tags],
        model_name=name,
        base_model=base,
        eval_results=results,
    )
    fields |= {"name": name, "config": config, "notes": notes(folder), "fenced": fenced}
    if base is not None:
        has_tokenizer = tokenizer_place(folder) != base
        fields |= {"base": printable(json.dumps(base)), "has_tokenizer": has_tokenizer}
    if getattr(config, "symbol_classes", {}):
        fields["encoding"] = describe_encoding(config)
    fields |= describe_training(folder)
    card = ModelCard.from_template(metadata, template_path=str(TEMPLATE_FILE), **fields)
    card.save(folder / "README.md")
    return card


def symbol_counts(tokenizer: Any) -> str:
    """Return how many symbols there are of each class, for Markdown."""
    counts = (f"{count} {name}" for name, count in tokenizer.symbol_classes.items())
    return within_line(", ".join(counts))


def _not_better(report: Report, baseline: Report, measure: str) -> list[int]:
    """Return the numbers of symbols with which a model is no better than the baseline."""
    sign = -1 if measure == EDIT_DISTANCE else 1
    floor = baseline.by_num_symbols
    return [
        k
        for k, rates in report.by_num_symbols.items()
        if not rates.is_outside and not sign * rates.rate(measure) > sign * floor[k].rate(measure)
    ]


def _not_measured(task: Task, report: Report, data: str | None) -> str:
    """Return what rows of data do not tell, for Markdown; "" of rows that are not given data."""
    if data is None:
        return ""
    numbers = [(record.num_symbols, record.size) for record in report.records]
    symbols, size = map(max, zip(*numbers, strict=True)) if numbers else (0, 0)
    lacking = [f"more than {symbols} symbols in a problem, more than {size} tokens"]
    lacking += ["alpha-covariance"] * (report.alpha_covariance is None)
    lacking += [f"{task.problems} that the task draws"] * isinstance(task, DrawnTask)
    return f"Tested on `{within_line(data)}` alone. Not measured: {', '.join(lacking)}."


def _is_marked(tokenizer: Any) -> bool:
    """Return whether texts have to say where names stand, as rules alone do not find them."""
    rules = getattr(finder_of(tokenizer), "rules", {}).values()
    return any(rule.column or rule.function for rule in rules)


def _example(task: Task, report: Report, rows: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a problem to try, as code: the task's, or of the user's texts the shortest tested."""
    texts = [row["problem"] for row in rows] or [record.problem for record in report.records]
    shortest = min(texts, key=len, default="")
    if getattr(shortest, "spans", ()):
        return printable(_as_code(shortest, marked=True))
    return printable(json.dumps(task.example or shortest, ensure_ascii=False))


def _examples(task: Task, report: Report) -> dict[int, str]:
    """Return the first problems with fewest, middling and most symbols, as solved.

    They are chosen by their place alone, so that they say what an answer looks like, right or not.
    """
    examples: dict[int, str] = {}
    for record in report.records:
        if record.outcome != OUTSIDE:
            answer = record.answers[0] if record.answers else record.reason or "no answer"
            text = f"{record.problem}\n{task.answer_line(record.outcome, answer)}"
            examples.setdefault(record.num_symbols, text)
    return {number: examples[number] for number in spread(examples)}


def spread(groups: Iterable[Any]) -> list[Any]:
    """Return the first, a middle and the last of some groups, in their order."""
    ordered = sorted(groups)
    return sorted({ordered[i] for i in (0, len(ordered) // 2, -1)} if ordered else ())


def _rates_by_region(region: Region, report: Report, measure: str) -> dict[bool, float]:
    """Return how often a model is right within what it was trained on (True), and beyond."""
    (_, symbols), (_, tokens) = region
    records: dict[bool, list[Record]] = {}
    for record in report.records:
        if record.outcome != OUTSIDE and measure != EDIT_DISTANCE:
            within = record.num_symbols <= symbols and record.size <= tokens
            records.setdefault(within, []).append(record)
    return {within: 100 * Rates.of(group).rate(measure) for within, group in records.items()}


def _listed(numbers: Iterable[int]) -> str:
    *firsts, last = map(str, numbers)
    return f"{', '.join(firsts)} and {last}" if firsts else last


def notes(folder: Path) -> str:
    """Return what a model's NOTES.md says for its card, which no result tells; "" without one."""
    file = folder / NOTES_FILE
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def describe_training(folder: Path) -> dict[str, str]:
    """Return what a card says of training: the recipe, and the picture of losses, which is drawn.

    Raises:
        ValueError: the recipe holds a secret.
    """
    if not (folder / RECIPE_FILE).is_file():
        return {}
    fields = {}
    log = read_log(folder / LOG_FILE) if (folder / LOG_FILE).is_file() else []
    if any(entry.keys() & {"loss", "eval_loss"} for entry in log):
        make_curve(log).savefig(folder / CURVE_FILE, dpi=150)
        fields["curve"] = CURVE_FILE
    check_shareable(folder / RECIPE_FILE)
    recipe = (folder / RECIPE_FILE).read_text(encoding="utf-8")
    return {**fields, "training": fenced(recipe.strip(), "yaml")}


def make_curve(log: Sequence[dict[str, Any]]) -> "Figure":
    """Draw losses by training step, of training and of validation."""
    figure, axis = _picture()
    kinds = {"training": ("loss", "-", COLORS[0]), "validation": ("eval_loss", "o-", COLORS[1])}
    for label, (key, style, color) in kinds.items():
        points = [(entry["step"], entry[key]) for entry in log if key in entry]
        if points:
            axis.plot(*zip(*points, strict=True), style, color=color, label=label, ms=3, lw=1.2)
    axis.set(xlabel="training step", ylabel="loss", yscale="log")
    axis.legend(frameon=False, fontsize=9)
    return figure


def describe_encoding(config: PreTrainedConfig) -> str:
    """Return what a model with symbols is: what its encoding does, and what it was made from."""
    description: str = config.encoding.description + RENAMINGS[config.symbol_renaming]
    if backbone_type(config) is not None:
        description += (
            f" It is a `{backbone_type(config)}` of Transformers with a layer for names around it "
            "(`hf-alpha convert`); the licence of that model holds for it too."
        )
    return description


def backbone_type(config: PreTrainedConfig) -> str | None:
    """Return the type of the model of Transformers inside a converted one; None for any other."""
    backbone = getattr(config, "backbone_config", None)
    return None if backbone is None else backbone.model_type


def _results(task: Task, report: Report) -> list[EvalResult]:
    metric, title = METRICS[task.measure]
    return [
        EvalResult(
            task_type="other",
            task_name=task.name,
            dataset_type=f"hf_alpha/{task.name}",
            dataset_name=f"{task.problems} with {count} symbol{'s' * (count != 1)}",
            # Part of a result's identity: without it the metadata would merge all rows into one.
            dataset_config=f"{count}-symbols",
            metric_type=metric,
            metric_name=title,
            metric_value=round(rates.rate(task.measure), 4),
        )
        for count, rates in report.by_num_symbols.items()
        if not rates.is_outside
    ]


def _as_code(text: str, marked: bool) -> str:
    """Return a text as code, with the places of names that rules alone do not find."""
    if not marked:
        return repr(str(text))
    spans = [span[: 3 + bool(span.binding)] for span in getattr(text, "spans", ())]
    return f"MarkedText({str(text)!r}, {spans})"


def _extremes(percents: Mapping[str, float]) -> list[str]:
    """Return the groups in which the model is best and worst; none if that is one group."""
    if len({*percents.values()}) < 2:
        return []
    groups = max(percents, key=percents.__getitem__), min(percents, key=percents.__getitem__)
    return [f"{within_line(group)} ({percents[group]:.1f} %)" for group in groups]


def _score_examples(
    texts: Sequence[Sequence[str]], scores: Scores, by: str | None
) -> dict[str, str]:
    """Return the first row of the first, a middle and the last group: chosen by place alone."""
    firsts: dict[Any, int] = {}
    for place, record in enumerate(scores.records):
        firsts.setdefault(record[by] if by else place, place)
    examples = {}
    for group in spread(firsts):
        record = scores.records[firsts[group]]
        answer = f"  {record['prediction']} (right: {record['target']})"
        examples[within_line(f"{group}")] = "\n".join([*texts[firsts[group]], answer])
    return examples


def _bars(percents: Mapping[str, float], metric: str, by: str) -> "Figure":
    """Draw a metric by group."""
    figure, axis = _picture()
    groups = [printable(group) for group in percents]
    axis.bar(groups, [*percents.values()], color=COLORS[0], width=0.7)
    axis.set(xlabel=by, ylabel=f"{metric}, %", ylim=(0, 100))
    axis.get_xticklabels()  # makes them
    take_literally(figure)
    return figure


def _picture() -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axis = figure.subplots()
    axis.grid(axis="y", which="both", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _score_results(
    name: str, objective: RowsObjective, scores: Scores, by: str | None
) -> list[EvalResult]:
    return [
        EvalResult(
            task_type=objective.pipeline,
            dataset_type=f"{name}-test",
            dataset_name=f"test data with {by} {printable(group)}" if group != ALL else "test data",
            # Part of a result's identity: without it the metadata would merge all groups into one.
            dataset_config=f"{by}-{printable(group)}" if group != ALL else ALL,
            metric_type=metric,
            metric_value=round(value, 4),
        )
        for group, metrics in scores.metrics.items()
        for metric, value in metrics.items()
    ]
