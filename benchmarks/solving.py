"""LTL formulas solved within a time: a model, bounded search, Spot, and all behind one another.

    python benchmarks/solving.py --count 16 --limit 2 --formulas 400 --out solving

Sets of formulas: the specification patterns of Dwyer et al., random ones of several sizes, and hard
ones, whose shortest trace has three steps or more. A formula counts as solved with a right answer,
or with a proof that it has none. Beside the table, a picture (NAME.png) has how many are solved
within each time. Then `solve` over many formulas with a model, beside generation in batches with
checks, and beside one formula at a time.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

import measure
from hf_alpha import solve
from hf_alpha.answer.solving import Settings, Solution, ask
from hf_alpha.generation import configured_limit, generate_answers
from hf_alpha.loading import load_checkpoint
from hf_alpha.logic.ltl import decide, spot
from hf_alpha.logic.ltl.bounded_worker import search
from hf_alpha.logic.ltl.grammar import for_solvers
from hf_alpha.logic.ltl.witness import MAX_STEPS
from hf_alpha.tasks import Problem, get_task
from hf_alpha.tasks.checking import check_answer
from hf_alpha.tasks.solver_process import SolverCrashError

TASK = get_task("ltl")
SIZES = {35: 5, 50: 10, 100: 10, 200: 20, 400: 20}
"""Tokens of random formulas -> names."""
HARD_STEPS = 3
Way = Callable[[Problem], bool]


def patterns() -> list[Problem]:
    """The specification patterns."""
    path = measure.ROOT / "tests" / "data_files" / "dwyer.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [TASK.read(line.split("\t")[3]) for line in lines]


def drawn(seed: int, size: int, num_names: int) -> Iterator[Problem]:
    """Random formulas, as training data is drawn."""
    rng, names = random.Random(seed), TASK.default_symbols(num_names)
    while True:
        yield TASK.read(TASK.sample(rng, size, names, TASK.constant_priority))


def hard(seed: int) -> Iterator[Problem]:
    """Random formulas that need `HARD_STEPS` steps or more."""
    for problem in drawn(seed, 50, 5):
        try:
            trace = decide.find_trace(problem.tokens, problem.symbols, 2)
        except TimeoutError:
            continue
        if trace is not None and len(trace.steps) >= HARD_STEPS:
            yield problem


def sets(count: int) -> dict[str, list[Problem]]:
    """Formulas by the name of their set."""
    named = {"patterns": patterns()}
    for size, num_names in SIZES.items():
        named[f"{size} tokens, {num_names} names"] = list(
            islice(drawn(size, size, num_names), count)
        )
    return {**named, f"{HARD_STEPS} steps and more": list(islice(hard(1), count))}


def ways(model: tuple[Any, Any], limit: float) -> dict[str, Way]:
    """Ways to solve a formula, each of which says whether it has."""
    settings = Settings(task=TASK, model=model, timeout=limit)
    chain = settings.chain(TASK)
    ask_model, ask_solver = chain.links

    def by_model(problem: Problem) -> bool:
        links = replace(chain, links=[ask_model])
        (solution,) = ask(links, TASK, [Solution(problem, read=problem)])
        return solution.solved

    def by_all(problem: Problem) -> bool:
        links = replace(chain, links=[ask_solver, ask_model])
        (solution,) = ask(links, TASK, [Solution(problem, read=problem)])
        return solution.solved or solution.unsatisfiable

    def by_search(problem: Problem) -> bool:
        decide.find_trace(problem.tokens, problem.symbols, limit)
        return True

    def by_spot(options: Sequence[str] | None) -> Way:
        def translated(problem: Problem) -> bool:
            spot.find_trace(problem.tokens, limit, options)
            return True

        return translated

    return {
        "model": by_model,
        "bounded search": by_search,
        "Spot, low any": by_spot(spot.FAST),
        "Spot, default": by_spot(None),
        "portfolio": by_all,
    }


def timed(way: Way, problem: Problem) -> tuple[float, bool]:
    """Seconds of a way, and whether it solved the problem."""
    start = time.perf_counter()
    try:
        solved = way(problem)
    except (TimeoutError, SolverCrashError):
        solved = False
    return time.perf_counter() - start, solved


def cell(times: Sequence[tuple[float, bool]]) -> str:
    """How many are solved, and the median time of all."""
    seconds = statistics.median(second for second, _ in times)
    return f"{sum(solved for _, solved in times)}; {1000 * seconds:,.1f}"


def throughput(model: tuple[Any, Any], count: int) -> dict[str, float]:
    """Seconds of a formula over many: in batches with checks, by `solve`, and one at a time."""
    problems = list(islice(drawn(7, 35, 5), count))
    beams = {"num_beams": TASK.num_beams, "max_new_tokens": configured_limit(model[0])}
    loaded: Any = {"task": TASK, "model": model, "method": "model"}

    def batched() -> None:
        answers = generate_answers(*model, problems, progress=False, **beams)
        for problem, given in zip(problems, answers, strict=True):
            if given is not None and not check_answer(TASK, problem, given[0]).is_correct:
                TASK.has_answer(problem)  # as `solve` does

    few = problems[: count // 8]
    easy = [one for one in problems if search(for_solvers(one), MAX_STEPS)]
    tokens = [for_solvers(one) for one in easy]
    sides: dict[str, tuple[Callable[[], object], int]] = {
        "batches and checks": (batched, count),
        "solve": (lambda: list(solve(problems, **loaded)), count),
        "solve, one at a time": (lambda: [solve(one, **loaded) for one in few], len(few)),
        "solve, by the solver": (lambda: list(solve(easy, task=TASK, method="solver")), len(easy)),
        "bounded search in this process": (lambda: [*map(search, tokens)], len(easy)),
    }
    seconds = measure.in_turns({name: side for name, (side, _) in sides.items()}, rounds=2)
    return {name: min(seconds[name]) / number for name, (_, number) in sides.items()}


def draw(data: dict[str, dict[str, list[tuple[float, bool]]]], path: Path, limit: float) -> None:
    """Draw how many formulas of all sets each way solves within a time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for way in next(iter(data.values())):
        times = sorted(t for found in data.values() for t, solved in found[way] if solved)
        axes.step(times, range(1, len(times) + 1), where="post", label=f"{way} ({len(times)})")
    total = sum(len(next(iter(found.values()))) for found in data.values())
    axes.axhline(total, color="grey", linewidth=0.5)
    axes.set(xscale="log", xlim=(5e-4, limit), xlabel="seconds", ylabel=f"solved, of {total}")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and write a table and a picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", default=str(measure.ROOT / "model_cards" / "ltl-relational"))
    parser.add_argument("--count", type=int, default=16, help="random formulas of a set (16)")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for a formula (2)")
    parser.add_argument("--formulas", type=int, default=400, help="formulas in a row (400)")
    measure.add_out(parser)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    model = load_checkpoint(options.model)
    tried = ways(model, options.limit)
    for way in tried.values():  # processes start, caches fill
        timed(way, TASK.read("G(a -> F b)"))
    data: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for name, problems in sets(options.count).items():
        data[name] = {way: [timed(run, one) for one in problems] for way, run in tried.items()}
    rows = [
        [name, str(len(next(iter(found.values())))), *map(cell, found.values())]
        for name, found in data.items()
    ]
    text = "Solved; median milliseconds of all.\n\n"
    text += measure.table(["formulas", "number", *tried], rows)
    rate = throughput(model, options.formulas)
    text += "\n\n" + measure.table(
        [f"{options.formulas} formulas of 35 tokens in a row", "ms a formula"],
        [[name, f"{1000 * seconds:.2f}"] for name, seconds in rate.items()],
    )
    if options.out is not None:
        draw(data, measure.picture(options.out), options.limit)
    measure.finish(text, {"solved": data, "seconds": rate}, options.out, argv)


if __name__ == "__main__":
    main()
