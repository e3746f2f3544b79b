"""A tag for each word of a text: named entities, multiword expressions, parts of speech.

Spans are marked by BIO tags: `B-person` begins one, `I-person` goes on with it, `O` is outside; the
type may be missing. Spans with gaps (Schneider et al., 2014; DiMSUM 2016) have small letters for
the words in a gap: `B o b i I` are the words 1 and 5, and the words 3 and 4.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, ClassVar

import numpy as np
import torch
from datasets import ClassLabel, Dataset, Features, List, Value
from transformers import DataCollatorForTokenClassification, PreTrainedConfig, PreTrainedModel

from hf_alpha.data.files import filling_cache
from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.choices import check_unique
from hf_alpha.modeling.names_in_text import MarkedText, NameFinder
from hf_alpha.settings import meaning

from .base import Record, RowsObjective, accepted, kinds_of, rows_of
from .names import encoded, finder_of, marked
from .objective import Collator
from .rows import DataSource
from .tokenizers import check_room

logger = logging.getLogger(__name__)

OUTSIDE = "O"

Span = tuple[str, tuple[int, ...]]  # its type, and the places of its words


@dataclass
class Tokens(RowsObjective):
    """`data.source` lists a text's words, `data.target` a tag for each of them.

    The model sees the words joined by spaces. A word's tag is learned and read at its first token;
    a word that is a name is one token. Of a name of several words each word is a name, as each has
    a tag.
    """

    name: ClassVar[str] = "token"
    pipeline: ClassVar[str] = "token-classification"

    spans: bool = field(
        default=True,
        metadata=meaning(
            "token: the tags mark spans, as BIO tags do (B-person, I-person, O, and b-, i-, o for "
            "words in a gap); false for other tags, of which there is the accuracy only"
        ),
    )
    labels: list[str] = field(
        default_factory=list,
        metadata=meaning(
            "token: the tags in order; by default those of the training and validation data, sorted"
        ),
    )

    def __post_init__(self) -> None:
        check_unique("labels", self.labels)
        if self.spans and (bad := [tag for tag in self.labels if not _marks_spans(tag)]):
            raise ValueError(f"labels: {bad[0]!r} {_NO_SPAN_TAG}")

    @property
    def auto_name(self) -> str:
        return "AutoModelForTokenClassification"

    def check_training(self, training: Mapping[str, Any]) -> None:
        """Accept everything: the Trainer's label smoothing leaves ignored tokens out."""

    def columns(self, settings: DataSource) -> list[str]:
        return [settings.source, settings.target]

    def check_rows(self, rows: Dataset, settings: DataSource) -> None:
        tags = _tags(rows, settings.target)
        for row, (words, row_tags) in enumerate(zip(rows[settings.source], tags, strict=True)):
            if fault := _fault(words, row_tags, self.spans):
                columns = f"{settings.source!r} and {settings.target!r}"
                raise ValueError(f"row {row}: the columns {columns}: {fault}")

    def texts_of(
        self, row: Mapping[str, Any], place: int, settings: DataSource, finder: NameFinder | None
    ) -> list[str]:
        words = row[settings.source]
        return [word_by_word(text, words) for text in marked([" ".join(words)], row, place, finder)]

    def config_settings(self, parts: Sequence[Dataset], settings: DataSource) -> dict[str, Any]:
        data_tags = {tag for rows in parts for tags in _tags(rows, settings.target) for tag in tags}
        names = self.labels or _tag_names(parts[0], settings.target) or sorted(data_tags)
        if len(names) < 2:
            raise ValueError(f"the column {settings.target!r} has one tag only: {names[0]!r}")
        return {
            "id2label": dict(enumerate(names)),
            "label2id": {name: index for index, name in enumerate(names)},
        }

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
        """Return a sequence for each row.

        `words` has the words whose tokens the model sees; the others are cut off, or have no token.
        """
        check_room(tokenizer, self.max_length, pair=False)
        if not tokenizer.is_fast:
            raise ValueError(f"{type(tokenizer).__name__} cannot say where its tokens stand")
        labels = self._label_ids(rows, settings, config, training)
        kinds, finder = kinds_of(tokenizer), finder_of(tokenizer)
        places_and_labels = dict.fromkeys(("words", "labels"), List(Value("int64")))

        def encode(batch: dict[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
            pairs = zip(rows_of(batch), places, strict=True)
            texts = [self.texts_of(row, place, settings, finder) for row, place in pairs]
            encoding = encoded(
                tokenizer,
                [text for (text,) in texts],
                place=f"rows from {places[0]} on",
                truncation=True,
                max_length=self.max_length,
                return_offsets_mapping=True,
            )
            features: dict[str, list[Any]] = {name: encoding[name] for name in kinds}
            firsts = list(map(first_tokens, batch[settings.source], encoding["offset_mapping"]))
            features["words"] = [list(first) for first in firsts]
            features["labels"] = []
            for ids, first, place in zip(encoding["input_ids"], firsts, places, strict=True):
                row_labels = [IGNORE] * len(ids)
                for word, column in first.items():
                    row_labels[column] = labels[place][word]
                features["labels"].append(row_labels)
            return features

        return rows.map(
            encode, batched=True, with_indices=True, remove_columns=rows.column_names,
            features=Features({**kinds, **places_and_labels}), load_from_cache_file=False,
            desc="tokenizing",
        )  # fmt: skip

    def _label_ids(
        self, rows: Dataset, settings: DataSource, config: PreTrainedConfig, training: bool
    ) -> list[list[int]]:
        """Return the number of each word's tag; a tag unknown to the model fails in training."""
        ids = {str(name): index for index, name in config.id2label.items()}
        tags = _tags(rows, settings.target)
        unknown = [(row, tag) for row, some in enumerate(tags) for tag in some if tag not in ids]
        if unknown:
            row, tag = unknown[0]
            fault = (
                f"row {row}: the column {settings.target!r} holds {tag!r}, which is no tag of the "
                f"model: {', '.join(ids)}"
            )
            if training:
                raise ValueError(fault)
            logger.warning(
                "%s; so it is with %s words: the model cannot find them, and the loss takes their "
                "tags for the first one", fault, f"{len(unknown):,}",
            )  # fmt: skip
        return [[ids.get(tag, 0) for tag in some] for some in tags]

    def summary(
        self,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        finder: NameFinder | None,
    ) -> str:
        total, labelled = (
            sum(map(len, column)) for column in (rows[settings.source], features["words"])
        )
        summary = super().summary(rows, features, settings, finder)
        return f"{summary}; {total - labelled:,} of {total:,} words are cut off or have no token"

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        pad = DataCollatorForTokenClassification(tokenizer, label_pad_token_id=IGNORE)

        def collate(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
            return accepted(
                pad([{k: v for k, v in r.items() if k != "words"} for r in rows]), model
            )

        return collate

    def reduce(self, outputs: Any, labels: Any) -> Any:
        return super().reduce(outputs, labels).argmax(-1)

    def records(
        self,
        outputs: Any,
        labels: Any,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        config: PreTrainedConfig,
    ) -> list[Record]:
        predicted, has_label = np.asarray(outputs), np.asarray(labels) != IGNORE
        records: list[Record] = []
        words, right = rows[settings.source], _tags(rows, settings.target)
        for row, visible_words in enumerate(features["words"]):
            tags = [OUTSIDE] * len(words[row])  # of words that the model does not see
            for word, index in zip(visible_words, predicted[row][has_label[row]], strict=True):
                tags[word] = str(config.id2label[int(index)])
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


def spans_of(tags: Sequence[str]) -> set[Span]:
    """Return the spans that tags mark, each with its type ("" without one) and its words' places.

    A tag that goes on with a span of another type, or with none, begins a span, as in conlleval.
    Words in a gap have spans of their own.
    """
    places = range(len(tags))
    outer = [place for place in places if tags[place][0].isupper()]
    gaps = [list(some) for inner, some in groupby(places, lambda i: tags[i][0].islower()) if inner]
    return {span for level in (outer, *gaps) for span in _spans_at(tags, level)}


def _spans_at(tags: Sequence[str], places: Iterable[int]) -> Iterator[Span]:
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

    Args:
        text: the words, with a space between any two of them.
        words: of the text.
    """
    if not isinstance(text, MarkedText):
        return text
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    spans = [
        (max(span.start, start), min(span.stop, start + len(word)), span.symbol_class)
        for start, word in zip(starts, words, strict=False)
        for span in text.spans
    ]
    return MarkedText(text, [(start, stop, kind) for start, stop, kind in spans if start < stop])


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


def _tag_names(rows: Dataset, column: str) -> list[str]:
    """Return the names of tags that the data itself declares; [] if it declares none."""
    kind = getattr(rows.features[column], "feature", None)
    return list(kind.names) if isinstance(kind, ClassLabel) else []


def _tags(rows: Dataset, column: str) -> list[list[Any]]:
    """Return the tags of each row by name; None for a number that names no tag."""
    tag_names = _tag_names(rows, column)
    lists = [tags if isinstance(tags, list) else [] for tags in rows[column]]
    if not tag_names:
        return lists
    names = dict(enumerate(tag_names))
    return [[names.get(tag) for tag in tags] for tags in lists]


__all__ = ["Tokens", "first_tokens", "span_scores", "spans_of", "word_by_word"]
