import pickle
import unicodedata
from copy import deepcopy

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hf_alpha.modeling import names_in_text
from hf_alpha.modeling.name_rules import NameRule
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText, Span
from hf_alpha.modeling.words import whole_words

texts = st.text(st.sampled_from("xyf12+( ,.é\u0301ह\u093f_'"), max_size=25)
names = st.sampled_from(["x", "y", "x1", "f", "+", "x.y", "x y", "é", "हि", "'"])
rules = st.dictionaries(
    st.sampled_from(["variable", "function", "other"]),
    st.one_of(
        st.sampled_from(["[a-z][0-9]*", r"\w+", r"\S+", "x|x1|y", ".", "(?=x)", "[xy](?: y)?"]),
        st.just({"pattern": "[a-z]+", "reserved": ["x", "f"]}),
        st.just({"column": "names"}),
    ),
    min_size=1,
)


def found(finder: NameFinder, text: str, *args) -> list[tuple[str, str]]:
    """Names and classes; their spans are in order, apart, not empty and whole words."""
    spans = finder.find(text, *args)
    end = 0
    for start, stop, kind, _ in spans:
        assert end <= start < stop <= len(text) and kind in finder.rules
        end = stop
        for place in (start, stop):
            around = text[place - 1 : place + 1]
            assert place in (0, len(text)) or not all(map(is_word, around))
    return [(text[s.start : s.stop], s.symbol_class) for s in spans]


def is_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LNM"


@given(rules, texts, st.dictionaries(names, st.sampled_from(["variable", "function", "other"])))
def test_names_are_whole_words_in_order_and_apart(rules, text, known):
    finder = NameFinder(rules)
    known = {name: kind for name, kind in known.items() if kind in rules}
    for name, kind in found(finder, text):
        assert name not in finder.rules[kind].reserved
    for name, kind in found(finder, text, known):
        assert known.get(name, kind) == kind
    again = NameFinder(finder.to_dict())
    assert again.rules == finder.rules and again.find(text, known) == finder.find(text, known)


WORDS = st.one_of(
    st.sampled_from(
        [r"\w+", "[a-z][0-9]*", "x|x1", r"(?:f|x\d?)+", "[xyf_]{2,}", "(?=x)x", "x.", "é"]
    ),
    st.sampled_from([{"pattern": r"[a-z]\d*", "reserved": ["x", "f"]}, ["x"], ["y1", "é"], 3]),
)


@given(
    st.dictionaries(st.sampled_from("abc"), WORDS, min_size=1),
    st.lists(texts),
    st.dictionaries(names, st.just("a"), max_size=2),
)
def test_words_that_are_looked_up_once_are_what_patterns_find(rules, several, known):
    try:
        fast, slow = NameFinder(rules), NameFinder(rules)
    except ValueError:  # a token of two classes
        assume(False)
    slow.by_words = False
    for text in several:
        for classes in (None, {name: kind for name, kind in known.items() if kind in rules}):
            assert fast.find(text, classes) == slow.find(text, classes)


def test_which_patterns_match_words_alone():
    for pattern in ("[a-z][0-9]*", r"\w+", r"(?:x|y\d?){2,3}", "[A-Za-z_]+"):
        assert NameFinder({"name": pattern}).by_words, pattern
    for pattern in ("x.", "[^x]", "[+-z]", "[A-z]", r"\S", "(?=x)x", r"\bx", "x y", r"(x)\1"):
        assert not NameFinder({"name": pattern}).by_words, pattern


@given(st.lists(st.tuples(names, st.sampled_from(["(", " ", ", ", "max", "2x"])), max_size=8))
def test_listed_names_are_found_where_they_are_words_of_their_own(parts):
    """As a rule's tokens, and as names that are known: the two ways agree."""
    text = "".join(f"{name}{glue}" for name, glue in parts)
    listed = sorted({name for name, _ in parts}) or ["x"]
    by_rule = NameFinder({"variable": listed})
    by_row = NameFinder({"variable": {"column": "names"}})
    known = dict.fromkeys(listed, "variable")
    assert found(by_rule, text) == found(by_row, text, known)
    assert by_row.mark(text, {"variable": listed}).spans == by_row.find(text, known)
    assert "x" not in [name for name, _ in found(by_rule, "max x_ 2x x\u0301")]


def test_the_first_the_longest_the_class_given_first():
    assert found(NameFinder({"a": ["x"], "b": "x[0-9]*"}), "x x1 x") == [
        ("x", "a"), ("x1", "b"), ("x", "a"),
    ]  # fmt: skip
    assert found(NameFinder({"b": "x[0-9]*", "a": ["x"]}), "x") == [("x", "b")]
    assert found(NameFinder({"a": ["x y", "y z"]}), "x y z") == [("x y", "a")]
    marks = NameFinder({"a": ["कि", "e\u0301"]})
    assert found(marks, "कि क किर e\u0301 e") == [("कि", "a"), ("e\u0301", "a")]


