import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, layouts, make_model, random_batch, ranges_of, seeds

from hf_alpha import AlphaConfig
from hf_alpha.modeling.symbol_vocabulary import SymbolVocabulary


@given(layouts)
def test_against_a_list_of_ids(layout):
    vocabulary = SymbolVocabulary(len(layout), ranges_of(layout))
    order = {number: i for i, number in enumerate(dict.fromkeys(n for n in layout if n), start=1)}
    ids = torch.arange(len(layout))
    assert vocabulary.classes(ids).tolist() == [order.get(number, 0) for number in layout]
    assert vocabulary.is_symbol(ids).tolist() == [number > 0 for number in layout]
    assert vocabulary.base_ids == [i for i, number in enumerate(layout) if not number]
    assert vocabulary.num_symbols == sum(number > 0 for number in layout)
    assert vocabulary.symbols_before(ids).tolist() == [
        sum(number > 0 for number in layout[:i]) for i in range(len(layout))
    ]
    names = [f"class {number}" if number else None for number in layout]
    assert [vocabulary.class_of(i) for i in range(len(layout))] == names
    symbols = [i for i, number in enumerate(layout) if number]
    assert vocabulary.symbol_ids(torch.arange(len(symbols))).tolist() == symbols
    assert vocabulary.symbol_index(ids).tolist() == [
        symbols.index(i) if i in symbols else len(symbols) for i in range(len(layout))
    ]
    base = torch.tensor(vocabulary.base_ids, dtype=torch.long)
    joined = vocabulary.join(base, torch.tensor(symbols, dtype=torch.long), dim=0)
    assert joined.tolist() == ids.tolist()


ENCODINGS = [
    {"symbol_encoding": "streams"},
    {"symbol_encoding": "relational"},
    {"symbol_encoding": "dual_part", "random_dim": 8},
    {"symbol_encoding": "learned"},
    {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
]
# Where ids 0 to 14 of the usual layout (10 base tokens, 3 propositions, 2 functions) go.
MOVED = torch.tensor([0, 1, 2, 5, 6, 7, 10, 11, 13, 14, 3, 4, 9, 8, 12])


@settings(max_examples=10)
@given(seed=seeds, encoding=st.sampled_from(ENCODINGS))
def test_symbols_may_lie_in_the_middle(seed, encoding):
    """The same model with its symbols elsewhere gives the same logits there, bit for bit."""
    classes = {"proposition": 3, "function": 2}
    usual = make_model(seed % 5, symbol_classes=classes, **encoding)
    ranges = {"proposition": [[3, 5], [9, 10]], "function": [[8, 9], [12, 13]]}
    moved = make_model(seed % 5, symbol_classes=classes, symbol_ranges=ranges, **encoding)
    state = usual.state_dict()
    if encoding["symbol_encoding"] == "learned":  # a row for each id
        rows = torch.empty_like(state["model.shared.weight"])
        rows[MOVED] = state["model.shared.weight"]
        state["model.shared.weight"] = rows
    elif "model.symbol_draws.random_parts" in state:  # in the order of the ids
        order = MOVED[BASE:].argsort()
        state["model.symbol_draws.random_parts"] = state["model.symbol_draws.random_parts"][order]
    moved.load_state_dict(state)
    batch = random_batch(seed, usual.config, [(7, 4), (5, 2), (4, 0)])
    ids = {name: MOVED[x] if "ids" in name else x for name, x in batch.items()}
    with torch.no_grad():
        one, two = usual(**batch).logits, moved(**ids).logits
    if encoding.get("symbol_renaming") == "first_occurrence":
        # The names inside the model are those of other rows; only their kind is comparable.
        assert torch.equal(one > -1e3, two[..., MOVED] > -1e3)
    else:
        assert torch.equal(one, two[..., MOVED])
    moved.eval().extend_symbols({"function": 2}) if encoding["symbol_encoding"] != "learned" else 0


def test_special_tokens_in_the_middle_of_symbols():
    config = AlphaConfig(
        num_base_tokens=4, symbol_classes={"x": 3}, symbol_ranges={"x": [[1, 3], [4, 5]]},
        bos_token_id=3, decoder_start_token_id=3, eos_token_id=5,
    )  # fmt: skip
    assert config.vocab_size == 7 and config.vocabulary.base_ids == [0, 3, 5, 6]
    with pytest.raises(ValueError, match="special token 1 is no base token: those are the ids 0 t"):
        AlphaConfig(num_base_tokens=4, symbol_classes={"x": 3}, symbol_ranges={"x": [[1, 4]]})


def test_a_configuration_that_is_changed_in_place_is_another_one():
    one, two = (AlphaConfig(num_base_tokens=10, symbol_classes={"a": 2, "b": 2}) for _ in "12")
    before, ranges = one.vocabulary.spans, one.symbol_ranges
    ranges["a"], ranges["b"] = ranges["b"], ranges["a"]
    assert one.vocabulary.class_of(10) == two.vocabulary.class_of(12) == "b"
    assert two.vocabulary.spans == before and two.vocabulary.ranges == two.symbol_ranges
