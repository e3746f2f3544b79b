"""Names written as words of a model, and back: exact, whatever they are called."""

import json
import os
import random
import re
from itertools import islice, pairwise, permutations

import own_process
import pytest
import torch
from commands import hf_alpha, weights_of
from hosts import make_host
from hypothesis import given, settings
from hypothesis import strategies as st
from lambda_terms import lambda_names
from molecules import MOLECULES, renumbered
from small_tokenizers import SUBWORD, byte_level, finish, smiles, unigram, word_level
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    ByT5Tokenizer,
    TextStreamer,
    pipeline,
)

from hf_alpha import (
    CanonicalModel,
    CanonicalNames,
    CanonicalTokenizer,
    MarkedText,
    NamesTextGenerationPipeline,
    load_checkpoint,
)
from hf_alpha.alias.certificate import certify
from hf_alpha.canonical import convert_to_canonical, generating
from hf_alpha.demo.choices import page_choices
from hf_alpha.hub.info import describe_model
from hf_alpha.modeling.canonical_names import Spelling, Words
from hf_alpha.modeling.host_words import LETTERS, host_words
from hf_alpha.modeling.name_rules import ReadyRule
from hf_alpha.modeling.names_in_text import NameFinder

RULE = {"pattern": "[A-Za-z_][A-Za-z_0-9]*", "reserved": ["def", "return", "and", "not"]}
TOKEN = r"\w+|\W"
PIECES = ["def ", "return ", "and ", " = ", "(", ", ", ")\n", " + ", "42 ", "'", ""]


def characters():
    """A tokenizer that splits all words: one character, one token."""
    letters = [chr(i) for i in range(32, 127)] + ["\n"]
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token="~"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~", eos_token="~")


def digits():
    """A tokenizer of words and digits, without a letter alone: `v1` is two tokens."""
    tokenizer = Tokenizer(
        models.BPE({c: i for i, c in enumerate("~v0123456789")}, [], unk_token="~")
    )
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~", eos_token="~")


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


def test_strings_of_answers_come_back_that_are_spelled_like_words():
    for rule, text, answer in [
        ("sql", "SELECT a1 FROM b1", "SELECT a1 FROM b1 WHERE a1 = 'b' OR a1 LIKE 'C'"),
        ("python", "def f1(a1): return a1", "def g1(x1): return f1(x1.c, 'b', c=f'{x1}')"),
        ("go", "package p\nfunc F(a1 int) {}", "package p\nfunc G(a1 int) { F(a1, 'b', \"b\") }"),
    ]:
        spelled = CanonicalNames({"name": {"rule": rule}}).spell(text)
        written, table = spelled.names.spell_answer(answer, spelled.table)
        assert "'b'" in written.written and spelled.names.back(written.written, table) == answer


def test_escapes_stay_in_prose_about_code():
    """Of a second message, and in an answer that is no code."""
    names = CanonicalNames({"name": {"rule": "python"}})
    spelling, text = Spelling(names), f"def f1({', '.join(PARAMETERS)}): pass"
    spelling.add(text, names.finder.find(text))
    assert spelling.add("It's n: write '\\n', and so on", ()).written.endswith(
        "write '\\n', and so on"
    )
    assert names.back("It's '\\n', not n", spelling.table) == "It's '\\n', not i1"


def test_numbers_come_back_in_answers_where_no_rule_finds_their_words():
    spelled = CanonicalNames({"number": {"rule": "number"}}).spell("x = 12 + 7.5")
    assert spelled.text == "x = b + c"
    assert spelled.back("b + c = 19.5, 2 * b") == "12 + 7.5 = 19.5, 2 * 12"


