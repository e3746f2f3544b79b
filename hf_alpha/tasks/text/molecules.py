"""A check of molecules in SMILES: an answer is right if it is the target's molecule.

However it is written: the order of atoms and the numbers of rings do not matter. Numbers of atoms
(`[CH3:1]`) do, where the target has them. RDKit reads them (`pip install 'hf_alpha[chemistry]'`).
`examples/tasks/reactions.py` writes such pairs.
"""

from importlib import import_module
from typing import Any

from hf_alpha.environment import optional


def check(source: str, answer: str, target: str | None = None) -> tuple[bool, str]:
    """Return whether an answer is the target's molecule, and why not.

    Raises:
        ImportError: RDKit is not installed.
        ValueError: the target is no molecule.
    """
    expected, written = canonical(target or ""), canonical(answer)
    if expected is None:
        raise ValueError(f"the target {target!r} is no molecule that RDKit can read")
    if written is None:
        return False, "no molecule: RDKit cannot read it"
    return written == expected, "" if written == expected else "another molecule"


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


def rdkit() -> Any:
    """Return RDKit's `Chem`, which then reports nothing of its own.

    Raises:
        ImportError: RDKit is not installed.
    """
    with optional():
        import_module("rdkit.RDLogger").DisableLog("rdApp.*")
        return import_module("rdkit.Chem")


__all__ = ["canonical", "check", "rdkit"]
