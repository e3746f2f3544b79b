import re

import pytest

from hf_alpha.transduction import Lexicon, Rule, Transducer, automaton, read_rules

KNOWN = "no entry of the lexicon and no rule before has the label"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a <MNTH>", f"column 3: {KNOWN} 'MNTH'; known: MONTH, DAY"),
        ("<OWN>", f"column 1: {KNOWN} 'OWN'"),
        ("a (b | c", "column 3: this ( is not closed"),
        ("a ) b", "column 3: this ) has no ( before it"),
        ("a /[0-9/", "column 4: /[0-9/ is no regular expression: unterminated character set"),
        ("a /[0-9]", "column 3: '/' begins nothing here; put signs of the text in double quotes"),
        ("a | ", "column 5: an item is missing"),
        ("", "column 1: an item is missing"),
        ("a ( )", "column 5: an item is missing"),
        ("a | * b", "column 5: * has nothing before it to repeat"),
        ("a{3,2}", "column 2: {3,2}: the second number is the smaller one"),
        ("a{0}", "column 2: {0}: write 1 to 100 times"),
        ("a{2,101}", "column 2: {2,101}: write 1 to 100 times"),
        ('a " "', 'column 3: " " holds no word'),
    ],
)
def test_says_where_a_rule_is_wrong(pattern, message):
    lexicon = Lexicon.from_entries([("May", "MONTH")])
    with pytest.raises(ValueError) as error:
        Transducer.compile(lexicon, [Rule("/[0-9]{1,2}/", "DAY"), Rule(pattern, "OWN")])
    assert str(error.value).startswith(f"rule 2, {pattern!r}, {message}")
    with pytest.raises(ValueError, match=r"rule 1, 'a', column 1: its label '' is empty"):
        Transducer.compile(rules=[Rule("a", "")])


@pytest.mark.parametrize(
    ("pattern", "column"), [("(a|b)* a (a|b){30}", 1), ("a? (b? c){99}{99}{99}", 18)]
)
def test_rules_that_would_take_very_long(pattern, column):
    with pytest.raises(ValueError) as error:
        Transducer.compile(rules=[Rule(pattern, "X")])
    assert f"{error.value}".startswith(f"rule 1, {pattern!r}, column {column}: it needs 2,000")


def test_expressions_that_take_very_long(monkeypatch):
    monkeypatch.setattr(automaton, "TIME_LIMIT", 0.1)
    transducer = Transducer.compile(rules=[Rule("the /(a|aa)+c/", "X")])
    assert len(transducer("the aac").segments) == 1
    with pytest.raises(ValueError, match=r"the pattern '\(a\|aa\)\+c' takes more than"):
        transducer("the " + "a" * 60)


@pytest.mark.parametrize("most", [16, 297, 298])
def test_repetitions_beyond_max_units_match_nothing(most):
    transducer = Transducer.compile(rules=[Rule("(a b c){99} d", "X")], max_units=most)
    assert len(transducer(f"{'a b c ' * 99} d").segments) == (most == 298)


def test_signs_of_a_text_stand_in_quotes():
    rules = [Rule('"U.S." don\'t "(" /\\// ","?', "X")]
    assert len(Transducer.compile(rules=rules)("the U.S. don't (/, ok").segments) == 2


def test_reads_files(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text("- {pattern: <MONTH> ., label: DATE}\n")
    assert read_rules(path) == [Rule("<MONTH> .", "DATE")]
    for content, message in [
        ("pattern: a", "write a list of rules, each with 'pattern' and 'label'"),
        ("- a", "rule 1 has no 'pattern' and 'label': 'a'"),
        ("- {pattern: 1, label: X}", "rule 1: pattern: Input should be a valid string; it is 1"),
        ("- {pattern: a, label: X, b: c}", "rule 1: unknown key 'b'"),
        ("- {pattern: a, label: X}\n- {", "rules.yaml: not valid YAML: line 2, column 4: "),
        ("a: \0", "rules.yaml: not valid YAML: unacceptable character #x0000: special"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=re.escape(message)) as error:
            read_rules(path)
        assert "\n" not in f"{error.value}"
