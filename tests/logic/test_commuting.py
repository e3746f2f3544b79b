import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import commuting as reference

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import get_task

TASKS = {name: get_task(name) for name in ("propositional", "ltl")}
COMMUTATIVE = {"propositional": "&|=^", "ltl": "&|"}
NAMES = "abcdefghij"


def slow_form(task, tokens):
    grammar = task.grammar
    return reference.canonical(tokens, grammar.operators, grammar.constants, COMMUTATIVE[task.name])


def exchanged(task, rng, tokens):
    """The formula with operands of commutative operators exchanged at random."""
    stack = []
    for token in reversed(tokens):
        operands = [stack.pop() for _ in range(task.grammar.operators.get(token, 0))]
        if token in COMMUTATIVE[task.name]:
            rng.shuffle(operands)
        stack.append([token, *(x for operand in operands for x in operand)])
    return stack[0]


def disguised(task, rng, tokens):
    names = dict(zip(NAMES, rng.sample(NAMES, len(NAMES)), strict=True))
    return [names.get(token, token) for token in exchanged(task, rng, tokens)]


def drawn(task, rng, size, symbols):
    return task.draw(rng, size, NAMES[:symbols], constant_priority=0.5)


@given(st.sampled_from(sorted(TASKS)), st.integers(1, 80), st.integers(1, 10), st.integers(0))
def test_renaming_and_exchanging_operands_changes_no_canonical_form(name, size, symbols, seed):
    task, rng = TASKS[name], random.Random(seed)
    tokens = drawn(task, rng, size, symbols)
    form = task.canonical_form(tokens)
    assert task.canonical_form(disguised(task, rng, tokens)) == form
    assert task.canonical(form) == form


@pytest.mark.parametrize(
    ("name", "tokens", "size"), [("propositional", "0!&=abc", 5), ("ltl", "1X|Uab", 5)]
)
def test_forms_are_equal_exactly_for_equivalent_formulas(name, tokens, size):
    task, forms = TASKS[name], {}
    for text in (x for n in range(1, size + 1) for x in product(tokens, repeat=n)):
        try:
            formula = task.parse("".join(text), "compact")
        except FormulaError:
            continue
        forms.setdefault(slow_form(task, formula), set()).add(task.canonical_form(formula))
    assert len(forms) > 100 and all(len(texts) == 1 for texts in forms.values())
    assert len(set.union(*forms.values())) == len(forms)


# What tells the names apart: nothing (a symmetry exchanges them), an operator that is not
# commutative, another occurrence, a name beside it, and the same for names in a ring.
@pytest.mark.parametrize(
    "formula",
    [
        "&&ab&cd",
        "&Uab&cd",
        "&&ab!a",
        "&&ab&|bc|ad",
        "&&&&ab&bc&&cd&de&&&ef&fg&&gh&ha",
        "&&&&ab&bc&&ca&de&&&ef&fg&&gh&hd",
        "&|ab|ba",
    ],
)
def test_symmetric_formulas(formula):
    task, rng = TASKS["ltl"], random.Random(0)
    form = task.canonical(formula)
    for _ in range(200):
        assert task.canonical_form(disguised(task, rng, list(formula))) == form


def test_nesting_deeper_than_the_stack():
    task, depth = TASKS["propositional"], 20_000
    left = [*"&" * depth, *"ab" * (depth // 2), "a"]
    right = [token for i in range(depth) for token in ("&", "ba"[i % 2])] + ["b"]
    assert task.canonical_form(left) == task.canonical_form(right)
