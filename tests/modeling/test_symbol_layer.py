"""Dual-part embeddings and renamings: what they are made of, beside the promises of families."""

import copy
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, batch_sizes, make_model, random_batch, rename_batch, seeds

from hf_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.modeling_alpha import AlphaEncoder
from hf_alpha.modeling.new_symbols import UNUSABLE
from hf_alpha.modeling.random_numbers import RANDOM_METHODS, draw_key, symbol_vectors

TWO_CLASSES = {"symbol_classes": {"proposition": 3, "function": 2}}
PLAIN = {"normalize_features": False, "adacos": False}
RENAMINGS = ("none", "random", "random_per_batch", "first_occurrence")


def make_dual(seed=0, **changes):
    return make_model(seed, **{"symbol_encoding": "dual_part", **changes})


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


def table(model):
    return model.model.embedding_table().detach()


def labelled(model, sizes=((6, 3), (4, 2)), seed=2):
    batch = random_batch(seed, model.config, list(sizes), target_length=5)
    return {**batch, "labels": batch.pop("decoder_input_ids")}


# Rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", RANDOM_METHODS)
@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_rows_are_those_of_the_paper(method, parts, whole, training):
    """Equation 1 of 2410.17161, row by row."""
    model = make_dual(
        random_method=method, random_dim=6, normalize_parts=parts, normalize_embeddings=whole,
        **TWO_CLASSES, **PLAIN,
    ).train(training)  # fmt: skip
    model.extend_symbols({"proposition": 2})  # ids 15, 16 behind those of the functions
    weight, rows = model.model.shared.weight.detach(), table(model)
    step = torch.tensor(0 if training else -1)
    random = symbol_vectors(method, torch.arange(7), 6, draw_key(model.config.symbol_seed, step))

    def unit(vector, really):
        return vector / vector.norm() if really else vector

    for i in range(BASE):
        expected = torch.cat((unit(weight[i], parts), torch.zeros(6)))
        torch.testing.assert_close(rows[i], unit(expected, whole))
    for i, number in enumerate([0, 0, 0, 1, 1, 0, 0]):
        expected = torch.cat((unit(weight[BASE + number], parts), unit(random[i], parts)))
        torch.testing.assert_close(rows[BASE + i], unit(expected, whole))
    assert len({tuple(row) for row in rows[BASE:, 10:].tolist()}) == 7


def test_parameters_do_not_grow_with_the_vocabulary():
    sizes = {make_dual(symbol_classes={"x": count}).num_parameters() for count in (1, 5, 50)}
    assert len(sizes) == 1
    shapes = {make_dual(symbol_classes={"x": n}).model.shared.weight.shape for n in (1, 50)}
    assert shapes == {(BASE + 1, 8)}


def test_encoder_decoder_and_projection_are_tied():
    model = make_dual(adacos=False, logit_scale=1.0).train()
    inner = model.model
    assert inner.encoder.get_input_embeddings() is inner.shared
    assert inner.decoder.get_input_embeddings() is inner.shared
    ids = torch.arange(BASE + 5)[None]
    streams = inner.symbols.open(ids, None, None, training=False)
    hidden = inner.encoder.symbols.embed(ids, streams)
    assert torch.equal(hidden[0, 0], table(model))
    scores, _ = model.predict(table(model)[None, None], streams)
    torch.testing.assert_close(scores[0], table(model) @ table(model).T)
    scaled = make_dual(scale_embedding=True).model
    hidden = scaled.symbols.embed(ids, streams)
    torch.testing.assert_close(hidden[0, 0], 4.0 * scaled.embedding_table())


def test_no_gradient_into_random_parts():
    model = make_dual().train()
    names = {name for name, _ in model.named_parameters()}
    assert not any("random" in name or "draws" in name for name in names)
    model(**labelled(model)).loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    draws = model.model.symbol_draws
    assert not draws(True).requires_grad and not draws.random_parts.requires_grad
    before = draws.random_parts.clone()
    torch.optim.AdamW(model.parameters(), lr=1.0).step()
    assert torch.equal(draws.random_parts, before)


# Draws in training -----------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
}


