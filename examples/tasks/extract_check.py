"""A check of an expression that gets a variable of its own in a Python function.

The source is `extract total + rate` and, below it, a function in which that expression stands more
than once; the answer is the function with `size = total + rate` before it is used, or with any
other name that the source lacks. `examples/tasks/extract.py` draws such pairs.
"""

import ast
import random
from collections.abc import Mapping

ORDER = "extract "
OPERATORS = (ast.Add, ast.Sub, ast.Mult)
PRIME, POINTS = 2**61 - 1, 8
"""Functions that agree modulo the prime at so many random points are taken for equal."""


def check(source: str, answer: str, target: str | None = None) -> bool:
    """Return whether an answer is the source's function with its expression in a new variable.

    That is: one name that the source lacks is set once, to the expression, which stands nowhere
    else; with the expression in the place of that name, the function is the source's again; and
    both compute the same, wherever it is set. Functions have assignments to names and end with a
    `return`, and compute by `+`, `-` and `*`.

    Raises:
        ValueError: the source is no order and such a function.
    """
    order, _, text = source.partition("\n")
    function, expression = _read(text), _expression(order.removeprefix(ORDER))
    if function is None or expression is None or not order.startswith(ORDER):
        raise ValueError(f"{source!r} is no {ORDER.strip()!r} with an expression, and a function")
    other = _read(answer)
    if other is None:
        return False
    new = _new_assignments(function, other)
    if len(new) != 1 or ast.dump(new[0].value) != ast.dump(expression):
        return False
    if ast.dump(other).count(ast.dump(expression)) > 1:
        return False
    if any(_value(function, seed) != _value(other, seed) for seed in range(POINTS)):
        return False
    other.body.remove(new[0])
    Replace(ast.Name(_target(new[0]), ast.Load()), expression).visit(other)
    return ast.dump(other) == ast.dump(function)


def _read(text: str) -> ast.FunctionDef | None:
    """Return the function that a text is; None if it is none, or one of another kind."""
    try:
        (function,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(function, ast.FunctionDef) or not function.body:
        return None
    *assignments, last = function.body
    are_names = all(
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        for statement in assignments
    )
    is_whole = are_names and isinstance(last, ast.Return) and last.value is not None
    values = [getattr(statement, "value", None) for statement in function.body]
    return function if is_whole and all(map(_is_arithmetic, values)) else None


def _expression(text: str) -> ast.expr | None:
    """Return the expression that a text is; None if it is none."""
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    return expression if _is_arithmetic(expression) else None


def _is_arithmetic(value: ast.expr | None) -> bool:
    """Return whether an expression has names and operations of ours only."""
    allowed = (ast.BinOp, ast.Name, ast.Load, *OPERATORS)
    return value is not None and all(isinstance(node, allowed) for node in ast.walk(value))


def _new_assignments(function: ast.FunctionDef, other: ast.FunctionDef) -> list[ast.Assign]:
    """Return those assignments of the other function whose name the first one lacks."""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    names |= {function.name, *(argument.arg for argument in function.args.args)}
    return [
        statement
        for statement in other.body
        if isinstance(statement, ast.Assign) and _target(statement) not in names
    ]


def _target(statement: ast.Assign) -> str:
    """Return the name that is set."""
    (target,) = statement.targets
    assert isinstance(target, ast.Name)
    return target.id


def _value(function: ast.FunctionDef, seed: int) -> int | None:
    """Return what a function computes from random numbers, modulo the prime; None if it fails."""
    rng = random.Random(seed)
    values = {argument.arg: rng.randrange(PRIME) for argument in function.args.args}
    try:
        for statement in function.body:
            if isinstance(statement, ast.Assign):
                values[_target(statement)] = _number(statement.value, values)
            elif isinstance(statement, ast.Return):
                return _number(statement.value, values)
    except KeyError:
        pass
    return None


def _number(expression: ast.expr | None, values: Mapping[str, int]) -> int:
    """Return the number that an expression is."""
    if isinstance(expression, ast.Name):
        return values[expression.id]
    assert isinstance(expression, ast.BinOp)
    left, right = _number(expression.left, values), _number(expression.right, values)
    if isinstance(expression.op, ast.Add):
        return (left + right) % PRIME
    if isinstance(expression.op, ast.Sub):
        return (left - right) % PRIME
    return left * right % PRIME


class Replace(ast.NodeTransformer):
    """Puts one expression in the place of another."""

    def __init__(self, old: ast.expr, new: ast.expr):
        self.old, self.new = ast.dump(old), new
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the node, or what is in it."""
        if ast.dump(node) == self.old:
            self.count += 1
            return self.new
        replaced: ast.AST = self.generic_visit(node)
        return replaced


__all__ = ["OPERATORS", "ORDER", "Replace", "check"]
