"""Chats as data, spelled canonically: bytes depend on no name, and answers get names back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_chats import FIRST, NAMES, SECOND, request, written

from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import certify, renamed
from hf_alpha.alias.chat import CanonicalRequest, CanonicalStream, _note_not_given

PLAIN = ["and", "b", "tool_c", "PERSONB", "Persons", "it's", '"x"', "\\n", "личность", "\n"]
PLAIN += ["_PersonC_", "tool_bs", "PersonB3", "personc2s"]
said = st.lists(st.sampled_from(PLAIN) | st.integers(0, 4), min_size=1, max_size=8)
turns = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), said))


def spelled(template, names, last=None):
    one = CanonicalRequest(NAMES, request(template, names, last))
    assert one.body.pop("x_unknown") == {"city": names[0]} and "names" not in one.body
    return one


@given(turns)
def test_a_renamed_chat_is_the_same_to_the_model(template):
    """Byte for byte, whatever names are called; and a chat's beginning is spelled as in it."""
    one, two = (spelled(template, names) for names in (FIRST, SECOND))
    assert json.dumps(one.body) == json.dumps(two.body)
    for last in range(len(template)):
        beginning = spelled(template, SECOND, last).body
        assert beginning["messages"] == two.body["messages"][:last]
        assert beginning["tools"] == two.body["tools"]
    function = one.body["tools"][0]["function"]
    assert function["name"] == one.body["tool_choice"]["function"]["name"] == "tool_b"
    assert function["parameters"]["required"] == ["tool_c"]


def answer_of(one):
    """An answer that says all that was said and calls all that was called, with forms of words."""
    texts = [message["content"] for message in one.body["messages"]]
    person = one.body["messages"][0]["content"].split()[0]
    called = {"name": "tool_b", "arguments": f'{{"tool_c":  "x {person}\\ntool_b"}}'}
    return {
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "\n".join(texts),
                    "tool_calls": [{"id": "1", "type": "function", "function": called}],
                },
            }
        ],
        "usage": {"total_tokens": 1},
    }


@given(turns, st.sampled_from([FIRST, SECOND]), st.data())
def test_what_an_answer_repeats_comes_back_as_it_was(template, names, data):
    """At once, and in a stream that is cut anywhere."""
    template = [("user", [2, 3]), *template]
    one = spelled(template, names)
    answer = answer_of(one)
    back = one.back(answer)
    message = back["choices"][0]["message"]
    assert message["content"] == "\n".join(written(parts, names) for _, parts in template)
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == names[0] and back["usage"] == {"total_tokens": 1}
    assert json.loads(call["function"]["arguments"]) == {names[1]: f"x {names[2]}\n{names[0]}"}
    assert '":  "' in call["function"]["arguments"]

    stream, deltas = CanonicalStream(one, NAMES), []
    original = answer["choices"][0]["message"]
    function = original["tool_calls"][0]["function"]
    for piece in cut(original["content"], data):
        deltas.append({"content": piece})
    for piece in cut(function["name"], data):
        deltas.append({"tool_calls": [{"index": 0, "function": {"name": piece}}]})
    for piece in cut(function["arguments"], data):
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if data.draw(st.booleans()):  # else the stream ends without a word
        chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    text = name = arguments = ""
    ended = [stream.feed({"id": "7", "choices": [chunk]}) for chunk in chunks]
    for chunk in [*ended, *filter(None, [stream.close()])]:
        delta = chunk["choices"][0]["delta"]
        text += delta.get("content") or ""
        for call in delta.get("tool_calls") or ():
            name += call["function"].get("name") or ""
            arguments += call["function"].get("arguments") or ""
        assert chunk["id"] == "7"
    assert (text, name) == (message["content"], names[0])
    assert arguments == message["tool_calls"][0]["function"]["arguments"]
    assert stream.close() is None


def cut(text, data):
    """A text in pieces."""
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    return [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]