def _marked(lines, renamed):
    """A text of words, those that begin with x, y or z renamed, and where these are."""
    text, spans = "", []
    for number, line in enumerate(lines):
        word = renamed.get(line, line)
        text += "\n" * (number > 0)
        spans += [(len(text), len(text) + len(word), "name")] if line[0] in "xyz" else []
        text += word
    return text, spans


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
    assert tools.spell(call).back('a city: {"tool_b": "city"}') == 'a city: {"city": "tool_c"}'


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


def test_a_tokenizer_does_what_it_was_told(tmp_path):
    """Its settings, by which data in a cache is known, say all of it; a saved one does the same."""
    host, rules = characters(), {"variable": "[xyz]", "function": ["b", "sin"]}
    host.add_special_tokens({"additional_special_tokens": ["<|x|>"]})
    ways = [{}, {"words": ["k", "p"]}, {"kept": ["function"]}, {"symbol_renaming": "random"}]
    made = [CanonicalTokenizer.from_tokenizer(host, rules, **way) for way in ways]
    settings = [tokenizer.settings() for tokenizer in made]
    assert all(settings.count(each) == 1 for each in settings)
    text = "sin(x)<|x|>"
    for tokenizer, spelled in zip(made, ["b(c)<|x|>", "k(p)<|x|>", "sin(c)<|x|>"], strict=False):
        assert tokenizer(text)["input_ids"] == host(spelled)["input_ids"]
    assert made[3](text)["input_ids"][-1] == host(text)["input_ids"][-1]
    made[0].use_rules({"z": ["sin"], "a": ["x"]})  # JSON files sort classes
    made[0].save_pretrained(tmp_path)
    assert list(AutoTokenizer.from_pretrained(tmp_path).finder.rules) == ["z", "a"]
    by_function = CanonicalTokenizer.from_tokenizer(host, {"name": lambda text: [(0, 3)]})
    assert by_function("sin(x)")["input_ids"] == host("b(x)")["input_ids"]


def test_lines_of_an_answer_come_as_they_are_written():
    stream = CanonicalNames({"name": "[a-z]+"}).spell("p = q").stream(["b\nb ", "c"])
    assert list(stream) == ["p\np ", "q"]


# -- models ---------------------------------------------------------------------------------------


def swapped(text):
    """A model: answers `x = y` by `y = x`, with a remark that depends on what x is called."""
    left, right = text.split(" = ")
    return f"{right} = {left}" if left < right else f"{left} = {right}"


def test_a_vote_depends_on_no_name_and_says_how_far_spellings_differ():
    """The model answers by the order of letters, so that spellings differ, and none does for it."""
    model = CanonicalModel(swapped, CanonicalNames({"name": "[a-z]+"}))
    votes = {model.vote(f"{a} = {b}").answer == f"{b} = {a}" for a, b in ("pq", "qp", ("u", "k"))}
    assert len(votes) == 1
    assert model.vote("p = q").doubt in (0.2, 0.4)
    asked: list[str] = []
    listening = CanonicalModel(lambda text: asked.append(text) or swapped(text), model.names)
    assert [listening.vote("p = q", n).answer for n in (1, 2)] == [model("p = q")] * 2
    assert asked[:2] == [model.names.spell("p = q").text] * 2 and asked[2] != asked[1]
    assert len(asked) == 3
    with pytest.raises(ValueError, match="spellings is 0: give 1 or more"):
        model.vote("p = q", 0)
    assert CanonicalModel(lambda text: f"not {text}", model.names).vote("p = q").doubt == 0
    # new names are called otherwise in each spelling, which is no difference
    fresh = CanonicalModel(lambda word: f"let {'k' if word == 'b' else 'b'} = {word}", model.names)
    voted = fresh.vote("left")
    assert (voted.answer, voted.doubt) == ("let k = left", 0)


