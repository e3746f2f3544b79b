import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, POSITIONS, SWITCHES, TWO_CLASSES, make_model, random_batch, seeds

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.convert import ConversionError, convert_checkpoint_to_relational, to_relational
from hf_alpha.convert.relational import class_row, prove
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.symbol_encodings import encoding_class

PLAIN = {"normalize_embeddings": False, "normalize_features": False, "adacos": False}
IN_THE_MIDDLE = {
    "symbol_classes": {"function": 2, "proposition": 3},
    "symbol_ranges": {"function": [[4, 5], [13, 14]], "proposition": [[7, 10]]},
}
ALONE = {"symbol_classes": {"function": 1, "proposition": 4}}
VOCABULARIES = [{}, TWO_CLASSES, IN_THE_MIDDLE, ALONE]
OTHERS = [{}, PLAIN, {"scale_embedding": True}]
RENAMINGS = ["none", "random", "first_occurrence"]
A = BASE + 1
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def make_vanilla(seed=0, **changes):
    return make_model(seed, symbol_encoding="learned", **changes)


def members(config):
    """Class -> ids."""
    ranges = config.symbol_ranges.items()
    return {name: [i for r in spans for i in range(*r)] for name, spans in ranges}


def with_symbols_replaced(batch, config, chosen):
    """The batch with every symbol replaced by one of these ids."""
    table = torch.arange(config.vocab_size)
    symbols = [i for ids in members(config).values() for i in ids]
    table[symbols] = torch.tensor([chosen[i % len(chosen)] for i in range(len(symbols))])
    return {
        name: table[value] if name.endswith("input_ids") else value for name, value in batch.items()
    }


def outputs(model, batch):
    model.set_attn_implementation("eager")  # others add masks in an order of their own
    with torch.no_grad():
        return model(**batch, output_hidden_states=True)


def assert_same(one, two, columns):
    """Identical states; logits of some columns, products of other shapes, are close."""
    assert torch.equal(one.encoder_last_hidden_state, two.encoder_last_hidden_state)
    assert torch.equal(one.decoder_hidden_states[-1], two.decoder_hidden_states[-1])
    torch.testing.assert_close(two.logits[..., columns], one.logits[..., columns], **CLOSE)


@settings(max_examples=10, deadline=None)
@given(
    seed=seeds,
    positions=st.sampled_from(POSITIONS),
    switches=st.sampled_from(SWITCHES),
    vocabulary=st.sampled_from(VOCABULARIES),
    other=st.sampled_from(OTHERS),
    data=st.data(),
)
def test_converted_model_agrees_with_its_origin(seed, positions, switches, vocabulary, other, data):
    vanilla = make_vanilla(seed % 5, **positions, **switches, **vocabulary, **other)
    config = vanilla.config
    actual = [data.draw(st.sampled_from(ids)) for ids in members(config).values()]
    by_mean, by_actual = to_relational(vanilla), to_relational(vanilla, actual)
    batch = random_batch(seed, config, [(6, 3), (4, 1), (9, 5)])
    base = config.vocabulary.base_ids
    without = with_symbols_replaced(batch, config, [base[-1]])
    for converted in (by_mean, by_actual):
        assert_same(outputs(vanilla, without), outputs(converted, without), base)
    for symbol, ids in zip(actual, members(config).values(), strict=True):
        alone = with_symbols_replaced(batch, config, [symbol])
        alone["input_ids"][:, 0] = symbol  # else its column is unusable
        expected = outputs(vanilla, alone)
        assert_same(expected, outputs(by_actual, alone), [*base, symbol])
        if len(ids) == 1:
            assert_same(expected, outputs(by_mean, alone), [*base, symbol])


@settings(max_examples=10, deadline=None)
@given(seed=seeds, vocabulary=st.sampled_from(VOCABULARIES), other=st.sampled_from(OTHERS))
def test_the_row_of_a_class_is_the_mean_of_its_symbols(seed, vocabulary, other):
    vanilla = make_vanilla(seed % 5, **vocabulary, **other)
    old = vanilla.model.embedding_table().detach()
    new = to_relational(vanilla).model.embedding_table().detach()
    means = [old[ids].mean(0) for ids in members(vanilla.config).values()]
    if vanilla.config.normalize_embeddings:
        means = [torch.nn.functional.normalize(mean, dim=-1) for mean in means]
    count = vanilla.config.vocabulary.num_base_tokens
    assert torch.equal(new[:count], old[vanilla.config.vocabulary.base_ids])
    torch.testing.assert_close(new[count:], torch.stack(means))


def test_a_mean_of_unit_rows_is_as_long_as_the_rows_were():
    rows = torch.randn(4, 8) * torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    length = float(class_row(rows, normalized=True).norm())
    assert length == pytest.approx(float(rows.norm(dim=-1).mean()))
    assert torch.equal(class_row(rows, normalized=False), rows.mean(0))
    assert torch.equal(class_row(rows[:1], normalized=True), rows[0])


@pytest.mark.parametrize("renaming", RENAMINGS)
def test_all_other_weights_arrive_and_the_same_each_time(renaming):
    vanilla = make_vanilla(symbol_renaming=renaming)
    before = torch.random.get_rng_state()
    converted, again = to_relational(vanilla, BASE), to_relational(vanilla, BASE)
    assert torch.equal(torch.random.get_rng_state(), before)
    ours, theirs = dict(converted.named_parameters()), dict(vanilla.named_parameters())
    assert all(torch.equal(ours[n], theirs[n]) for n in theirs if n != "model.shared.weight")
    assert all(map(torch.equal, ours.values(), again.parameters()))
    assert torch.equal(converted.logit_scale.scale, vanilla.logit_scale.scale)
    assert not converted.config.draws_symbols


