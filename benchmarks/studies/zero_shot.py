"""Classes without training: a masked language model fills the gap of a prompt.

Templates and label words are those that Gao et al. (2021, arXiv 2012.15723, Table 1) wrote by hand
for GLUE; FOLNet's Appendix C uses them. `{0}` and `{1}` are the texts, `{mask}` is the gap.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from transformers import AutoModelForMaskedLM, PreTrainedModel

from hf_alpha.cli import run_command
from hf_alpha.cli.common import say
from hf_alpha.cli.evaluate import row_names
from hf_alpha.cli.options import Device, may_trust
from hf_alpha.io.folders import lock_folder
from hf_alpha.loading import load_for
from hf_alpha.objectives.base import Record, num_positions
from hf_alpha.objectives.evaluate import ALL, Scores, table
from hf_alpha.objectives.metrics import OF_CLASSES, OF_NUMBERS, Metric
from hf_alpha.objectives.rows import Where, first, read_rows, text_in
from hf_alpha.processes import choose_device

from .formats import FORMATS

PARTS = re.compile(r"(\{0\}|\{1\}|\{mask\})")


@dataclass(frozen=True)
class Prompt:
    """How a task is asked.

    Attributes:
        template: with `{0}`, `{1}` for a second text, and `{mask}`.
        words: label -> the word that stands for it. GLUE's numbers of classes follow this order.
        metric: of GLUE for the task.
        bounds: of a task whose answers are numbers; its two words stand for them.
        columns: of GLUE's data: the texts, then the label.
    """

    template: str
    words: Mapping[str, str]
    metric: str = "accuracy"
    bounds: tuple[float, float] | None = None
    columns: tuple[str, ...] = ("sentence1", "sentence2", "label")

    def __post_init__(self) -> None:
        placeholders = PARTS.findall(self.template)
        if placeholders.count("{mask}") != 1 or "{0}" not in placeholders:
            raise ValueError(f"the template {self.template!r} needs {{0}} and one {{mask}}")
        if len(self.words) < 2 or (self.bounds and len(self.words) != 2):
            raise ValueError(f"label words are {dict(self.words)!r}: give one for each class")

    @property
    def paired(self) -> bool:
        """Whether there are two texts."""
        return "{1}" in self.template


_PAIR = "{0}? {mask}, {1}"
_ENTAILED = {"entailment": "Yes", "not_entailment": "No"}
_SAME = {"not_equivalent": "No", "equivalent": "Yes"}
_MNLI = {"entailment": "Yes", "neutral": "Maybe", "contradiction": "No"}

PROMPTS = {
    "sst2": Prompt(
        "{0} It was {mask}.",
        {"negative": "terrible", "positive": "great"},
        columns=("sentence", "label"),
    ),
    "cola": Prompt(
        "{0} This is {mask}.",
        {"unacceptable": "incorrect", "acceptable": "correct"},
        "matthews",
        columns=("sentence", "label"),
    ),
    "mnli": Prompt(_PAIR, _MNLI, columns=("premise", "hypothesis", "label")),
    "qnli": Prompt(_PAIR, _ENTAILED, columns=("question", "sentence", "label")),
    "rte": Prompt(_PAIR, _ENTAILED),
    "mrpc": Prompt("{0} {mask}, {1}", _SAME, "f1"),
    "qqp": Prompt(
        "{0} {mask}, {1}",
        {"not_duplicate": "No", "duplicate": "Yes"},
        "f1",
        columns=("question1", "question2", "label"),
    ),
    "stsb": Prompt("{0} {mask}, {1}", {"0": "No", "5": "Yes"}, "pearson", (0.0, 5.0)),
}
"""GLUE's tasks."""


def label_words(text: str) -> dict[str, str]:
    """Return label -> word, from a text such as entailment=Yes,not_entailment=No.

    Raises:
        ValueError: a part of it is no label with a word, or a label is given twice.
    """
    words: dict[str, str] = {}
    for part in text.split(","):
        label, _, word = (each.strip() for each in part.partition("="))
        if not (label and word) or label in words:
            fault = "is given twice" if label in words else "is no label with a word"
            raise ValueError(
                f"words are {text!r}: {part.strip()!r} {fault}; write label=word,label=word: "
                "entailment=Yes,not_entailment=No"
            )
        words[label] = word
    return words