def test_a_model_on_this_machine_gives_renamed_answers():
    """With random weights, whose answers are any tokens at all."""
    tokenizer = SUBWORD[0]()
    model = make_host("llama", vocab_size=len(tokenizer), bos_token_id=None, eos_token_id=None)
    ask = generating(model, tokenizer, max_new_tokens=30, do_sample=False)
    named = CanonicalModel(ask, CanonicalNames({"name": "[a-z]{4,}"}, tokenizer=tokenizer))
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer)
    by_pipe = CanonicalModel(
        lambda text: pipe(text, return_full_text=False, max_new_tokens=30, do_sample=False)[0][
            "generated_text"
        ],
        named.names,
    )
    assert by_pipe("alpha sees gamma") == named("alpha sees gamma")
    assert named("alpha sees gamma") == named("omega sees kappa").replace("omega", "alpha").replace(
        "kappa", "gamma"
    )


# -- folders --------------------------------------------------------------------------------------

NAMES = "[a-z]{4,}"
TEXTS = ["alpha sees gamma, not ants", "omega sees kappa, not ants"]
CHAT = "{% for m in messages %}<{{ m['role'][:3] }}>{{ m['content'] }}\n{% endfor %}"
LOAD = """
import json, sys
from transformers import AutoModelForCausalLM, AutoTokenizer
assert "hf_alpha" not in sys.modules
folder, *texts = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(texts, padding=True, return_tensors="pt")
ids = model.generate(**batch, max_new_tokens=20, do_sample=False)
print(json.dumps([type(model).__name__, *tokenizer.batch_decode(ids, names=batch.names)]))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Kind of host -> a host, converted; the host itself is in a folder beside it."""
    converted = {}
    for kind, tokenizer in (("t5", unigram(end=True)), ("llama", byte_level())):
        tokenizer.chat_template = CHAT
        place = tmp_path_factory.mktemp(kind)
        for part in (make_host(kind, vocab_size=len(tokenizer), eos_token_id=2), tokenizer):
            part.save_pretrained(place / "host")
        converted[kind] = place / "out"
        options = ["--to", "canonical", "--names", NAMES]
        done = hf_alpha("convert", place / "host", converted[kind], *options)
        assert done.code == 0 and "its tokenizer writes names as" in done.out, done.err
    return converted


@pytest.fixture(params=["t5", "llama"])
def folder(request, folders):
    """One of them, and its kind."""
    return folders[request.param], request.param


def renamed(text):
    """The second text's names in place of the first one's."""
    return text.replace("alpha", "omega").replace("gamma", "kappa")


def test_a_folder_is_its_host_with_names_spelled(folder):
    """The same weights and class; without names, the same tokens; and answers that are renamed."""
    out, kind = folder
    model, tokenizer = load_checkpoint(out)
    host = AutoTokenizer.from_pretrained(out.parent / "host")
    assert weights_of(out) == weights_of(out.parent / "host")
    assert len(tokenizer) == len(host) and not hasattr(model.config, "symbol_classes")
    plain = "x and y, not Z"
    assert tokenizer(plain)["input_ids"] == host(plain)["input_ids"]
    assert tokenizer.decode(host(plain)["input_ids"]) == host.decode(
        host(plain)["input_ids"], skip_special_tokens=True
    )
    told = describe_model(str(out))
    assert f"AutoTokenizer.from_pretrained('{out}', trust_remote_code=True)" in told
    assert f"hf_alpha.load_checkpoint('{out}')" in told
    chat = [{"role": "user", "content": plain}]
    ids = [one.apply_chat_template(chat)["input_ids"] for one in (tokenizer, host)]
    assert ids[0] == ids[1]
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert [*batch.names[0].values()] == ["alpha", "sees", "gamma", "ants"]
    ids = model.generate(**batch, max_new_tokens=40, do_sample=False)
    one, two = tokenizer.batch_decode(ids, names=batch.names)
    assert two == renamed(one) and (kind == "t5" or one.startswith(TEXTS[0]))
    ask = generating(model, host, max_new_tokens=9, do_sample=False)
    voting = CanonicalModel(ask, tokenizer.canonical)
    one, two = (voting.vote(text, spellings=2) for text in TEXTS)
    assert (two.answer, two.doubt) == (renamed(one.answer), one.doubt)


