import pickle
import re
import sys
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from reference import transduction as plain

from hf_alpha.transduction import Lexicon, Rule, Segment, Transducer, read_rules

TEXT = "The EU's E.U. fire  hoses of the European Commission."
ENTRIES = [
    ("fire hose", "COMPOUND"),
    ("Fire", "NOUN"),
    ("E.U.", "ORG"),
    ("European Commission", "ORG"),
    ("the European Commission", "ORG"),
]
DATES = [
    Rule("<MONTH> /[0-9]{1,2}/ (, /[0-9]{4}/)?", "DATE"),
    Rule('<PARTY> (on | "at the") <DATE>', "EVENT"),
]
PARTIES = [("Christmas party", "PARTY"), ("May", "MONTH"), ("December", "MONTH")]
INVITATION = "The Christmas party on December 12, 1999 was fun."


def make(**settings) -> Transducer:
    return Transducer.compile(Lexicon.from_entries(ENTRIES, plurals=True), **settings)


def make_cascade(**settings) -> Transducer:
    return Transducer.compile(Lexicon.from_entries(PARTIES), DATES, **settings)


def covered(transducer: Transducer, text: str) -> list[tuple[str, str]]:
    return [(text[start:stop], label) for start, stop, label in transducer.spans(text)]


def test_all_matches_are_kept_or_the_leftmost_longest():
    longest = [("E.U.", "ORG"), ("fire  hoses", "COMPOUND"), ("the European Commission", "ORG")]
    assert covered(make(match="longest"), TEXT) == longest
    assert sorted(covered(make(), TEXT)) == sorted(
        [*longest, ("fire", "NOUN"), ("European Commission", "ORG")]
    )


def test_rules_see_the_segments_of_those_before():
    longest = [
        ("Christmas party", "PARTY"),
        ("Christmas party on December 12, 1999", "EVENT"),
        ("December", "MONTH"),
        ("December 12, 1999", "DATE"),
    ]
    assert covered(make_cascade(match="longest"), INVITATION) == longest
    shorter = [("Christmas party on December 12", "EVENT"), ("December 12", "DATE")]
    assert sorted(covered(make_cascade(), INVITATION)) == sorted([*longest, *shorter])
    assert make_cascade().labels == ["MONTH", "PARTY", "DATE", "EVENT"]


WORDS = st.sampled_from(["a", "A", "b", "c", "12", "7", "?", "."])
PHRASES = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=3), st.sampled_from("XY")), max_size=6
)
ITEMS = st.one_of(
    st.tuples(st.just("word"), WORDS),
    st.tuples(st.just("regex"), st.sampled_from(["[ab]", "[0-9]{1,2}", "A|c"])),
    st.just(("any",)),
)
BOUNDS = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 3), (2, None)])


def expressions(labels: list[str]):
    items = ITEMS | st.tuples(st.just("label"), st.sampled_from(labels)) if labels else ITEMS
    return st.recursive(
        items,
        lambda inner: st.one_of(
            st.tuples(st.just("sequence"), inner, inner),
            st.tuples(st.just("choice"), inner, inner),
            st.builds(lambda part, bounds: ("repeat", part, *bounds), inner, BOUNDS),
        ),
        max_leaves=5,
    )


@st.composite
def cascades(draw):
    phrases = draw(PHRASES)
    known, rules = sorted({label for _, label in phrases}), []
    for label in draw(st.lists(st.sampled_from("XQR"), max_size=3)):
        rules.append((draw(expressions(known)), label))
        known = list(dict.fromkeys([*known, label]))
    return phrases, rules, known


