r"""Lambda terms: `(\x x y)` binds x, variables without a binder are free."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st


def lambda_names(text: str) -> Iterator[tuple[Any, ...]]:
    """Find the variables of a term, each with the place of its binder; every `(` opens a scope."""
    scopes: list[dict[str, int]] = [{}]
    for start, stop, token in tokens(text):
        if token == "(":
            scopes.append({**scopes[-1]})
        elif token == ")":
            scopes = scopes[:-1] or [{}]  # a part of a term may close more than it opens
        elif token != "\\":
            if text[start - 1 : start] == "\\":
                scopes[-1][token] = start
            binder = [scopes[-1][token]] if token in scopes[-1] else []
            yield start, stop, *binder


def tokens(text: str) -> list[tuple[int, int, str]]:
    """Split a term: signs, and names of a letter and digits."""
    starts = [i for i, letter in enumerate(text) if not (letter.isspace() or letter.isdigit())]
    ends = [*starts[1:], len(text)]
    words = [text[i:j].strip() for i, j in zip(starts, ends, strict=True)]
    return [(i, i + len(word), word) for i, word in zip(starts, words, strict=True)]


def indices(text: str) -> list[Any]:
    """Return a term with de Bruijn indices: how many binders lie between a variable and its own.

    Free variables are numbered by first occurrence.
    """
    term: list[Any] = []
    scopes, free = [list[str]()], dict[str, str]()
    previous = ""
    for _, _, token in tokens(text):
        if token == "(":
            scopes.append([*scopes[-1]])
        elif token == ")":
            scopes.pop()
        if previous == "\\":
            scopes[-1].insert(0, token)
        elif token[0].isalpha():
            bound = token in scopes[-1]
            term.append(
                scopes[-1].index(token) if bound else free.setdefault(token, f"f{len(free)}")
            )
        else:
            term.append(token)
        previous = token
    return term


TERMS = st.recursive(
    st.integers(0, 4),
    lambda terms: st.one_of(st.tuples(terms), st.tuples(terms, terms)),
    max_leaves=8,
)
"""De Bruijn terms: a variable, (body of a lambda,), (function, argument)."""


def free_in(term: Any, depth: int = 0) -> set[int]:
    """Return the indices of variables that are bound further out."""
    if isinstance(term, int):
        return {term - depth} if term >= depth else set()
    depth += len(term) == 1
    return {index for part in term for index in free_in(part, depth)}


def spelled(term: Any, rng: random.Random, around: Sequence[str] = ()) -> str:
    """Write a term with names drawn, one for several binders wherever none is captured."""
    if isinstance(term, int):
        return around[term] if term < len(around) else "pqrst"[term - len(around)]
    if len(term) == 2:
        return f"({spelled(term[0], rng, around)} {spelled(term[1], rng, around)})"
    used = {around[i] for i in free_in(term) if i < len(around)}
    letters = [x for x in "xyz" if x not in used] or [x for x in "abcdefgh" if x not in used]
    letter = rng.choice(letters)
    return f"(\\{letter} {spelled(term[0], rng, [letter, *around])})"
