"""A check of molecules in SMILES: an answer is right if it is the target's molecule.

However it is written: the order of atoms and the numbers of rings do not matter. Numbers of atoms
(`[CH3:1]`) do, where the target has them: they say which atom of the source one of the answer is.
Which of several that cannot be told apart does not matter. RDKit reads molecules (`pip install
'hf_alpha[chemistry]'`). `examples/tasks/reactions.py` writes such pairs.
"""

import re
from importlib import import_module
from typing import Any

from hf_alpha.wings import optional

_NUMBER = re.compile(r":\d+(?=\])")


def check(source: str, answer: str, target: str | None = None) -> tuple[bool | None, str]:
    """Return whether an answer is the target's molecule, and why not.

    Without a target, a molecule may be right.

    Raises:
        ImportError: RDKit is not installed.
        ValueError: the target is no molecule.
    """
    expected, written = canonical(target or ""), canonical(answer)
    if target is not None and expected is None:
        raise ValueError(f"the target {target!r} is no molecule that RDKit can read")
    if written is None:
        return False, "no molecule: RDKit cannot read it"
    if target is None:
        return None, "a molecule; the right one is not known"
    if written == expected:
        return True, ""
    if canonical(_NUMBER.sub("", answer)) != canonical(_NUMBER.sub("", target)):
        return False, "another molecule"
    same = _tied(source, answer) == _tied(source, target)
    return same, "" if same else "the same molecule, with other numbers of atoms"


def canonical(smiles: str) -> str | None:
    """Return molecules as RDKit writes them, sorted; None if there are none or it cannot read them.

    Raises:
        ImportError: RDKit is not installed.
    """
    chem = rdkit()
    molecules = [chem.MolFromSmiles(part) for part in "".join(smiles.split()).split(".")]
    if not all(molecule is not None and molecule.GetNumAtoms() for molecule in molecules):
        return None
    return ".".join(sorted(map(chem.MolToSmiles, molecules)))


def _tied(source: str, product: str) -> str:
    """Write two texts as one molecule, in which atoms of one number are bound and have none.

    So the result says which atom became which, up to the symmetry of the source.
    """
    chem = rdkit()
    parts = [chem.MolFromSmiles("".join(text.split())) or chem.Mol() for text in (source, product)]
    both = chem.RWMol(chem.CombineMols(*parts))
    atoms = list(both.GetAtoms())
    numbered = {atom.GetAtomMapNum(): atom for atom in atoms[: parts[0].GetNumAtoms()]}
    for atom in atoms[parts[0].GetNumAtoms() :]:
        if (number := atom.GetAtomMapNum()) and (origin := numbered.get(number)):
            both.AddBond(origin.GetIdx(), atom.GetIdx(), chem.BondType.ZERO)
            atom.SetAtomMapNum(0)
    for atom in numbered.values():
        atom.SetAtomMapNum(0)
    return chem.MolToSmiles(both)


def rdkit() -> Any:
    """Return RDKit's `Chem`, which then reports nothing of its own.

    Raises:
        ImportError: RDKit is not installed.
    """
    with optional():
        import_module("rdkit.RDLogger").DisableLog("rdApp.*")
        return import_module("rdkit.Chem")
