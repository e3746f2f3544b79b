"""An encoding from outside the package is one class; the built-in ones keep what they promise."""

import pytest
import torch
from retrofits import make_retrofit
from strategies import BASE, make_model, random_batch, random_renaming, rename_batch
from transformers import DynamicCache

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.symbol_encodings import (
    StreamsEncoding,
    SymbolEncoding,
    encoding_class,
    encoding_names,
    register_encoding,
    symbols_so_far,
)


class Nameless(SymbolEncoding):
    """All symbols of a class share one row, and one score: who they are is lost."""

    name = "nameless"
    description = "A model that does not tell symbols apart."
    promises = frozenset({"renaming", "extension"})
    sees_names = False

    @property
    def num_rows(self):
        return self.vocabulary.num_base_tokens + len(self.config.symbol_classes)

    def rows(self, ids_BL, streams):
        vocabulary = self.vocabulary
        number = vocabulary.classes(ids_BL)
        base = ids_BL - vocabulary.symbols_before(ids_BL)
        return torch.where(number > 0, vocabulary.num_base_tokens - 1 + number, base)[:, None]

    def logits(self, scores_BSTR, streams):
        ids = torch.arange(self.config.vocab_size)[None]
        return scores_BSTR[:, 0][..., self.rows(ids, streams)[0, 0]]


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_encoding(Nameless)


def test_an_encoding_from_outside(tmp_path):
    model = make_model(symbol_encoding="nameless", symbol_classes={"p": 3, "f": 2})
    assert model.get_input_embeddings().num_embeddings == BASE + 2
    batch = random_batch(1, model.config, [(6, 3), (4, 2)])
    renaming = random_renaming(3, model.config)
    before = model(**batch).logits
    after = model(**rename_batch(batch, [renaming, renaming])).logits
    assert torch.equal(after[..., renaming], before)
    model.train()(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    model.eval().extend_symbols({"p": 2})
    assert torch.equal(model(**batch).logits[..., : BASE + 5], before)
    inputs = {name: value for name, value in batch.items() if name != "decoder_input_ids"}
    assert model.generate(**inputs, num_beams=2, max_new_tokens=4).shape[0] == 2
    model.save_pretrained(tmp_path)
    loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path)
    assert torch.equal(loaded(**batch).logits, model(**batch).logits)


def test_an_encoding_that_a_host_does_not_ask_is_refused():
    """By `enter` alone such a model would tell names apart, and a backbone never calls it."""

    @register_encoding
    class Entering(Nameless):
        name = "entering"

        def enter(self, vectors_BSLD, streams, layer):
            return vectors_BSLD + streams.own[:, None, :, None]

    class Renamed(StreamsEncoding):
        name = "renamed"

        def rows(self, ids_BL, streams):
            return super().rows(ids_BL, streams)

    register_encoding(Renamed)
    for host in ("llama", "t5"):
        with pytest.raises(ValueError, match=r"overrides enter, logits, num_rows of Sym.*ask"):
            make_retrofit(host, symbol_encoding="entering")
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
    assert encoding_names()[:4] == ("learned", "dual_part", "streams", "relational")
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


def test_symbols_go_on_from_those_that_a_cache_holds():
    """With padding, which may hold any id, in front."""
    own = torch.tensor([[2, 0, -1, 1, 0]])
    mask = torch.tensor([[0, 1, 1, 1, 1]])
    cache = DynamicCache()
    for first, last in ((0, 3), (3, 4), (4, 5)):
        new, so_far, places = symbols_so_far(own[:, first:last], mask[:, :last], cache, 0)
        assert new.tolist() == [[-1, 0, -1, 1, 0][first:last]]
        assert so_far.tolist() == [[-1, 0, -1, 1, 0][:last]]
        assert places.tolist() == [*range(first, last)]
