"""Propositional pairs and checks: ours, python-sat and py-aiger-sat, and no verdict may differ.

    python benchmarks/propositional.py --out propositional     # minutes, nearly all py-aiger's
    python benchmarks/propositional.py --rounds 2 --formulas 40 --aiger-formulas 6

Formulas of exactly 35 tokens over 5 symbols and of 50 over 10 are answered by truth tables, those
of 200 over 50 by python-sat.

- pairs: ours are drawn, told apart by their canonical forms, answered, and every answer is checked.
  The peers get formulas as they are drawn, and make the papers' target: a model, reduced to an
  unsat core of the negated formula. A second row is about answers alone on our side too, with empty
  caches; ours are the shortest there are, up to 16 symbols.
- checks: right answers, ours and py-aiger's, and wrong ones with a value flipped or left out, or
  drawn at random, those to one formula together. Whether an answer implies its formula is one
  unsatisfiability query for the peers. Three times: each side starts cold and reads a formula once
  for all its answers; a formula is read for each check; and with formulas that were read before.

python-sat is used directly (benchmarks/peers/python_sat.py), with one solver for each formula: what
the solver costs. py-aiger-sat, which the papers use, calls the same solvers; most of its time is
its own Python code. It is used as its users do: a formula is built by `aiger.atom` and the
operators of its expressions; a query is `aiger_sat.solve` or a new `SolverWrapper` with
assumptions. All sides run in this process.
"""

import argparse
import operator
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import aiger
import aiger_sat

import measure
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.logic.propositional.notation import read_assignment, write_assignment
from hf_alpha.tasks import Verdict
from hf_alpha.tasks.base import _read_formula
from peers.python_sat import Formula

TASK = PropositionalTask()
SIZES = {
    "5 symbols, 35 tokens": (5, 35),
    "10 symbols, 50 tokens": (10, 50),
    "50 symbols, 200 tokens": (50, 200),
}
GOAL = 100
Pair = tuple[str, str]
Checks = Sequence[Pair]
PYSAT, AIGER = "python-sat", "py-aiger-sat"
PAIRS = "pairs, ours drawn and checked too"
ANSWERS = "answers alone"
COLD = "checks, each side cold, formulas read once"
AGAIN = "checks, formulas read before"
EACH = "checks, formulas read for each"
BINARY = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


# -- py-aiger, through its plain interface --------------------------------------------------------


def expression(tokens: Sequence[str]) -> Any:
    stack: list[Any] = []
    for token in reversed(tokens):
        if token == "!":
            stack.append(~stack.pop())
        elif token == "=":
            stack.append(stack.pop() == stack.pop())
        elif token in BINARY:
            stack.append(BINARY[token](stack.pop(), stack.pop()))
        else:
            stack.append(aiger.atom(token if token not in "01" else token == "1"))
    return stack[0]


def aiger_target(problem: str) -> str | None:
    tokens = TASK.parse(problem)
    formula = expression(tokens)
    model = aiger_sat.solve(formula)
    if model is None:
        return None
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(~formula)
    assert not solver.is_sat(assumptions=model)
    return write_assignment({name: bool(x) for name, x in solver.get_unsat_core().items()})


def read(problem: str) -> Any:
    return expression(TASK.parse(problem))


read_once = cache(read)


def aiger_check(pair: Pair, read: Callable[[str], Any] = read) -> bool:
    problem, answer = pair
    formula = read(problem)
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(~formula)
    values = read_assignment(answer) or {}
    input_values = {name: value for name, value in values.items() if name in formula.inputs}
    return not solver.is_sat(assumptions=input_values)


def aiger_checks(checks: Checks) -> list[bool]:
    """Checks with one reading for all answers to a formula."""
    verdicts = []
    for problem, pairs in groupby(checks, itemgetter(0)):
        formula = read(problem)
        verdicts += [aiger_check(pair, lambda _, formula=formula: formula) for pair in pairs]
    return verdicts


# -- python-sat -----------------------------------------------------------------------------------


def pysat_target(tokens: Sequence[str]) -> str | None:
    with Formula(tokens) as formula:
        values = formula.target()
    return None if values is None else write_assignment(values)


