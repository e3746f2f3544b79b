"""Alpha-covariance: is a model's answer the same whatever interchangeable tokens are called?

Equation 2 of 2601.23169 (Section 5.1.1), after 2410.17161: for one sample let P be its renamings
and U the set of predictions with the renamings undone; its alpha-covariance is
`1 - (|U| - 1) / (|P| - 1)`. All of it happens on token ids, so any model that generates will do.
"""

import inspect
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Any

import torch
from tqdm.auto import tqdm

from hf_alpha.evaluation.generation import encode_problem, evaluation_mode
from hf_alpha.evaluation.processes import gather, process_state, split

Symbols = Sequence[str] | Mapping[str, Sequence[str]]
Ids = tuple[int, ...]
Features = dict[str, list[int]]

DEFAULT_GENERATION: dict[str, Any] = {
    "num_beams": 3,
    "length_penalty": 1.0,
    "max_new_tokens": 128,
    "do_sample": False,
}
RENAMED_KEYS = ("input_ids", "stream_ids")


@dataclass(frozen=True)
class CovarianceSample:
    """One sample.

    Attributes:
        index: its place among the problems.
        num_symbols: its distinct interchangeable tokens.
        possible: how many renamings there are, the identity included.
        renamings: how many of them were run: |P|.
        distinct: different predictions once the renamings are undone: |U|.
    """

    index: int
    num_symbols: int
    possible: int
    renamings: int
    distinct: int

    @property
    def score(self) -> float:
        """Equation 2."""
        return 1 - (self.distinct - 1) / (self.renamings - 1)