def test_what_an_answer_means_itself_stays(caplog):
    """Words that were never given out, HTML, a plan; errors and what is no answer."""
    _note_not_given.cache_clear()
    names = CanonicalNames({"person": {"column": "people"}}, words={"person": "Person"})
    one = CanonicalRequest(names, {"prompt": "Ann", "names": {"person": ["Ann"]}})
    assert one.body == {"prompt": "PersonB"}
    answer = {"choices": [{"index": 0, "text": "<b>Note</b> PersonC, plan b. PersonB's"}]}
    assert one.back(answer)["choices"][0]["text"] == "<b>Note</b> PersonC, plan b. Ann's"
    assert one.back(answer) == one.back(answer)
    (noted,) = caplog.records
    assert "given to none" in noted.getMessage()
    for other in ({"error": {"message": "PersonB"}}, [], None, {"choices": [1, {"message": 2}]}):
        assert one.back(other) == other
    chunk = {"choices": [{"index": 0, "text": "PersonB", "finish_reason": "stop"}]}
    assert CanonicalStream(one, names).feed(chunk)["choices"][0]["text"] == "Ann"


def test_a_call_in_the_older_form_comes_back():
    """In a stream that ends as it should, and in one that only ends."""
    functions = [{"name": "get_a", "parameters": {}}]
    one = CanonicalRequest(CanonicalNames({"tool": {"rule": "tools"}}), {"functions": functions})
    assert one.body["functions"][0]["name"] == "tool_b"
    pieces = [{"name": "tool_b", "arguments": ""}, {"arguments": '{"tool'}, {"arguments": "_b"}]
    for last in ("function_call", None):
        stream, name, arguments = CanonicalStream(one, one._names), "", ""
        for number, piece in enumerate(pieces):
            finish = last if number == 2 else None
            choice = {"index": 0, "delta": {"function_call": piece}, "finish_reason": finish}
            pieces_back = [stream.feed({"choices": [choice]})]
            pieces_back += filter(None, [stream.close()] if number == 2 else [])
            for chunk in pieces_back:
                call = chunk["choices"][0]["delta"]["function_call"]
                name += call.get("name") or ""
                arguments += call.get("arguments") or ""
        assert (name, arguments) == ("get_a", '{"get_a')


@given(st.data())
def test_a_tool_that_takes_a_text_is_spelled_too(data):
    """In its definition, a choice and calls, at once and in a stream that is cut anywhere."""
    custom = {"name": "run_sql", "description": "run_sql runs.", "format": {"type": "text"}}
    tools = [{"type": "custom", "custom": custom}]
    call = {"id": "1", "type": "custom", "custom": {"name": "run_sql", "input": "ask run_sql, so"}}
    messages = [{"role": "assistant", "tool_calls": [call]}]
    choice = {"type": "custom", "custom": {"name": "run_sql"}}
    names = CanonicalNames({"tool": {"rule": "tools"}}, words=["t", "tool_1", "tool_10"])
    one = CanonicalRequest(names, {"tools": tools, "messages": messages, "tool_choice": choice})
    assert "run_sql" not in json.dumps(one.body) and one.body["tools"][0]["type"] == "custom"
    (message,) = one.body["messages"]
    assert message["tool_calls"][0]["custom"] == {"name": "t", "input": "ask t, so"}
    answer = one.back({"choices": [{"message": message}]})
    assert answer["choices"][0]["message"]["tool_calls"] == [call]
    stream, got = CanonicalStream(one, names), {"name": "", "input": ""}
    pieces = [(key, piece) for key in got for piece in cut(call_of(message)[key], data)]
    chunks = [{"tool_calls": [{"index": 0, "custom": {key: piece}}]} for key, piece in pieces]
    written = [stream.feed({"choices": [{"index": 0, "delta": chunk}]}) for chunk in chunks]
    for chunk in [*written, *filter(None, [stream.close()])]:
        for key, text in call_of(chunk["choices"][0]["delta"]).items():
            got[key] += text
    assert got == call["custom"]


def call_of(message):
    """What the only call of a message calls."""
    return message["tool_calls"][0]["custom"]


