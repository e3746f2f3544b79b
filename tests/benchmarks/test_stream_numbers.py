"""Fewer streams than names, and more: renaming stays exact, and a study prints and stores."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import load, prints_and_stores

STUDY = load("archive/stream_numbers")
NAMES = list(range(STUDY.BASE, STUDY.BASE + STUDY.NAMES))


@pytest.mark.parametrize("entry", ["copy: frequent", "copy: gated"])
@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 2**31), kept=st.integers(1, 4))
def test_dropped_streams_keep_renaming_exact(entry, seed, kept):
    """Equal gates and counts included: of equals the first names are kept, whatever they are."""
    rng = random.Random(seed)
    torch.manual_seed(seed % 5)
    model = STUDY.make_model(entry, kept).eval()
    if seed % 2 and entry == "copy: gated":
        torch.nn.init.zeros_(model.model.encoder.gate.weight)
    samples = [STUDY.copied(rng, rng.randint(1, 6)) for _ in range(3)]
    table = dict(zip(NAMES, rng.sample(NAMES, len(NAMES)), strict=True))
    moved = [([table[t] for t in text],) * 2 + ([],) for text, _, _ in samples]
    with torch.no_grad():
        one, other = (model(**STUDY.inputs(some, entry, 0)).logits for some in (samples, moved))
    columns = [*range(STUDY.BASE), *(table[name] for name in NAMES)]
    assert torch.equal(one, other[..., columns])
    assert model.model.encoder.scores.isfinite().sum(1).max() <= kept


def test_all_streams_are_kept_where_there_are_no_more():
    torch.manual_seed(0)
    samples = [STUDY.copied(random.Random(n), 3) for n in range(3)]
    batch = STUDY.inputs(samples, "copy: all", 0)
    plain, sparse = STUDY.make_model("copy: all", 3), STUDY.make_model("copy: frequent", 3)
    sparse.load_state_dict(plain.state_dict())
    with torch.no_grad():
        logits = [model.eval()(**batch).logits for model in (plain, sparse)]
    torch.testing.assert_close(*logits)


def test_a_pool_offers_its_next_name_only():
    text, answer, pool = STUDY.fresh(random.Random(1), 3)
    batch = STUDY.inputs([(text, answer, pool)], "fresh: pool", 4)
    rule = STUDY.NextOfPool(batch["input_ids"], batch["stream_ids"])
    scores = torch.zeros(1, STUDY.BASE + STUDY.NAMES)
    for number in range(3):
        shown = rule(torch.tensor([[STUDY.START, *pool[:number]]]), scores)[0] == 0
        offered = {name for name in batch["stream_ids"][0].tolist() if shown[name]}
        assert offered == {*text} - {STUDY.END} | {*pool[: number + 1]}


@pytest.mark.slow
def test_the_study_prints_and_stores_what_it_measures(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = "--seeds=0 --steps=1 --batch=2 --tests=2 --runs=runs"
    prints_and_stores("archive/stream_numbers", arguments, capsys)
    assert len(list((tmp_path / "runs").iterdir())) == len(STUDY.ENTRIES)
    prints_and_stores("archive/stream_numbers", arguments, capsys)  # all is there
