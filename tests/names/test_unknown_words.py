"""Words that a model does not know, and no rule takes for a name, are told by whoever asks it."""

import html
import json
import logging

import pytest
from commands import hf_alpha
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import byte_level, unigram, word_level, word_piece
from test_model_cards import EXAMPLES

from hf_alpha import TextTokenizer, generate_answers
from hf_alpha.data.pairs import UserPairs
from hf_alpha.demo.choices import page_choices
from hf_alpha.demo.drawing import draw_solution
from hf_alpha.generation import encode_problems
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.names.unknown_words import TOLD, listed, unknown_words
from hf_alpha.recipe.schema import Data
from hf_alpha.resources import released_models
from hf_alpha.tasks.base import WARNED

RULE = {"name": {"pattern": "[xyz][0-9]*", "count": 9}}
ANF = released_models()["anf-relational"]
KNOWN, UNKNOWN = "größe & ( e\u0301 | 变量 )", "größe % ( e\u0301 | 7\u20e3 ) ^ 8"
SAID = "'%', '7\u20e3', '8'"


def test_words_are_named_in_order_whole_and_as_often_as_they_occur():
    tokenizer = TextTokenizer.from_texts(["f x , y\nf y"], RULE)
    texts = ["f x1 , größe\nh größe", "f  x", "f\tx h", "f x", "y"]
    assert unknown_words(tokenizer, texts) == [["größe", "h", "größe"], ["  "], ["h"], [], []]
    assert unknown_words(tokenizer, []) == []
    marked = MarkedText("f größe h", [(2, 7, "name")])
    assert unknown_words(word_level(words=("f",)), [marked, str(marked)]) == [
        ["h"], ["größe", "h"]
    ]  # fmt: skip
    subword = TextTokenizer.from_tokenizer(unigram(), RULE)
    assert unknown_words(subword, ["alice größe (ß) x1"]) == [["größe", "ß"]]
    assert listed(["b", "a", "b", "c"]) == "'b', 'a', 'c'" and "and 2 more" in listed("abcde")


WORDS = st.lists(st.sampled_from(["x", "y1", "alice", "and", "größe", "ß", "7", "変", "(", "¤"]))


@pytest.mark.parametrize("made", [word_level, word_piece, unigram, byte_level])
@given(words=WORDS, between=st.sampled_from([" ", "\n", "  "]))
def test_there_are_some_just_where_a_token_is_unknown(made, words, between):
    tokenizer = TextTokenizer.from_tokenizer(made(), RULE)
    text = between.join(words)
    found = unknown_words(tokenizer, [text])[0]
    unknown = tokenizer.unk_token_id
    assert bool(found) == (unknown is not None and unknown in tokenizer(text)["input_ids"])
    assert not {"x", "y1"} & {*found} and all(word in text for word in found)
    if made is byte_level:  # GPT-2 says that its end token is the unknown one
        tokenizer.unk_token = tokenizer.eos_token
        assert unknown_words(tokenizer, [text]) == [[]]


def test_solve_says_which(tmp_path):
    done = hf_alpha("solve", "--model", ANF, KNOWN, UNKNOWN)
    note = f"note: unknown to the model, and no name by its rules: {SAID}"
    assert [line for line in done.err.splitlines() if "unknown" in line] == [note]
    file = tmp_path / "answers.jsonl"
    hf_alpha("solve", "--model", ANF, "--out", file, KNOWN, UNKNOWN)
    printed = hf_alpha("solve", "--model", ANF, "--json", KNOWN, UNKNOWN).out.splitlines()
    for lines in (file.read_text().splitlines(), printed):
        first, second = map(json.loads, lines)
        assert first["notes"] == [] and [f"note: {said}" for said in second["notes"]] == [note]


def test_the_page_says_which():
    choice = page_choices([str(ANF)], device="cpu")[ANF.name]
    page = draw_solution(choice, choice.solve(UNKNOWN))
    said = html.escape(f"note: unknown to the model, and no name by its rules: {SAID}")
    assert f"<p>{said}</p>" in page
    assert "note:" not in draw_solution(choice, choice.solve(KNOWN))


def test_generate_answers_warns(caplog):
    model, tokenizer = load_checkpoint(ANF)
    settings = {"num_beams": 1, "max_new_tokens": 3, "progress": False}
    with caplog.at_level(logging.WARNING):
        generate_answers(model, tokenizer, [KNOWN], **settings)
        assert "know" not in caplog.text
        generate_answers(model, tokenizer, [KNOWN, UNKNOWN], **settings)
    WARNED.clear()
    said = f"and that are no names by its rules: {SAID}; answers can hardly be right"
    assert f"1 of 2 problems have words that the model does not know {said}" in caplog.text


def test_training_says_which_once(tmp_path, caplog):
    """Before its first step; an evaluation on the way says only what is new."""
    rows = [{"source": text, "target": "x"} for text in ("f x größe", "f y x")]
    (file := tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said: list[str] = []
    tokenizer = TextTokenizer.from_texts(["f x"], RULE)
    UserPairs(Data(train=str(file)), NameFinder(RULE), say=said.append).look(tokenizer)
    (line,) = [line for line in "\n".join(said).splitlines() if "unknown" in line]
    assert line.startswith("? 1 of ") and line.endswith("are unknown to the model: 'größe'")
    with caplog.at_level(logging.WARNING):
        encode_problems(tokenizer, [row["source"] for row in rows])
        assert "know" not in caplog.text
        encode_problems(tokenizer, ["f x größe", "f x größe neu"])
    TOLD.clear()
    WARNED.clear()
    assert "1 of 2 problems have words" in caplog.text and "rules: 'neu';" in caplog.text


@pytest.mark.parametrize("name", ["anf-relational", "kinship-folnet"])
def test_evaluate_says_it(name, tmp_path, caplog):
    folder = released_models()[name]
    rows = [{"source": KNOWN, "target": "x"}, {"source": UNKNOWN, "target": "x"}]
    if name == "kinship-folnet":
        shown = EXAMPLES.search((folder / "README.md").read_text(encoding="utf-8"))[1]
        told, people, answer = shown.splitlines()[:3]
        row = {"people": people, "relation": answer.strip().partition(" (")[0]}
        rows = [{**row, "told": told}, {**row, "told": f"{told} größe"}]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with caplog.at_level(logging.WARNING):
        done = hf_alpha("evaluate", folder, "--data", data, "--out", tmp_path / "out")
    WARNED.clear()
    assert done.code == 0, done.err
    assert "1 of 2" in caplog.text and "the model does not know" in caplog.text
    assert name == "kinship-folnet" or f"unknown to the model: {SAID}" in done.out
