"""LTL pairs and checks: ours against Spot, in the same run, and no verdict may differ.

    python benchmarks/ltl.py --json ltl.json        # minutes, nearly all of them Spot's
    python benchmarks/ltl.py --formulas 20 --pairs 40 --strings 500 --limit 1

Three parts:

- pairs: formulas of exactly 35 tokens over 5 symbols and of 50 over 10, drawn as DeepLTL draws
  them, and a target for each: ours, Spot's by `translate('low', 'any')`, and Spot's by its default
  translation, which is what DeepLTL does. Spot stops at a limit of seconds for one formula.
- checks: right answers (ours and Spot's) and wrong ones (a literal flipped, dropped or added, a
  step deleted, another formula's answer, a random step), judged by the three-valued evaluation
  alone, by the task (Spot for what that leaves open), by Spot with `translate('low', 'any')`, and
  by Spot's own containment check with its default translation. Every verdict is compared with
  every other one.
- strings: random and mutated answers; each has to get a verdict, however it looks.

Spot runs as the package runs it, in a process of its own: 0.1 ms or so of each check is the way
there and back. A target comes from a fresh fork of that process, because Spot's answers depend on
what it was asked before: some 5 ms of each, which is most of the time with `low, any`.
"""

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from hf_alpha.tasks import LTLTask, Verdict, lasso, spot
from hf_alpha.tasks.trace import Trace, cube_step, read_cube, read_trace, write_trace

TASK = LTLTask()
SIZES = {"5 symbols, 35 tokens": (5, 35), "10 symbols, 50 tokens": (10, 50)}
BASE = "01!&|;{}UX"
Pair = tuple[list[str], Trace]


def draw(rng: random.Random, symbols: int, size: int, count: int) -> list[list[str]]:
    names = TASK.default_symbols(symbols)
    return [TASK.draw(rng, size, names, constant_priority=1.0) for _ in range(count)]


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> tuple[list[Any], list[float]]:
    """Results and seconds, one after the other."""
    results, seconds = [], []
    for item in items:
        start = time.perf_counter()
        results.append(work(item))
        seconds.append(time.perf_counter() - start)
    return results, seconds


def within(limit: float, work: Callable[..., Any]) -> Callable[[Any], Any]:
    """`work` with a time limit: what takes longer is None, as if nothing was found."""

    def run(item: Any) -> Any:
        try:
            return work(item, limit)
        except TimeoutError:
            return TimeoutError

    return run


# -- pairs ----------------------------------------------------------------------------------------


def measure_pairs(name: str, count: int, limit: float) -> dict[str, Any]:
    symbols, size = SIZES[name]
    rng = random.Random(f"pairs {name}")
    start = time.perf_counter()
    formulas = draw(rng, symbols, size, count)
    keys = {TASK.canonical_form(tokens) for tokens in formulas}
    drawing = time.perf_counter() - start
    sides = {
        "ours": TASK.target_of,
        "Spot, low any": within(limit, spot.find_trace),
        "Spot, default": within(limit, lambda t, s: spot.find_trace(t, s, options=None)),
    }
    others = draw(rng, symbols, size, 50)
    rows = {}
    for side, work in sides.items():
        timed(work, others[: 50 if side == "ours" else 1])  # fills tables, starts processes
        found, seconds = timed(work, formulas)
        rows[side] = {
            "pairs": sum(x is not None and x is not TimeoutError for x in found),
            "timeouts": sum(x is TimeoutError for x in found),
            "seconds": sum(seconds),
            "slowest": max(seconds),
            "satisfiable": [None if x is TimeoutError else x is not None for x in found],
        }
    ours = rows["ours"]["satisfiable"]
    for row in rows.values():
        answers = row.pop("satisfiable")
        row["disagreements"] = sum(
            x is not None and x != y for x, y in zip(answers, ours, strict=True)
        )
        row["pairs_per_second"] = row["pairs"] / row["seconds"]
    rows["ours"]["drawing_seconds"] = drawing
    return {"formulas": count, "distinct": len(keys), "limit": limit, "sides": rows}


# -- checks ---------------------------------------------------------------------------------------


def literals(trace: Trace) -> list[tuple[int, str, bool]]:
    return [
        (index, *literal)
        for index, step in enumerate(trace.steps)
        for literal in (read_cube(step) or {}).items()
    ]


