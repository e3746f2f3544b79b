"""Prompts, names and replies."""

import random

import pytest

from benchmarks.names.questions import (
    Kind,
    Pool,
    Question,
    ask,
    draw_names,
    marked,
    read_reply,
    slot,
)
from benchmarks.names.suites import SUITES

A, B = slot(0), slot(1)
PEOPLE = SUITES["people"]


def test_names_are_marked_where_they_stand():
    text = marked(f"{A} sees {B}, {A}.", ("Bob", "Al"), ("person", "dog"))
    assert text == "Bob sees Al, Bob."
    assert [(text[s.start : s.stop], s[2]) for s in text.spans] == [
        ("Bob", "person"), ("Al", "dog"), ("Bob", "person")
    ]  # fmt: skip


def test_names_of_each_kind():
    """Seen ones are those that the examples show; nothing is drawn twice or misleads not at all."""
    question = PEOPLE.draw(random.Random(0), 1)
    pool = PEOPLE.pools["person"]
    shown = pool.seen[:3]
    for seed in range(20):
        rng = random.Random(seed)
        assert set(draw_names(PEOPLE, question, Kind.SEEN, rng, shown)) == set(shown)
        assert set(draw_names(PEOPLE, question, Kind.UNSEEN, rng)) <= set(pool.unseen)
        nonsense = draw_names(PEOPLE, question, Kind.NONSENSE, rng)
        assert not set(nonsense) & {*pool.seen, *pool.unseen, *pool.misleading}
        assert all(name[0].isupper() for name in nonsense), "as names of this class are written"
    assert Pool.of("a", "b", "c").draw(Kind.NONSENSE, random.Random(0), 1)[0].islower()


def test_prompts():
    question = Question(f"Who is not {B}?", A, ("person", "person"))
    example = (question, ("P1", "P2"))
    assert ask(PEOPLE, question, ("X", "Y"), [], True) == "Who is not Y?\nAnswer:"
    told = ask(PEOPLE, question, ("X", "Y"), [], False)
    assert told.startswith(PEOPLE.instructions)
    assert told.endswith('Who is not Y?\nEnd with one line that begins with "Answer:".')
    shown = ask(PEOPLE, question, ("X", "Y"), [example], True)
    assert "\n\nExample 1\nWho is not P2?\nAnswer: P1\n\nYour turn\nWho is not Y?\n" in shown
    assert [shown[s.start : s.stop] for s in shown.spans] == ["P2", "P1", "Y"]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: X", A),
        ("It may be Y.\n\n**Answer:** `X`.\nI am sure.", A),
        ("Answer: Y\nNo.\nAnswer: X", A),
        ("First Y was seen.\nIt is X", A),
        ("Y</think>\nX", A),
        ("<think>X", None),
        ("<think>Answer: X</think>\n", None),
        ("Answer:", None),
        ("Answer: X or Y", None),
        ("Answer: \ue000", None),
    ],
)
def test_replies(reply, answer):
    assert read_reply(PEOPLE, reply, ("X", "Y"), plain=False) == answer


def test_a_continued_text_has_its_answer_on_the_first_line():
    assert read_reply(PEOPLE, " X\nAnswer: Y", ("X", "Y"), plain=True) == A
