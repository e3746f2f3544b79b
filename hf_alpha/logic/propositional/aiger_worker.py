"""What the process of py-aiger runs, for the papers' targets; it imports nothing of this package.

`solver_process` says why.
"""

from collections.abc import Sequence
from typing import Any


def prepare() -> tuple[Any, Any]:
    """Import aiger and aiger_sat."""
    import aiger
    import aiger_sat

    return aiger, aiger_sat


def build(tokens: Sequence[str], negate: bool = False) -> Any:
    """Return the aiger.BoolExpr of canonical prefix tokens.

    Equal subformulas become one node and every node is hashed when it is made: hashes are cached
    below it, and neither hashing nor comparing a deep circuit descends into it.
    """
    aiger, _ = prepare()
    false, node = aiger.aig.ConstFalse(), aiger.aig.Input
    gates: dict[Any, Any] = {}

    def remember(key: Any, gate: Any) -> Any:
        hash(gate)
        return gates.setdefault(key, gate)

    def invert(gate: Any) -> Any:
        key = (id(gate),)
        return gates[key] if key in gates else remember(key, ~gate)

    def both(left: Any, right: Any) -> Any:
        key = (id(left), id(right))
        return gates[key] if key in gates else remember(key, left & right)

    def either(left: Any, right: Any) -> Any:
        return invert(both(invert(left), invert(right)))

    names: dict[str, Any] = {}
    stack: list[Any] = []
    for token in reversed(tokens):
        if token == "!":
            stack.append(invert(stack.pop()))
        elif token == "&":
            stack.append(both(stack.pop(), stack.pop()))
        elif token == "|":
            stack.append(either(stack.pop(), stack.pop()))
        elif token in ("=", "^"):
            left, right = stack.pop(), stack.pop()
            equality = either(both(left, right), both(invert(left), invert(right)))
            stack.append(equality if token == "=" else invert(equality))
        elif token in ("0", "1"):
            stack.append(false if token == "0" else invert(false))
        else:
            stack.append(names.setdefault(token, node(token)))
    root = invert(stack[0]) if negate else stack[0]
    circuit = aiger.aig.AIG(inputs=frozenset(names), node_map={"formula": root})
    return aiger.BoolExpr(circuit)


def _reduced_model(tokens: Sequence[str]) -> dict[str, bool] | None:
    """Return the papers' target: a model, reduced to an unsat core of the negated formula.

    None if the formula is unsatisfiable, {} if it is a tautology.
    """
    _, aiger_sat = prepare()
    model = aiger_sat.solve(build(tokens))
    if model is None:
        return None
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(build(tokens, negate=True))
    assert not solver.is_sat(assumptions=model), f"{model} is no model of {tokens}"
    return {name: bool(value) for name, value in solver.get_unsat_core().items()}


SERVED = {"reduced_model": _reduced_model}
