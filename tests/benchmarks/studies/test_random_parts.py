import pytest
import torch
from assignments import FAST, ROWS, make_drawn_model, make_tokenizer
from strategies import make_model

from benchmarks.studies.random_parts import draw_losses, median_seed


@pytest.fixture
def model():
    return make_drawn_model()


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def test_the_loss_is_the_mean_over_tokens(model, tokenizer):
    total, count = 0.0, 0
    for row in ROWS:
        batch = tokenizer(row["problem"], text_target=row["answer"], return_tensors="pt")
        batch = {n: v if v.dim() > 1 else v[None] for n, v in batch.items()}
        with torch.no_grad():
            total += float(model(**batch).loss) * batch["labels"].numel()
        count += batch["labels"].numel()
    unknown = {"problem": "a", "answer": None}
    for size in (1, 3, 64):
        options = {"seeds": (0,), "batch_size": size, "progress": False}
        losses = draw_losses(model.train(), tokenizer, [*ROWS, unknown], **options)
        assert losses == {0: pytest.approx(total / count, rel=1e-5)}
    assert model.training
    with pytest.raises(ValueError, match="no row has an answer"):
        draw_losses(model, tokenizer, [unknown], **FAST)


def test_the_median_draw_is_chosen(model, tokenizer):
    for seeds in (tuple(range(10)), (3, 8, 5)):
        losses = draw_losses(model, tokenizer, ROWS, seeds=seeds, **FAST)
        chosen = median_seed(losses)
        assert tuple(losses) == seeds
        assert losses[chosen] == sorted(losses.values())[len(seeds) // 2]
        alone = draw_losses(model, tokenizer, ROWS, seeds=(chosen,), **FAST)
        assert alone[chosen] == losses[chosen]
    assert median_seed({4: 1.0, 2: 1.0, 7: 0.5}) == 2


def test_losses_leave_the_draw_alone(model, tokenizer):
    model.model.symbol_draws.random_parts.normal_()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    draw_losses(model, tokenizer, ROWS, seeds=(1, 2), **FAST)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert model.config.symbol_seed == 0


def test_what_cannot_be_drawn(model, tokenizer):
    for encoding in ("learned", "streams"):
        with pytest.raises(ValueError, match="has no random parts"):
            draw_losses(make_model(symbol_encoding=encoding), tokenizer, ROWS, **FAST)
    renamed = make_model(symbol_encoding="learned", symbol_renaming="random")
    with pytest.raises(ValueError, match="has no random parts"):
        draw_losses(renamed, tokenizer, ROWS, **FAST)
    for seeds in ((), (1, 1)):
        with pytest.raises(ValueError, match="seeds of draws"):
            draw_losses(model, tokenizer, ROWS, seeds=seeds, **FAST)
