from pathlib import Path

from tiny_studies import TINY

from benchmarks.studies.copying import Copying
from benchmarks.studies.run import reproduce


def test_distances_by_part_of_the_test(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    size = TINY
    only = ["copying-learned", "copying-relational", "copying-random"]
    results = reproduce(Copying(), size, [0], only, Path("runs"), Path("out"), lambda _: None)
    learned, relational, chance = (results.measured(row)[0] for row in only)
    cells = [(k, n) for n in range(3, size.copy_lengths + 1) for k in range(3, n + 1)]
    for found in (learned, relational, chance):
        assert found["samples all"] == TINY.per_cell * len(cells)
        assert found["distance as in training"] > 0, "two steps are not enough"
        assert "distance longer" not in found, "there are no such strings at this size"
