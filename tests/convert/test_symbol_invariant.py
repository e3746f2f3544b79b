import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, POSITIONS, SMALL, make_model, random_batch, seeds

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, AlphaTokenizer
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.convert import ConversionError, convert_checkpoint, to_streams
from hf_alpha.convert.symbol_invariant import prove
from hf_alpha.loading import load_checkpoint

PLAIN = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
A, B = BASE + 1, BASE + 3


def make_vanilla(seed=0, **settings):
    return make_model(seed, symbol_encoding="learned", **{**PLAIN, **settings})


def symbols_replaced(batch, symbols):
    """The batch with its symbols replaced by the given ones, or by base token 3."""
    table = torch.arange(100)
    table[BASE:] = torch.tensor([*symbols, 3])[torch.arange(100 - BASE) % max(len(symbols), 1)]
    return {
        name: table[value] if name.endswith("input_ids") else value for name, value in batch.items()
    }


@settings(max_examples=12, deadline=None)
@given(
    seed=seeds,
    positions=st.sampled_from(POSITIONS),
    added=st.sampled_from([(), ("encoder",), ("decoder",), ("encoder", "decoder")]),
    cross=st.sampled_from([["per_stream"], ["aggregated", "per_stream"]]),
)
def test_converted_model_agrees_with_its_origin(seed, positions, added, cross):
    vanilla = make_vanilla(seed % 5, **positions, cross_attention=cross)
    converted = to_streams(vanilla, A, B, added)
    batch = random_batch(seed, vanilla.config, [(6, 3), (4, 1), (9, 5)])
    with torch.no_grad():
        for symbols in ([], [A]):
            inputs = symbols_replaced(batch, symbols)
            one, two = vanilla(**inputs).logits, converted(**inputs).logits
            assert torch.equal(one[..., :BASE], two[..., :BASE])
            for symbol in symbols:
                rows = (inputs["input_ids"] == symbol).any(1)
                assert torch.equal(one[rows][..., symbol], two[rows][..., symbol])
        inputs = symbols_replaced(batch, [A, B])
        del inputs["decoder_input_ids"]
        one, two = vanilla.get_encoder()(**inputs), converted.get_encoder()(**inputs)
        hidden = two.last_hidden_state.unflatten(-1, (two.stream_ids.shape[1], -1))
        for row in range(3):
            at = (two.stream_ids[row] == A).nonzero()
            if len(at):
                torch.testing.assert_close(
                    hidden[row, :, at[0, 0]], one.last_hidden_state[row], atol=1e-5, rtol=1e-5
                )


