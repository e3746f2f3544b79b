"""The test kit for rules finds each way in which a rule can be wrong, and needs no test runner."""

import re
import subprocess
import sys
from typing import Any

import pytest

from hf_alpha.modeling.name_rules import ReadyRule
from hf_alpha.testing import Checked, RuleFault, check_rule

TEXT = "set old to 'old' and old plus new"
WORDS = re.compile(r"\b(?:old|new|[a-zäλ变]+\d+)\b")


def in_quotes_too(text: str) -> list[tuple[Any, ...]]:
    """Names, each bound by its spelling."""
    return [(*match.span(), match[0]) for match in WORDS.finditer(text)]


def outside_quotes(text: str) -> list[tuple[Any, ...]]:
    return [place for place in in_quotes_too(text) if text[place[0] - 1] != "'"]


def of_some_spellings(text: str) -> list[tuple[Any, ...]]:
    return [place for place in outside_quotes(text) if place[2] in ("old", "new")]


def slowly(text: str) -> list[tuple[Any, ...]]:
    return [place for place in outside_quotes(text) if sum(map(ord, text))]


def as_told(between: Any, symbols: Any, names: Any) -> list[str]:
    return [names[symbol] for symbol in symbols]


def with_dots(between: Any, symbols: Any, names: Any) -> list[str]:
    return [f"{names[symbol]}.." for symbol in symbols]


def same(text: str, other: str) -> bool:
    """Whether two texts quote the same."""
    return re.findall("'.*'", text) == re.findall("'.*'", other)


def test_a_rule_that_keeps_its_promise() -> None:
    found = check_rule(outside_quotes, [TEXT, "none", "new and new"], same)
    assert found == Checked(texts=3, renamed=2, names=3, places=5)
    assert check_rule("[a-z][0-9]", ["a1 + b2 = a1"], names=["x1", "y7"]).names == 2
    assert check_rule({"rule": "python"}, []) == Checked(0, 0, 0, 0)


@pytest.mark.parametrize(
    "rule, fault",
    [
        (of_some_spellings, "other names are found"),
        (in_quotes_too, "does not mean the same"),
        (ReadyRule(outside_quotes, spell=as_told), "captures"),
        (ReadyRule(outside_quotes, spell=with_dots), "come back"),
        (slowly, "times as long"),
    ],
)
def test_a_rule_that_does_not(rule: Any, fault: str) -> None:
    with pytest.raises(RuleFault, match=fault) as raised:
        check_rule(rule, ["none", TEXT], same, rounds=9)
    assert raised.value.text.startswith(TEXT)


def test_too_few_names() -> None:
    with pytest.raises(ValueError, match="a text has 2 names: give as many `names` that it lacks"):
        check_rule(outside_quotes, [TEXT], names=["x1", "old"])


def test_it_needs_no_test_runner_and_no_torch() -> None:
    code = (
        "import sys, hf_alpha.testing; print({'torch', 'pytest', 'transformers'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "set()", done.stderr
