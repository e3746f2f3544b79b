"""LTL pairs and checks: ours against Spot, in the same run, and no verdict may differ.

    python benchmarks/ltl.py --out ltl          # minutes, nearly all of them Spot's
    python benchmarks/ltl.py --formulas 20 --spot-formulas 5 --checks 40 --rounds 2 --limit 1

Three parts, each of them in rounds; every ratio is one of a round:

- pairs: formulas of exactly 35 tokens over 5 symbols and of 50 over 10. Ours are drawn, told apart
  by their canonical forms, answered, and every answer is certified by the three-valued evaluation.
  Spot gets the first ones as they are drawn and only has to answer: by its default translation,
  which is what DeepLTL does, and by `translate('low', 'any')`. Spot's check certifies every one of
  our answers once more, on nobody's clock.
- checks: all three beams of a small trained model, to formulas of 10 to 35 tokens over 5 symbols,
  judged by the task (the three-valued evaluation, then Spot within a limit of time), by Spot's
  containment check with its default translation, and by it with `translate('low', 'any')`. Every
  verdict is compared with every other one. They are judged in two ways, in both all answers to a
  formula one after the other:
  - each side starts cold: ours with empty caches, as in a new process; Spot translates a formula
    once for all its answers and is timed inside its process (benchmarks/peers/spot_checks.py);
  - a second time: ours with caches that know every formula and answer; Spot translates the formula
    again for each answer, as the package calls it.
- strings: random and mutated answers; each has to get a verdict, however it looks.

But for the first way to check, Spot runs as the package runs it, in a process of its own: 0.1 ms or
so of each call is the way there and back. A call that takes longer than the limit is ended and
counts as the limit; the limit therefore favours Spot.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import measure
from hf_alpha.logic.ltl import LTLTask, lasso, spot, spot_worker
from hf_alpha.logic.ltl.trace import read_trace
from hf_alpha.resources import released_model
from hf_alpha.tasks import Verdict
from hf_alpha.tasks.solver_process import SolverProcess

TASK = LTLTask()
SIZES = {"5 symbols, 35 tokens": (5, 35), "10 symbols, 50 tokens": (10, 50)}
GOALS = {"5 symbols, 35 tokens": 20, "10 symbols, 50 tokens": 200}
BASE = "01!&|;{}UX"
SPOT = {"Spot, default": None, "Spot, low any": spot.FAST}
COLD = "each side cold, one translation for each formula"
WARM = "a second time, a translation for each answer"
SOLVER = SolverProcess(Path(spot_worker.__file__))
CHECKS = SolverProcess(Path(__file__).parent / "peers" / "spot_checks.py")
Pair = tuple[list[str], str]


@dataclass
class Rate:
    """How much of something was done in how many seconds."""

    done: int
    seconds: float
    slowest: float = 0.0
    timeouts: int = 0

    @property
    def per_second(self) -> float:
        return self.done / self.seconds


def draw(rng: random.Random, symbols: int, size: int, count: int) -> list[list[str]]:
    names = TASK.default_symbols(symbols)
    return [TASK.draw(rng, size, names, constant_priority=1.0) for _ in range(count)]


def asked(name: str, limit: float, items: Sequence[Sequence[Any]]) -> tuple[list[Any], Rate]:
    """Answers of Spot's process, one after the other; TimeoutError where one took too long."""
    answers: list[Any] = []
    rate = Rate(0, 0.0)
    for arguments in items:
        SOLVER.call("is_satisfiable", 10.0, ["1"])  # starts a process where there is none
        start = time.perf_counter()
        try:
            answers.append(SOLVER.call(name, limit, *arguments))
            seconds = time.perf_counter() - start
        except TimeoutError:
            answers.append(TimeoutError)
            seconds = limit
            rate.timeouts += 1
        rate.seconds += seconds
        rate.slowest = max(rate.slowest, seconds)
    return answers, rate


# -- pairs ----------------------------------------------------------------------------------------


