"""Names written as words of a model: the same for renamed texts, exact on the way back."""

import random
import re
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lambda_terms import lambda_names
from molecules import MOLECULES, renumbered
from small_tokenizers import SUBWORD, byte_level, characters, digits, finish, word_level
from tokenizers import Tokenizer, models

from hf_alpha import CanonicalNames, CanonicalTokenizer, MarkedText
from hf_alpha.alias.certificate import certify
from hf_alpha.modeling.canonical_names import Spelling, Words
from hf_alpha.modeling.host_words import LETTERS, host_words
from hf_alpha.modeling.name_rules import ReadyRule
from hf_alpha.modeling.names_in_text import NameFinder

RULE = {"pattern": "[A-Za-z_][A-Za-z_0-9]*", "reserved": ["def", "return", "and", "not"]}
TOKEN = r"\w+|\W"
PIECES = ["def ", "return ", "and ", " = ", "(", ", ", ")\n", " + ", "42 ", "'", ""]
TOKENIZERS = [*SUBWORD, characters, digits, lambda: word_level(words=LETTERS)]
words = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,5}", fullmatch=True).filter(
    lambda word: word not in RULE["reserved"]
)
templates = st.lists(st.sampled_from(PIECES) | st.integers(0, 30), max_size=60)


def written(template, names):
    """A text of pieces and numbers of names, with spaces between."""
    return " ".join(part if isinstance(part, str) else names[part] for part in template)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("make", TOKENIZERS)
def test_a_renamed_text_is_the_same_to_the_model_and_its_answer_is_renamed(make):
    """Answers to learn come back as they were; in others, names of their own stay apart."""
    host = make()
    names = CanonicalNames({"name": RULE}, tokenizer=host)
    by_itself = {
        way: CanonicalTokenizer.from_tokenizer(host, {"name": RULE}, symbol_renaming=way)
        for way in ("first_occurrence", "random")
    }

    @settings(max_examples=12)
    @given(
        templates,
        templates,
        st.lists(words, min_size=62, max_size=62, unique=True),
        st.integers(0, 3),
    )
    def check(template, answer, spellings, draw):
        first, second = spellings[:31], spellings[31:]
        one, two = (names.spell(written(template, some), draw) for some in (first, second))
        assert one.text == two.text
        target = written([p for p in answer if isinstance(p, str) or p in template], first)
        assert one.back(one.answer(target)) == target
        for way, tokenizer in by_itself.items():
            texts = [written(template, some) for some in (first, second)]
            batch = tokenizer(texts, text_target=[target, ""], allow_absent_symbols=True)
            ids, (labels, _) = batch["input_ids"], batch["labels"]
            assert ids[0] == ids[1]
            if way == "first_occurrence":
                spelled = names.spell(texts[0])
                assert ids[0] == host(spelled.text)["input_ids"]
                written_as = spelled.answer(target)
                assert labels[:-1] == host(written_as, add_special_tokens=False)["input_ids"]
                back = spelled.back(tokenizer.decode(labels))
                assert tokenizer.decode(labels, names=batch.names[0]) == back
        # what a model may write: words for names, used or not, and others
        may = [*one.words.values(), *names.words["name"].listed, "result", "v77", "def"]
        reply = written(answer, [may[i % len(may)] for i in range(31)])
        for spelled in (one, two):
            check_reply(spelled, reply)
        assert one.key(reply) == two.key(reply)

    check()


def check_reply(spelled, reply):
    """Names of the text in place of their words; words that are none; own names, apart from all."""
    back, own = spelled.back(reply), {}
    names = {word: name for name, word in spelled.words.items()}
    for word, there in zip(re.findall(TOKEN, reply), re.findall(TOKEN, back), strict=True):
        if word in names:
            assert there == names[word]
        elif word in spelled.table or word in RULE["reserved"] or not word[0].isalpha():
            assert there == word
        else:
            assert own.setdefault(word, there) == there
    assert len({*own.values()}) == len(own)
    assert not {*own.values()} & spelled.words.keys()
    chunks = [reply[i : i + 3] for i in range(0, len(reply), 3)]
    assert "".join(spelled.stream(chunks)) == back


