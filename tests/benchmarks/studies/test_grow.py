import pytest
import torch
from commands import hf_alpha, study
from hosts import make_host
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import unigram
from strategies import POSITIONS, SWITCHES, TWO_CLASSES, make_model, random_batch, seeds

from benchmarks.studies.grow import grow_checkpoint, to_larger
from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks.build_tokenizer import build_tokenizer

ENCODINGS = ["learned", "streams", "relational", "dual_part"]
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@settings(max_examples=8)
@given(
    seed=seeds,
    encoding=st.sampled_from(ENCODINGS),
    positions=st.sampled_from(POSITIONS),
    switches=st.sampled_from(SWITCHES),
    vocabulary=st.sampled_from([{}, TWO_CLASSES]),
)
def test_wider_blocks_change_nothing_and_train(seed, encoding, positions, switches, vocabulary):
    model = make_model(seed % 5, symbol_encoding=encoding, **positions, **switches, **vocabulary)
    wider = to_larger(model, ffn_dim=3 * model.config.encoder_ffn_dim)
    assert wider.num_parameters() > model.num_parameters()
    batch = random_batch(seed, model.config, [(6, 3), (4, 1)])
    with torch.no_grad():
        torch.testing.assert_close(wider(**batch).logits, model(**batch).logits, **CLOSE)
    out = wider(**batch, labels=batch["decoder_input_ids"])
    out.loss.backward()
    gradient = wider.model.encoder.layers[0].fc2.weight.grad
    assert gradient[:, model.config.encoder_ffn_dim :].abs().sum() > 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_new_layers_are_copies_behind_those_that_stay(encoding):
    model = make_model(0, symbol_encoding=encoding)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    layers = model.config.encoder_layers
    deeper = to_larger(model, encoder_layers=layers + 2, decoder_layers=3)
    state = deeper.state_dict()
    assert all(torch.equal(state[name], value) for name, value in before.items())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for name in state.keys() - before.keys():
        side, index, rest = name.removeprefix("model.").replace(".layers.", ".").split(".", 2)
        last = getattr(model.config, f"{side}_layers") - 1
        assert int(index) > last
        assert torch.equal(state[name], before[f"model.{side}.layers.{last}.{rest}"])
    batch = random_batch(0, model.config, [(6, 3)])
    with torch.no_grad():
        states = [m(**batch, output_hidden_states=True) for m in (model, deeper)]
    one, two = (each.encoder_hidden_states for each in states)
    assert len(two) == len(one) + 2
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=False))


def test_a_folder_grows_and_answers_as_before(tmp_path):
    model = make_model(0, symbol_encoding="relational")
    model.generation_config.num_beams = 3
    model.save_pretrained(tmp_path / "small")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "small")
    done = study("studies.grow", tmp_path / "small", tmp_path / "wide", "--ffn-dim", 128)
    assert done.code == 0 and "compute what they did" in done.out and done.err == "", done.err
    (small, tokens), (wide, _) = (load_checkpoint(tmp_path / name) for name in ("small", "wide"))
    assert wide.config.encoder_ffn_dim == wide.config.decoder_ffn_dim == 128
    assert wide.config.encoder_layers == small.config.encoder_layers
    assert wide.generation_config.num_beams == 3
    batch = tokens(["& a ! b"], return_tensors="pt")
    one, two = (each.generate(**batch, max_new_tokens=8) for each in (small, wide))
    assert torch.equal(one, two)
    with pytest.raises(FileExistsError):
        grow_checkpoint(tmp_path / "small", tmp_path / "wide", ffn_dim=256)


def test_the_command_says_what_cannot_grow(tmp_path):
    tokenizer = unigram(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=2)
    for part in (host, tokenizer):
        part.save_pretrained(tmp_path / "t5")
    assert hf_alpha("convert", tmp_path / "t5", tmp_path / "host", "--symbols", 4).code == 0
    error = study("studies.grow", tmp_path / "host", tmp_path / "out", "--ffn-dim", 99).error
    assert "only models of type 'alpha' grow; this is a 'alpha-retrofit'" in error
    assert not (tmp_path / "out").exists()
