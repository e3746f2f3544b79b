"""Conversions of `learned` models into other encodings."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, POSITIONS, SWITCHES, TWO_CLASSES, make_model, random_batch, seeds

from hf_alpha import AlphaForConditionalGeneration, AlphaTokenizer
from hf_alpha.convert import (
    ConversionError,
    convert_checkpoint,
    to_dual_part,
    to_relational,
    to_streams,
)
from hf_alpha.convert.learned import class_row, prove_dual_part, prove_relational, prove_streams
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.random_numbers import RANDOM_METHODS
from hf_alpha.tasks.build_tokenizer import build_tokenizer

PLAIN = {"normalize_embeddings": False, "normalize_features": False, "adacos": False}
WITHOUT = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
IN_THE_MIDDLE = {
    "symbol_classes": {"function": 2, "proposition": 3},
    "symbol_ranges": {"function": [[4, 5], [13, 14]], "proposition": [[7, 10]]},
}
SINGLE = {"symbol_classes": {"function": 1, "proposition": 4}}
VOCABULARIES = [{}, TWO_CLASSES, IN_THE_MIDDLE, SINGLE]
OTHERS = [{}, PLAIN, {"scale_embedding": True}]
SIDES = ("encoder", "decoder")
A, B = BASE + 1, BASE + 3
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
EMBEDDING = "model.shared.weight"
CONVERSIONS = {
    "streams": lambda model: to_streams(model, BASE, BASE + 1, SIDES),
    "relational": to_relational,
    "dual_part": to_dual_part,
}


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


@settings(max_examples=5)
@given(
    seed=seeds,
    positions=st.sampled_from(POSITIONS),
    switches=st.sampled_from(SWITCHES),
    vocabulary=st.sampled_from(VOCABULARIES),
    other=st.sampled_from(OTHERS),
    data=st.data(),
)
def test_relations_agree_with_their_origin(seed, positions, switches, vocabulary, other, data):
    """And the row of a class is the mean of its symbols, or that of the actual one."""
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
        single = with_symbols_replaced(batch, config, [symbol])
        single["input_ids"][:, 0] = symbol  # else its column is unusable
        expected = outputs(vanilla, single)
        assert_same(expected, outputs(by_actual, single), [*base, symbol])
        if len(ids) == 1:
            assert_same(expected, outputs(by_mean, single), [*base, symbol])
    old, new = (model.model.embedding_table().detach() for model in (vanilla, by_mean))
    means = [old[ids].mean(0) for ids in members(config).values()]
    if config.normalize_embeddings:
        means = [torch.nn.functional.normalize(mean, dim=-1) for mean in means]
    assert torch.equal(new[: len(base)], old[base])
    torch.testing.assert_close(new[len(base) :], torch.stack(means))


def unit(rows):
    return torch.nn.functional.normalize(rows, dim=-1)


@settings(max_examples=8)
@given(
    seed=seeds,
    positions=st.sampled_from(POSITIONS),
    method=st.sampled_from(RANDOM_METHODS),
    random_dim=st.sampled_from([0, 3, 15]),
    other=st.sampled_from([{}, PLAIN, TWO_CLASSES, {"symbol_renaming": "random"}]),
)
def test_dual_parts_keep_directions(seed, positions, method, random_dim, other):
    vanilla = make_vanilla(seed % 5, **positions, **other)
    converted = to_dual_part(vanilla, random_dim, method, seed)
    config = converted.config
    assert config.random_dim == (random_dim or 8) and config.random_method == method
    assert (config.symbol_seed, config.symbol_encoding) == (seed, "dual_part")
    old, new = vanilla.model.embedding_table().detach(), converted.model.embedding_table().detach()
    width = 16 - config.random_dim
    torch.testing.assert_close(unit(new[:BASE, :width]), unit(old[:BASE, :width]))
    first = next(iter(members(vanilla.config).values()))
    mean = old[first].mean(0)
    torch.testing.assert_close(unit(new[BASE, :width]), unit(mean[:width]))
    if "normalize_embeddings" in other:
        torch.testing.assert_close(new[BASE, :width], mean[:width])
    assert converted(**random_batch(seed, config, [(6, 3)])).logits.isfinite().all()


@pytest.mark.parametrize("kind", CONVERSIONS)
@pytest.mark.parametrize("renaming", ["none", "random", "first_occurrence"])
def test_all_other_weights_arrive_and_the_same_each_time(kind, renaming):
    vanilla = make_vanilla(symbol_renaming=renaming, **WITHOUT)
    before = torch.random.get_rng_state()
    converted, again = (CONVERSIONS[kind](vanilla) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    ours, theirs = dict(converted.named_parameters()), dict(vanilla.named_parameters())
    assert all(torch.equal(ours[n], theirs[n]) for n in theirs if n != EMBEDDING)
    assert all(map(torch.equal, ours.values(), again.parameters()))
    assert torch.equal(converted.logit_scale.scale, vanilla.logit_scale.scale)
    assert converted.config.draws_symbols == (kind == "dual_part")


def test_rows_of_several_classes():
    vanilla = make_vanilla(symbol_classes={"function": 2, "proposition": 3}, **WITHOUT)
    converted = to_streams(vanilla, [BASE + 4, BASE], [BASE + 1, BASE + 2])
    rows, old = converted.model.shared.weight, vanilla.model.shared.weight
    # function: actual 10, placeholder 11; proposition: actual 14, placeholder 12
    assert torch.equal(rows[BASE:], old[[BASE, BASE + 1, BASE + 4, BASE + 2]])


def test_a_mean_of_unit_rows_is_as_long_as_the_rows_were():
    rows = torch.randn(4, 8) * torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    length = float(class_row(rows, normalized=True).norm())
    assert length == pytest.approx(float(rows.norm(dim=-1).mean()))
    assert torch.equal(class_row(rows, normalized=False), rows.mean(0))
    assert torch.equal(class_row(rows[:1], normalized=True), rows[0])


def test_added_blocks_do_nothing_until_they_are_trained():
    vanilla = make_vanilla(**WITHOUT)
    plain, added = to_streams(vanilla, A, B), to_streams(vanilla, A, B, SIDES)
    batch = random_batch(1, vanilla.config, [(6, 3), (4, 1), (9, 5)])
    with torch.no_grad():
        assert torch.equal(plain(**batch).logits, added(**batch).logits)
    assert added.num_parameters() > plain.num_parameters()
    added.train()
    added(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    block = added.model.encoder.layers[0].aggregated_attn
    assert block.out_proj.weight.grad.abs().sum() > 0


def is_new(name):
    return any(part in name for part in ("gates", "symbol_memory"))


def test_training_changes_all_that_is_new_in_a_relational_model():
    converted = to_relational(make_vanilla()).train()
    batch = random_batch(1, converted.config, [(8, 3), (8, 3), (8, 2)], target_length=7)
    labels = batch.pop("decoder_input_ids")
    start = {name: p.detach().clone() for name, p in converted.named_parameters()}
    optimizer = torch.optim.AdamW(converted.parameters(), lr=3e-3, weight_decay=0.0)
    for step in range(2):
        converted(**batch, labels=labels).loss.backward()
        sizes = {name: float(p.grad.norm()) for name, p in converted.named_parameters()}
        known = max(size for name, size in sizes.items() if not is_new(name))
        # No NaN, and nothing new has a much larger gradient than what was there.
        assert all(size <= 10 * known for name, size in sizes.items() if is_new(name)), sizes
        optimizer.step()
        optimizer.zero_grad()
        # Projections follow the norms behind them, which are 0 at first.
        still = {n for n, p in converted.named_parameters() if torch.equal(p, start[n])}
        assert {n for n in still if is_new(n)} == (
            {f"model.symbol_memory.{side}_proj.weight" for side in ("input", "output")}
            if step == 0
            else set()
        )


def changed(model, name, by=0.1):
    with torch.no_grad():
        model.get_parameter(name).flatten()[0] += by
    return model


def test_proofs_of_streams_and_dual_parts_notice_a_wrong_weight():
    vanilla, bias = make_vanilla(**WITHOUT), "model.decoder.layers.1.fc2.bias"
    with pytest.raises(ConversionError, match="no symbol: logits differ"):
        prove_streams(vanilla, changed(to_streams(vanilla, A, B), bias, 1e-3), [A], [B])
    converted = to_streams(vanilla, A, B)
    with torch.no_grad():
        converted.model.shared.weight[BASE + 1] += 1.0
    with pytest.raises(ConversionError, match="placeholder"):
        prove_streams(vanilla, converted, [A], [B])
    with pytest.raises(ConversionError, match="with the same embeddings, logits differ"):
        prove_dual_part(vanilla, changed(to_dual_part(vanilla), bias, 1e-3))
    with pytest.raises(ConversionError, match="rows of base tokens differ"):
        prove_dual_part(vanilla, changed(to_dual_part(vanilla), EMBEDDING, 1.0))


@pytest.mark.slow
def test_the_proof_of_relations_notices_what_is_wrong():
    vanilla, all_symbols = make_vanilla(), [list(range(BASE, BASE + 5))]
    for actual, sources in ((None, all_symbols), (A, [[A]])):
        converted = changed(to_relational(vanilla, actual), "model.decoder.layers.1.fc2.bias")
        with pytest.raises(ConversionError, match="no symbol: decoder states differ"):
            prove_relational(vanilla, converted, sources)
    one = to_relational(vanilla, A)
    with torch.no_grad():
        one.model.shared.weight[BASE] = vanilla.model.shared.weight[A + 1]
    with pytest.raises(ConversionError, match=f"only symbol {A}: encoder states differ"):
        prove_relational(vanilla, one, [[A]])
    for name, what in (
        ("encoder.layers.0.self_attn.gates.bias", "encoder states"),
        ("decoder.layers.0.encoder_attn.gates.weight", "decoder states"),
        ("symbol_memory.input_norm.weight", "decoder states"),
        ("symbol_memory.output_norm.weight", "logits"),
        ("symbol_memory.pointer.repeat", "logits"),
        ("symbol_memory.pointer.attention", "logits"),
    ):
        with pytest.raises(ConversionError, match=f"the same row for all symbols: {what} differ"):
            prove_relational(vanilla, changed(to_relational(vanilla), f"model.{name}"), all_symbols)


@pytest.mark.parametrize(
    ("convert", "settings", "message"),
    [
        (lambda model: to_streams(model, A, A), {}, "same symbol"),
        (lambda model: to_streams(model, 2, B), {}, "actual: id 2 is no symbol"),
        (lambda model: to_streams(model, [A, B], B), {}, "two symbols for class 'proposition'"),
        (lambda model: to_streams(model, [], B), {}, "no symbol given"),
        (lambda model: to_streams(model, A, B, ("both",)), {}, "encoder or decoder"),
        (CONVERSIONS["streams"], {"encoder_aggregated_attention": True}, "encoder has .* already"),
        (lambda model: to_relational(model, A), TWO_CLASSES, "no symbol given for class 'functi"),
        (lambda model: to_relational(model, A), {"symbol_renaming": "first_occurrence"},
         f"first symbol of every input {BASE} "),
        (lambda model: to_dual_part(model, 2), {}, "only 4 hypercube_vertices"),
        (lambda model: to_dual_part(model, 4, "uniform"), {}, "random_method must be one of"),
        *((convert, {"symbol_encoding": kind}, f"'{kind}' already")
          for kind, convert in CONVERSIONS.items()),
    ],
)  # fmt: skip
def test_impossible_conversions(convert, settings, message):
    model = make_model(**{"symbol_encoding": "learned", **WITHOUT, **settings})
    with pytest.raises(ConversionError, match=message):
        convert(model)


@pytest.fixture
def vanilla(tmp_path, request):
    model = make_vanilla(**WITHOUT).to(getattr(request, "param", torch.float32))
    model.save_pretrained(tmp_path / "vanilla")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "vanilla")
    return model


@pytest.mark.parametrize(
    ("encoding", "given", "prove"),
    [
        ("streams", {"actual": "a", "placeholder": "b", "add_aggregated_attention": ["encoder"]},
         lambda old, new: prove_streams(old, new, [BASE], [BASE + 1])),
        ("relational", {},
         lambda old, new: prove_relational(old, new, [list(range(BASE, BASE + 5))])),
        ("relational", {"actual": "b"},
         lambda old, new: prove_relational(old, new, [[BASE + 1]])),
        ("dual_part", {"random_dim": 6}, prove_dual_part),
    ],
)  # fmt: skip
def test_checkpoints(vanilla, encoding, given, prove, tmp_path):
    made = convert_checkpoint(tmp_path / "vanilla", tmp_path / "out", encoding, **given)
    model, tokenizer = load_checkpoint(tmp_path / "out")
    assert isinstance(model, AlphaForConditionalGeneration)
    assert isinstance(tokenizer, AlphaTokenizer) and tokenizer.vocab_size == 15
    assert model.config.symbol_encoding == encoding
    prove(vanilla, model)
    if encoding == "dual_part":
        ours, theirs = (x.model.symbol_draws.random_parts for x in (model, made))
        assert model.config.random_dim == 6 and torch.equal(ours, theirs)
    if encoding == "streams":
        model.extend_symbols({"proposition": 3})
        model.save_pretrained(tmp_path / "out")
        with pytest.raises(ValueError, match=r"disagree: symbol_classes.*extend_symbols"):
            load_checkpoint(tmp_path / "out")


def test_checkpoints_that_cannot_be_converted_leave_nothing(vanilla, tmp_path):
    for wrong, message in (
        ({"encoding": "relational", "actual": "z"}, "actual: 'z' is no symbol"),
        ({"encoding": "learned"}, "encoding must be one of streams, relational, dual_part"),
    ):
        with pytest.raises(ValueError, match=message):
            convert_checkpoint(tmp_path / "vanilla", tmp_path / "out", **wrong)
        assert not (tmp_path / "out").exists()
