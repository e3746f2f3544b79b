"""What rows have: names, lengths, words that are unknown.

Pairs are looked at before training, which shows those that cannot be learnt; test rows and single
texts before a model answers, beside what its training had.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hf_alpha.checkpoints.places import file_of
from hf_alpha.io.folders import write_text
from hf_alpha.io.records import read_json
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText, keys_in, known_names, parts
from hf_alpha.names.unknown_words import listed, unknown_id, unknown_words

FIRST_LOOK_FILE = "first_look.json"
"""Beside a trained model: what its training data was like, in numbers."""
LACKING = (
    "the target has a name that the source lacks, which only a model with new_symbols: true writes"
)
TOO_MANY = "more names than `count`"
SIDES = ("source", "target")
REMEDY = ": add 1 to 2 % of rows with more names to the training data (docs/choosing.md)"
"""What is said of test rows with more names than training had."""
_KEPT = 100_000
"""Different names, and words, that are counted one by one: memory does not grow with the rows."""
_ENOUGH = 20
"""Rows from which on a name that is in each of them is no chance."""
_LENGTH = 120
"""Characters of an example that are shown."""
_LISTED = 3
"""Rows that a note shows."""

Pair = tuple[MarkedText, MarkedText]


def mark(problem: str, answer: str, finder: NameFinder) -> Pair:
    """Return two texts with their names marked: what is a name in a problem is one in its answer.

    Args:
        answer: may be empty.
    """
    source = MarkedText(problem, finder.find(problem))
    known = known_names(source, source.spans)
    return source, MarkedText(answer, finder.find(answer, dict(reversed(known.values()))))


def classes_of(text: MarkedText, problem: MarkedText | None = None) -> dict[str, str]:
    """Return name -> class, in order of first occurrence; names of a binding are one.

    Args:
        problem: of an answer, what it answers.
    """
    known = problem and known_names(problem, problem.spans)
    keys = keys_in(text, text.spans, known or {})
    return {key: span.symbol_class for key, span in zip(keys, text.spans, strict=True)}


def fault(pair: Pair, finder: NameFinder, new_names: bool = False) -> tuple[str, str] | None:
    """Return why a pair cannot be learnt, and the name that is to blame; None if it can.

    Args:
        finder: with the counts of the classes.
        new_names: targets may have names that their sources lack.
    """
    source, target = pair
    names, answer_names = classes_of(source), classes_of(target, source)
    for kind, number in Counter(names.values()).items():
        count = finder.rules[kind].count
        if count is not None and number > count:
            return TOO_MANY, f"{number} of class {kind}"
    if new_names or not (lacking := answer_names.keys() - names.keys()):
        return None
    spellings = known_names(target, target.spans)
    return LACKING, repr(next(spellings[name][0] for name in answer_names if name in lacking))


@dataclass(frozen=True)
class TrainingFacts:
    """What the training data of a model was like.

    Attributes:
        names: class -> fewest and most names of it in a source.
        longest: "source", "target" -> most tokens.
    """

    names: Mapping[str, tuple[int, int]]
    longest: Mapping[str, int]

    @classmethod
    def beside(cls, model: str) -> "TrainingFacts | None":
        """Read what training has left beside a model; None where there is nothing.

        Args:
            model: folder or Hub name.
        """
        file = file_of(model, FIRST_LOOK_FILE, reachable=False)
        if file is None:
            return None
        facts = read_json(file, "names", "longest")
        names = {name: (fewest, most) for name, (fewest, most) in facts["names"].items()}
        return cls(names, facts["longest"])

    def notes(self, text: str, finder: NameFinder) -> Iterator[str]:
        """Say what the names of one text are beside those of training; nothing for as many."""
        counts = Counter(classes_of(MarkedText(text, finder.find(text))).values())
        for name, (fewest, most) in self.names.items():
            if fewest and not counts[name]:
                yield f"no {name} is found in it, and every text of training had {fewest}"
            elif counts[name] > most:
                yield f"{counts[name]} names of class {name}; training had {most} at most"


class FirstLook:
    """What rows are like; as a string, what a user wants to see first.

    Args:
        new_names: targets may have names that their sources lack.
        training: what the model's training had, for its test rows.
        renamed: numbers of the rows whose source is, names aside, one of training; None if that is
            not known.

    Attributes:
        rows: how many were added; they count from 0.
        counts: class -> number of different names in a source -> rows.
        names: class -> name -> sources that have it.
        nameless: rows whose source has no name.
        lengths: "source", "target" -> tokens -> rows.
        unknown: words with unknown tokens; names are none of them.
        bad: reason -> the first rows that cannot be learnt, with the name that is to blame.
        bad_rows: reason -> how many.
        example: a source and a target, with their names marked.
    """

    def __init__(
        self,
        finder: NameFinder,
        title: str = "pairs",
        new_names: bool = False,
        training: TrainingFacts | None = None,
        renamed: Sequence[int] | None = None,
    ):
        self.finder, self.title, self._new_names = finder, title, new_names
        self.training, self.renamed = training, renamed
        self.rows = self.nameless = self.unknown_tokens = 0
        self.counts = {name: Counter[int]() for name in finder.rules}
        self.names = {name: Counter[str]() for name in finder.rules}
        self.lengths = {side: Counter[int]() for side in SIDES}
        self.unknown, self.bad_rows = Counter[str](), Counter[str]()
        self.bad: dict[str, list[str]] = {}
        self.example: tuple[str, str] | None = None
        self._first, self._only_names = "", True

    def add(self, texts: Iterable[tuple[str, str]]) -> list[Pair]:
        """Count the names of problems and answers, and return both with their names marked."""
        pairs = [mark(*pair, self.finder) for pair in texts]
        self._first = self._first or (pairs[0][0] if pairs else "")
        for pair in pairs:
            self._add(pair)
        return pairs

    def _add(self, pair: Pair) -> None:
        classes = known_names(pair[0], pair[0].spans).values()
        self.nameless += not classes
        for kind in self.counts:
            names = [name for name, of in classes if of == kind]
            self.counts[kind][len(names)] += 1
            _count(self.names[kind], dict.fromkeys(names))
        if (bad := fault(pair, self.finder, self._new_names)) is not None:
            reason, name = bad
            self.bad_rows[reason] += 1
            if self.bad_rows[reason] <= 5:
                self.bad.setdefault(reason, []).append(f"row {self.rows} ({name})")
        elif self.example is None and classes:
            self.example = _shown(pair[0]), _shown(pair[1])
        between = (part for text in pair for part, _ in parts(text, text.spans))
        self._only_names = self._only_names and not any(part.strip() for part in between)
        self.rows += 1

    def add_tokens(self, pairs: Sequence[Pair], tokenizer: Any) -> None:
        """Count the tokens of texts, and the unknown ones."""
        sides = [list(texts) for texts in zip(*pairs, strict=True)]
        encoded = [tokenizer(texts)["input_ids"] for texts in sides]
        unknown = unknown_id(tokenizer)
        for side, texts, rows in zip(SIDES[: len(sides)], sides, encoded, strict=True):
            self.lengths[side].update(map(len, rows))
            counts = [row.count(unknown) for row in rows]
            self.unknown_tokens += sum(counts)
            some = [text for text, count in zip(texts, counts, strict=True) if count]
            for words in unknown_words(tokenizer, some):
                _count(self.unknown, words)

    def __str__(self) -> str:
        lines = [(self.title, f"{self.rows:,}")]
        for name, counts in self.counts.items():
            frequent = ", ".join(word for word, _ in self.names[name].most_common(5))
            prefix = "more than " if len(self.names[name]) == _KEPT else ""
            text = (
                f"{min(counts, default=0)} / {_sum(counts) / max(self.rows, 1):.1f} / "
                f"{max(counts, default=0)} names in a source (min / mean / max), "
                f"{prefix}{len(self.names[name]):,} different: {frequent}"
            )
            if self.training is not None and name in self.training.names:
                text += "; in training {} to {}".format(*self.training.names[name])
            lines.append((name, text))
        if self.counts:
            lines.append(("nameless", f"{self.nameless:,} of {self.rows:,} sources"))
        if tokens := sum(map(_sum, self.lengths.values())):
            text = "source {source:,} tokens; target {target:,} tokens".format(**self.facts.longest)
            if self.training is not None:
                text += "; in training {source:,} and {target:,}".format(**self.training.longest)
            lines.append(("longest", text))
            if not self.unknown_tokens:  # else `warnings` says which
                lines.append(("unknown", f"0 of {tokens:,} tokens"))
        if self.renamed is not None:
            count = len(self.renamed)
            lines.append(("renamings", f"{count:,} sources are renamings of training's"))
        if self.example is not None:
            lines += zip(("example", "->"), self.example, strict=True)
        width = max(len(head) for head, _ in lines)
        return "\n".join(f"{head:<{width}}  {text}" for head, text in lines)

    @property
    def facts(self) -> TrainingFacts:
        """What is told later of rows that a model was trained with."""
        names = {
            name: (min(counts, default=0), max(counts, default=0))
            for name, counts in self.counts.items()
        }
        longest = {side: max(lengths, default=0) for side, lengths in self.lengths.items()}
        return TrainingFacts(names, longest)

    def save(self, folder: Path) -> None:
        """Write the facts beside a model."""
        content = json.dumps({"rows": self.rows, **asdict(self.facts)}, indent=1)
        write_text(folder / FIRST_LOOK_FILE, content + "\n")

    @property
    def questions(self) -> list[str]:
        """What to ask of training data; a word of the task is perhaps taken for a name."""
        doubts = []
        for symbol_class, names in self.names.items():
            frequent = names.most_common(10) if self.rows >= _ENOUGH else ()
            words = ", ".join(name for name, rows in frequent if rows == self.rows)
            if words:
                way = f"if it is none, put `reserved: [...]` into the rule of {symbol_class}"
                doubts.append(f"in every source, a name: {words} ({way})")
        return [*doubts, *self.warnings]

    @property
    def warnings(self) -> list[str]:
        """Why answers may be wrong for another reason than the model."""
        doubts = [*self._rare(), *self._beyond_training()]
        if self.unknown_tokens:
            tokens = sum(map(_sum, self.lengths.values()))
            words = listed([word for word, _ in self.unknown.most_common()])
            text = f"{self.unknown_tokens:,} of {tokens:,} tokens are unknown to the model"
            doubts.append(f"{text}: {words}" if words else text)
        return doubts + seen_in_training(self.renamed or (), self.rows)

    def _rare(self) -> Iterator[str]:
        for name, counts in self.counts.items():
            rule = self.finder.rules[name]
            if rule.is_sought and 2 * counts[0] > self.rows:
                rows = f"{counts[0]:,} of {self.rows:,} rows"
                yield f"no {name} in {rows}: does its rule fit them? It is {rule.to_dict()}"

    def _beyond_training(self) -> Iterator[str]:
        if self.training is None:
            return
        names = [
            (f"more names of class {name} than the {most:,}", self.counts[name], most)
            for name, (_, most) in self.training.names.items()
            if name in self.counts
        ]
        lengths = [
            (f"longer {side}s than the {most:,} tokens", self.lengths[side], most)
            for side, most in self.training.longest.items()
            if most
        ]
        more_names = [*filter(None, (self._beyond(*limit) for limit in names))]
        if more_names:
            more_names[-1] += REMEDY
        yield from (*more_names, *filter(None, (self._beyond(*limit) for limit in lengths)))

    def _beyond(self, what: str, numbers: Counter[int], most: int) -> str:
        """Say in how many rows there is more than training had; "" if there is none."""
        rows = sum(count for number, count in numbers.items() if number > most)
        if not rows:
            return ""
        return (
            f"{what} that training had at most in {rows:,} of {self.rows:,} rows, up to "
            f"{max(numbers):,}"
        )

    def check(self) -> None:
        """Refuse rules that find nothing, or everything, and pairs that cannot be learnt.

        Raises:
            ValueError: there is no row, rules look for names and no row has one, the pattern of a
                class matches nothing, patterns match everything, or pairs are bad; the message
                names the first ones.
        """
        if (first := next(self._faults(), None)) is not None:
            raise ValueError(first)

    def _faults(self) -> Iterator[str]:
        if not self.rows:
            yield "the data holds no pair"
        sources = f"the {self.rows:,} sources, of which the first is {str(self._first)!r}"
        advice = f"look at `symbols` and at {sources}"
        rules = self.finder.rules
        if self.nameless == self.rows and any(rule.is_sought for rule in rules.values()):
            yield f"no source has a name: {advice}"
        patterns = {name: rule.pattern for name, rule in rules.items() if rule.pattern is not None}
        for name, pattern in patterns.items():
            if not self.names[name]:
                yield f"symbols: {name!r}: the pattern {pattern!r} matches no word: {advice}"
        if self._only_names and len(patterns) == len(rules):
            yield (
                f"symbols: {' and '.join(map(repr, patterns.values()))} match every word of all "
                f"pairs, so that nothing but names is left: {advice}. If that is meant, list the "
                "names as `tokens`"
            )
        if self.bad:
            reasons = (
                f"{self.bad_rows[reason]:,}: {reason}: {', '.join(first)}"
                for reason, first in self.bad.items()
            )
            yield (
                f"{self.bad_rows.total():,} of {self.rows:,} pairs cannot be learnt: "
                f"{'; '.join(reasons)}. Mend them, change `symbols` (words that are no "
                "names are `reserved`), or leave them out by data.drop_bad=true"
            )


def seen_in_training(renamed: Sequence[int], count: int) -> list[str]:
    """Say which of so many test rows are, names aside, rows of training; nothing if none is."""
    if not renamed:
        return []
    first = ", ".join(map(str, renamed[:_LISTED])) + ", ..." * (len(renamed) > _LISTED)
    return [f"{len(renamed):,} of {count:,} rows are renamings of training's: rows {first}"]


def look_at_tests(
    rows: Iterable[Mapping[str, Any]],
    finder: NameFinder,
    tokenizer: Any,
    training: TrainingFacts | None = None,
    renamed: Sequence[int] | None = None,
) -> FirstLook:
    """Look at rows as evaluation takes them, before a model answers.

    Args:
        rows: with `problem`, and `answer` if there is one.
        tokenizer: that of the model; gets symbols for as many names as a row has.
        training: what the model's training data was like.
        renamed: as for `FirstLook`.
    """
    look = FirstLook(finder, "test", new_names=True, training=training, renamed=renamed)
    pairs = look.add((row["problem"], row.get("answer") or "") for row in rows)
    lacking = {
        name: most - tokenizer.symbol_classes[name]
        for name, (_, most) in look.facts.names.items()
        if most > tokenizer.symbol_classes.get(name, most)
    }
    if lacking:
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.extend_symbols(lacking)
    with suppress(ValueError):  # of symbols that are words, names may be others
        look.add_tokens(pairs, tokenizer)
    return look


def _count(counter: Counter[str], words: Iterable[str]) -> None:
    for word in words:
        if word in counter or len(counter) < _KEPT:
            counter[word] += 1


def _sum(numbers: Counter[int]) -> int:
    return sum(number * count for number, count in numbers.items())


def _shown(text: MarkedText) -> str:
    """Return a text with its names and their classes between « and », in one line."""
    marked = "".join(
        part if span is None else f"{part}«{text[span.start : span.stop]}: {span.symbol_class}»"
        for part, span in parts(text, text.spans)
    )
    line = " ".join(marked.split())
    return line if len(line) <= _LENGTH else line[: _LENGTH - 1] + "…"
