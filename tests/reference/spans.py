"""Spans of BIO tags with gaps, word by word from their definition, and how many are found."""

from collections.abc import Sequence

Span = tuple[str, tuple[int, ...]]


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a text: from each word that begins one, on from word to word."""
    found = []
    for place, tag in enumerate(tags):
        if tag[0] in "BIbi" and before(tags, place) is None:
            words = [place]
            while (following := after(tags, words[-1])) is not None:
                words.append(following)
            found.append((tag[2:], tuple(words)))
    return found


def after(tags: Sequence[str], place: int) -> int | None:
    """The word that goes on with the span of a word."""
    ways = [later for later in range(place + 1, len(tags)) if before(tags, later) == place]
    assert len(ways) < 2
    return ways[0] if ways else None


def before(tags: Sequence[str], place: int) -> int | None:
    """The word whose span a word goes on with; None if it begins one."""
    tag = tags[place]
    if tag[0] not in "Ii":
        return None
    earlier = place - 1
    if tag[0] == "I":  # over a gap
        while earlier >= 0 and tags[earlier][0] in "bio":
            earlier -= 1
    if earlier < 0 or tags[earlier][0] not in ("BI" if tag[0] == "I" else "bi"):
        return None
    return earlier if tags[earlier][1:] == tag[1:] else None


def scores(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> dict[str, float]:
    """Precision, recall and F1 of exact spans, and the accuracy of tags."""
    hit = missed = wrong = same = words = 0
    for predicted, right in pairs:
        wanted = spans(right)
        for span in spans(predicted):
            if span in wanted:
                hit += 1
                wanted.remove(span)
            else:
                wrong += 1
        missed += len(wanted)
        for one, two in zip(predicted, right, strict=True):
            same += one == two
            words += 1
    precision = hit / (hit + wrong) if hit + wrong else 0.0
    recall = hit / (hit + missed) if hit + missed else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hit else 0.0
    return {"f1": f1, "precision": precision, "recall": recall, "accuracy": same / words}