def label_ids(prompt: Prompt, tokenizer: Any) -> list[int]:
    """The token of each label's word, as it stands behind a space.

    Raises:
        ValueError: a word has several tokens, is unknown, or stands for two labels.
    """
    word_ids: list[int] = []
    for word in prompt.words.values():
        for text in (f" {word}", word):
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            if len(ids) == 1:
                break
        if len(ids) != 1 or ids[0] in (tokenizer.unk_token_id, *word_ids):
            tokens = " ".join(tokenizer.convert_ids_to_tokens(ids))
            raise ValueError(
                f"the label word {word!r} is no token of its own, but {tokens or 'nothing'}: name "
                "words that are"
            )
        word_ids.append(ids[0])
    return word_ids


def fill(
    prompt: Prompt, texts: Sequence[str], tokenizer: Any, max_length: int
) -> tuple[list[int], int]:
    """The ids of a prompt with texts, and the place of its gap: texts may have masks of their own.

    Where it is too long, the longer text loses its end.

    Raises:
        ValueError: the tokenizer has no mask, or there is no room for texts.
    """
    if tokenizer.mask_token_id is None:
        raise ValueError(f"{type(tokenizer).__name__} has no mask token")
    pieces: list[list[int]] = []
    owners: dict[int, int] = {}  # piece -> text
    gap = 0  # piece
    for part in filter(None, PARTS.split(prompt.template)):
        if part == "{mask}":
            gap = len(pieces)
            pieces.append([tokenizer.mask_token_id])
            continue
        text = part
        if part in ("{0}", "{1}"):
            number = int(part[1])
            owners[len(pieces)] = number
            text = _worded(prompt, texts[number], number)
        glued = text if not pieces else f" {text.strip()}" if part in ("{0}", "{1}") else text
        pieces.append(tokenizer(glued, add_special_tokens=False)["input_ids"])
    room = max_length - tokenizer.num_special_tokens_to_add(pair=False)
    while (surplus := sum(map(len, pieces)) - room) > 0:
        longest = max(owners, key=lambda place: len(pieces[place]))
        if len(pieces[longest]) <= 1:
            raise ValueError(f"max_length {max_length} leaves no room for texts")
        other_lengths = [len(pieces[place]) for place in owners if place != longest]
        cut = min(surplus, max(len(pieces[longest]) - max([1, *other_lengths]), 1))
        del pieces[longest][-cut:]
    before, behind = _frame(tokenizer)
    ids = [*before, *(i for piece in pieces for i in piece), *behind]
    return ids, len(before) + sum(map(len, pieces[:gap]))


