"""The rows and the record of generated data, by seed: what was drawn once is drawn for good."""

import hashlib
import json

import pytest
from datasets import load_dataset

from hf_alpha.logic.drawing.generate import generate, generate_grid

LTL = {"sizes": (4, 11), "num_symbols": 3}
ROWS = {
    "propositional": ({"num_samples": 600, "sizes": (1, 10), "seed": 3}, "8cc65e2775b0"),
    "propositional, few": (
        {"num_samples": 300, "sizes": (4, 9), "few_symbols": 60},
        "302177ec3042",
    ),
    "propositional, strict": (
        {"num_samples": 300, "alpha": 0, "constant_priority": 0.3},
        "8d126949dccb",
    ),
    "ltl": ({"num_samples": 300, **LTL, "few_symbols": 40, "seed": 1}, "05de5befcfd3"),
    "ltl, hard": ({"num_samples": 200, **LTL, "hard": 0.4, "few_symbols": 20}, "fe4dc9d80d3a"),
    "ltl, renaming": ({"num_samples": 200, **LTL, "equivalence": "renaming"}, "acec722967b5"),
    "ltl, many": (
        {"num_samples": 100, **LTL, "few_symbols": 30, "many_symbols": 40, "up_to_symbols": 5},
        "73083cc70a44",
    ),
    "ltl, walk": (
        {"num_samples": 60, "sizes": (10, 11), "hard": 0.8, "hardness": 2, "walk": 40},
        "c675912d35c2",
    ),
    "copying": ({"num_samples": 400, "seed": 2}, "e1f5ec365f6e"),
}
GRID = {"num_symbols": range(4), "sizes": range(3, 9), "per_cell": 6}
CELLS = {
    "propositional": ({}, "ac34950318fc"),
    "propositional, exclude": (
        {"exclude": ["&ab", "|a!b", "^ab", "&a!b"], "per_cell": 9},
        "7712f8476d4e",
    ),
    "ltl": ({"hard": 0.5, "seed": 4}, "7d3f17b12132"),
    "ltl, renaming": ({"equivalence": "renaming"}, "c5a0ac8049b5"),
    "copying": ({"num_symbols": (1, 2, 3)}, "d5a1f0ae41cc"),
}


def digest(folder) -> str:
    """Hash of all rows in their order, and of the record of the settings."""
    rows = {name: split.to_dict() for name, split in load_dataset(str(folder)).items()}
    record = json.loads((folder / "generation.json").read_text())
    text = json.dumps([rows, record], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", ROWS)
def test_rows(name, tmp_path):
    settings, expected = ROWS[name]
    generate(name.partition(",")[0], tmp_path / "data", **settings, progress=False)
    assert digest(tmp_path / "data") == expected


@pytest.mark.parametrize("name", CELLS)
def test_cells(name, tmp_path):
    settings, expected = CELLS[name]
    grid = {**GRID, **settings}
    generate_grid(name.partition(",")[0], tmp_path / "data", **grid, progress=False)
    assert digest(tmp_path / "data") == expected
