"""What decoders alone of this package promise, for each encoding and with new symbols."""

from typing import ClassVar

import pytest
import torch
from hypothesis import strategies as st
from promises import (
    Batching,
    Caching,
    ExactExtension,
    Extension,
    NoExtension,
    RoundTrip,
    TextFamily,
    Training,
    batch_sizes,
    holds,
    seeds,
)

from hf_alpha import AlphaConfig, AlphaForCausalLM

BASE, SYMBOLS = 10, {"name": 6, "function": 4}
SMALL = {
    "is_encoder_decoder": False,
    "num_base_tokens": BASE,
    "symbol_classes": SYMBOLS,
    "d_model": 16,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 24,
}
VARIANTS = (
    {},
    {"decoder_position": "sinusoidal"},
    {"decoder_position": "log_length"},
    {"decoder_aggregated_attention": True, "aggregated_attention_norm": "pre"},
)


def make_decoder(seed=0, **settings):
    """A model with random weights, in evaluation mode; nothing in it is zero."""
    torch.manual_seed(seed)
    model = AlphaForCausalLM(AlphaConfig(**{**SMALL, **settings}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias") or "gates" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


class DecoderFamily(TextFamily):
    """Decoders alone of this package; a subclass says how names become vectors."""

    settings: ClassVar = {}
    variants = st.sampled_from(VARIANTS)
    saved = (VARIANTS[0], VARIANTS[1])

    def make_model(self, seed=0, **settings):
        return make_decoder(seed, **{**self.settings, **settings})

    def make_batch(self, seed, config, sizes, side="left"):
        generator = torch.Generator().manual_seed(seed)
        width, rows = max(length for length, _ in sizes), []
        for length, count in sizes:
            ids = torch.randint(3, BASE, (length,), generator=generator)
            symbols = torch.randperm(config.num_symbols, generator=generator)[:count] + BASE
            if count:
                drawn = symbols[torch.randint(count, (length,), generator=generator)]
                ids = torch.where(torch.rand(length, generator=generator) < 0.6, drawn, ids)
            padding = torch.zeros(width - length, dtype=torch.long)
            rows.append(torch.cat((padding, ids) if side == "left" else (ids, padding)))
        ids = torch.stack(rows)
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}


class TestRelational(DecoderFamily, ExactExtension, Batching, Caching, RoundTrip, Training):
    settings: ClassVar = {"symbol_encoding": "relational"}


class TestStreams(DecoderFamily, ExactExtension, Batching, Caching, RoundTrip, Training):
    settings: ClassVar = {"symbol_encoding": "streams"}


class TestDualPart(DecoderFamily, Extension, Batching, Caching, RoundTrip, Training):
    settings: ClassVar = {"symbol_encoding": "dual_part"}
    answers_are_names_of_the_input = False


class TestLearned(DecoderFamily, NoExtension, Batching, Caching, RoundTrip, Training):
    settings: ClassVar = {"symbol_encoding": "learned"}


NEW = {"symbol_encoding": "relational", "new_symbols": True}


class TestNewSymbols(DecoderFamily, Extension, Batching, Caching, RoundTrip, Training):
    settings: ClassVar = NEW
    # When a text has all symbols of a class, the next one is a symbol that was added.
    answers_are_names_of_the_input = False


class TestPrefix(DecoderFamily, Batching, Caching, RoundTrip, Training):
    """Prompts are read in both directions; labels begin where the prompt ends."""

    settings: ClassVar = {**NEW, "prefix_lm": True}

    def labelled(self, seed, config, sizes):
        batch = super().labelled(seed, config, sizes)
        batch["labels"][:, :2] = -100
        return batch


class TestNewSymbolsOfOthers(DecoderFamily, Batching, Caching, Training):
    settings: ClassVar = {"symbol_encoding": "dual_part", "new_symbols": True}


def canonical(row):
    """Ids in which symbols are numbered by first occurrence within their class."""
    names, counts = {}, {}
    first_function = BASE + SYMBOLS["name"]
    for i in row.tolist():
        kind = "base" if i < BASE else "function" if i >= first_function else "name"
        if kind != "base" and i not in names:
            names[i] = (kind, counts.setdefault(kind, 0))
            counts[kind] += 1
    return [names.get(i, i) for i in row.tolist()]


@pytest.mark.parametrize("encoding", ["relational", "canonical"])
def test_a_renamed_text_has_the_same_logits_and_probability(encoding):
    """Also where the names that come new in a text are others than the first ones unused."""
    family = DecoderFamily()
    renamed = {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"}
    settings = {**(NEW if encoding == "relational" else renamed), "new_symbols": True}

    def check(seed, sizes):
        model = make_decoder(seed % 5, **settings)
        batch = family.labelled(seed, model.config, sizes)
        tables = [family.renaming(seed + row, model.config) for row in range(len(sizes))]
        ids = batch["input_ids"]
        other = torch.stack(
            [table.to(row.device)[row] for table, row in zip(tables, ids, strict=True)]
        )
        other = torch.where(ids > 0, other, 0)
        labels = torch.where(batch["labels"] < 0, -100, other)
        for row in range(len(sizes)):
            mask = batch["attention_mask"][row : row + 1]
            both = [
                model(input_ids=x[row : row + 1], attention_mask=mask, labels=y[row : row + 1])
                for x, y in ((ids, batch["labels"]), (other, labels))
            ]
            one, two = (output.logits.sort(-1).values for output in both)  # columns have moved
            assert torch.equal(one, two)
            torch.testing.assert_close(both[0].loss, both[1].loss, atol=1e-6, rtol=1e-5)

    holds(15, check, seed=seeds, sizes=batch_sizes)


def test_a_renamed_prompt_has_the_same_answer_up_to_the_choice_of_new_names():
    family, differing = DecoderFamily(), 0
    for seed in range(4):
        model = make_decoder(seed, **NEW)
        batch = family.make_batch(seed, model.config, [(6, 3), (4, 2), (5, 0)])
        table = family.renaming(seed, model.config)
        renamed = {**batch, "input_ids": table.to(batch["input_ids"].device)[batch["input_ids"]]}
        for search in ({}, {"num_beams": 2}, {"do_sample": True}):
            answers = []
            for inputs in (batch, renamed):
                torch.manual_seed(seed)
                answers.append(model.generate(**inputs, max_new_tokens=8, **search))
            if not search.get("do_sample"):  # a sample draws from columns in their order
                assert list(map(canonical, answers[0])) == list(map(canonical, answers[1]))
            differing += sum(a.tolist() != b.tolist() for a, b in zip(*answers, strict=True))
    assert differing  # the names do differ
