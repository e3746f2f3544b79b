"""Model cards of models that do not answer with text: what they tell, and how well."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from huggingface_hub import EvalResult, ModelCard

from hf_alpha.card import save_card, spread, symbol_counts
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
    config = model.config
    texts = list(Texts(objective, rows, settings, finder_of(tokenizer)).by_row())
    is_classifier = objective.auto_name == CLASSIFIER and config.problem_type != "regression"
    labels = [config.id2label[index] for index in sorted(config.id2label)] if is_classifier else []
    metric, percents = next(iter(scores.metrics[ALL])), {}
    if metric in RATES:
        percents = {g: 100 * of[metric] for g, of in scores.metrics.items() if g != ALL}
    if percents:
        _picture(percents, metric, str(by)).savefig(folder / PICTURE_FILE, dpi=150)
    rules = getattr(finder_of(tokenizer), "rules", {}).values()
    marked = any(rule.column or rule.function for rule in rules)
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
        results=_results(folder.resolve().name, objective, scores, by),
        pipeline=objective.pipeline,
        config=config,
        auto=objective.auto_name,
        own_code=hasattr(config, "auto_map"),
        facts=facts,
        layers=getattr(config, "decoder_config", config).num_hidden_layers,
        objective=objective.name,
        labels=[within_line(f"{label}") for label in labels],
        marked=marked,
        texts=", ".join(_as_code(text, marked) for text in shortest),
        command=command,
        date=date,
        table=fenced(table({folder.resolve().name: scores}, by)),
        metric=metric,
        by=by,
        picture=PICTURE_FILE if percents else None,
        extremes=_extremes(percents),
        examples=_examples(texts, scores, by) if is_classifier else {},
    )


def _as_code(text: str, marked: bool) -> str:
    """Return a text as code, with the places of names that rules alone do not find."""
    if not marked:
        return repr(str(text))
    return f"MarkedText({str(text)!r}, {[tuple(span) for span in getattr(text, 'spans', ())]})"


def _extremes(percents: Mapping[str, float]) -> list[str]:
    """Return the groups in which the model is best and worst; none if that is one group."""
    if len({*percents.values()}) < 2:
        return []
    groups = max(percents, key=percents.__getitem__), min(percents, key=percents.__getitem__)
    return [f"{within_line(group)} ({percents[group]:.1f} %)" for group in groups]


def _examples(texts: Sequence[Sequence[str]], scores: Scores, by: str | None) -> dict[str, str]:
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


def _picture(percents: Mapping[str, float], metric: str, by: str) -> "Figure":
    """Draw a metric by group."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axis = figure.subplots()
    groups = [readable(printable(group)) for group in percents]
    axis.bar(groups, [*percents.values()], color=COLORS[0], width=0.7)
    axis.set(xlabel=by, ylabel=f"{metric}, %", ylim=(0, 100))
    axis.grid(axis="y", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.get_xticklabels()  # makes them
    make_legible(figure)
    return figure


def _results(
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


__all__ = ["write_score_card"]
