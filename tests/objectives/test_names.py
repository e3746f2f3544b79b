"""Names that columns of a user's rows list, for objectives that do not answer."""

import pytest

from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.objectives.names import marked

FINDER = NameFinder({"person": {"column": "who", "count": 10}})


@pytest.mark.parametrize(
    ("listed", "texts", "expected"),
    [
        (["Ann", "Cy"], ["Ann likes Cy"], [["Ann", "Cy"]]),
        ("Ann, Cy", ["Ann likes Cy"], [["Ann", "Cy"]]),  # as CSV has it
        ("Ann", ["Ann likes Cy"], [["Ann"]]),
        ([[0, 3]], ["Ann likes Cy"], [["Ann"]]),
        ({"person": "Ann, Cy"}, ["Ann likes Cy"], [["Ann", "Cy"]]),
        ("", ["nobody"], [[]]),
        (None, ["nobody"], [[]]),
        (["Zed"], ["nobody"], [[]]),
        (["Ann", "Cy", "Zed"], ["Ann is here", "is Cy ?"], [["Ann"], ["Cy"]]),
    ],
)
def test_names_of_a_column_are_marked(listed, texts, expected):
    found = marked(texts, {"who": listed}, 0, FINDER)
    assert [[text[s.start : s.stop] for s in text.spans] for text in found] == expected


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (5, "row 7: the column 'who' holds 5: give a list of names"),
        ([[0, 3]], r"row 7: the column 'who' holds \[\[0, 3\]\]: give a list of names, one name"),
    ],
)
def test_what_is_no_list_of_names_of_the_row_is_refused(listed, message):
    with pytest.raises(ValueError, match=message):
        marked(["Ann is here", "is Cy ?"], {"who": listed}, 7, FINDER)
