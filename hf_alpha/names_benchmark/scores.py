"""Scores of the benchmark: right answers by kind of names, and what renamings change.

Question q is asked n_k times with names of each kind k; the first time with names of kind `seen` is
its *reference*. Let a(q, k, i) be the answer, its names put back (no answer is an answer as well,
whatever the reason), and c(q, k, i) be 1 if it is right, else 0; a(q) and c(q) are those of the
reference. Over all pairs (q, i) of a kind k without the reference, `mean` is

    changed(k) = mean [a(q, k, i) != a(q)]
    broken(k)  = mean [c(q) = 1 and c(q, k, i) = 0]      from right to wrong
    mended(k)  = mean [c(q) = 0 and c(q, k, i) = 1]      from wrong to right

and right(k) is the mean of c(q, k, i) over all pairs, the reference included. For all kinds but
`seen`, exactly

    right(k) - mean c(q) = mended(k) - broken(k),

so that equal averages can hide changes that cancel out, which 2605.28700 finds of GSM-Symbolic.

Alpha-covariance of a question is equation 2 of 2601.23169: with P the ways in which it was asked,
and U the different answers among a(q, k, i), it is 1 - (|U| - 1) / (|P| - 1).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .questions import Kind

RESAMPLES = 2000
"""Samples of the bootstrap."""
COVERED = 95
"""Per cent of them that an interval covers."""


@dataclass(frozen=True)
class Asked:
    """A question as it was asked once, and what came of it.

    Attributes:
        suite: the question's.
        question: its number in the suite.
        kind: of its names.
        naming: number among those of its kind; 0 of kind `seen` is the question's reference.
        answer: the answer, its names slots; None without one.
        right: whether it is right.
        missing: why there is no answer; "" with one.
    """

    suite: str
    question: int
    kind: Kind
    naming: int
    answer: str | None
    right: bool
    missing: str = ""

    @property
    def is_reference(self) -> bool:
        """Whether others of its question are compared with it."""
        return self.kind is Kind.SEEN and self.naming == 0


@dataclass(frozen=True)
class Share:
    """A share, with the ends of its bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it in per cent: `81.3 [75.0, 87.5]`."""
        return f"{100 * self.mean:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class KindScore:
    """What a kind of names does; the module says how each is defined.

    Attributes:
        right: share of right answers.
        changed: share of namings whose answer is another one than that of the reference; None if
            there is no naming beside the reference.
        broken: share of namings that turn a right answer wrong.
        mended: share of namings that turn a wrong answer right.
        missing: share of namings without an answer.
    """

    right: Share
    changed: Share | None
    broken: Share | None
    mended: Share | None
    missing: float


@dataclass(frozen=True)
class Scores:
    """Scores of a model on some questions.

    Attributes:
        questions: how many.
        namings: how often each was asked.
        kinds: scores by kind.
        all_kinds: the same over all kinds together.
        covariance: mean alpha-covariance of the questions.
        constant: share of questions with one answer to all namings.
        always: share of questions whose answers are all right.
        ever: share of questions with a right answer among them.
    """

    questions: int
    namings: int
    kinds: dict[Kind, KindScore]
    all_kinds: KindScore
    covariance: Share
    constant: Share
    always: Share
    ever: Share

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return asdict(self)


def score(asked: Sequence[Asked], seed: int = 0) -> Scores:
    """Score questions, all asked equally often; intervals are over questions.

    A sample of the bootstrap draws as many questions as there are, with replacement, and takes each
    with all its namings, which depend on one another. An interval is between percentiles.

    Args:
        asked: questions of one suite or several.
        seed: of the bootstrap.

    Raises:
        ValueError: there are none, a question has no reference, is asked twice in one way, or is
            not asked as often as others.
    """
    questions = _by_question(asked)
    sampled = _resampled(len(questions), seed)

    def share(values: Sequence[float]) -> Share:
        return _share(np.asarray(values, dtype=float), sampled)

    different = [len({one.answer for one in row}) for row in questions]
    namings = len(questions[0])
    kinds = [kind for kind in Kind if any(one.kind is kind for one in questions[0])]
    return Scores(
        questions=len(questions),
        namings=namings,
        kinds={kind: _of_kind(questions, {kind}, sampled) for kind in kinds},
        all_kinds=_of_kind(questions, set(kinds), sampled),
        covariance=share([1 - (count - 1) / max(1, namings - 1) for count in different]),
        constant=share([count == 1 for count in different]),
        always=share([all(one.right for one in row) for row in questions]),
        ever=share([any(one.right for one in row) for row in questions]),
    )


def by_question(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Count, question by question, how many namings change the answer, and how.

    Returns:
        For each question its suite and number, whether its reference is right, how many `namings`
        there are beside it, and how many of them `changed` the answer, are `broken` (right before,
        wrong now), `mended` (the other way round) or `missing` (no answer).
    """
    rows = []
    for row in _by_question(asked):
        reference, others = _parts(row)
        rows.append(
            {
                "suite": reference.suite,
                "question": reference.question,
                "right": reference.right,
                "namings": len(others),
                "changed": sum(one.answer != reference.answer for one in others),
                "broken": sum(reference.right and not one.right for one in others),
                "mended": sum(one.right and not reference.right for one in others),
                "missing": sum(one.answer is None for one in others),
            }
        )
    return rows


