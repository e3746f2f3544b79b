"""A backbone from outside the package is a configuration and a modeling file."""

import copy

import pytest
import torch
from strategies import BASE, random_batch, random_renaming, rename_batch
from toy_backbone import ToyConfig, ToyForConditionalGeneration
from transformers import AutoModelForSeq2SeqLM

ENCODINGS = {
    "streams": {"symbol_encoding": "streams"},
    "dual_part": {"symbol_encoding": "dual_part", "random_dim": 8},
    "learned": {"symbol_encoding": "learned"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "renamed": {"symbol_encoding": "learned", "symbol_renaming": "random"},
}


def make_toy(**settings) -> ToyForConditionalGeneration:
    torch.manual_seed(0)
    config = ToyConfig(num_base_tokens=BASE, symbol_classes={"p": 3, "f": 2}, **settings)
    return ToyForConditionalGeneration(config).eval()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_works_with_it(encoding, tmp_path):
    model = make_toy(**ENCODINGS[encoding])
    batch = random_batch(1, model.config, [(6, 3), (5, 2)])
    renaming = random_renaming(5, model.config)
    with torch.no_grad():
        before = model(**batch).logits
        after = model(**rename_batch(batch, [renaming, renaming])).logits
    assert torch.equal(after[..., renaming], before) == (encoding in ("streams", "canonical"))
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert torch.equal(loaded(**batch).logits, before)
    if encoding in ("streams", "dual_part"):
        longer = copy.deepcopy(model)
        longer.extend_symbols({"f": 3})
        found = longer(**batch).logits[..., : BASE + 5]
        torch.testing.assert_close(found, before, atol=1e-6, rtol=0)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_it_learns_and_generates(encoding):
    model = make_toy(**ENCODINGS[encoding]).train()
    batch = random_batch(1, model.config, [(6, 3), (5, 2)])
    del batch["tree_paths"]  # generation refuses what a model has no use for
    labels, optimizer = batch.pop("decoder_input_ids"), torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for _ in range(30):
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    answers = model.eval().generate(**batch, num_beams=2, num_return_sequences=2, max_new_tokens=4)
    assert answers.shape[0] == 4


def test_an_encoding_that_it_cannot_take_is_refused():
    """It has no attention that could be told where the same symbol stands."""
    with pytest.raises(ValueError, match="that of 'toy' models does not: choose another encoding"):
        make_toy(symbol_encoding="relational")


def test_what_a_checkpoint_lacks_is_made_anew(tmp_path):
    """As where a host's weights are loaded that know nothing of symbols."""
    model = make_toy(symbol_encoding="dual_part", random_dim=8)
    state = {name: x for name, x in model.state_dict().items() if "mix" in name or "shared" in name}
    model.save_pretrained(tmp_path, state_dict=state)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