@pytest.mark.parametrize(
    ("make", "one_token"), [*zip(TOKENIZERS, [19, 19, 3, 19, 1, 19], strict=True)]
)
def test_words_are_one_token_each_where_the_tokenizer_has_such(make, one_token):
    """Else they are numbered."""
    tokenizer = make()
    assert len(host_words(tokenizer)) == one_token
    spelled = CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer).spell("speed = mass")
    first = {19: "b = c", 3: "x = y", 1: "v = v1"}
    assert spelled.text == first[one_token]


def test_a_tokenizer_that_writes_no_word_for_names_is_refused():
    """It has to be said which words it knows."""
    tokenizer = word_level()
    assert host_words(tokenizer) == ("u", "x", "y", "z")
    assert host_words(characters(), ["ab", "cd"]) == ()  # it writes v1, v2, ...
    tools = CanonicalNames({"tool": {"rule": "tools"}}, tokenizer=digits())
    assert tools.words["tool"].stem is None  # it does not write tool_b
    tokenizer = finish(Tokenizer(models.WordLevel({"~": 0, "1": 1}, "~")), False, unk_token="~")
    with pytest.raises(ValueError, match="knows none of the words"):
        CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer)
    names = CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer, words=["1", "2"])
    assert names.spell("p = q = r").text == "1 = 2 = v1"


def test_words_that_the_text_has_besides_its_names_are_skipped():
    """Whatever the names are; reserved words too, and what only differs in case."""
    names = CanonicalNames({"name": {"pattern": r"[a-z]\d?", "reserved": ["c"]}})
    assert names.spell("B x7 = e ; v1 ; kk").text == "B e = f ; g ; kk"
    assert names.spell("B x7 = c ; v1 ; kk").text == "B e = c ; f ; kk"
    marked = MarkedText("b or f is b", [(0, 1, "name")])  # the second one is no name
    assert names.spell(marked).text == "b or f is e"
    people = CanonicalNames({"name": "alpha|beta"}, words="Person")
    for word in ("PersonB", "_PersonB_", "_personbs_"):  # as prose and Markdown have words
        spelled = people.spell(f"alpha met {word} and beta")
        assert spelled.text == "PersonB met PersonC and PersonD"
        assert spelled.back(spelled.text) == f"alpha met {word} and beta"


@pytest.mark.parametrize("words", [None, {"name": "tool_"}, ["k", "plan"]])
@given(data=st.data())
def test_the_spelling_of_a_beginning_is_the_beginning_of_the_spelling(words, data):
    """Of any text: no later line changes what stood before, and all of it comes back."""
    names = CanonicalNames({"name": r"[xyz]\w*"}, words=words)
    plain = ["b", "B", "c", "v1", "tool_b", "TOOL_C", "k", "plan", "so"]
    plain += ["tool_bs", "_tool_c_", "Planes", "__PLAN", "b2", "_b_", "tool_b2", "k_2"]
    lines = data.draw(st.lists(st.sampled_from([*plain, "x", "y1", "zoe"]), max_size=12))
    text = "\n".join(lines)
    spelled = names.spell(text)
    assert spelled.back(spelled.text) == text
    for number in range(len(lines)):
        beginning = "\n".join(lines[:number])
        assert spelled.text.startswith(names.spell(beginning).text)
    renamed = {"x": "tool_b", "y1": "b", "zoe": "v1"}
    other = MarkedText(*_marked(lines, renamed))
    assert names.spell(other).text == names.spell(MarkedText(*_marked(lines, {}))).text
    assert names.spell(other).back(spelled.text) == other


