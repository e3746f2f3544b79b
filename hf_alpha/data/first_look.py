"""A first look at pairs of texts before training, and which of them cannot be learnt."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset

from hf_alpha.modeling.names_in_text import MarkedText, NameFinder, Span, parts
from hf_alpha.unknown_words import unknown_id, unknown_words

from .pairs import BATCH, batches, problems
from .rows import AnyDataset

LACKING = "the target has a name that the source lacks"
TOO_MANY = "more names than `count`"
_KEPT = 100_000
"""Different names, and words, that are counted one by one: memory does not grow with the rows."""
_ENOUGH = 20
"""Rows from which on a name that is in each of them is no chance."""
_SHOWN = 120
"""Characters of an example."""


class Pair(NamedTuple):
    """A source and a target, the names of the source, and why it cannot be learnt, if so."""

    problem: str
    answer: str
    problem_spans: tuple[Span, ...]
    answer_spans: tuple[Span, ...]
    names: dict[str, list[str]]
    reason: str | None
    name: str | None


@dataclass
class ClassCounts:
    """How many different names of a class a row has, and which; `nameless` rows have none.

    `counts` says how many rows have so many.
    """

    fewest: int
    most: int = 0
    total: int = 0
    nameless: int = 0
    names: Counter[str] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)

    def add(self, names: Sequence[str]) -> None:
        """Count the names of a row."""
        self.fewest, self.most = min(self.fewest, len(names)), max(self.most, len(names))
        self.total += len(names)
        self.nameless += not names
        self.counts[len(names)] += 1
        _count(self.names, names)


@dataclass
class FirstLook:
    """What `look` found; as a string, what a user wants to see before training starts.

    Attributes:
        rows: how many there are, or were looked at; they count from 0.
        classes: class -> the names of its rows, in sources.
        sought: classes whose rule has a way to find names.
        nameless: rows whose source has no name.
        longest: "source", "target" -> characters, tokens (0 without a tokenizer).
        lengths: "source", "target" -> tokens -> how many texts have so many.
        tokens: of all texts, and how many are unknown.
        unknown: words with unknown tokens; names are none of them.
        bad: reason -> (row, name) of the first rows with pairs that cannot be learnt.
        bad_rows: reason -> how many.
        example: a source and a target, with their names marked.
    """

    rows: int = 0
    classes: dict[str, ClassCounts] = field(default_factory=dict)
    sought: list[str] = field(default_factory=list)
    nameless: int = 0
    longest: dict[str, tuple[int, int]] = field(
        default_factory=lambda: {"source": (0, 0), "target": (0, 0)}
    )
    lengths: dict[str, Counter[int]] = field(
        default_factory=lambda: {"source": Counter(), "target": Counter()}
    )
    tokens: tuple[int, int] = (0, 0)
    unknown: Counter[str] = field(default_factory=Counter)
    bad: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    bad_rows: Counter[str] = field(default_factory=Counter)
    example: tuple[str, str] | None = None

    def __str__(self) -> str:
        lines = [("pairs", f"{self.rows:,}")]
        for name, counts in self.classes.items():
            frequent = ", ".join(word for word, _ in counts.names.most_common(5))
            prefix = "more than " if len(counts.names) == _KEPT else ""
            lines.append((
                name,
                f"{counts.fewest} / {counts.total / self.rows:.1f} / {counts.most} names in a "
                f"source (min / mean / max), {prefix}{len(counts.names):,} different: {frequent}",
            ))  # fmt: skip
        if self.rows >= _ENOUGH and (words := self._in_every_source()):
            lines.append(("?", f"in every source, a name: {words} (if it is none: `reserved`)"))
        for name, counts in self.classes.items():
            if name in self.sought and 2 * counts.nameless > self.rows:
                rows = f"{counts.nameless:,} of {self.rows:,} sources"
                lines.append(("?", f"no {name} in {rows} (if they have some: `symbols`)"))
        if self.classes:
            lines.append(("nameless", f"{self.nameless:,} of {self.rows:,} sources"))
        sizes = (
            f"{side} {characters:,} characters" + (f", {tokens:,} tokens" if tokens else "")
            for side, (characters, tokens) in self.longest.items()
        )
        lines.append(("longest", "; ".join(sizes)))
        if self.tokens[0]:
            words = ", ".join(f"{word!r} ({n:,})" for word, n in self.unknown.most_common(5))
            unknown = f"{self.tokens[1]:,} of {self.tokens[0]:,} tokens"
            lines.append(("unknown", f"{unknown}: {words}" if words else unknown))
        lines += [("bad pairs", text) for text in self._bad_lines()] or [("bad pairs", "none")]
        if self.example is not None:
            lines += [("example", self.example[0]), ("->", self.example[1])]
        width = max(len(head) for head, _ in lines)
        return "\n".join(f"{head:<{width}}  {text}" for head, text in lines)

    def refuse_bad(self) -> None:
        """Raise ValueError where there are pairs that cannot be learnt; it names the first ones."""
        if self.bad_rows:
            raise ValueError(
                f"{self.bad_rows.total():,} of {self.rows:,} pairs cannot be learnt: "
                f"{'; '.join(self._bad_lines())}. Mend them, change `symbols` (words that are no "
                "names are `reserved`), or leave them out by --drop-bad"
            )

    def _in_every_source(self) -> str:
        """Return names that look like words of the task, such as `swap` for the pattern [a-z]+."""
        frequent = (counts.names.most_common(3) for counts in self.classes.values())
        return ", ".join(repr(n) for names in frequent for n, rows in names if rows == self.rows)

    def _bad_lines(self) -> list[str]:
        return [
            f"{count:,}: {reason}: "
            + ", ".join(f"row {r} ({name})" for r, name in self.bad[reason])
            for reason, count in self.bad_rows.items()
        ]


def look(
    dataset: AnyDataset,
    finder: NameFinder,
    tokenizer: Any = None,
    limit: int | None = None,
    new_names: bool = False,
) -> FirstLook:
    """Count what the pairs have: rows, names, lengths, unknown tokens, what cannot be learnt.

    Args:
        dataset: of `read_pairs`.
        tokenizer: of the texts, by `tokenizer(list of texts)["input_ids"]`, with `unk_token_id`.
        limit: rows that are looked at, the first ones; by default all.
        new_names: targets may have names that their sources lack.

    Raises:
        ValueError: there is no row, rules look for names and no row has one, the pattern of a class
            matches nothing, or patterns match everything.
    """
    if limit is not None:
        dataset = dataset.take(limit)
    result = FirstLook(sought=[name for name, rule in finder.rules.items() if rule.is_sought])
    only_names, first = True, ""
    for batch in batches(dataset, "first look"):
        pairs = [
            _examine(problem, answer, finder, new_names)
            for problem, answer in zip(problems(batch), batch["answer"], strict=True)
        ]
        first = first or pairs[0].problem
        _add_pairs(result, pairs, finder, tokenizer)
        only_names = only_names and not any(
            _words(pair.problem, pair.problem_spans) or _words(pair.answer, pair.answer_spans)
            for pair in pairs
        )
    if not result.rows:
        raise ValueError("the data holds no pair")
    _refuse_rules(result, finder, only_names, first)
    return result


def look_at_rows(
    rows: Iterable[Mapping[str, Any]], finder: NameFinder, tokenizer: Any
) -> FirstLook:
    """Count what rows have as evaluation takes them, whose `answer` may be None; refuse none.

    `look` describes the arguments.
    """
    result = FirstLook(sought=[name for name, rule in finder.rules.items() if rule.is_sought])
    pairs = [
        _examine(row["problem"], row.get("answer") or "", finder, new_names=True) for row in rows
    ]
    if pairs:
        _add_pairs(result, pairs, finder, tokenizer)
    return result


def _add_pairs(
    result: FirstLook, pairs: Sequence[Pair], finder: NameFinder, tokenizer: Any
) -> None:
    for pair in pairs:
        _add(result, pair, finder)
    if tokenizer is not None:
        sources = [MarkedText(pair.problem, pair.problem_spans) for pair in pairs]
        targets = [MarkedText(pair.answer, pair.answer_spans) for pair in pairs]
        for side, texts in (("source", sources), ("target", targets)):
            _add_tokens(result, side, texts, tokenizer)


def drop_bad(
    dataset: AnyDataset, finder: NameFinder, new_names: bool = False
) -> tuple[AnyDataset, dict[str, int]]:
    """Leave out the pairs that cannot be learnt; for `new_names` see `look`.

    Returns:
        The others, and reason -> how many pairs were left out.

    Raises:
        ValueError: no pair is left.
    """
    counts: Counter[str] = Counter()
    good: list[np.ndarray] = []
    for batch in batches(dataset, "dropping"):
        row_reasons = _reasons(batch, finder, new_names)
        counts.update(filter(None, row_reasons))
        good.append(np.array([reason is None for reason in row_reasons]))
    if not any(part.any() for part in good):
        reasons = ", ".join(f"{count:,}: {reason}" for reason, count in counts.items())
        raise ValueError(f"no pair is left of the data ({reasons or 'it is empty'})")
    if not counts:
        return dataset, {}
    if isinstance(dataset, Dataset):
        return dataset.select(np.flatnonzero(np.concatenate(good))), dict(counts)
    are_good = partial(_are_good, finder=finder, new_names=new_names)
    return dataset.filter(are_good, batched=True, batch_size=BATCH), dict(counts)


def _are_good(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, new_names: bool
) -> list[bool]:
    return [reason is None for reason in _reasons(batch, finder, new_names)]


def _reasons(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, new_names: bool
) -> list[str | None]:
    pairs = zip(problems(batch), batch["answer"], strict=True)
    return [_examine(problem, answer, finder, new_names).reason for problem, answer in pairs]


def _examine(problem: str, answer: str, finder: NameFinder, new_names: bool = False) -> Pair:
    spans = finder.find(problem)
    names: dict[str, list[str]] = {}
    classes: dict[str, str] = {}
    for start, stop, kind in spans:
        name = problem[start:stop]
        if name not in classes:
            classes[name] = kind
            names.setdefault(kind, []).append(name)
    pair = Pair(problem, answer, spans, finder.find(answer, classes), names, None, None)
    for kind, listed in names.items():
        count = finder.rules[kind].count
        if count is not None and len(listed) > count:
            return pair._replace(reason=TOO_MANY, name=f"{len(listed)} of class {kind}")
    for start, stop, _ in pair.answer_spans:
        if not new_names and answer[start:stop] not in classes:
            return pair._replace(reason=LACKING, name=repr(answer[start:stop]))
    return pair


def _add(result: FirstLook, pair: Pair, finder: NameFinder) -> None:
    row = result.rows
    result.rows += 1
    for kind in finder.rules:
        class_names = pair.names.get(kind, [])
        result.classes.setdefault(kind, ClassCounts(fewest=len(class_names))).add(class_names)
    result.nameless += not pair.names
    for side, text in (("source", pair.problem), ("target", pair.answer)):
        characters, tokens = result.longest[side]
        result.longest[side] = max(characters, len(text)), tokens
    if pair.reason is not None:
        result.bad_rows[pair.reason] += 1
        first = result.bad.setdefault(pair.reason, [])
        if len(first) < 5:
            first.append((row, str(pair.name)))
    elif result.example is None and pair.names:
        several = len(finder.rules) > 1
        result.example = (
            _shown(pair.problem, pair.problem_spans, several),
            _shown(pair.answer, pair.answer_spans, several),
        )


def _add_tokens(result: FirstLook, side: str, texts: list[MarkedText], tokenizer: Any) -> None:
    unknown = unknown_id(tokenizer)
    rows = tokenizer(texts)["input_ids"]
    counts = [sum(token == unknown for token in ids) for ids in rows]
    characters, tokens = result.longest[side]
    result.longest[side] = characters, max([tokens, *map(len, rows)])
    result.lengths[side].update(map(len, rows))
    result.tokens = result.tokens[0] + sum(map(len, rows)), result.tokens[1] + sum(counts)
    texts = [text for text, count in zip(texts, counts, strict=True) if count]
    for words in unknown_words(tokenizer, texts):
        _count(result.unknown, words)


def _count(counter: Counter[str], words: Sequence[str]) -> None:
    for word in words:
        if word in counter or len(counter) < _KEPT:
            counter[word] += 1


def _words(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the words of a text, what is between its names; spaces separate them."""
    return " ".join(part for part, _ in parts(text, spans)).split()


