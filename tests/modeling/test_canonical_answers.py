"""Answers in words for names, written back in the names of a text."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha import CanonicalNames, MarkedText


def test_strings_of_answers_come_back_that_are_spelled_like_words():
    for rule, text, answer in [
        ("sql", "SELECT a1 FROM b1", "SELECT a1 FROM b1 WHERE a1 = 'b' OR a1 LIKE 'C'"),
        ("python", "def f1(a1): return a1", "def g1(x1): return f1(x1.c, 'b', c=f'{x1}')"),
        ("go", "package p\nfunc F(a1 int) {}", "package p\nfunc G(a1 int) { F(a1, 'b', \"b\") }"),
    ]:
        spelled = CanonicalNames({"name": {"rule": rule}}).spell(text)
        written, table = spelled.names.spell_answer(answer, spelled.table)
        assert "'b'" in written.written and spelled.names.back(written.written, table) == answer


def test_numbers_come_back_in_answers_where_no_rule_finds_their_words():
    spelled = CanonicalNames({"number": {"rule": "number"}}).spell("x = 12 + 7.5")
    assert spelled.text == "x = b + c"
    assert spelled.back("b + c = 19.5, 2 * b") == "12 + 7.5 = 19.5, 2 * 12"


def test_forms_of_words_of_prose_come_back():
    """Capitals and plurals; not those of letters, which mean something else in code."""
    rules = {"person": ["Ann Lee", "bob"], "tool": {"rule": "tools"}, "x": "[xy]"}
    names = CanonicalNames(rules, words={"person": "Person", "x": ["b", "c"]})
    spelled = names.spell("Ann Lee met bob, x and y")
    assert spelled.text == "PersonB met PersonC, b and c"
    assert [next(iter(names.words[kind])) for kind in rules] == ["PersonB", "tool_b", "b"]
    for answer, back in {
        "PersonB's and personc wrote it.": "Ann Lee's and bob wrote it.",
        "PERSONB, PersonCs": "ANN LEE, bobs",
        "**PersonB** <PersonD> PersonBC": "**Ann Lee** <PersonD> PersonBC",
        "_PersonB_ and __PERSONCS__, _tool_b": "_Ann Lee_ and __BOBS__, _tool_b",
        "`PersonB`: [PersonB](#personb) 'PersonB'": "`Ann Lee`: [Ann Lee](#Ann Lee) 'Ann Lee'",
        "PersonB\u2019s PersonB-like (PersonB). _b_": "Ann Lee\u2019s Ann Lee-like (Ann Lee). _b_",
        "B or Cs or b": "B or Cs or x",
    }.items():
        assert spelled.back(answer) == "".join(spelled.stream(answer)) == back
    names = CanonicalNames({"name": ["mcDonald", "kit", "ink"]}, words=["team", "IDEA", "box"])
    spelled = names.spell("mcDonald, kit and ink")
    assert spelled.back("Team TEAMS teames IDEAs Box") == "McDonald MCDONALDS mcDonaldes kits Box"
    with pytest.raises(ValueError, match="there is no class 'people'"):
        CanonicalNames(rules, words={"people": "Person"})
    with pytest.raises(ValueError, match="'a-b' is no word"):
        CanonicalNames(rules, words="a-")


def test_what_an_answer_calls_like_a_name_gets_a_word_of_its_own_class():
    """Not of the first class."""
    names = CanonicalNames(
        {"tool": ["get_a"], "person": {"column": "people"}}, words={"person": "Person"}
    )
    spelled = names.spell(names.finder.mark("Ann calls get_a", {"person": ["Ann"]}))
    assert spelled.text == "PersonB calls b"
    assert spelled.back("Ann, PersonB, get_a, b") == "PersonC, Ann, c, get_a"


def test_what_an_answer_names_itself_keeps_clear_of_the_names_of_the_text():
    """`e` and `result` are names of the text, which the model has not read."""
    names = CanonicalNames({"name": "[a-z]+[0-9]*"})
    spelled = names.spell("e + result + q")
    assert spelled.text == "b + c + e".replace("e", spelled.words["q"])
    assert spelled.back("let f = c in f + total") == "let f = result in f + total"
    assert spelled.back("e2 = b ; result = c") == "e2 = e ; f = result"
    assert spelled.answer("k = e + result") == "f = b + c"


@pytest.mark.parametrize("people", [*permutations(["Alice", "Bob", "New York"])])
def test_an_answer_that_spells_a_name_itself_does_not_mean_it(people):
    """Whatever names are called: of a rule that lists them, in streams, and of tools."""
    one, two, place = people
    names = CanonicalNames({"name": {"column": "names"}})
    spelled = names.spell(names.finder.mark(f"{one} met {two} in {place}.", [*people]))
    said = "b or Alice and New York, not Bob, Bobby or b, f or c. "
    expected = f"{one} or f and g, not h, Bobby or {one}, j or {two}. "
    assert spelled.back(said) == expected
    assert "".join(spelled.stream(re.findall(r"(?s).{1,3}", said))) == expected
    own = MarkedText("May came in May", [(0, 3, "name")])  # which has the word itself
    assert names.spell(own).back("b came in May") == own
    tools = CanonicalNames({"name": {"rule": "tools"}})
    call = MarkedText('{"city": ""}', [(2, 6, "name")])
    said = 'a city: {"tool_b": "city"} of a city '
    expected = 'a city: {"city": "tool_c"} of a city '
    assert tools.spell(call).back(said) == "".join(tools.spell(call).stream(said)) == expected


@pytest.mark.parametrize("words", [None, {"name": "tool_"}])
@given(
    order=st.permutations(["Ann", "bob", "b", "tool_c", "Eve Lee"]),
    reply=st.lists(st.integers(0, 4) | st.sampled_from(["c", "v1", "Ann", "Eve Lee", "bob", "B"])),
)
def test_renamed_texts_have_renamed_answers_whatever_a_model_writes(words, order, reply):
    """Words for names, and names that it spells itself, which are none of the text's."""
    people = ["Ann", "bob", "b", "tool_c", "Eve Lee"]
    names = CanonicalNames({"name": {"column": "names"}}, words=words)
    one, two = (
        names.spell(names.finder.mark(" met ".join(some), {"name": some}))
        for some in (people, order)
    )
    assert one.text == two.text
    given = [*one.words.values()]
    said = " , ".join(part if isinstance(part, str) else given[part] for part in reply)
    table = dict(zip(people, order, strict=True))
    either = re.compile("|".join(rf"\b{name}\b" for name in people))
    assert two.back(said) == either.sub(lambda match: table[match[0]], one.back(said))


def test_a_word_of_the_text_that_is_spelled_like_a_key_stays_beside_it():
    """It is no second binding of that name, which would get a number."""
    text = 'Name a city and a country: {"city": "", "country": ""}'
    spelled = CanonicalNames({"name": {"rule": "json"}}).spell(text)
    assert spelled.text == 'Name a city and a country: {"b": "", "c": ""}'
    assert spelled.back(spelled.text) == text
    answer = 'The city is {"b": "a city of c", "c": "Italy"}'
    assert spelled.back(answer) == 'The city is {"city": "a city of country", "country": "Italy"}'


def test_lines_of_an_answer_come_as_they_are_written():
    stream = CanonicalNames({"name": "[a-z]+"}).spell("p = q").stream(["b\nb ", "c"])
    assert list(stream) == ["p\np ", "q"]
