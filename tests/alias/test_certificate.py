"""Certificates: of what reaches a model, of its answers, and of a file by the command."""

import json

import pytest
from commands import hf_alpha
from hosts import make_host
from openai_chats import FIRST, NAMES, echoing, request
from serving import CHAT as TEMPLATE
from small_tokenizers import byte_level

from hf_alpha import CanonicalNames
from hf_alpha.alias import certificate
from hf_alpha.alias.certificate import INVENTED, SWAPPED, WORDS, Certificate, certify, renamed
from hf_alpha.canonical import convert_to_canonical

CHAT = [("user", [0, "for", 2, '"x"', "b"]), ("assistant", [1, "and", 3]), ("user", ["1_000_x"])]


def test_canonical_requests_are_certified():
    """All kinds of renamings are tried, of tools, people and what a pattern finds."""
    made = certify([request(CHAT, FIRST), request(CHAT[:1], FIRST)], NAMES)
    assert made.holds and made.texts == 2 and made.names == 7
    assert made.renamings == dict.fromkeys([SWAPPED, *INVENTED, WORDS], 2)
    assert made.undescribed == {"sky.probe": 2} and made.like_names == {"1_000_x": 1}
    assert json.loads(json.dumps(made.to_dict()))["holds"] is True
    assert str(made) == "2 texts, 7 names, 14 renamings: 0 reach the model otherwise"
    names = CanonicalNames({"x": {"pattern": "[xyz]\\w*", "reserved": ["xor"]}})
    made = certify([{"prompt": "x1 xor y and z"}], names)
    assert made.holds and made.renamings == {SWAPPED: 1, "invented": 1}  # others are no names


def test_certificates_of_shares_add_up():
    find = {"function": lambda text: [] if text < "b" else [(0, text.find(" "))]}
    names = CanonicalNames({"x": find})
    requests = [{"prompt": f"{name} = 1"} for name in ("b", "d", "c", "f")]
    whole = certify(requests, names)
    shares = [certify(requests, names, shard=(number, 3)) for number in (1, 2, 3)]
    assert [one.texts for one in shares] == [2, 1, 1] and len(whole.differing) == 4
    assert sum(shares[::-1], Certificate()) == whole


def test_what_depends_on_names_is_found():
    """A rule that takes one spelling for another thing; a plain model whose answer is a name."""
    find = {"function": lambda text: [] if text < "b" else [(0, text.find(" "))]}
    made = certify([{"prompt": "b = 1"}], CanonicalNames({"x": find}))
    assert not made.holds and made.missed == made.differing == [(0, "reserved")]  # None_0
    assert str(made).endswith("1 reach the model otherwise, 1 of them as a name is not found")
    body = request(CHAT, FIRST)
    other = renamed(NAMES, body, {("tool", "get_weather"): "aaa_1", ("person", "größe"): "c"})
    assert "get_weather" not in json.dumps([other["messages"], other["tools"]])
    assert other["names"]["person"] == [["Ann Lee", "Lee"], "c"]

    def first_in_order(sent):
        name = min(word for word in json.dumps(sent["tools"]).split('"') if "_" in word)
        call = {"name": name, "arguments": "{}"}
        message = {"content": f"so {name}", "tool_calls": [{"function": call}]}
        return {"choices": [{"message": message}]}

    two = {"messages": [], "tools": [tool("a_x"), tool("b_y")]}
    rules = CanonicalNames({"tool": {"rule": "tools"}})
    made = certify([two], rules, first_in_order)
    assert made.holds and made.asked == 7 and (0, SWAPPED) in made.changed_plain
    assert str(made).split("\n")[1:] == [
        f"plain      {len(made.changed_plain)} of 7 answers change",
        "canonical  0 of 7 answers change",
    ]
    with pytest.raises(ValueError, match="text 2: the request is not"):
        certify([two, {"messages": [1]}], rules)


@pytest.mark.parametrize("name", ["get_x", "sky.probe", "GET_X", "变量_x"])
def test_forms_of_names_in_answers_are_renamed_as_the_names(name):
    """A model wrote them, of words; a name that would lose its form stays."""
    rules = CanonicalNames(
        {"tool": {"rule": "tools"}, "person": {"column": "of"}}, words={"person": "Person"}
    )
    said = f"{name.upper()}: _{name}_ {name}s, {name.capitalize()} and BOBs"
    messages = [{"role": "user", "content": f"Bob, {name}"}, {"role": "assistant", "content": said}]
    body = {"messages": messages, "tools": [tool(name)], "names": {"person": ["Bob"]}}
    made = certify([body], rules)
    assert made.holds and sum(made.renamings.values()) >= 6
    assert [*made.like_names] == ["Get_x"] * (name == "GET_X")
    table = {("tool", name): "do_it", ("person", "Bob"): "Ann Lee"}
    new = renamed(rules, body, table)["messages"][1]["content"]
    assert name not in new and new.endswith("and ANN LEEs")
    assert ("DO_IT: _do_it_ do_its, Do_it" in new) == (name in ("get_x", "sky.probe"))


def tool(name):
    return {"type": "function", "function": {"name": name, "description": "A tool."}}