@pytest.mark.slow  # its code is loaded as that of other tokenizers is
def test_a_folder_is_loaded_where_the_package_is_not(folders, tmp_path):
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    told = [LOAD, folders["llama"], *TEXTS]
    done = own_process.run("-I", "-c", *told, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    name, one, two = json.loads(done.stdout.splitlines()[-1])
    assert name == "LlamaForCausalLM" and two == renamed(one)


def test_pipelines_and_streams_answer_in_the_names_of_the_prompt(folders, capsys):
    model, tokenizer = load_checkpoint(folders["llama"])
    options = {"max_new_tokens": 30, "do_sample": False}
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer,
                    pipeline_class=NamesTextGenerationPipeline)  # fmt: skip
    one, two = ([row["generated_text"] for row in pipe(text, **options)] for text in TEXTS)
    assert two == [renamed(text) for text in one]
    batch = tokenizer(TEXTS[0], return_tensors="pt")
    streamer = TextStreamer(tokenizer, skip_prompt=True, names=batch.names)
    model.generate(**batch, **options, streamer=streamer)
    assert TEXTS[0] + capsys.readouterr().out.removesuffix("\n") == one[0]


@pytest.mark.quick_cases(1)
def test_a_folder_is_trained_measured_asked_and_shown(folder, tmp_path, monkeypatch):
    """As any model with names; its alpha-covariance is 1, and its answers follow the names."""
    out, _ = folder
    monkeypatch.chdir(tmp_path)
    pool = ["alpha", "gamma", "omega", "kappa", "ants", "bees"]
    pairs = [(a, b) for a in pool for b in pool if a != b]
    rows = [{"source": f"{a} sees {b}", "target": f"{b} {a}"} for a, b in pairs]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "extends": "text/small",
        "data": {"train": "pairs.jsonl"},
        "symbols": {"name": {"pattern": NAMES, "reserved": ["sees"]}},
        "training": {"output_dir": "run", "max_steps": 2, "eval_strategy": "no",
                     "save_strategy": "no", "load_best_model_at_end": False},
    }  # fmt: skip
    (tmp_path / "my.yaml").write_text(json.dumps(recipe))
    done = hf_alpha("train", "my.yaml", f"checkpoint={out}")
    assert done.code == 0, done.err
    _, tokenizer = load_checkpoint("run")
    assert [*tokenizer("alpha sees bees").names.values()] == ["alpha", "bees"]
    done = hf_alpha("evaluate", "run", out.parent / "host", "--data", "pairs.jsonl",
                    "--covariance", 2, "--samples", 2, "--out", "report")  # fmt: skip
    assert done.code == 0 and re.search(r"alpha_covariance  run( +100\.0)+\n", done.out), done.err
    assert "finds no name" not in done.err
    done = hf_alpha("solve", "--model", "run", "alpha sees bees")
    assert done.code == 0 and "answer" in done.out, done.err
    assert page_choices(["run"])["run"].rename("alpha sees bees").same
    assert "names         written as" in hf_alpha("info", "run").out


def test_a_template_that_writes_no_tools_is_named_where_their_names_are_sought(folders, tmp_path):
    said = []
    rules = {"name": NAMES, "tool": {"rule": "tools"}}
    convert_to_canonical(folders["llama"].parent / "host", tmp_path / "out", rules, said.append)
    assert "\nits chat template writes no tools, whose names are to be found" in said[0]


