"""Settings of a symbol layer around an encoder-decoder of Transformers."""

import pytest
from retrofits import make_retrofit


def settings_of(**changed):
    """Symbols 10 to 12 and 20 and 21 of class `name`, 15 to 17 of `function`, of 40 ids."""
    settings = make_retrofit("t5", place="middle, two classes").config.to_dict()
    return {**settings, **changed}


def of(**changed):
    return type(make_retrofit("t5").config)(**settings_of(**changed))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"name": [10, 11], "function": [11, 15]}, "row 11 is of two classes"),
        ({"name": [10, 9], "function": [15, 16]}, "row 9 is that of a base token; .* from 40 on"),
        ({"name": [-1, 10], "function": [15, 16]}, "row -1 is that of a base token"),
    ],
)
def test_rows_of_classes_are_theirs_alone(rows, message):
    with pytest.raises(ValueError, match=message):
        of(class_rows=rows)
    kept = {"name": [16, 44], "function": [20, 40]}  # any row that no base token has
    assert of(class_rows=kept).class_rows == kept
