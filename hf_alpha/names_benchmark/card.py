"""The card of the benchmark: Markdown to paste into a model's card."""

from collections.abc import Mapping, Sequence
from typing import Any

from hf_alpha.plain_text import fenced, within_line

from .questions import Kind
from .scores import Scores
from .suites import SUITES
from .table import ALL, percent, with_interval

HEADING = "## Does it care about names?"
MEANING = (
    "Questions in which some words are only names, each asked again with other names: of those "
    "that the examples show (seen), of others (unseen), of random letters (nonsense), and of words "
    "that mean something else where they stand (misleading). An interval is a 95 % bootstrap over "
    "questions. *Changed*: the answer, its names put back, differs from that to the same question "
    "with names seen; *right to wrong*: that was right and this is wrong; *always*: questions that "
    "are right whatever the names."
)


def card(
    scores: Mapping[str, Mapping[str, Scores]], plan: Any, command: str, date: str, picture: str
) -> str:
    """Write the card.

    Args:
        scores: of each model, by suite and for `all`.
        plan: what was asked.
        command: that made the scores.
        date: of the scores.
        picture: file beside the card.
    """
    asked = next(iter(scores.values()))[ALL]
    plan_line = (
        f"{asked.questions} questions of difficulty {plan.difficulty}, each in {asked.namings} "
        f"ways, {plan.examples} examples in a prompt, seed {plan.seed}"
    )
    made = f"{plan_line}{f', {date}' if date else ''}."
    parts = [HEADING, MEANING, *(_model(name, one) for name, one in scores.items()), made]
    if command:
        parts.append(fenced(command, "bash"))
    parts.append(f"![right answers by kind of names, and what renaming does]({picture})")
    return "\n\n".join(parts) + "\n"


def _model(name: str, suites: Mapping[str, Scores]) -> str:
    kinds = list(suites[ALL].kinds)
    head = [within_line(name), *kinds, "always", "changed", "right to wrong", "alpha-covariance"]
    rows = [[_title(suite), *_cells(one, kinds)] for suite, one in suites.items()]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(_line(cells) for cells in (head, rule, *rows))


def _cells(one: Scores, kinds: Sequence[Kind]) -> list[str]:
    every = one.all_kinds
    return [
        *(with_interval(one.kinds[kind].right) for kind in kinds),
        percent(one.always),
        percent(every.changed),
        percent(every.broken),
        percent(one.covariance),
    ]


def _title(suite: str) -> str:
    return SUITES[suite].title if suite in SUITES else "**all**"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


__all__ = ["card"]
