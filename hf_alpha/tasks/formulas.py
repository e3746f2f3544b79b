"""Formulas in prefix order: where subformulas end, and how people wrote them."""

from collections.abc import Sequence
from dataclasses import replace

from hf_alpha.modeling.grammar import Grammar


def subformula_ends(grammar: Grammar, tokens: Sequence[str]) -> list[int]:
    """Return for each token where the subformula that it begins ends."""
    ends = [0] * len(tokens)
    for start in reversed(range(len(tokens))):
        end = start + 1
        for _ in range(grammar.arities.get(tokens[start], 0)):
            end = ends[end]
        ends[start] = end
    return ends


def as_written(grammar: Grammar) -> Grammar:
    """Return a grammar that keeps derived operators, as `format` of the given one does not."""
    operators = {token: arity for token, arity in grammar.arities.items() if arity}
    return replace(grammar, operators=operators, derived={})


__all__ = ["as_written", "subformula_ends"]
