"""A tag for each word of a text: named entities, multiword expressions, parts of speech.

Spans are marked by BIO tags: `B-person` begins one, `I-person` goes on with it, `O` is outside; the
type may be missing. Spans with gaps (Schneider et al., 2014; DiMSUM 2016) have small letters for
the words in a gap: `B o b i I` are the words 1 and 5, and the words 3 and 4.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from transformers import DataCollatorForTokenClassification, PreTrainedConfig

from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.choices import check_unique
from hf_alpha.modeling.spans import MarkedText

from .base import IDS, Batch, Finder, Predictions, Record, Row
from .classes import Labelled
from .objective import setting
from .rows import DataSource

OUTSIDE = "O"

Tagged = tuple[str, tuple[int, ...]]  # its type, and the places of its words


@dataclass
class Tokens(Labelled):
    """`data.source` lists a text's words, `data.target` a tag for each of them.

    The model sees the words joined by spaces. A word's tag is learned and read at its first token;
    a word that is a name is one token. Of a name of several words each word is a name, as each has
    a tag.
    """

    name: ClassVar[str] = "token"
    pipeline: ClassVar[str] = "token-classification"
    auto_model: ClassVar[str] = "AutoModelForTokenClassification"
    label_word: ClassVar[str] = "tag"

    spans: bool = setting(
        True,
        "token: the tags mark spans, as BIO tags do (B-person, I-person, O, and b-, i-, o for "
        "words in a gap); false for other tags, of which there is the accuracy only",
    )
    labels: list[str] = setting(
        [], "token: the tags in order; by default those of the training and validation data, sorted"
    )

    def __post_init__(self) -> None:
        check_unique("labels", self.labels)
        if self.spans and (bad := [tag for tag in self.labels if not _marks_spans(tag)]):
            raise ValueError(f"labels: {bad[0]!r} {_NO_SPAN_TAG}")

    def check_training(self, training: Mapping[str, Any]) -> None:
        """Accept everything: the Trainer's label smoothing leaves ignored tokens out."""

    def columns(self, data: DataSource) -> list[str]:
        return [data.source, data.target]

    def check_rows(self, rows: Dataset, data: DataSource) -> None:
        targets = self.targets(rows, data)
        for row, (words, tags) in enumerate(zip(rows[data.source], targets, strict=True)):
            if fault := _fault(words, tags, self.spans):
                columns = f"{data.source!r} and {data.target!r}"
                raise ValueError(f"row {row}: the columns {columns}: {fault}")

    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        return [" ".join(row[data.source])]

    def texts_of(self, row: Row, place: int, data: DataSource, finder: Finder) -> list[str]:
        (text,) = super().texts_of(row, place, data, finder)
        return [word_by_word(text, row[data.source])]

    def names_in(self, target: Any, declared: Sequence[str]) -> list[Any]:
        """Return the tags of a row by name; None for a number that names no tag."""
        tags = target if isinstance(target, list) else []
        return [dict(enumerate(declared)).get(tag) for tag in tags] if declared else tags

    def kinds(self, tokenizer: Any, training: bool) -> dict[str, Any]:
        return {**super().kinds(tokenizer, training), "words": IDS, "labels": IDS}

    def encode(self, batch: Batch, label: Callable[[Row], Any]) -> Mapping[str, list[Any]]:
        """Return a sequence for each row.

        `words` has the words whose tokens the model sees; the others are cut off, or have no token.
        """
        if not batch.tokenizer.is_fast:
            raise ValueError(f"{type(batch.tokenizer).__name__} cannot say where its tokens stand")
        encoding = batch.encoded(
            truncation=True, max_length=self.max_length, return_offsets_mapping=True
        )
        words = [row[batch.data.source] for row in batch.rows]
        firsts = list(map(first_tokens, words, encoding["offset_mapping"]))
        labels = [[IGNORE] * len(ids) for ids in encoding["input_ids"]]
        for row, first, row_labels in zip(batch.rows, firsts, labels, strict=True):
            tags = label(row)
            for word, column in first.items():
                row_labels[column] = tags[word]
        return {**encoding, "words": list(map(list, firsts)), "labels": labels}

    def summary(self, rows: Dataset, features: Dataset, data: DataSource, finder: Finder) -> str:
        total, labelled = (
            sum(map(len, column)) for column in (rows[data.source], features["words"])
        )
        summary = super().summary(rows, features, data, finder)
        return f"{summary}; {total - labelled:,} of {total:,} words are cut off or have no token"

    def padding(self, tokenizer: Any) -> Any:
        return DataCollatorForTokenClassification(tokenizer, label_pad_token_id=IGNORE)

    def reduce(self, outputs: Any, labels: Any) -> Any:
        return super().reduce(outputs, labels).argmax(-1)

    def records(self, made: Predictions) -> list[Record]:
        predicted, has_label = np.asarray(made.outputs), np.asarray(made.labels) != IGNORE
        records: list[Record] = []
        words, right = made.rows[made.data.source], self.targets(made.rows, made.data)
        for row, visible_words in enumerate(made.features["words"]):
            tags = [OUTSIDE] * len(words[row])  # of words that the model does not see
            for word, index in zip(visible_words, predicted[row][has_label[row]], strict=True):
                tags[word] = str(made.config.id2label[int(index)])
            records.append({"words": words[row], "prediction": tags, "target": right[row]})
        return records

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        pairs = [(record["prediction"], record["target"]) for record in records]
        agreements = [
            one == two
            for predicted, right in pairs
            for one, two in zip(predicted, right, strict=True)
        ]
        exact = span_scores(pairs) if self.spans else {}
        return {**exact, "accuracy": float(np.mean(agreements))}