PARAMETERS = [f"{letter}1" for letter in "abcdefghijklmnopqrstuvw"]
TYPED = ", ".join(f"int {name}" for name in PARAMETERS)
DIALECT = {"sql": {"language": "postgres"}}
CODE = {
    "python": (
        "def g({}): return f1 + ",
        [r"'\n'.join(b'', 'B-')", "f'{x!r:b}'", "m.e + f(c=1) # h"],
    ),
    "javascript": ("function g({}) {{ return ", [r"`e\b`", r"x.n + {l: 'e'} + /e\b/g.exec(p) }"]),
    "typescript": ("function g({}) {{ return ", [r"'e\n'", r"x.n + {l: 'e'} + /e\b/g.exec(p) }"]),
    "java": ("class A {{ int g(" + TYPED + ") {{ return ", [r'"e\n"', "x.e + 'b' + 1.f; }}"]),
    "c": ("int g(" + TYPED + ") {{ return ", [r'"%f\n"', 'L"%e" + x->e + 1.f; /* b */ }']),
    "go": ("package e\nfunc g({} int) int {{ return ", [r'"e\n"', "x.e + `b` }"]),
    "sql": ("SELECT {} FROM t WHERE a1 = ", ["'e'", r"X'1F' || E'\n' -- b"]),
}


@pytest.mark.parametrize("rule", CODE)
def test_what_is_no_name_in_code_stays(rule):
    """Strings, escapes, attributes: a model reads the same program, and what it repeats comes back.

    Of so many names, all letters but these would be their words.
    """
    head, rest = CODE[rule]
    text = head.format(", ".join(PARAMETERS)) + " + ".join(rest)
    spelled = CanonicalNames({"name": {"rule": rule, **DIALECT.get(rule, {})}}).spell(text)
    assert "a1," not in spelled.text
    assert spelled.text.endswith(" + ".join(rest))
    assert spelled.back(spelled.text) == text
    assert spelled.back(rest[0]) == rest[0]  # an answer without names
    is_whole = rule in ("python", "javascript", "typescript")
    assert not is_whole or spelled.back('"u"') == '"u"'


def test_escapes_stay_in_prose_about_code():
    """Of a second message, and in an answer that is no code."""
    names = CanonicalNames({"name": {"rule": "python"}})
    spelling, text = Spelling(names), f"def f1({', '.join(PARAMETERS)}): pass"
    spelling.add(text, names.finder.find(text))
    assert spelling.add("It's n: write '\\n', and so on", ()).written.endswith(
        "write '\\n', and so on"
    )
    assert names.back("It's '\\n', not n", spelling.table) == "It's '\\n', not i1"


def _marked(lines, renamed):
    """A text of words, those that begin with x, y or z renamed, and where these are."""
    text, spans = "", []
    for number, line in enumerate(lines):
        word = renamed.get(line, line)
        text += "\n" * (number > 0)
        spans += [(len(text), len(text) + len(word), "name")] if line[0] in "xyz" else []
        text += word
    return text, spans


def test_a_name_that_ends_in_a_sign_stays_apart_from_what_is_beside_it():
    """Else its word would be a part of another one, and the name would not come back."""
    names = CanonicalNames({"name": {"column": "names"}})
    for text, spelled in {
        "C++ and C++17 and C++": "b and b2+17 and b",
        "alice@x.com, alice@bob": "b@x.com, b@c",
        ".NET, ASP.NET": "b, ASP.b2",
    }.items():
        listed = ["C++", ".NET", "alice@", "bob"]
        one = names.spell(names.finder.mark(text, {"name": listed}))
        assert (one.text, one.back(one.text)) == (spelled, text)
    with pytest.raises(ValueError, match="'\\+' at 1 is a part of a word"):
        names.spell(MarkedText("a+b", [(1, 2, "name")]))
    with pytest.raises(ValueError, match="'@y' at 2 stands right behind another name"):
        names.spell(MarkedText("x@@y", [(0, 2, "name"), (2, 4, "name")]))


def test_no_word_of_a_stem_begins_another():
    """So a word is whole as soon as it is one of them."""
    for stem in ("tool_", "Person", "v1x"):
        first = [*islice(Words(stem), 200)]
        assert len({*first}) == 200 and all(word in Words(stem) for word in first)
        ordered = sorted(first)
        assert not any(b.startswith(a) for a, b in pairwise(ordered))


