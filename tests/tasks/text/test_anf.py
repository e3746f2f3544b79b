"""Terms, and A-normal forms: which answers are right."""

import pytest

from hf_alpha.tasks.text.anf import check, check_step, names_in, read_term

SOURCE = "( a & b ) | ( c ^ ( a & b ) )"


@pytest.mark.parametrize(
    "answer",
    [
        "let p = a & b ; let q = a & b ; let r = c ^ q ; let s = p | r ; s",
        "let q = a & b ; let r = c ^ q ; let p = a & b ; let s = p | r ; s",  # another order
        "let p = a & b ; let r = c ^ p ; let s = p | r ; s",  # what is there twice, once
        "let <x_1> = a & b ; let t7 = c ^ <x_1> ; let s = <x_1> | t7 ; s",
    ],
)
def test_right_answers(answer):
    assert check(SOURCE, answer) is True


@pytest.mark.parametrize(
    "answer",
    [
        "let p = a & b ; let c = c ^ p ; let s = p | c ; s",  # c is a name of the source
        "let p = a & b ; let r = c ^ p ; let p = p | r ; p",  # bound twice
        "let s = p | r ; let p = a & b ; let r = c ^ p ; s",  # used before
        "let p = a & b ; let r = p ^ c ; let s = p | r ; s",  # sides exchanged
        "let p = a & b ; let r = c ^ p ; let s = r | p ; s",
        "let p = a & b ; let r = c ^ p ; let s = p & r ; s",
        "let p = a & b ; let u = a & a ; let r = c ^ p ; let s = p | r ; s",  # unused
        "let p = a & b ; let r = c ^ p ; let s = p | r ; r",
        "let p = a & b ; let r = c ^ p ; p | r",  # not in normal form
        "let p = a & b ; let r = c ^ p ; let s = p | r",
        "let p = a & b ; let r = c ^ p ; let s = p | r ; s ;",
        "let = = a & b ; let r = c ^ = ; let s = = | r ; s",
        SOURCE,
    ],
)
def test_wrong_answers(answer):
    assert check(SOURCE, answer) is False


def test_a_name_is_its_own_form():
    assert check("a", "a") and not check("a", "b")


def test_an_answer_that_stands_for_a_huge_term_is_refused_at_once():
    names = [f"t{number}" for number in range(200)]
    pairs = zip(["a", *names], names, strict=False)
    huge = " ; ".join(f"let {new} = {old} & {old}" for old, new in pairs)
    assert check("a & a", f"{huge} ; {names[-1]}") is False


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("p = a & b | ( c ^ q = a & b )", True),
        ("p = a & b | ( c ^ ( a & b ) )", True),  # not all at once
        ("p = a & b | ( c ^ p )", True),  # what is there twice, once
        ("p = a & b | ( c ^ p = a & b )", False),  # bound twice
        ("c = a & b | ( c ^ q = a & b )", False),  # c is a name of the source
        ("p = a | b | ( c ^ q = a & b )", False),
        ("p = a & b | ( q = a & b ^ c )", False),
        ("p = a & b | q = a & b", False),  # c is lost
        ("p = a & b | ( c ^ q = a & b", False),
        ("p = a & b | ( c ^ q = a )", False),
        ("( = a & b | ( c ^ q = a & b )", False),
        (SOURCE, False),  # nothing is bound
        ("p", False),
        ("", False),
    ],
)
def test_steps(answer, right):
    assert check_step(SOURCE, answer) is right


def test_a_term_is_read_with_its_brackets():
    term = read_term("~ ( a1 & ~ b2 ) | ( ( a1 ) | c3 )", "&|", "~")
    assert term == ("|", ("~", ("&", "a1", ("~", "b2"))), ("|", "a1", "c3"))
    assert names_in(term) == ["a1", "b2", "c3"]


@pytest.mark.parametrize(
    "text",
    [
        "", "a &", "& a", "a b", "( a", "a )", "a & b & c", "a + b", "~", "a ~ b", "( )", "a & ~",
        "& & a",
    ],
)  # fmt: skip
def test_what_is_no_term_is_an_error(text):
    with pytest.raises(ValueError, match="no term"):
        read_term(text, "&|", "~")
