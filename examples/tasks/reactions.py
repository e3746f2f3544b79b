"""Make pairs of reactants and their product, in SMILES; numbers of rings are names.

    python examples/tasks/reactions.py data/uspto_mit data/reactions
    python examples/tasks/reactions.py data/uspto_mit data/reactions-maps --maps

The first folder has `valid.txt` and `test.txt` of USPTO-MIT (Jin et al. 2017), as the repository
connorcoley/rexgen_direct has them: 70,000 reactions with numbers of atoms. Of these 5,000 each are
held out to validate and to test. With `--maps` numbers of atoms stay, and are names too; then
reactions of more than 40 atoms are in `more.jsonl` alone: no other file has as many names in a row.

`permuted.jsonl` and `random.jsonl` have the reactions of `test.jsonl` as others may write them:
with other numbers, and with reactants in another order of atoms. It is the same molecules.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pair_files import parser_of, run

from hf_alpha.io.folders import write_text
from hf_alpha.tasks.text.molecules import rdkit

HELD_OUT = 5_000
"""Reactions to validate, and to test."""
MOST_ATOMS = 40
"""Numbers of atoms in a reaction that is for training, of 100 at most."""
LONGEST = 100
"""Tokens of reactants or product at most; ANNalog has 102 positions, for two more."""
TOKEN = re.compile(r"\[[^\]]+\]|%\d{2}|Br|Cl|.")
RING = re.compile(r"\[[^\]]*\]|%(\d{2})|(\d)")
MAP = re.compile(r":(\d+)(?=\])")
Pair = tuple[str, str]


def written(side: str, maps: bool, rng: random.Random | None = None) -> str | None:
    """Return molecules as RDKit writes them, in a drawn order of atoms; None if it reads none."""
    chem = rdkit()
    texts = []
    for part in side.split("."):
        if (molecule := chem.MolFromSmiles(part)) is None or not molecule.GetNumAtoms():
            return None
        numbers = [atom.GetAtomMapNum() for atom in molecule.GetAtoms()]
        for atom in molecule.GetAtoms():  # where an atom stands must not depend on its number
            atom.SetAtomMapNum(0)
        text = chem.MolToSmiles(molecule)
        if maps or rng:
            places = list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
            places = rng.sample(places, len(places)) if rng else places
            for atom, number in zip(molecule.GetAtoms(), numbers, strict=True):
                atom.SetAtomMapNum(number if maps else 0)
            text = chem.MolToSmiles(chem.RenumberAtoms(molecule, places), canonical=False)
        texts.append(text)
    return ".".join(rng.sample(texts, len(texts)) if rng else sorted(texts, key=unnumbered))


def unnumbered(smiles: str) -> str:
    """Leave out numbers of atoms."""
    return MAP.sub("", smiles)


def pairs(files: Sequence[Path], maps: bool) -> Iterator[tuple[str, Pair]]:
    """Yield reactions, as they stand in the files and as RDKit writes them."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            left, _, right = line.split(" ")[0].partition(">>")
            source, target = written(left, maps), written(right, maps)
            if not source or not target or target in source.split("."):
                continue
            if max(len(TOKEN.findall(side)) for side in (source, target)) <= LONGEST:
                yield left, (source, target)


def renumbered(pair: Pair, rng: random.Random) -> Pair:
    """Draw other numbers of rings and of atoms, the same in both texts."""
    few = "%" not in "".join(pair)
    rings = [0, *(rng.sample(range(1, 10), 9) if few else rng.sample(range(1, 100), 99))]
    atoms = rng.sample(range(1, 1000), 999)

    def ring(found: re.Match[str]) -> str:
        digits = found[1] or found[2]
        if digits is None:
            return found[0]
        number = rings[int(digits)]
        return str(number) if number < 10 else f"%{number}"

    source, target = (MAP.sub(lambda m: f":{atoms[int(m[1])]}", RING.sub(ring, s)) for s in pair)
    return source, target


def numbers(pair: Pair) -> int:
    """Count the numbers of atoms."""
    return len({*MAP.findall("".join(pair))})


def row(pair: Pair) -> str:
    """Write a pair as a line of JSON."""
    return json.dumps(dict(zip(("source", "target"), pair, strict=True))) + "\n"


def save(data: Path, folder: Path, maps: bool, seed: int = 0) -> None:
    """Write the files.

    Raises:
        ValueError: there are too few reactions.
    """
    found = dict.fromkeys(pairs([data / "test.txt", data / "valid.txt"], maps))
    more = [pair for _, pair in found if numbers(pair) > MOST_ATOMS]
    found = dict.fromkeys(each for each in found if numbers(each[1]) <= MOST_ATOMS)
    lefts, rows = zip(*found, strict=True) if found else ((), ())
    held_out = min(HELD_OUT, len(rows) // 10)
    if not held_out:
        raise ValueError(f"{data} has {len(rows)} reactions that RDKit reads: give 10 and more")
    rng = random.Random(seed)
    order = rng.sample(range(len(rows)), len(rows))
    test, validation = order[:held_out], order[held_out : 2 * held_out]
    sources = {rows[i][0] for i in (*test, *validation)}
    others = [(written(lefts[i], maps, rng) or rows[i][0], rows[i][1]) for i in test]
    files = {
        "train": [rows[i] for i in order[2 * held_out :] if rows[i][0] not in sources],
        "validation": [rows[i] for i in validation],
        "test": [rows[i] for i in test],
        "permuted": [renumbered(rows[i], rng) for i in test],
        "random": others,
        **({"more": rng.sample(more, min(len(more), HELD_OUT))} if maps else {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        write_text(folder / f"{name}.jsonl", "".join(map(row, lines)))
        print(f"{name}.jsonl: {len(lines):,} reactions")


def main(argv: Sequence[str] | None = None) -> None:
    """Write the files as a command line says."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="the folder of valid.txt and test.txt")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--maps", action="store_true", help="keep numbers of atoms")
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    run(save, parser, argv)


if __name__ == "__main__":
    main()
