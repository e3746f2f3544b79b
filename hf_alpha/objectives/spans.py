"""Spans of a text that answer a question, as in SQuAD 2.0: there may be no answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from datasets import Dataset, Features, List, Value
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.data.files import filling_cache
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.settings import meaning

from . import squad
from .base import Record, RowsObjective, accepted, kinds_of, rows_of
from .names import cut_out, encoded, finder_of, marked
from .objective import Collator
from .rows import DataSource
from .tokenizers import check_pairs, check_room

COLUMNS = ("id", "question", "context", "answers")
INPUTS = ("input_ids", "token_type_ids", "stream_ids")
FAR = -1e9


@dataclass
class Spans(RowsObjective):
    """Columns `id`, `question`, `context` and `answers` (`text` and `answer_start`, may be empty).

    A context that is too long is read in windows; the first token stands for no answer. With
    symbols, the names of a row are those of question and context, in all windows.
    """

    name: ClassVar[str] = "span"
    pipeline: ClassVar[str] = "question-answering"
    takes_segments: ClassVar[bool] = False

    max_length: int = field(
        default=384, metadata=meaning("tokens in a sequence; longer ones are cut", least=1)
    )
    stride: int = field(
        default=128, metadata=meaning("span: tokens that two windows share", least=0)
    )
    max_question_length: int = field(
        default=64, metadata=meaning("span: tokens of a question; longer ones are cut", least=1)
    )
    max_answer_length: int = field(
        default=30, metadata=meaning("span: tokens of an answer", least=1)
    )
    best: int = field(
        default=20, metadata=meaning("span: starts and ends of a window that are tried", least=1)
    )
    null_threshold: float = field(
        default=0.0,
        metadata=meaning("span: no answer where its score is ahead of the best span's by more"),
    )

    @property
    def auto_name(self) -> str:
        return "AutoModelForQuestionAnswering"

    def columns(self, settings: DataSource) -> list[str]:
        return list(COLUMNS)

    def check_rows(self, rows: Dataset, settings: DataSource) -> None:
        bad = []
        for row, question in enumerate(rows):
            for column in ("question", "context"):
                if not isinstance(question[column], str):
                    raise ValueError(
                        f"row {row}: the column {column!r} holds {question[column]!r}: give a text"
                    )
            if not _are_answers(question["answers"]):
                raise ValueError(
                    f"row {row}: the column 'answers' holds {question['answers']!r}: give a "
                    "mapping with 'text' and 'answer_start', two lists of one length"
                )
            if not _is_in_context(question):
                bad.append(row)
        if bad:
            question = rows[bad[0]]
            raise ValueError(
                f"row {bad[0]}: the answers {question['answers']['text']!r} of question "
                f"{question['id']!r} do not stand at {question['answers']['answer_start']} in its "
                f"context; so it is in {len(bad):,} of {len(rows):,} rows"
            )

    def texts_of(
        self, row: Mapping[str, Any], place: int, settings: DataSource, finder: NameFinder | None
    ) -> list[str]:
        return marked([row["question"].strip(), row["context"]], row, place, finder)

    def texts_from(self, texts: Iterable[list[str]]) -> Iterator[str]:
        """Yield contexts, each once if its questions follow each other, and questions."""
        before = None
        for question, context in texts:
            if (current := (context, getattr(context, "spans", ()))) != before:
                yield context
            yield question
            before = current

    def config_settings(self, parts: Sequence[Dataset], settings: DataSource) -> dict[str, Any]:
        return {}

    def key(self, texts: list[str], finder: NameFinder | None) -> str:
        return super().key(texts[1:], finder)  # questions of one text stay together

    @filling_cache()
    def features(
        self,
        rows: Dataset,
        settings: DataSource,
        tokenizer: Any,
        config: PreTrainedConfig,
        *,
        seed: int = 0,
        training: bool = True,
    ) -> Dataset:
        """Return the windows of all rows; `row` says of which row each one is.

        `offsets` has the characters of each token, [-1, -1] outside of the context, unless the
        features are for training.
        """
        check_pairs(tokenizer, config)
        check_room(tokenizer, self.max_length, pair=True)
        if tokenizer.padding_side != "right":
            raise ValueError("spans need a tokenizer that pads on the right")
        finder, columns = finder_of(tokenizer), kinds_of(tokenizer)
        kinds = {name: columns[name] for name in INPUTS if name in columns}
        kinds |= dict.fromkeys(("start_positions", "end_positions"), Value("int64"))
        if not training:
            kinds |= {"offsets": List(List(Value("int64"))), "row": Value("int64")}

        def windows(batch: dict[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
            pairs = zip(rows_of(batch), places, strict=True)
            texts = [self.texts_of(row, place, settings, finder) for row, place in pairs]
            questions, contexts = map(list, zip(*texts, strict=True))
            encoding = self._encoded(questions, contexts, tokenizer, f"rows from {places[0]} on")
            features: dict[str, list[Any]] = {
                name: encoding[name] for name in INPUTS if name in kinds
            }
            parts = encoding.pop("overflow_to_sample_mapping")
            offsets = [
                # A token without characters, as `<join>` is, is no place for an answer.
                [
                    list(span) if part == 1 and span[0] < span[1] else [-1, -1]
                    for span, part in zip(*spans_and_parts, strict=True)
                ]
                for spans_and_parts in zip(
                    encoding["offset_mapping"],
                    map(encoding.sequence_ids, range(len(parts))),
                    strict=True,
                )
            ]
            ends = [
                _place(batch["answers"][part], spans)
                for part, spans in zip(parts, offsets, strict=True)
            ]
            features["start_positions"], features["end_positions"] = map(
                list, zip(*ends, strict=True)
            )
            if not training:
                features |= {"offsets": offsets, "row": [places[part] for part in parts]}
            return features

        return rows.map(
            windows, batched=True, with_indices=True, remove_columns=rows.column_names,
            features=Features(kinds), load_from_cache_file=False, desc="windows",
        )  # fmt: skip

    def _encoded(
        self, questions: list[str], contexts: list[str], tokenizer: Any, place: str
    ) -> Any:
        """Return the encoded windows of rows; `place` says in errors where the rows are."""
        questions, longest = self._shortened(questions, tokenizer, place)
        room = self.max_length - longest - tokenizer.num_special_tokens_to_add(pair=True)
        if room <= self.stride:
            raise ValueError(
                f"a question of {longest} tokens leaves no room: windows of {self.max_length} "
                f"tokens have {max(room, 0)} for the context, and share {self.stride} (stride); "
                "raise max_length, or lower stride or max_question_length"
            )
        return encoded(
            tokenizer,
            questions,
            contexts,
            place=place,
            truncation="only_second",
            max_length=self.max_length,
            stride=self.stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )

    def _shortened(self, questions: list[str], tokenizer: Any, place: str) -> tuple[list[str], int]:
        """Return questions, long ones cut, and how many tokens the longest has."""
        options: dict[str, Any] = {"add_special_tokens": False, "return_offsets_mapping": True}
        encoding = encoded(tokenizer, questions, place=place, **options)
        limit = self.max_question_length
        short = [
            text if len(spans) <= limit else cut_out(text, 0, spans[limit - 1][1])
            for text, spans in zip(questions, encoding["offset_mapping"], strict=True)
        ]
        return short, max(map(len, encoded(tokenizer, short, place=place, **options)["input_ids"]))

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        ends = ("start_positions", "end_positions")

        def collate(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
            inputs = [{name: row[name] for name in INPUTS if name in row} for row in rows]
            # Of one length, so that the scores of all batches can be put together.
            batch = dict(
                tokenizer.pad(
                    inputs, padding="max_length", max_length=self.max_length, return_tensors="pt"
                )
            )
            batch |= {name: torch.tensor([row[name] for row in rows]) for name in ends}
            return accepted(batch, model)

        return collate

    def reduce(self, outputs: Any, labels: Any) -> Any:
        return outputs[:2]

    def records(
        self,
        outputs: Any,
        labels: Any,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        config: PreTrainedConfig,
    ) -> list[Record]:
        starts, ends = (np.asarray(scores) for scores in outputs[:2])
        best: dict[int, tuple[float, tuple[int, int]]] = {}
        nothing: dict[int, float] = {}
        for number, window in enumerate(features):
            row, offsets = window["row"], window["offsets"]
            null = float(starts[number][0] + ends[number][0])
            nothing[row] = min(nothing.get(row, null), null)
            score, span = self._best(starts[number], ends[number], offsets)
            if row not in best or score > best[row][0]:
                best[row] = score, span
        records = []
        for row, question in enumerate(rows):
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
            is_short = first <= last < first + self.max_answer_length
            if is_short and is_context[first] and is_context[last]:
                span_score = float(start_scores[first] + end_scores[last])
                if span_score > score:
                    score, span = span_score, (offsets[first][0], offsets[last][1])
        return score, span

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        measures = {"exact": squad.exact, "f1": squad.f1}
        scores = {}
        for name, measure in measures.items():
            values = [
                squad.best(measure, record["prediction"], record["target"]) for record in records
            ]
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


__all__ = ["Spans"]