@pytest.mark.parametrize(
    ("tool", "city", "price"), [("get_x", "city", "max_price"), ("FindIt", "Unit", "theMax")]
)
def test_titles_that_pydantic_makes_of_names_are_these(tool, city, price):
    """Of parameters at any depth and of what a tool takes; others stay."""
    titled = {name: {"title": name.title().replace("_", " ")} for name in (city, price)}
    inner = {"title": "Of its own", "properties": titled}
    schema = {"title": f"{tool}Arguments", "properties": {**titled, "in_it": inner}}
    tools = [{"type": "function", "function": {"name": tool, "parameters": schema}}]
    body = {"tools": tools, "response_format": {"json_schema": {"schema": schema}}, "names": {}}
    one = CanonicalRequest(NAMES, body)
    words = {name: {"title": name} for name in ("tool_c", "tool_d")}
    inner = {"title": "Of its own", "properties": words}
    written = {"title": "tool_bArguments", "properties": {**words, "tool_e": inner}}
    assert one.body["tools"][0]["function"]["parameters"] == written
    assert (
        one.body["response_format"]["json_schema"]["schema"]["properties"] == written["properties"]
    )
    assert certify([body], NAMES).holds
    example = {"name": tool, "parameters": {"title": f"{tool}Of", r"a\_b": 1, "a_b": 2}}
    named = {name: {} for name in ("name", "parameters", "a_b")}
    schema = {"properties": named, "default": example}
    body = {"tools": [{"function": {"name": tool, "parameters": schema}}], "names": {}}
    (one,) = CanonicalRequest(NAMES, body).body["tools"]
    assert one["function"]["parameters"]["default"] == {
        "tool_c": "tool_b", "tool_d": {"title": f"{tool}Of", "tool_e": 2}
    }  # fmt: skip
    unknown = CanonicalNames({"variable": "[a-z][0-9]"})
    assert CanonicalRequest(unknown, {"tools": tools}).body["tools"] == tools


def test_what_only_a_name_describes_may_keep_it():
    """The whole chat has it then, and what is described is spelled as before."""
    names = CanonicalNames({"tool": {"rule": "tools", "keep": "undescribed"}})
    schema = {
        "type": "object",
        "properties": {
            "tool_b": {"type": "string"},  # like the first of the words
            "max_price": {"type": "integer", "description": "At most."},
            "kind_of": {"enum": ["a", "b"]},
            "where_to": {"properties": {"the_city": {}}, "description": "Where."},
        },
    }
    functions = [
        {"name": "find_it", "description": "Finds it.", "parameters": schema},
        {"name": "buy_it", "parameters": {}},
    ]
    tools = [{"type": "function", "function": function} for function in functions]
    said = "find_it with tool_b, max_price, kind_of, where_to, the_city, buy_it"
    body = {"tools": tools, "messages": [{"role": "user", "content": said}]}
    one = CanonicalRequest(names, body)
    spelled = "tool_c with tool_b, tool_d, tool_e, tool_f, the_city, buy_it"
    (message,) = one.body["messages"]
    assert message["content"] == spelled
    answer = {"choices": [{"message": {**message, "role": "assistant"}}]}
    assert one.back(answer)["choices"][0]["message"]["content"] == said
    assert [tool["function"]["name"] for tool in one.body["tools"]] == ["tool_c", "buy_it"]
    made = certify([body], names)
    assert made.holds and made.names == 4 and not made.like_names
    assert made.undescribed == dict.fromkeys(["tool_b", "the_city", "buy_it"], 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": [1], "names": {}}, "not as OpenAI's API has it"),
        ({"messages": "hi", "names": {}}, "not as OpenAI's API has it"),
        ({"tools": [1], "names": {}}, "not as OpenAI's API has it"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "in 'people', .* give them as `names`"),
        ({"prompt": "x", "names": {"nobody": ["x"]}}, "give"),
        ({"prompt": "x", "names": {"person": [""]}}, "an empty name is listed"),
        ({"prompt": "x", "names": {"person": [[0, 1]]}}, r"\[0, 1\]: a chat takes names"),
        ({"prompt": "x", "names": {"person": [{}]}}, "not as OpenAI's API has it"),
        ({"prompt": "x", "names": {"person": ["x"], "tool": ["x"]}}, "to one class"),
        ({"prompt": [1, 2], "names": {}}, "`prompt` is no text, .* send text"),
        ({"prompt": ["x", [1]], "names": {}}, "`prompt` is no text"),
    ],
)
def test_requests_that_are_wrong_are_refused(body, message):
    with pytest.raises(ValueError, match=message):
        CanonicalRequest(NAMES, body)