def pysat_check(pair: Pair) -> bool:
    with Formula(TASK.parse(pair[0])) as formula:
        return formula.implied_by(read_assignment(pair[1]) or {})


def pysat_checks(checks: Checks) -> list[bool]:
    """Checks with one solver for all answers to a formula."""
    verdicts = []
    for problem, pairs in groupby(checks, itemgetter(0)):
        with Formula(TASK.parse(problem)) as formula:
            verdicts += [formula.implied_by(read_assignment(answer) or {}) for _, answer in pairs]
    return verdicts


# -- ours -----------------------------------------------------------------------------------------


def our_first_check(pair: Pair) -> bool | None:
    _read_formula.cache_clear()
    return our_check(pair)


def our_check(pair: Pair) -> bool | None:
    return {Verdict.correct: True, Verdict.wrong: False}.get(TASK.check(*pair))


def our_pairs(
    rng: random.Random, symbols: int, size: int, count: int
) -> tuple[list[tuple[str, str | None]], int]:
    """Distinct formulas with our answers, and how many answers are right."""
    names, keys, right = TASK.default_symbols(symbols), set(), 0
    pairs: list[tuple[str, str | None]] = []
    while len(pairs) < count:
        tokens = TASK.draw(rng, size, names)
        key = TASK.canonical_form(tokens)
        if key in keys:
            continue
        keys.add(key)
        problem, answer = TASK.write(tokens), TASK.target_of(tokens)
        right += answer is not None and our_check((problem, answer)) is True
        pairs.append((problem, answer))
    return pairs, right


# -- measuring ------------------------------------------------------------------------------------


def timed(work: Callable[[Any], list[Any]], items: Sequence[Any]) -> tuple[list[Any], float]:
    """What comes out, and items per second."""
    start = time.perf_counter()
    results = work(items)
    return results, len(items) / (time.perf_counter() - start)