def our_pairs(
    rng: random.Random, symbols: int, size: int, count: int
) -> tuple[list[tuple[list[str], str | None]], int]:
    """Distinct formulas with our answers, and how many answers are certified."""
    names, keys, certified = TASK.default_symbols(symbols), set(), 0
    pairs: list[tuple[list[str], str | None]] = []
    while len(pairs) < count:
        tokens = TASK.draw(rng, size, names, constant_priority=1.0)
        key = TASK.canonical_form(tokens)
        if key in keys:
            continue
        keys.add(key)
        answer = TASK.target_of(tokens)
        if answer is not None:
            trace = read_trace(answer)
            certified += trace is not None and lasso.decide(tokens, trace) is True
        pairs.append((tokens, answer))
    return pairs, certified


def measure_pairs(name: str, options: argparse.Namespace) -> dict[str, Any]:
    symbols, size = SIZES[name]
    our_pairs(random.Random(name), symbols, size, 100)  # fills tables
    rounds: dict[str, list[float]] = {"ours": [], **{side: [] for side in SPOT}}
    totals: Counter[str] = Counter()
    slowest = dict.fromkeys(rounds, 0.0)
    for number in range(options.rounds):
        rng = random.Random(f"pairs {name} {number}")
        start = time.perf_counter()
        pairs, certified = our_pairs(rng, symbols, size, options.formulas)
        seconds = time.perf_counter() - start
        answered = [(tokens, answer) for tokens, answer in pairs if answer is not None]
        rounds["ours"].append(len(answered) / seconds)
        totals.update(formulas=len(pairs), pairs=len(answered), certified=certified)
        holds, rate = asked("holds", 60.0, [as_question(pair) for pair in answered])
        totals.update({"certified by Spot": sum(x is True for x in holds)})
        slowest["ours"] = max(slowest["ours"], seconds / len(pairs))
        few = pairs[: options.spot_formulas]
        for side, flags in SPOT.items():
            questions = [(tokens, list(flags or ())) for tokens, _ in few]
            spot_answers, rate = asked("find_trace", options.limit, questions)
            answered_by_spot = sum(x is not None and x is not TimeoutError for x in spot_answers)
            rate.done = max(1, answered_by_spot)  # one where there is none, which favours Spot
            rounds[side].append(rate.per_second)
            slowest[side] = max(slowest[side], rate.slowest)
            disagreements = sum(
                x is not TimeoutError and (x is None) != (answer is None)
                for x, (_, answer) in zip(spot_answers, few, strict=True)
            )
            totals.update({f"{side}, timeouts": rate.timeouts, "disagreements": disagreements})
    return {"pairs_per_second": rounds, "slowest": slowest, "totals": dict(totals)}


def as_question(pair: Pair) -> tuple[Any, ...]:
    """What `holds` of Spot's process takes."""
    tokens, answer = pair
    trace = read_trace(answer)
    assert trace is not None
    return tokens, [list(step) for step in trace.steps], trace.loop, False


# -- checks ---------------------------------------------------------------------------------------


