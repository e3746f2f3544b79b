"""What the process of `spot` runs; it imports nothing of this package (see `solver_process`).

Formulas and conditions are built from their tokens, bottom-up and with Spot's constructors: the
text of a formula would be bound to Spot's rules for names, and deep ones to its parser's stack.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

FAST = ("low", "any")
"""Options of the translation: a thousand times less time than the default's in the worst cases,
which spends it on making the automaton small."""


def prepare() -> Any:
    """Import Spot.

    Raises:
        ImportError: the package called spot on PyPI, which is no model checker, is there instead.
    """
    import spot

    if not hasattr(spot, "twa_word"):
        raise ImportError(f"{spot.__file__} is something else", name="spot")
    return spot


def _fold(tokens: Sequence[str], operators: dict[str, Any], leaf: Callable[[str], Any]) -> Any:
    """Return the value of a formula, computed from those of its operands."""
    stack: list[Any] = []
    for token in reversed(tokens):
        if token not in operators:
            stack.append(leaf(token))
        elif token in ("!", "X"):
            stack.append(operators[token](stack.pop()))
        else:
            stack.append(operators[token](stack.pop(), stack.pop()))
    return stack[0]


def _formula(tokens: Sequence[str]) -> Any:
    formula = prepare().formula
    constants = {"0": formula.ff(), "1": formula.tt()}
    operators = {x: getattr(formula, x) for x in "XUWM"} | {"!": formula.Not}
    operators |= {"<->": formula.Equiv, "^": formula.Xor}
    operators |= {"&": lambda *both: formula.And([*both]), "|": lambda *both: formula.Or([*both])}
    return _fold(tokens, operators, lambda x: constants[x] if x in constants else formula.ap(x))


def _word_automaton(steps: Sequence[Sequence[str]], loop: int, dictionary: Any) -> Any:
    """Return the automaton of the words of a symbolic trace: a path that ends in a cycle."""
    automaton = prepare().make_twa_graph(dictionary)
    automaton.new_states(len(steps))
    automaton.set_init_state(0)
    for index, step in enumerate(steps):
        following = index + 1 if index + 1 < len(steps) else loop
        automaton.new_edge(index, following, _condition(step, automaton))
    return automaton


def _condition(tokens: Sequence[str], automaton: Any) -> Any:
    """Return the BDD of a Boolean formula over the automaton's propositions."""
    import buddy

    constants = {"0": buddy.bddfalse, "1": buddy.bddtrue}
    operators = {"!": operator.neg, "&": operator.and_, "|": operator.or_}
    return _fold(
        tokens,
        operators,
        lambda x: constants[x] if x in constants else buddy.bdd_ithvar(automaton.register_ap(x)),
    )


def _holds(
    tokens: Sequence[str], steps: Sequence[Sequence[str]], loop: int, reference: bool
) -> bool:
    spot = prepare()
    dictionary = spot.make_bdd_dict()
    words = _word_automaton(steps, loop, dictionary)
    options = () if reference else FAST
    counterexamples = spot.formula.Not(_formula(tokens)).translate(*options, dict=dictionary)
    return not counterexamples.intersects(words)


def _find_trace(
    tokens: Sequence[str], options: Sequence[str]
) -> tuple[list[list[str]], int] | None:
    spot = prepare()
    dictionary = spot.make_bdd_dict()
    automaton = _formula(tokens).translate(*options, dict=dictionary)
    automaton.merge_edges()
    run = automaton.accepting_run()
    if run is None:
        return None
    word = spot.twa_word(run)
    word.simplify()
    steps = [
        _prefix(spot.bdd_to_formula(condition, dictionary))
        for condition in [*word.prefix, *word.cycle]
    ]
    return steps, len(word.prefix)


def _prefix(condition: Any) -> list[str]:
    """Return the prefix tokens of a Boolean formula; operands beyond two nest to the right."""
    spot = prepare()
    signs = {spot.op_Not: "!", spot.op_And: "&", spot.op_Or: "|", spot.op_ff: "0", spot.op_tt: "1"}
    tokens: list[str] = []
    stack = [condition]
    while stack:
        formula = stack.pop()
        if isinstance(formula, str):
            tokens.append(formula)
        elif formula.kind() == spot.op_ap:
            tokens.append(formula.ap_name())
        else:
            sign = signs[formula.kind()]
            children = list(formula)
            *first, last = children or [sign]
            pieces = [piece for child in first for piece in (sign, child)] + [last]
            stack += reversed([sign, *children] if len(children) == 1 else pieces)
    return tokens


def _is_satisfiable(tokens: Sequence[str]) -> bool:
    return not _formula(tokens).translate(*FAST).is_empty()


SERVED: dict[str, Callable[..., Any]] = {
    "holds": _holds,
    "find_trace": _find_trace,
    "is_satisfiable": _is_satisfiable,
}
