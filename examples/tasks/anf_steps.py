"""Make pairs for A-normal form in steps: all operations on names alone are bound where they stand.

    python examples/tasks/anf_steps.py data/anf_steps --operations 16 --names 17 --rows 60000
    python examples/tasks/anf_steps.py --ask runs/anf_steps "a & ( b | c )"

`( a1 ^ b2 ) & ( b2 | c3 )` is answered by `d4 = a1 ^ b2 & e5 = b2 | c3`, and what is left,
`d4 & e5`, is asked next. An answer follows its question token by token, and nobody has to count
operations: `hf_alpha.tasks.text.anf:check_step` says which answers are right.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, filterfalse
from pathlib import Path

import anf
from pair_files import files_of_operations, main_of_operations, parser_of, run

import hf_alpha
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.tasks.text.anf import Term, check, check_step, read_step


def step(term: Term, names: Iterable[str]) -> str:
    """Write a step of a term.

    Args:
        term: with two operands to each operator.
        names: new ones, at least as many as there are operations on names alone.
    """
    unused = iter(names)

    def bind(part: Term, inner: bool = True) -> str:
        if isinstance(part, str):
            return part
        operator, left, right = part
        if isinstance(left, str) and isinstance(right, str):
            return f"{next(unused)} = {left} {operator} {right}"
        text = f"{bind(left)} {operator} {bind(right)}"
        return f"( {text} )" if inner else text

    return bind(term, False)


draw = partial(anf.draw, answer=step)


def normal_forms(ask: Callable[[list[str]], Iterable[str]], terms: Sequence[str]) -> list[str]:
    """Return A-normal forms of terms, asked for step by step.

    A form ends in the first step that is wrong, if there is one.

    Args:
        ask: returns the answers to some terms. Their new names are replaced: a term does not have
            those that were used up before.
        terms: any number, asked together.
    """
    rests, statements = list(terms), [list[str]() for _ in terms]
    unused = [names_beside(term) for term in terms]
    at_work = list(range(len(terms)))
    while at_work := [i for i in at_work if " " in rests[i]]:
        for i, answer in zip(tuple(at_work), ask([rests[i] for i in at_work]), strict=True):
            if not check_step(rests[i], answer):
                at_work.remove(i)
                rests[i] = answer
                continue
            bound, rest = read_step(answer)
            new = {name: next(unused[i]) for name in bound}
            for name, (operator, *operands) in bound.items():
                statements[i].append(f"let {new[name]} = {f' {operator} '.join(operands)}")
            rests[i] = " ".join(new.get(word, word) for word in rest.split())
    return [" ; ".join([*parts, rest]) for parts, rest in zip(statements, rests, strict=True)]


def names_beside(term: str) -> Iterator[str]:
    """Yield names that a term lacks."""
    return filterfalse(term.split().__contains__, map("t{}".format, count(1)))


def asking(model: str | Path) -> Callable[[list[str]], list[str]]:
    """Return what asks a model for the steps of terms.

    Args:
        model: its folder.
    """
    loaded = hf_alpha.load_checkpoint(model)
    task = read_recipe(Path(model) / RECIPE_FILE).configured_task

    def ask(terms: list[str]) -> list[str]:
        room = 2 * max(len(term.split()) for term in terms) + 10
        search = {"method": "model", "num_beams": 1, "max_new_tokens": room}
        solved = hf_alpha.solve(terms, task=task, model=loaded, **search)
        return ["" if x.error else str(x.answers[0][0]) for x in solved]

    return ask


def answer(model: Path, terms: list[str]) -> None:
    """Print the A-normal forms of terms, asked of a model."""
    for term, form in zip(terms, normal_forms(asking(model), terms), strict=True):
        print(form if check(term, form) else f"a wrong step of {term}: {form}")


FILES = files_of_operations(draw, anf.MOST_OPERATIONS)
SEEN, UNSEEN = FILES.seen, FILES.unseen

if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        arguments = parser_of(answer.__doc__)
        arguments.add_argument("model", type=Path, help="its folder")
        arguments.add_argument("terms", nargs="+", metavar="term")
        run(answer, arguments, sys.argv[2:])
    else:
        main_of_operations(draw, anf.MOST_OPERATIONS)
