import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_model, random_batch, seeds

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.logit_scale import LogitScale, token_loss

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "foreach": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
}


def next_scale(
    scale: float, parts: list[tuple[torch.Tensor, torch.Tensor]], adacos: bool | str = True
) -> float:
    """FACTS of AdaCos, position by position, from (logits, labels) of all micro-batches."""
    sums, angles = [], []
    for logits, labels in parts:
        for row, targets in zip(logits.tolist(), labels.tolist(), strict=True):
            for position, target in enumerate(targets):
                if target == -100:
                    continue
                # Columns that the sample cannot use hold -1e4 and contribute nothing.
                sums.append(
                    sum(
                        math.exp(x) for j, x in enumerate(row[position]) if j != target and x > -1e3
                    )
                )
                angles.append(math.acos(max(-1.0, min(1.0, row[position][target] / scale))))
    median = sorted(angles)[(len(angles) - 1) // 2]
    others = sum(sums) if adacos == "sum" else sum(sums) / len(sums)
    return min(100.0, math.log(others) / math.cos(min(math.pi / 4, median)))


def labelled_batch(seed: int, config, sizes=((6, 2), (4, 0), (7, 3)), target_length=5):
    batch = random_batch(seed, config, list(sizes), target_length)
    labels = batch.pop("decoder_input_ids")
    labels[:, -1] = 2
    labels[0, -2:] = -100
    return {**batch, "labels": labels}


def training_model(**settings):
    return make_model(dropout=0.0, **settings).train()


def scale_of(model) -> float:
    return float(model.logit_scale.scale)


# The formula


@given(
    seeds,
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=3),
    st.floats(0.0, 0.98),
    st.floats(2.0, 100.0),
    st.sampled_from([True, "mean", "sum"]),
)
def test_next_scale_is_the_formula(seed, sizes, pull, scale, adacos):
    """From random cosines, of which the labelled ones are pulled towards 1."""
    generator = torch.Generator().manual_seed(seed)
    module, parts = LogitScale(scale, adacos), []
    for b, t in sizes:
        cosines = 2 * torch.rand(b, t, 7, generator=generator) - 1
        labels = torch.randint(3, (b, t), generator=generator)
        cosines.scatter_(
            -1, labels[..., None], pull + (1 - pull) * cosines.gather(-1, labels[..., None])
        )
        labels[torch.rand(b, t, generator=generator) < 0.3] = -100
        usable = torch.rand(b, 7, generator=generator) < 0.7
        usable[:, :3] = True
        logits = module(cosines).masked_fill(~usable[:, None], -1e4)
        module.observe(logits, labels, usable, count=1)
        parts.append((logits, labels))
    module.advance(1)
    assert float(module.scale) == pytest.approx(scale), "no step has happened yet"
    module.advance(2)
    if all((labels == -100).all() for _, labels in parts):
        assert float(module.scale) == pytest.approx(scale)
        return
    expected = next_scale(float(torch.tensor(scale)), parts, adacos)
    if expected > 1e-3:
        assert float(module.scale) == pytest.approx(expected, rel=1e-4)
    module.advance(3)
    assert float(module.scale) == pytest.approx(expected if expected > 0 else scale, rel=1e-4)


@pytest.mark.parametrize(
    ("adacos", "positions", "wrong", "target", "other", "expected"),
    [
        (True, 1, 1, 0.9, 1.0, 100.0),  # exp(100) is no float32
        (True, 1, 1, -1.0, 0.3, 30 / math.cos(math.pi / 4)),  # an angle beyond pi / 4
        (True, 1000, 1, 1.0, 0.95, 95 - math.log(1000)),  # one of many, on average
        # 2410.17161 (Section 4.3): 1,000 positions add ln(1000), and 100 is the most.
        ("sum", 1000, 1000, 1.0, 0.5, 50 + math.log(1000)),
        ("sum", 1000, 1000, 1.0, 0.95, 100.0),
    ],
)
def test_limits(adacos, positions, wrong, target, other, expected):
    """Of tokens that are wrong at the largest scale."""
    module, cosines = LogitScale(100.0, adacos), torch.zeros(1, positions, 2)
    cosines[..., 0], cosines[:, :wrong, 1] = target, other
    labels = torch.zeros(1, positions, dtype=torch.long)
    module.observe(module(cosines), labels, torch.ones(1, 2, dtype=torch.bool), 1)
    module.advance(2)
    assert float(module.scale) == pytest.approx(expected, rel=1e-4)


def test_a_models_choice_is_kept(tmp_path):
    """Also as configurations said it before there was a choice, which was the mean."""
    for adacos in (True, "mean", "sum"):
        model = training_model(adacos=adacos)
        model.save_pretrained(tmp_path)
        loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path).train()
        assert loaded.config.adacos == adacos
        batch, before = labelled_batch(0, model.config), scale_of(loaded)
        logits = loaded(**batch).logits.detach()
        loaded.advance_step()
        expected = next_scale(before, [(logits, batch["labels"])], adacos)
        assert scale_of(loaded) == pytest.approx(expected, rel=1e-4)


def test_hopeless_statistics_keep_the_scale():
    ones = torch.ones(1, 3, dtype=torch.bool)
    cases = [
        (
            torch.tensor([[[5.0, -1e4, -1e4]]]),
            torch.tensor([[0]]),
            ones & torch.tensor([True, False, False]),
        ),
        (torch.zeros(1, 1, 3), torch.tensor([[-100]]), ones),
        (torch.full((1, 1, 3), float("nan")), torch.tensor([[1]]), ones),
        (torch.full((1, 1, 3), -9.0), torch.tensor([[1]]), ones),
    ]
    for logits, labels, usable in cases:
        module = LogitScale(10.0, True)
        module.observe(logits, labels, usable, 1)
        module.advance(2)
        assert float(module.scale) == 10.0


