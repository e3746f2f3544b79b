"""What encoder-decoders promise whose answers may have symbols that the input lacks."""

from typing import ClassVar

import pytest
import torch
from promises import (
    Batching,
    Caching,
    DecoderPrompts,
    Extension,
    Family,
    RoundTrip,
    Training,
    batch_sizes,
    holds,
    seeds,
    symbol_ids,
)
from retrofits import RetrofitFamily
from strategies import TWO_CLASSES, AlphaFamily

from hf_alpha.modeling.new_symbols import NewSymbols

RELATIONAL = {"symbol_encoding": "relational"}
DUAL_PART = {"symbol_encoding": "dual_part"}
CANONICAL = {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"}


def with_new_names(batch, config, seed):
    """The batch with answers of which half the tokens are any symbols."""
    generator = torch.Generator().manual_seed(seed)
    symbols, answers = torch.tensor(sorted(symbol_ids(config))), batch["decoder_input_ids"]
    drawn = symbols[torch.randint(len(symbols), answers.shape, generator=generator)]
    some = torch.rand(answers.shape, generator=generator) < 0.5
    some[:, 0] = False
    return {**batch, "decoder_input_ids": torch.where(some, drawn, answers)}


class NewNames(Family):
    """Any encoder-decoder, with `new_symbols`."""

    settings: ClassVar = {}
    answers_are_names_of_the_input = False

    def make_model(self, seed=0, **settings):
        own = {**self.settings, "new_symbols": True}
        model = super().make_model(seed, **{**own, **settings})
        for module in model.modules():
            if isinstance(module, NewSymbols):  # of a length by which new names are likely
                module.weight.data.mul_(200)
        return model

    def make_batch(self, seed, config, sizes, side="right"):
        return with_new_names(super().make_batch(seed, config, sizes, side), config, seed)


class Alpha(NewNames, AlphaFamily):
    trained = ({"dropout": 0.0},)
    saved = (TWO_CLASSES,)

    def make_model(self, seed=0, **settings):
        self.encoding = self.settings["symbol_encoding"]
        return super().make_model(seed, **{"adacos": False, **settings})


class TestRelational(Alpha, Extension, Batching, DecoderPrompts, Caching, RoundTrip, Training):
    settings: ClassVar = RELATIONAL


class TestDualPart(Alpha, Extension, Batching, Caching, Training):
    settings: ClassVar = DUAL_PART
    batches, cached = 2, 1


class TestCanonical(Alpha, Batching, Caching, Training):
    settings: ClassVar = CANONICAL
    batches, cached = 2, 1


class TestT5(NewNames, RetrofitFamily, Extension, Batching, DecoderPrompts, Caching, RoundTrip,
             Training):  # fmt: skip
    host = "t5"
    settings: ClassVar = RELATIONAL
    extensions, batches, cached = 2, 3, 1


class TestMBart(NewNames, RetrofitFamily, Caching):
    """Whose answers begin with the language, and which is not right with padding on the left."""

    host = "mbart"
    settings: ClassVar = RELATIONAL
    cached = 1


FAMILIES = {
    "alpha-relational": (Alpha, RELATIONAL),
    "alpha-canonical": (Alpha, CANONICAL),
    "t5-relational": (TestT5, RELATIONAL),
    "t5-canonical": (TestT5, CANONICAL),
    "marian-relational": (
        type("Marian", (NewNames, RetrofitFamily), {"host": "marian"}),
        RELATIONAL,
    ),
}


def canonical(rows, sources, config):
    """Answers in which symbols that the source lacks are numbered by class and first occurrence."""
    found = []
    for row, source in zip(rows.tolist(), sources.tolist(), strict=True):
        new = [i for i in dict.fromkeys(row) if i not in source and config.vocabulary.class_of(i)]
        numbers = {i: (config.vocabulary.class_of(i), n) for n, i in enumerate(new)}
        found.append([numbers.get(i, i) for i in row])
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_a_renamed_pair_has_the_same_logits_and_probability(name):
    """Whatever the names are called that the answer alone has; each row has a renaming."""
    family = FAMILIES[name][0]()
    family.settings = FAMILIES[name][1]

    def check(seed, sizes):
        model = family.make_model(seed % 5)
        batch = family.make_batch(seed, model.config, sizes)
        tables = [family.renaming(seed + row, model.config) for row in range(len(sizes))]
        losses, scores = [], []
        for inputs in (batch, family.renamed(batch, tables)):
            labels = inputs["decoder_input_ids"][:, 1:].clone()
            inputs["decoder_input_ids"] = inputs["decoder_input_ids"][:, :-1]
            output = model(**inputs, labels=labels)
            losses.append(output.loss)
            scores.append(output.logits.sort(-1).values)  # columns have moved
        assert torch.equal(*scores)
        torch.testing.assert_close(*losses, atol=1e-6, rtol=1e-5)

    holds(6, check, seed=seeds, sizes=batch_sizes)


@pytest.mark.parametrize("name", ["alpha-relational", "t5-relational"])
def test_a_renamed_input_has_the_same_answer_up_to_the_choice_of_new_names(name):
    family, new = FAMILIES[name][0](), 0
    family.settings = FAMILIES[name][1]
    for seed in range(4):
        model = family.make_model(seed)
        batch = family.prompt(family.make_batch(seed, model.config, [(6, 3), (4, 2), (5, 0)]))
        table = family.renaming(seed, model.config)
        renamed = family.renamed(batch, [table] * 3)
        for search in ({}, {"num_beams": 2}, {"use_cache": False}):
            one, two = (model.generate(**x, max_new_tokens=8, **search) for x in (batch, renamed))
            one = table.to(one.device)[one]
            sources = renamed["input_ids"]
            one, two = (canonical(rows, sources, model.config) for rows in (one, two))
            assert one == two
            new += sum(isinstance(i, tuple) for row in one for i in row)
    assert new  # some are


def test_sampling_writes_the_symbols_of_a_class_in_their_order():
    """A symbol that was not introduced is out of reach, but for the first of its class."""
    family, new = TestRelational(), 0
    model = family.make_model(1, **TWO_CLASSES)
    model.extend_symbols({"proposition": 3, "function": 3})
    batch = family.prompt(family.make_batch(3, model.config, [(6, 2), (4, 1), (3, 0)]))
    torch.manual_seed(0)
    search = {"do_sample": True, "temperature": 5.0, "num_return_sequences": 8}
    answers = model.generate(**batch, min_new_tokens=12, max_new_tokens=12, **search)
    classes = {kind: [i for pair in pairs for i in range(*pair)]
               for kind, pairs in model.config.symbol_ranges.items()}  # fmt: skip
    sources = batch["input_ids"].repeat_interleave(8, 0)
    for source, answer in zip(sources.tolist(), answers.tolist(), strict=True):
        seen = set(source)
        for i in answer:
            kind = model.config.vocabulary.class_of(i)
            if kind and i not in seen:
                assert i == next(j for j in classes[kind] if j not in seen)
                new += 1
            seen.add(i)
    assert new > 8
