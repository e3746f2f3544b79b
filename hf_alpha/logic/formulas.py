"""Formulas in prefix order: connectives, values from the operands up, where subformulas end."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hf_alpha.modeling.grammar import Grammar

Value = TypeVar("Value")

MAX_ROWS = 100
"""Subformulas of a table, those nearest to the whole formula."""
MAX_TOKENS = 10_000
"""Tokens of a formula of which a table is made."""


def by_spelling(listed: Mapping[str, str]) -> dict[str, str]:
    """Return spelling -> token, of token -> its spellings with spaces between."""
    return {spelling: token for token, some in listed.items() for spelling in some.split()}


SPELLINGS = by_spelling({
    "!": "~ ¬ not",
    "&": "&& /\\ ∧ ∩ * and",
    "|": "|| \\/ \u2228 \u222a + or",  # with logical or, union
    "^": "⊕ xor",
    "->": "--> => → ⟶ ⇒ ⟹ implies",
    "<->": "<--> <=> ↔ ⇔ iff",
    "1": "true",
    "0": "false",
})  # fmt: skip
"""Other ways to write a connective or a constant -> its token: Spot's, and some words."""

FOREIGN_CONSTANTS = {
    "ff": 'other tools read it as false: write 0, or the name "ff" in double quotes',
    "tt": 'other tools read it as true: write 1, or the name "tt" in double quotes',
}
"""Words that are no names without quotes -> what to write instead."""

UNARY = frozenset("!X")

DERIVED = {"->": "| ! $1 $2", "<-": "| $1 ! $2"}
"""Connectives that are rewritten while reading, as prefix templates."""


def fold(
    tokens: Sequence[str],
    operators: Mapping[str, Callable[..., Value]],
    leaf: Callable[[str], Value],
) -> Value:
    """Return the value of a formula, computed from those of its operands.

    It walks from the right with a stack, so that the depth of a formula does not matter.

    Args:
        tokens: in prefix order.
        operators: operator -> function of its operands' values; `!` and `X` have one operand.
        leaf: the value of any other token.
    """
    stack: list[Value] = []
    for token in reversed(tokens):
        if token not in operators:
            stack.append(leaf(token))
        elif token in UNARY:
            stack.append(operators[token](stack.pop()))
        else:
            stack.append(operators[token](stack.pop(), stack.pop()))
    return stack[0]


def subformula_ends(grammar: Grammar, tokens: Sequence[str]) -> list[int]:
    """Return for each token where the subformula that it begins ends."""
    ends = [0] * len(tokens)
    for start in reversed(range(len(tokens))):
        end = start + 1
        for _ in range(grammar.arities.get(tokens[start], 0)):
            end = ends[end]
        ends[start] = end
    return ends


def subformulas(grammar: Grammar, written: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the distinct subformulas of a formula, with operators as they were written.

    Args:
        written: its prefix tokens, derived operators among them.

    Returns:
        At most `MAX_ROWS`, those nearest to the whole: each as infix for people and as the
        grammar's tokens. Short ones come first, of the same length in order of occurrence; the
        whole is last. Constants are left out.
    """
    ends = subformula_ends(grammar, written)
    starts: dict[tuple[str, ...], int] = {}
    level = [0]
    while level and len(starts) < MAX_ROWS:
        following = []
        for start in level:
            token = written[start]
            if len(starts) < MAX_ROWS and token not in grammar.constants:
                tokens = tuple(written[start : ends[start]])
                starts[tokens] = min(start, starts.get(tokens, start))
            operand = start + 1
            while operand < ends[start]:
                following.append(operand)
                operand = ends[operand]
        level = following
    starts.setdefault(tuple(written), 0)  # a constant alone
    ordered = sorted(starts, key=lambda tokens: (len(tokens), starts[tokens]))
    writer = grammar.as_written()
    return [(writer.format([*tokens], "infix"), grammar.rewritten([*tokens])) for tokens in ordered]
