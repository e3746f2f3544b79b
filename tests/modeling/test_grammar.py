"""Formulas in all notations: what is written is read back, and what cannot be read says why."""

import itertools
import json
import string
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hf_alpha.modeling.grammar as grammar_module
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.propositional.notation import PROPOSITIONAL
from hf_alpha.modeling.grammar import FormulaError, Grammar, unquoted

# Operators that are letters, and derived ones that repeat an operand: what temporal logic needs.
TEMPORAL = Grammar(
    operators={"!": 1, "&": 2, "|": 2, "X": 1, "U": 2},
    constants=("0", "1"),
    infix={
        "->": [1, "right"],
        "|": [3, "left"],
        "&": [4, "left"],
        "U": [5, "right"],
        "W": [5, "right"],
    },
    spellings={"&&": "&", "[]": "G"},
    derived={"->": "| ! $1 $2", "F": "U 1 $1", "G": "! U 1 ! $1", "W": "| U $1 $2 ! U 1 ! $1"},
)
GRAMMARS = st.sampled_from([PROPOSITIONAL, TEMPORAL, LTL])
LETTERS = st.sampled_from(string.ascii_lowercase)
NAMES = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: PROPOSITIONAL.is_name(name) and LTL.is_name(name)
)
GLUED_NAMES = st.from_regex(r"[FGXURWMVabFalse_][FGXUVafalse01_]{0,6}", fullmatch=True).filter(
    LTL.is_name
)


@st.composite
def formulas(draw: st.DrawFn, names: st.SearchStrategy[str]) -> tuple[Grammar, list[str]]:
    """A grammar and one of its formulas: operators are placed until every operand is."""
    grammar = draw(GRAMMARS)
    tokens: list[str] = []
    missing = 1
    for token in draw(st.lists(st.sampled_from(sorted(grammar.operators)), max_size=12)):
        tokens.append(token)
        missing += grammar.operators[token] - 1
        if missing > 1 and draw(st.booleans()):
            tokens.append(draw(names))
            missing -= 1
    leaf = names | st.sampled_from(grammar.constants)
    return grammar, tokens + [draw(leaf) for _ in range(missing)]


def recursive_paths(grammar: Grammar, tokens: list[str]) -> list[int]:
    """Heap numbers by recursion over the formula, shortened to the nearest 62 steps at the end."""

    def walk(position: int, steps: str) -> tuple[int, list[int]]:
        numbers = [int("1" + steps[-62:], 2)]
        arity = grammar.operators.get(tokens[position], 0)
        position += 1
        for child in range(arity):
            position, below = walk(position, steps + str(child))
            numbers += below
        return position, numbers

    return walk(0, "")[1]


