from dataclasses import replace
from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.conversion import Conversion
from benchmarks.studies.run import reproduce
from hf_alpha.loading import load_checkpoint


@pytest.mark.slow
def test_a_converted_model_starts_as_the_vanilla_one_with_blocks_that_do_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    said = []
    rows = ["propositional-vanilla", "propositional-added-long"]
    size = replace(TINY, steps={"propositional": 4})  # the very first step of a run changes nothing
    results = reproduce(Conversion(), size, [0], rows, Path("runs"), Path("out"), said.append)
    assert [line for line in said if "steps" in line] == [
        "propositional-learned-normal-0: 4 steps", "propositional-converted-added-1-0: 2 steps",
    ]  # fmt: skip
    models = Path("runs/tiny/models")
    start, _ = load_checkpoint(models / "propositional-converted-added-1-0-start")
    after, _ = load_checkpoint(models / "propositional-converted-added-1-0")
    for model, silent in ((start, True), (after, False)):
        weights = {k: w for k, w in model.state_dict().items() if "aggregated_attn.out_proj" in k}
        assert len(weights) == 4 and silent == (not any(w.any() for w in weights.values()))
    settings = results.rows["propositional-added-long"][0]["settings"]
    assert settings["conversion"].startswith("streams, aggregated attention in encoder and ")
    assert settings["start.training.max_steps"] == "4" and settings["training.max_steps"] == "2"
    (vanilla,), (added,) = (results.measured(row) for row in rows)
    assert vanilla["samples heatmap"] == added["samples heatmap"] > 0
    assert vanilla.keys() == added.keys() >= {"correct", "correct by names", "correct heatmap"}