def test_added_blocks_do_nothing_until_they_are_trained():
    vanilla = make_vanilla()
    plain, added = to_streams(vanilla, A, B), to_streams(vanilla, A, B, ("encoder", "decoder"))
    batch = random_batch(1, vanilla.config, [(6, 3), (4, 1), (9, 5)])
    with torch.no_grad():
        assert torch.equal(plain(**batch).logits, added(**batch).logits)
    assert added.num_parameters() > plain.num_parameters()
    added.train()
    added(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    block = added.model.encoder.layers[0].aggregated_attn
    assert block.out_proj.weight.grad.abs().sum() > 0


def test_several_classes():
    vanilla = make_vanilla(symbol_classes={"function": 2, "proposition": 3})
    converted = to_streams(vanilla, [BASE + 4, BASE], [BASE + 1, BASE + 2])
    rows, old = converted.model.shared.weight, vanilla.model.shared.weight
    # function: actual 10, placeholder 11; proposition: actual 14, placeholder 12
    assert torch.equal(rows[BASE:], old[[BASE, BASE + 1, BASE + 4, BASE + 2]])


def test_models_that_renamed_at_random_in_training():
    assert not to_streams(make_vanilla(symbol_renaming="random"), A, B).config.draws_symbols


def test_new_blocks_are_the_same_each_time():
    one, two = (to_streams(make_vanilla(), A, B, ("encoder",)) for _ in range(2))
    assert all(map(torch.equal, one.parameters(), two.parameters()))


def test_proof_notices_a_wrong_weight():
    vanilla = make_vanilla()
    converted = to_streams(vanilla, A, B)
    with torch.no_grad():
        converted.model.decoder.layers[1].fc2.bias[0] += 1e-3
    with pytest.raises(ConversionError, match="no symbol: logits differ"):
        prove(vanilla, converted, [A], [B])
    converted = to_streams(vanilla, A, B)
    with torch.no_grad():
        converted.model.shared.weight[BASE + 1] += 1.0
    with pytest.raises(ConversionError, match="placeholder"):
        prove(vanilla, converted, [A], [B])


@pytest.mark.parametrize(
    ("actual", "placeholder", "add", "message"),
    [
        (A, A, (), "same symbol"),
        (2, B, (), "id 2 is no symbol"),
        ([A, B], B, (), "two symbols for class 'proposition'"),
        ([], B, (), "no symbol given"),
        (A, B, ("both",), "encoder or decoder"),
    ],
)
def test_impossible_conversions(actual, placeholder, add, message):
    with pytest.raises(ConversionError, match=message):
        to_streams(make_vanilla(), actual, placeholder, add)


def test_only_learned_models():
    with pytest.raises(ConversionError, match="already"):
        to_streams(make_model(), A, B)
    with pytest.raises(ConversionError, match="already"):
        to_streams(make_vanilla(encoder_aggregated_attention=True), A, B, ("encoder",))


def test_checkpoints(tmp_path):
    tokenizer = build_tokenizer("propositional", 5)
    vanilla = make_vanilla()
    vanilla.save_pretrained(tmp_path / "vanilla")
    tokenizer.save_pretrained(tmp_path / "vanilla")
    with pytest.raises(ConversionError, match="'z' is no symbol"):
        convert_checkpoint(tmp_path / "vanilla", tmp_path / "out", "z", "b")
    assert not (tmp_path / "out").exists()
    convert_checkpoint(tmp_path / "vanilla", tmp_path / "out", "a", "b", ["encoder"])
    model, tokenizer = load_checkpoint(tmp_path / "out")
    assert isinstance(model, AlphaForConditionalGeneration)
    assert isinstance(tokenizer, AlphaTokenizer)
    prove(vanilla, model, [BASE], [BASE + 1])
    model.extend_symbols({"proposition": 3})
    model.save_pretrained(tmp_path / "out")
    with pytest.raises(ValueError, match=r"disagree: symbol_classes.*extend_symbols"):
        load_checkpoint(tmp_path / "out")


def test_models_of_texts_are_converted_by_the_names_of_their_symbols(tmp_path):
    """Or by their tokens; a model of Transformers with symbols has a conversion of its own."""
    texts = ["x and y and x", "not y"]
    tokenizer = AlphaTokenizer.from_texts(texts, {"variable": {"pattern": "[xyz]", "count": 3}})
    tokenizer.name_symbols(texts)
    sizes = {name: value for name, value in SMALL.items() if name != "num_base_tokens"}
    config = AlphaConfig.for_tokenizer(tokenizer, symbol_encoding="learned", **{**sizes, **PLAIN})
    for part in (AlphaForConditionalGeneration(config), tokenizer):
        part.save_pretrained(tmp_path / "learned")
    for number, (actual, placeholder) in enumerate([("x", "y"), ("<variable_0>", "<variable_1>")]):
        out = tmp_path / str(number)
        convert_checkpoint(tmp_path / "learned", out, actual, placeholder)
    converted = [load_checkpoint(tmp_path / name)[0].state_dict() for name in ("0", "1")]
    assert all(map(torch.equal, *(weights.values() for weights in converted)))
    assert load_checkpoint(tmp_path / "learned")[1].symbol_names
    assert load_checkpoint(out)[1].symbol_names == {}  # the model does not tell names apart
    with pytest.raises(ConversionError, match="actual: 'q' is no symbol; this model has x y <vari"):
        convert_checkpoint(tmp_path / "learned", tmp_path / "none", "q", "y")
