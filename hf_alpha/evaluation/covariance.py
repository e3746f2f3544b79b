"""Alpha-covariance: is a model's answer the same whatever interchangeable names are called?

Equation 2 of 2601.23169 (Section 5.1.1), after 2410.17161: for one sample let P be its renamings
and U the set of predictions with the renamings undone; its alpha-covariance is
`1 - (|U| - 1) / (|P| - 1)`. `names` says what a name is: any model that generates will do.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha.evaluation.names import (
    Renamer,
    Renamings,
    RuledNames,
    Sample,
    Symbols,
    WordNames,
    found_by,
    names_in,
    names_of,
)
from hf_alpha.generation import check_text
from hf_alpha.io.plain_text import counted
from hf_alpha.modeling.choices import check_list, refuse
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.tasks.base import NUM_BEAMS

DEFAULT_GENERATION: dict[str, Any] = {
    "num_beams": NUM_BEAMS,
    "length_penalty": 1.0,
    "max_new_tokens": 128,
    "do_sample": False,
}
NAMELESS = "no name in any answer"
"""What is said of problems whose answers no renaming can change."""
SHOWN = 100
"""Characters of a problem in an error."""


@dataclass(frozen=True)
class CovarianceSample:
    """One sample.

    Attributes:
        num_symbols: its distinct names.
        possible: how many renamings there are, the identity included.
        renamings: how many of them were run: |P|.
        distinct: different predictions once the renamings are undone: |U|.
        raw: different predictions before that.
        named: renamings whose prediction has a name in it.
    """

    index: int
    num_symbols: int
    possible: int
    renamings: int
    distinct: int
    raw: int
    named: int

    @property
    def score(self) -> float:
        """Alpha-covariance of the sample, between 0 and 1 (equation 2)."""
        return 1 - (self.distinct - 1) / (self.renamings - 1)


@dataclass(frozen=True)
class AlphaCovariance:
    """Alpha-covariance of a model, and how much of it says nothing.

    A sample is *constant* if the model gave the same answer, letter by letter, to all its
    renamings: the answer did not follow the names. Without a name in it, it scores 1, as a right
    answer may; with names it scores the closer to 1 the more names the class has, since few
    renamings move those of the answer. So a model that ignores its input scores high, and where
    all samples are constant the score says nothing: show `constant`, and correctness, beside it.

    Attributes:
        samples: those with at least two renamings, over which the mean is taken.
        skipped: index of every other problem -> why.
        max_renamings: samples with more renamings ran a seeded sample of so many; None for all.
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

    @property
    def constant(self) -> int:
        """Number of samples with one answer to all renamings."""
        return sum(sample.raw == 1 for sample in self.samples)

    @property
    def nameless(self) -> int:
        """Number of samples with no name in any answer, constant or not."""
        return sum(sample.named == 0 for sample in self.samples)

    def __str__(self) -> str:
        """Return the mean with what has to be known beside it."""
        mean = "none" if self.mean is None else f"{self.mean:.4f}"
        reasons = Counter(self.skipped.values()).most_common()
        listed = ", ".join(f"{reason}: {count}" for reason, count in reasons)
        skipped = f", {len(self.skipped)} skipped ({listed})" if self.skipped else ""
        caveat = f"; {NAMELESS}: {self.caveat}" if self.caveat else ""
        return f"alpha-covariance {mean} over {counted(self.used, 'problem')}{skipped}{caveat}"

    @property
    def caveat(self) -> str:
        """Say how many samples are nameless; "" if none is."""
        return f"{self.nameless} of {self.used} problems" if self.nameless else ""

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
            "constant": self.constant,
            "nameless": self.nameless,
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


def by_rules(
    tokenizer: Any, task: Any, problems: Sequence[str]
) -> dict[str, list[str]] | WordNames | None:
    """Return the names of problems as alpha-covariance takes them: those that a task's rules find.

    Args:
        tokenizer: with symbols it finds names itself, and all its symbols are meant: None.
    """
    if getattr(tokenizer, "symbol_ranges", None):
        return None
    finder: NameFinder | None = getattr(task, "finder", None)
    if finder is None:
        return {}
    symbols = {kind: [*some] for kind, some in names_in(problems, finder).items()}
    bound = (span.binding for text in problems for span in finder.find(text))
    if not finder.inside and not any(bound):
        return symbols
    return RuledNames(tokenizer, symbols, finder)