def test_reserved_words_are_those_of_their_class():
    finder = NameFinder(
        {"small": {"pattern": "[a-z]+", "reserved": ["x"]},
         "any": {"pattern": r"\w+", "reserved": ["y"]}}
    )  # fmt: skip
    assert found(finder, "x y z 1") == [("x", "any"), ("y", "small"), ("z", "small"), ("1", "any")]


def test_a_pattern_that_takes_too_long_is_refused_and_named(monkeypatch):
    monkeypatch.setattr(names_in_text, "TIME_LIMIT", 0.1)
    finder = NameFinder({"fast": "[a-z]", "slow": "(a|aa)+c"})
    assert found(finder, "aaac x") == [("aaac", "slow"), ("x", "fast")]
    text = "a" * 70
    message = r"symbols: 'slow': the pattern '\(a\|aa\)\+c' takes more than .*'.a{59}\.\.\.'"
    for find in (
        lambda: finder.find(text),
        lambda: finder.find(f"<{text}", kept=[(0, 1, "<")]),
        lambda: finder.mark(text, {}),
    ):
        with pytest.raises(ValueError, match=message):
            find()


@given(rules, texts, st.lists(st.integers(0, 25), max_size=4))
def test_names_lie_beside_what_is_kept(rules, text, cuts):
    """And are there wherever they do without it."""
    finder = NameFinder(rules)
    ends = sorted({place for place in cuts if place <= len(text)})
    kept = [(i, j, text[i:j]) for i, j in zip(ends[::2], ends[1::2], strict=False)]
    free, all_names = finder.find(text, kept=kept), finder.find(text)
    for start, stop, *_ in free:
        assert all(stop <= first or last <= start for first, last, _ in kept)
        for place in (start, stop):
            assert place in (0, len(text)) or not all(map(is_word, text[place - 1 : place + 1]))
    if all(span in free for span in all_names):
        return
    touched = [s for s in all_names if any(s[0] < last and first < s[1] for first, last, _ in kept)]
    assert touched  # only those may be missing, and what they hid comes up


def test_names_of_a_problem_keep_their_class_in_its_answer():
    finder = NameFinder({"word": "[a-z]+", "variable": {"column": "names"}})
    source = finder.mark("add x to y", {"variable": ["x", "y"]})
    assert found(finder, source)[1::2] == [("x", "variable"), ("y", "variable")]
    known = {source[s.start : s.stop]: s.symbol_class for s in source.spans}
    assert found(finder, "x plus y", known) == [
        ("x", "variable"), ("plus", "word"), ("y", "variable"),
    ]  # fmt: skip
    many = {f"x{i}": "variable" for i in range(100)}
    assert found(finder, " ".join(many), many) == list(many.items())


def test_functions_and_columns_together():
    finder = NameFinder(
        {"function": {"function": "m:calls", "reserved": ["if"]}, "variable": {"column": "names"}},
        {"function": lambda text: [(i - 1, i) for i, c in enumerate(text) if c == "("] + [(0, 2)]},
    )
    marked = finder.mark("if f(g(x))", {"variable": ["x"]})
    assert found(finder, marked) == [("f", "function"), ("g", "function"), ("x", "variable")]
    assert finder.mark("if f(g(x))", {"variable": [[7, 8]]}).spans == marked.spans
    # An answer is not given to the function: it knows sources only.
    assert found(finder, "f(h(x))", {"f": "function"}) == [("f", "function")]
    finder.functions["function"] = lambda text: [(0, 99)]
    with pytest.raises(ValueError, match=r"\(0, 99, 'function'\) is empty, overlaps .* or lies"):
        finder.find("f(x)")
    finder.functions.clear()
    with pytest.raises(
        ValueError, match="'function' are found by the function 'm:calls', which is not"
    ):
        finder.find("f(x)")


def test_a_finder_takes_the_functions_that_its_own_rules_name():
    """A tokenizer's rule that names another function, which others may have written, gets none."""
    functions = {"a": lambda text: [(0, 1)], "b": lambda text: [(0, 1)]}
    users = NameFinder({"a": {"function": "m:find"}, "b": {"function": "m:find"}}, functions)
    finder = NameFinder({"a": {"function": "m:find"}, "b": {"function": "os:system"}})
    finder.take_functions(users)
    assert finder.functions == {"a": functions["a"]}
    with pytest.raises(ValueError, match="'os:system', which is not imported"):
        finder.require_functions()


def test_names_listed_wrongly_are_refused():
    finder = NameFinder({"a": {"column": "a"}, "b": {"column": "b"}})
    for listed, message in [
        ({"a": ["x"], "b": ["x"]}, "'x' is listed for the classes 'a' and 'b'"),
        ({"a": [""]}, "an empty name is listed for the class 'a'"),
        ({"a": [[0, 2]], "b": [[1, 3]]}, r"the name at \(1, 3, 'b'\) is empty, overlaps"),
        ({"a": [[2, 9]]}, r"lies outside the text of 5 characters"),
    ]:
        with pytest.raises(ValueError, match=message):
            finder.mark("x + y", listed)


