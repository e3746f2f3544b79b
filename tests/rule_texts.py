"""Ready-made rules and real texts: `python tests/rule_texts.py RULE FILE ...` prints a table's row.

RULE is smiles, atom_maps or json (with scopes: `json.paths`). A file has a text in each line, such
as a reaction of USPTO-MIT or a row of BFCL, also with .gz. All are renamed by `check_rule`, which
stops at the first one that does not mean the same. Names are compared with those of RDKit, or of
Python's `json`.
"""

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hf_alpha.testing import FRESH, check_rule

MOST_TEXTS = 3000


def sides(reaction: str) -> list[Any]:
    from rdkit import Chem

    return [Chem.MolFromSmiles(side, sanitize=False) for side in reaction.split(" ")[0].split(">")]


def written(reaction: str, mapped: bool = True) -> list[str]:
    """Each side as RDKit writes it, without regard to ring numbers; or to those of atoms."""
    from rdkit import Chem

    molecules = sides(reaction)
    for atom in (atom for side in molecules if not mapped for atom in side.GetAtoms()):
        atom.SetAtomMapNum(0)
    return [Chem.MolToSmiles(side) for side in molecules]


def rings(reaction: str) -> int:
    """How many rings are closed: bonds beyond those that join the atoms of each molecule."""
    from rdkit import Chem

    return sum(
        side.GetNumBonds() - side.GetNumAtoms() + len(Chem.GetMolFrags(side))
        for side in sides(reaction)
    )


def mapped(reaction: str) -> int:
    atoms = (atom for side in sides(reaction) for atom in side.GetAtoms())
    return len({atom.GetAtomMapNum() for atom in atoms} - {0})


def paths(value: Any, around: str = "") -> Iterator[tuple[str, str]]:
    """Each key, with the keys around it."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield key, around
        yield from paths(inner, f"{around}/{key}")
    for inner in value if isinstance(value, list) else ():
        yield from paths(inner, around)


def without_keys(text: str) -> Any:
    """JSON with a number for each key, and for strings that are spelled like one."""
    content = json.loads(text)
    ranks = {key: f"\0{rank}" for rank, key in enumerate(dict(paths(content)))}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return [(ranks[key], plain(inner)) for key, inner in value.items()]
        if isinstance(value, list):
            return [*map(plain, value)]
        return ranks.get(value, value) if isinstance(value, str) else value

    return plain(content)


def shape(text: str) -> Any:
    """JSON without its keys, nor strings that are spelled like one."""
    content = json.loads(text)
    keys = {key for key, _ in paths(content)}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return [*map(plain, value.values())]
        if isinstance(value, list):
            return [*map(plain, value)]
        return None if isinstance(value, str) and value in keys else value

    return plain(content)


class Kind(NamedTuple):
    """How a rule is checked: what a text means, how many names it has, and what they may be."""

    rule: dict[str, Any]
    meaning: Callable[[str], Any]
    reference: Callable[[str], int]
    names: Sequence[str] = FRESH


KINDS = {
    "smiles": Kind({"rule": "smiles"}, written, rings, [f"%{n}" for n in range(40, 99)]),
    "atom_maps": Kind(
        {"rule": "atom_maps"},
        lambda text: written(text, mapped=False),
        mapped,
        [*map(str, range(1000, 2000))],
    ),
    "json": Kind(
        {"rule": "json"}, without_keys, lambda text: len({k for k, _ in paths(json.loads(text))})
    ),
    "json.paths": Kind(
        {"rule": "json", "scopes": True}, shape, lambda text: len({*paths(json.loads(text))})
    ),
}


def main(name: str, files: Sequence[str]) -> None:
    kind = KINDS[name]
    data = [Path(file).read_bytes() for file in files]
    unpacked = [gzip.decompress(part) if part[:2] == b"\x1f\x8b" else part for part in data]
    texts = [line for part in unpacked for line in part.decode().splitlines() if line.strip()]
    texts = random.Random(0).sample(texts, min(MOST_TEXTS, len(texts)))
    found = check_rule(
        kind.rule, texts, lambda *both: len({*map(repr, map(kind.meaning, both))}) == 1, kind.names
    )
    share = found.names / sum(map(kind.reference, texts))
    print(f"| `{name}` | {found.texts:,} | {found.texts:,} | {found.names:,} | {share:.1%} |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
