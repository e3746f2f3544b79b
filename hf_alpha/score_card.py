"""Model cards of models that do not answer with text: what they tell, and how well."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.card import describe_encoding, notes, save_card
from hf_alpha.evaluation.curves import COLORS
from hf_alpha.evaluation.fonts import make_legible, readable
from hf_alpha.loading import load_checkpoint
from hf_alpha.objectives import RowsObjective
from hf_alpha.objectives.base import Texts
from hf_alpha.objectives.evaluate import ALL, Scores, table
from hf_alpha.objectives.names import finder_of
from hf_alpha.objectives.rows import DataSource
from hf_alpha.plain_text import fenced, printable, within_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CODE = """{imported}from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder{trust})
model = {auto}.from_pretrained(folder{trust})
outputs = model(**tokenizer({texts}, return_tensors="pt"))
{answer}"""
CLASS = "model.config.id2label[int(outputs.logits.argmax(-1))]\n"
CLASSIFIER = "AutoModelForSequenceClassification"
PICTURE_FILE = "results.png"
RATES = ("accuracy", "f1", "exact")
"""Metrics that are shares, from 0 to 1, and so can be drawn as such."""


def write_score_card(
    folder: Path,
    objective: RowsObjective,
    scores: Scores,
    rows: Dataset,
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
        objective: what the model is trained for.
        scores: of the model.
        rows: that it was tested with.
        settings: the recipe's, which name the columns of the rows.
        by: the column whose values are the groups of `scores`.
        command: that made the scores.
        date: of the scores.
        license: of the model, as the Hub names it.
    """
    model, tokenizer = load_checkpoint(folder, answers=False)
    config, name = model.config, folder.resolve().name
    texts = list(Texts(objective, rows, settings, finder_of(tokenizer)).by_row())
    has_classes = objective.auto_name == CLASSIFIER and config.problem_type != "regression"
    metric, groups = next(iter(scores.metrics[ALL])), []
    if metric in RATES:
        groups = [group for group in scores.metrics if group != ALL]
    if groups:
        _picture(scores, groups, metric, str(by)).savefig(folder / PICTURE_FILE, dpi=150)
    return save_card(
        folder,
        _metadata(name, objective, scores, by, license, bool(_symbols(config))),
        name=name,
        description=_description(config, objective, has_classes),
        facts=_facts(model, tokenizer, objective),
        code=_code(config, tokenizer, objective, has_classes, texts),
        own_code=hasattr(config, "auto_map"),
        command=command,
        date=date,
        table=fenced(table({name: scores}, by)),
        measure=f"{metric} by {by}",
        picture=PICTURE_FILE if groups else None,
        extremes=_extremes(scores, groups, metric, by),
        limits=notes(folder),
        examples=_examples(texts, scores, by) if has_classes else "",
    )


def _code(
    config: PreTrainedConfig,
    tokenizer: Any,
    objective: RowsObjective,
    has_classes: bool,
    texts: Sequence[Sequence[str]],
) -> str:
    """Return code that uses the model on the shortest texts tested."""
    finder = finder_of(tokenizer)
    marked = finder is not None and any(
        rule.column or rule.function for rule in finder.rules.values()
    )
    shortest = min(filter(any, texts), key=lambda row: sum(map(len, row)))
    code = CODE.format(
        imported="from hf_alpha import MarkedText\n" if marked else "",
        auto=objective.auto_name,
        trust=", trust_remote_code=True" if hasattr(config, "auto_map") else "",
        texts=", ".join(_as_code(text, marked) for text in shortest),
        answer=CLASS if has_classes else "",
    )
    return fenced(code, "python")


def _facts(
    model: PreTrainedModel, tokenizer: Any, objective: RowsObjective
) -> list[tuple[str, str]]:
    """Return what a model is, for the table at the top of a card."""
    facts = [
        ("model type", f"`{model.config.model_type}`"),
        ("trained for", f"`{objective.name}`, {objective.auto_name}"),
        ("parameters", f"{model.num_parameters():,}"),
        ("vocabulary", f"{len(tokenizer):,}"),
    ]
    if _symbols(model.config):
        counts = ", ".join(f"{count} {name}" for name, count in tokenizer.symbol_classes.items())
        encoding = f"`{model.config.symbol_encoding}`, symbols: {within_line(counts)}"
        facts.insert(2, ("symbol encoding", encoding))
    return facts