def spans_of(tags: Sequence[str]) -> set[Tagged]:
    """Return the spans that tags mark, each with its type ("" without one) and its words' places.

    A tag that goes on with a span of another type, or with none, begins a span, as in conlleval.
    Words in a gap have spans of their own.
    """
    places = range(len(tags))
    outer = [place for place in places if tags[place][0].isupper()]
    gaps = [list(some) for inner, some in groupby(places, lambda i: tags[i][0].islower()) if inner]
    return {span for level in (outer, *gaps) for span in _spans_at(tags, level)}


def _spans_at(tags: Sequence[str], places: Iterable[int]) -> Iterator[Tagged]:
    """Yield the spans of words that are all outside of gaps, or all in one."""
    kind, words = "", list[int]()
    for place in places:
        letter, _, its_kind = tags[place].partition("-")
        if words and not (letter in "Ii" and its_kind == kind):
            yield kind, tuple(words)
            words = []
        if letter not in "Oo":
            kind = its_kind
            words.append(place)
    if words:
        yield kind, tuple(words)


def span_scores(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> dict[str, float]:
    """Return f1, precision and recall of spans that are found exactly, with their type.

    Args:
        pairs: predicted and right tags of each text. All spans of all texts count alike; a measure
            without any span to count is 0.
    """
    num_predicted = num_right = num_shared = 0
    for predicted, target in pairs:
        predicted_spans, right_spans = spans_of(predicted), spans_of(target)
        num_predicted += len(predicted_spans)
        num_right += len(right_spans)
        num_shared += len(predicted_spans & right_spans)
    return {
        "f1": 2 * num_shared / max(num_predicted + num_right, 1),
        "precision": num_shared / max(num_predicted, 1),
        "recall": num_shared / max(num_right, 1),
    }


def word_by_word(text: str, words: Sequence[str]) -> str:
    """Return a text whose names are within words: of one of several words, each word is a name.

    Such words belong to no binding.

    Args:
        text: the words, with a space between any two of them.
    """
    if not isinstance(text, MarkedText):
        return text
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    pieces = [
        (max(span.start, start), min(span.stop, start + len(word)), span)
        for start, word in zip(starts, words, strict=False)
        for span in text.spans
    ]
    spans = [
        span if span[:2] == (start, stop) else (start, stop, span.symbol_class)
        for start, stop, span in pieces
        if start < stop
    ]
    return MarkedText(text, spans)


def first_tokens(words: Sequence[str], offsets: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return word -> its first token, of words that have one.

    Args:
        words: of a text in which a space stands between any two of them.
        offsets: [start, stop) of each token in that text; of special tokens (0, 0). A token that
            touches two words is one of the first.
    """
    stops = list(accumulate((len(word) + 1 for word in words), initial=0))
    columns: dict[int, int] = {}
    column = 0
    for place, (start, word) in enumerate(zip(stops, words, strict=False)):
        while column < len(offsets) and offsets[column][1] <= start:
            column += 1
        if column < len(offsets) and offsets[column][0] < start + len(word):
            columns[place] = column
            column += 1
    return columns


_NO_SPAN_TAG = (
    "is no tag of a span, such as B, I-person or O, or in a gap b, i-person or o; if the tags mark "
    "no spans, set spans: false"
)


def _marks_spans(tag: str) -> bool:
    letter, _, kind = tag.partition("-")
    return letter in ("B", "I", "b", "i") or (letter in ("O", "o") and not kind)


def _fault(words: Any, tags: Sequence[Any], spans: bool) -> str | None:
    """Return what is wrong with a row; None if nothing is."""
    if not isinstance(words, list) or not words:
        return f"the words are {words!r}: give a list of words"
    if len(words) != len(tags):
        return f"{len(words)} words, but {len(tags)} tags"
    for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
        if not isinstance(word, str) or not word.strip():
            return f"word {place} is {word!r}: give a text"
        if not isinstance(tag, str) or not tag:
            return f"the tag of word {place}, {word!r}, is {tag!r}: give a text"
        if spans and not _marks_spans(tag):
            return f"the tag of word {place}, {word!r}: {tag!r} {_NO_SPAN_TAG}"
    return None