def rebuild(trace: Trace, chosen: Sequence[tuple[int, str, bool]]) -> Trace:
    cubes: list[dict[str, bool]] = [{} for _ in trace.steps]
    for index, symbol, value in chosen:
        cubes[index][symbol] = value
    return Trace(tuple(cube_step(list(cube.items())) for cube in cubes), trace.loop)


def corrupt(rng: random.Random, kind: str, tokens: list[str], trace: Trace) -> Trace | None:
    """A trace that is likely wrong; None where this kind cannot be made."""
    found = literals(trace)
    if kind == "literal flipped" and found:
        index, symbol, value = found.pop(rng.randrange(len(found)))
        return rebuild(trace, [*found, (index, symbol, not value)])
    if kind == "literal dropped" and found:
        found.pop(rng.randrange(len(found)))
        return rebuild(trace, found)
    if kind == "literal added":
        index, symbol = rng.randrange(len(trace.steps)), rng.choice(TASK.symbols_in(tokens) or "a")
        return rebuild(trace, [(index, symbol, rng.random() < 0.5), *found])
    if kind == "step deleted" and len(trace.steps) > 1:
        index = rng.randrange(len(trace.steps))
        steps = trace.steps[:index] + trace.steps[index + 1 :]
        return Trace(steps, min(trace.loop - (index < trace.loop), len(steps) - 1))
    if kind == "random step":
        return read_trace(TASK.random_answer(TASK.write(tokens), rng))
    return None


def make_pairs(total: int) -> dict[str, list[Pair]]:
    """About `total` pairs in all, half of them of each of `SIZES`."""
    rng = random.Random("checks")
    count = total // 7 + 5  # one of the eight kinds is rare
    formulas = [
        tokens for symbols, size in SIZES.values() for tokens in draw(rng, symbols, size, count)
    ]
    rng.shuffle(formulas)
    pairs: dict[str, list[Pair]] = {"right, ours": [], "right, Spot's": []}
    for tokens in formulas[:count]:
        ours, theirs = TASK.target_of(tokens), spot.find_trace(tokens, 10.0)
        if ours is not None and theirs is not None:
            pairs["right, ours"].append((tokens, read_trace(ours)))
            steps, loop = theirs
            pairs["right, Spot's"].append((tokens, Trace(tuple(map(tuple, steps)), loop)))
    right = [pair for group in pairs.values() for pair in group]
    for kind in ("literal flipped", "literal dropped", "literal added", "step deleted",
                 "random step"):  # fmt: skip
        made = ((tokens, corrupt(rng, kind, tokens, trace)) for tokens, trace in right)
        pairs[kind] = [(tokens, trace) for tokens, trace in made if trace is not None][:count]
    others = rng.sample(right, len(right))
    pairs["another's answer"] = [
        (tokens, trace) for (tokens, _), (_, trace) in zip(right, others, strict=True)
    ][:count]
    return pairs


def judge(pair: Pair, solver: str) -> bool | None:
    verdict = TASK.check(TASK.write(pair[0]), write_trace(pair[1]), solver=solver)
    return {Verdict.correct: True, Verdict.wrong: False}.get(verdict)


def measure_checks(count: int, limit: float) -> dict[str, Any]:
    sides: dict[str, Callable[[Pair], Any]] = {
        "three-valued": lambda pair: lasso.decide(pair[0], pair[1]),
        "task": lambda pair: judge(pair, "auto"),
        "Spot, low any": within(limit, lambda p, s: spot.holds(p[0], p[1].steps, p[1].loop, s)),
        "Spot, default": within(
            limit, lambda p, s: spot.holds(p[0], p[1].steps, p[1].loop, s, reference=True)
        ),
    }
    rows = {}
    for kind, pairs in make_pairs(count).items():
        measured = {side: timed(work, pairs) for side, work in sides.items()}
        verdicts = [
            {x for x in answers if x in (True, False)}
            for answers in zip(*(found for found, _ in measured.values()), strict=True)
        ]
        rows[kind] = {
            "checks": len(pairs),
            "right": sum(found is True for found in measured["task"][0]),
            "disagreements": sum(len(found) > 1 for found in verdicts),
            "sides": {
                side: {
                    "decided": sum(x in (True, False) for x in found),
                    "seconds": sum(seconds),
                    "slowest": max(seconds, default=0.0),
                }
                for side, (found, seconds) in measured.items()
            },
        }
    return rows


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
    verdicts, seconds = timed(
        lambda item: TASK.check(*item, notation="compact", timeout=10.0), items
    )
    return {
        "strings": count,
        "seconds": sum(seconds),
        "slowest": max(seconds),
        "median": statistics.median(seconds),
        "verdicts": {str(name): n for name, n in Counter(verdicts).most_common()},
    }