ONE = {"messages": [{"role": "user", "content": "use a_x"}], "tools": [tool("a_x")]}


def test_a_word_of_any_length_takes_no_longer_than_its_letters():
    """It took time with the square of its letters: a quarter of an hour for so many."""
    made = certify([{"prompt": "a" * 200_000}], CanonicalNames({"letter": "[a-z]"}))
    assert made.holds and made.names == 0


def test_the_command(tmp_path):
    """Of lines of JSON and of text; with an address; exit status and file of figures."""
    chats = tmp_path / "chats.jsonl"
    chats.write_text("".join(json.dumps(request(CHAT, FIRST)) + "\n" for _ in range(2)))
    rules = ["--names", "tool={rule: tools}", "--names", "person={column: people}"]
    done = hf_alpha("certify", chats, *rules, "--out", tmp_path / "figures.json")
    assert done.code == 0 and done.out.startswith("2 texts, 8 names, 14 renamings: 0 reach")
    assert "only their names say what these are for: sky.probe (2)" in done.err
    assert "not found, though they look like names: 1_000_x (2)" in done.err
    assert json.loads((tmp_path / "figures.json").read_text())["renamings"][SWAPPED] == 2
    assert "exists" in hf_alpha("certify", chats, *rules, "--out", tmp_path / "figures.json").err
    texts = tmp_path / "texts.txt"
    texts.write_text("def f(a, b): return a\n\nx = 1\n")
    done = hf_alpha("certify", texts, "--names", "{rule: python}")
    assert done.code == 0 and done.out.startswith("2 texts, 4 names,")
    (tmp_path / "hosts.jsonl").write_text('{"source": "link from a1.eu to b2.eu is down"}\n')
    done = hf_alpha("certify", tmp_path / "hosts.jsonl", "--names", r"[a-z]\d\.eu")
    assert done.code == 0 and "1 text, 2 names, 1 renaming: 0 reach" in done.out
    assert "renamed by names of the same text alone: no other name fits the rules" in done.err
    for rule, why in [(r"\w+\.us", "the rules find no name"), (r"a1\.eu", "no other name fits")]:
        done = hf_alpha("certify", tmp_path / "hosts.jsonl", "--names", rule)
        assert done.code == 2 and f"nothing was renamed, in 1 text: {why}" in done.err
    (tmp_path / "bad.jsonl").write_text('{"source": "x"}\n{"target": "x"}\n')
    done = hf_alpha("certify", tmp_path / "bad.jsonl", "--names", "[a-z]")
    assert done.code == 2 and "row 1 has no `messages`, `prompt` or `source`" in done.err
    assert "say which one is the text by `--source`" in done.err
    (tmp_path / "one.jsonl").write_text(json.dumps(ONE))
    with echoing() as server:
        done = hf_alpha("certify", tmp_path / "one.jsonl", *rules[:2], "--upstream", server.url)
    assert done.code == 0 and "plain      0 of 6 answers change\ncanonical  0 of 6" in done.out


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        (("so a", False), ("so a", False), True),
        (("so a", False), ("so a b", False), False),
        (("so a zuk", True), ("so a name and", True), True),
        (("so a zuk", True), ("so b name", True), False),
        (("so a b", False), ("so a b and mo", True), False),
    ],
)
def test_an_answer_that_was_cut_off_is_compared_as_far_as_it_goes(first, second, agree):
    one, two = (certificate._Said(*said) for said in (first, second))
    assert certificate._agree(one, two) == certificate._agree(two, one) == agree


def test_a_model_of_this_process(tmp_path):
    """Plain, its answers change; in canonical spelling and as a folder that spells, none does."""
    plain, spelling = tmp_path / "plain", tmp_path / "spelling"
    tokenizer = byte_level()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(plain)
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    host = make_host("llama", **sizes, eos_token_id=None)
    host.save_pretrained(plain)
    convert_to_canonical(plain, spelling, {"tool": {"rule": "tools"}}, say=lambda _: None)
    file, asked = tmp_path / "one.jsonl", ["--names", "{rule: tools}", "--max-tokens", "20"]
    file.write_text(json.dumps(ONE) + "\n" + json.dumps({"prompt": "alice"}))
    done = hf_alpha("certify", file, *asked, "--model", plain, "--out", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert done.code == 0 and figures["changed"] == [] and len(figures["changed_plain"]) >= 3
    done = hf_alpha("certify", file, *asked, "--model", spelling)
    assert done.code == 0 and "plain      0 of 6 answers change" in done.out
    for template, told in (
        (None, "text 1: the tokenizer has no chat template"),
        ("{{ messages[0].content }}", "text 1: the chat template leaves out"),
    ):
        (plain / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer.chat_template = template
        tokenizer.save_pretrained(plain)
        assert told in hf_alpha("certify", file, *asked, "--model", plain).err
    make_host("t5").save_pretrained(tmp_path / "t5")
    assert "is no decoder" in hf_alpha("certify", file, *asked, "--model", tmp_path / "t5").error
    assert (
        "two models" in hf_alpha("certify", file, *asked, "--model", plain, "--upstream", "x").error
    )
