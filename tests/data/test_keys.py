"""Problems that count as one: the same up to renaming, in any writing."""

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.data.keys import canonical_text, pair_key
from hf_alpha.data.rows import problems
from hf_alpha.modeling.names_in_text import NameFinder

pieces = st.lists(
    st.sampled_from(["x", "y", "x1", "f", "g", "+", "\0", "variable 0;", "7"]), max_size=8
)
TWO = NameFinder({"variable": "[w-z][0-9]*", "function": "[f-h]"})


def renaming_of(one: str, two: str) -> bool:
    """By a bijection between names of the same class, with the same text between them."""
    spans = TWO.find(one), TWO.find(two)
    if len(spans[0]) != len(spans[1]):
        return False
    there, back, ends = {}, {}, [0, 0]
    for first, second in zip(*spans, strict=True):
        names = one[first.start : first.stop], two[second.start : second.stop]
        same = first.symbol_class == second.symbol_class
        if not same or one[ends[0] : first.start] != two[ends[1] : second.start]:
            return False
        if there.setdefault(names[0], names[1]) != names[1]:
            return False
        if back.setdefault(names[1], names[0]) != names[0]:
            return False
        ends = [first.stop, second.stop]
    return one[ends[0] :] == two[ends[1] :]


@given(
    pieces, pieces, st.permutations(["x", "y", "x1"]), st.permutations(["f", "g", "h"]), st.data()
)
def test_canonical_texts_are_equal_just_for_renamings(one, two, variables, functions, data):
    renamed = dict(zip(["x", "y", "x1", "f", "g", "h"], [*variables, *functions], strict=True))
    same = " ".join(renamed.get(piece, piece) for piece in one)
    texts = [" ".join(one), " ".join(two)]
    assert canonical_text(texts[0], TWO) == canonical_text(same, TWO)
    assert pair_key(texts[0], TWO) == pair_key(same, TWO) and len(pair_key(same, TWO)) == 8
    near = list(one)
    if near:
        near[data.draw(st.integers(0, len(near) - 1))] = data.draw(
            st.sampled_from(["x", "f", "7", "\0"])
        )
    for other in (texts[1], " ".join(near)):
        equal = canonical_text(texts[0], TWO) == canonical_text(other, TWO)
        assert equal == renaming_of(texts[0], other)


def test_marked_names_are_those_that_count():
    """Of a column: a word that the row does not list is no name."""
    finder = NameFinder({"person": {"column": "who"}})
    rows = {"problem": ["Ann met Bob", "Bob met Ann", "Ann met Ann", "Ann met Bob"]}
    spans = [[(0, 3), (8, 11)], [(0, 3), (8, 11)], [(0, 3), (8, 11)], [(0, 3)]]
    rows["names"] = [
        [{"start": i, "stop": j, "symbol_class": "person"} for i, j in row] for row in spans
    ]
    keys = [pair_key(text, finder) for text in problems(rows)]
    assert keys[0] == keys[1] and len(set(keys)) == 3
