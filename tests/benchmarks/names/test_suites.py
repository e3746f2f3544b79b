"""What every suite promises, and each checker against answers known to be right or wrong."""

import random
import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.names.questions import SLOT, Kind, draw_names, marked, slot, unnamed
from benchmarks.names.suites import SUITES
from benchmarks.names.suites.formulas import LETTERS, letters_of

ALL = pytest.mark.parametrize("suite", SUITES.values(), ids=list(SUITES))
LEVELS = [(suite, level) for suite in SUITES.values() for level in (1, 2, suite.hardest)]


@pytest.mark.parametrize(
    ("suite", "level"), LEVELS, ids=[f"{suite.name}-{level}" for suite, level in LEVELS]
)
def test_questions(suite, level):
    """Targets are right, renaming keeps all but names, and all of a level have as many names."""
    counts = set()
    for seed in range(20):
        question = suite.draw(random.Random(seed), level)
        assert question.target and question == suite.draw(random.Random(seed), level)
        assert suite.read(question.target) == question.target
        assert suite.is_right(question, question.target)
        slots = {slot(number) for number in range(len(question.classes))}
        assert set(SLOT.findall(question.text)) == slots, "each name occurs"
        assert set(SLOT.findall(question.target)) <= slots
        counts.add(tuple(sorted(Counter(question.classes).items())))
        for kind in Kind:
            names = draw_names(suite, question, kind, random.Random(seed))
            assert len(set(names)) == len(names)
            named = marked(question.target, names, question.classes)
            assert unnamed(named, names) == question.target
            spans = marked(question.text, names, question.classes).spans
            assert len(spans) == len(SLOT.findall(question.text))
    assert len(counts) == 1


@ALL
def test_pools_do_not_overlap(suite):
    for pool in suite.pools.values():
        kinds = [set(pool.seen), set(pool.unseen), set(pool.misleading)]
        assert not any(one & other for i, one in enumerate(kinds) for other in kinds[:i])
        assert all(map(str.isidentifier, set().union(*kinds)))


@ALL
@given(st.lists(st.sampled_from([*"\ue000\ue001 ;,.(){}&|!=01abUX-\n\"'", "SELECT "])))
def test_any_text_is_read_or_refused(suite, parts):
    text, question = "".join(parts), suite.draw(random.Random(0), 1)
    answer = suite.read(text)
    if answer is not None:
        assert suite.read(answer) == answer
        assert suite.is_right(question, answer) in (True, False)


A, B, C, D = map(slot, range(4))


def with_letters(text):
    return re.sub(r"\b[a-h]\b", lambda match: slot(LETTERS.index(match[0])), text)


def test_propositional_by_all_completions():
    suite = SUITES["propositional"]
    for seed in range(20):
        question = suite.draw(random.Random(seed), 2)
        formula = letters_of(question.text).removeprefix("Formula: ")
        python = re.sub(r"!", " not ", formula.replace("&", " and "))
        python = python.replace("<->", "==").replace("xor", "!=")
        for values in product("01-", repeat=3):
            given_values = [f"{slot(i)}={v}" for i, v in enumerate(values) if v != "-"]
            if not given_values:
                continue
            free = [range(2) if v == "-" else [int(v)] for v in values]
            right = all(
                _holds(question.facts, dict(zip("abc", completed, strict=True)))
                for completed in product(*free)
            )
            assert suite.is_right(question, suite.read("; ".join(given_values))) is right, python
    assert suite.read(f"{B}=1, {A}: 0.") == f"{A}=0, {B}=1"
    for wrong in (f"{A}=1, {A}=1", f"{A}=2", "a=1", "", f"{A}=1, nothing"):
        assert suite.read(wrong) is None


def _holds(tokens, values):
    """A formula in prefix, token by token."""
    stack = []
    for token in reversed(tokens):
        if token == "!":
            stack.append(not stack.pop())
        elif token in "&|^=":
            one, other = stack.pop(), stack.pop()
            stack.append({"&": one and other, "|": one or other, "^": one != other}.get(
                token, one == other))  # fmt: skip
        else:
            stack.append(token == "1" or bool(values.get(token)))
    return stack[0]


@pytest.mark.parametrize(
    ("formula", "answer", "right"),
    [
        ("U!ab", "!a; b; {1}", True),
        ("U!ab", "a; b; {1}", False),
        ("U!ab", "{!a}", False),
        ("X!a", "1; {b}", True),  # what a step leaves out is false
        ("Xa", "1; {b}", False),
        ("&aXb", "a; cycle{a & b}", True),
        ("Xa", "1; {a | b}", False),  # says no word
    ],
)
def test_temporal(formula, answer, right):
    suite = SUITES["ltl"]
    question = suite.draw(random.Random(0), 1)
    question = type(question)("", "", ("proposition",) * 2, tuple(formula))
    assert suite.is_right(question, suite.read(with_letters(answer))) is right


def test_temporal_refuses_other_names_and_contradictions():
    suite = SUITES["ltl"]
    for text in (f"{A}; b; {{1}}", f"{A} & !{A}; {{1}}", f"request; {{{A}}}", A, "{X}"):
        assert suite.read(text) is None


