"""What goes into a model and cannot be right is an error, never a wrong answer."""

from types import SimpleNamespace

import pytest
import torch
from strategies import BASE, make_model, random_batch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_alpha.modeling.checks import DEBUG, can_look

LISTING = {
    "streams": {"symbol_encoding": "streams"},
    "relational": {"symbol_encoding": "relational"},
    "first_occurrence": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
}


def sample(model):
    """Two rows; the second one has the symbols 0 and 1 of the five, the first one also 2."""
    batch = random_batch(1, model.config, [(6, 0), (6, 0)])
    batch["input_ids"][:, 1:3] = torch.tensor([BASE, BASE + 1])
    batch["input_ids"][0, 3] = BASE + 2
    return batch


@pytest.mark.parametrize("encoding", LISTING)
def test_stream_ids_have_to_list_every_symbol_of_the_input(encoding):
    model = make_model(**LISTING[encoding])
    batch = sample(model)
    listed = torch.tensor([[BASE, BASE + 1, BASE + 2], [BASE, BASE + 1, -1]])
    derived = model(**batch).logits
    assert model(**batch, stream_ids=listed).logits.equal(derived)
    with pytest.raises(ValueError, match=rf"lack symbol {BASE + 2} at position 3 of row 0"):
        model(**batch, stream_ids=listed[:, :2])
    with pytest.raises(ValueError, match="stream_ids has 1 rows for 2 inputs"):
        model(**batch, stream_ids=listed[:1])
    # What is hidden need not be listed.
    batch["attention_mask"][0, 3] = 0
    model(**batch, stream_ids=listed[:, :2])
    del batch["decoder_input_ids"]
    assert not (model.get_encoder()(**batch).streams.ids == BASE + 2).any()


@pytest.mark.parametrize("encoding", LISTING)
def test_labels_that_no_output_can_give(encoding):
    model = make_model(**LISTING[encoding])
    batch = sample(model)
    del batch["decoder_input_ids"]
    labels = torch.tensor([[3, BASE + 2, 2], [BASE, -100, 2]])
    assert model(**batch, labels=labels).loss < 100
    labels[1, 1] = BASE + 2
    with pytest.raises(ValueError, match=rf"label {BASE + 2} at position 1 of row 1 is a symbol"):
        model(**batch, labels=labels)
    labels[1] = torch.tensor([BASE, 3, model.config.vocab_size])
    with pytest.raises(ValueError, match="position 2 of row 1 is outside the model's vocabulary"):
        model(**batch, labels=labels)


@pytest.mark.parametrize("name", ["input_ids", "decoder_input_ids"])
@pytest.mark.parametrize("token", [-1, 15])
def test_ids_outside_the_vocabulary(name, token):
    model = make_model()
    batch = sample(model)
    batch[name][0, 2] = token
    with pytest.raises(ValueError, match=f"token id {token} is outside the model's vocabulary"):
        model(**batch)


def test_losses_computed_outside_are_refused(tmp_path):
    """Trainer's own label smoothing would count columns that a sample cannot use."""
    model = make_model()
    batch = sample(model)
    del batch["decoder_input_ids"]
    batch["labels"] = torch.tensor([[3, BASE, 2], [BASE, -100, 2]])
    batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    rows = [{name: values[i] for name, values in batch.items()} for i in range(2)]

    def trainer(model):
        arguments = Seq2SeqTrainingArguments(
            tmp_path, max_steps=1, label_smoothing_factor=0.1, report_to="none", use_cpu=True,
            disable_tqdm=True, save_strategy="no",
        )  # fmt: skip
        return Seq2SeqTrainer(model, arguments, train_dataset=rows)

    with pytest.raises(ValueError, match="set label_smoothing in the model's configuration"):
        trainer(model).train()
    # All columns count where all can be used.
    assert trainer(make_model(symbol_encoding="learned")).train().training_loss < 20


def test_elsewhere_checks_are_for_debugging(monkeypatch):
    there = SimpleNamespace(device=torch.device("cuda"))
    assert can_look(torch.zeros(1)) and not can_look(torch.zeros(1, device="meta"))
    assert not can_look(there)
    monkeypatch.setenv(DEBUG, "1")
    assert can_look(there)
