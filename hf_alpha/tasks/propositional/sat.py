"""Propositional formulas beyond truth tables, by python-sat."""

from collections.abc import Mapping, Sequence

from hf_alpha.tasks.circuit import MAX_CONFLICTS, Circuit, GaveUpError, solver
from hf_alpha.tasks.decision import Clock

FEW_CONFLICTS = 1_000
"""Some milliseconds, enough for what is drawn at random; what is harder goes to a solver that can
be stopped."""


def is_satisfiable(tokens: Sequence[str], conflicts: int = FEW_CONFLICTS) -> bool | None:
    """Decide whether a propositional formula can hold; None beyond so many conflicts.

    Args:
        tokens: canonical prefix tokens.
        conflicts: of the solver.
    """
    implied = implies(["!", *tokens], {}, conflicts)
    return None if implied is None else not implied


def implies(
    tokens: Sequence[str], assignment: Mapping[str, bool], conflicts: int = FEW_CONFLICTS
) -> bool | None:
    """Decide whether every completion of a partial assignment satisfies a formula.

    Args:
        tokens: canonical prefix tokens.
        assignment: values of symbols, also of some that the formula lacks.
        conflicts: of the solver, beyond which the answer is None.
    """
    circuit, leaves = Circuit(0), {name: 1 if value else -1 for name, value in assignment.items()}
    root = _encode(circuit, tokens, leaves)
    if abs(root) == 1:
        return root == 1
    with solver(circuit.clauses, conflicts) as query:
        try:
            return query.model([-root]) is None
        except GaveUpError:
            return None


def prime_implicant(tokens: Sequence[str], symbols: Sequence[str]) -> dict[str, bool] | None:
    """Return a partial assignment that implies a formula, and of which nothing can be left out.

    It starts from the solver's model, keeps what proves that the formula cannot be false, and
    leaves out one value after another from the last symbol to the first. Which one it is, is a
    function of the formula's structure, as the solver sees numbers only.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.

    Returns:
        None if the formula is unsatisfiable, or a question meets more than `MAX_CONFLICTS`.
    """
    try:
        return _prime_implicant(tokens, symbols, MAX_CONFLICTS, None)
    except GaveUpError:
        return None


def decide(tokens: Sequence[str], symbols: Sequence[str], seconds: float) -> dict[str, bool] | None:
    """Return a partial assignment as `prime_implicant` does; None if a formula is unsatisfiable.

    Where the time is up before each value was tried, the others stay.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.
        seconds: limit of time, which is looked at every `FEW_CONFLICTS` and before each question.

    Raises:
        TimeoutError: the time is up, and nothing is known.
    """
    try:
        return _prime_implicant(tokens, symbols, FEW_CONFLICTS, Clock(seconds))
    except GaveUpError:
        raise TimeoutError(f"the solver was not done within {seconds:g} s") from None


def _prime_implicant(
    tokens: Sequence[str], symbols: Sequence[str], conflicts: int, clock: Clock | None
) -> dict[str, bool] | None:
    """Return a prime implicant; None if there is none.

    Raises:
        GaveUpError: by the limits of `circuit.solver`.
    """
    circuit = Circuit(len(symbols))
    variables = {symbol: number for number, symbol in enumerate(symbols, start=2)}
    root = _encode(circuit, tokens, dict(variables))
    with solver(circuit.clauses, conflicts, clock=clock) as query:
        model = query.model([root])
        if model is None:
            return None
        model_literals = [x if x in model else -x for x in variables.values()]
        core = set(model_literals)
        try:
            core = query.core([-root, *model_literals]) or set()
            for literal in reversed(model_literals):
                if literal in core:
                    candidates = [x for x in model_literals if x in core and x != literal]
                    core = query.core([-root, *candidates]) or core
        except GaveUpError:
            if clock is None:
                raise
    literals = zip(variables.items(), model_literals, strict=True)
    return {symbol: literal == x for (symbol, x), literal in literals if literal in core}


def _encode(circuit: Circuit, tokens: Sequence[str], leaves: dict[str, int]) -> int:
    """Return the literal of a formula; symbols without one get new variables."""
    leaves |= {"0": -1, "1": 1}
    stack: list[int] = []
    for token in reversed(tokens):
        if token in leaves:
            stack.append(leaves[token])
        elif token == "!":
            stack.append(-stack.pop())
        elif token == "&":
            stack.append(circuit.and_(stack.pop(), stack.pop()))
        elif token == "|":
            stack.append(circuit.or_(stack.pop(), stack.pop()))
        elif token == "^":
            stack.append(circuit.xor(stack.pop(), stack.pop()))
        elif token == "=":
            stack.append(-circuit.xor(stack.pop(), stack.pop()))
        else:
            leaves[token] = circuit.variable()
            stack.append(leaves[token])
    return stack[0]