def _worded(prompt: Prompt, text: str, number: int) -> str:
    """A text without its last sign where the template writes another; the second begins small."""
    text = text.strip()
    if number == 1:
        return text[:1].lower() + text[1:]
    return text.rstrip(".?! ") or text if "{0}?" in prompt.template else text


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer writes before and behind one text."""
    around = tokenizer("a", return_special_tokens_mask=True)
    special = around["special_tokens_mask"]
    first = special.index(0) if 0 in special else 1
    last = len(special) - special[::-1].index(0) if 0 in special else 1
    frame_ids: list[int] = around["input_ids"]
    return frame_ids[:first], frame_ids[last:]


@torch.no_grad()
def predict(
    model: PreTrainedModel,
    tokenizer: Any,
    prompt: Prompt,
    rows: Sequence[Sequence[str]],
    max_length: int = 128,
    batch_size: int = 32,
) -> list[list[float]]:
    """Return how likely each label is, for each row: the masked model's, over label words only.

    Args:
        model: of `AutoModelForMaskedLM`.
        tokenizer: that of the model.
        prompt: how the task is asked.
        rows: one or two texts each.
        max_length: tokens in a prompt.
        batch_size: rows in a batch.

    Raises:
        ValueError: a label word is no token, or a prompt has no room.
    """
    words = label_ids(prompt, tokenizer)
    model.eval()
    probabilities: list[list[float]] = []
    remaining_rows = iter(rows)
    while some := list(islice(remaining_rows, batch_size)):
        filled = [fill(prompt, texts, tokenizer, max_length) for texts in some]
        ids = [{"input_ids": each} for each, _ in filled]
        batch = tokenizer.pad(ids, return_tensors="pt").to(model.device)
        logits = model(**batch).logits.float()
        pads = tokenizer.padding_side == "left"
        gaps = [gap + pads * (logits.shape[1] - len(each)) for each, gap in filled]
        chosen = logits[torch.arange(len(some)), gaps][:, words]
        probabilities += chosen.softmax(-1).tolist()
    return probabilities


def records_of(
    prompt: Prompt, likely: Sequence[Sequence[float]], targets: Sequence[Any]
) -> list[Record]:
    """Return what is predicted and what is right, as label or number.

    Raises:
        ValueError: a target is neither a label, nor the number of one, nor in the bounds.
    """
    names = list(prompt.words)
    records: list[Record] = []
    for row, (each, target) in enumerate(zip(likely, targets, strict=True)):
        right = _right(prompt, target, row)
        if prompt.bounds is not None:
            low, high = prompt.bounds
            records.append(Record(prediction=low + (high - low) * each[1], target=right))
        else:
            best = max(range(len(each)), key=each.__getitem__)
            records.append(Record(prediction=names[best], target=right))
    return records


def _right(prompt: Prompt, target: Any, row: int) -> str | float:
    """What is right of a row: a label, or a number.

    Raises:
        ValueError: the target is neither.
    """
    if prompt.bounds is None:
        names = list(prompt.words)
        label = _label(target, names)
        if label is None:
            raise ValueError(f"row {row}: {target!r} is no label: {', '.join(names)}")
        return label
    low, high = prompt.bounds
    with suppress(TypeError, ValueError):
        if low <= (number := float(target)) <= high:
            return number
    raise ValueError(f"row {row}: {target!r} is no number between {low:g} and {high:g}")


def _label(target: Any, names: Sequence[str]) -> str | None:
    """A label, given by its name or its number."""
    if str(target) in names:
        return str(target)
    number = int(target) if str(target).isdecimal() else -1
    return names[number] if 0 <= number < len(names) else None


def score(prompt: Prompt, records: Sequence[Record]) -> dict[str, float]:
    """Return the metric of the task, and for classes the accuracy."""
    metrics: dict[str, Metric] = {**OF_CLASSES, **OF_NUMBERS}
    names = list(prompt.words)
    sides = [
        [record[side] if prompt.bounds else names.index(record[side]) for record in records]
        for side in ("prediction", "target")
    ]
    metric_names = dict.fromkeys([prompt.metric, *([] if prompt.bounds else ["accuracy"])])
    return {name: metrics[name](*sides) for name in metric_names}


def read_task(
    task: str,
    data: str | None = None,
    *,
    split: str | None = None,
    columns: Sequence[str] | None = None,
    data_format: str | None = None,
    template: str | None = None,
    words: Mapping[str, str] | None = None,
    most: int | None = None,
) -> tuple[Prompt, list[tuple[Any, ...]]]:
    """Return how a task is asked, and its rows: the texts, then the label.

    Args:
        task: one of `PROMPTS`.
        data: a file; GLUE's validation data of the Hub by default.
        split: of the data, if it has several.
        columns: of the texts and the label; by default GLUE's, or those of the format.
        data_format: cola, mrpc or sst2 of `FORMATS`, or another that a recipe may name.
        template: in place of the task's.
        words: label -> word, in place of the task's.
        most: rows that are taken, from the start.

    Raises:
        FileNotFoundError: there is no such data.
        ValueError: there is no such task, column or format, or template or words cannot be used.
    """
    if task not in PROMPTS:
        raise ValueError(f"no prompt for the task {task!r}: known are {', '.join(PROMPTS)}")
    prompt = PROMPTS[task]
    if words and set(words) == set(prompt.words):  # labels that are numbers count in this order
        words = {label: words[label] for label in prompt.words}
    if template or words:
        prompt = replace(prompt, template=template or prompt.template, words=words or prompt.words)
    fields = ("source", "pair", "target") if prompt.paired else ("source", "target")
    chosen = list(columns or (fields if data_format else prompt.columns))
    if len(chosen) != 2 + prompt.paired:
        raise ValueError(
            f"columns are {','.join(chosen)}: name {1 + prompt.paired} texts and label"
        )
    if data is None:
        split = split or ("validation_matched" if task == "mnli" else "validation")
    place: Where = data if data is not None else {"path": "nyu-mll/glue", "config": task}
    source = GlueSource(FORMATS.get(data_format or "", data_format))
    rows = first(read_rows(source, place, chosen, "validation", split), most)
    filled_texts = [
        [text_in(value, name, row) for row, value in enumerate(rows[name])] for name in chosen[:-1]
    ]
    targets = list(rows[chosen[-1]])
    for row, target in enumerate(targets):
        _right(prompt, target, row)  # before a model answers
    return prompt, list(zip(*filled_texts, targets, strict=True))


def solve_task(
    place: str,
    prompt: Prompt,
    rows: Sequence[tuple[Any, ...]],
    max_length: int = 128,
    batch_size: int = 32,
    device: Any = "cpu",
) -> Scores:
    """Load a masked language model, let it solve rows by a prompt, and score it.

    Args:
        place: its folder or Hub name.
        prompt: how the task is asked; `rows` are those of `read_task`.
        max_length: tokens in a prompt; at most as many as the model has positions.
        batch_size: rows in a batch.
        device: where the model runs.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: it is no masked language model, or see `predict`.
    """
    model, tokenizer, new = load_for(place, AutoModelForMaskedLM, {})
    if new:
        raise ValueError(
            f"{place} was not trained to find masked tokens: {new[0]!r} is missing; pretrain it "
            "with the objective 'masked'"
        )
    max_length = min(max_length, num_positions(model) or max_length)
    texts, targets = [row[:-1] for row in rows], [row[-1] for row in rows]
    likely = predict(model.to(device), tokenizer, prompt, texts, max_length, batch_size)
    records = records_of(prompt, likely, targets)
    return Scores({ALL: score(prompt, records)}, {ALL: len(records)}, records)


@dataclass
class GlueSource:
    """What `rows.read_rows` is told of a file of GLUE."""

    format: str | None = None
    where: dict[str, Any] = field(default_factory=dict)
    source: str = "source"
    encoding: str | None = None


@may_trust("model")
def zero_shot(
    model: Annotated[
        str, typer.Argument(help="Folder or Hub name: any masked language model of Transformers.")
    ],
    task: Annotated[
        str, typer.Option(help="Of GLUE: sst2, cola, mnli, qnli, rte, mrpc, qqp or stsb.")
    ],
    data: Annotated[
        str | None, typer.Option(help="File to use; by default GLUE's validation data of the Hub.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Its split, if it has several.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Of texts and label, by default GLUE's: premise,hypothesis,label"),
    ] = None,
    data_format: Annotated[
        str | None, typer.Option("--format", help="How the file is written: cola, mrpc or sst2.")
    ] = None,
    template: Annotated[str | None, typer.Option(help="Another prompt: '{0}? {mask}, {1}'")] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="Other words for labels: entailment=Yes,not_entailment=No. Labels of your own are "
            "numbered in this order, where the data has numbers."
        ),
    ] = None,
    max_length: Annotated[
        int,
        typer.Option(min=1, help="Tokens in a prompt, or fewer if the model has fewer positions."),
    ] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a batch.")] = 32,
    samples: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for metrics.json and predictions.jsonl.")
    ] = None,
) -> None:
    """Let a masked language model solve a task of GLUE by a prompt, without any training.

    Prompts and metrics are those of Gao et al. (2021).
    """
    prompt, rows = read_task(
        task,
        data,
        split=split,
        columns=columns.split(",") if columns else None,
        data_format=data_format,
        template=template,
        words=label_words(words) if words else None,
        most=samples,
    )
    with nullcontext() if out is None else lock_folder(out):
        scores = solve_task(model, prompt, rows, max_length, batch_size, choose_device(device))
        if out is not None:
            scores.save(out)
    say(table({row_names([model])[0]: scores}))


def main() -> None:
    """Entry point."""
    run_command(zero_shot, "python -m benchmarks.studies.zero_shot")


__all__ = [
    "PROMPTS",
    "Prompt",
    "fill",
    "label_ids",
    "label_words",
    "main",
    "predict",
    "read_task",
    "records_of",
    "score",
    "solve_task",
    "zero_shot",
]

if __name__ == "__main__":
    main()