def test_more_names_than_words_are_numbered():
    """The text's own `v2` is skipped, and a reserved one."""
    names = CanonicalNames({"name": r"n\d+"}, words=["b"])
    assert names.spell("n3 n1 v2 n2 n3").text == "b v1 v2 v3 b"
    names = CanonicalNames({"name": {"pattern": r"[nv]\d", "reserved": ["v1"]}}, words=["b"])
    assert names.spell("n3 n1").text == "b v2"


def test_classes_that_mean_something_stay_as_they_are():
    """Functions here; a word for variables is none of theirs."""
    rules = {"variable": "[xyz]", "function": ["b", "sin"]}
    spelled = CanonicalNames(rules, kept=["function"]).spell("sin(x) + b(z)")
    assert spelled.text == "sin(c) + b(e)"
    assert spelled.back("b(c)") == "b(x)"
    assert CanonicalNames(rules, kept=["function"]).spell("sin(x)").text == "sin(c)"
    rules = {"variable": "[xyz]", "function": "[a-h]"}  # the text says which ones they are
    assert CanonicalNames(rules, kept=["function"]).spell("x + b(y)").text == "c + b(e)"
    with pytest.raises(ValueError, match="give some of variable, function"):
        CanonicalNames(rules, kept=["operator"])


def test_bad_input_is_refused():
    """A word that is none; a name that is a part of a word; names that the text has to say."""
    with pytest.raises(ValueError, match="'new word' is no word"):
        CanonicalNames({"name": "[a-z]"}, words=["new word"])
    with pytest.raises(ValueError, match="'1' at 1 is a part of a word"):
        CanonicalNames({"ring": "[1-9]"}).spell(MarkedText("c1ccccc1", [(1, 2, "ring")]))
    with pytest.raises(ValueError, match="'1' at 0 is a part of a word"):
        CanonicalNames({"ring": "[1-9]"}).spell(MarkedText("1c", [(0, 1, "ring")]))
    with pytest.raises(ValueError, match="text as MarkedText"):
        CanonicalNames({"person": {"column": "people"}}).spell("Ada met Bob")


def test_special_tokens_of_a_chat_are_no_names():
    """A pattern of all words would find some in them."""
    tokenizer = characters()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    names = CanonicalNames({"name": "[a-z_]+"}, tokenizer=tokenizer)
    assert names.spell("speed<|im_end|>").text == "b<|im_end|>"
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|b|>"]})
    names = CanonicalNames({"name": "[a-z_]{2,}"}, tokenizer=tokenizer)
    assert names.spell("speed").answer("speed<|b|>") == "b<|b|>"


def test_bindings_have_words_of_their_own_and_their_old_names_back():
    r"""Of `(\x x (\x x))` two names are spelled `x`; an answer writes them so, if it can."""
    finder = NameFinder({"name": {"function": "lambda_terms:rule"}})
    finder.functions["name"] = ReadyRule(lambda_names)
    names = CanonicalNames(finder)
    problem, renamed = r"(\x y x (\x x))", r"(\u z u (\v v))"
    spelled, other = names.spell(problem), names.spell(renamed)
    assert spelled.text == other.text == r"(\b c b (\e e))"
    assert (spelled.back(spelled.text), other.back(other.text)) == (problem, renamed)
    assert list(spelled.stream(["(\\b ", "c b ", "(\\e ", "e))"])) == [problem]
    for answer, back in [(r"(\b (\e b))", r"(\x (\x1 x))"), (r"(\b (\e e))", r"(\x (\x x))")]:
        assert spelled.back(answer) == back
    assert spelled.answer(r"(\x y)") == r"(\b c)" and spelled.answer("(y x)") == "(c b)"
    assert spelled.key(r"(\b c)") == other.key(r"(\b c)") != other.key(r"(\b b)")
    with pytest.raises(ValueError, match="the names of class 'map' are no whole words"):
        CanonicalNames({"map": {"pattern": "[0-9]", "words": False}})


RINGS, MAPS = {"ring": {"rule": "smiles"}}, {"map": {"rule": "atom_maps"}}
BEHIND = ("C1CC[NH](->[Pt])C2CCCC12", "[C-]#[N+]c1cc2ccc1CC2.[Zn+2]", "C1CN(->[Fe])CC1C1CC1")


