"""Make longer LTL problems of shorter ones: satisfiable conjunctions of training formulas.

    python examples/tasks/conjunctions.py runs/data/ltl-long runs/data/ltl-conjunctions

The first folder is made by training (`hf-alpha train ltl/relational-long`) or `hf-alpha
generate-data`. Formulas of its training part with at most 30 tokens and 5 names get other names of
5, and stand side by side under `&` until a length that is drawn, 36 to 126 tokens, is reached.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from pair_files import number, parser_of, run

from hf_alpha.data.rows import load
from hf_alpha.io.folders import write_text
from hf_alpha.tasks import get_task

PART, NAMES, LENGTHS = 30, 5, (36, 126)
TASK = get_task("ltl")


def conjunctions(parts: Sequence[Sequence[str]], rng: random.Random) -> Iterator[dict[str, str]]:
    """Yield problems and answers, no problem twice.

    Args:
        parts: tokens of formulas, in prefix notation.
        rng: the random numbers.
    """
    seen = set[str]()
    while True:
        longest = rng.randint(*LENGTHS)
        tokens = renamed(rng.choice(parts), rng)
        while len(tokens) + len(part := renamed(rng.choice(parts), rng)) < longest:
            tokens = ["&", *tokens, *part]
        problem = TASK.write(tokens)
        if len(tokens) < LENGTHS[0] or problem in seen:
            continue
        seen.add(problem)
        if answer := TASK.target_of(tokens):
            yield {"problem": problem, "answer": answer}


def renamed(tokens: Sequence[str], rng: random.Random) -> list[str]:
    """Return a formula with other names."""
    old = TASK.symbols_in(tokens)
    names = dict(zip(old, rng.sample(TASK.default_symbols(NAMES), len(old)), strict=True))
    return [names.get(token, token) for token in tokens]


def main(data: Path, out: Path, rows: int) -> None:
    """Write the file."""
    parsed = map(TASK.parse, load(data, "train")["problem"])
    parts = [t for t in parsed if len(t) <= PART and len(TASK.symbols_in(t)) <= NAMES]
    drawn = conjunctions(parts, random.Random(0))
    lines = [json.dumps(next(drawn)) + "\n" for _ in range(rows)]
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "train.jsonl", "".join(lines))


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("data", type=Path, help="folder of generated formulas")
    arguments.add_argument("out", type=Path, help="folder for train.jsonl")
    arguments.add_argument("--rows", type=number(1), default=20_000, help="conjunctions (20000)")
    run(main, arguments)
