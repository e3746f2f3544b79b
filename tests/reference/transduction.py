"""The transducer written out plainly: every span is looked up, and rules are matched recursively.

An expression of a rule is a tuple: ("word", text), ("regex", source), ("any",), ("label", name),
("sequence", ...), ("choice", ...), ("repeat", expression, least, most or None).
"""

import re
from collections.abc import Iterable, Sequence

Segment = tuple[int, int, str]  # first unit, last unit, label
Phrases = Iterable[tuple[Sequence[str], str]]


def written(expression) -> str:
    """The expression as the text of a rule."""
    kind, *parts = expression
    match kind:
        case "any":
            return "."
        case "word":
            return f'"{parts[0]}"' if parts[0] in "?.,(" else parts[0]
        case "regex":
            return f"/{parts[0]}/"
        case "label":
            return f"<{parts[0]}>"
        case "sequence":
            return f"({' '.join(map(written, parts))})"
        case "choice":
            return f"( {' | '.join(map(written, parts))} )"
    inner, least, most = parts
    signs = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    bounds = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return f"{written(inner)}{signs.get((least, most), bounds)}"


def ends(expression, words: Sequence[str], segments: set[Segment], at: int) -> set[int]:
    """The units after all matches that begin at a unit."""
    kind, *parts = expression
    if kind == "label":
        return {end + 1 for start, end, label in segments if (start, label) == (at, parts[0])}
    if kind == "sequence":
        reached = {at}
        for part in parts:
            reached = {end for start in reached for end in ends(part, words, segments, start)}
        return reached
    if kind == "choice":
        return {end for part in parts for end in ends(part, words, segments, at)}
    if kind == "repeat":
        inner, least, most = parts
        reached, found = {at}, {at} if least == 0 else set()
        for number in range(1, (len(words) + least if most is None else most) + 1):
            reached = {end for start in reached for end in ends(inner, words, segments, start)}
            found |= reached if number >= least else set()
        return found
    if at == len(words):
        return set()
    holds = {
        "any": lambda word: True,
        "word": lambda word: word.lower() == parts[0].lower(),
        "regex": lambda word: re.fullmatch(parts[0], word) is not None,
    }[kind]
    return {at + 1} if holds(words[at]) else set()


def longest(found: set[Segment]) -> set[Segment]:
    """From the left, the longest segments, and none that overlaps one before."""
    chosen, at = set(), 0
    for start in range(1 + max((start for start, _, _ in found), default=0)):
        here = {segment for segment in found if segment[0] == start >= at}
        if here:
            last = max(end for _, end, _ in here)
            chosen |= {segment for segment in here if segment[1] == last}
            at = last + 1
    return chosen


def transduce(words, phrases: Phrases, rules, labels, match="all", most=4, max_units=16):
    """All segments over words in lower and upper case, which are the same; at most D at a unit."""
    choose = longest if match == "longest" else set
    lowered = [word.lower() for word in words]
    found = choose(
        {
            (start, start + len(phrase) - 1, label)
            for phrase, label in phrases
            for start in range(len(words))
            if lowered[start : start + len(phrase)] == [word.lower() for word in phrase]
        }
    )
    for expression, label in rules:
        found |= choose(
            {
                (start, end - 1, label)
                for start in range(len(words))
                for end in ends(expression, words, found, start)
                if 0 < end - start <= max_units
            }
        )
    kept: list[Segment] = []
    for segment in sorted(found, key=lambda s: (s[0] - s[1], labels.index(s[2]), s[0])):
        at_start = [other for other in kept if other[0] == segment[0]]
        at_end = [other for other in kept if other[1] == segment[1]]
        if max(len(at_start), len(at_end)) < most - 1:  # the unit itself is one
            kept.append(segment)
    kept.sort(key=lambda s: (s[0], s[1], labels.index(s[2])))
    return kept, len(found) - len(kept)
