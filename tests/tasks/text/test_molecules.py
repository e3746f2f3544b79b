import pytest

from hf_alpha.tasks.text.molecules import canonical, check

pytest.importorskip("rdkit")


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("c1ccccc1O", "Oc5ccccc5", True),
        ("[Na+].[O-]C", "C[O-].[Na+]", True),
        ("c 1 c c c c c 1", "c1ccccc1", True),  # of a tokenizer with spaces
        ("C[C@H](O)F", "C[C@@H](O)F", False),
        ("[CH3:1][OH:2]", "[CH3:2][OH:1]", False),
        ("CO", "[CH3:2][OH:1]", False),
        ("CCO", "CCN", False),
        ("c1ccccc", "c1ccccc1", False),
        ("C(C)(C)(C)(C)C", "CC", False),
        ("", "CC", False),
        ("CC.", "CC", False),
    ],
)
def test_an_answer_is_right_if_it_is_the_same_molecule(answer, target, right):
    verdict, reason = check("", answer, target)
    assert verdict is right and bool(reason) is not right


def test_a_target_that_is_no_molecule_is_an_error():
    with pytest.raises(ValueError, match="'nonsense' is no molecule"):
        check("", "CC", "nonsense")
    assert canonical("C.") is None