@given(
    cascades(), st.lists(WORDS, max_size=9), st.sampled_from(["all", "longest"]),
    st.integers(2, 9), st.integers(1, 9),
)  # fmt: skip
@example(([], [(("repeat", ("word", "a"), 1, None), "X")], ["X"]), ["a"] * 3, "all", 9, 2)
@example(([(["a"], "X"), (["a"], "Y")], [], ["X", "Y"]), ["a"], "longest", 9, 9)
def test_equals_plain_matching(cascade, words, match, most, max_units):
    """Segments, their order and the number of dropped ones, of lexicons and rules."""
    phrases, rules, labels = cascade
    transducer = Transducer.compile(
        Lexicon.from_entries((" ".join(phrase), label) for phrase, label in phrases),
        [Rule(plain.written(expression), label) for expression, label in rules],
        match=match,
        max_per_position=most,
        max_units=max_units,
    )
    expected, dropped = plain.transduce(words, phrases, rules, labels, match, most, max_units)
    gamma = transducer("  ".join(words))
    assert gamma.words == words
    assert gamma.segments == tuple(Segment(start, label, end) for start, end, label in expected)
    assert transducer.labels == labels and transducer.dropped == dropped


TEXTS = st.text("aA. -İi\u0301áéन\u0926ी京\x1f\u00a0ΣςßK❤\ufe0f", max_size=8)


@given(st.lists(TEXTS, max_size=4), TEXTS, st.booleans(), st.booleans())
@example(["İ"], "xİ İ", True, True)
@example(["नदी", "cafe"], "cafe\u0301 नदी", False, True)
def test_any_text(phrases, text, characters, lowercase):
    """Units cover all but white space; a phrase is found where its own units stand."""
    phrases = [phrase for phrase in phrases if phrase.strip()]
    transducer = Transducer.compile(
        Lexicon.from_entries((phrase, "X") for phrase in phrases),
        unit="characters" if characters else "words",
        lowercase=lowercase,
        max_per_position=1000,
    )
    gamma = transducer(text)
    assert "".join(gamma.words) == regex.sub(r"\s", "", text)
    assert transducer.spans(text) == [
        (gamma.units[s.start][0], gamma.units[s.end][1], s.label) for s in gamma.segments
    ]

    def form(unit: str) -> str:
        composed = unicodedata.normalize("NFC", unit)
        return composed.lower() if lowercase else composed

    found = {tuple(map(form, gamma.words[s.start : s.end + 1])) for s in gamma.segments}
    wanted = {tuple(map(form, transducer(phrase).words)) for phrase in phrases}
    units = tuple(map(form, gamma.words))
    spans = {units[i : j + 1] for i in range(len(units)) for j in range(i, len(units))}
    assert found == wanted & spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't cafe\u0301 हिन्दी", ["don", "'", "t", "cafe\u0301", "हिन्दी"]),
        ("snake_case E.U. 10,000", ["snake_case", "E", ".", "U", ".", "10", ",", "000"]),
        ("I ❤\ufe0f NY ❤\ufe0flove", ["I", "❤\ufe0f", "NY", "❤\ufe0f", "love"]),
    ],
)
def test_words_are_those_of_the_unicode_alphabets(text, words):
    """Marks belong to the sign before them."""
    assert Transducer.compile()(text).words == words


@pytest.mark.parametrize("unit", ["words", "characters"])
@pytest.mark.parametrize("ours", ["NFC", "NFD"])
@pytest.mark.parametrize("theirs", ["NFC", "NFD"])
def test_composed_and_decomposed_letters_are_the_same(unit, ours, theirs):
    """In phrases, in words of rules and in their regular expressions; places are the text's."""
    lexicon = Lexicon.from_entries([(unicodedata.normalize(ours, "Café Zoë"), "PLACE")])
    rules = [
        Rule(unicodedata.normalize(ours, pattern), label)
        for pattern, label in (("é à", "X"), ("/[é]/ /à/", "Y"))
    ]
    transducer = Transducer.compile(lexicon, rules, unit=unit)
    place, letters = (unicodedata.normalize(theirs, part) for part in ("CAFÉ ZOË", "é à"))
    text = f"京 {place}: {letters}."
    assert covered(transducer, text) == [(place, "PLACE"), (letters, "X"), (letters, "Y")]