def one_by_one(work: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda items: list(map(work, items))


def answers_to(rng: random.Random, pairs: Sequence[tuple[str, str | None]]) -> list[Pair]:
    """Right and wrong answers to each satisfiable formula."""
    checks: list[Pair] = []
    for problem, answer in pairs:
        if answer is None:
            continue
        values = read_assignment(answer) or {}
        flipped, fewer = dict(values), dict(values)
        if values:
            name = rng.choice(list(values))
            flipped[name] = not values[name]
            del fewer[name]
        plain_answers = (
            aiger_target(problem) or "",
            write_assignment(flipped),
            write_assignment(fewer),
        )
        answers = [answer, *plain_answers, TASK.random_answer(problem, rng)]
        rng.shuffle(answers)
        checks += [(problem, each) for each in answers]
    return checks


def judge_all(checks: Checks) -> dict[str, dict[str, tuple[list[Any], float]]]:
    """Verdicts of all sides in all ways, ours first and cold, and checks per second."""
    with ExitStack() as stack:
        problems = dict.fromkeys(problem for problem, _ in checks)
        solvers = {p: stack.enter_context(Formula(TASK.parse(p))) for p in problems}
        for problem in problems:
            read_once(problem)

        def pysat_check_again(pair: Pair) -> bool:
            return solvers[pair[0]].implied_by(read_assignment(pair[1]) or {})

        ways: dict[str, dict[str, Callable[[Checks], list[Any]]]] = {
            COLD: {"ours": one_by_one(our_check), PYSAT: pysat_checks, AIGER: aiger_checks},
            AGAIN: {
                "ours": one_by_one(our_check),
                PYSAT: one_by_one(pysat_check_again),
                AIGER: one_by_one(lambda pair: aiger_check(pair, read_once)),
            },
            EACH: {
                "ours": one_by_one(our_first_check),
                PYSAT: one_by_one(pysat_check),
                AIGER: one_by_one(aiger_check),
            },
        }
        measure.clear_caches()
        return {
            way: {side: timed(work, checks) for side, work in sides.items()}
            for way, sides in ways.items()
        }


def make_pairs(
    rng: random.Random, name: str, options: argparse.Namespace
) -> tuple[list[tuple[str, str | None]], dict[str, dict[str, float]], Counter[str]]:
    """Our pairs, pairs and answers of all sides per second, and counts."""
    our_pairs(random.Random(name), *SIZES[name], 50)  # fills the tables by which formulas are drawn
    start = time.perf_counter()
    pairs, right = our_pairs(rng, *SIZES[name], options.formulas)
    seconds = time.perf_counter() - start
    few = [problem for problem, _ in pairs[: options.aiger_formulas]]
    tokens = [TASK.parse(problem) for problem, _ in pairs]
    measure.clear_caches()
    solved = {
        "ours": timed(one_by_one(TASK.target_of), tokens),
        PYSAT: timed(one_by_one(pysat_target), tokens),
        AIGER: timed(one_by_one(aiger_target), few),
    }
    answer_rates = {
        side: rate * sum(x is not None for x in side_answers) / len(side_answers)
        for side, (side_answers, rate) in solved.items()
    }
    answered = sum(answer is not None for _, answer in pairs)
    rates = {PAIRS: {**answer_rates, "ours": answered / seconds}, ANSWERS: answer_rates}
    different = 0
    for side_answers, _ in solved.values():
        # py-aiger has answered the first ones alone
        for (problem, answer), other_answer in zip(pairs, side_answers, strict=False):
            different += (answer is None) != (other_answer is None)
            different += other_answer is not None and our_check((problem, other_answer)) is not True
    counts = {"formulas": len(pairs), "pairs": answered, "right": right, "aiger": len(few)}
    return pairs, rates, Counter(counts, disagreements=different)


def measure_size(name: str, options: argparse.Namespace) -> dict[str, Any]:
    warm = our_pairs(random.Random(name), *SIZES[name], 50)[0]
    judge_all(answers_to(random.Random(name), warm[:2]))
    rounds: dict[str, dict[str, list[float]]] = {}
    totals: Counter[str] = Counter()
    for number in range(options.rounds):
        rng = random.Random(f"{name} {number}")
        pairs, rates, counts = make_pairs(rng, name, options)
        totals.update(counts)
        judged = judge_all(answers_to(rng, pairs[: options.aiger_formulas]))
        rates_of_works = dict(rates)
        for way, sides in judged.items():
            rates_of_works[way] = {side: rate for side, (_, rate) in sides.items()}
        for work, sides in rates_of_works.items():
            for side, rate in sides.items():
                rounds.setdefault(work, {}).setdefault(side, []).append(rate)
        verdicts = list(
            zip(*(x for sides in judged.values() for x, _ in sides.values()), strict=True)
        )
        totals["checks"] += len(verdicts)
        totals["right checks"] += sum(each[0] is True for each in verdicts)
        totals["disagreements"] += sum(len(set(each)) > 1 for each in verdicts)
    return {"per_second": rounds, "totals": dict(totals)}


def show(result: dict[str, Any], options: argparse.Namespace) -> str:
    rows, totals = [], Counter[str]()
    for name, part in result.items():
        totals.update(part["totals"])
        for work, rates in part["per_second"].items():
            cells = [measure.three(rates["ours"], 0)]
            for peer in (PYSAT, AIGER):
                ratio = measure.three(measure.ratios(rates["ours"], rates[peer]), 1, "x")
                cells += [measure.three(rates[peer], 1), ratio]
            rows.append([f"{name}: {work}", *cells])
    return "\n".join(
        [
            f"{options.rounds} rounds, each with formulas of its own: {totals['formulas']:,} "
            f"distinct formulas; {totals['pairs']:,} have an answer, of which {totals['right']:,} "
            f"were checked and right. python-sat answered all of the formulas, py-aiger-sat "
            f"{totals['aiger']:,}; all judged {totals['checks']:,} answers, "
            f"{totals['right checks'] / max(1, totals['checks']):.0%} of them right; "
            f"{totals['disagreements']} disagreements. Goal: {GOAL}x py-aiger-sat.",
            "",
            measure.table(
                ["a second", "ours", PYSAT, "ours is faster by", AIGER, "ours is faster by"], rows
            ),
        ]
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = measure.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formulas", type=int, default=1000, help="of each size, in a round")
    parser.add_argument("--aiger-formulas", type=int, default=60, help="of these, for py-aiger")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    result = {name: measure_size(name, options) for name in SIZES}
    measure.finish(show(result, options), result, options.out, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
