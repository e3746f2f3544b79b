"""The same problem with other names, and its answer."""

from collections.abc import Mapping
from itertools import count

from hf_alpha.modeling.names_in_text import parts
from hf_alpha.tasks import Problem, Task
from hf_alpha.tasks.formulas import as_written


def other_names(task: Task, problem: Problem) -> dict[str, str]:
    """Return what each name of a problem is called instead.

    Names of a formula become numbers of names that it lacks. Names of a text change places with
    others of their class, as only the text's rules know what may be a name.

    Raises:
        ValueError: a text has no two names of one class.
    """
    if task.grammar is not None:
        free = (name for i in count(1) if (name := f"name{i}") not in problem.symbols)
        return dict(zip(problem.symbols, free, strict=False))
    classes: dict[str, list[str]] = {}
    for symbol in problem.symbols:
        classes.setdefault(getattr(symbol, "symbol_class", ""), []).append(str(symbol))
    names: dict[str, str] = {}
    for members in classes.values():
        names |= zip(members, [*members[1:], members[0]], strict=True)
    if all(name == other for name, other in names.items()):
        raise ValueError("there are no two names of one class that could change places")
    return names


def renamed_text(task: Task, problem: Problem, text: str, names: Mapping[str, str]) -> str:
    """Return a problem, its operators as they were written, or an answer with other names.

    Args:
        task: what is solved.
        problem: the problem, whose names are names in an answer too.
        text: what to rename: the problem itself, or an answer.
        names: name -> other name.
    """
    if task.grammar is not None and text is problem:
        tokens = [names.get(token, token) for token in problem.written]
        return as_written(task.grammar).format(tokens, "infix")
    finder = getattr(task, "finder", None)
    if finder is None:
        return task.rename(text, names)
    classes = {str(symbol): symbol.symbol_class for symbol in problem.symbols}  # type: ignore[attr-defined]
    written = ""
    for part, span in parts(text, finder.find(text, classes)):
        name = "" if span is None else text[span.start : span.stop]
        written += part + names.get(name, name)
    return written


__all__ = ["other_names", "renamed_text"]
