from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.covariance import Covariance
from benchmarks.studies.run import reproduce


@pytest.mark.slow
def test_a_t5_and_a_gpt2_beside_ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    only = ["propositional-t5", "propositional-gpt2", "propositional-relational-normal"]
    results = reproduce(Covariance(), TINY, [0], only, Path("runs"), Path("out"), lambda _: None)
    *vanilla, relational = (results.measured(row)[0] for row in only)
    for names in range(1, TINY.names + 1):
        assert relational[f"covariance {names}"] == 1.0
        for found in vanilla:
            assert 0 <= found[f"covariance {names}"] <= 1
            samples = found[f"covariance samples {names}"]
            assert samples == relational[f"covariance samples {names}"] > 0
    for row, found, kind in zip(only, vanilla, ("t5", "gpt2"), strict=False):
        assert found["correct"] is not None and found["parameters"] > 0
        settings = results.rows[row][0]["settings"]
        assert settings["model.backbone_config.model_type"] == f'"{kind}"'
