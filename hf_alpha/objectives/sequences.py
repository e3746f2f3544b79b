"""Sequences to pretrain on: documents as sentences of tokens, pairs of their parts, and frames.

A row's text is split into sentences, sentences become tokens and names, chunks of sentences that
fill a sequence become pairs, and each pair gets the special tokens of the tokenizer.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hf_alpha.modeling.spans import MarkedText, parts

from .base import SEGMENTS
from .names import Name, cut_out, encoded, numbered, with_names

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Segment = tuple[int, int]  # how many tokens it has more than one, and its id
Token = tuple[int | Name, tuple[Segment, ...]]
"""Its id or name, and the segments that begin at it."""
Document = list[list[Token]]  # its sentences


class Pair(NamedTuple):
    """Two parts of a sequence, what is said about them, and how many sentences are used up."""

    first: list[Token]
    second: list[Token]
    label: int
    sentences: int = 0


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text; none ends in a name or behind its last character."""
    blanked_text = "".join(
        between + "_" * len(text[span.start : span.stop] if span else "")
        for between, span in parts(text, getattr(text, "spans", ()))
    )
    gaps = [place for match in SENTENCE_END.finditer(blanked_text) for place in match.span()]
    places = zip([0, *gaps][::2], [*gaps, len(text)][::2], strict=True)
    return [
        cut_out(text, start, stop) for start, stop in places if blanked_text[start:stop].strip()
    ]


def tokens_of(sentences: list[str], tokenizer: Any, row: int) -> Document:
    """Return the tokens of a row's sentences."""
    if not sentences:
        return []
    place = f"row {row}, in its sentences"
    encoding = encoded(tokenizer, sentences, place=place, add_special_tokens=False)
    names_by_sentence = getattr(encoding, "names", [{}] * len(sentences))
    document: Document = []
    for number, ids in enumerate(encoding["input_ids"]):
        tokens = with_names(tokenizer, ids, names_by_sentence[number])
        document.append(list(zip(tokens, _beginning(encoding, number), strict=True)))
    return [sentence for sentence in document if sentence]


def _beginning(encoding: Any, number: int) -> list[tuple[Segment, ...]]:
    """Return the segments that begin at each token of a sentence."""
    beginnings: list[tuple[Segment, ...]] = [()] * len(encoding["input_ids"][number])
    columns = [encoding[key][number] for key in SEGMENTS if key in encoding]
    for index, start, end in zip(*columns, strict=True):
        beginnings[start] += ((end - start, index),)
    return beginnings


def segment_keys(tokenizer: Any) -> list[str]:
    """Return the columns of segments that a tokenizer makes."""
    return [key for key in SEGMENTS if key in tokenizer.model_input_names]


@dataclass
class Pairs:
    """Makes pairs of documents: chunks of their sentences that fill a sequence, in two parts.

    Attributes:
        sentences: "nsp", "sop" or "none", see `Masked`.
        room: for how many tokens of both parts.
        short_share: share of the pairs that do not fill it.
    """

    sentences: str
    room: int
    short_share: float

    def of(self, documents: list[Document], rng: random.Random) -> Iterator[Pair]:
        """Yield the pairs of documents."""
        if self.sentences == "none":
            for ids in map(_joined, documents):
                for start in range(0, len(ids), self.room):
                    yield Pair(ids[start : start + self.room], [], 0)
        elif self.sentences == "sop" or len(documents) > 1:
            for number in range(len(documents)):
                yield from self._of(documents, number, rng)

    def _of(self, documents: list[Document], number: int, rng: random.Random) -> Iterator[Pair]:
        """Yield the pairs of one document: its sentences, in chunks that fill the sequence."""
        document, chunk, position = documents[number], list[list[Token]](), 0
        target = self._target(rng)
        while position < len(document):
            chunk.append(document[position])
            position += 1
            if position < len(document) and sum(map(len, chunk)) < target:
                continue
            cut = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first, second = _joined(chunk[:cut]), _joined(chunk[cut:])
            label = 0
            if self.sentences == "nsp" and (not second or rng.random() < 0.5):
                other_document = rng.choice([*documents[:number], *documents[number + 1 :]])
                start = rng.randrange(len(other_document))
                second, label = _joined(other_document[start:])[: max(target - len(first), 1)], 1
                position -= len(chunk) - cut  # the rest of the chunk is put back
                del chunk[cut:]
            elif second and self.sentences == "sop" and rng.random() < 0.5:
                first, second, label = second, first, 1
            if second:
                yield Pair(*_shortened(first, second, self.room, rng), label, len(chunk))
            chunk, target = [], self._target(rng)

    def _target(self, rng: random.Random) -> int:
        """Draw how many tokens a pair is to have: some are short, as the data of tasks is."""
        return rng.randint(2, self.room) if rng.random() < self.short_share else self.room


def _joined(sentences: Iterable[list[Token]]) -> list[Token]:
    return [token for sentence in sentences for token in sentence]


def _shortened(
    first: list[Token], second: list[Token], room: int, rng: random.Random
) -> tuple[list[Token], list[Token]]:
    """Cut the longer part, at its start or end by chance, until both fit."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        longer = first if len(first) >= len(second) else second
        del longer[0 if rng.random() < 0.5 else -1]
    return first, second


class Frame:
    """The special tokens that a tokenizer writes around one text, or a pair."""

    def __init__(self, tokenizer: Any, paired: bool):
        texts = [MarkedText(letter, []) for letter in ("a", "b")[: 1 + paired]]
        encoding = tokenizer(*texts, return_special_tokens_mask=True, return_token_type_ids=True)
        parts = tokenizer.backend_tokenizer.encode(*texts).sequence_ids
        self.paired, self.tokenizer = paired, tokenizer
        self.with_segments = bool(segment_keys(tokenizer))
        self.pieces: list[tuple[int | None, int, int]] = []  # part, or None and an id; type
        for part, index, kind in zip(
            parts, encoding["input_ids"], encoding["token_type_ids"], strict=True
        ):
            if part is None or all(part != other for other, *_ in self.pieces):
                self.pieces.append((part, index, kind))

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the columns of a sequence."""
        sequence = list[int | Name]()
        types, special = list[int](), list[int]()
        segments: list[tuple[int, int, int]] = []  # start, end and id
        for part, index, kind in self.pieces:
            tokens = [(index, ())] if part is None else (pair.second if part else pair.first)
            segments += _whole(tokens, len(sequence))
            sequence += [token for token, _ in tokens]
            types += [kind] * len(tokens)
            special += [int(part is None)] * len(tokens)
        row: dict[str, Any] = {
            "input_ids": numbered(self.tokenizer, sequence),
            "token_type_ids": types,
            "special_tokens_mask": special,
        }
        if self.with_segments:
            for key, place in zip(SEGMENTS, (2, 0, 1), strict=True):
                row[key] = [segment[place] for segment in segments]
        pair_columns = {"sentence_label": pair.label, "sentences": pair.sentences}
        return row | (pair_columns if self.paired else {})


def _whole(tokens: Sequence[Token], column: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first column, last column, id) of segments that are whole in a part of a sequence."""
    for place, (_, segments) in enumerate(tokens):
        for length, index in segments:
            if place + length < len(tokens):
                yield column + place, column + place + length, index