def is_new(name):
    return any(part in name for part in ("gates", "symbol_memory"))


def test_training_changes_all_that_is_new():
    converted = to_relational(make_vanilla()).train()
    batch = random_batch(1, converted.config, [(8, 3), (8, 3), (8, 2)], target_length=7)
    labels = batch.pop("decoder_input_ids")
    start = {name: p.detach().clone() for name, p in converted.named_parameters()}
    optimizer = torch.optim.AdamW(converted.parameters(), lr=3e-3, weight_decay=0.0)
    losses = []
    for step in range(20):
        loss = converted(**batch, labels=labels).loss
        loss.backward()
        sizes = {name: float(p.grad.norm()) for name, p in converted.named_parameters()}
        known = max(size for name, size in sizes.items() if not is_new(name))
        # No NaN, and nothing new has a much larger gradient than what was there.
        assert all(size <= 10 * known for name, size in sizes.items() if is_new(name)), sizes
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
        # Projections follow the norms behind them, which are 0 at first.
        still = {n for n, p in converted.named_parameters() if torch.equal(p, start[n])}
        assert {n for n in still if is_new(n)} == (
            {f"model.symbol_memory.{side}_proj.weight" for side in ("input", "output")}
            if step == 0
            else set()
        )
    assert sum(losses[-5:]) < sum(losses[:5])


def biased(bias):
    class Biased(encoding_class("relational")):
        name = "biased"

        def logits(self, scores_BSTR, streams):
            return super().logits(scores_BSTR, streams) + bias(self.config.vocab_size)

    return Biased


@pytest.mark.slow
def test_proof_notices_what_is_wrong():
    def broken(name, actual=None):
        vanilla = make_vanilla()
        converted = to_relational(vanilla, actual)
        with torch.no_grad():
            converted.get_parameter(name).flatten()[0] += 0.1
        return vanilla, converted, [[A]] if actual else [list(range(BASE, BASE + 5))]

    for actual in (None, A):
        with pytest.raises(ConversionError, match="no symbol: decoder states differ"):
            prove(*broken("model.decoder.layers.1.fc2.bias", actual))
    embedding = make_vanilla().model.shared.weight
    one = to_relational(make_vanilla(), A)
    with torch.no_grad():
        one.model.shared.weight[BASE] = embedding[A + 1]
    with pytest.raises(ConversionError, match=f"only symbol {A}: encoder states differ"):
        prove(make_vanilla(), one, [[A]])
    for name, what in (
        ("encoder.layers.0.self_attn.gates.bias", "encoder states"),
        ("decoder.layers.0.encoder_attn.gates.weight", "decoder states"),
        ("symbol_memory.input_norm.weight", "decoder states"),
        ("symbol_memory.output_norm.weight", "logits"),
        ("symbol_memory.pointer.repeat", "logits"),
        ("symbol_memory.pointer.attention", "logits"),
    ):
        with pytest.raises(ConversionError, match=f"the same row for all symbols: {what} differ"):
            prove(*broken(f"model.{name}"))


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (lambda size: 1e-6 * torch.arange(size), "renaming does more than move columns"),
        (lambda size: 1e-6 * size, "logits change with the size of the vocabulary"),
    ],
)
def test_proof_notices_a_broken_promise(bias, message):
    vanilla = make_vanilla()
    converted = to_relational(vanilla, A)
    converted.symbol_layer.encoding.__class__ = biased(bias)
    with pytest.raises(ConversionError, match=message):
        prove(vanilla, converted, [[A]])


@pytest.mark.parametrize(
    ("settings", "actual", "message"),
    [
        ({}, 2, "actual: id 2 is no symbol"),
        ({}, [A, A + 1], "two symbols for class 'proposition'"),
        (TWO_CLASSES, A, "actual: no symbol given for class 'function'"),
        ({"symbol_renaming": "first_occurrence"}, A, f"first symbol of every input {BASE} "),
    ],
)
def test_impossible_conversions(settings, actual, message):
    with pytest.raises(ConversionError, match=message):
        to_relational(make_vanilla(**settings), actual)


@pytest.mark.parametrize("encoding", ["relational", "streams", "dual_part"])
def test_only_learned_models(encoding):
    with pytest.raises(ConversionError, match=f"'{encoding}' already"):
        to_relational(make_model(symbol_encoding=encoding))


def test_checkpoints(tmp_path):
    vanilla = make_vanilla()
    vanilla.save_pretrained(tmp_path / "vanilla")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "vanilla")
    with pytest.raises(ConversionError, match="actual: 'z' is no symbol"):
        convert_checkpoint_to_relational(tmp_path / "vanilla", tmp_path / "out", "z")
    assert not (tmp_path / "out").exists()
    convert_checkpoint_to_relational(tmp_path / "vanilla", tmp_path / "mean")
    convert_checkpoint_to_relational(tmp_path / "vanilla", tmp_path / "b", "b")
    for name, sources in (("mean", [list(range(BASE, BASE + 5))]), ("b", [[BASE + 1]])):
        model, tokenizer = load_checkpoint(tmp_path / name)
        assert model.config.symbol_encoding == "relational" and tokenizer.vocab_size == 15
        prove(vanilla, model, sources)
