import json
import statistics

import pytest
from strategies import make_model

from benchmarks.studies.spread import Spread, sensitivity
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.evaluation import evaluate
from hf_alpha.evaluation.random_parts import draw_losses, median_seed

FAST = {"batch_size": 8, "progress": False}
ROWS = [
    {"problem": problem, "answer": answer}
    for problem, answer in (
        ("& a b", "a 1 b 1"), ("| a ! c", "a 1"), ("! b", "b 0"), ("^ a d", "a 1 d 0"),
        ("= c e", "c 0 e 0"), ("& ! a c", "a 0 c 1"), ("& & a b & c d", "a 1 b 1 c 1 d 1"),
    )
]  # fmt: skip


@pytest.fixture
def model():
    return make_model(symbol_encoding="dual_part", random_dim=8, adacos=False, logit_scale=5.0)


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer("propositional", 5)


def test_sensitivity(model, tokenizer, tmp_path):
    run = {"seeds": (0, 1, 2, 3), "max_new_tokens": 6, **FAST}
    spreads = sensitivity(model, tokenizer, "propositional", ROWS, ROWS[:4], folder=tmp_path, **run)
    assert set(spreads) == {"correct", "exact"}
    spread = spreads["correct"]
    for seed, value in spread.values.items():
        again = make_model(
            symbol_encoding="dual_part", random_dim=8, adacos=False, logit_scale=5.0,
            symbol_seed=seed,
        )  # fmt: skip
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
    assert "4 draws" in str(spread) and "median rule" in str(spread)
    assert model.config.symbol_seed == 0
    # A run that was stopped continues: what is there is not made again.
    (tmp_path / "draw-2" / "report.json").unlink()
    again = sensitivity(model, tokenizer, "propositional", ROWS, folder=tmp_path, **run)
    assert again["correct"].values == spread.values and again["correct"].median_rule is None
    assert Spread.of({3: 0.5}).deviation is None
