import json
import statistics

import pytest
from assignments import FAST, ROWS, make_drawn_model, make_tokenizer

from benchmarks.studies.random_parts import draw_losses, median_seed
from benchmarks.studies.spread import Spread, sensitivity
from hf_alpha.evaluation import evaluate


@pytest.fixture
def model():
    return make_drawn_model()


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def test_sensitivity(model, tokenizer, tmp_path):
    run = {"seeds": (0, 1, 2, 3), "max_new_tokens": 6, **FAST}
    spreads = sensitivity(model, tokenizer, "propositional", ROWS, ROWS[:4], folder=tmp_path, **run)
    assert set(spreads) == {"correct", "exact"}
    spread = spreads["correct"]
    for seed, value in spread.values.items():
        again = make_drawn_model(symbol_seed=seed)
        report = evaluate(again, tokenizer, "propositional", ROWS, max_new_tokens=6, **FAST)
        assert report.overall.correct == value
    values = list(spread.values.values())
    assert (spread.minimum, spread.maximum) == (min(values), max(values))
    assert spread.mean == pytest.approx(statistics.fmean(values))
    assert spread.deviation == pytest.approx(statistics.stdev(values))
    losses = draw_losses(model, tokenizer, ROWS[:4], seeds=(0, 1, 2, 3), **FAST)
    assert spread.median_rule == spread.values[median_seed(losses)]
    stored = json.loads((tmp_path / "draws.json").read_text())
    assert stored["exact"]["mean"] == spreads["exact"].mean
    assert model.config.symbol_seed == 0
    # A run that was stopped continues: what is there is not made again.
    for name in ("report.json", "records.jsonl"):
        (tmp_path / "draw-2" / name).unlink()
    again = sensitivity(model, tokenizer, "propositional", ROWS, folder=tmp_path, **run)
    assert again["correct"].values == spread.values and again["correct"].median_rule is None
    assert Spread.of({3: 0.5}).deviation is None