def test_characters():
    lexicon = Lexicon.from_entries([("北京", "CITY"), ("北京大学", "ORG")])
    transducer = Transducer.compile(lexicon, [Rule("<CITY> 大学", "SCHOOL")], unit="characters")
    assert covered(transducer, "在北京 大学。") == [
        ("北京", "CITY"), ("北京 大学", "ORG"), ("北京 大学", "SCHOOL"),
    ]  # fmt: skip


def test_upper_and_lower_case():
    entries, rules = [("Turkey", "COUNTRY")], [Rule("<COUNTRY> Today", "NEWS")]
    text = "turkey Turkey today"
    for lowercase, found in [(True, "turkey Turkey Turkey today"), (False, "Turkey")]:
        lexicon = Lexicon.from_entries(entries)
        transducer = Transducer.compile(lexicon, rules, lowercase=lowercase)
        assert " ".join(word for word, _ in covered(transducer, text)) == found
    capital = Transducer.compile(rules=[Rule("/[A-Z].*/ /.*/", "NAME")])
    assert covered(capital, "the Dog ran") == [("Dog ran", "NAME")]  # as the text writes it


def test_segments_beyond_d_are_dropped_counted_and_warned_of_once(caplog):
    entries = [(" ".join("abcdef"[:length]), "X") for length in range(1, 7)]
    transducer = Transducer.compile(Lexicon.from_entries(entries))
    for _ in range(2):
        assert [s.end for s in transducer("a b c d e f").segments] == [3, 4, 5]
    assert transducer.dropped == 6
    assert caplog.text.count("max_per_position=4") == 1


@pytest.mark.parametrize("way", ["saved", "pickled", "from settings"])
def test_the_same_transducer_comes_back(way, tmp_path):
    transducer = make_cascade(match="longest", max_per_position=9)
    if way == "saved":
        transducer.save(tmp_path / "new" / "fst")
        again = Transducer.load(tmp_path / "new" / "fst")
        assert {path.name for path in (tmp_path / "new" / "fst").iterdir()} == {
            "transducer.json", "lexicon.tsv",
        }  # fmt: skip
    elif way == "pickled":
        again = pickle.loads(pickle.dumps(transducer))
    else:
        (tmp_path / "lexicon.tsv").write_text("".join(f"{p}\t{label}\n" for p, label in PARTIES))
        again = Transducer.from_settings(
            {"lexicon": str(tmp_path / "lexicon.tsv"), **transducer.settings()}
        )
    assert again(INVITATION) == transducer(INVITATION)
    assert (again.labels, again.settings()) == (transducer.labels, transducer.settings())


def test_settings_name_files_of_rules_and_several_lexicons(tmp_path):
    (tmp_path / "months.txt").write_text("name\nMay\nDecember\n")
    (tmp_path / "party.tsv").write_text("Christmas party\tPARTY\tnoun\n")
    (tmp_path / "rules.yaml").write_text(
        "".join(f"- pattern: '{rule.pattern}'\n  label: {rule.label}\n" for rule in DATES)
    )
    months = {"path": str(tmp_path / "months.txt"), "label": "MONTH", "header": True}
    transducer = Transducer.from_settings(
        {"lexicon": [months, str(tmp_path / "party.tsv")], "rules": str(tmp_path / "rules.yaml")}
    )
    assert transducer(INVITATION) == make_cascade()(INVITATION)


LEXICON = Lexicon.from_entries([("a", "A")])


