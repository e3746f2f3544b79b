"""Checks of what configurations are given."""

from types import SimpleNamespace

import pytest
from small_tokenizers import word_level

from hf_alpha import TextTokenizer
from hf_alpha.modeling.choices import check_known, check_numbers, has_tokens, refuse, token_digest

RANGES = ({"layers": 1}, ("dropout",), ("scale",))


def test_numbers_have_ranges_and_none_stands_for_a_default():
    for good in ((1, 0.0, 1e-9), (7, 0.99, 1e9), (None, None, None)):
        check_numbers(SimpleNamespace(layers=good[0], dropout=good[1], scale=good[2]), *RANGES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), not 1.0"),
        ({"scale": 0.0}, "scale must be finite and above 0, not 0.0"),
        ({"scale": float("inf")}, "scale must be finite and above 0, not inf"),
    ],
)
def test_a_number_outside_its_range_is_named(change, message):
    settings = {"layers": 1, "dropout": 0.1, "scale": 1.0} | change
    with pytest.raises(ValueError, match=message):
        check_numbers(SimpleNamespace(**settings), *RANGES)


def test_an_unknown_value_is_named_with_the_choices_and_none_is_a_default():
    for value in ("infix", None):
        check_known("notation", value, ("prefix", "infix"))
    with pytest.raises(ValueError, match=r"^unknown notation 'fix': choose one of prefix, infix$"):
        check_known("notation", "fix", ("prefix", "infix"))


def test_a_fault_is_said_and_none_is_no_error():
    for nothing in (False, 0, [], None):
        refuse(nothing, "one")
    with pytest.raises(ValueError, match=r"^two$"):
        refuse(["a fault"], "two")


def test_the_digest_of_a_vocabulary_knows_its_tokens_and_no_later_ones():
    plain = word_level(words=("alice", "bob"))
    digest = token_digest(plain)
    assert not has_tokens(word_level(words=("bob", "alice")), digest)
    assert not has_tokens(word_level(words=("alice",)), digest)
    assert not has_tokens(plain, "strange")
    plain.add_tokens(["carol"])
    assert has_tokens(plain, digest) and token_digest(plain) != digest
    named = TextTokenizer.from_tokenizer(plain, {"name": 3})
    digest = token_digest(named)
    named.extend_symbols({"name": 2})
    assert has_tokens(named, digest)