def test_trained_words_are_drawn_by_the_text_without_its_names(folders, tmp_path):
    """Other words for other texts, the same for renamed ones; saved and loaded, they are so too."""
    host, place = folders["llama"].parent / "host", tmp_path / "out"
    rules = {"second": "[A-Z]", "first": "[a-z]+"}  # not in the order of the alphabet
    convert_to_canonical(host, place, rules, lambda _: None, symbol_renaming="random")
    _, tokenizer = load_checkpoint(place)
    assert list(tokenizer.finder.rules) == ["second", "first"]
    words = [[*tokenizer(f"F sees x{'.' * number}").names] for number in range(9)]
    assert words[0] == [*tokenizer("G knows y").names] and len({*map(tuple, words)}) > 5
    pair = tokenizer.encode_pair("F sees x", "x sees F")
    assert pair["labels"][: len(pair["input_ids"])] != pair["input_ids"]


def test_rows_of_a_folders_tokenizer():
    """Two texts of a row have common names; answers may have new ones only if that is said."""
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), {"name": "[a-z]+"})
    batch = tokenizer("alice, v1", "bob, alice", return_offsets_mapping=True)
    assert batch.names == {"v1": "v1", "b": "alice", "c": "bob"}
    assert batch["offset_mapping"][0] == (0, 5)
    with pytest.raises(ValueError, match="the answer 'ann' has the name 'ann'"):
        tokenizer("bob", text_target="ann")
    batch = tokenizer("c of B", text_target="ann c", allow_absent_symbols=True)
    assert tokenizer.decode(batch["labels"]) == "f b"  # `B` is a name as well
    batch = tokenizer("bob <name_3>")  # which is no symbol, as there are none
    assert tokenizer.decode(batch["input_ids"], names=batch.names) == "bob <name_3>"
    tokenizer.use_rules({"other": {"column": "people"}})
    with pytest.raises(ValueError, match="text as MarkedText"):
        tokenizer("bob")
    bytes_of_text = CanonicalTokenizer.from_tokenizer(ByT5Tokenizer(), {"name": "[a-z]+"})
    assert bytes_of_text("bob")["input_ids"] == ByT5Tokenizer()("b")["input_ids"]
    with pytest.raises(ValueError, match="no end token"):
        CanonicalTokenizer.from_tokenizer(finish(Tokenizer(models.BPE()), False, unk_token="~"), {})


def test_a_tokenizer_and_its_chats_know_spellings_of_one_name():
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), {"name": {"column": "people"}})
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    text, names = "alice brown and brown", [["alice brown", "brown"]]
    chat = tokenizer.apply_chat_template([{"role": "user", "content": text}], names=names)
    for told in (tokenizer(text, names=names), chat):
        ids = told["input_ids"]
        assert tokenizer.decode(ids) == "b and b2"
        assert tokenizer.decode(ids, names=told.names) == text


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


# -- rings of molecules ---------------------------------------------------------------------------

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


def test_an_encoder_reads_rings_canonically(tmp_path):
    """Its weights stay, and so do its answers to what RDKit writes."""
    host = smiles()
    config = BertConfig(
        vocab_size=len(host), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=3,
    )  # fmt: skip
    for kind in (BertForMaskedLM, BertForSequenceClassification):
        place, out = tmp_path / kind.__name__, tmp_path / f"{kind.__name__}-canonical"
        kind(config).save_pretrained(place)
        host.save_pretrained(place)
        result = hf_alpha("convert", place, out, "--to", "canonical", "--names", "{rule: smiles}")
        assert "its tokenizer writes names as their rule spells them\n" in result.out, result
        tokenizer, model = AutoTokenizer.from_pretrained(out), kind.from_pretrained(out)
        assert weights_of(out) == weights_of(place)
        assert tokenizer.padding_side == host.padding_side == "right"
        texts = ["CN1CCC[C@H]1c1cccnc1", "CN7CCC[C@H]7c3cccnc3"]
        plain = host(texts, return_tensors="pt", return_token_type_ids=False)
        logits = model(**tokenizer(texts, return_tensors="pt")).logits
        assert torch.equal(logits[0], logits[1])
        torch.testing.assert_close(logits[0], kind.from_pretrained(place)(**plain).logits[0])