def wide(tool, parameter, person):
    """A request with names wherever OpenAI's API and servers of models take them."""
    schema = {
        "$defs": {tool: {"properties": {parameter: {"items": {"$ref": f"#/$defs/{tool}"}}}}},
        "properties": {
            "properties": {"type": "object", "description": "Not two more names."},
            parameter: {"default": {parameter: 1}, "examples": [{parameter: tool}]},
        },
        "dependentRequired": {parameter: [parameter]},
        "required": [parameter],
    }
    plain = json.dumps({parameter: person, "plain": f"naïve 😀 \n{tool}\t{tool}", "/": '"'})
    result = plain.replace("'", r"\u0027")
    arguments = json.dumps({parameter: result, "n": "né"}, separators=(",", ":"))
    called = {"name": tool, "arguments": arguments}
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": f"{tool} for {person}"}, tool]},
        {"role": "assistant", "refusal": f"no {person}", "tool_calls": [{"function": called}]},
        {"role": "tool", "content": result.replace("/", r"\/")},
        {"role": "tool", "content": f"as in {result}"},
        {"role": "tool", "content": json.dumps({"r": json.dumps({"r": plain})})},
        {
            "role": "tool",
            "content": f"\x1b[1;31m{tool}\x1b[m" + json.dumps(f"\x1b[4m{person}\u200b"),
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"text": tool}]}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": f"no {tool}"}]},
        {
            "role": "assistant",
            "tool_calls": [{"function": {**called, "arguments": {parameter: 1}}}],
        },
    ]
    return {
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": tool, "parameters": schema}}],
        "response_format": {"type": "json_object", "schema": schema},
        "structured_outputs": {"json": schema, "choice": [tool, person]},
        "guided_choice": [tool, person],
        "regex": f"{tool}|no",
        "ebnf": f'root ::= "{tool}"',
        "bad_words": [person],
        "documents": [{"title": person, "text": tool}],
        "names": {"person": [person]},
    }


def test_names_are_spelled_wherever_they_stand():
    """In schemas and forms of answers, refusals, JSON with escapes of letters and signs."""
    first = CanonicalRequest(NAMES, wide("tool_b", "tool_d", "PersonB")).body
    assert "u00efve" in json.dumps(first) and '\\":\\"' in json.dumps(first)
    for others in (
        ("get_größe", "naïf", "José O'Brien"),
        ("x-1", "a/b", "变量"),
        ("f_", "😀x", "ß"),
    ):
        one = CanonicalRequest(NAMES, wide(*others))
        assert json.dumps(one.body) == json.dumps(first), others
        renamed_again = renamed(NAMES, wide(*others), {("person", others[2]): "Zoë"})
        again = json.dumps(CanonicalRequest(NAMES, renamed_again).body)
        assert again == json.dumps(first)
    assert set(one.table) == {"tool_b", "tool_c", "tool_d", "PersonB"}


def test_a_parameter_that_is_a_word_is_a_name_in_json_of_json():
    """In quotes that are escaped; and names as Markdown escapes them, not paths of Windows."""
    tool = {"name": "get_x", "parameters": {"properties": {"city": {}, "": {}}}}
    inner = json.dumps({"city": "a city hall", "at": r"C:\app\get_x\__init__.py"})
    said = json.dumps([inner, json.dumps([inner])]) + r" get\_x, a\_get\_x, C:\get_x\__init__.py"
    body = {"messages": [{"role": "user", "content": said}], "tools": [{"function": tool}]}
    content = CanonicalRequest(NAMES, {**body, "names": {}}).body["messages"][0]["content"]
    spelled = said.replace("city\\", "tool_c\\").replace(r" get\_x", " tool_b")
    assert content == spelled.replace(r"\get_x", r"\tool_b")


