"""A short search for a learning rate: one that suits one encoding may stall another."""

import math
from dataclasses import replace
from pathlib import Path

from hf_alpha.finite import NotFiniteError
from hf_alpha.recipe import Recipe

from .runs import ALONE, Runner, learning_rate_of, with_encoding

FACTORS = (1 / 3, 1.0, 3.0)
"""Of the recipe's learning rate: those that are tried."""


def tuned_rate(recipe: Recipe, encoding: str, folder: Path, steps: int, runner: Runner) -> float:
    """Return the learning rate, of three, with the lowest loss on held-out rows after a few steps.

    Each trial is a whole run of so many steps, its schedule included.

    Args:
        recipe: with the middle one of the three rates.
        encoding: what the comparison calls it.
        folder: of the trials, which are not made again.
        steps: of the optimiser, for each rate.
        runner: trains.
    """
    losses: dict[float, float] = {}
    runner = replace(runner, seconds=None)
    for factor in FACTORS:
        rate = float(f"{factor * learning_rate_of(recipe):.2g}")
        trial = with_encoding(
            recipe, encoding, folder / f"{encoding}-{rate:g}", **ALONE
            | {
                "learning_rate": rate,
                "max_steps": steps,
                "warmup_steps": min(recipe.training.get("warmup_steps", 0), steps // 10),
                "eval_strategy": "steps",
                "eval_steps": steps,
            },
        )  # fmt: skip
        unanswered = trial.data.model_copy(update={"max_answer_samples": 0})
        trial = trial.model_copy(update={"data": unanswered})
        try:
            loss = runner.train(trial, encoding).eval_loss
        except NotFiniteError:
            loss = math.inf
        losses[rate] = math.inf if loss is None else loss
    best = min(losses, key=lambda rate: losses[rate])
    tried = ", ".join(f"{loss:.4g} with {rate:g}" for rate, loss in losses.items())
    ends = {min(losses): "smallest", max(losses): "largest"}
    hint = f", the {ends[best]} of them: another search may go on there" if best in ends else ""
    runner.say(f"{encoding}: held-out loss {tried}; the learning rate is {best:g}{hint}")
    return best


__all__ = ["FACTORS", "tuned_rate"]