# -- output ---------------------------------------------------------------------------------------


def show(result: dict[str, Any]) -> str:
    lines = [f"{key}: {value}" for key, value in result["versions"].items()]
    for name, part in result["pairs"].items():
        lines += [
            "",
            f"## Pairs: {name}, {part['formulas']} formulas ({part['distinct']} distinct), "
            f"at most {part['limit']:g} s each",
            "",
            "| side | pairs | pairs/s | ours is faster by | timeouts | slowest, s | disagree |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        ours = part["sides"]["ours"]
        for side, row in part["sides"].items():
            lines.append(
                f"| {side} | {row['pairs']} | {row['pairs_per_second']:,.0f} "
                f"| {ours['pairs_per_second'] / row['pairs_per_second']:,.1f}x | {row['timeouts']} "
                f"| {row['slowest']:.3f} | {row['disagreements']} |"
            )
        whole = ours["pairs"] / (ours["seconds"] + ours["drawing_seconds"])
        lines += ["", f"Ours with drawing and canonical forms: {whole:,.0f} pairs/s."]
    checks = result["checks"]
    sides = list(next(iter(checks.values()))["sides"])
    lines += [
        "",
        "## Checks",
        "",
        "| answers | checks | right | three-valued decides | "
        + " | ".join(f"{side}, checks/s" for side in sides)
        + " | task against Spot, default | disagreements |",
        "| --- |" + " ---: |" * (len(sides) + 5),
    ]
    total = Counter[str]()
    for kind, row in checks.items():
        seconds = {side: row["sides"][side]["seconds"] for side in sides}
        total.update(seconds)
        total.update({k: row[k] for k in ("checks", "right", "disagreements")})
        total["decided"] += row["sides"]["three-valued"]["decided"]
        lines.append(_check_line(kind, row, row["sides"]["three-valued"]["decided"], seconds))
    lines.append(_check_line("all", total, total["decided"], {s: total[s] for s in sides}))
    slowest = {s: max(row["sides"][s]["slowest"] for row in checks.values()) for s in sides}
    shown = ", ".join(f"{side} {seconds:.3f} s" for side, seconds in slowest.items())
    strings = result["strings"]
    verdicts = ", ".join(f"{n:,} {name}" for name, n in strings["verdicts"].items())
    lines += [
        "",
        f"Slowest check: {shown}.",
        "",
        "## Strings",
        "",
        f"{strings['strings']:,} random and mutated answers, each with a verdict: "
        f"{strings['seconds']:.1f} s, median {1e6 * strings['median']:.0f} us, "
        f"slowest {1e3 * strings['slowest']:.1f} ms; {verdicts}.",
    ]
    return "\n".join(lines)


def _check_line(kind: str, row: Any, decided: float, seconds: dict[str, float]) -> str:
    rates = " | ".join(f"{row['checks'] / s:,.0f}" for s in seconds.values())
    ratio = seconds["Spot, default"] / seconds["task"]
    return (
        f"| {kind} | {row['checks']} | {row['right'] / row['checks']:.1%} "
        f"| {decided / row['checks']:.1%} | {rates} | {ratio:,.0f}x | {row['disagreements']} |"
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--formulas", type=int, default=300, help="for pairs, of each size")
    parser.add_argument("--pairs", type=int, default=2000, help="for checks")
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for a call of Spot")
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    result = {
        "versions": {
            "python": platform.python_version(),
            "spottl": version("spottl"),
            "python-sat": version("python-sat"),
        },
        "pairs": {name: measure_pairs(name, options.formulas, options.limit) for name in SIZES},
        "checks": measure_checks(options.pairs, options.limit),
        "strings": measure_strings(options.strings),
    }
    print(show(result))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
