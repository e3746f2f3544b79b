"""Pairs of relations that are held out in turns."""

from scripts import load

STUDY = load("kinship_pairs")
TRAINING = [{"edge_types": list(pair)} for pair in [*STUDY.answers()][::5]]


def test_each_pair_that_no_story_tells_is_held_out_in_one_turn():
    pairs, held_out = STUDY.answers(), []
    for turn in range(STUDY.TURNS):
        found = STUDY.groups(pairs, TRAINING, turn)
        assert sorted(pair for some in found.values() for pair in some) == sorted(pairs)
        assert found[STUDY.TOLD] == [*pairs][::5]
        held_out += found[STUDY.HELD_OUT]
    assert sorted([*held_out, *[*pairs][::5]]) == sorted(pairs)


def test_right_answers_are_those_of_all_turns_of_a_seed():
    """Both orders of the facts count, and turns by their pairs."""

    def turn(held_out):
        rows = [{"answer": "son", "said": said} for said in held_out]
        right = [{"answer": "son", "said": ["son", "son"]}]
        return {STUDY.TOLD: right, STUDY.FAMILIES: right, STUDY.HELD_OUT: rows}

    first, second = turn([["son", "niece"]]), turn([["son", "son"], ["niece", "niece"]])
    found = STUDY.rates({0: {0: first, 1: second}, 7: {0: first, 1: first}})
    assert found == {
        STUDY.TOLD: [100, 100], STUDY.FAMILIES: [100, 100], STUDY.HELD_OUT: [50, 50]
    }  # fmt: skip
    assert STUDY.rates({0: {1: second}, 7: {0: second, 1: first}})[STUDY.HELD_OUT] == [50, 50]
    third = turn([["son", "son"]])
    assert STUDY.rates({0: {0: second}, 1: {0: third}})[STUDY.HELD_OUT] == [50, 100]