def from_settings(**settings):
    return lambda: Transducer.from_settings(settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (from_settings(lexikon="x"), "unknown key 'lexikon'; did you mean 'lexicon'"),
        (from_settings(match="most"), "match must be one of all, longest; not 'most'"),
        (from_settings(unit="syllables"), "unit must be one of words, characters; not 'syllables'"),
        (from_settings(max_units=0), "max_units must be at least 1, not 0"),
        (from_settings(max_units="9"), "max_units: Input should be a valid integer; it is '9'"),
        (from_settings(lexicon={"label": "X"}), "lexicon: the key 'path' is missing"),
        (from_settings(lexicon={"pathh": "X"}), "unknown key 'pathh'; did you mean 'path'"),
        (from_settings(rules=[{"pattern": "a"}]), "rule 1 has no 'pattern' and 'label'"),
        (from_settings(rules={"pattern": "a"}), "rules: write a list of rules"),
        (lambda: Transducer.compile(["a"]), "lexicon must be a Lexicon, not ['a']"),
        (lambda: Transducer.compile(LEXICON, Rule("a", "A")), "must be a list of Rule, not Rule("),
        (lambda: Transducer.compile(LEXICON, ["a"]), "rules must be a list of Rule, not ['a']"),
        (lambda: Transducer.compile(max_per_position=1), "max_per_position must be at least 2"),
        (lambda: Lexicon.from_entries({"a": "B"}), "entry 1: 'a' is no pair of phrase and label"),
        (lambda: Lexicon.from_entries([("a", 1)]), "entry 1: ('a', 1) is no pair of phrase and"),
        (lambda: Lexicon.from_file("nope.tsv"), "No such file or directory: 'nope.tsv'"),
        (lambda: read_rules("nope.yaml"), "No such file or directory: 'nope.yaml'"),
        (lambda: Transducer.load("nope"), "there is no transducer in nope: hf-alpha transduce --s"),
    ],
)
def test_arguments_that_are_wrong(make, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=re.escape(message)):
        make()


def test_files_that_do_not_belong_together(tmp_path):
    make().save(tmp_path)
    lexicon = tmp_path / "lexicon.tsv"
    whole = lexicon.read_bytes()
    for damaged in (whole[:-5], whole[:-1] + b"\xff\n", whole.replace(b"fire", b"wire")):
        lexicon.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"lexicon\.tsv is not the file that transducer\.json"):
            Transducer.load(tmp_path)
    lexicon.write_bytes(whole)
    settings_file = tmp_path / "transducer.json"
    settings_file.write_text(settings_file.read_text().replace("NOUN", "VERB"))
    with pytest.raises(ValueError, match=r"transducer\.json is damaged: its labels are not those"):
        Transducer.load(tmp_path)


def test_rules_of_a_file_are_named_with_it(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text("- {pattern: 'a <B>', label: A}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}: rule 1, 'a <B>', column 3: no entry")):
        Transducer.from_settings({"rules": str(path)})


def test_a_transducer_that_finds_nothing_is_warned_of(caplog):
    Transducer.compile(LEXICON), Transducer.compile(rules=[Rule("a", "A")])
    assert not caplog.records
    Transducer.compile(Lexicon({}))
    assert "the transducer has no phrase and no rule: it finds nothing" in caplog.text


@pytest.mark.parametrize(
    ("module", "package"), [("ahocorasick", "pyahocorasick"), ("pynini", "pynini")]
)
def test_says_how_to_install_what_is_missing(module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # importing it is an error
    message = f"{package} is not installed: pip install 'hf_alpha[transduction]'"
    with pytest.raises(ImportError, match=re.escape(message)):
        make_cascade()


def test_several_labels_are_all_kept_and_said_once(caplog):
    entries = [("US", "COUNTRY"), ("us", "PRONOUN"), ("fire", "NOUN")]
    transducer = Transducer.compile(Lexicon.from_entries(entries))
    assert covered(transducer, "us") == [("us", "COUNTRY"), ("us", "PRONOUN")]
    assert "1 of 2 phrases of the lexicon have several labels" in caplog.text
    assert "'us': COUNTRY, PRONOUN" in caplog.text and len(caplog.records) == 1
    caplog.clear()
    assert pickle.loads(pickle.dumps(transducer)).labels and not caplog.records