def models_answers(rng: random.Random, count: int, model: str) -> list[Pair]:
    """All readable answers of a model's beams to `count // 3` formulas that have an answer."""
    from hf_alpha.generation import extend_vocabulary, generate_answers
    from hf_alpha.loading import load_checkpoint

    network, tokenizer = load_checkpoint(model)
    extend_vocabulary(network, tokenizer, 5)
    formulas: list[list[str]] = []
    while len(formulas) < max(1, count // 3):
        tokens = draw(rng, 5, rng.randint(10, 35), 1)[0]
        if TASK.target_of(tokens) is not None:
            formulas.append(tokens)
    answers = generate_answers(
        network,
        tokenizer,
        [TASK.write(tokens) for tokens in formulas],
        num_return_sequences=3,
        progress=False,
    )
    return [
        (tokens, answer)
        for tokens, beams in zip(formulas, answers, strict=True)
        for answer in beams or ()
        if TASK.check(TASK.write(tokens), answer, solver="lasso") != Verdict.malformed
    ]


def measure_checks(pairs: list[Pair], options: argparse.Namespace) -> dict[str, Any]:
    """Judge answers in rounds of their own, by us and by Spot, in both ways."""
    spot.is_satisfiable(["1"])  # starts the process that the task asks
    ways: dict[str, dict[str, dict[str, Any]]] = {COLD: {}, WARM: {}}
    totals: Counter[str] = Counter()
    for part in rounds_of(pairs, options.rounds):
        judged = judge_all(part, options.limit)
        for way, sides in judged.items():
            for side, (answers, rate) in sides.items():
                rate.done = len(part)
                note(ways[way].setdefault(side, {}), answers, rate)
        decided = judged[WARM]["three-valued"][0]
        right = judged[COLD]["ours"][0]
        verdicts = zip(*(x for sides in judged.values() for x, _ in sides.values()), strict=True)
        totals.update(
            {
                "checks": len(part),
                "right": right.count(True),
                "decided": len(part) - decided.count(None),
                "disagreements": sum({True, False} <= {*each} for each in verdicts),
            }
        )
    return {"ways": ways, "totals": dict(totals)}


def rounds_of(pairs: list[Pair], rounds: int) -> list[list[Pair]]:
    """As many parts, each with all answers to its formulas, those to one formula together."""
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(tuple(pair[0]), []).append(pair)
    answers = list(groups.values())
    return [[pair for group in answers[n::rounds] for pair in group] for n in range(rounds)]


def judge_all(part: list[Pair], limit: float) -> dict[str, dict[str, tuple[list[Any], Rate]]]:
    """Verdicts of all sides in both ways."""
    measure.clear_caches()
    cold = {"ours": timed(judge("auto"), part)}
    warm = {"ours": timed(judge("auto"), part), "three-valued": timed(judge("lasso"), part)}
    for side, flags in SPOT.items():
        cold[side] = asked_once(part, limit, flags or ())
        questions = [(*as_question(pair)[:-1], flags is None) for pair in part]
        warm[side] = asked("holds", limit, questions)
    return {COLD: cold, WARM: warm}


def asked_once(part: list[Pair], limit: float, options: Sequence[str]) -> tuple[list[Any], Rate]:
    """Verdicts of Spot, which translates each formula once; seconds are those of Spot alone."""
    answers: list[Any] = []
    rate = Rate(0, 0.0)
    for tokens, pairs in groupby(part, key=lambda pair: pair[0]):
        traces = [as_question(pair)[1:3] for pair in pairs]
        CHECKS.call("is_satisfiable", 10.0, ["1"])  # starts a process where there is none
        try:
            verdicts, seconds = CHECKS.call("hold", limit, tokens, traces, list(options))
        except TimeoutError:
            verdicts, seconds = [TimeoutError] * len(traces), limit
        answers += verdicts
        rate.seconds += seconds
        rate.slowest = max(rate.slowest, seconds)
    return answers, rate


def note(totals: dict[str, Any], answers: list[Any], rate: Rate) -> None:
    """Add a round to what is kept of a side."""
    totals.setdefault("checks_per_second", []).append(rate.per_second)
    totals["slowest"] = max(totals.get("slowest", 0.0), rate.slowest)
    totals["open"] = totals.get("open", 0) + sum(x not in (True, False) for x in answers)


def judge(solver: str) -> Callable[[Pair], bool | None]:
    def run(pair: Pair) -> bool | None:
        verdict = TASK.check(TASK.write(pair[0]), pair[1], solver=solver)
        return {Verdict.correct: True, Verdict.wrong: False}.get(verdict)

    return run


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> tuple[list[Any], Rate]:
    """Results one after the other."""
    results, rate = [], Rate(len(items), 0.0)
    for item in items:
        start = time.perf_counter()
        results.append(work(item))
        seconds = time.perf_counter() - start
        rate.seconds += seconds
        rate.slowest = max(rate.slowest, seconds)
    return results, rate


# -- strings --------------------------------------------------------------------------------------


def mutate(rng: random.Random, text: str) -> str:
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(letters))
        letters[place : place + rng.randint(0, 2)] = rng.choices(
            BASE + "abcde", k=rng.randint(0, 2)
        )
    return "".join(letters)


