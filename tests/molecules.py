"""Molecules in SMILES, and the same ones with other numbers for their rings."""

import random

from hf_alpha.modeling.ready_rules import READY_RULES

MOLECULES = [
    "CN1CCC[C@H]1c1cccnc1",  # nicotine
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",  # caffeine
    "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",  # penicillin G
    "C1CCC2(CC1)OCCO2",  # a spiro compound: one atom of two rings
    "C1CC12CC2",  # an atom closes a ring and opens another one
    "c1ccc2c(c1)ccc1c2ccc2ccccc21",
    "C12C3C4C1C5C2C3C45",  # cubane
    "[13CH3]C1CC[NH+]2CC1CC2.[Cl-]",
    "F/C1=C/CCCCCC1>>O=C1CCCCCCC1.[Na+]",
]


def renumbered(text: str, rng: random.Random) -> str:
    """Give each ring of SMILES a number that is free, drawn from 1 to 29."""
    opened: dict[int, int] = {}
    closed = set[int]()  # by the same atom: RDKit takes no number twice there
    written, end = "", 0
    for start, stop, ring in sorted(READY_RULES["smiles"](text)):
        closed = set() if any(map(str.isalpha, text[end:start])) else closed
        number = opened.pop(ring, None)
        if number is None:
            taken = closed.union(opened.values())
            number = opened[ring] = rng.choice([n for n in range(1, 30) if n not in taken])
        else:
            closed.add(number)
        sign = str(number) if number < 10 else f"%{number}"
        written, end = written + text[end:start] + sign, stop
    return written + text[end:]