def random_columns(model):
    return model.model.symbol_draws(model.training).clone()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_drawn_once_per_optimiser_step(optimizer):
    """However many micro-batches a step has; evaluation in between sees the one for inference."""
    model = make_dual(random_dim=8).train()
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    inference, drawn = random_columns(model.eval()), []
    for step, count in enumerate((1, 3, 2)):
        model.train()
        for index in range(count):
            model(**labelled(model, seed=10 * step + index)).loss.backward()
            drawn.append((step, random_columns(model)))
        assert int(model.model.symbol_draws.step) == step
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        logits(model, random_batch(1, model.config, [(5, 2)]))
        assert torch.equal(random_columns(model), inference)
    for (step, one), (other, two) in itertools.combinations(drawn, 2):
        assert torch.equal(one, two) == (step == other)
    assert not any(torch.equal(one, inference) for _, one in drawn)
    for _ in range(2):
        model.train().settle_step()
        assert int(model.model.symbol_draws.step) == 3


@pytest.mark.parametrize("method", RANDOM_METHODS)
def test_steps_drawn_ahead_are_those_of_their_step(tmp_path, method):
    model = make_dual(random_method=method, random_dim=8, normalize_parts=False, **PLAIN).train()
    draws, seen = model.model.symbol_draws, []
    for step in range(40):
        draws.advance(step)
        key = draw_key(0, torch.tensor(step))
        expected = symbol_vectors(method, torch.arange(5), 8, key)
        torch.testing.assert_close(random_columns(model), expected, atol=1e-6, rtol=1e-6)
        seen.append(random_columns(model))
    assert len({tuple(parts.flatten().tolist()) for parts in seen}) == 40
    # One that starts in the middle draws from there on.
    loaded = make_dual(random_method=method, random_dim=8, normalize_parts=False, **PLAIN).train()
    loaded.load_state_dict(model.state_dict() | {"model.symbol_draws.step": torch.tensor(21)})
    loaded.model.symbol_draws.advance(0)
    for step in range(21, 40):
        assert torch.equal(random_columns(loaded), seen[step])
        loaded.model.symbol_draws.advance(step)
    # Symbols that are added in the middle have theirs from then on, and change no other.
    model.extend_symbols({"proposition": 3})
    assert torch.equal(random_columns(model)[:5], seen[-1])


@pytest.mark.parametrize(("encoding", "renaming"), [("dual_part", "none"), ("learned", "random")])
def test_a_loaded_run_goes_on_alike(tmp_path, encoding, renaming):
    model = make_model(symbol_encoding=encoding, symbol_renaming=renaming, dropout=0.0).train()

    def train(model, seed):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(**labelled(model, seed=seed)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for seed in range(3):
        train(model, seed)
    model.save_pretrained(tmp_path)
    loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path).train()
    again = AlphaForConditionalGeneration(loaded.config).train()
    again.load_state_dict(model.state_dict())
    for seed in (5, 6):
        for other in (model, loaded, again):
            train(other, seed)
    for other in (loaded, again):
        assert int(other.model.symbol_draws.step) == int(model.model.symbol_draws.step) == 4
        for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(ours, theirs)


def test_training_draws_follow_the_seed():
    one, two, three = (make_dual(symbol_seed=seed).train() for seed in (0, 0, 1))
    assert torch.equal(random_columns(one), random_columns(two))
    assert not torch.equal(random_columns(one), random_columns(three))


def test_the_encoder_alone_draws_too():
    torch.manual_seed(0)
    encoder = AlphaEncoder(make_dual().config).train()
    assert "symbol_draws.random_parts" in encoder.state_dict()
    batch = random_batch(1, encoder.config, [(5, 2)])
    del batch["decoder_input_ids"]
    drawn = []
    for _ in range(2):
        encoder(**batch).last_hidden_state.sum().backward()
        drawn.append(encoder.symbol_draws(True).clone())
        torch.optim.SGD(encoder.parameters(), lr=0.1).step()
    assert not torch.equal(*drawn)


def test_a_part_of_a_model_extends_what_it_shares():
    model = make_dual(random_dim=8)
    model.get_encoder().extend_symbols({"proposition": 2})
    assert len(model.model.symbol_draws.random_parts) == model.config.num_symbols == 7
    model.get_decoder().redraw_symbols(3)
    assert torch.equal(
        model.model.symbol_draws.random_parts,
        make_dual(
            random_dim=8, symbol_seed=3, symbol_classes={"x": 7}
        ).model.symbol_draws.random_parts,
    )


# The draw for inference ------------------------------------------------------------------------