def measure_strings(count: int) -> dict[str, Any]:
    """Half of the strings are mutated answers, half are random tokens of a model's vocabulary."""
    rng = random.Random("strings")
    formulas = draw(rng, 5, 20, 500)
    pairs = [(TASK.write(tokens), TASK.target_of(tokens) or "{1}") for tokens in formulas]
    items = []
    for index in range(count):
        problem, target = rng.choice(pairs)
        random_text = "".join(rng.choices(BASE + "abcdefgh", k=rng.randint(0, 40)))
        items.append((problem, mutate(rng, target) if index % 2 else random_text))
    verdicts, rate = timed(lambda item: TASK.check(*item, notation="compact", timeout=10.0), items)
    return {
        "strings": count,
        "seconds": rate.seconds,
        "slowest": rate.slowest,
        "verdicts": {str(name): n for name, n in Counter(verdicts).most_common()},
    }


# -- output ---------------------------------------------------------------------------------------


def show(result: dict[str, Any], options: argparse.Namespace) -> str:
    lines: list[str] = []
    for name, part in result["pairs"].items():
        totals, rates = part["totals"], part["pairs_per_second"]
        lines += [
            f"## Pairs: {name}",
            f"{totals['formulas']:,} distinct formulas in {options.rounds} rounds, of which Spot "
            f"got {options.rounds * min(options.spot_formulas, options.formulas):,}; "
            f"{totals['pairs']:,} have a witness, of which the three-valued evaluation certified "
            f"{totals['certified']:,} and Spot {totals['certified by Spot']:,}; "
            f"{totals['disagreements']} disagreements with Spot about satisfiability. "
            f"Goal: {GOALS[name]}x Spot's default translation.",
            "",
            rate_table(
                "pairs/s",
                rates,
                part["slowest"],
                {side: totals.get(f"{side}, timeouts", 0) for side in rates},
            ),
            "",
        ]
    for name, part in result["checks"].items():
        totals = part["totals"]
        lines += [
            f"## Checks: {name}",
            f"{totals['checks']:,} answers in {options.rounds} rounds, "
            f"{totals['right'] / max(1, totals['checks']):.0%} of them right; "
            f"{totals['checks'] - totals['decided']} left open by the three-valued evaluation and "
            f"decided by Spot; {totals['disagreements']} disagreements. "
            "Goal: 50x Spot's containment check with its default translation.",
            "",
        ]
        for way, sides in part["ways"].items():
            columns = ("checks_per_second", "slowest", "open")
            table_columns = [
                {side: row[column] for side, row in sides.items()} for column in columns
            ]
            lines += [f"{way[0].upper()}{way[1:]}:", "", rate_table("checks/s", *table_columns), ""]
    strings = result["strings"]
    verdicts = ", ".join(f"{n:,} {name}" for name, n in strings["verdicts"].items())
    lines += [
        "## Strings",
        f"{strings['strings']:,} random and mutated answers, each with a verdict: "
        f"{strings['seconds']:.1f} s, slowest {1e3 * strings['slowest']:.1f} ms; {verdicts}.",
    ]
    return "\n".join(lines)


def rate_table(
    unit: str, rates: dict[str, list[float]], slowest: dict[str, float], num_open: dict[str, int]
) -> str:
    rows = []
    for side, values in rates.items():
        ratio = measure.three(measure.ratios(rates["ours"], values), 1, "x")
        slow, ours = f"{slowest[side]:.3f}", side == "ours"
        cells = [measure.three(values, 0), "" if ours else ratio, slow, str(num_open[side])]
        rows.append([side, *cells])
    return measure.table(["side", unit, "ours is faster by", "slowest, s", "open"], rows)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = measure.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formulas", type=int, default=1000, help="for pairs, in a round")
    parser.add_argument("--spot-formulas", type=int, default=100, help="of these, for Spot")
    parser.add_argument("--checks", type=int, default=1000, help="answers of the model, about")
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for a call of Spot")
    parser.add_argument("--model", help="whose answers are checked; by default ltl-streams-small")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    model = options.model or str(released_model("ltl-streams-small"))
    answers = models_answers(random.Random("model"), options.checks, model)
    name = f"the three beams of {Path(model).name}"
    random.Random(name).shuffle(answers)
    result = {
        "pairs": {size: measure_pairs(size, options) for size in SIZES},
        "checks": {name: measure_checks(answers, options)},
        "strings": measure_strings(options.strings),
    }
    measure.finish(show(result, options), result, options.out, arguments)


if __name__ == "__main__":
    measure.run(main)