@given(formulas(NAMES))
def test_every_notation_is_read_back(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    for notation in ("prefix", "infix"):
        text = grammar.format(tokens, notation)
        assert grammar.parse(text, notation) == tokens
        assert grammar.parse(f"  {text}\n") == tokens


@given(formulas(LETTERS))
def test_compact_is_read_back(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    text = grammar.format(tokens, "compact")
    assert grammar.parse(text, "compact") == grammar.parse(text) == tokens
    assert grammar.parse(" ".join(text)) == tokens


@given(formulas(LETTERS))
def test_no_parenthesis_of_infix_can_be_left_out(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    text = grammar.format(tokens, "infix")
    opened: list[int] = []
    for position, character in enumerate(text):
        if character == "(":
            opened.append(position)
        elif character == ")":
            start = opened.pop()
            without = text[:start] + " " + text[start + 1 : position] + " " + text[position + 1 :]
            assert grammar.parse(without, "infix") != tokens


@given(formulas(LETTERS))
def test_tree_paths_equal_the_recursive_reference(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    assert grammar.tree_paths(tokens) == recursive_paths(grammar, tokens)


@given(formulas(NAMES))
def test_grammar_travels_through_json(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    again = Grammar.from_dict(json.loads(json.dumps(grammar.to_dict(), sort_keys=True)))
    assert again == grammar
    assert again.parse(again.format(tokens, "infix")) == tokens


def test_grammars_of_tokenizers_saved_before_are_read() -> None:
    data = PROPOSITIONAL.to_dict()
    del data["refused"]
    assert set(data) == {"operators", "constants", "infix", "spellings", "derived"}
    assert Grammar.from_dict(data) == PROPOSITIONAL


@pytest.mark.parametrize(
    ("grammar", "text", "tokens"),
    [
        *((PROPOSITIONAL, *row) for row in [
            ("&a!b", "& a ! b"),
            ("a&!b", "& a ! b"),
            ("& request ! grant", "& request ! grant"),
            ("&&abc", "& & a b c"),
            ("a&&b", "& a b"),
            ("request", "request"),
            ("not (p and q) or r", "| ! & p q r"),
            ("a -> b -> c", "| ! a | ! b c"),
            ("a <- b", "| a ! b"),
            ("-> a b", "| ! a b"),
            ("a /\\ b \\/ ~c <-> true xor false", "= | & a b ! c ^ 1 0"),
            ("a ∧ ¬b", "& a ! b"),
            ("a = b = c", "= a = b c"),
            ("a ^ b ^ c", "^ ^ a b c"),
            ("a | b ^ c", "| a ^ b c"),
            ("False & a", "& 0 a"),
            ("a * !trUe + TRUE", "| & a ! 1 1"),
            ("& False a", "& 0 a"),
            ('"False" & a', '& "False" a'),
        ]),
        *((LTL, *row) for row in [
            ("GFa", "! U 1 ! U 1 a"),
            ("!Ga", "U 1 ! a"),
            ("!!a -> b", "| ! a b"),
            ("!!a U b", "U ! ! a b"),
            ("XFp1 & F1", "& X U 1 p1 F1"),
            ("Grant", "! U 1 ! rant"),
            ('"Grant" U "b"', "U Grant b"),
            ("a Ub", "U a b"),
            ("a UFb UXc", "U a U U 1 b X c"),
            ("a U Ub", "U a Ub"),
            ("GFalse | XTrue", "| ! U 1 ! 0 X 1"),
            ("FX[]!a", "U 1 X ! U 1 a"),
            ("a <--> b xor c + e", "| & a | | & b ! c & ! b c e & ! a ! | | & b ! c & ! b c e"),
            ("always (request implies eventually grant)", "! U 1 ! | ! request U 1 grant"),
            ("G(request -> F grant)", "! U 1 ! | ! request U 1 grant"),
            ("& request X grant", "& request X grant"),
            ("X Fa", "X Fa"),  # what `format` writes
            ("G Fa", "! U 1 ! U 1 a"),  # which this is not
            ("XUab", "X U a b"),
            ("GRed", "! U 1 ! Red"),
            ("W a b", "! U ! b & ! a ! b"),
        ]),
    ],
)  # fmt: skip
def test_readings(grammar: Grammar, text: str, tokens: str) -> None:
    assert grammar.parse(text) == tokens.split()


def test_letter_operators_and_repeated_operands() -> None:
    assert TEMPORAL.parse("&aXb") == ["&", "a", "X", "b"]
    assert " ".join(TEMPORAL.parse("a W X b", "infix")) == "| U a X b ! U 1 ! a"
    assert " ".join(TEMPORAL.parse("G F Xa_1")) == "! U 1 ! U 1 Xa_1"
    with pytest.raises(FormulaError, match="more than 1000000 tokens"):
        TEMPORAL.parse("W " * 100 + "a " * 101)


def test_only_what_operators_repeat_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_module, "MAX_TOKENS", 100)
    assert len(PROPOSITIONAL.parse("&".join(["a"] * 200), "infix")) == 399
    assert len(LTL.parse("G" * 200 + "_a", "infix")) == 403
    with pytest.raises(FormulaError, match="more than 100 tokens"):
        LTL.parse(" xor ".join("abcdefg"), "infix")


@given(formulas(GLUED_NAMES))
def test_infix_quotes_names_that_it_would_split(case: tuple[Grammar, list[str]]) -> None:
    grammar, tokens = case
    assert grammar.parse(grammar.format(tokens, "infix"), "infix") == tokens
    assert grammar.parse(grammar.format(tokens), "prefix") == tokens


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("GFa", True),
        ("G Fa", True),
        ("X Fa", False),
        ("GRed", True),
        ("Red", False),
        (" & a X b ", False),
        ("a /\\ next b", False),
        ("a -> b", True),
        ("Fab", True),
        ("XUab", False),
    ],
)
def test_what_is_read_shows_what_is_rewritten(text: str, rewritten: bool) -> None:
    tokens = LTL.read(text)
    assert (not LTL.derived.keys().isdisjoint(tokens)) is rewritten
    assert LTL.rewritten(tokens) == LTL.parse(text)
    assert (LTL.rewritten(tokens) != tokens) is rewritten


@pytest.mark.parametrize("grammar", [LTL, PROPOSITIONAL])
def test_words_of_other_tools_are_names_in_quotes(grammar: Grammar) -> None:
    for text in ("tt", "!tt", "& tt a", "a & tt"):
        with pytest.raises(FormulaError, match="other tools read it as true"):
            grammar.parse(text)
    tokens = grammar.parse('"tt" & "ff"')
    assert tokens == ["&", '"tt"', '"ff"'] and all(map(grammar.is_name, tokens[1:]))
    assert (
        grammar.parse(grammar.format(tokens, "infix")) == grammar.parse(" ".join(tokens)) == tokens
    )
    assert grammar.parse("&tf") == ["&", "t", "f"]
    assert LTL.parse("P & Y") == ["&", "P", "Y"]  # letters are names where a name may stand


@pytest.mark.parametrize(
    ("grammar", "notation", "text", "position", "message"),
    [
        *((LTL, "infix", *row) for row in [
            ("X[2] a", 1, "'[' at character 2: numbers and ranges are not read: write X X p"),
            ("F[1:3]a", 1, "numbers and ranges are not read"),
            ("a & {b;c}[]->d", 4, "regular expressions are not read"),
            ("a=0", 1, "write p <-> q"),
            ("FalseAlarm & a", 5, "'Alarm' at character 6: expected a binary operator"),
            ("a U1b", 3, "'1b' at character 4 has no meaning here"),
            ('a & "b', 4, "'\"' at character 5: this quote is never closed"),
            ('a & "b\n"', 4, "this quote is never closed on its line"),
            ("Y a", 0, "'Y' at character 1: past operators are not read"),
            ("G(Y (a))", 2, "'Y' at character 3: past operators are not read"),
            ("a S b", 2, "'S' at character 3: past operators are not read"),
            ("P a", 0, "'P' at character 1: past operators are not read"),
            ("G(once (a))", 2, "'once' at character 3: past operators are not read"),
            ("historically a", 0, "'historically' at character 1: past operators are not read"),
            ("a since b", 2, "'since' at character 3: past operators are not read"),
            ("a & ff", 4, "'ff' at character 5: other tools read it as false: write 0, or the"),
            ("X tt", 2, "'tt' at character 3: other tools read it as true: write 1, or the name"),
            ("req[0] & b", 3, "a name like p[2] in double quotes"),
            ("a + + b", 4, "'+' at character 5: expected a name"),
            ("F.a", 1, "'.a' at character 2 has no meaning here"),
        ]),
        *((PROPOSITIONAL, None, *row) for row in [
            ("", 0, "empty"),
            ("   ", 0, "empty"),
            ("&a", 2, "ends at character 2 while 1 operand is missing"),
            ("& & request grant", 17, "1 operand is missing"),
            ("&ab!", 3, "'!' at character 4: expected the end"),
            ("&a?", 2, "'?' at character 3 has no meaning here"),
            ("request & (grant", 16, "'(' at character 11 is never closed"),
            ("request & grant)", 15, "')' at character 16 closes nothing"),
            ("request & & grant", 10, "'&' at character 11: expected a name"),
            ("a & 2b", 4, "'2b' at character 5 has no meaning here"),
            ("a b", 2, "'b' at character 3: expected a binary operator, ')' or the end"),
            ("a % b", 2, "'%' at character 3 has no meaning here"),
            ("& a b % c", 6, "'%' at character 7 has no meaning here"),
            ("req[0] & b", 3, "'[' at character 4 has no meaning here"),
            ("x' & y", 1, "names are letters, digits, _ and dots, or anything in double quotes"),
            ("a & bc\u20ac", 6, "'\u20ac' at character 7 has no meaning here"),
            ("a & bc\xb2 | d", 6, "'\xb2' at character 7 has no meaning here"),
            ("p..q", 1, "'.' at character 2 has no meaning here"),
        ]),
    ],
)  # fmt: skip
def test_errors_name_token_position_and_expectation(grammar, notation, text, position, message):
    with pytest.raises(FormulaError) as error:
        grammar.parse(text, notation)
    assert error.value.position == position
    assert message in str(error.value)


def test_unknown_notation_and_names_too_long_for_compact() -> None:
    with pytest.raises(ValueError, match="choose one of prefix, compact, infix"):
        PROPOSITIONAL.parse("a", "postfix")
    with pytest.raises(FormulaError, match="'request' is too long for compact"):
        PROPOSITIONAL.format(["!", "request"], "compact")
    with pytest.raises(FormulaError, match="not one formula"):
        PROPOSITIONAL.format(["&", "a"])
    for tokens in (["&", "a"], ["a", "b"]):
        with pytest.raises(FormulaError, match=r"operands|follows"):
            PROPOSITIONAL.tree_paths(tokens)


@given(st.text(alphabet='ab01!&|=^()<-> ~XFUp_[{"\\/.\u00e9\u0301', max_size=30) | st.text())
def test_any_text_is_a_formula_or_a_formula_error(text: str) -> None:
    for grammar in (PROPOSITIONAL, TEMPORAL, LTL):
        try:
            tokens = grammar.parse(text)
        except FormulaError as error:
            assert 0 <= error.position <= len(text)
        else:
            assert grammar.parse(" ".join(tokens), "prefix") == tokens
            assert grammar.parse(grammar.format(tokens, "infix"), "infix") == tokens


# Names


ANY_NAME = st.one_of(
    GLUED_NAMES,
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=6),
    st.lists(st.text("abFX01_\u00e9\u0301", max_size=3), min_size=1, max_size=3).map(".".join),
    st.sampled_from(["true", "xor", "1", "a b", 'say "x"', "\\", "", "p.q", "Grant", "V", "a;{b}"]),
)


def quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_quotes(grammar: Grammar, tokens: list[str], names: list[str]) -> str:
    """A prefix formula whose leaves are quoted names, in turn."""
    turn = itertools.cycle(names)
    leaves = {**grammar.operators, **dict.fromkeys(grammar.constants)}
    return " ".join(token if token in leaves else quoted(next(turn)) for token in tokens)


@given(formulas(LETTERS), st.lists(ANY_NAME, min_size=1, max_size=4))
def test_any_name_goes_from_text_to_tokens_to_infix_to_tokens(case, names: list[str]) -> None:
    grammar, shape = case
    tokens = grammar.parse(in_quotes(grammar, shape, names), "prefix")
    leaves = [token for token in tokens if grammar.is_name(token)]
    assert set(map(unquoted, leaves)) <= set(names) and len(tokens) == len(shape)
    for notation in ("prefix", "infix"):
        text = grammar.format(tokens, notation)
        assert grammar.parse(text, notation) == grammar.parse(text) == tokens


def built(spot, tokens: list[str]):
    """The formula of canonical tokens by Spot's constructors."""
    constants = {"0": spot.formula.ff(), "1": spot.formula.tt()}
    stack: list = []
    for token in reversed(tokens):
        make = {"!": "Not", "X": "X", "&": "And", "|": "Or", "U": "U"}.get(token)
        if make is None:
            stack.append(constants.get(token) or spot.formula.ap(unquoted(token)))
        elif token in "!X":
            stack.append(getattr(spot.formula, make)(stack.pop()))
        else:
            pair = stack.pop(), stack.pop()
            stack.append(getattr(spot.formula, make)(*([pair] if token in "&|" else pair)))
    return stack[0]


@given(formulas(LETTERS), st.lists(ANY_NAME, min_size=1, max_size=4))
def test_spot_reads_what_is_written_and_the_other_way_round(case, names: list[str]) -> None:
    spot = pytest.importorskip("spot")
    _, shape = case
    assume(not any(name.isspace() for name in names))  # to Spot `" "` is `""`
    tokens = [token if token not in "=^" else "&" for token in shape]
    tokens = LTL.parse(in_quotes(LTL, tokens, names), "prefix")
    formula = built(spot, tokens)
    assert spot.formula(LTL.format(tokens, "infix")) == formula
    # Spot takes `or` and names with a dot at an end for names without quotes, we do not
    if not any(x in LTL.spellings or "" in x.split(".") for x in names):
        assert built(spot, LTL.parse(str(formula), "infix")) == formula


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('"req 1" & größe', ["&", '"req 1"', "größe"]),
        ("p.q & !p.r", ["&", "p.q", "!", "p.r"]),
        ('& "a b" ! "c"', ["&", '"a b"', "!", "c"]),
        ("&é!ö", ["&", "é", "!", "ö"]),
        ('"true" | "say \\"x\\""', ["|", '"true"', '"say \\"x\\""']),
        ("हिन्दी & e\u0301", ["&", "हिन्दी", "e\u0301"]),
        ("\u00e9 & e\u0301", ["&", "\u00e9", "e\u0301"]),  # two names: nothing is normalised
        ("ﬁ & fi", ["&", "ﬁ", "fi"]),
    ],
)
def test_names_are_what_was_written(text: str, tokens: list[str]) -> None:
    assert PROPOSITIONAL.parse(text) == tokens


