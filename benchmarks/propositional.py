"""Propositional pairs and checks: ours against py-aiger-sat, and no verdict may differ.

    python benchmarks/propositional.py --out propositional     # minutes, nearly all py-aiger's
    python benchmarks/propositional.py --rounds 2 --formulas 40 --aiger-formulas 6

Formulas of exactly 35 tokens over 5 symbols and of 50 over 10 are answered by truth tables, those
of 200 over 50 by python-sat.

- pairs: ours are drawn, told apart by their canonical forms, answered, and every answer is checked.
  py-aiger-sat gets the first formulas as they are drawn and makes the papers' target: a model,
  reduced to an unsat core of the negated formula.
- checks: right answers, ours and py-aiger's, and wrong ones with a value flipped or left out, or
  drawn at random. Whether an answer implies its formula is one unsatisfiability query for
  py-aiger-sat. Once with a formula that is read for each check, on both sides, and once with
  formulas that have been read before, as for the second answer to the same problem.

py-aiger-sat runs in this process and is used as its users do: a formula is built by `aiger.atom`
and the operators of its expressions; a query is `aiger_sat.solve` or a new `SolverWrapper` with
assumptions.
"""

import argparse
import operator
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import aiger
import aiger_sat
import measure

from hf_alpha.tasks import PropositionalTask, Verdict
from hf_alpha.tasks import propositional as task_module
from hf_alpha.tasks.assignment import read_assignment, write_assignment

TASK = PropositionalTask()
SIZES = {
    "5 symbols, 35 tokens": (5, 35),
    "10 symbols, 50 tokens": (10, 50),
    "50 symbols, 200 tokens": (50, 200),
}
GOAL = 100
Pair = tuple[str, str]
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
    given = {name: value for name, value in values.items() if name in formula.inputs}
    return not solver.is_sat(assumptions=given)


# -- ours -----------------------------------------------------------------------------------------


def our_first_check(pair: Pair) -> bool | None:
    task_module._parsed.cache_clear()
    return our_check(pair)


def our_check(pair: Pair) -> bool | None:
    return {Verdict.correct: True, Verdict.wrong: False}.get(TASK.check(*pair))


def our_pairs(
    rng: random.Random, symbols: int, size: int, count: int
) -> tuple[list[tuple[str, str | None]], int]:
    """Distinct formulas with our answers, and how many answers are right."""
    names, keys, right = TASK.default_symbols(symbols), set(), 0
    found: list[tuple[str, str | None]] = []
    while len(found) < count:
        tokens = TASK.draw(rng, size, names)
        key = TASK.canonical_form(tokens)
        if key in keys:
            continue
        keys.add(key)
        problem, answer = TASK.write(tokens), TASK.target_of(tokens)
        right += answer is not None and our_check((problem, answer)) is True
        found.append((problem, answer))
    return found, right


# -- measuring ------------------------------------------------------------------------------------


def per_second(work: Any, items: Sequence[Any]) -> tuple[list[Any], float]:
    start = time.perf_counter()
    found = [work(item) for item in items]
    return found, len(items) / (time.perf_counter() - start)


def answers_to(rng: random.Random, pairs: Sequence[tuple[str, str | None]]) -> list[Pair]:
    """Right and wrong answers to each satisfiable formula."""
    made: list[Pair] = []
    for problem, answer in pairs:
        if answer is None:
            continue
        values = read_assignment(answer) or {}
        flipped, fewer = dict(values), dict(values)
        if values:
            name = rng.choice(list(values))
            flipped[name] = not values[name]
            del fewer[name]
        others = (aiger_target(problem) or "", write_assignment(flipped), write_assignment(fewer))
        made += [(problem, each) for each in (answer, *others, TASK.random_answer(problem, rng))]
    rng.shuffle(made)
    return made


def measure_size(name: str, options: argparse.Namespace) -> dict[str, Any]:
    symbols, size = SIZES[name]
    warm = our_pairs(random.Random(name), symbols, size, 50)[0]
    per_second(aiger_target, [problem for problem, _ in warm[:2]])
    per_second(our_check, [(problem, answer or "") for problem, answer in warm])
    rounds: dict[str, list[float]] = {}
    totals: Counter[str] = Counter()

    def note(**rates: float) -> None:
        for side, rate in rates.items():
            rounds.setdefault(side, []).append(rate)

    for number in range(options.rounds):
        rng = random.Random(f"{name} {number}")
        start = time.perf_counter()
        pairs, right = our_pairs(rng, symbols, size, options.formulas)
        seconds = time.perf_counter() - start
        few = pairs[: options.aiger_formulas]
        theirs, rate = per_second(aiger_target, [problem for problem, _ in few])
        answered = sum(answer is not None for _, answer in pairs)
        solved = sum(answer is not None for answer in theirs)
        note(ours=answered / seconds, aiger=rate * solved / len(few))
        checks = answers_to(rng, few)
        aigers, rate = per_second(aiger_check, checks)
        note(aiger_checks=rate, our_checks=per_second(our_first_check, checks)[1])
        for problem, _ in checks:
            read_once(problem)
        ours, rate = per_second(our_check, checks)
        again, others = per_second(lambda pair: aiger_check(pair, read_once), checks)
        note(our_checks_again=rate, aiger_checks_again=others)
        totals.update(
            {
                "formulas": len(pairs),
                "pairs": answered,
                "right": right,
                "aiger formulas": len(few),
                "checks": len(checks),
                "right checks": sum(x is True for x in ours),
                "disagreements": sum(
                    not a == b == c for a, b, c in zip(ours, aigers, again, strict=True)
                )
                + sum((a is None) != (b is None) for (_, a), b in zip(few, theirs, strict=True)),
            }
        )
    return {"per_second": rounds, "totals": dict(totals)}


def show(result: dict[str, Any], options: argparse.Namespace) -> str:
    rows, totals = [], Counter[str]()
    for name, part in result.items():
        rates = part["per_second"]
        totals.update(part["totals"])
        for what, ours, theirs in (
            ("pairs", rates["ours"], rates["aiger"]),
            ("checks", rates["our_checks"], rates["aiger_checks"]),
            ("checks, read before", rates["our_checks_again"], rates["aiger_checks_again"]),
        ):
            ratio = measure.three(measure.ratios(ours, theirs), 1, "x")
            cells = [measure.three(ours, 0), measure.three(theirs, 1), ratio]
            rows.append([f"{name}: {what}", *cells])
    return "\n".join(
        [
            f"{options.rounds} rounds, each with formulas of its own: {totals['formulas']:,} "
            f"distinct formulas; {totals['pairs']:,} have an answer, of which {totals['right']:,} "
            f"were checked and right. py-aiger-sat answered {totals['aiger formulas']:,} of the "
            f"formulas and both judged {totals['checks']:,} answers, "
            f"{totals['right checks'] / max(1, totals['checks']):.0%} of them right; "
            f"{totals['disagreements']} disagreements. Goal: {GOAL}x.",
            "",
            measure.table(["a second", "ours", "py-aiger-sat", "ours is faster by"], rows),
        ]
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formulas", type=int, default=1000, help="of each size, in a round")
    parser.add_argument("--aiger-formulas", type=int, default=60, help="of these, for py-aiger")
    measure.add_out(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    result = {name: measure_size(name, options) for name in SIZES}
    measure.finish(show(result, options), result, options.out, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
