import re
from itertools import pairwise

import pytest

from hf_alpha.transduction import Lexicon
from hf_alpha.transduction.lexicon import PhraseMatcher, plural


def test_reads_files(tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_bytes("\ufefffire hose\tCOMPOUND\tnoun\r\n\n  \nUS\tCOUNTRY\nUS\tPRONOUN\n".encode())
    lexicon = Lexicon.from_file(path)
    assert lexicon.entries == {"fire hose": ("COMPOUND",), "US": ("COUNTRY", "PRONOUN")}
    path.write_text("lemma\tpos\nfire hose\tn\nwar crime\n")
    lexicon = Lexicon.from_file(path, label="MWE", header=True, plurals=True)
    assert set(lexicon.entries) == {"fire hose", "fire hoses", "war crime", "war crimes"}
    joined = lexicon | Lexicon.from_entries([("war crime", "LAW"), ("war crime", "MWE")])
    assert joined.entries["war crime"] == ("MWE", "LAW") and len(joined) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tX\nb X\n", "lexicon.tsv, line 2: 'b X' has no tab: write phrase, tab, label"),
        (b"a\tX\n \tX\n", "lexicon.tsv, line 2: the phrase is empty (its label is 'X')"),
        (b"\n\na\t \n", "lexicon.tsv, line 3: the label of 'a' is empty"),
        (b"a\tX\n\xff\tX\n", "lexicon.tsv is no text in UTF-8"),
    ],
)
def test_says_which_line_is_wrong(content, message, tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        Lexicon.from_file(path)


def test_says_which_entry_is_wrong():
    with pytest.raises(ValueError, match=r"entry 2: the label 'X\\tY' has a tab"):
        Lexicon.from_entries([("a", "X"), ("b", "X\tY")])


def test_regular_plurals_of_english():
    forms = "hose hoses, party parties, key keys, box boxes, watch watches, 7 7, bus buses"
    for one, many in map(str.split, forms.split(",")):
        assert plural(f"red {one}") == f"red {many}"


def test_many_words_are_told_apart():
    words = [f"w{number}" for number in range(5000)]
    lines = [f"{one} {two}\tX" for one, two in pairwise(words)]
    matcher = PhraseMatcher(lines, {"X": 0})
    assert matcher.find(words) == [(at, at + 1, (0,)) for at in range(4999)]
    assert matcher.find(words[::2]) == matcher.find(words[::-1]) == []