def _description(config: PreTrainedConfig, objective: RowsObjective, has_classes: bool) -> str:
    host = getattr(config, "decoder_config", config)
    description = f"A `{config.model_type}` with {host.num_hidden_layers} layers"
    if has_classes:
        names = [within_line(str(config.id2label[index])) for index in sorted(config.id2label)]
        description += f" that tells which of {len(names)} classes a text has: {', '.join(names)}."
    else:
        description += f", trained for the objective `{objective.name}`."
    return f"{description} {describe_encoding(config)}" if _symbols(config) else description


def _symbols(config: PreTrainedConfig) -> Mapping[str, int]:
    return getattr(config, "symbol_classes", {})


def _as_code(text: str, marked: bool) -> str:
    """Return a text as code, with the places of names that rules alone do not find."""
    if not marked:
        return repr(str(text))
    return f"MarkedText({str(text)!r}, {[tuple(span) for span in getattr(text, 'spans', ())]})"


def _extremes(scores: Scores, groups: Sequence[str], metric: str, by: str | None) -> str:
    """Say where the model is best, and where it is worst."""
    if len(groups) < 2:
        return ""
    percents = {group: 100 * scores.metrics[group][metric] for group in groups}
    best, worst = max(groups, key=percents.__getitem__), min(groups, key=percents.__getitem__)
    if percents[best] == percents[worst]:
        return ""
    return (
        f"By `{by}`, {metric} is highest with {within_line(best)} ({percents[best]:.1f} %) and "
        f"lowest with {within_line(worst)} ({percents[worst]:.1f} %)."
    )


def _examples(texts: Sequence[Sequence[str]], scores: Scores, by: str | None) -> str:
    """Return the first row of the first, a middle and the last group: chosen by place alone."""
    firsts: dict[Any, int] = {}
    for place, record in enumerate(scores.records):
        firsts.setdefault(record[by] if by else place, place)
    groups = sorted(firsts)
    example_groups = sorted({groups[0], groups[len(groups) // 2], groups[-1]})
    lines = []
    for place in (firsts[group] for group in example_groups):
        record = scores.records[place]
        lines += [*texts[place], f"  {record['prediction']} (right: {record['target']})"]
    text = "\n".join(lines)
    group_names = within_line(", ".join(map(str, example_groups)))
    origin = f"with `{by}` {group_names}" if by else "of the test data"
    return f"The first rows {origin}, and what it says of them:\n{fenced(text)}"


def _picture(scores: Scores, groups: Sequence[str], metric: str, by: str) -> "Figure":
    """Draw a metric by group."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    values = [100 * scores.metrics[group][metric] for group in groups]
    axis.bar([readable(printable(group)) for group in groups], values, color=COLORS[0], width=0.7)
    axis.set(xlabel=by, ylabel=f"{metric}, %", ylim=(0, 100))
    axis.grid(axis="y", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.get_xticklabels()  # makes them
    make_legible(figure)
    return figure


def _metadata(
    name: str,
    objective: RowsObjective,
    scores: Scores,
    by: str | None,
    license: str | None,
    symbols: bool,
) -> ModelCardData:
    results = [
        EvalResult(
            task_type=objective.pipeline,
            dataset_type=f"{name}-test",
            dataset_name=f"test data with {by} {group}" if group != ALL else "test data",
            # Part of a result's identity: without it the metadata would merge all groups into one.
            dataset_config=f"{by}-{group}" if group != ALL else ALL,
            metric_type=metric,
            metric_value=round(value, 4),
        )
        for group, metrics in zip(
            map(printable, scores.metrics), scores.metrics.values(), strict=True
        )
        for metric, value in metrics.items()
    ]
    return ModelCardData(
        license=license,
        library_name="transformers",
        pipeline_tag=objective.pipeline,
        tags=["hf_alpha", *["alpha-equivalence"] * symbols],
        model_name=name,
        eval_results=results,
    )


__all__ = ["write_score_card"]
