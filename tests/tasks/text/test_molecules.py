import random
import re

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
    assert check("", "CCO", None)[0] is None and check("", "C1CC", None)[0] is False
    with pytest.raises(ValueError, match="'nonsense' is no molecule"):
        check("", "CC", "nonsense")
    assert canonical("C.") is None


ESTER = "[CH3:1][O:2][C:3](=[O:4])[C:5](=[O:6])[O:7][CH3:8].[OH-:9].[Na+:10]"  # with two like ends


@pytest.mark.parametrize(
    ("source", "answer", "target", "reason"),
    [
        (ESTER, "[CH3:1][O:2][C:3](=[O:4])[C:5](=[O:6])[OH:9]", None, ""),
        # The other end of the source reacts.
        (ESTER, "[CH3:8][O:7][C:5](=[O:6])[C:3](=[O:4])[OH:9]", None, ""),
        # Some of one end, some of the other; the oxygen of the wrong molecule; none at all.
        (ESTER, "[CH3:8][O:2][C:3](=[O:4])[C:5](=[O:6])[OH:9]", None, "numbers of atoms"),
        (ESTER, "[CH3:1][O:2][C:3](=[O:4])[C:5](=[O:6])[OH:7]", None, "numbers of atoms"),
        (ESTER, "COC(=O)C(=O)O", None, "numbers of atoms"),
        (ESTER, "[CH3:1][O:2][C:3](=[O:4])[C:5](=[O:6])[O-:9]", None, "another molecule"),
        # Numbers that the source lacks are numbers still, and those that the target lacks are none.
        ("CO", "[CH3:2][OH:1]", "[CH3:1][OH:2]", "numbers of atoms"),
        ("[CH3:1][OH:2]", "CO", "CO", ""),
        # Two molecules of a kind, and a chiral centre.
        ("[CH3:1][OH:2].[CH3:3][OH:4]", "[CH3:3][O:2][CH3:1]", "[CH3:1][O:4][CH3:3]", ""),
        ("[CH3:1][C@H:2]([OH:3])[F:4]", "[CH3:1][C@@H:2]([OH:3])[F:4]",
         "[CH3:1][C@H:2]([OH:3])[F:4]", "another molecule"),
    ],
)  # fmt: skip
def test_numbers_say_which_atom_of_the_source_it_is(source, answer, target, reason):
    target = target or "[CH3:1][O:2][C:3](=[O:4])[C:5](=[O:6])[OH:9]"
    right, found = check(source, answer, target)
    assert right is not bool(reason) and reason in found and bool(found) is bool(reason)


def test_any_renumbering_of_a_reaction_is_right_and_any_two_atoms_exchanged_are_not():
    """An amide of a chiral amine, in which no two atoms are alike."""
    source = "[CH3:1][C@H:2]([NH2:3])[c:4]1[n:5][cH:6][cH:7][s:8]1.[Cl:9][C:10](=[O:11])[CH3:12]"
    target = "[CH3:1][C@H:2]([NH:3][C:10](=[O:11])[CH3:12])[c:4]1[n:5][cH:6][cH:7][s:8]1"
    rng = random.Random(0)
    alike = [(1, 12), (6, 7)]  # of one kind of atom
    numbers = rng.sample(range(20, 99), 12)
    renumber = re.compile(r":(\d+)")

    def written(text, table):
        return renumber.sub(lambda m: f":{table.get(int(m[1]), int(m[1]))}", text)

    table = dict(enumerate(numbers, 1))
    assert check(written(source, table), written(target, table), written(target, table))[0]
    for one, other in alike:
        exchanged = written(target, {one: other, other: one})
        assert check(source, target, target)[0] and not check(source, exchanged, target)[0]
