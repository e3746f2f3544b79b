"""What was measured once still runs."""

import json

import pytest
from scripts import load, prints_and_stores

pytestmark = pytest.mark.slow

SMALL = "--d-model=16 --layers=1 --heads=2 --ffn=16"
STACKS = "--hidden=8 --heads=2 --layers=1 --vocabulary=9 --rounds=1"
SIZES = {
    "folnet": f"{STACKS} --binary=4 --lengths=3,6 --tokens=6 --sets j.a jmc.atp --no-memory",
    "dual_part": f"{SMALL} --rounds=2 --batch=3 --size=9 --used-symbols=3 --symbols=5 --renamed "
    "--random-dim=8 --methods normal neighboring_points",
    "all_streams": f"{SMALL} --batch=4 --batches=1 --pool=2 --rounds=1 --new-tokens=2 --symbols=3 "
    "--work generation",
    "figure5": "--lengths=5,8 --symbols=1,2 --formulas=2 --limit=1",
    "extrapolation": "--task=propositional --encodings=relational --variants=recipe --seeds=0 "
    "--steps=4 --every=2 --samples=2 --sizes=1-5 --symbols=1-2 --change "
    "data.generate.num_samples=500 --change data.path=data --change training.warmup_steps=1 "
    "--change model.d_model=16 --change training.logging_steps=2",
    "new_names": "--task=anf --host=llama --seeds=0 --steps=2 --rows=40 --tests=1 --runs=runs "
    "--ways=learned,renamed,canonical --change=training.per_device_train_batch_size=2 "
    "--change=model.backbone_config.hidden_size=16",
}


@pytest.mark.parametrize("name", SIZES)
def test_a_settled_benchmark_prints_and_stores_what_it_measures(
    name, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    prints_and_stores(f"archive/{name}", SIZES[name], capsys)


def test_peer_of_all_streams_computes_the_same():
    import torch
    from strategies import make_model, random_batch

    from hf_alpha.modeling.cpu import BlockLinear
    from peers.all_streams import AllStreams

    model = make_model(dropout=0.0)
    peer = AllStreams(model.config).eval()
    peer.load_state_dict(model.state_dict())
    assert not any(isinstance(module, BlockLinear) for module in peer.modules())
    batch = random_batch(1, model.config, [(6, 3), (4, 0), (3, 2), (9, 5)])
    with torch.no_grad():
        found, expected = peer(**batch).logits, model(**batch).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    batch["labels"] = batch.pop("decoder_input_ids")
    for side in (model, peer):
        side.train()(**batch).loss.backward()
    for one, two in zip(peer.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-4)
    del batch["labels"]
    kept = {"num_beams": 3, "max_new_tokens": 5, "return_dict_in_generate": True}
    scores = [
        side.eval().generate(**batch, **kept, output_scores=True).sequences_scores
        for side in (model, peer)
    ]
    torch.testing.assert_close(*scores, atol=1e-5, rtol=1e-5)


def test_folnet_counts_the_parameters_of_the_paper(capsys, tmp_path):
    """The code's form of the operators and BERT's vocabulary: all but the line of RPE*."""
    load("archive/folnet").main(["--count", "--vocabularies=30522", "--out", str(tmp_path / "out")])
    *lines, last = capsys.readouterr().out.strip().splitlines()
    assert last.split(" | ")[-2:] == ["12", "10 |"]
    rows = json.loads((tmp_path / "out.json").read_text())["data"]["rows"]
    other = [
        row["line"] for row in rows if round(row["counts"]["code, 30,522"] / 1e6) != row["paper"]
    ]
    assert other == ["Table 3, 5"] and len(rows) == len(lines) - 4 == 13
