"""The meaning of LTL on one infinite word, position by position, as textbooks define it."""

from collections.abc import Sequence
from importlib.util import find_spec

import pytest

needs_spot = pytest.mark.skipif(find_spec("spot") is None, reason="needs the extra hf_alpha[ltl]")
ARITY = {"!": 1, "X": 1, "&": 2, "|": 2, "U": 2}


def satisfies(tokens: Sequence[str], word: Sequence[set[str]], loop: int) -> bool:
    """Whether a word, whose letters from `loop` on repeat forever, satisfies a prefix formula."""

    def successor(position: int) -> int:
        return position + 1 if position + 1 < len(word) else loop

    def holds(start: int, position: int) -> bool:
        token = tokens[start]
        if token in ("0", "1"):
            return token == "1"
        if token not in ARITY:
            return token in word[position]
        left = start + 1
        if token == "!":
            return not holds(left, position)
        if token == "X":
            return holds(left, successor(position))
        right = _end(tokens, left)
        if token == "&":
            return holds(left, position) and holds(right, position)
        if token == "|":
            return holds(left, position) or holds(right, position)
        seen = set()
        while position not in seen:
            seen.add(position)
            if holds(right, position):
                return True
            if not holds(left, position):
                return False
            position = successor(position)
        return False

    return holds(0, 0)


def _end(tokens: Sequence[str], start: int) -> int:
    missing = 1
    while missing:
        missing += ARITY.get(tokens[start], 0) - 1
        start += 1
    return start
