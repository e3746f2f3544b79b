"""What it costs and brings to keep a model's answers to the grammar of their task.

    python benchmarks/answer_grammar.py --count 128 --rounds 3 --out answer_grammar

Random formulas; the same beam searches with and without the grammar, in turns.
"""

import argparse
import random
from collections.abc import Sequence
from typing import Any

import torch

import measure
from hf_alpha.generation import (
    MaskedTokens,
    answer_batches,
    beam_search,
    encode_problems,
    extend_vocabulary,
    plan_batches,
    search_settings,
)
from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks import get_task
from hf_alpha.tasks.checking import Answer, check_answer

SETS = (("ltl", 35, 5), ("ltl", 50, 10), ("propositional", 25, 5))
"""Task, tokens and names of formulas; the model is the task's `-relational`."""
SEARCHES = ((3, 1), (10, 10))
"""Beams and answers."""
COLUMNS = (
    "task, tokens, names", "beams, answers", "right first", "with grammar", "a right one",
    "with grammar", "malformed", "with grammar", "time with / without",
)  # fmt: skip


def answers_of(
    model: Any, tokenizer: Any, encodings: Sequence[Any], settings: dict[str, Any]
) -> list[list[Answer]]:
    """Answers of a search, in the order of the problems."""
    by_index: dict[int, list[Answer]] = {}
    answer = beam_search(model, tokenizer, encodings, settings)
    for batch, given in answer_batches(model, plan_batches(encodings, 64), answer, "", False):
        by_index |= zip(batch, given, strict=True)
    return [by_index[index] for index in range(len(encodings))]


def row(place: tuple[str, int, int], search: tuple[int, int], count: int, rounds: int) -> list[str]:
    """Counts and times of a set of formulas and a search."""
    (name, size, num_names), (beams, top) = place, search
    task = get_task(name)
    model, tokenizer = load_checkpoint(measure.ROOT / "model_cards" / f"{name}-relational")
    extend_vocabulary(model, tokenizer, num_names)
    rng, names = random.Random(3), task.default_symbols(num_names)
    constants = task.constant_priority  # type: ignore[attr-defined]
    problems = [task.sample(rng, size, names, constants) for _ in range(count)]  # type: ignore[attr-defined]
    encodings = encode_problems(tokenizer, problems)
    free = search_settings(beams, 1.0, 64, top)
    kept = {**free, "logits_processor": [MaskedTokens(task.answer_mask(tokenizer))]}  # type: ignore[arg-type]
    counts: list[list[int]] = []
    for settings in (free, kept):
        verdicts = [
            [check_answer(task, problem, answer) for answer in given]
            for problem, given in zip(
                problems, answers_of(model, tokenizer, encodings, settings), strict=True
            )
        ]
        counts.append(
            [
                sum(own[0].is_correct for own in verdicts),
                sum(any(one.is_correct for one in own) for own in verdicts),
                sum(one == "malformed" for own in verdicts for one in own),
            ]
        )
    times = measure.in_turns(
        {
            "free": lambda: answers_of(model, tokenizer, encodings, free),
            "kept": lambda: answers_of(model, tokenizer, encodings, kept),
        },
        rounds,
    )
    cells = [str(number) for pair in zip(*counts, strict=True) for number in pair]
    ratio = measure.three(measure.ratios(times["kept"], times["free"]))
    return [f"{name}, {size}, {num_names}", f"{beams}, {top}", *cells, ratio]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=128, help="formulas of a set (128)")
    parser.add_argument("--rounds", type=int, default=3, help="of times (3)")
    measure.add_out(parser)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    rows = [row(one, search, options.count, options.rounds) for one in SETS for search in SEARCHES]
    text = f"Of {options.count} formulas each.\n\n" + measure.table(COLUMNS, rows)
    measure.finish(text, {"rows": rows}, options.out, argv)


if __name__ == "__main__":
    main()
