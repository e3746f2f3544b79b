"""What a model writes in a chat, in parts of any size: text, thoughts, calls."""

import json

import pytest
from transformers import LlamaConfig
from transformers.cli.serving.utils import get_response_template

from hf_alpha.serve.messages import MessageReader, add

START = "<|im_start|>assistant\n"
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": [1, "é"]}}\n</tool_call>'
DEEP = "[" * 5000


def called(*calls):
    """As a model writes them, with the arguments as they are."""
    return " ".join(
        f'<tool_call>{{"name": "{name}", "arguments": {written}}}</tool_call>'
        for name, written in calls
    )


def read(text, size, finish="stop", family="qwen2", prefix=START):
    """Deltas of a text that comes in parts, and the message they make."""
    model = type("Model", (), {"config": LlamaConfig()})
    model.config.model_type = family
    reader = MessageReader(get_response_template(None, model), prefix, [])
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    deltas = [delta for part in parts for delta in reader.feed(part, None)]
    deltas += reader.feed("", finish)
    message = {"content": "", "reasoning_content": ""}
    for delta in deltas:
        add(message, delta)
    calls = message.pop("tool_calls", [])
    assert len({call["id"] for call in calls}) == len(calls) == reader.calls
    return deltas, message, [(c["function"]["name"], c["function"]["arguments"]) for c in calls]


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"a {CALL} {CALL}", "a", [("f", '{"a": [1, "é"]}')] * 2),
        ("b <tool", "b <tool", []),
        # a call, whatever its arguments are
        (called(("f", '{"a": "}\\\\"}'), ("g", "{}")), "", [("f", '{"a": "}\\\\"}'), ("g", "{}")]),
        (called(("f", '{"a": ]}')) + CALL, "", [("f", '{"a": ]'), ("f", '{"a": [1, "é"]}')]),
        (called(("f", f'{{"a": {DEEP}')), "", [("f", f'{{"a": {DEEP}}}</tool_call>')]),
        ('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', "", [("f", '{"a": 1}')]),
        (called(("f", '"{}"')), "", [("f", "{}")]),
        # no calls
        *(
            (f"a <tool_call>{written}</tool_call> b", None, [])
            for written in ("f()", '[{"name": "f", "arguments": {}}]', "1", '"f"', "null", DEEP,
                            '{"name": "f"}', '{"name": 1, "arguments": {}}', "{}", '{"name": "f", ',
                            '{"name": "f", "arguments": [1]}', '{"name": "", "arguments": {}}')
        ),
        (f"<tool_call>1</tool_call>{CALL}", "<tool_call>1</tool_call>", [("f", '{"a": [1, "é"]}')]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 10**6])
def test_what_is_no_call_is_text(text, content, calls, size):
    deltas, message, found = read(text, size)
    if text.count("[") >= len(DEEP) and calls:  # of it all, to the end
        assert found[0][1].startswith(calls[0][1][:5000]) and len(found) == 1
    else:
        assert found == calls
    assert message["content"].split() == (text if content is None else content).split()
    for delta in deltas:  # the name first
        for call in delta.get("tool_calls", []):
            assert ("id" in call) == ("name" in call["function"])


@pytest.mark.parametrize("size", [1, 3, 10**6])
def test_a_call_that_is_cut_off_is_what_there_is_of_it(size):
    whole = 'a <tool_call>{"name": "f", "arguments": {"b": {}, "c": 1}}</tool_call>'
    for stop in range(whole.index("{"), len(whole) + 1):
        _, message, calls = read(whole[:stop], size, "length")
        assert message["content"].strip() == "a"
        written = whole[:stop].partition('"arguments": ')[2].removesuffix("</tool_call>")
        named = stop >= len('a <tool_call>{"name": "f"')
        assert calls == ([("f", written[: len('{"b": {}, "c": 1}')])] if named else [])
    # of a dialect that writes the name before the call; and no call
    assert read("<|tool_call>call:f{a:<|", size, "length", "gemma4", "")[2] == [("f", "")]
    assert read("a <tool_call>f(", size, "length")[1]["content"] == "a <tool_call>f("


def test_arguments_come_as_they_are_written_behind_the_name():
    deltas, _, _ = read(f"a{CALL}", 1)
    first, *rest = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert first["function"] == {"name": "f", "arguments": ""} and first["type"] == "function"
    assert [call["function"]["arguments"] for call in rest] == [*'{"a": [1, "é"]}']


def test_thoughts_are_told_apart_also_where_the_prompt_begins_them():
    for text, prefix in (("<think>so</think> b", START), ("so</think> b", f"{START}<think>\n")):
        message = read(text, 1, prefix=prefix)[1]
        assert (message["reasoning_content"], message["content"].strip()) == ("so", "b")


def test_what_stands_before_an_answer_does_no_harm():
    """Calls that a prompt shows, and an answer that is gone on with, in the midst of a call too."""
    for prefix in ("Write <tool_call>{...}</tool_call>.", f"{START}<tool_call>[1]</tool_call> "):
        assert read(CALL, 1, prefix=prefix)[2] == [("f", '{"a": [1, "é"]}')]
    begun = f'{START}<tool_call>{{"name": "f", "arguments": {{"a'
    (call,) = read('": 1}}</tool_call>', 3, prefix=begun)[2]
    assert call[0] == "f" and json.loads(call[1]) == {"a": 1}