@pytest.mark.parametrize("method", RANDOM_METHODS)
@pytest.mark.parametrize("classes", [{}, TWO_CLASSES])
def test_old_names_keep_their_vectors(method, classes):
    settings = {"random_method": method, "random_dim": 6, **classes}
    model = make_dual(**settings)
    before = model.model.symbol_draws.random_parts.clone()
    name = next(iter(model.config.symbol_classes))
    for count in (1, 20):
        model.extend_symbols({name: count})
        after = model.model.symbol_draws.random_parts
        assert len(after) == model.config.num_symbols
        assert torch.equal(after[:5], before)
        assert len({tuple(row) for row in after.tolist()}) == len(after)
    # As if it had had them from the start, in training too.
    whole = make_dual(**{**settings, "symbol_classes": {"x": 26}})
    assert torch.equal(whole.model.symbol_draws.random_parts, after)
    assert torch.equal(random_columns(whole.train()), random_columns(model.train()))
    with pytest.raises(ValueError, match="no symbol class"):
        model.extend_symbols({"person": 1})


def test_redrawing():
    model = make_dual(random_dim=8)
    batch = random_batch(1, model.config, [(6, 3), (5, 2)])
    drawn = {}
    for seed in (0, 1, 2, 1, 0):
        model.redraw_symbols(seed)
        if seed in drawn:
            assert torch.equal(logits(model, batch), drawn[seed])
        drawn[seed] = logits(model, batch)
    assert torch.equal(logits(make_dual(random_dim=8), batch), drawn[0])
    assert not torch.equal(drawn[0], drawn[1])
    model.redraw_symbols(1)
    model.extend_symbols({"proposition": 2})
    longer = make_dual(random_dim=8, symbol_seed=1, symbol_classes={"proposition": 7})
    theirs = longer.model.symbol_draws.random_parts
    assert torch.equal(model.model.symbol_draws.random_parts, theirs)
    for encoding in ("learned", "streams", "relational"):
        with pytest.raises(ValueError, match="has no random parts"):
            make_model(symbol_encoding=encoding).redraw_symbols(1)


def test_the_checkpoint_keeps_the_draw_itself(tmp_path):
    """Not only its seed: what was drawn elsewhere, or set by hand, comes back."""
    model = make_dual()
    model.model.symbol_draws.random_parts.normal_()
    batch = random_batch(9, model.config, [(6, 3)])
    before = logits(model, batch)
    model.save_pretrained(tmp_path)
    assert torch.equal(
        logits(AlphaForConditionalGeneration.from_pretrained(tmp_path), batch), before
    )


# Renaming --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["learned", "dual_part"])
def test_first_occurrence_is_the_plain_model_on_renamed_ids(encoding):
    """Rename by hand on the way in, undo it on the way out."""
    model = make_model(symbol_encoding=encoding, symbol_renaming="first_occurrence", **TWO_CLASSES)
    plain = copy.deepcopy(model)
    plain.config.symbol_renaming = "none"
    batch = random_batch(4, model.config, [(9, 5), (6, 2), (4, 0)], side="left")
    members = {"proposition": [10, 11, 12], "function": [13, 14]}
    tables = []
    for row, mask in zip(
        batch["input_ids"].tolist(), batch["attention_mask"].tolist(), strict=True
    ):
        names = list(range(BASE + 5))
        for ids in members.values():
            seen = [i for i, real in zip(row, mask, strict=True) if real and i in ids]
            order = [*dict.fromkeys(seen), *(i for i in ids if i not in seen)]
            for new, old in zip(ids, order, strict=True):
                names[old] = new
        tables.append(torch.tensor(names))
    expected = logits(plain, rename_batch(batch, tables))
    out = logits(model, batch)
    for row, names in enumerate(tables):
        usable = out[row, 0] > -1e3
        assert torch.equal(out[row][:, usable], expected[row][:, names][:, usable])
        present = set(batch["input_ids"][row].tolist())
        assert usable.tolist() == [i < BASE or i in present for i in range(BASE + 5)]
        assert (out[row][:, ~usable] == UNUSABLE).all()


def test_logits_processors_see_the_callers_names():
    """Forbidding a symbol forbids that symbol, whatever it is called inside."""
    model = make_model(
        symbol_encoding="learned", symbol_renaming="first_occurrence", adacos=False, logit_scale=30
    )
    with torch.no_grad():  # the first name that occurs is the likeliest answer
        norm = model.model.decoder.layers[-1].final_layer_norm
        norm.weight.mul_(0.1)
        model.model.shared.weight[BASE] = norm.bias
    batch = random_batch(3, model.config, [(8, 4), (8, 3)])
    batch.pop("decoder_input_ids")
    free = model.generate(**batch, max_new_tokens=6, eos_token_id=None)
    used = free[free >= BASE].tolist()
    assert used
    for symbol in set(used):
        out = model.generate(**batch, max_new_tokens=6, bad_words_ids=[[symbol]], eos_token_id=None)
        assert not (out == symbol).any()


