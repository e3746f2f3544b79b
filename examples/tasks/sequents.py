"""Make sequents of implications with their proofs, as terms of Lean have them; and check proofs.

    python examples/tasks/sequents.py data/sequents

`h1 : p → q , h2 : p ⊢ q` is proved by `( h1 h2 )`: hypotheses and propositions are names. Training
has proofs of depth 0 to 3 and up to two hypotheses that are not needed, the test depths 1 to 4, up
to five of these, and no name of training. `check` takes any proof.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from pair_files import parser_of, run

PROPOSITIONS = list("pqrstuvwxyz")
HYPOTHESES = [f"h{number}" for number in range(1, 10)]
NEW_PROPOSITIONS = """A B C is_open Compact Hausdorff α β γ Prime even odd Finite linear φ ψ Dense
    Closed Normal Abelian Cyclic Simple Local Flat Smooth Proper Étale Affine Reduced
    Noetherian""".split()  # noqa: RUF001, SIM905
NEW_HYPOTHESES = """h₁ h₂ hpq foo.bar Nat.succ_le this hx' ih H key lemma_1 aux hab isClosed_of
    mul_comm inst✝ hα step base tr""".split()  # noqa: RUF001, SIM905
ROWS = 20_000


class Sequent:
    """Hypotheses, each with what it needs and what it gives, and a proof of the goal.

    Raises:
        IndexError: there are too few names.
    """

    def __init__(
        self,
        rng: random.Random,
        propositions: Sequence[str],
        hypotheses: Sequence[str],
        depth: int,
        idle: int,
    ):
        self._rng = rng
        self._propositions = rng.sample(propositions, len(propositions))
        self._hypotheses = rng.sample(hypotheses, len(hypotheses))
        self.given: dict[str, list[str]] = {}
        self.goal = self._propositions.pop()
        self.proof = self._prove(self.goal, depth)
        proved = [types[-1] for types in self.given.values()]
        for _ in range(idle):
            new, other = self._propositions.pop(), rng.choice(proved)
            # A dead end, as nothing proves `new`, or a consequence that is not asked for.
            types = rng.choice([[new, other], [other, new]])
            self.given[self._hypotheses.pop()] = types

    def _prove(self, goal: str, depth: int) -> str:
        """Return a proof of exactly this depth; its hypotheses are given."""
        name = self._hypotheses.pop()
        if depth == 0:
            self.given[name] = [goal]
            return name
        needed = [self._propositions.pop() for _ in range(self._rng.choice([1, 1, 2]))]
        self.given[name] = [*needed, goal]
        depths = [depth - 1, *(self._rng.randrange(depth) for _ in needed[1:])]
        return f"( {name} {' '.join(map(self._prove, needed, depths))} )"

    def pair(self) -> dict[str, str]:
        """Return source and target; hypotheses are in random order."""
        listed = [f"{name} : {' → '.join(types)}" for name, types in self.given.items()]
        self._rng.shuffle(listed)
        return {"source": f"{' , '.join(listed)} ⊢ {self.goal}", "target": self.proof}


def check(source: str, answer: str, target: str | None = None) -> bool:
    """Return whether an answer is a proof of the sequent, not necessarily that of the data."""
    given, goal = source.split(" ⊢ ")
    types = dict(hypothesis.split(" : ") for hypothesis in given.split(" , "))
    words = answer.split()[::-1]
    try:
        return _proved(words, types) == goal and not words
    except (IndexError, KeyError, ValueError):
        return False


def _proved(words: list[str], types: dict[str, str]) -> str:
    """Return what the term at the end of `words` proves, and take it away."""
    applied = words[-1] == "("
    name = words.pop(-2) if applied else words.pop()
    *needed, proved = types[name].split(" → ")
    if applied:
        words.pop()
        arguments = []
        while words[-1] != ")":
            arguments.append(_proved(words, types))
        words.pop()
        if arguments != needed or not needed:
            raise ValueError("other arguments than the hypothesis needs")
    elif needed:
        raise ValueError("a hypothesis without its arguments")
    return proved


def draw(
    rng: random.Random,
    names: tuple[list[str], list[str]],
    depths: Sequence[int],
    idle: Sequence[int],
    count: int,
) -> list[dict[str, str]]:
    """Draw pairs; a sequent for which there are too few names is drawn again."""
    pairs: list[dict[str, str]] = []
    while len(pairs) < count:
        try:
            pairs.append(Sequent(rng, *names, rng.choice(depths), rng.choice(idle)).pair())
        except IndexError:
            continue
    return pairs


def main(folder: Path) -> None:
    """Write the files."""
    rng = random.Random(0)
    seen, new = (PROPOSITIONS, HYPOTHESES), (NEW_PROPOSITIONS, NEW_HYPOTHESES)
    parts = {
        "train": draw(rng, seen, [0, 1, 2, 2, 3], range(3), ROWS),
        "test": draw(rng, new, range(1, 5), range(6), 500),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in parts.items():
        rows = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
        (folder / f"{name}.jsonl").write_text(rows, encoding="utf-8")


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("folder", type=Path)
    run(main, arguments)