def alpha_covariance(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Iterable[str],
    symbols: Symbols | WordNames | None = None,
    max_renamings: int | None = 8,
    seed: int = 0,
    generate_kwargs: Mapping[str, Any] | None = None,
    batch_size: int = 64,
    progress: bool = True,
) -> AlphaCovariance:
    """Measure how far a model's answers depend on how interchangeable names are chosen.

    A renaming takes a sample's names to distinct names of their class; P has all of them,
    V! / (V - k)! for k names in a class of V (the product over several classes), or the identity
    and a seeded sample. Each is extended to one bijection of the names, so that it can be undone in
    predictions with names that the input lacks.

    The problems of an `AlphaTokenizer` are renamed as token ids. For any other tokenizer names are
    words, problems are renamed as text before they get tokens, and answers are decoded and put back
    as text; `names.WordNames` says what a word is, and its `check` what every renamed input is
    checked for. An answer ends at `max_new_tokens`: leave room for names of many tokens.

    Inputs of one length are generated together, whatever problem and renaming they come from, the
    longest first. So nothing is padded, a tokenizer needs no padding token, and an answer does not
    depend on its neighbours. Several processes (accelerate) share the batches.

    Args:
        model: any Transformers encoder-decoder or decoder; of a decoder only the continuation
            counts. An encoder-decoder that does not say with which token answers start gets the
            padding token, as T5 does.
        symbols: interchangeable names, or class -> such names: words for most tokenizers; or class
            -> rule that finds them, `{"ring": {"rule": "smiles"}}`, or `RuledNames`. Of an
            `AlphaTokenizer` tokens of its vocabulary, by default all its symbols.
        max_renamings: at most so many for each sample, the identity included; None for all. Eight
            take seconds. The papers run all: 120 covers up to five symbols of a vocabulary of five.
        generate_kwargs: arguments of `model.generate`, over those of DEFAULT_GENERATION. Where the
            model has fewer positions than `max_new_tokens` needs, all renamings of a problem get
            what its longest leaves.

    Raises:
        FormulaError: an `AlphaTokenizer` cannot read a problem.
        ValueError: a name or a text cannot be renamed with this tokenizer; an input is longer than
            the model's positions; settings make no sense here.

    Examples:
        >>> print(alpha_covariance(model, tokenizer, ["a & !b"], max_renamings=6, progress=False))
        alpha-covariance 1.0000 over 1 problem
    """
    given = generate_kwargs or {}
    settings = {**DEFAULT_GENERATION, **given}
    refuse(
        max_renamings is not None and max_renamings < 2,
        f"max_renamings must be at least 2 or None, got {max_renamings}",
    )
    refuse(
        "max_length" in settings,
        "give max_new_tokens, which counts the answer alone, and no max_length",
    )
    refuse(
        settings["do_sample"] or settings.get("num_return_sequences", 1) != 1,
        "alpha-covariance compares single deterministic predictions: leave out do_sample and "
        "num_return_sequences",
    )
    if settings["num_beams"] == 1 and "length_penalty" not in given:
        del settings["length_penalty"]
    check_list("problems", problems)
    problems = list(problems)
    symbols = found_by(tokenizer, symbols, problems)
    renamer = Renamer(model, tokenizer, names_of(tokenizer, symbols), settings)
    names, skipped, samples = renamer.names, dict[int, str](), dict[int, Sample]()
    for index, problem in enumerate(problems):
        check_text(problem, index)
        source: Any = names.read(problem)
        if source is None:
            skipped[index] = "outside the vocabulary"
            continue
        rng = random.Random(f"{seed} {index}")
        plan = Renamings.of(names.items(source), names.classes, max_renamings, rng)
        if plan.possible < 2:
            skipped[index] = "has a single renaming" if any(plan.counts) else "has no such name"
            continue
        try:
            tables = (plan.renaming(number) for number in plan.numbers)
            samples[index] = source, plan, renamer.groups(source, tables)
        except ValueError as error:
            start = problem if len(problem) <= SHOWN else f"{problem[:SHOWN]}…"
            raise ValueError(f"problem {index}, {start!r}: {error}") from None
    answers = renamer.predict(samples, batch_size, progress)
    results = [
        CovarianceSample(
            index=index,
            num_symbols=sum(plan.counts),
            possible=plan.possible,
            renamings=len(plan.numbers),
            distinct=len({undone for _, undone in answers[index]}),
            raw=len({raw for raw, _ in answers[index]}),
            named=sum(names.has_name(raw) for raw, _ in answers[index]),
        )
        for index, (_, plan, _) in samples.items()
    ]
    return AlphaCovariance(tuple(results), skipped, max_renamings, seed)


def covariance_notes(measured: Sequence[tuple[str, AlphaCovariance]]) -> list[str]:
    """Say on how many problems and renamings it was measured: a line for each way."""
    by_limits: dict[tuple[int | None, int], list[tuple[str, AlphaCovariance]]] = {}
    for model, covariance in measured:
        limits = (covariance.max_renamings, covariance.seed)
        by_limits.setdefault(limits, []).append((model, covariance))
    notes = []
    for (limit, seed), of_models in by_limits.items():
        names = f" of {', '.join(model for model, _ in of_models)}" if len(by_limits) > 1 else ""
        notes.append(f"alpha-covariance{names}: {_measured_on(limit, seed, of_models)}")
    caveats = [
        f"{model} {covariance.caveat}" for model, covariance in measured if covariance.caveat
    ]
    return notes + ([f"{NAMELESS}: {', '.join(caveats)}"] if caveats else [])


def _measured_on(
    limit: int | None, seed: int, of_models: Sequence[tuple[str, AlphaCovariance]]
) -> str:
    """Say how many problems and renamings there were, and which models skipped some problems."""
    counts = [count for _, of_model in of_models for count in of_model.counts.values()] or [0]
    fewest, most = min(counts), max(counts)
    number = f"{most}" if fewest == most else f"{fewest} to {most}"
    renamings = f"at most {limit} renamings each (seed {seed})"
    skips = [
        f"; {model} skipped {len(of_model.skipped)} of {of_model.used + len(of_model.skipped)}"
        for model, of_model in of_models
        if of_model.skipped
    ]
    return (
        f"{number} problem{'s' * (most != 1)} a column, "
        f"{'all renamings of each' if limit is None else renamings}{''.join(skips)}"
    )
