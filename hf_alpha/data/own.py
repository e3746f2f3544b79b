"""The user's own pairs, as a recipe names them: training and validation, a first look, a test."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from operator import eq
from typing import Any, Protocol

from datasets import Dataset

from hf_alpha.modeling.names_in_text import MarkedText, NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks import Task

from .first_look import FirstLook, drop_bad, look
from .pairs import batches, hold_out, overlap, problems, read_pairs
from .rows import AnyDataset, Where

DECODED = 200
"""Targets that are compared with what the tokenizer makes of them."""
FEW = 100_000
"""Rows of a stream that are looked at before training starts."""


class Columns(Protocol):
    """How the user's own data is read; see `hf_alpha.recipe.Data`."""

    source: str
    target: str
    encoding: str | None


class OwnSettings(Columns, Protocol):
    """What a recipe says of the user's own pairs; see `hf_alpha.recipe.Data`."""

    train: Any
    validation: Any
    drop_bad: bool
    streaming: bool


class OwnPairs:
    """Training and validation pairs, held out up to renaming.

    Args:
        settings: where they are.
        finder: the rules by which names are found.
        seed: of what is held out.
        say: is told what the pairs are like.
        same: whether an answer is the target.
        has_check: answers can be right that are not the target.
        new_names: targets may have names that their sources lack.

    Attributes:
        train: with the columns `problem` and `answer`, and `spans` where a rule needs it.
        validation: likewise; None if the recipe has none.
        first_look: what `look` found; None before.

    Raises:
        ValueError: the data cannot be read, or has pairs that cannot be learned.
    """

    def __init__(
        self,
        settings: OwnSettings,
        finder: NameFinder,
        seed: int = 0,
        say: Callable[[str], object] = print,
        same: Callable[[str, str], bool] = eq,
        has_check: bool = False,
        new_names: bool = False,
    ):
        self._new_names = new_names
        self.finder, self._say = finder, say
        self._same, self._has_check = same, has_check
        pairs = self._read(settings, settings.train, "train", settings.streaming)
        self._all = self.train = pairs
        self._tokenizers: dict[str, TextTokenizer] = {}
        self.first_look: FirstLook | None = None
        self.validation: AnyDataset | None = None
        share = settings.validation
        if isinstance(share, int | float):
            self.train, self.validation = hold_out(pairs, share, finder, seed)
        elif share:
            self.validation = self._read(settings, share, "validation", False)

    def _read(self, settings: OwnSettings, place: Where, split: str, streaming: bool) -> AnyDataset:
        pairs = read_own(settings, place, self.finder, split, streaming=streaming)
        if settings.drop_bad:
            pairs, dropped = drop_bad(pairs, self.finder, self._new_names)
            for reason, count in dropped.items():
                self._say(f"{split}: {count:,} pairs dropped: {reason}")
        return pairs

    def lacking(self, counts: Mapping[str, int], training: bool = False) -> dict[str, int]:
        """Return how many symbols are needed beyond those that there are, class by class.

        A class whose rule has a `count` needs as many, any other as many as a row has names.

        Args:
            counts: class -> symbols that there are.
            training: look at training too, and not at validation only.
        """
        needed_counts = {name: self.finder.rules[name].count or 0 for name in counts}
        validation = [self.validation] if isinstance(self.validation, Dataset) else []
        parts = [*([self.train] if training or self._new_names else []), *validation]
        for batch in chain(*(batches(part, "counting names") for part in parts)):
            for problem, answer in zip(problems(batch), batch["answer"], strict=True):
                names = self._names(problem, answer)
                for kind, count_in_data in Counter(kind for kind, _ in names).items():
                    if self.finder.rules[kind].count is None:
                        needed_counts[kind] = max(needed_counts[kind], count_in_data)
        return {name: max(needed_counts[name] - count, 0) for name, count in counts.items()}

    def _names(self, problem: str, answer: str) -> set[tuple[str, str]]:
        """Return class and name of those that a pair needs symbols for."""
        spans = self.finder.find(problem)
        names = {(kind, problem[start:stop]) for start, stop, kind in spans}
        if self._new_names:
            classes = {name: kind for kind, name in names}
            spans = self.finder.find(answer, classes)
            names |= {(kind, answer[start:stop]) for start, stop, kind in spans}
        return names

    def check_symbols(self, tokenizer: Any) -> None:
        """Check that names are symbols, for a tokenizer whose symbols are words.

        Raises:
            ValueError: naming the first source in which they are not.
        """
        row = 0
        for batch in batches(self.train, "looking at symbols"):
            texts = problems(batch)
            for text, symbols in zip(texts, tokenizer(texts)["stream_ids"], strict=True):
                names = {text[start:stop] for start, stop, _ in self.finder.find(text)}
                if len(names) != len(symbols):
                    tokens = " ".join(tokenizer.convert_ids_to_tokens(symbols)) or "none"
                    raise ValueError(
                        f"training pair {row}: the rules find {len(names)} names "
                        f"({', '.join(sorted(names))}), but the symbols among its tokens are: "
                        f"{tokens}. Have the rules list the checkpoint's symbols, or convert the "
                        "model again with symbols that take any name (hf-alpha convert --symbols)"
                    )
                row += 1

    @property
    def texts(self) -> Iterable[str]:
        """Sources and targets of the training pairs, with names marked where a rule needs it."""
        return PairTexts(self.train, self.finder)

    def new_tokenizer(self, kind: str) -> TextTokenizer:
        """Return a tokenizer made from the training pairs, with symbols for all of a row.

        Args:
            kind: as `tokenizer` in a recipe.
        """
        if kind not in self._tokenizers:
            tokenizer = TextTokenizer.from_texts(self.texts, self.finder.rules, kind)
            tokenizer.extend_symbols(self.lacking(tokenizer.symbol_classes))
            self._tokenizers[kind] = tokenizer
        return copy.deepcopy(self._tokenizers[kind])  # models extend theirs

    def look(self, tokenizer: Any) -> None:
        """Say what the pairs are like, those held out included; once, whoever asks again.

        Raises:
            ValueError: some of them cannot be learned, or their names cannot be found.
        """
        if self.first_look is not None:
            return
        limit = None if isinstance(self.train, Dataset) else FEW
        self.first_look = look(self._all, self.finder, tokenizer, limit, self._new_names)
        self._say(str(self.first_look))
        self.first_look.refuse_bad()
        self._compare_decoded(tokenizer)
        is_counted = self.validation is not None and limit is None
        if is_counted and (common := overlap(self.train, self.validation, self.finder)):
            self._say(f"validation: {common:,} of its pairs are renamings of training pairs")

    def _compare_decoded(self, tokenizer: Any) -> None:
        """Say which targets a tokenizer does not give back, so that no answer can be right.

        Raises:
            ValueError: it gives none of them back.
        """
        batch = next(iter(self.train.iter(batch_size=DECODED)))
        texts, targets = problems(batch), batch["answer"]
        labels = tokenizer(texts, text_target=targets, allow_absent_symbols=True)
        names = labels.names
        if self._new_names:  # those of the targets are more
            names = tokenizer(text_target=targets, names=names, allow_absent_symbols=True).names
        decoded = tokenizer.batch_decode(labels["labels"], names=names)
        lost = [pair for pair in zip(targets, decoded, strict=True) if not self._same(*pair)]
        if lost:
            message = (
                f"{len(lost)} of the first {len(targets)} targets do not come back from the "
                f"tokenizer: {lost[0][0]!r} becomes {lost[0][1]!r}; an answer can never be right "
                "there. Take another tokenizer, or a check of your own"
            )
            if len(lost) == len(targets) and not self._has_check:
                raise ValueError(message)
            self._say(message)


