"""Accelerate's offloading: weights that are only there while a module's `forward` runs."""

import pytest
import torch
from accelerate import cpu_offload, disk_offload
from strategies import make_model, random_batch


@pytest.mark.parametrize("encoding", ["streams", "learned", "dual_part", "relational"])
@pytest.mark.parametrize("where", ["cpu", "disk"])
def test_offloaded_models_give_the_same(where, encoding, tmp_path):
    model = make_model(symbol_encoding=encoding)
    batch = random_batch(1, model.config, [(6, 3), (4, 2)])
    decoder_ids = batch.pop("decoder_input_ids")
    with torch.no_grad():
        logits = model(**batch, decoder_input_ids=decoder_ids).logits
    answers = model.generate(**batch, num_beams=2, max_new_tokens=5)
    if where == "cpu":
        cpu_offload(model, torch.device("cpu"), offload_buffers=True)
    else:
        disk_offload(model, tmp_path, torch.device("cpu"), offload_buffers=True)
    assert all(weight.is_meta for weight in model.parameters())
    with torch.no_grad():
        assert model(**batch, decoder_input_ids=decoder_ids).logits.equal(logits)
    assert model.generate(**batch, num_beams=2, max_new_tokens=5).equal(answers)