OUTCOMES = ("same, right", "changed, still right", "mended", "same, wrong", "changed, still wrong",
            "broken")  # fmt: skip
"""What a naming does to the reference's answer; each naming does one of them."""


def outcomes(asked: Sequence[Asked]) -> dict[str, float]:
    """Return the share of each outcome over all namings but the references; they add up to 1."""
    counts: Counter[str] = Counter()
    for row in _by_question(asked):
        reference, others = _parts(row)
        for one in others:
            if one.right != reference.right:
                counts["mended" if one.right else "broken"] += 1
            else:
                kept = one.answer == reference.answer
                still = "right" if one.right else "wrong"
                counts[f"same, {still}" if kept else f"changed, still {still}"] += 1
    total = max(1, counts.total())
    return {outcome: counts[outcome] / total for outcome in OUTCOMES}


def _by_question(asked: Sequence[Asked]) -> list[list[Asked]]:
    questions: dict[tuple[str, int], dict[tuple[Kind, int], Asked]] = {}
    for one in asked:
        row = questions.setdefault((one.suite, one.question), {})
        if (one.kind, one.naming) in row:
            raise ValueError(f"question {one.question} of {one.suite} is asked twice in one way")
        row[one.kind, one.naming] = one
    if not questions:
        raise ValueError("there are no questions to score")
    ways = next(iter(questions.values())).keys()
    for (suite, number), row in questions.items():
        if (Kind.SEEN, 0) not in row:
            raise ValueError(f"question {number} of {suite} was not asked with names seen")
        if row.keys() != ways:
            raise ValueError(f"question {number} of {suite} is not asked in the ways of the others")
    return [list(row.values()) for row in questions.values()]


def _parts(row: Sequence[Asked]) -> tuple[Asked, list[Asked]]:
    """Return a question's reference, and its other namings."""
    (reference,) = (one for one in row if one.is_reference)
    return reference, [one for one in row if not one.is_reference]


def _of_kind(
    questions: Sequence[Sequence[Asked]], kinds: set[Kind], sampled: np.ndarray
) -> KindScore:
    """Score namings of some kinds; every question has equally many, so means of means are means."""
    shares: dict[str, list[float]] = {name: [] for name in ("right", "changed", "broken", "mended")}
    missing = []
    for row in questions:
        reference, others = _parts(row)
        chosen = [one for one in row if one.kind in kinds]
        others = [one for one in others if one.kind in kinds]
        shares["right"].append(_mean([one.right for one in chosen]))
        missing.append(_mean([one.answer is None for one in chosen]))
        if others:
            shares["changed"].append(_mean([one.answer != reference.answer for one in others]))
            shares["broken"].append(_mean([reference.right and not one.right for one in others]))
            shares["mended"].append(_mean([one.right and not reference.right for one in others]))
    parts = {
        name: _share(np.asarray(values), sampled) if values else None
        for name, values in shares.items()
    }
    return KindScore(**parts, missing=_mean(missing))  # type: ignore[arg-type]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _resampled(count: int, seed: int) -> np.ndarray:
    """Draw how often each question is in each sample of the bootstrap: (samples, questions)."""
    return np.random.default_rng(seed).multinomial(count, [1 / count] * count, RESAMPLES)


def _share(values: np.ndarray, sampled: np.ndarray) -> Share:
    means = sampled @ values / len(values)
    tail = (100 - COVERED) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Share(float(values.mean()), float(low), float(high))


def summary(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Return scores by suite as data for JSON."""
    return {name: one.to_dict() for name, one in scores.items()}


__all__ = [
    "OUTCOMES",
    "Asked",
    "KindScore",
    "Scores",
    "Share",
    "by_question",
    "outcomes",
    "score",
    "summary",
]