class PairTexts:
    """Sources and targets of a dataset; can be read several times."""

    def __init__(self, dataset: AnyDataset, finder: NameFinder):
        self.dataset, self.finder = dataset, finder

    def __iter__(self) -> Iterator[str]:
        marked = any(rule.column or rule.function for rule in self.finder.rules.values())
        for batch in batches(self.dataset, "vocabulary"):
            for problem, answer in zip(problems(batch), batch["answer"], strict=True):
                yield problem
                yield self._marked(problem, answer) if marked else answer

    def _marked(self, problem: str, answer: str) -> MarkedText:
        spans = self.finder.find(problem)
        classes = {problem[start:stop]: kind for start, stop, kind in spans}
        return MarkedText(answer, self.finder.find(answer, classes))


def read_own(
    settings: Columns,
    place: Where,
    finder: NameFinder,
    preferred: str,
    split: str | None = None,
    streaming: bool = False,
) -> AnyDataset:
    """Read pairs that a recipe names.

    Args:
        settings: the recipe's.
        place: a path or name, or a mapping with `path`, and `config` and `split`.
        finder: the recipe's rules for names.
        preferred: the split that is taken where none is named and the data has it.
        split: the split that is asked for.
        streaming: read rows when they are asked for.
    """
    return read_pairs(
        place,
        source=settings.source,
        target=settings.target,
        finder=finder,
        split=split,
        preferred_split=preferred,
        streaming=streaming,
        encoding=settings.encoding,
    )


def own_rows(dataset: AnyDataset, task: Task, max_rows: int | None = None) -> list[dict[str, Any]]:
    """Return rows as evaluation takes them: problem, answer, number of symbols and size.

    Args:
        dataset: by `read_own`.
        task: that finds the names.
        max_rows: rows that are taken, from the start.
    """
    rows: list[dict[str, Any]] = []
    for batch in batches(dataset if max_rows is None else dataset.take(max_rows), "reading"):
        for problem, answer in zip(problems(batch), batch["answer"], strict=True):
            tokens = task.parse(problem)
            rows.append({
                "problem": problem,
                "answer": answer,
                "num_symbols": len(task.symbols_in(tokens)),
                "size": len(tokens),
            })  # fmt: skip
    return rows


__all__ = ["OwnPairs", "PairTexts", "own_rows", "read_own"]
