"""YAML of strangers: what a small text can stand for is no more than what is written in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.data.files import check_card
from hf_alpha.io.records import DEEPEST
from hf_alpha.io.settings import RecipeError
from hf_alpha.io.yaml_files import LONGEST, parse_yaml, read_yaml, write_yaml
from hf_alpha.recipe import read_recipe
from hf_alpha.transduction.rules import read_rules

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
)
LINES = [f"{letter}: &{letter} [{', '.join([f'*{below}'] * 9)}]"
         for below, letter in zip("abcdefghi", "bcdefghij", strict=True)]  # fmt: skip
LAUGHS = "\n".join(["a: &a [x, x]", *LINES])
REFUSED = {
    LAUGHS: r"line 2, column 8: \*a is an alias: write out what it is for",
    "a: &a {b: *a}": r"\*a is an alias",
    "a: &a {b: 1}\nc: {<<: *a}": r"line 2, column 9: \*a is an alias",
    "[" * 10_000: f"column {DEEPEST + 1}: more than {DEEPEST} levels in each other",
    "- " * 5_000: f"more than {DEEPEST} levels in each other",
    "a: 1\nb: {c: 1, c: 2}": "line 2, column 11: the key 'c' is there twice",
    "a: 2026-13-01": "month must be in 1..12",
    "a: !!timestamp soon": "",
    "a: !!python/name:os.system ": "could not determine a constructor",
    "a: " + "9" * 5_000: "a number of 5,000 characters, the limit is",
    "a: " + "1:" * 100_000 + "1": "line 1, column 4: a number of 200,001 characters",
    "a: " + "1:" * 100_000 + "1.5": "a number of 200,003 characters",
    "a: !!int " + "1:" * 100_000 + "1": "a number of 200,001 characters",
    "a: [": "line 1, column 5: expected the node content",
    "a: \0": "unacceptable character",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_every_reader_refuses_what_is_more_than_it_says(text, tmp_path):
    (file := tmp_path / "some.yaml").write_text(text)
    for reader in (read_yaml, read_recipe, read_rules):
        with pytest.raises(RecipeError, match=f"some.yaml: not valid YAML: .*{REFUSED[text]}"):
            reader(file)
    for card, content in {"README.md": f"---\n{text}\n---\n", ".huggingface.yaml": text}.items():
        (tmp_path / card).write_text(content)
        with pytest.raises(ValueError, match=f"{card}: not valid YAML: .*{REFUSED[text]}"):
            check_card(tmp_path)
        (tmp_path / card).unlink()
    with pytest.raises(RecipeError, match=f"override .*: not valid YAML: .*{REFUSED[text]}"):
        read_recipe("propositional/debug", [f"training.x={text}"])


def test_a_long_text_is_not_read(tmp_path):
    (file := tmp_path / "some.yaml").write_text("a: b\n" + "# \n" * (LONGEST // 3))
    with pytest.raises(RecipeError, match=r"some.yaml: 1,048,5\d\d characters of YAML, the limit"):
        read_yaml(file)


@given(PLAIN)
def test_what_is_written_is_read(content):
    assert parse_yaml(write_yaml([content, content]), "here") == [content, content]


def test_what_is_long_is_not_deep():
    assert parse_yaml("- [1]\n" * (DEEPEST + 1), "here") == [[1]] * (DEEPEST + 1)
