"""The user's own pairs of texts: held out up to the renaming of names, looked at, for training."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import eq
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from datasets import Dataset, IterableDataset

from hf_alpha.io.plain_text import counted
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.first_look import (
    FirstLook,
    TrainingFacts,
    classes_of,
    fault,
    look_at_tests,
    mark,
)
from hf_alpha.names.unknown_words import TOLD
from hf_alpha.tasks import Task

from .formats import reader_of
from .keys import canonical_text, keys_beside, positions_of, problem_keys, rows_seen, save_keys
from .rows import (
    BATCH,
    AnyDataset,
    Where,
    batches,
    described,
    load,
    pairs_of,
    problems,
    problems_in,
)

DECODED = 200
"""Targets that are compared with what the tokenizer makes of them."""
DROP = ", or leave such rows out by data.drop_bad=true"
FEW = 100_000
"""Rows of a stream that are looked at before training starts."""


def read_pairs(
    settings: Any, place: Where, finder: NameFinder, preferred: str, **options: Any
) -> AnyDataset:
    """Read pairs as a recipe says, see `rows.load`.

    Args:
        settings: a recipe's `Data`, which names the columns.
        place: a path or name, or a mapping with `path`, and `config` and `split`.
        preferred: the split that is taken where none is named and the data has it.
        **options: `split`, `streaming`, `dropped` and `way_out`.
    """
    return load(
        place, source=settings.source, target=settings.target, finder=finder,
        preferred_split=preferred, encoding=settings.encoding,
        read_file=reader_of(settings.format), **options,
    )  # fmt: skip


def training_pairs(settings: Any, finder: NameFinder) -> Dataset | None:
    """Read training data of the user's own; None where it is not here."""
    place = settings.train
    if not place or not Path(place["path"] if isinstance(place, Mapping) else place).exists():
        return None
    train = read_pairs(settings, place, finder, "train")
    return train if isinstance(train, Dataset) else None


def evaluation_rows(
    dataset: AnyDataset, task: Task, max_rows: int | None = None
) -> list[dict[str, Any]]:
    """Return pairs as evaluation takes them, at most so many from the start."""
    pairs = pairs_of(dataset if max_rows is None else dataset.take(max_rows))
    return described(task, ({"problem": problem, "answer": answer} for problem, answer in pairs))