@pytest.mark.parametrize("encoding", ["learned", "dual_part"])
@pytest.mark.parametrize("renaming", ["random", "random_per_batch"])
def test_random_renaming_happens_in_training_only(encoding, renaming):
    model = make_model(symbol_encoding=encoding, symbol_renaming=renaming)
    plain = copy.deepcopy(model)
    plain.config.symbol_renaming = "none"
    batch = random_batch(3, model.config, [(6, 3), (5, 2)])
    assert torch.equal(logits(model, batch), logits(plain, batch))
    encoded = {name: value for name, value in batch.items() if name != "decoder_input_ids"}
    assert model.get_encoder()(**encoded).streams.renaming is None
    torch.testing.assert_close(
        model.generate(**encoded, max_new_tokens=4), plain.generate(**encoded, max_new_tokens=4)
    )
    assert model.train().get_encoder()(**encoded).streams.renaming is not None


@pytest.mark.parametrize(("renaming", "vectors"), [("none", 1), ("random", 5)])
def test_random_parts_of_dual_part_by_sample(renaming, vectors):
    """Renamed at random, the first name has any of a step's random parts in its sample."""
    model = make_dual(symbol_renaming=renaming, symbol_classes={"x": 5}).train()
    batch = random_batch(3, model.config, [(length, 3) for length in range(5, 45)])
    encoded = {name: value for name, value in batch.items() if name != "decoder_input_ids"}
    names = model.get_encoder()(**encoded).streams.renaming
    names = torch.arange(5).expand(40, -1) if names is None else names
    parts = model.model.symbol_draws(training=True)[names]
    assert len(parts[:, 0].unique(dim=0)) == vectors
    assert all(len(sample.unique(dim=0)) == 5 for sample in parts), "names of a sample differ"


@settings(max_examples=20)
@given(
    seed=seeds, sizes=batch_sizes, per_sample=st.booleans(), side=st.sampled_from(["left", "right"])
)
def test_random_renaming_is_the_plain_model_on_renamed_ids(seed, sizes, per_sample, side):
    """A bijection within each class, one for each sample or one for all; undone in the logits."""
    model = make_model(
        symbol_encoding="learned",
        symbol_renaming="random" if per_sample else "random_per_batch",
        symbol_seed=seed,
        dropout=0.0,
        **TWO_CLASSES,
    ).train()
    plain = copy.deepcopy(model).eval()
    batch = random_batch(seed, model.config, sizes, side=side)
    encoded = {name: value for name, value in batch.items() if name != "decoder_input_ids"}
    names = model.get_encoder()(**encoded).streams.renaming
    assert torch.equal(names[:, :3].sort().values, torch.arange(3).expand(len(sizes), -1))
    assert torch.equal(names[:, 3:].sort().values, torch.arange(3, 5).expand(len(sizes), -1))
    if not per_sample:
        assert (names == names[:1]).all()
    names = torch.cat((torch.arange(BASE).expand(len(sizes), -1), BASE + names), dim=1)
    expected = logits(plain, rename_batch(batch, list(names)))
    with torch.no_grad():
        out = model(**batch).logits
    for row, table_of_row in enumerate(names):
        assert torch.equal(out[row], expected[row][:, table_of_row])


def test_random_renamings_are_spread_evenly():
    model = make_model(
        symbol_encoding="learned", symbol_renaming="random", symbol_classes={"x": 4}
    ).train()
    ids = torch.arange(BASE)[torch.randint(3, BASE, (6000, 9))]

    def draw():
        return model.symbol_layer.open(ids, None, None, training=True).renaming

    names = draw()
    counts = torch.stack([(names == i).float().mean(0) for i in range(4)])
    assert (counts - 0.25).abs().max() < 0.03
    assert len({tuple(row) for row in names.tolist()}) == 24
    model.model.symbol_draws.step += 1
    assert (draw() != names).any(1).float().mean() > 0.9


HOST = {  # a large vocabulary with few symbols, in the middle and in two classes
    "num_base_tokens": 50_000,
    "symbol_classes": {"x": 2, "y": 2},
    "symbol_ranges": {"x": [[5, 6], [41_000, 41_001]], "y": [[40_000, 40_002]]},
}


def test_random_parts_are_as_many_as_the_symbols():
    model = make_dual(random_dim=8, **HOST)
    symbols = model.config.vocabulary.is_symbol(torch.arange(50_004))
    for training in (True, False):
        parts = model.train(training).model.symbol_draws(training)
        assert parts.shape == (4, 8)
        rows = table(model)
        torch.testing.assert_close(rows[symbols, 8:], 0.5**0.5 * parts)
        assert not rows[~symbols, 8:].any()
        of_tokens = model.symbol_layer.parts(torch.tensor([[5, 41_000, 7, 40_001]]))
        assert torch.equal(of_tokens[0], parts[[0, 3, 0, 2]] * torch.tensor([[1], [1], [0], [1]]))


