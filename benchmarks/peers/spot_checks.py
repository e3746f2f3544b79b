"""Worker of a `SolverProcess`: Spot's containment check with one translation for each formula.

The automaton of a formula's negation is made once and met with each answer. Seconds are taken here,
around Spot alone, so that the way to this process and back costs Spot nothing.
"""

import runpy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SPOT = runpy.run_path(
    str(Path(__file__).resolve().parents[2] / "hf_alpha" / "logic" / "ltl" / "spot_worker.py")
)
prepare = _SPOT["prepare"]


def _hold(
    tokens: Sequence[str], traces: Sequence[tuple[list[list[str]], int]], options: Sequence[str]
) -> tuple[list[bool], float]:
    """Whether all words of each trace (steps, loop) satisfy a formula, and the seconds it took."""
    spot = prepare()
    start = time.perf_counter()
    dictionary = spot.make_bdd_dict()
    negation = spot.formula.Not(_SPOT["_formula"](tokens))
    counterexamples = negation.translate(*options, dict=dictionary)
    verdicts = [
        not counterexamples.intersects(_SPOT["_word_automaton"](steps, loop, dictionary))
        for steps, loop in traces
    ]
    return verdicts, time.perf_counter() - start


SERVED: dict[str, Any] = {"hold": _hold, "is_satisfiable": _SPOT["SERVED"]["is_satisfiable"]}
