"""Spans of a text that answer a question, as in SQuAD 2.0: there may be no answer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset, List, Value
from transformers import DataCollatorWithPadding, PreTrainedConfig

from .base import IDS, Batch, Finder, Predictions, Record, Row, RowsObjective
from .metrics import OF_ANSWERS, best_answer
from .names import cut_out, encoded
from .objective import setting
from .rows import DataSource, check_cell

COLUMNS = ("id", "question", "context", "answers")
ENDS = ("start_positions", "end_positions")
FAR = -1e9


@dataclass
class Spans(RowsObjective):
    """Columns `id`, `question`, `context` and `answers` (`text` and `answer_start`, may be empty).

    A context that is too long is read in windows; the first token stands for no answer. With
    symbols, the names of a row are those of question and context, in all windows.
    """

    name: ClassVar[str] = "span"
    pipeline: ClassVar[str] = "question-answering"
    auto_model: ClassVar[str] = "AutoModelForQuestionAnswering"
    takes_segments: ClassVar[bool] = False

    max_length: int = setting(384, "tokens in a sequence; longer ones are cut", least=1)
    stride: int = setting(128, "span: tokens that two windows share", least=0)
    max_question_length: int = setting(
        64, "span: tokens of a question; longer ones are cut", least=1
    )
    max_answer_length: int = setting(30, "span: tokens of an answer", least=1)
    best: int = setting(20, "span: starts and ends of a window that are tried", least=1)
    null_threshold: float = setting(
        0.0, "span: no answer where its score is ahead of the best span's by more"
    )

    def columns(self, data: DataSource) -> list[str]:
        return list(COLUMNS)

    def has_pairs(self, data: DataSource) -> bool:
        return True

    def check_rows(self, rows: Dataset, data: DataSource) -> None:
        super().check_rows(rows, data)
        misplaced = [row for row, question in enumerate(rows) if not _is_in_context(question)]
        if misplaced:
            row, question = misplaced[0], rows[misplaced[0]]
            raise ValueError(
                f"row {row}: the answers {question['answers']['text']!r} of question "
                f"{question['id']!r} do not stand at {question['answers']['answer_start']} in its "
                f"context; so it is in {len(misplaced):,} of {len(rows):,} rows"
            )

    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        for name in ("question", "context"):
            check_cell(isinstance(row[name], str), place, name, row[name], "a text")
        wanted = "a mapping with 'text' and 'answer_start', two lists of one length"
        check_cell(_are_answers(row["answers"]), place, "answers", row["answers"], wanted)
        return [row["question"].strip(), row["context"]]

    def texts_from(self, texts: Iterable[list[str]]) -> Iterator[str]:
        """Yield contexts, each once if its questions follow each other, and questions."""
        before = None
        for question, context in texts:
            if (current := (context, getattr(context, "spans", ()))) != before:
                yield context
            yield question
            before = current

    def key(self, texts: list[str], finder: Finder) -> str:
        return super().key(texts[1:], finder)  # questions of one text stay together

    def kinds(self, tokenizer: Any, training: bool) -> dict[str, Any]:
        """Return the columns of windows.

        Unless they are for training, `row` says of which row each one is, and `offsets` has the
        characters of each token, [-1, -1] outside of the context.
        """
        kinds = {**super().kinds(tokenizer, training), **dict.fromkeys(ENDS, Value("int64"))}
        return kinds if training else {**kinds, "offsets": List(IDS), "row": Value("int64")}

    def encode(self, batch: Batch, label: Callable[[Row], Any]) -> Mapping[str, list[Any]]:
        """Return the windows of all rows."""
        if batch.tokenizer.padding_side != "right":
            raise ValueError("spans need a tokenizer that pads on the right")
        encoding = self._windows(batch)
        numbers = encoding["overflow_to_sample_mapping"]
        offsets = [
            # A token without characters, as `<join>` is, is no place for an answer.
            [
                list(span) if part == 1 and span[0] < span[1] else [-1, -1]
                for span, part in zip(spans, encoding.sequence_ids(window), strict=True)
            ]
            for window, spans in enumerate(encoding["offset_mapping"])
        ]
        places = [
            _place(batch.rows[number]["answers"], spans)
            for number, spans in zip(numbers, offsets, strict=True)
        ]
        ends = dict(zip(ENDS, map(list, zip(*places, strict=True)), strict=True))
        rows = [batch.places[number] for number in numbers]
        return {**encoding, **ends, "offsets": offsets, "row": rows}

    def _windows(self, batch: Batch) -> Any:
        """Return the encoded windows of rows."""
        questions, contexts = map(list, zip(*batch.texts, strict=True))
        questions, longest = self._shortened(questions, batch)
        room = self.max_length - longest - batch.tokenizer.num_special_tokens_to_add(pair=True)
        if room <= self.stride:
            raise ValueError(
                f"a question of {longest} tokens leaves no room: windows of {self.max_length} "
                f"tokens have {max(room, 0)} for the context, and share {self.stride} (stride); "
                "raise max_length, or lower stride or max_question_length"
            )
        return encoded(
            batch.tokenizer, questions, contexts, place=batch.name, truncation="only_second",
            max_length=self.max_length, stride=self.stride, return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )  # fmt: skip

    def _shortened(self, questions: list[str], batch: Batch) -> tuple[list[str], int]:
        """Return questions, long ones cut, and how many tokens the longest has."""
        options: dict[str, Any] = {"add_special_tokens": False, "return_offsets_mapping": True}
        encoding = encoded(batch.tokenizer, questions, place=batch.name, **options)
        limit = self.max_question_length
        short = [
            text if len(spans) <= limit else cut_out(text, 0, spans[limit - 1][1])
            for text, spans in zip(questions, encoding["offset_mapping"], strict=True)
        ]
        recoded = encoded(batch.tokenizer, short, place=batch.name, **options)
        return short, max(map(len, recoded["input_ids"]))

    def padding(self, tokenizer: Any) -> Any:
        """Return a collator to one length: the scores of all batches can then be put together."""
        return DataCollatorWithPadding(tokenizer, "max_length", self.max_length)

    def reduce(self, outputs: Any, labels: Any) -> Any:
        return outputs[:2]

    def records(self, made: Predictions) -> list[Record]:
        starts, ends = (np.asarray(scores) for scores in made.outputs[:2])
        best: dict[int, tuple[float, tuple[int, int]]] = {}
        nothing: dict[int, float] = {}
        for number, window in enumerate(made.features):
            row, null = window["row"], float(starts[number][0] + ends[number][0])
            nothing[row] = min(nothing.get(row, null), null)
            scored = self._best(starts[number], ends[number], window["offsets"])
            if row not in best or scored[0] > best[row][0]:
                best[row] = scored
        records = []
        for row, question in enumerate(made.rows):
            score, (start, stop) = best[row]
            null = nothing[row] - score
            answer = "" if null > self.null_threshold else question["context"][start:stop]
            targets = list(question["answers"]["text"])
            records.append(
                {"id": question["id"], "prediction": answer, "target": targets, "null_score": null}
            )
        return records

    def _best(
        self, starts: np.ndarray, ends: np.ndarray, offsets: Sequence[Sequence[int]]
    ) -> tuple[float, tuple[int, int]]:
        """Return the score of a window's best span and its (start, stop) in characters."""
        length = len(offsets)
        is_context = np.array([start >= 0 for start, _ in offsets])
        start_scores = np.where(is_context, starts[:length], FAR)
        end_scores = np.where(is_context, ends[:length], FAR)
        firsts, lasts = (
            np.argsort(-scores, kind="stable")[: self.best] for scores in (start_scores, end_scores)
        )
        score, span = FAR, (0, 0)
        for first, last in product(firsts, lasts):
            if first <= last < first + self.max_answer_length:
                span_score = float(start_scores[first] + end_scores[last])
                if span_score > score:
                    score, span = span_score, (offsets[first][0], offsets[last][1])
        return score, span

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        """Return the metrics of all questions, and of those with and without an answer."""
        scores = {}
        for name, metric in OF_ANSWERS.items():
            values = [best_answer(metric, each["prediction"], each["target"]) for each in records]
            scores[name] = float(np.mean(values))
            for kind, has in (("answerable", True), ("unanswerable", False)):
                some = [v for v, r in zip(values, records, strict=True) if bool(r["target"]) == has]
                if 0 < len(some) < len(values):
                    scores[f"{name}_{kind}"] = float(np.mean(some))
        return scores


def _are_answers(answers: Any) -> bool:
    """Whether a cell holds texts, each with the place where it starts."""
    if not isinstance(answers, Mapping) or not {"text", "answer_start"} <= answers.keys():
        return False
    texts, starts = answers["text"], answers["answer_start"]
    return (
        isinstance(texts, list)
        and isinstance(starts, list)
        and len(texts) == len(starts)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(start, int) for start in starts)
    )


def _is_in_context(row: Mapping[str, Any]) -> bool:
    """Whether all answers stand where they are said to."""
    answers = row["answers"]
    return all(
        start >= 0 and text and row["context"].startswith(text, start)
        for text, start in zip(answers["text"], answers["answer_start"], strict=True)
    )


def _place(answers: Mapping[str, Any], offsets: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return first and last token of the first answer; (0, 0) if the window cuts it off."""
    if not answers["text"]:
        return 0, 0
    start = answers["answer_start"][0]
    stop = start + len(answers["text"][0])
    places = [place for place, (one, two) in enumerate(offsets) if one < stop and two > start >= 0]
    places = [place for place in places if offsets[place][0] >= 0]
    if not places or offsets[places[0]][0] > start or offsets[places[-1]][1] < stop:
        return 0, 0
    return places[0], places[-1]