@pytest.mark.parametrize("molecule", [*MOLECULES, *BEHIND])
@pytest.mark.parametrize("text", ["{}", 'the product of "{}", with CO2'])
def test_rings_have_the_lowest_free_numbers(molecule, text):
    names, rng = CanonicalNames(RINGS), random.Random(0)
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), RINGS)
    spelled = names.spell(text.format(molecule))
    ids = tokenizer(spelled.text)["input_ids"]
    assert ids == byte_level()(spelled.text)["input_ids"]
    for _ in range(5):
        other = renumbered(molecule, rng)
        assert names.spell(text.format(other), draw=rng.randrange(9)).text == spelled.text
        batch = tokenizer(text.format(other), text_target=other)
        assert batch["input_ids"] == ids
        labels = batch["labels"][:-1]
        assert labels == byte_level()(names.spell(molecule).text)["input_ids"]
        assert spelled.answer(other) == names.spell(molecule).text
        assert spelled.key(other) == spelled.key(molecule)
        assert spelled.back(other) == other == "".join(spelled.stream(other))
        assert tokenizer.decode(labels, names=batch.names) == names.spell(other).text
    chem = pytest.importorskip("rdkit.Chem")
    for side, its in zip(names.spell(other).text.split(">>"), molecule.split(">>"), strict=True):
        assert chem.CanonSmiles(side) == chem.CanonSmiles(its)
        assert names.spell(chem.CanonSmiles(side)).text == chem.CanonSmiles(side)


@pytest.mark.parametrize("rules", [MAPS, {**MAPS, **RINGS}])
@pytest.mark.parametrize("text", ["{}", 'the atoms of "{}", 2 g'])
def test_atom_maps_have_the_lowest_numbers_and_their_old_ones_back(rules, text):
    """Those of an answer are the text's; new ones take what is free."""
    names, rng = CanonicalNames(rules), random.Random(0)
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), rules)
    source, target = (
        "[CH3:1][CH:2]([OH:3])[CH2:4]C1CC1.[Cl:5][H]",
        "[CH3:1][CH:2]([Cl:5])[CH2:4]C1CC1",
    )
    spelled = names.spell(text.format(source))
    assert spelled.text == text.format(source) and spelled.answer(target) == target
    for _ in range(9):
        numbers = dict(zip("12345", map(str, rng.sample(range(1, 30), 5)), strict=True))
        other, answer = (
            re.sub(r":(\d)]", lambda found, n=numbers: f":{n[found[1]]}]", one)
            for one in (source, target)
        )
        renamed = names.spell(text.format(other))
        assert renamed.text == spelled.text and renamed.answer(answer) == target
        assert renamed.back(target) == answer == "".join(renamed.stream(target))
        assert renamed.key(target) == spelled.key(target) != renamed.key(target.replace(":5", ":4"))
        batch = tokenizer(text.format(other), text_target=answer)
        assert batch["labels"][:-1] == byte_level()(target)["input_ids"]
        assert tokenizer.decode(batch["labels"], names=batch.names) == answer
    new = "[CH3:1][CH3:7]"
    assert renamed.answer(renamed.back(new)) == "[CH3:1][CH3:6]"
    with pytest.raises(ValueError, match="has the map '77', which the input lacks"):
        tokenizer(source, text_target="[CH3:77]C1CC1")
    assert names.spell("[CH3:0][CH2:00]").text == "[CH3:0][CH2:00]"  # 0 is none


def test_rings_are_spelled_without_other_names():
    spelled = CanonicalNames(RINGS).spell("C7CC7")
    assert [*spelled.stream(["C7 ", "closes"])] == ["C7 ", "closes"]  # as it comes
    assert CanonicalNames({**RINGS, "name": "bob"}, kept=["name"]).spell("bob C7CC7").text == (
        "bob C1CC1"
    )
    with pytest.raises(ValueError, match="one of 'name' could be a part of them"):
        CanonicalNames({**RINGS, "name": "bob"})
    with pytest.raises(ValueError, match="'ring' are spelled by their rule"):
        certify([{"prompt": "C1CC1"}], CanonicalNames(RINGS))