@given(st.lists(st.sampled_from(['"', "\\", "\\u00e9", "\\ud83d\\ude00", "\\/", "é", "u", "a"])))
def test_what_has_no_names_goes_out_as_it_is(parts):
    """Byte for byte, whatever escapes and numbers there are."""
    text = "".join(parts)
    arguments = '{ "x":1.0,"x":1e400, "y":"\\u00E9\\/" }'
    call = {"function": {"name": "f", "arguments": arguments}}
    texts = [text, json.dumps([text]), arguments]
    messages = [{"role": "tool", "content": text} for text in texts]
    body = {"messages": [*messages, {"role": "assistant", "tool_calls": [call]}]}
    assert CanonicalRequest(NAMES, {**body, "names": {}}).body == body


def test_answers_of_other_servers_come_back():
    """A call with more than a name, arguments that are data, contents of parts; in streams too."""
    tools = [
        {"type": "function", "function": {"name": n, "parameters": {}}} for n in ("f_1", "g_1")
    ]
    names = CanonicalNames({"tool": {"rule": "tools"}})
    one = CanonicalRequest(names, {"tools": tools})
    call = {"name": "functions.tool_c", "arguments": {"tool_b": ["a tool_c"]}}
    message = {"tool_calls": [{"function": call}], "content": [{"type": "text", "text": "tool_b"}]}
    back = one.back({"choices": [{"message": message}]})["choices"][0]["message"]
    assert back["content"] == [{"type": "text", "text": "f_1"}]
    called = {"name": "functions.g_1", "arguments": {"f_1": ["a g_1"]}}
    assert back["tool_calls"][0]["function"] == called
    stream, name, said = CanonicalStream(one, names), "", []
    for piece in ("functions.", "tool_", "c"):
        call = {"index": 0, "function": {"name": piece}}
        delta = {"tool_calls": [call], "content": [{"type": "text", "text": f"{piece} tool_b, "}]}
        finish = "stop" if piece == "c" else None
        fed = stream.feed({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        delta = fed["choices"][0]["delta"]
        name += "".join(call["function"].get("name") or "" for call in delta["tool_calls"])
        said += [part["text"] for part in delta["content"]]
    assert (name, "".join(said)) == ("functions.g_1", "functions. f_1, tool_ f_1, c f_1, ")


def test_a_stream_has_each_text_whole_before_the_next():
    """Thoughts before the answer, and that before a call; as fields and in parts of a content."""
    tools = [{"function": {"name": "get_x"}}]
    names = CanonicalNames({"tool": {"rule": "tools"}})
    call = {"tool_calls": [{"index": 0, "function": {"name": "tool_b", "arguments": "{}"}}]}
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "think tool_b"}]}
    for thought in ({"reasoning_content": "think tool_b"}, {"content": [part]}):
        stream, seen = CanonicalStream(CanonicalRequest(names, {"tools": tools}), names), []
        for delta in (thought, {"content": "so tool"}, {"content": "_b"}, call):
            fed = stream.feed({"choices": [{"index": 0, "delta": delta}]})["choices"][0]["delta"]
            seen.append({key: value for key, value in fed.items() if key != "tool_calls"})
        if "content" in thought:
            think, rest = ({**part, "thinking": [{"type": "text", "text": text}]}
                           for text in ("think ", "get_x"))  # fmt: skip
            answer = [rest, {"type": "text", "text": "so "}]
            assert seen == [
                {"content": [think]},
                {"content": answer},
                {"content": ""},
                {"content": "get_x"},
            ]
        else:
            both = {"content": "so ", "reasoning_content": "get_x"}
            assert seen == [
                {"reasoning_content": "think "},
                both,
                {"content": ""},
                {"content": "get_x"},
            ]
        assert stream.close() is None
    message = {"content": [part]}
    back = CanonicalRequest(names, {"tools": tools}).back({"choices": [{"message": message}]})
    assert "think get_x" in json.dumps(back)
    # some servers send all that was said beside each part
    choice = {"index": 0, "delta": {}, "message": {"content": "tool_b"}}
    told = CanonicalStream(CanonicalRequest(names, {"tools": tools}), names).feed(
        {"choices": [choice]}
    )
    assert told["choices"][0]["message"] == {"content": "get_x"}


