"""Propositional formulas by python-sat alone, as somebody who knows it would write it.

A formula is encoded once by Tseitin's rules, with a variable for each operator. One solver answers
all questions about it, each by assumptions. A literal is a number, its negation has the other sign.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType

from pysat.solvers import Minisat22

TRUE = 1


def encode(tokens: Sequence[str]) -> tuple[list[list[int]], dict[str, int], int]:
    """The clauses of a formula in prefix tokens, the variables of its symbols, its literal."""
    clauses, variables, stack = [[TRUE]], {"1": TRUE, "0": -TRUE}, []
    last = TRUE
    for token in reversed(tokens):
        if token == "!":
            stack.append(-stack.pop())
            continue
        if token not in "&|^=":
            if token not in variables:
                last += 1
                variables[token] = last
            stack.append(variables[token])
            continue
        a, b = stack.pop(), stack.pop()
        last += 1
        stack.append(last)
        if token == "&":
            clauses += [[-last, a], [-last, b], [last, -a, -b]]
        elif token == "|":
            clauses += [[last, -a], [last, -b], [-last, a, b]]
        else:
            b = b if token == "^" else -b
            clauses += [[-last, a, b], [-last, -a, -b], [last, -a, b], [last, a, -b]]
    return clauses, variables, stack[0]


class Formula:
    """A formula with a solver of its own; to be used in a `with` statement."""

    def __init__(self, tokens: Sequence[str]):
        clauses, variables, self.root = encode(tokens)
        self.variables = {name: x for name, x in variables.items() if abs(x) != TRUE}
        self.solver = Minisat22(bootstrap_with=clauses)

    def __enter__(self) -> "Formula":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.solver.delete()

    def implied_by(self, values: Mapping[str, bool]) -> bool:
        """Whether every completion of a partial assignment satisfies the formula."""
        literals = [
            self.variables[name] if value else -self.variables[name]
            for name, value in values.items()
            if name in self.variables
        ]
        return not self.solver.solve(assumptions=[-self.root, *literals])

    def target(self) -> dict[str, bool] | None:
        """A model, reduced to an unsat core of the negated formula: the papers' target."""
        if not self.solver.solve(assumptions=[self.root]):
            return None
        model = set(self.solver.get_model())
        values = {name: x in model for name, x in self.variables.items()}
        if not self.implied_by(values):
            raise AssertionError("a model does not satisfy its formula")
        core = set(map(abs, self.solver.get_core() or ()))
        return {name: value for name, value in values.items() if self.variables[name] in core}
