"""The tables of the benchmark, as text."""

from collections.abc import Mapping

from hf_alpha.plain_text import aligned

from .questions import Kind
from .scores import Scores, Share

ALL = "all"


def percent(share: Share | float | None, digits: int = 1) -> str:
    """Write a share in per cent; `-` for None."""
    if share is None:
        return "-"
    return f"{100 * (share.mean if isinstance(share, Share) else share):.{digits}f}"


def with_interval(share: Share | None) -> str:
    """Write a share and its interval in per cent; `-` for None."""
    return (
        "-"
        if share is None
        else f"{100 * share.mean:.1f} [{share.low * 100:.0f}, {share.high * 100:.0f}]"
    )


def table(scores: Mapping[str, Mapping[str, Scores]]) -> str:
    """Write two tables: all suites together, and right answers by suite.

    Args:
        scores: of each model, by suite and for `all`.
    """
    kinds = list(next(iter(scores.values()))[ALL].kinds)
    parts = [
        f"right answers by kind of names, % [95 % interval]\n{aligned(_right(scores, kinds))}",
        f"what renaming does to answers, % of renamings\n{aligned(_changes(scores))}",
    ]
    if notes := _notes(scores):
        parts.append(notes)
    return "\n\n".join(parts)


def _right(scores: Mapping[str, Mapping[str, Scores]], kinds: list[Kind]) -> list[list[str]]:
    rows = [["model", "suite", *kinds, "always", "ever"]]
    for model, suites in scores.items():
        for suite, one in suites.items():
            cells = [with_interval(one.kinds[kind].right) for kind in kinds]
            rows.append([model, suite, *cells, percent(one.always), percent(one.ever)])
    return rows


def _changes(scores: Mapping[str, Mapping[str, Scores]]) -> list[list[str]]:
    head = ["changed", "right to wrong", "wrong to right", "alpha-covariance", "no answer"]
    rows = [["model", "suite", *head]]
    for model, suites in scores.items():
        for suite, one in suites.items():
            every = one.all_kinds
            shares = (every.changed, every.broken, every.mended, one.covariance)
            cells = [*map(with_interval, shares), percent(every.missing)]
            rows.append([model, suite, *cells])
    return rows


def _notes(scores: Mapping[str, Mapping[str, Scores]]) -> str:
    lines = []
    for model, suites in scores.items():
        every = suites[ALL]
        if every.all_kinds.missing > 0.5 or every.ever.mean < 0.1:
            lines.append(
                f"{model}: {percent(every.all_kinds.missing)} % have no answer, "
                f"{percent(every.ever)} % of questions are ever right: a model that cannot answer "
                "says nothing about names"
            )
    return "\n".join(lines)


__all__ = ["percent", "table", "with_interval"]