def test_proofs():
    suite = SUITES["proofs"]
    question = suite.draw(random.Random(3), 2)
    chain = question.target.split(", ")
    assert suite.is_right(question, suite.read(" -> ".join(chain) + "."))
    for wrong in (chain[:-1], chain[1:], chain[:1] + chain[2:], chain[::-1]):
        assert not suite.is_right(question, suite.read(", ".join(wrong)))
    assert suite.read("because " + ", ".join(chain)) is None


def test_kinship_by_search():
    """The answer is the only one by the facts, and who is asked about gets only told relations."""
    suite = SUITES["kinship"]
    roles = Counter()
    for seed in range(300):
        question = suite.draw(random.Random(seed), 4)
        facts = re.findall(r"(.) is the (\w+) of (.)\.", question.text)
        parents = {child: (one, role) for one, role, child in facts}
        role, person = re.search(r"the ([\w-]+) of (.)\?", question.text).groups()
        gender = {one: told == "mother" for one, told, _ in facts}
        roles[role] += 1
        found = {one for one in gender if _is(role, one, person, parents, gender)}
        assert found == {question.target}, question
    assert len(roles) == 8


def _is(role, one, person, parents, gender):
    female = role.endswith("mother") or role in ("sister", "aunt")
    if gender[one] is not female or one == person:
        return False
    up = [person]
    while up[-1] in parents:
        up.append(parents[up[-1]][0])
    parent_of_one = parents.get(one, ("", ""))[0]
    generation = {"grandmother": 2, "grandfather": 2}.get(role, 3)
    if role in ("sister", "brother"):
        return len(up) > 1 and parent_of_one == up[1]
    if role in ("aunt", "uncle"):
        return len(up) > 2 and parent_of_one == up[2] and one != up[1]
    return len(up) > generation and up[generation] == one


def test_programs_are_python():
    suite = SUITES["programs"]
    for seed in range(50):
        question = suite.draw(random.Random(seed), 3)
        names = draw_names(suite, question, Kind.MISLEADING, random.Random(seed))
        printed = []
        exec(
            marked(question.text, names, question.classes).removeprefix("Program:\n"),
            {"print": printed.append},
        )
        assert printed == [int(question.target)]
    assert suite.read("It prints 12.") == "12"
    for text in ("", "3 or 4", "x12", "1.5"):
        assert suite.read(text) is None


def test_sql_compares_what_queries_give():
    suite = SUITES["sql"]
    ordered = next(
        question
        for seed in range(50)
        if " ORDER BY " in (question := suite.draw(random.Random(seed), 2)).target
    )
    wanted, table, tested, sign, number, order = re.fullmatch(
        r"SELECT (.) FROM (.) WHERE (.) (.) (\d) ORDER BY (.)", ordered.target
    ).groups()

    def right(text):
        return suite.is_right(ordered, suite.read(text))

    start = f"SELECT {wanted} FROM {table}"
    turned = {"<": ">", ">": "<", "=": "="}[sign]
    condition = f"where {number} {turned} {tested}"
    assert right(f'select "{wanted}" from {table} {condition} order by {order} asc;')
    for wrong in (
        f"{start} WHERE {tested} {sign} {number}",
        f"{start} ORDER BY {order}",
        f"{start} WHERE {tested} {sign} {number} ORDER BY {order} DESC",
        f"{start} WHERE",
        f"{start}; DROP TABLE {table}",
        f"SELECT {wanted}, {tested} FROM {table} WHERE {tested} {sign} {number} ORDER BY {order}",
    ):
        assert not right(wrong), wrong
    assert suite.read(f"WITH x AS (SELECT 1) {start}") is None


def test_sql_cannot_do_harm(tmp_path, monkeypatch):
    """Nothing but reading, and not for ever."""
    suite, question = SUITES["sql"], SUITES["sql"].draw(random.Random(0), 1)
    monkeypatch.chdir(tmp_path)
    endless = "SELECT * FROM (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    many = ", ".join(f"{A} AS t{i}" for i in range(9))
    for text in (
        "SELECT randomblob(1000000000)",
        "SELECT load_extension('x')",
        f"{endless}SELECT x FROM n)",
        f"SELECT 1 FROM {many}",
        "SELECT 1; ATTACH 'file.db' AS f",
        f"{question.target} AND length(zeroblob(9)) = 9",  # right, but for the function
    ):
        assert not suite.is_right(question, suite.read(text))
    assert not list(tmp_path.iterdir())


def test_tools_and_people_mislead_by_what_is_of_others():
    for name in ("tools", "people"):
        suite = SUITES[name]
        for seed in range(30):
            question = suite.draw(random.Random(seed), 3)
            names = draw_names(suite, question, Kind.MISLEADING, random.Random(seed))
            for one, fitting in zip(names, question.fitting, strict=True):
                assert one not in fitting
    assert SUITES["tools"].read(f'I call {A}( "{B}" ).') == f"{A}({B})"
    assert SUITES["tools"].read(f"{A}({B}) or {B}({A})") is None
    assert SUITES["people"].read(f"It was {A}, {A}!") == A
    assert SUITES["people"].read(f"{A} or {B}") is None
