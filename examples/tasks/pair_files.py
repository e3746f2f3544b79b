"""Files of pairs that are drawn: for training, and tests with names of training and with others.

Each task here that is drawn has a `FILES`, and is a command: `python examples/tasks/anf.py
data/anf`.
"""

import argparse
import json
import math
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from hf_alpha.cli import errors_in_one_line
from hf_alpha.io.folders import write_text
from hf_alpha.tasks.text.anf import Term

Row = dict[str, Any]
Size = tuple[int, ...]
PARTS = {"train": "names to train with", "test": "the same names", "new-names": "other names"}
"""Files without their suffix, and which names they have."""
ATTEMPTS = 1000
"""Problems that are drawn at most to find one that training lacks."""


def letter_names(count: int) -> tuple[list[str], list[str]]:
    """Return two pools of so many names, a letter and a number each, without a common letter."""
    names = [f"{letter}{number}" for number in range(count) for letter in ascii_lowercase]
    first, second = ascii_lowercase[:13], ascii_lowercase[13:]
    pools = [[name for name in names if name[0] in letters][:count] for letters in (first, second)]
    return pools[0], pools[1]


def spread(rng: random.Random, names: Sequence[str], count: int) -> list[str]:
    """Return so many names in random order, each of those given at least once."""
    chosen = [*names, *rng.choices(names, k=count - len(names))]
    rng.shuffle(chosen)
    return chosen


def draw_term(rng: random.Random, leaves: Sequence[str], operators: Sequence[str]) -> Term:
    """Draw a term over leaves in their order."""
    if len(leaves) == 1:
        return leaves[0]
    middle = rng.randint(1, len(leaves) - 1)
    left, right = (draw_term(rng, part, operators) for part in (leaves[:middle], leaves[middle:]))
    return rng.choice(operators), left, right


def write_term(term: Term, inner: bool = False) -> str:
    """Write a term; `inner` is whether it stands in another one."""
    if isinstance(term, str):
        return term
    if len(term) == 2:
        return f"{term[0]} {write_term(term[1], True)}"
    operator, left, right = term
    text = f"{write_term(left, True)} {operator} {write_term(right, True)}"
    return f"( {text} )" if inner else text


@dataclass(frozen=True)
class PairFiles:
    """What the files of a task have.

    Args:
        draw: a pair of random numbers, names to choose from, and a size; with `source` and
            `target`, and with other columns that say what size it is.
        seen: names of training.
        unseen: names that training lacks, as many.
        train: sizes in training, each as often as the others.
        test: sizes in the tests.
    """

    draw: Callable[..., Row]
    seen: Sequence[str]
    unseen: Sequence[str]
    train: Sequence[Size]
    test: Sequence[Size]

    def save(self, folder: Path, rows: int = 20_000, tests: int = 100, seed: int = 0) -> None:
        """Write `train.jsonl`, and `test.jsonl` and `new-names.jsonl`: the same problems, renamed.

        No problem of a test is, up to renaming, one of training.

        Args:
            folder: where the files go.
            rows: pairs of training.
            tests: pairs of each size in a test.
            seed: the files are a function of it and of the numbers of pairs.

        Raises:
            ValueError: training has all problems of a size.
        """
        rng = random.Random(f"{seed} train")
        train = [self.draw(rng, self.seen, *rng.choice(self.train)) for _ in range(rows)]
        shapes = {shape(row["source"], self.seen) for row in train}
        files = {"train": train}
        for part, pool in {"test": self.seen, "new-names": self.unseen}.items():
            rng = random.Random(f"{seed} test")
            files[part] = list(self._other_problems(rng, pool, shapes, tests))
        folder.mkdir(parents=True, exist_ok=True)
        for part, pairs in files.items():
            write_text(folder / f"{part}.jsonl", "".join(json.dumps(row) + "\n" for row in pairs))

    def _other_problems(
        self, rng: random.Random, pool: Sequence[str], shapes: Collection[str], tests: int
    ) -> Iterator[Row]:
        for size in self.test:
            for _ in range(tests):
                drawn = (self.draw(rng, pool, *size) for _ in range(ATTEMPTS))
                row = next((row for row in drawn if shape(row["source"], pool) not in shapes), None)
                if row is None:
                    raise ValueError(
                        f"{ATTEMPTS} problems of the size {size} are all in training: draw fewer "
                        "rows for training, or larger problems for the test"
                    )
                yield row

    def main(self, argv: Sequence[str] | None = None) -> None:
        """Write the files as a command line says."""
        run(self.save, parser(), argv)


def run(
    main: Callable[..., None],
    arguments: argparse.ArgumentParser,
    argv: Sequence[str] | None = None,
) -> None:
    """Call a function as a command line says; an error that its user can mend is one line."""
    options = vars(arguments.parse_args(argv))
    with errors_in_one_line():
        main(**options)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return what reads the arguments of a script that says of itself what it writes."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def number(least: int, most: float = math.inf) -> Callable[[str], int]:
    """Return what reads a number of a command line that is in bounds."""

    def integer(text: str) -> int:
        if not least <= int(text) <= most:
            bounds = f"at least {least}" if most == math.inf else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"{text} is not {bounds}")
        return int(text)

    return integer


def parser() -> argparse.ArgumentParser:
    """Return what reads the arguments of `PairFiles.save` from a command line."""
    arguments = parser_of("Write " + ", ".join(f"{part}.jsonl ({PARTS[part]})" for part in PARTS))
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rows", type=number(1), default=20_000, help="of training (20000)")
    arguments.add_argument("--tests", type=number(1), default=100, help="of each size (100)")
    arguments.add_argument("--seed", type=int, default=0, help="(0)")
    return arguments


def files_of_operations(draw: Callable[..., Row], most: int, most_names: int = 4) -> PairFiles:
    """Return the files of terms: training has up to `most` operations and `most_names` names.

    A test has `most` operations, and any number of names.

    Args:
        draw: as of `PairFiles`; a size is names, operations.
        most: operations.
        most_names: of a term in training, which has at most one more than operations.
    """
    seen, unseen = letter_names(max(26, 2 * most + 1))  # of the source, and new ones
    sizes = range(1, most + 1)
    train = [(names, size) for size in sizes for names in range(2, min(most_names, size + 1) + 1)]
    return PairFiles(draw, seen, unseen, train, [(names, most) for names in range(2, most + 2)])


def main_of_operations(
    draw: Callable[..., Row], most: int, argv: Sequence[str] | None = None
) -> None:
    """Write the files of terms as a command line says; with at most `most` operations by default.

    Args:
        draw: as of `files_of_operations`.
        most: as there.
        argv: the command line.
    """
    arguments = parser()
    arguments.add_argument("--operations", type=number(1), default=most, help=f"at most ({most})")
    arguments.add_argument("--names", type=number(2), default=4, help="at most, in training (4)")

    def save(operations: int, names: int, **options: Any) -> None:
        files_of_operations(draw, operations, names).save(**options)

    run(save, arguments, argv)


def shape(text: str, names: Collection[str], spelling: Callable[[int], str] = "#{}".format) -> str:
    """Return a text with its names numbered by first occurrence: what renaming leaves of it.

    Args:
        text: the text.
        names: that it may have.
        spelling: how a number is written.
    """
    pool, spelled = frozenset(names), dict[str, str]()

    def number(word: re.Match[str]) -> str:
        name = word[0]
        return spelled.setdefault(name, spelling(len(spelled))) if name in pool else name

    return re.sub(r"\w+", number, text)