@pytest.mark.parametrize("renaming", RENAMINGS)
def test_without_symbols_nothing_is_renamed(renaming):
    none = {"symbol_classes": {}}
    model = make_model(symbol_encoding="learned", symbol_renaming=renaming, dropout=0.0, **none)
    plain = make_model(symbol_encoding="learned", dropout=0.0, **none)
    batch = random_batch(1, model.config, [(6, 0), (4, 0)])
    assert torch.equal(logits(model, batch), logits(plain, batch))
    assert torch.equal(logits(model.train(), batch), logits(plain.train(), batch))


@pytest.mark.parametrize("encoding", ["streams", "relational"])
def test_streams_and_relations_skip_renaming(encoding):
    plain = make_model(symbol_encoding=encoding)
    batch = random_batch(3, plain.config, [(6, 3), (5, 2)])
    for renaming in RENAMINGS:
        model = make_model(symbol_encoding=encoding, symbol_renaming=renaming)
        assert not any("symbol_draws" in name for name in model.state_dict())
        assert torch.equal(logits(model, batch), logits(plain, batch))
        assert int(model.num_parameters()) == plain.num_parameters()


# What a Transformers user does -----------------------------------------------------------------

SETTINGS = [
    {"symbol_encoding": "dual_part"},
    {"symbol_encoding": "dual_part", "symbol_renaming": "first_occurrence"},
    {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    {"symbol_encoding": "learned", "symbol_renaming": "random"},
]


@pytest.mark.parametrize(
    "encoding",
    [*SETTINGS, {"symbol_encoding": "streams"}, {"symbol_encoding": "relational"}],
    ids=lambda s: "-".join(s.values()),
)
def test_encoder_outputs_in_every_form(encoding):
    model = make_model(**encoding)
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    expected = logits(model, batch)
    decoder_ids = batch.pop("decoder_input_ids")
    encoded = model.get_encoder()(**batch)
    rest = {"attention_mask": batch["attention_mask"], "decoder_input_ids": decoder_ids}
    as_tuple = model.get_encoder()(**batch, return_dict=False)
    for form in (encoded, as_tuple):
        assert torch.equal(logits(model, {**rest, "encoder_outputs": form}), expected)
    bare = (encoded.last_hidden_state,)
    if model.config.needs_stream_ids:
        with pytest.raises(ValueError, match="stream_ids"):
            model(**rest, encoder_outputs=bare)
        rest |= {"stream_ids": encoded.streams.ids, "input_ids": batch["input_ids"]}
    assert torch.equal(logits(model, {**rest, "encoder_outputs": bare}), expected)
    del batch["attention_mask"]
    beams = model.generate(encoder_outputs=encoded, num_beams=3, max_new_tokens=4)
    assert beams.shape[0] == 2


@pytest.mark.slow
def test_compiled_training_draws_once_per_step(fresh_compiler):
    eager = make_dual(dropout=0.0, symbol_renaming="random").train()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend="aot_eager")
    for own, run in ((eager, eager), (model, compiled)):
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for seed in range(4):
            run(**labelled(own, seed=seed)).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    assert int(eager.model.symbol_draws.step) == int(model.model.symbol_draws.step) == 3
    for one, two in zip(eager.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-5)


def test_half_precision():
    model = make_dual().to(torch.bfloat16)
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    assert logits(model, batch).dtype == torch.bfloat16
    model.train()(**labelled(model)).loss.backward()
    assert model.model.symbol_draws.step.dtype == torch.int64
    model.extend_symbols({"proposition": 2})
    assert model.model.symbol_draws.random_parts.dtype == torch.bfloat16


def test_random_renaming_does_not_depend_on_padding():
    """With a mask, whatever it hides; or without one: padding is known by its id."""
    model = make_model(symbol_encoding="learned", symbol_renaming="random").train()
    ids = torch.tensor([[BASE, 3, BASE + 1]])
    padded = torch.nn.functional.pad(ids, (2, 3), value=model.config.pad_token_id)

    def rename(ids, mask=None):
        return model.symbol_layer.open(ids, mask, None, training=True).renaming

    names = rename(ids)
    assert rename(padded).equal(names)
    mask = (padded > 0).long()
    assert rename(padded, mask).equal(names)
    assert rename(torch.where(mask > 0, padded, BASE + 2), mask).equal(names)
    assert not rename(ids.flip(1)).equal(names)
