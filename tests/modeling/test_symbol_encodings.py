"""An encoding from outside the package is one class; the built-in ones keep what they promise."""

import pytest
import torch
from families.test_alpha_decoder import DecoderFamily as OwnDecoderFamily
from retrofits import DecoderFamily, RetrofitFamily, make_retrofit
from strategies import BASE, AlphaFamily, make_model, random_batch, rename_batch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling import symbol_encodings
from hf_alpha.modeling.encoding import SymbolEncoding
from hf_alpha.modeling.symbol_encodings import encoding_class, register_encoding


class Nameless(SymbolEncoding):
    """All symbols of a class share one row, and one score: who they are is lost."""

    name = "nameless"
    description = "A model that does not tell symbols apart."
    promises = frozenset({"renaming", "extension"})
    sees_names = False
    rows_per_class = 1

    def logits(self, scores_BSTR, streams):
        ids = torch.arange(self.config.vocab_size)[None]
        return scores_BSTR[:, 0][..., self.rows(ids, streams)[0, 0]]


@pytest.fixture(scope="module", autouse=True)
def registered():
    """What is registered here is unknown elsewhere."""
    before = dict(symbol_encodings._ENCODINGS)
    register_encoding(Nameless)
    yield
    symbol_encodings._ENCODINGS.clear()
    symbol_encodings._ENCODINGS.update(before)


def family_of(kind, **attributes):
    return type("NamelessFamily", (kind,), attributes)()


IN_A_HOST = {"settings": {"symbol_encoding": "nameless"}}
BACKBONES = {
    "encoder-decoder": family_of(AlphaFamily, encoding="nameless"),
    "decoder": family_of(OwnDecoderFamily, **IN_A_HOST),
    "t5": family_of(RetrofitFamily, host="t5", **IN_A_HOST),
    "llama": family_of(DecoderFamily, host="llama", **IN_A_HOST),
}


@pytest.mark.parametrize("backbone", BACKBONES)
def test_an_encoding_from_outside(backbone, tmp_path):
    family = BACKBONES[backbone]
    model = family.make_model()
    batch = family.make_batch(1, model.config, [(6, 3), (4, 2)])
    renaming = family.renaming(3, model.config)
    kept = batch["attention_mask"].bool() if "decoder_input_ids" not in batch else slice(None)
    before = model(**batch).logits[kept]
    after = model(**family.renamed(batch, [renaming, renaming])).logits[kept]
    assert torch.equal(after[..., renaming], before)
    model.train()(**family.labelled(1, model.config, [(6, 3), (4, 2)])).loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    size = model.config.vocab_size
    model.eval().extend_symbols({next(iter(model.config.symbol_classes)): 2})
    assert torch.equal(model(**batch).logits[kept][..., :size], before)
    inputs = {name: value for name, value in batch.items() if name != "decoder_input_ids"}
    assert model.generate(**inputs, num_beams=2, max_new_tokens=4).shape[0] == 2
    model.save_pretrained(tmp_path)
    auto = AutoModelForSeq2SeqLM if model.config.is_encoder_decoder else AutoModelForCausalLM
    loaded = auto.from_pretrained(tmp_path)
    assert torch.equal(loaded(**batch).logits, model(**batch).logits)


def test_what_a_host_would_not_ask_for_is_refused():
    """A part that nothing calls would be silently lost, and rows of its own would be others'."""

    class Scaled(Nameless):
        name = "scaled"

        def table(self, trained_RD, parts):
            return 2 * super().table(trained_RD, parts)

    class Joined(encoding_class("streams")):
        name = "joined"

        def logits(self, *args):
            return super().logits(*args)

    class Moved(Nameless):
        name = "moved"

        def rows(self, ids_BL, streams):
            return super().rows(ids_BL, streams) + 1

    class Renamed(encoding_class("streams")):
        name = "renamed"

        def rows(self, ids_BL, streams):
            return super().rows(ids_BL, streams)

    for each in (Scaled, Joined, Moved, Renamed):
        register_encoding(each)
    for host in ("llama", "t5"):
        with pytest.raises(ValueError, match="'scaled' has table of its own, which HostEncoding"):
            make_retrofit(host, symbol_encoding="scaled")
        with pytest.raises(ValueError, match=r"'joined' has logits .* made for StreamsEncoding"):
            make_retrofit(host, symbol_encoding="joined")
        with pytest.raises(ValueError, match="gives base tokens other rows"):
            make_retrofit(host, symbol_encoding="moved")
        assert make_retrofit(host, symbol_encoding="renamed").host.number


def test_names_are_unique_and_known():
    register_encoding(Nameless)  # twice is once
    again = type("Nameless", (Nameless,), {"__module__": Nameless.__module__})
    register_encoding(again)  # as where a cell of a notebook runs again
    assert encoding_class("nameless") is again
    register_encoding(Nameless)

    class Other(SymbolEncoding):
        name = "learned"

    with pytest.raises(ValueError, match="there is a symbol encoding 'learned' already"):
        register_encoding(Other)
    known = "learned, dual_part, streams, relational, nameless"
    with pytest.raises(ValueError, match=f"must be one of {known}"):
        AlphaConfig(symbol_encoding="vectors")


@pytest.mark.parametrize("name", ["learned", "dual_part", "streams", "relational"])
def test_promises(name):
    """What an encoding says that it promises holds, and what it does not promise fails."""
    promises = encoding_class(name).promises
    model = make_model(symbol_encoding=name, random_dim=8)
    batch = random_batch(1, model.config, [(7, 4), (5, 3)])
    renaming = torch.arange(BASE + 5)
    renaming[BASE:] = renaming[BASE:].roll(1)
    with torch.no_grad():
        before = model(**batch).logits
        after = model(**rename_batch(batch, [renaming, renaming])).logits
    assert torch.equal(after[..., renaming], before) == ("renaming" in promises)
    if promises & {"extension", "close extension"}:
        model.extend_symbols({"proposition": 4})
        longer = model(**batch).logits[..., : BASE + 5]
        close = 0.0 if "extension" in promises else 1e-6
        torch.testing.assert_close(longer, before, atol=close, rtol=0)
    else:
        with pytest.raises(ValueError, match=f"symbol_encoding '{name}'"):
            model.extend_symbols({"proposition": 4})


def test_the_default_model_takes_plain_ids():
    model = AlphaForConditionalGeneration(AlphaConfig(encoder_layers=1, decoder_layers=1)).eval()
    ids = torch.tensor([[3, 11, 4, 12, 11, 2]])
    assert model(input_ids=ids, labels=ids).loss.isfinite()
    assert model.generate(ids, max_new_tokens=3).shape[0] == 1