class UserPairs:
    """Training and validation pairs, held out up to renaming.

    Args:
        settings: where they are: a recipe's `Data`.
        say: is told what the pairs are like.
        has_check: answers can be right that are not the target.
        new_names: targets may have names that their sources lack.

    Attributes:
        train: with the columns of `rows.load`.
        validation: likewise; None if the recipe has none.
        first_look: of training and of what is held out of it; None before `look`.
        model_settings: none; see `hf_alpha.objectives.Examples`.

    Raises:
        ValueError: the data cannot be read, or has pairs that cannot be learned.
    """

    model_settings: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        settings: Any,
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

    def _read(self, settings: Any, place: Where, split: str, streaming: bool) -> AnyDataset:
        dropped = Counter[str]() if settings.drop_bad else None
        options = {"streaming": streaming, "dropped": dropped, "way_out": DROP}
        pairs = read_pairs(settings, place, self.finder, split, **options)
        if dropped is not None:
            pairs, reasons = drop_bad(pairs, self.finder, self._new_names)
            for reason, count in (dropped + reasons).items():
                self._say(f"{split}: {counted(count, 'pair')} dropped: {reason}")
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
        for part in [*([self.train] if training or self._new_names else []), *validation]:
            for problem, answer in pairs_of(part, "counting names"):
                source, target = mark(problem, answer if self._new_names else "", self.finder)
                classes = classes_of(source) | classes_of(target, source)
                for kind, count_in_data in Counter(classes.values()).items():
                    if self.finder.rules[kind].count is None:
                        needed_counts[kind] = max(needed_counts[kind], count_in_data)
        return {name: max(needed_counts[name] - count, 0) for name, count in counts.items()}

    def has_new_names(self) -> bool:
        """Whether a training target has a name that its source lacks."""
        marked = (mark(*pair, self.finder) for pair in pairs_of(self.train, "new names"))
        return any(classes_of(two, one).keys() - classes_of(one).keys() for one, two in marked)

    def check_symbols(self, tokenizer: Any) -> None:
        """Check that names are symbols, for a tokenizer whose symbols are words.

        Raises:
            ValueError: naming the first source in which they are not.
        """
        row = 0
        for batch in batches(self.train, "looking at symbols"):
            texts = problems(batch)
            for text, symbols in zip(texts, tokenizer(texts)["stream_ids"], strict=True):
                names = {text[start:stop] for start, stop, *_ in self.finder.find(text)}
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
        is_stored = isinstance(self._all, Dataset)
        look = FirstLook(self.finder, new_names=self._new_names)
        for batch in batches(self._all if is_stored else self._all.take(FEW), "first look"):
            look.add_tokens(look.add(zip(problems(batch), batch["answer"], strict=True)), tokenizer)
        self.first_look = look
        self._say("\n? ".join([str(look), *look.questions]))
        TOLD.update(look.unknown)
        look.check()
        self._compare_decoded(tokenizer)
        if is_stored and self.validation is not None:
            texts = problems_in(self.validation, "validation")
            if common := rows_seen(texts, self.finder, self.keys):
                self._say(
                    f"validation: {len(common):,} of its pairs are renamings of training pairs"
                )

    @cached_property
    def keys(self) -> np.ndarray:
        """What the training problems are up to renaming; of a stream, nothing."""
        stored = problems_in(self.train, "keys") if isinstance(self.train, Dataset) else ()
        return problem_keys(stored, self.finder)

    def save(self, folder: Path, checkpoint: str | None) -> None:
        """Write beside a model what its training data was like, and which problems it had.

        Args:
            checkpoint: as for `save_keys`.
        """
        if self.first_look is not None:
            self.first_look.save(folder)
        if isinstance(self.train, Dataset):
            save_keys(folder, self.keys, checkpoint)

    def _compare_decoded(self, tokenizer: Any) -> None:
        """Say which targets a tokenizer does not give back, so that no answer can be right."""
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
        for problem, answer in pairs_of(self.dataset, "vocabulary"):
            yield from mark(problem, answer, self.finder) if marked else (problem, answer)


def look_first(
    recipe: Any,
    rows: Sequence[Mapping[str, Any]],
    tokenizers: Mapping[str, tuple[str, Any]],
    seen: Mapping[str, Sequence[int] | None],
) -> dict[str, FirstLook]:
    """Look at test rows for each model that finds names in texts.

    Args:
        recipe: says how names are found.
        rows: as evaluation takes them.
        tokenizers: what a model is called -> its folder or Hub name, and its tokenizer.
        seen: what a model is called -> rows of its training, by `trained_rows`.
    """
    finding = {
        name: pair for name, pair in tokenizers.items() if isinstance(pair[1], TextTokenizer)
    }
    finder = getattr(recipe.configured_task, "finder", None)
    if not finding or finder is None:
        return {}
    return {
        name: look_at_tests(rows, finder, tokenizer, TrainingFacts.beside(place), seen[name])
        for name, (place, tokenizer) in finding.items()
    }


def trained_rows(
    recipe: Any, rows: Sequence[Mapping[str, Any]], places: Mapping[str, str]
) -> dict[str, list[int] | None]:
    """Return, for each model, the numbers of the test rows that training had under any names.

    What lies beside a model says which those are, or else the training data, where it is here and
    has at most `FEW` rows; None where nobody knows.

    Args:
        recipe: says where the training data is.
        rows: as evaluation takes them.
        places: what a model is called -> its folder or Hub name.
    """
    finder = getattr(recipe.configured_task, "finder", None)
    if finder is None:
        return dict.fromkeys(places)
    beside = {name: keys_beside(place) for name, place in places.items()}
    if any(keys is None for keys in beside.values()):
        train = training_pairs(recipe.data, finder)
        known = train is not None and len(train) <= FEW
        here = problem_keys(problems_in(train, "overlap"), finder) if known else None
        beside = {name: here if keys is None else keys for name, keys in beside.items()}
    texts = [row["problem"] for row in rows]
    return {
        name: None if keys is None else rows_seen(texts, finder, keys)
        for name, keys in beside.items()
    }


