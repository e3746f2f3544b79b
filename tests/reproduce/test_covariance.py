from pathlib import Path

from reproduce.tiny import TINY

from hf_alpha.reproduce.covariance import Covariance
from hf_alpha.reproduce.run import reproduce


def test_a_t5_beside_ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    only = ["propositional-t5", "propositional-relational-normal"]
    results = reproduce(Covariance(), TINY, [0], only, Path("runs"), Path("out"), lambda _: None)
    t5, relational = (results.measured(row)[0] for row in only)
    for names in range(1, TINY.names + 1):
        assert relational[f"covariance {names}"] == 1.0
        assert 0 <= t5[f"covariance {names}"] <= 1
        assert t5[f"covariance samples {names}"] == relational[f"covariance samples {names}"] > 0
    assert t5["correct"] is not None and t5["parameters"] > 0
    assert results.rows[only[0]][0]["settings"]["model.backbone_config.model_type"] == '"t5"'
