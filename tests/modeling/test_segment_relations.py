"""Relations between segments against the paper's example and a table written out."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from reference.geometric import relation, relation_names

from hf_alpha.modeling.segment_relations import RELATIONS, Segments, num_relations, relation_ids

# G of Section 2.1: t1 to t6, b1 = (1, 1), b2 = (3, 3), b3 = (2, 3).
PAPER = """
 0  +1  +2  +3  +4  +5  ||  +2  +3
-1   0  +1  +2  +3  +4  -1  +1  <|~
-2  -1   0  +1  +2  +3  -1  ||  <~|
-3  -2  -1   0  +1  +2  -3  -1  -2
-4  -3  -2  -1   0  +1  -4  -2  -3
-5  -4  -3  -2  -1   0  -5  -3  -4
||  +1  +2  +3  +4  +5   0  +2  +1
-2  -1  ||  +1  +2  +3  -2   0  <~|
-1  >|~ >~| +1  +2  +3  -1  >~|  0
"""
# Two cells of the paper follow no rule that the others follow: b1 covers what t1 covers, but their
# relations to b3, and those of t3 to t1 and b1, differ.
MISPRINTS = {(0, 8): "+1", (2, 6): "-2"}

spans = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: tuple(sorted(pair)))


def named(elements: list[tuple[int, int]], limit: int = 9) -> list[list[str]]:
    starts, ends = torch.tensor([elements]).unbind(-1)
    names = relation_names(limit)
    return [[names[i] for i in row] for row in relation_ids(starts, ends, limit)[0].tolist()]


def test_the_papers_example():
    elements = [*((i, i) for i in range(1, 7)), (1, 1), (3, 3), (2, 3)]
    wanted = [line.split() for line in PAPER.split("\n") if line]
    for (row, column), name in MISPRINTS.items():
        assert wanted[row][column] != name
        wanted[row][column] = name
    assert named(elements) == wanted


@given(st.lists(spans, min_size=1, max_size=7), st.integers(1, 10))
def test_all_pairs_follow_the_table(elements, limit):
    assert named(elements, limit) == [
        [relation(one, two, i == j, limit) for j, two in enumerate(elements)]
        for i, one in enumerate(elements)
    ]


@given(spans, spans, spans)
def test_the_converse(one, two, apart):
    """Names have their converse; distances the other sign, between tokens the opposite number."""
    there, back = (named([one, two])[i][1 - i] for i in (0, 1))
    if there in RELATIONS:
        assert RELATIONS.index(back) == 8 - RELATIONS.index(there)
    else:
        assert {there[0], back[0]} == {"+", "-"}
    tokens = named([(one[0],) * 2, (apart[0],) * 2])
    if one[0] != apart[0]:
        assert int(tokens[0][1]) == -int(tokens[1][0])


@given(st.lists(st.lists(spans, min_size=3, max_size=3), min_size=1, max_size=3))
def test_segments_have_what_their_first_and_last_tokens_have(rows):
    starts, ends = torch.tensor(rows).unbind(-1)
    segments = Segments(torch.ones_like(starts), starts, ends)
    values = torch.arange(100, 110)[None]
    wanted = [
        [[*range(100, 110), *(100 + pair[i] for pair in row)] for row in rows] for i in (0, 1)
    ]
    assert [segments.starting(values).tolist(), segments.ending(values).tolist()] == wanted


def test_names_are_one_for_each_number():
    names = relation_names(3)
    assert names[:7] == ["-3", "-2", "-1", "0", "+1", "+2", "+3"]
    assert len(set(names)) == len(names) == num_relations(3)
