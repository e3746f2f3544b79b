"""Model cards: what a model is, how it was made and what it reaches, from files that say so."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.evaluation.curves import COLORS
from hf_alpha.evaluation.heatmap import Heatmap, Region, draw
from hf_alpha.evaluation.report import EDIT_DISTANCE, OUTSIDE, Rates, Record, Report, table
from hf_alpha.generation import NEW_NAME
from hf_alpha.loading import auto_class, load_checkpoint
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.plain_text import fenced, printable, within_line
from hf_alpha.recipe import RECIPE_FILE, Recipe, check_shareable, recipe_beside
from hf_alpha.release import LOG_FILE, read_log
from hf_alpha.tasks import DrawnTask, Task, get_task, name_of
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE_FILE = Path(__file__).with_name("model_card.md.jinja")
CODE = """from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = {auto}.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer([{example}], return_tensors="pt", padding=True)
tokenizer.batch_decode(model.generate(**batch, num_beams={num_beams}){answer}, names=batch.names{new_names})"""  # noqa: E501
BEHIND_PROMPT = '[:, batch["input_ids"].shape[1] :]'
"""What a decoder has written behind its input, in the code of a card."""
NEW_NAMES = f', new_names="{NEW_NAME}"'
"""How names are spelled that a model has made up, likewise."""
RENAMINGS = {
    "none": "",
    "random": " Each sample was renamed at random in training (alpha-renaming).",
    "random_per_batch": " Samples were renamed at random in training, anew in each step.",
    "first_occurrence": (
        " Inside the model, symbols are renamed by order of first occurrence: renaming a problem "
        "renames its answer and changes nothing else."
    ),
}
HEATMAP_FILE, CURVE_FILE = "heatmap.png", "training_log.png"
NOTES_FILE = "NOTES.md"
METRICS = {
    "correct": ("accuracy", "correct answers"),
    "edit_distance": ("edit_distance", "mean edit distance"),
}
NEW = (
    "Problems that are drawn are not in training data made by the same version of hf_alpha, up to "
    "renaming and the order of operands."
)


def write_card(
    folder: Path,
    report: Report,
    baseline: Report,
    command: str,
    date: str,
    license: str | None = None,
    region: Region | None = None,
) -> ModelCard:
    """Write README.md beside a model, and its pictures: a heatmap, and the course of training.

    Args:
        folder: a checkpoint; its `recipe.yaml`, if there is one, is quoted, and its
            `training_log.json` is drawn.
        report: of this model.
        baseline: of the random assignment on the same problems.
        command: that made the report.
        date: of the report.
        license: of the model, as the Hub names it; by default Apache 2.0, or for a converted model
            none, as that of its backbone holds.
        region: symbols and sizes of the training data, where the recipe does not say.
    """
    model, tokenizer = load_checkpoint(folder)
    config, task = model.config, get_task(report.settings["task"])
    recipe = recipe_beside(str(folder))
    region = _trained(recipe) or region
    draw(Heatmap.of(report, task.measure, region), folder / HEATMAP_FILE)
    code = CODE.format(
        auto=auto_class(config).__name__,
        answer="" if config.is_encoder_decoder else BEHIND_PROMPT,
        new_names=NEW_NAMES if getattr(config, "new_symbols", False) else "",
        example=_example(task, report),
        num_beams=task.num_beams,
    )
    return save_card(
        folder,
        _metadata(folder.name, report, config, license),
        name=folder.name,
        description=describe_encoding(config),
        facts=_facts(model, tokenizer),
        code=fenced(code, "python"),
        solve="hf-alpha solve" + f" --task {name_of(task)}" * (task.name != DEFAULT_TASK),
        solves="checks\nevery answer" if task.has_check else "answers\nyour texts",
        remarks=" ".join(
            [NEW] * (isinstance(task, DrawnTask) and task.held_out) + [task.random_note]
        ),
        command=command,
        date=date,
        table=fenced(table([report, baseline])),
        measure=METRICS[task.measure][1],
        picture=HEATMAP_FILE,
        examples=_examples(task, report),
        limits="\n\n".join(filter(None, [_limits(task, report, baseline, region), notes(folder)])),
    )


def save_card(folder: Path, metadata: ModelCardData, **fields: Any) -> ModelCard:
    """Fill in the template of cards and write it as README.md, with how the model was trained.

    Args:
        folder: the checkpoint.
        metadata: of the card.
        fields: variables of the template, for Markdown: the texts of others in them are cleaned.
    """
    fields |= describe_training(folder)
    card = ModelCard.from_template(metadata, template_path=str(TEMPLATE_FILE), **fields)
    card.save(folder / "README.md")
    return card


def _facts(model: PreTrainedModel, tokenizer: AnyTokenizer) -> list[tuple[str, str]]:
    """Return what a model is, for the table at the top of a card."""
    counts = ", ".join(f"{count} {name}" for name, count in tokenizer.symbol_classes.items())
    config = model.config
    return [
        ("symbol encoding", f"`{config.symbol_encoding}`"),
        ("parameters", f"{model.num_parameters():,}"),
        ("size", config.size_text),
        ("vocabulary", f"{config.num_base_tokens} base tokens, symbols: {within_line(counts)}"),
    ]


def _trained(recipe: Recipe | None) -> Region | None:
    """Return symbols and sizes of the training data; None where the recipe does not say."""
    data = recipe.data.generate if recipe else {}
    if not {"num_symbols", "sizes"} <= data.keys():
        return None
    num_symbols = max(data["num_symbols"], data.get("up_to_symbols", 0))
    return (0, num_symbols), (1, data["sizes"][1])


def _limits(task: Task, report: Report, baseline: Report, region: Region | None) -> str:
    """Return what the numbers say about what the model cannot do, in words."""
    sentences = []
    if region is not None:
        symbols, tokens = (limit for _, limit in region)
        sentences.append(
            f"It was trained on {task.problems} with at most {_symbols(symbols)} and {tokens} "
            f"tokens.{_inside_and_outside(report, symbols, tokens, task.measure)}"
        )
    groups = {k: r for k, r in report.by_num_symbols.items() if not r.is_outside}
    floor = baseline.by_num_symbols
    low = [k for k, rates in groups.items() if not _is_better(rates, floor[k], task.measure)]
    if low:
        sentences.append(
            f"With {_list(low)} symbol{'s' * (low != [1])} it is no better than the "
            f"{task.random_name}."
        )
    else:
        sentences.append(f"It is better than the {task.random_name} with every number tested.")
    if task.decides:
        sentences.append(
            "Whoever only wants an answer should take the solver: `hf-alpha solve` without a model."
        )
    if task.has_check:
        sentences.append("Its answers may be wrong, so check them, as `hf-alpha solve` does.")
    return " ".join(sentences)


def _example(task: Task, report: Report) -> str:
    """Return a problem to try, as code: the task's, or of the user's texts the shortest tested."""
    shortest = min((record.problem for record in report.records), key=len, default="")
    return printable(json.dumps(task.example or shortest, ensure_ascii=False))


def _examples(task: Task, report: Report) -> str:
    """Return the first problems with fewest, middling and most symbols, as solved.

    They are chosen by their place alone, so that they say what an answer looks like, right or not.
    """
    examples: dict[int, str] = {}
    for record in report.records:
        if record.outcome != OUTSIDE:
            answer = record.answers[0] if record.answers else record.reason or "no answer"
            text = f"{record.problem}\n{task.answer_line(record.outcome, answer)}"
            examples.setdefault(record.num_symbols, text)
    if not examples:
        return ""
    numbers = sorted(examples)
    counts = sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]})
    lines = "\n".join(examples[number] for number in counts)
    return (
        f"The first problem tested with {_list(counts)} symbols, as it was answered:\n"
        f"{fenced(lines)}"
    )


def _inside_and_outside(report: Report, symbols: int, tokens: int, measure: str) -> str:
    """Say how often the model is right within what it was trained on, and beyond."""
    if measure == EDIT_DISTANCE:
        return ""
    records_inside: list[Record] = []
    records_outside: list[Record] = []
    for record in report.records:
        if record.outcome != OUTSIDE:
            within = record.num_symbols <= symbols and record.size <= tokens
            (records_inside if within else records_outside).append(record)
    parts = []
    if records_inside:
        rate = 100 * Rates.of(records_inside).rate(measure)
        parts.append(f"of those tested within that, {rate:.1f} % are answered right")
    if records_outside:
        parts.append(
            f"of those with more of either, {100 * Rates.of(records_outside).rate(measure):.1f} %"
        )
    return f" {'; '.join(parts).capitalize()}." if parts else ""


def _is_better(rates: Rates, floor: Rates, measure: str) -> bool:
    if measure == EDIT_DISTANCE:
        return rates.rate(measure) < floor.rate(measure)
    return rates.rate(measure) > floor.rate(measure)


def _symbols(count: int) -> str:
    return f"{count} symbol{'s' * (count != 1)}"


def _list(numbers: Sequence[int]) -> str:
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
    if (folder / LOG_FILE).is_file():
        make_curve(read_log(folder / LOG_FILE)).savefig(folder / CURVE_FILE, dpi=150)
        fields["curve"] = CURVE_FILE
    check_shareable(folder / RECIPE_FILE)
    recipe = (folder / RECIPE_FILE).read_text(encoding="utf-8")
    return {**fields, "training": fenced(recipe.strip(), "yaml")}


def make_curve(log: Sequence[dict[str, Any]]) -> "Figure":
    """Draw losses by training step, of training and of validation.

    Args:
        log: entries of a Trainer's log history.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    kinds = {"training": ("loss", "-", COLORS[0]), "validation": ("eval_loss", "o-", COLORS[1])}
    for label, (key, style, color) in kinds.items():
        points = [(entry["step"], entry[key]) for entry in log if key in entry]
        if points:
            axis.plot(*zip(*points, strict=True), style, color=color, label=label, ms=3, lw=1.2)
    axis.set(xlabel="training step", ylabel="loss", yscale="log")
    axis.grid(axis="y", which="both", color="0.92")
    axis.spines[["top", "right"]].set_visible(False)
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


def _metadata(
    name: str, report: Report, config: PreTrainedConfig, license: str | None
) -> ModelCardData:
    task = get_task(report.settings["task"])
    metric, title = METRICS[task.measure]
    results = [
        EvalResult(
            task_type="other",
            task_name=task.name,
            dataset_type=f"hf_alpha/{task.name}",
            dataset_name=f"{task.problems} with {_symbols(count)}",
            # Part of a result's identity: without it the metadata would merge all rows into one.
            dataset_config=f"{count}-symbols",
            metric_type=metric,
            metric_name=title,
            metric_value=round(rates.rate(task.measure), 4),
        )
        for count, rates in report.by_num_symbols.items()
        if not rates.is_outside
    ]
    if license is None and backbone_type(config) is None:  # a backbone has its own
        license = "apache-2.0"
    logic = ["logic"] if task.grammar is not None else []
    return ModelCardData(
        license=license,
        library_name="transformers",
        tags=["hf_alpha", "alpha-equivalence", *logic, task.name],
        model_name=name,
        eval_results=results,
    )


__all__ = [
    "RENAMINGS",
    "backbone_type",
    "describe_encoding",
    "describe_training",
    "make_curve",
    "notes",
    "save_card",
    "write_card",
]