@dataclass(frozen=True)
class AlphaCovariance:
    """Alpha-covariance of a model. A constant answer scores 1: show correctness beside it.

    Attributes:
        samples: those with at least two renamings, over which the mean is taken.
        skipped: index of every other problem -> why.
        max_renamings: samples with more renamings ran a seeded sample of so many; None for all.
        seed: of that sample.
    """

    samples: tuple[CovarianceSample, ...]
    skipped: Mapping[int, str]
    max_renamings: int | None
    seed: int

    @property
    def mean(self) -> float | None:
        """Mean over the samples; None without any."""
        return fmean(sample.score for sample in self.samples) if self.samples else None

    @property
    def used(self) -> int:
        """Number of samples in the mean."""
        return len(self.samples)

    @property
    def sampled(self) -> int:
        """Number of samples that had more renamings than were run."""
        return sum(sample.renamings < sample.possible for sample in self.samples)

    @cached_property
    def counts(self) -> dict[int, int]:
        """Number of symbols -> samples that have so many."""
        return Counter(sample.num_symbols for sample in self.samples)

    @cached_property
    def by_num_symbols(self) -> dict[int, float]:
        """Number of symbols -> mean over the samples that have so many."""
        groups: dict[int, list[float]] = {}
        for sample in self.samples:
            groups.setdefault(sample.num_symbols, []).append(sample.score)
        return {count: fmean(groups[count]) for count in sorted(groups)}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data, the mean included."""
        return {
            "mean": self.mean,
            "used": self.used,
            "sampled": self.sampled,
            "max_renamings": self.max_renamings,
            "seed": self.seed,
            "samples": [{**asdict(sample), "score": sample.score} for sample in self.samples],
            "skipped": {str(index): reason for index, reason in self.skipped.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AlphaCovariance":
        """Undo `to_dict`, also after JSON."""
        rows = [{k: v for k, v in row.items() if k != "score"} for row in data["samples"]]
        return cls(
            tuple(CovarianceSample(**row) for row in rows),
            {int(index): reason for index, reason in data["skipped"].items()},
            data["max_renamings"],
            data["seed"],
        )


def alpha_covariance(
    model: Any,
    tokenizer: Any,
    problems: Iterable[str],
    symbols: Symbols | None = None,
    max_renamings: int | None = 120,
    seed: int = 0,
    generate_kwargs: Mapping[str, Any] | None = None,
    batch_size: int = 64,
    progress: bool = True,
) -> AlphaCovariance:
    """Measure how far a model's answers depend on how interchangeable tokens are named.

    A renaming takes a sample's symbols to distinct tokens of their class; P has all of them,
    V! / (V - k)! for k symbols in a class of V (the product over several classes), or the identity
    and a seeded sample. Each is extended to one bijection of the vocabulary, so that it can be
    undone in predictions with symbols that the input lacks. Renamings of samples alike in length
    and symbols are generated together, without padding; several processes (accelerate) share them.

    Args:
        model: any Transformers encoder-decoder or decoder; of a decoder only the continuation
            counts.
        tokenizer: the one that belongs to it.
        problems: inputs, or prompts.
        symbols: interchangeable tokens as they stand in the vocabulary, or class -> such tokens. By
            default all symbols of an `AlphaTokenizer`.
        max_renamings: at most so many for each sample, the identity included; None for all. The
            papers run all: 120 covers up to five symbols of a vocabulary of five.
        seed: of the choice of renamings.
        generate_kwargs: arguments of `model.generate`, over those of DEFAULT_GENERATION.
        batch_size: renamed inputs in a batch.
        progress: show a progress bar.

    Raises:
        FormulaError: an `AlphaTokenizer` cannot read a problem.
        ValueError: an interchangeable token is not one token, is given twice, or settings that make
            no sense here.
    """
    if max_renamings is not None and max_renamings < 2:
        raise ValueError(f"max_renamings must be at least 2 or None, got {max_renamings}")
    settings = _generation_settings(generate_kwargs)
    classes = symbol_ids(tokenizer, symbols)
    problems, skipped, plans = list(problems), {}, {}
    for index, problem in enumerate(problems):
        features = _encode(tokenizer, problem)
        if features is None:
            skipped[index] = "outside the vocabulary"
            continue
        plan = _Plan.of(features, classes, max_renamings, random.Random(f"{seed} {index}"))
        if plan.possible < 2:
            skipped[index] = "has a single renaming"
        else:
            plans[index] = plan
    predictions = _predict(model, tokenizer, plans, settings, batch_size, progress)
    samples = tuple(
        CovarianceSample(
            index, plan.num_symbols, plan.possible, len(plan.numbers), len(predictions[index])
        )
        for index, plan in plans.items()
    )
    return AlphaCovariance(samples, skipped, max_renamings, seed)


def symbol_ids(tokenizer: Any, symbols: Symbols | None = None) -> list[list[int]]:
    """Return the ids of the interchangeable tokens of each class.

    Raises:
        ValueError: a token is not one token of the vocabulary, or is given twice.
    """
    if symbols is None:
        ranges = getattr(tokenizer, "symbol_ranges", None)
        if not ranges:
            raise ValueError(
                "give `symbols`: this tokenizer does not say which are interchangeable"
            )
        return [[i for pair in pairs for i in range(*pair)] for pairs in ranges.values()]
    if isinstance(symbols, str):
        raise ValueError(f"`symbols` is the string {symbols!r}: give a list of tokens")
    classes = list(symbols.values()) if isinstance(symbols, Mapping) else [symbols]
    vocabulary = tokenizer.get_vocab()
    ids = [[_token_id(tokenizer, vocabulary, token) for token in tokens] for tokens in classes]
    owner: dict[int, str] = {}
    for token, index in zip(chain(*classes), chain(*ids), strict=True):
        if index in owner:
            raise ValueError(f"symbols {owner[index]!r} and {token!r} are the same token")
        owner[index] = token
    return ids


def _token_id(tokenizer: Any, vocabulary: Mapping[str, int], token: str) -> int:
    if token in vocabulary:
        return vocabulary[token]
    pieces = tokenizer.tokenize(token)
    if len(pieces) == 1 and pieces[0] in vocabulary and pieces[0] != tokenizer.unk_token:
        return vocabulary[pieces[0]]
    raise ValueError(
        f"symbol {token!r} is not a single token of the vocabulary but {pieces}: choose symbols "
        "that are, written as in tokenizer.get_vocab() (a leading space is often part of the token)"
    )


@dataclass(frozen=True)
class _Plan:
    """The renamings of one sample.

    Attributes:
        features: what the tokenizer made of it.
        classes: ids of each class, those of the sample first, by first occurrence.
        counts: how many of each class the sample has.
        numbers: the renamings that are run; 0 is the identity.
    """

    features: Features
    classes: list[list[int]]
    counts: list[int]
    possible: int
    numbers: list[int]

    @classmethod
    def of(
        cls,
        features: Features,
        classes: Sequence[Sequence[int]],
        limit: int | None,
        rng: random.Random,
    ) -> "_Plan":
        """Find the sample's symbols and choose its renamings."""
        ordered, counts = [], []
        for ids in classes:
            members = set(ids)
            own = [i for i in dict.fromkeys(features["input_ids"]) if i in members]
            ordered.append(own + [i for i in ids if i not in set(own)])
            counts.append(len(own))
        possible = math.prod(math.perm(len(c), k) for c, k in zip(ordered, counts, strict=True))
        return cls(features, ordered, counts, possible, _choose(possible, limit, rng))

    @property
    def num_symbols(self) -> int:
        return sum(self.counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples of one shape make batches without padding."""
        return tuple(len(values) for values in self.features.values())

    def renaming(self, number: int) -> dict[int, int]:
        """Return renaming `number` as id -> id; ids not in it stay.

        It is a bijection: a chain x -> y -> z that starts at x and leaves the sample's symbols at z
        is closed by z -> x.
        """
        table: dict[int, int] = {}
        for ids, count in zip(self.classes, self.counts, strict=True):
            free = list(ids)
            for symbol in ids[:count]:
                number, choice = divmod(number, len(free))
                table[symbol] = free.pop(choice)
        origin = {new: old for old, new in table.items()}
        for end in origin.keys() - table.keys():
            start = end
            while start in origin:
                start = origin[start]
            table[end] = start
        return table


def _choose(possible: int, limit: int | None, rng: random.Random) -> list[int]:
    """Return all renamings, or the identity and a sample without repetition."""
    if limit is None or possible <= limit:
        return list(range(possible))
    chosen = {0: None}
    while len(chosen) < limit:
        chosen[rng.randrange(1, possible)] = None
    return list(chosen)


def _encode(tokenizer: Any, problem: str) -> Features | None:
    if hasattr(tokenizer, "symbol_ranges"):  # not by class: code from the Hub has its own
        encoding = encode_problem(tokenizer, problem)
    else:
        # What GPT-2 makes of token types that are all 0 is not what it makes of none.
        encoding = tokenizer(problem, return_token_type_ids=False)
    return None if encoding is None else {key: list(value) for key, value in encoding.items()}


def _generation_settings(given: Mapping[str, Any] | None) -> dict[str, Any]:
    settings = {**DEFAULT_GENERATION, **(given or {})}
    if settings["num_beams"] == 1 and "length_penalty" not in (given or {}):
        del settings["length_penalty"]
    if settings["do_sample"] or settings.get("num_return_sequences", 1) != 1:
        raise ValueError(
            "alpha-covariance compares single deterministic predictions: leave out do_sample and "
            "num_return_sequences"
        )
    return settings


def _predict(
    model: Any,
    tokenizer: Any,
    plans: Mapping[int, _Plan],
    settings: dict[str, Any],
    batch_size: int,
    progress: bool,
) -> dict[int, set[Ids]]:
    """Return for each sample its set U: the different predictions, renamings undone."""
    state = process_state()
    batches = split(list(_batches(plans, batch_size)), state)
    found: list[tuple[int, Ids]] = []
    total = sum(map(len, batches))
    with (
        evaluation_mode(model),
        tqdm(total=total, desc="alpha-covariance", disable=not progress) as bar,
    ):
        for batch in batches:
            tables = [plans[index].renaming(number) for index, number in batch]
            rows = [_rename(plans[i].features, t) for (i, _), t in zip(batch, tables, strict=True)]
            outputs = _generate(model, tokenizer, rows, settings)
            for (index, _), renaming, output in zip(batch, tables, outputs, strict=True):
                undo = {new: old for old, new in renaming.items()}
                found.append((index, tuple(undo.get(i, i) for i in output)))
            bar.update(len(batch))
    distinct: dict[int, set[Ids]] = {index: set() for index in plans}
    for index, prediction in gather(found, state):
        distinct[index].add(prediction)
    return distinct


def _batches(plans: Mapping[int, _Plan], size: int) -> Iterator[list[tuple[int, int]]]:
    """Batches of (sample, renaming), all of one shape."""
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for index, plan in plans.items():
        groups.setdefault(plan.shape, []).extend((index, number) for number in plan.numbers)
    for shape in sorted(groups, reverse=True):
        jobs = groups[shape]
        yield from (jobs[start : start + size] for start in range(0, len(jobs), size))


def _rename(features: Features, renaming: Mapping[int, int]) -> Features:
    return {
        key: [renaming.get(i, i) for i in values] if key in RENAMED_KEYS else values
        for key, values in features.items()
    }


def _generate(
    model: Any, tokenizer: Any, rows: Sequence[Features], settings: dict[str, Any]
) -> list[Ids]:
    """Return the predicted ids of rows of one shape, without what comes before and after them."""
    accepted = inspect.signature(model.forward).parameters
    batch = {
        key: torch.tensor([row[key] for row in rows], device=model.device)
        for key in rows[0]
        if key in accepted or key in ("input_ids", "attention_mask")
    }
    width = 1 if model.config.is_encoder_decoder else len(rows[0]["input_ids"])
    end, pad = _end_and_pad(model, tokenizer)
    if "pad_token_id" not in settings and pad is not None:
        settings = {**settings, "pad_token_id": pad}
    with torch.inference_mode():
        output = model.generate(**batch, **settings)
    return [_until_end(row, end, pad) for row in output[:, width:].tolist()]


def _end_and_pad(model: Any, tokenizer: Any) -> tuple[set[int], int | None]:
    chosen = getattr(model, "generation_config", None) or model.config
    end = chosen.eos_token_id if chosen.eos_token_id is not None else tokenizer.eos_token_id
    ends = {end} if isinstance(end, int) else set(end or ())
    pad = chosen.pad_token_id if chosen.pad_token_id is not None else tokenizer.pad_token_id
    return ends, min(ends) if pad is None and ends else pad


def _until_end(ids: Sequence[int], end: set[int], pad: int | None) -> Ids:
    stop = next((position for position, i in enumerate(ids) if i in end), len(ids))
    while stop and ids[stop - 1] == pad and pad not in end:
        stop -= 1
    return tuple(ids[:stop])


__all__ = ["AlphaCovariance", "CovarianceSample", "alpha_covariance", "symbol_ids"]
