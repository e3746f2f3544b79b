"""What encoder-decoders promise whose answers may have symbols that the input lacks."""

from typing import ClassVar

import pytest
import torch
from hosts import VOCABULARY
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
from strategies import BASE, TWO_CLASSES, AlphaFamily
from torch.nn import functional as F

from hf_alpha.modeling.new_symbols import UNUSABLE, NewSymbols

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
    # Answers of names: few other tokens are left.
    search: ClassVar = {"suppress_tokens": [i for i in range(3, VOCABULARY) if not 10 <= i < 22]}

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
    search: ClassVar = {"suppress_tokens": [*range(BASE)]}

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
        for search in ({}, {"num_beams": 2}):
            one, two = (model.generate(**x, max_new_tokens=8, **search) for x in (batch, renamed))
            one = table.to(one.device)[one]
            sources = renamed["input_ids"]
            one, two = (canonical(rows, sources, model.config) for rows in (one, two))
            assert one == two
            new += sum(isinstance(i, tuple) for row in one for i in row)
    assert new  # some are


@pytest.mark.parametrize("family", [TestRelational, TestDualPart, TestCanonical])
def test_a_symbol_that_was_not_introduced_is_out_of_reach(family):
    """But for the first of its class, from the start token on."""
    new = 0
    model = family().make_model(1, **TWO_CLASSES, logit_scale=2.0)
    batch = family().prompt(family().make_batch(3, model.config, [(6, 2), (4, 1), (3, 0)]))
    torch.manual_seed(0)
    made = model.generate(
        **batch, min_new_tokens=6, max_new_tokens=6, do_sample=True, num_return_sequences=4,
        output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    classes = [
        [i for pair in pairs for i in range(*pair)] for pairs in model.config.symbol_ranges.values()
    ]
    for row, source in enumerate(batch["input_ids"].repeat_interleave(4, 0).tolist()):
        answer = made.sequences[row].tolist()
        for step, logits in enumerate(made.logits):
            there = {*source, *answer[: step + 1]}
            for members in classes:
                unused = [i for i in members if i not in there]
                reached = {i for i in members if logits[row, i] > -1e3}
                assert reached == {*members} - {*unused[1:]}
                new += answer[step + 1] in unused
    assert new > 4


@torch.no_grad()
def test_the_score_of_each_symbol_against_loops():
    """Of the source, by what the encoder found; written, by its class; new, by a row of its own."""
    for seed in range(4):
        model = TestRelational().make_model(seed, **TWO_CLASSES)
        config, vocabulary = model.config, model.config.vocabulary
        batch = TestRelational().make_batch(seed, config, [(6, 2)])
        inside, logits = model.model(**batch), model(**batch).logits[0]
        source, answer = batch["input_ids"][0].tolist(), batch["decoder_input_ids"][0].tolist()
        states = F.normalize(inside.last_hidden_state[0], dim=-1)
        rows = F.normalize(model.model.shared.weight, dim=-1)
        new = F.normalize(model.model.new_symbols.weight, dim=-1)
        listed, scale = inside.streams.ids[0].tolist(), model.logit_scale.scale
        for t, state in enumerate(states):
            there = [i for i in [*source, *answer[: t + 1]] if vocabulary.class_of(i)]
            assert listed[: len(set(there))] == list(dict.fromkeys(there))
            for c, pairs in enumerate(vocabulary.ranges.values()):
                members = [i for pair in pairs for i in range(*pair)]
                unused = [i for i in members if i not in there]
                for i in members:
                    expected = state @ new[c] if i == next(iter(unused), None) else None
                    if i in there:
                        place = listed.index(i)
                        of_source = inside.streams.memory[0, place, 1]
                        row = of_source if i in source else rows[config.num_base_tokens + c]
                        expected = state @ row + inside.streams.pointer[0, t, place]
                    if expected is not None:
                        expected = scale * expected
                    expected = torch.tensor(UNUSABLE) if expected is None else expected
                    torch.testing.assert_close(logits[t, i], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["alpha-relational", "t5-relational"])
def test_all_that_new_symbols_add_is_learned(name):
    family = FAMILIES[name][0]()
    family.settings = FAMILIES[name][1]
    model = family.make_model().train()
    model(**family.labelled(3, model.config, [(6, 3), (5, 2)])).loss.backward()
    added = {n: x for n, x in model.named_parameters() if "text." in n or "new_symbols" in n}
    assert len(added) == 9 and all(x.grad.abs().max() > 0 for x in added.values())


@pytest.mark.parametrize("name", ["alpha-relational", "t5-relational"])
def test_generation_sees_what_a_forward_pass_sees(name):
    """What it keeps from token to token is not the list of symbols, which grows."""
    family, new = FAMILIES[name][0](), 0
    family.settings = FAMILIES[name][1]
    for seed in range(4):
        model = family.make_model(seed)
        batch = family.prompt(family.make_batch(seed, model.config, [(6, 2), (5, 0)]))
        torch.manual_seed(seed)
        search = {"output_logits": True, "return_dict_in_generate": True, **family.search}
        search |= {"do_sample": True, "temperature": 9.0} if name.startswith("alpha") else {}
        made = model.generate(**batch, min_new_tokens=6, max_new_tokens=6, **search)
        answers = made.sequences[:, :-1]
        expected = model(**batch, decoder_input_ids=answers).logits
        torch.testing.assert_close(torch.stack(made.logits, 1), expected, atol=1e-4, rtol=1e-4)
        sources = batch["input_ids"]
        for row in canonical(answers, sources, model.config):
            new += len({i for i in row if isinstance(i, tuple)}) > 1
    assert new  # some rows have several