def _shown(text: str, spans: Sequence[Span], with_class: bool) -> str:
    """Return a text with its names between « and », in one line."""
    marked = ""
    for part, span in parts(text, spans):
        marked += part
        if span is not None:
            kind = f": {span.symbol_class}" if with_class else ""
            marked += f"«{text[span.start : span.stop]}{kind}»"
    line = " ".join(marked.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _refuse_rules(result: FirstLook, finder: NameFinder, only_names: bool, first: str) -> None:
    sources = f"the {result.rows:,} sources, of which the first is {first!r}"
    advice = f"look at `symbols` and at {sources}"
    sought = any(rule.is_sought for rule in finder.rules.values())
    if result.nameless == result.rows and sought:
        raise ValueError(f"no source has a name: {advice}")
    for kind, rule in finder.rules.items():
        if rule.pattern is not None and not result.classes[kind].total:
            raise ValueError(
                f"symbols: {kind!r}: the pattern {rule.pattern!r} matches no word: {advice}"
            )
    patterns = [rule.pattern for rule in finder.rules.values() if rule.pattern is not None]
    if only_names and len(patterns) == len(finder.rules):
        raise ValueError(
            f"symbols: {' and '.join(map(repr, patterns))} match every word of all pairs, so that "
            f"nothing but names is left: {advice}. If that is meant, list the names as `tokens`"
        )


__all__ = [
    "LACKING",
    "TOO_MANY",
    "ClassCounts",
    "FirstLook",
    "drop_bad",
    "look",
    "look_at_rows",
]
