"""The same problem with other names, and its answer."""

import random
from collections.abc import Mapping

from hf_alpha.modeling.names_in_text import parts
from hf_alpha.tasks import Problem, Task
from hf_alpha.tasks.formulas import as_written

_WORDS = """
ant bat bear bee cat cow crab crow deer dog dove duck eel elk fish fly fox frog goat hare hawk hen
horse lamb lion lynx mole moose moth mouse newt otter owl pig puma quail rat raven seal sheep snail
swan tiger toad trout wasp whale wolf wren yak zebra
"""
"""What names of formulas are called."""


def renamed_problem(task: Task, problem: Problem, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Return a problem with other names, and what each name is called.

    Names of a formula become words that it lacks. Names of a text change places with others of
    their class, as only the text's rules know what may be a name.

    Raises:
        ValueError: a text has no two names of one class.
    """
    if task.grammar is not None:
        words = [word for word in _WORDS.split() if word not in problem.symbols]
        count = len(problem.symbols)
        if count > len(words):
            words = [word for i in range(2 * count) if (word := f"p{i}") not in problem.symbols]
        names = dict(zip(problem.symbols, rng.sample(words, count), strict=True))
        tokens = [names.get(token, token) for token in problem.written]
        return as_written(task.grammar).format(tokens, "infix"), names
    if not hasattr(task, "finder"):  # symbols alone
        names = _exchanged({"": list(problem.symbols)}, rng)
        return task.rename(problem, names), names
    by_class: dict[str, list[str]] = {}
    for symbol in problem.symbols:
        by_class.setdefault(symbol.symbol_class, []).append(str(symbol))  # type: ignore[attr-defined]
    names = _exchanged(by_class, rng)
    return renamed_text(task, problem, str(problem), names), names


def renamed_text(task: Task, problem: Problem, text: str, names: Mapping[str, str]) -> str:
    """Return a problem, or an answer to it, with other names.

    Args:
        task: what is solved.
        problem: the problem, whose names are names in an answer too.
        text: what to rename.
        names: name -> other name.
    """
    finder = getattr(task, "finder", None)
    if finder is None:
        return task.rename(text, names)
    classes = {str(symbol): symbol.symbol_class for symbol in problem.symbols}  # type: ignore[attr-defined]
    written = ""
    for part, span in parts(text, finder.find(text, classes)):
        name = "" if span is None else text[span.start : span.stop]
        written += part + names.get(name, name)
    return written


def _exchanged(by_class: Mapping[str, list[str]], rng: random.Random) -> dict[str, str]:
    """Have the names of each class change places, so that each gets another one."""
    names: dict[str, str] = {}
    for found in by_class.values():
        shuffled = rng.sample(found, len(found))
        names |= zip(shuffled, [*shuffled[1:], *shuffled[:1]], strict=True)
    if all(name == other for name, other in names.items()):
        raise ValueError("there are no two names of one class that could change places")
    return names


__all__ = ["renamed_problem", "renamed_text"]