def test_names_beside_scripts_without_spaces_are_words():
    """A letter of Chinese, Japanese, Korean or Thai is no part of a word of Latin ones."""
    tools = [{"function": {"name": name}} for name in ("get_x", "get_数据")]
    said = "请用get_x查\uff0cget_xを get_x를 สั่งget_x get_数据, get_数据库 李明, 李明吗 李明x"
    said = f"{said} tool_b吗 データーx"
    body = {"messages": [{"role": "user", "content": said}], "tools": tools}
    body["names"] = {"person": ["李明", "デ"]}
    one = CanonicalRequest(NAMES, body)
    spelled = said.replace("get_x", "tool_b").replace("get_数据,", "tool_c,")
    spelled = spelled.replace("李明,", "PersonB,").replace("tool_b吗", "tool_d吗")
    assert one.body["messages"][0]["content"] == spelled
    call = {"name": "tool_b", "arguments": '{"q": "请tool_b查"}'}
    message = {"content": spelled, "tool_calls": [{"function": call}]}
    back = one.back({"choices": [{"message": message}]})["choices"][0]["message"]
    assert back["content"] == said
    assert back["tool_calls"][0]["function"] == {"name": "get_x", "arguments": '{"q": "请get_x查"}'}
    stream, written = CanonicalStream(one, NAMES), []
    for letter in spelled:
        choice = {"index": 0, "delta": {"content": letter}, "finish_reason": None}
        written.append(stream.feed({"choices": [choice]})["choices"][0]["delta"]["content"])
    assert "请用get_x查\uff0c" in written  # at once
    assert "".join(written) + stream.close()["choices"][0]["delta"]["content"] == said
    names = CanonicalNames({"tool": {"rule": "tools"}}, words=["甲"])
    chinese = CanonicalRequest(names, {**body, "names": {}}).body["messages"][0]["content"]
    assert chinese == said.replace("get_数据,", "v1,")  # else an answer would not have it as a word


@pytest.mark.parametrize("form", ["response_format", "guided_json", "structured_outputs"])
def test_an_answer_in_json_stays_json(form):
    """Whatever names have in them; words behind escapes are words. In streams too."""
    name = 'Dwayne "The Rock" Johnson'
    asked = {"response_format": {"type": "json_object"}, "structured_outputs": {"json": {"a": 1}}}
    body = {"prompt": name, form: asked.get(form, {"type": "object"}), "names": {"person": [name]}}
    one = CanonicalRequest(NAMES, body)
    content = '{"who": "PersonB", "says": "I\\nPersonB \\u00e9"}'
    back = one.back({"choices": [{"message": {"content": content, "refusal": "PersonB"}}]})
    message = back["choices"][0]["message"]
    assert json.loads(message["content"]) == {"who": name, "says": f"I\n{name} é"}
    assert message["refusal"] == name
    text = one.back({"choices": [{"text": content}]})["choices"][0]["text"]
    assert text == message["content"]
    from_table = CanonicalRequest.from_table(NAMES, one.table, one.says_json)
    stream, said = CanonicalStream(from_table, NAMES), ""
    for number, letter in enumerate(content, 1):
        finish = "stop" if number == len(content) else None
        choice = {"index": 0, "delta": {"content": letter}, "finish_reason": finish}
        said += stream.feed({"choices": [choice]})["choices"][0]["delta"]["content"]
    assert said == message["content"]


