"""What test data has that training data had not: said before a model answers."""

import copy
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from hf_alpha.folders import read_json, write_text
from hf_alpha.modeling.names_in_text import NameFinder

from .first_look import FirstLook, look_at_rows

FIRST_LOOK_FILE = "first_look.json"
"""Beside a trained model: what its training data was like, in numbers."""
SIDES = ("source", "target")


@dataclass(frozen=True)
class TrainingFacts:
    """What the training data of a model was like.

    Attributes:
        rows: how many there were.
        names: class -> fewest and most names of it in a source.
        longest: "source", "target" -> most tokens.
    """

    rows: int
    names: Mapping[str, tuple[int, int]]
    longest: Mapping[str, int]

    @classmethod
    def of(cls, look: FirstLook) -> "TrainingFacts":
        """Take the numbers from a first look at training data."""
        names = {name: (counts.fewest, counts.most) for name, counts in look.classes.items()}
        return cls(look.rows, names, {side: look.longest[side][1] for side in SIDES})

    @classmethod
    def beside(cls, model: str) -> "TrainingFacts | None":
        """Read what training has left beside a model; None where there is nothing.

        Args:
            model: folder or Hub name.
        """
        place = cached_file(
            str(Path(model).expanduser()), FIRST_LOOK_FILE,
            _raise_exceptions_for_missing_entries=False, _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_connection_errors=False,
        )  # fmt: skip
        if place is None:
            return None
        facts = read_json(Path(place), "rows", "names", "longest")
        names = {name: (fewest, most) for name, (fewest, most) in facts["names"].items()}
        return cls(facts["rows"], names, facts["longest"])

    def notes(self, text: str, finder: NameFinder) -> list[str]:
        """Return what the names of one text are beside those of training; nothing for as many."""
        counts = Counter(kind for kind, _ in {(s[2], text[s[0] : s[1]]) for s in finder.find(text)})
        found = []
        for name, (fewest, most) in self.names.items():
            if fewest and not counts[name]:
                found.append(f"no {name} is found in it, and every text of training had {fewest}")
            elif counts[name] > most:
                found.append(f"{counts[name]} names of class {name}; training had {most} at most")
        return found

    def save(self, folder: Path) -> None:
        """Write the file beside a model."""
        write_text(folder / FIRST_LOOK_FILE, json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True)
class LookAtTests:
    """A first look at test data; as a string, what a user wants to see before answers.

    Attributes:
        look: what the rows are like.
        rules: class -> its rule, as text.
        training: what training was like; None if that is not known.
        renamed: rows whose source is, names aside, one of training; None if that is not known.
    """

    look: FirstLook
    rules: Mapping[str, str]
    training: TrainingFacts | None = None
    renamed: int | None = None

    def __str__(self) -> str:
        look, training = self.look, self.training
        lines = [("test", f"{look.rows:,} rows")]
        for name, counts in look.classes.items():
            mean = counts.total / max(look.rows, 1)
            text = (
                f"{counts.fewest} / {mean:.1f} / {counts.most} names in a source (min / mean / max)"
            )
            if training is not None and name in training.names:
                text += "; in training {} to {}".format(*training.names[name])
            lines.append((name, text))
        if look.classes:
            lines.append(("nameless", f"{look.nameless:,} of {look.rows:,} sources"))
        sizes = "; ".join(f"{side} {look.longest[side][1]:,} tokens" for side in SIDES)
        if training is not None:
            sizes += "; in training {source:,} and {target:,}".format(**training.longest)
        if look.tokens[0]:
            lines.append(("longest", sizes))
        words = ", ".join(f"{word!r} ({n:,})" for word, n in look.unknown.most_common(5))
        unknown = f"{look.tokens[1]:,} of {look.tokens[0]:,} tokens"
        if look.tokens[0]:
            lines.append(("unknown", f"{unknown}: {words}" if words else unknown))
        if self.renamed is not None:
            lines.append(("renamings", f"{self.renamed:,} sources are renamings of training's"))
        width = max(len(head) for head, _ in lines)
        return "\n".join(f"{head:<{width}}  {text}" for head, text in lines)

    @property
    def warnings(self) -> list[str]:
        """What stands above a table: why answers may be wrong for another reason than the model."""
        found = [*self._nameless(), *self._more(), *self._longer()]
        unknown, tokens = self.look.tokens[1], self.look.tokens[0]
        if unknown:
            words = ", ".join(repr(word) for word, _ in self.look.unknown.most_common(3))
            shown = f": {words}" if words else ""
            found.append(f"{unknown:,} of {tokens:,} tokens are unknown to the model{shown}")
        if self.renamed:
            found.append(f"{self.renamed:,} of {self.look.rows:,} rows are renamings of training's")
        return found

    def _nameless(self) -> list[str]:
        return [
            f"no {name} in {counts.nameless:,} of {self.look.rows:,} rows: are names written as in "
            f"training? The rule is {self.rules[name]}"
            for name, counts in self.look.classes.items()
            if name in self.look.sought and 2 * counts.nameless > self.look.rows
        ]

    def _more(self) -> list[str]:
        if self.training is None:
            return []
        found = []
        for name, counts in self.look.classes.items():
            _, most = self.training.names.get(name, (0, counts.most))
            if rows := _beyond(counts.counts, most):
                found.append(
                    f"more names of class {name} than the {most} that training had at most in "
                    f"{rows:,} of {self.look.rows:,} rows, up to {counts.most}"
                )
        return found

    def _longer(self) -> list[str]:
        if self.training is None:
            return []
        found = []
        for side in SIDES:
            most, lengths = self.training.longest[side], self.look.lengths[side]
            if most and (rows := _beyond(lengths, most)):
                found.append(
                    f"longer {side}s than the {most:,} tokens that training had at most in "
                    f"{rows:,} of {self.look.rows:,} rows, up to {max(lengths):,}"
                )
        return found


def look_at_tests(
    rows: Sequence[Mapping[str, Any]],
    finder: NameFinder,
    tokenizer: Any,
    training: TrainingFacts | None = None,
    renamed: int | None = None,
) -> LookAtTests:
    """Look at rows as evaluation takes them, before a model answers.

    Args:
        rows: with `problem`, and `answer` if there is one.
        finder: the rules by which names are found.
        tokenizer: that of the model.
        training: what its training data was like.
        renamed: see `LookAtTests`.
    """
    rules = {name: str(rule.to_dict()) for name, rule in finder.rules.items()}
    look = look_at_rows(rows, finder, None)
    with suppress(ValueError):  # of symbols that are words, names may be others
        look = look_at_rows(rows, finder, _with_symbols(tokenizer, look))
    return LookAtTests(look, rules, training, renamed)


def _with_symbols(tokenizer: Any, look: FirstLook) -> Any:
    """Return a tokenizer that has symbols for as many names as a row has."""
    present: Mapping[str, int] = tokenizer.symbol_classes
    lacking = {
        name: counts.most - present[name]
        for name, counts in look.classes.items()
        if name in present and counts.most > present[name]
    }
    if not lacking:
        return tokenizer
    larger = copy.deepcopy(tokenizer)
    larger.extend_symbols(lacking)
    return larger


def _beyond(counts: Counter[int], most: int) -> int:
    """Return how many rows have more."""
    return sum(rows for number, rows in counts.items() if number > most)


__all__ = ["FIRST_LOOK_FILE", "LookAtTests", "TrainingFacts", "look_at_tests"]
