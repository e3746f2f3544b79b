import re

import pytest

from hf_alpha.cli.evaluate import row_names
from hf_alpha.cli.options import integers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", [3]),
        ("1-4", [1, 2, 3, 4]),
        (" 5-7,1, 2 ", [1, 2, 5, 6, 7]),
        ("2-3,3-4", [2, 3, 4]),
        ("0", [0]),
    ],
)
def test_integers(text, numbers):
    assert integers(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-2-3", "1,,2", "1.5", "4-2", "1 2"])
def test_what_is_no_integers(text):
    with pytest.raises(ValueError, match=re.escape(text.strip() or "''")):
        integers(text)


def test_row_names_differ():
    assert row_names(["runs/small/", "me/large"]) == ["small", "large"]
    assert row_names(["runs/one/model", "runs/two/model"]) == ["runs/one/model", "runs/two/model"]
    with pytest.raises(ValueError, match="given twice"):
        row_names(["a", "a"])