@pytest.mark.parametrize(
    "data",
    [
        {"infix": {}},
        {"derived": {"->": "| $1"}},
        {"derived": {"->": "| ! $1 $2", "=>": "-> $1 $2"}},
        {"spellings": {"and": "&&&"}},
        {"infix": {**PROPOSITIONAL.infix, "&": [3, "right"]}},
        {"glued": "X"},
        {"glued": "&"},
    ],
)
def test_contradictory_grammars_are_refused(data: dict) -> None:
    with pytest.raises(ValueError, match="'"):
        Grammar.from_dict({**PROPOSITIONAL.to_dict(), **data})


DEEP = [
    (PROPOSITIONAL, [
        "!" * 10_000 + "a",
        "&a" * 10_000 + "b",
        "& a " * 10_000 + "b",
        "(a & " * 10_000 + "b" + ")" * 10_000,
        "(" * 10_000 + "a" + " | b)" * 10_000,
        "a -> " * 10_000 + "b",
        "&" * 10_000,
        "(" * 10_000,
        "(" * 10_000 + "a",
    ]),
    (LTL, [
        "F" * 10_000 + "_a",
        "F" * 10_000,
        "XG(" * 5_000 + "_a" + ")" * 5_000,
        "_a Ub & Wc" * 3_400,
        "_a UFb U" * 3_400 + "c",
        '"Grant" W ' * 13 + "b",
        '"' * 10_000,
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "text"), [(g, x) for g, texts in DEEP for x in texts])
def test_ten_thousand_operators_deep(grammar: Grammar, text: str) -> None:
    start = time.process_time()
    try:
        tokens = grammar.parse(text)
    except FormulaError as error:
        assert len(str(error)) < 500
    else:
        assert len(grammar.tree_paths(tokens)) == len(tokens)
        assert grammar.parse(grammar.format(tokens, "infix"), "infix") == tokens
    assert time.process_time() - start < 5