@pytest.mark.parametrize(
    ("names", "tool"),
    [
        (FIRST, 0),
        (FIRST, 1),
        (["f-g", "do_it", "Ann", "Bob", "Al"], 1),
        (["ß.x", "a/b c", "Ann", "Jo Lee", "Al"], 0),
    ],
)
def test_a_later_turn_has_the_words_that_the_model_wrote(names, tool):
    """In the forms that it gave them, also of names of several words; behind escapes too."""
    said = [("user", [tool, 3])]
    one = spelled(said, names)
    a, b = one.body["messages"][0]["content"].split()
    answer = f"{a.upper()} and {a}s: _{b}_, {b.upper()}S; {a.upper()}ES {a}_x, __{b}__s. {a}, {a}查"
    answer += f" r'\\n{a}' r'\\t{b.upper()}s' \"\\n{a}\" {a.capitalize()}. _{a}_"
    back = one.back({"choices": [{"message": {"content": answer}}]})
    content = back["choices"][0]["message"]["content"]
    two = CanonicalRequest(NAMES, request([*said, ("assistant", [content])], names))
    assert names[tool].upper() in content and two.body["messages"][1]["content"] == answer
    assert f"\\n{names[tool]}'" in content


def test_words_come_back_behind_escapes_and_in_capitals_alike():
    """As they stand in a text with escapes; a name in capitals has no other ones, and no number."""
    names = ["GET_X", "sky.probe"]
    tools = [{"function": {"name": name}} for name in names]
    one = CanonicalRequest(CanonicalNames({"tool": {"rule": "tools"}}), {"tools": tools})
    for said, meant in {
        "Tool_b, tool_b, TOOL_B: tool_bs": "GET_X, GET_X, GET_X: GET_Xs",
        r"`{'a': '\ntool_c\\ntool_b'}`": r"`{'a': '\nsky.probe\\nGET_X'}`",
        r"C:\tool_b, tool\_b tool\_c TOOL\_Cs": r"C:\GET_X, GET\_X sky.probe SKY.PROBEs",
        r"tool_c tool\_c: TOOL\_B tool\_b": r"sky.probe sky.probe: GET\_X GET\_X",
        "\x1b[1mtool_c\x1b[m \\u7528tool_b": "\x1b[1msky.probe\x1b[m \\u7528GET_X",
        r"\tool_b \n_x a\_b \ntool_": r"\GET_X \n_x a\_b \ntool_",
    }.items():
        back = one.back({"choices": [{"text": said}]})["choices"][0]["text"]
        stream = CanonicalStream(one, one._names)
        chunks = [stream.feed({"choices": [{"text": letter}]}) for letter in said]
        chunks += [stream.close()] * 1
        streamed = "".join(chunk["choices"][0].get("text", "") for chunk in filter(None, chunks))
        assert back == streamed == meant
    short = CanonicalRequest(
        CanonicalNames({"tool": {"rule": "tools"}}, words=["c"]), {"tools": tools}
    )
    back = short.back({"choices": [{"text": r"'\nv1\nc'"}]})["choices"][0]["text"]
    assert short.table == {"c": "GET_X", "v1": "sky.probe"} and back == r"'\nsky.probe\nc'"
    messages = [{"role": "assistant", "content": "_X_Y, _x_ys"}]
    named = {"tools": [{"function": {"name": "_x_y"}}], "messages": messages}
    (message,) = CanonicalRequest(one._names, named).body["messages"]
    assert message["content"] == "TOOL_B, tool_bs"


def test_a_later_question_has_the_names_of_earlier_code():
    """Which the code binds; code of a later message has its own names."""
    names, seen = CanonicalNames({"variable": {"rule": "python"}}), []
    for function, taken, best in (("total_of", "prices", "best"), ("get", "values_x", "acc2")):
        code = f"def {function}({taken}):\n    {best} = max({taken})\n    return {best}\n"
        said = [code, f"What is `{best}` of {function}, and 'best_of'?", f"print({function}([1]))"]
        own = f"def {best}({function}):\n    return {function}\n"
        messages = [{"role": "user", "content": text} for text in (*said, own)]
        seen.append(CanonicalRequest(names, {"messages": messages}))
        assert certify([{"messages": messages}], names).holds
    one, two = (request.body["messages"] for request in seen)
    assert one == two
    assert [message["content"] for message in one[1:3]] == [
        "What is `e` of b, and 'best_of'?",
        "print(b([1]))",
    ]
    assert one[3]["content"] == "def e(b):\n    return b\n"