@pytest.mark.parametrize("classes", [{"proposition": 5}, {"proposition": 20}, {"x": 3, "y": 4}])
def test_initial_scale(classes):
    vocabulary = 10 + sum(classes.values())
    for encoding in ("streams", "learned", "relational"):
        model = make_model(symbol_classes=classes, symbol_encoding=encoding)
        assert scale_of(model) == pytest.approx(math.sqrt(2) * math.log(vocabulary - 1))
    assert scale_of(make_model(adacos=False)) == 10
    assert scale_of(make_model(adacos=False, logit_scale=5)) == 5
    assert scale_of(make_model(adacos=False, normalize_features=False)) == 1
    assert not AlphaConfig().adacos


# In training


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("set_to_none", [True, False])
def test_once_per_optimiser_step(optimizer, set_to_none):
    """However many micro-batches a step has, and whatever moves the weights."""
    model = training_model()
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    for step, count in enumerate((1, 3, 2)):
        before, parts = scale_of(model), []
        for index in range(count):
            batch = labelled_batch(10 * step + index, model.config)
            outputs = model(**batch)
            if step and not index:
                assert before != scale_of(model) == pytest.approx(expected, rel=1e-4)  # noqa: F821
                before = scale_of(model)
            assert scale_of(model) == before
            parts.append((outputs.logits.detach(), batch["labels"]))
            outputs.loss.backward()
        expected = next_scale(before, parts)
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
    model.settle_step()
    assert scale_of(model) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("how", ["eval", "no_grad", "no labels", "adacos off"])
def test_left_alone(how):
    model = training_model(**({"adacos": False, "logit_scale": 7.0} if how == "adacos off" else {}))
    batch, before = labelled_batch(0, model.config), scale_of(model)
    model.train(how != "eval")
    if how == "no labels":
        batch["decoder_input_ids"] = batch.pop("labels").clamp(min=0)
    for _ in range(2):
        with torch.set_grad_enabled(how != "no_grad"):
            model(**batch)
        model.symbol_layer.steps.advance()
    model.settle_step()
    assert scale_of(model) == before


def test_loading_drops_what_was_observed():
    model = training_model()
    batch, before = labelled_batch(0, model.config), scale_of(model)
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    assert "logit_scale.statistics" not in saved
    model(**batch)
    model.load_state_dict(saved)
    model.advance_step()
    assert scale_of(model) == before


def test_saving_takes_in_the_last_step(tmp_path):
    """A run that goes on and one that is loaded continue alike."""
    model = training_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batch, before = labelled_batch(0, model.config), scale_of(model)
    parts = [(model(**batch).logits.detach(), batch["labels"])]
    model(**batch).loss.backward()
    optimizer.step()
    model.save_pretrained(tmp_path)
    assert scale_of(model) == pytest.approx(next_scale(before, parts), rel=1e-4)
    loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path).train()
    assert scale_of(loaded) == scale_of(model) and not loaded.logit_scale.statistics.any()
    for other in (model, loaded):
        other(**labelled_batch(1, model.config))
        other.logit_scale.advance(-1)
    assert scale_of(loaded) == scale_of(model) != pytest.approx(next_scale(before, parts))


def test_generation_uses_the_scale():
    model = make_model()
    batch = random_batch(0, model.config, [(6, 2)])
    batch.pop("decoder_input_ids")
    settings = {"max_new_tokens": 2, "output_logits": True, "return_dict_in_generate": True}
    first = model.generate(**batch, **settings).logits[0]
    model.logit_scale.scale.mul_(2)
    second = model.generate(**batch, **settings).logits[0]
    usable = first > -1e3
    assert usable.sum() == 12
    torch.testing.assert_close(second[usable], 2 * first[usable])
    assert torch.equal(second[~usable], first[~usable])


def test_half_precision_keeps_the_statistics():
    config = AlphaConfig(**{**make_model().config.to_dict(), "dropout": 0.0})
    model = AlphaForConditionalGeneration(config).to(torch.bfloat16).train()
    many = labelled_batch(0, model.config, sizes=((5, 2),) * 300)
    logits = model(**many).logits.detach().float()
    before = scale_of(model)
    model.logit_scale.advance(-1)
    assert scale_of(model) == pytest.approx(
        next_scale(before, [(logits, many["labels"])]), rel=0.01
    )


# The loss


@given(seeds, st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from([None, 5, 100]))
@settings(max_examples=30)
def test_token_loss(seed, smoothing, num_items):
    generator = torch.Generator().manual_seed(seed)
    usable = torch.rand(3, 6, generator=generator) < 0.6
    usable[:, :2] = True
    logits = torch.randn(3, 4, 6, generator=generator).masked_fill(~usable[:, None], -1e4)
    labels = torch.randint(2, (3, 4), generator=generator)
    labels[torch.rand(3, 4, generator=generator) < 0.3] = -100
    labels[0, 0] = 1
    expected = 0.0
    for b, t in (labels != -100).nonzero().tolist():
        columns = usable[b].nonzero().flatten().tolist()
        row = {j: float(logits[b, t, j]) for j in columns}
        total = math.log(sum(math.exp(x) for x in row.values()))
        uniform = sum(x - total for x in row.values()) / len(columns)
        expected -= (1 - smoothing) * (row[int(labels[b, t])] - total) + smoothing * uniform
    items = num_items or int((labels != -100).sum())
    for given_items in {num_items, num_items and torch.tensor(num_items)}:
        loss = token_loss(logits, labels, lambda: usable, smoothing, given_items)
        assert float(loss) == pytest.approx(expected / items, rel=1e-4)
