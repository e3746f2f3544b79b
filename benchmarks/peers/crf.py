"""Tags of words by a conditional random field, with the features that most taggers had."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

REACH = 2  # words to the left and to the right whose features count


def train_and_tag(
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    test_words: Sequence[Sequence[str]],
    marks: Mapping[str, Sequence[Sequence[str]]],
) -> list[list[str]]:
    """Tags of test sentences, by a first-order CRF (CRFsuite: L-BFGS, L1 and L2 penalties of 0.1).

    Args:
        words, tags: of the training sentences.
        test_words: of the test sentences.
        marks: what a lexicon says about each word, of `train` and of `test`; may be empty.
    """
    crf = import_module("sklearn_crfsuite").CRF(c1=0.1, c2=0.1, max_iterations=100)
    crf.fit(list(_features(words, marks.get("train", ()))), tags)
    predicted = crf.predict(list(_features(test_words, marks.get("test", ()))))
    return [[str(tag) for tag in row] for row in predicted]


def _features(
    sentences: Sequence[Sequence[str]], marks: Sequence[Sequence[str]]
) -> Iterator[list[list[str]]]:
    """The features of each word, for each sentence."""
    for number, words in enumerate(sentences):
        own = [_own(word) for word in words]
        if marks:
            own = [
                [*some, f"lexicon={mark}"] for some, mark in zip(own, marks[number], strict=True)
            ]
        yield [list(_around(own, place)) for place in range(len(words))]


def _own(word: str) -> list[str]:
    lower = word.lower()
    shape = "".join(
        "X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word
    )
    return [
        f"word={lower}",
        f"start={lower[:3]}",
        f"end={lower[-3:]}",
        f"end={lower[-2:]}",
        f"shape={shape[:6]}",
    ]


def _around(own: Sequence[Sequence[str]], place: int) -> Iterator[str]:
    """The features of a word and of those near it, and the pairs of neighbouring words."""
    for offset in range(-REACH, REACH + 1):
        if 0 <= place + offset < len(own):
            yield from (f"{offset}:{feature}" for feature in own[place + offset])
        else:
            yield f"{offset}:outside"
    for first in (place - 1, place):
        if first >= 0 and first + 1 < len(own):
            yield f"{first - place}:{own[first][0]} {own[first + 1][0]}"
