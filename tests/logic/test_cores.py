from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic.cores import Clock, conjuncts, joined, small_core
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.propositional.notation import PROPOSITIONAL

FORMULAS = st.recursive(
    st.sampled_from([["a"], ["b"], ["!", "c"], ["->", "a", "b"], ["F", "c"]]),
    lambda inner: st.tuples(inner, inner).map(lambda pair: ["&", *pair[0], *pair[1]]),
    max_leaves=8,
)


@given(FORMULAS)
def test_conjuncts_are_the_operands_in_their_order(tokens):
    parts = conjuncts(tokens, LTL)
    assert [t for part in parts for t in part] == [t for t in tokens if t != "&"]
    assert not any(part[0] == "&" for part in parts)
    assert conjuncts(joined(parts), LTL) == parts


@given(st.lists(st.booleans(), min_size=2, max_size=30))
def test_a_core_has_all_that_contradicts_and_nothing_else(needed):
    """Parts that are needed are marked; a formula is refuted if it has all of those."""
    marks = [f"n{i}" if one else f"x{i}" for i, one in enumerate(needed)]
    wanted = {mark for mark in marks if mark[0] == "n"}
    core = small_core(joined([[mark] for mark in marks]), PROPOSITIONAL, wanted.issubset, Clock(60))
    assert set(core) == wanted or (not wanted and len(core) == 1)


def test_no_time_leaves_the_whole_formula():
    core = small_core(["&", "a", "&", "b", "!", "a"], PROPOSITIONAL, lambda _: True, Clock(0))
    assert core == ("a", "b", "!a")
    assert small_core(["!", "a"], PROPOSITIONAL, lambda _: True, Clock(9)) == ()


def test_a_core_is_written_as_its_user_wrote_it():
    written = LTL.read("G(a -> F b) & F(a & G !b) & (c W d)")
    core = small_core(written, LTL, lambda tokens: "a" in tokens, Clock(9))
    assert core == ("F (a & G !b)",)
