from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.cost import Cost
from benchmarks.studies.run import reproduce


@pytest.mark.slow
def test_each_number_of_names_has_a_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = "propositional-relational"
    results = reproduce(Cost(), TINY, [0], [row], Path("runs"), Path("out"), lambda _: None)
    (found,) = results.measured(row)
    assert found.keys() == {"ms 1", "ms 2", "ms 3", "ms 4"} and min(found.values()) > 0
    (said,) = Cost().findings(results, TINY)
    assert said.startswith("relational: an answer with 4 names takes ")