def drop_bad(
    dataset: AnyDataset, finder: NameFinder, new_names: bool = False
) -> tuple[AnyDataset, Counter[str]]:
    """Leave out the pairs that cannot be learnt; for the arguments see `fault`.

    Returns:
        The others, and reason -> how many pairs were left out.

    Raises:
        ValueError: no pair is left.
    """
    reasons = [
        reason
        for batch in batches(dataset, "dropping")
        for reason in _reasons(batch, finder, new_names)
    ]
    counts = Counter(reason for reason in reasons if reason is not None)
    if counts.total() == len(reasons):
        listing = ", ".join(f"{count:,}: {reason}" for reason, count in counts.items())
        raise ValueError(f"no pair is left of the data ({listing or 'it is empty'})")
    if not counts:
        return dataset, counts
    if isinstance(dataset, Dataset):
        good = [row for row, reason in enumerate(reasons) if reason is None]
        return dataset.select(good), counts
    are_good = partial(_are_good, finder=finder, new_names=new_names)
    return dataset.filter(are_good, batched=True, batch_size=BATCH), counts


def _are_good(batch: Mapping[str, Sequence[Any]], **options: Any) -> list[bool]:
    return [reason is None for reason in _reasons(batch, **options)]


def _reasons(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, new_names: bool
) -> list[str | None]:
    pairs = zip(problems(batch), batch["answer"], strict=True)
    faults = (fault(mark(*pair, finder), finder, new_names) for pair in pairs)
    return [None if one is None else one[0] for one in faults]


def hold_out(
    dataset: AnyDataset, share: float, finder: NameFinder, seed: int = 0
) -> tuple[AnyDataset, AnyDataset]:
    """Return the rows to train on and those to validate with.

    Rows whose problems are equal up to renaming are on the same side. A hash of the problem and the
    seed says on which one: neither other rows nor their order matter.

    Args:
        dataset: of `rows.load`.
        share: of the problems that are held out, between 0 and 1.

    Raises:
        ValueError: one side is empty (of a streaming dataset, that is not noticed).
    """
    if isinstance(dataset, IterableDataset):
        sides = [
            partial(_on_side, finder=finder, share=share, seed=seed, held_out=held_out)
            for held_out in (False, True)
        ]
        train, validation = (dataset.filter(side, batched=True, batch_size=BATCH) for side in sides)
        return train, validation
    keys = (canonical_text(text, finder) for text in problems_in(dataset, "holding out"))
    return hold_out_keys(dataset, share, seed, keys)


def hold_out_keys(
    dataset: Dataset, share: float, seed: int, keys: Iterable[str]
) -> tuple[Dataset, Dataset]:
    """Return the rows to train on and those to validate with; rows of one key stay together.

    Args:
        dataset: all of them; `share` and `seed` are those of `hold_out`.
        keys: what each row counts as.

    Raises:
        ValueError: one side is empty.
    """
    positions = positions_of(keys, seed)
    is_held = positions < share
    if is_held.all() or not is_held.any():
        raise ValueError(
            f"{is_held.sum():,} of {len(is_held):,} rows are held out by a share of {share}: up to "
            f"renaming, they have only {len(np.unique(positions)):,} different problems; give "
            "another share, more problems, or a file to validate with"
        )
    return dataset.select(np.flatnonzero(~is_held)), dataset.select(np.flatnonzero(is_held))


def _on_side(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, share: float, seed: int, held_out: bool
) -> list[bool]:
    texts = (canonical_text(text, finder) for text in problems(batch))
    return ((positions_of(texts, seed) < share) == held_out).tolist()