@given(texts, rules)
def test_marked_texts_are_texts_and_round_trip(text, rules):
    finder = NameFinder(rules)
    marked = MarkedText(text, finder.find(text))
    for copy in (pickle.loads(pickle.dumps(marked)), deepcopy(marked)):
        assert type(copy) is MarkedText and copy == text and copy.spans == marked.spans
        assert finder.find(copy, {"+": "variable"}) == marked.spans
    assert hash(marked) == hash(text) and type(str(marked)) is str
    assert all(type(span) is Span for span in marked.spans)


def test_spans_are_sorted_and_checked():
    assert MarkedText("x+y", [[2, 3, "a"], [0, 1, "a"]]).spans == (Span(0, 1, "a"), Span(2, 3, "a"))
    for spans in ([(0, 0, "a")], [(0, 4, "a")], [(-1, 1, "a")], [(0, 2, "a"), (1, 3, "a")]):
        with pytest.raises(ValueError, match="is empty, overlaps another one or lies outside"):
            MarkedText("x+y", spans)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (5.0, "is 5.0: give one of pattern, tokens, column, function, rule, such as v: .pattern"),
        ({}, r"is \{\}: give one of"),
        ({"pattern": "x", "tokens": ["x"]}, "give one of"),
        ({"pattern": "x", "cuont": 3}, "unknown key 'cuont'; known: pattern, tokens"),
        ({"pattern": ""}, "'pattern' is '': give a string"),
        ({"column": 3}, "'column' is 3: give a string"),
        ("(", r"the pattern '\(': missing \) at position 1$"),
        ("(?x) x # name", "the pattern .* missing"),
        ("x*", r"the pattern 'x\*' matches the empty text"),
        ({"pattern": "x", "count": 0}, "'count' is 0: give a whole number from 1 on"),
        ({"pattern": "x", "count": True}, "'count' is True"),
        ({"tokens": ["x", "y"], "count": 1}, "2 tokens, but count = 1"),
        (["x", "x"], "'x' is given twice in 'tokens'"),
        ({"tokens": "xy"}, "'tokens' is 'xy': give a list of names"),
        ([" x"], "give a list of names"),
        ({"pattern": "x", "reserved": ["if", 3]}, "'reserved' is .*: give a list of names"),
    ],
)
def test_rules_that_cannot_be_used(rule, message):
    with pytest.raises(ValueError, match=f"^symbols: 'v'.*{message}"):
        NameRule.of("v", rule)


def test_classes_that_cannot_be_used():
    with pytest.raises(ValueError, match="a class is named by letters, digits"):
        NameFinder({"my class": "x"})
    with pytest.raises(ValueError, match="the name 'x' is in the classes 'a' and 'b'"):
        NameFinder({"a": ["x"], "b": ["y", "x"]})
    with pytest.raises(ValueError, match=r"symbols are \['x'\]: give class -> rule"):
        NameFinder(["x"])


def test_without_classes_no_word_is_a_name():
    assert NameFinder({}).find("x met y") == ()
    assert NameFinder({}).mark("x met y", {}).spans == ()


@st.composite
def texts_with_tokens(draw):
    """A text, and places in it that are tokens."""
    text = draw(st.text(st.sampled_from("xy1 <>"), max_size=25))
    edges = draw(st.lists(st.integers(0, len(text)), unique=True).map(sorted))
    pairs = [*zip(edges[::2], edges[1::2], strict=False)]
    return text, [(start, stop, text[start:stop]) for start, stop in pairs]


@given(texts_with_tokens(), st.sampled_from([r"x(?: y)?1?", r"\S+", "x|<", "(?<=<)x", "y *"]))
def test_a_pattern_matches_between_tokens_as_if_it_began_anew_behind_each(text_and_tokens, pattern):
    """The slow reference looks for matches again from each token on."""
    text, tokens = text_and_tokens
    matches, start = [], 0
    pattern = whole_words(pattern)
    for first, last, _ in [*tokens, (len(text), len(text), "")]:
        for match in pattern.finditer(text, start):
            if match.end() > first:
                shorter = [m.span() for m in pattern.finditer(text, match.start(), first)]
                ends = [stop for _, stop in shorter]
                inside = [
                    0 < i < len(text) and is_word(text[i - 1]) and is_word(text[i]) for i in ends
                ]
                matches += [span for span, cut in zip(shorter, inside, strict=True) if not cut]
                break
            matches.append(match.span())
        start = last
    found = [span[:2] for span in NameFinder({"n": pattern.pattern}).find(text, None, tokens)]
    assert found == [(start, stop) for start, stop in matches if start < stop]


@example(("x > x", [(2, 3, ">")]), [">"])
@given(texts_with_tokens(), st.lists(st.sampled_from(["x", "x y", "< x", "y1", ">"]), min_size=1))
def test_a_given_name_is_not_in_a_token(text_and_tokens, names):
    text, tokens = text_and_tokens
    finder = NameFinder({"n": {"column": "names"}})
    places = [span[:2] for span in finder.mark(text, names, tokens).spans]
    assert not any(a < last and first < b for a, b in places for first, last, _ in tokens)
    missed = [*text]
    for start, stop, *_ in [*places, *tokens]:
        missed[start:stop] = ["z" if is_word(x) else "\0" for x in text[start:stop]]
    assert not finder.mark("".join(missed), names).spans
