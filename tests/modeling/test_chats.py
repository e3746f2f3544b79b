"""Names in chats: of what was said, and of nothing that a template writes around it."""

import copy
import json
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import byte_level, unigram
from transformers import AutoTokenizer
from transformers.cli.serving.utils import get_response_template

from hf_alpha import CanonicalTokenizer, TextTokenizer

FOLDER = Path(find_spec("trl").origin).parent / "chat_templates"
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "smollm2": (
        "{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
        "Face<|im_end|>\n' }}{% endif %}" + CHATML.removeprefix("{% for m in messages %}")
    ),
    "llama2": (
        "{% for m in messages %}{% if loop.first and m['role'] == 'system' %}"
        "{{ '<s>[INST] <<SYS>>\n' + m['content'] + '\n<</SYS>>\n\n' }}"
        "{% elif m['role'] == 'user' %}{{ '<s>' + '[INST] ' + m['content'].strip() + ' [/INST]' }}"
        "{% else %}{% generation %}{{ ' ' + m['content'].strip() }}{% endgeneration %}"
        "{{ ' </s>' }}{% endif %}{% endfor %}"
    ),
    "zephyr": (
        "{% for m in messages %}\n{{ '<|' + m['role'] + '|>\n' + m['content'] + '</s>' }}\n"
        "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n"
        "{% endfor %}"
    ),
    "vicuna": (
        "{{ 'A chat between a curious user and a helpful assistant.' }}{% for m in messages %}"
        "{% if m['role'] == 'user' %}{{ ' USER: ' + m['content'].strip() }}{% else %}"
        "{% generation %}{{ ' ASSISTANT: ' + m['content'] | trim + '</s>' }}{% endgeneration %}"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"
    ),
}
for name in ("gemma", "llama3", "llama3_1", "qwen2_5", "qwen3", "qwen2_5_training"):
    TEMPLATES[name] = (FOLDER / f"{name}.jinja").read_text()
WITH_TOOLS = ("llama3_1", "qwen2_5", "qwen3")
RULE = {"name": {"pattern": "[a-z][0-9]*", "count": 12}}


def with_marks(host):
    host = copy.deepcopy(host)
    host.add_tokens(["<|im_start|>", "<|im_end|>", "<|eot_id|>"], special_tokens=True)
    host.pad_token = "<|eot_id|>"
    host.bos_token = host.bos_token or "</s>"  # Llama 3's template asks for it
    return host


HOSTS = {"byte level": with_marks(byte_level()), "unigram": with_marks(unigram())}
OVER = {kind: TextTokenizer.from_tokenizer(host, RULE) for kind, host in HOSTS.items()}
OVER["canonical"] = CanonicalTokenizer.from_tokenizer(HOSTS["byte level"], RULE)
HOSTS["canonical"] = HOSTS["byte level"]


def marked_names(text):
    return [text[start:stop] for start, stop, *_ in text.spans]


def renamed(value, table):
    """Names of one letter changed, in all that was said."""
    if isinstance(value, str):
        return re.sub(r"\b[a-z][0-9]*\b", lambda name: table.get(name[0], name[0]), value)
    if isinstance(value, dict):
        return {k: v if k == "role" else renamed(v, table) for k, v in value.items()}
    return [renamed(part, table) for part in value]


words = st.sampled_from(["a", "x", "y1", "user", "find", "You", "(", ".", "</s>", "\n"])
contents = st.lists(words, min_size=1, max_size=6).map(" ".join)


@st.composite
def chats(draw):
    """Messages of a user and an assistant in turn, perhaps behind one of the system."""
    said = draw(st.lists(contents, min_size=1, max_size=4))
    roles = ["user", "assistant"] * 2
    chat = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    return chat


@pytest.mark.parametrize("kind", OVER)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.quick_cases(12)
@settings(max_examples=15)
@given(chats(), st.booleans())
def test_names_are_those_of_what_was_said_in_the_hosts_text(kind, template, chat, asks):
    own, host = OVER[kind], HOSTS[kind]
    options = {"chat_template": TEMPLATES[template], "add_generation_prompt": asks}
    text = own.apply_chat_template(chat, tokenize=False, **options)
    assert text == host.apply_chat_template(chat, tokenize=False, **options)
    said = "\n".join(message["content"] for message in chat)
    assert marked_names(text) == re.findall(r"\b(?<!/)[a-z][0-9]*\b", said)
    batch = own.apply_chat_template(chat, **options)
    assert batch["input_ids"] == own(text, add_special_tokens=False)["input_ids"]
    # whatever the names are; and where there are none, or behind the last one, as the host
    table = {"a": "x", "x": "b2", "y1": "a"}
    other = own.apply_chat_template(renamed(chat, table), **options)
    assert other["input_ids"] == batch["input_ids"]
    new = [table.get(name, name) for name in batch.names.values()]
    assert kind == "canonical" or [*other.names.values()] == new
    plain = renamed(chat, {"a": "You", "x": "find", "y1": "("})
    ids = host.apply_chat_template(plain, **options)["input_ids"]
    assert own.apply_chat_template(plain, **options)["input_ids"] == ids
    if kind != "canonical":
        last = max((i for i, t in enumerate(batch["input_ids"]) if t in own.symbol_ids), default=-1)
        tail = batch["input_ids"][last + 1 :]
        assert ids[len(ids) - len(tail) :] == tail
    # a chat's beginning has the names that it has in the whole chat
    start = own.apply_chat_template(
        chat[:1], tokenize=False, **{**options, "add_generation_prompt": False}
    )
    if text.startswith(start):
        assert text.spans[: len(start.spans)] == start.spans


TOOL = {
    "type": "function",
    "function": {
        "name": "f1",
        "description": "Find a user (or b).",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "string", "description": "the x of a user", "enum": ["b", "c d"]},
                "type": {"type": "array", "items": {"type": "object", "properties": {"y": {}}}},
            },
            "required": ["x"],
        },
    },
}
CALLS = [
    {"role": "user", "content": "find x"},
    {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": "f1", "arguments": {"x": "b"}}}],
    },
    {"role": "tool", "name": "f1", "content": '{"x": ["d", 1]}'},
    {"role": "assistant", "content": "d is it"},
]


@pytest.mark.parametrize("template", WITH_TOOLS)
def test_names_of_tools_their_parameters_calls_and_results(template):
    own, host = OVER["byte level"], HOSTS["byte level"]
    options = {"tools": [TOOL], "chat_template": TEMPLATES[template]}
    text = own.apply_chat_template(CALLS, tokenize=False, **options)
    assert text == host.apply_chat_template(CALLS, tokenize=False, **options)
    of_tool = ["f1", "a", "b", "x", "x", "a", "b", "c", "d", "y", "x"]
    of_calls = ["f1", "x", "b", "x", "d", "d"]
    found = sorted(marked_names(text))
    assert found == sorted([*of_tool, "x", *of_calls])
    assert "a helpful" not in text or text.index("a helpful") not in [s.start for s in text.spans]
    table = {"f1": "g7", "x": "y", "y": "x", "a": "b", "b": "a", "d": "d9"}
    calls, tool = (json.loads(renamed(json.dumps(said), table)) for said in (CALLS, TOOL))
    batch = own.apply_chat_template(CALLS, **options)
    other = own.apply_chat_template(calls, **{**options, "tools": [tool]})
    assert other["input_ids"] == batch["input_ids"]
    assert [*other.names.values()] == [table.get(name, name) for name in batch.names.values()]


@pytest.mark.parametrize("template", WITH_TOOLS)
def test_tools_say_names_themselves(template):
    """Those of tools and of their parameters, wherever they are said, also by an assistant."""
    rules = {"tool": {"rule": "tools", "count": 9}, "name": {"column": "names"}}
    own = TextTokenizer.from_tokenizer(HOSTS["byte level"], rules)
    chat = [{"role": "user", "content": "call f1 or type x, f2"}, *CALLS[1:]]
    options = {"tools": [TOOL], "chat_template": TEMPLATES[template], "names": ["d"]}
    text = own.apply_chat_template(chat, tokenize=False, **options)
    names = {text[start:stop]: kind for start, stop, kind, *_ in text.spans}
    assert names == {**dict.fromkeys(["f1", "x", "type", "y"], "tool"), "d": "name"}
    assert sum(text[span.start - 5 : span.stop + 1] == "call f1 " for span in text.spans) == 1
    assert [i for i in re.finditer(r'"type": "(string|function)"', text)]
    of_types = [m.start(1) for m in re.finditer(r'"(type)": (?!{)', text)]
    assert not {*of_types} & {span.start for span in text.spans}
    assert own("call f1", names=[]).names == {}  # a text has no tools
    with pytest.raises(ValueError, match="'string' stands in no text"):  # but as a type
        own.apply_chat_template(chat, **{**options, "names": ["d", "string"]})


def test_a_parameter_called_like_a_word_leaves_the_word_what_it_is():
    """As `{rule: tools}` names them, in answers too; others, quoted and given ones are names."""
    own = TextTokenizer.from_tokenizer(HOSTS["byte level"], {"tool": {"rule": "tools"}})

    def asked(tool, a, user, **options):
        properties = {a: {"description": f"the a of '{a}' user"}, user: {}, "see_a": {}}
        function = {"name": tool, "parameters": {"properties": properties, "required": [user]}}
        call = {"function": {"name": tool, "arguments": {}}}
        said = f'a user: find a {tool}, `{a}` or "{user}" ({{"{a}": 1}})'
        answer = {"role": "assistant", "content": f"a user is '{user}'", "tool_calls": [call]}
        chat = [{"role": "user", "content": said}, answer]
        options |= {"tools": [{"function": function}], "chat_template": TEMPLATES["qwen2_5"]}
        return own.apply_chat_template(chat, **options)

    names = marked_names(asked("f1", "a", "user", tokenize=False))
    of_schema = ["f1", "a", "a", "user", "see_a", "user"]
    assert names == [*of_schema, "f1", "a", "user", "a", "user", "f1"]
    batches = [asked(*three) for three in (("f1", "a", "user"), ("g2", "x_1", "bob"))]
    assert len({tuple(batch["input_ids"]) for batch in batches}) == 1
    given = marked_names(asked("f1", "a", "user", tokenize=False, names=["user"]))
    assert given.count("user") == names.count("user") + 3 and given.count("a") == names.count("a")


def test_bindings_of_what_was_said():
    """A rule's binding is its name in answers too, and a name of no binding that of the source."""

    def bound(text):
        return [(m.start(1), m.end(1), m[0][0]) for m in re.finditer(r"[!?]([a-z])", text)]

    finder = {"name": {"function": "m:bound"}}
    own = TextTokenizer.from_tokenizer(HOSTS["byte level"], finder)
    own.finder.functions["name"] = bound
    chat = [{"role": "user", "content": "!x ?x !y"}, {"role": "assistant", "content": "x"}]
    text = own.apply_chat_template(chat, tokenize=False, chat_template=CHATML)
    assert [span.binding for span in text.spans] == ["!", "?", "!", "!"]
    ids = [i for i in own(text, add_special_tokens=False)["input_ids"] if i in own.symbol_ids]
    assert [ids.index(i) for i in ids] == [0, 1, 0, 0]


def test_spellings_of_one_name_are_one_where_a_rule_binds_them():
    """As docs/chats.md says it."""
    page = (Path(__file__).parents[2] / "docs" / "chats.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import re\n.*?)```", page, re.DOTALL)
    exec(code, scope := {"tokenizer": HOSTS["byte level"]})
    own = scope["tokenizer"]
    chat = [
        {"role": "user", "content": "RN-1, rn-1 or rn-2"},
        {"role": "assistant", "content": "rn-1"},
    ]
    batch = own.apply_chat_template(chat, chat_template=CHATML)
    ids = [i for i in batch["input_ids"] if i in own.symbol_ids]
    assert [ids.index(i) for i in ids] == [0, 0, 2, 0]
    assert [*batch.names.values()] == ["RN-1", "rn-2"]
    pair = own("RN-1, rn-1 or rn-2", text_target="rn-1")
    assert own.decode(pair["labels"], names=pair.names) == "RN-1"


def test_functions_of_python_are_tools():
    def f1(x: str):
        """Find it.

        Args:
            x: what
        """

    options = {"chat_template": TEMPLATES["qwen2_5"], "tokenize": False}
    text = OVER["byte level"].apply_chat_template(CALLS[:1], [f1], **options)
    assert marked_names(text) == ["f1", "x", "x", "x"]


def test_names_that_are_given_for_a_chat_or_a_text():
    rules = {"person": {"column": "names"}, "thing": "[a-z][0-9]"}
    own = TextTokenizer.from_tokenizer(HOSTS["unigram"], rules)
    own.chat_template = CHATML
    chat = [
        {"role": "user", "content": "the user zoe sees x1"},
        {"role": "assistant", "content": "user zoe"},
    ]
    for names in (["zoe", "user"], {"person": ["user", "zoe"], "thing": None}):
        text = own.apply_chat_template(chat, tokenize=False, names=names)
        assert marked_names(text) == ["user", "zoe", "x1", "user", "zoe"]
        assert [*own.apply_chat_template(chat, names=names).names.values()] == ["user", "zoe", "x1"]
        (first, second) = own.apply_chat_template([chat, chat[:1]], names=[names, ["zoe"]]).names
        assert [*second.values()] == ["zoe", "x1"] and [*first.values()] == ["user", "zoe", "x1"]
        said = chat[0]["content"]
        assert [*own(said, names=names).names.values()] == ["user", "zoe", "x1"]
        batch = own(
            [said, "zoe"], ["user", "x2"], names=[names, ["zoe"]], text_target=["zoe", "x2"]
        )
        assert [*batch.names[0].values()] == ["user", "zoe", "x1"]
        assert [*batch.names[1].values()] == ["zoe", "x2"]
    wrong = [
        (None, "names of class 'person' are listed in the column"),
        (["zoe", "max"], "'max' stands in no text"),
        ({"people": ["zoe"]}, 'names: give {"person": [...]}'),
        ("zoe", 'names: give {"person": [...]}'),
    ]
    for names, message in wrong:
        for ask in (lambda **k: own.apply_chat_template(chat, **k), lambda **k: own("zoe", **k)):
            with pytest.raises(ValueError, match=re.escape(message)):
                ask(names=names)
    with pytest.raises(ValueError, match="a chat takes names"):
        own.apply_chat_template(chat, names=[[0, 2]])
    with pytest.raises(ValueError, match="2 rows in `conversation`, but 1 in `names`"):
        own.apply_chat_template([chat, chat], names=[["zoe"]])
    with pytest.raises(ValueError, match=r"row 1: names: 'user' stands in no text"):
        own(["zoe", "zoe"], names=[["zoe"], ["user"]])


def test_roles_are_a_setting_that_is_saved(tmp_path):
    own = copy.deepcopy(OVER["byte level"])
    chat = [{"role": "system", "content": "x y"}, {"role": "user", "content": "x z"}]
    options = {"tokenize": False, "chat_template": CHATML}
    assert marked_names(own.apply_chat_template(chat, **options)) == ["x", "z"]
    own.chat_roles = ["system"]
    own.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert marked_names(loaded.apply_chat_template(chat, **options)) == ["x", "y"]
    with pytest.raises(ValueError, match="`chat_roles` is the string 'user'"):
        TextTokenizer.from_tokenizer(HOSTS["unigram"], RULE, chat_roles="user")


@pytest.mark.parametrize(
    "content",
    [
        "m.content | upper",
        "m.content[:1]",
        "'x' if m.content == 'x' else 'y'",
        "m.content | tojson",
        "m.content | replace('x1', 'y1') ~ 'y1'",
    ],
)
def test_a_template_that_changes_names_is_an_error_that_says_what_to_do(content):
    template = "{% for m in messages %}{{ " + content + " }}{% endfor %}"
    own = TextTokenizer.from_tokenizer(HOSTS["unigram"], {"name": r'"?[xy]1?'})
    (said,) = {'"x1', "x1"} - {"x1" if "json" in content else '"x1'}
    chat = [{"role": "user", "content": said if "==" not in content else "x"}]
    chat += [{"role": "user", "content": "y1"}] * ("replace" in content)  # known too
    with pytest.raises(ValueError, match=r"template changes names .*'.*x.*use a template that"):
        own.apply_chat_template(chat, chat_template=template)


def test_options_of_a_chat_are_those_of_transformers():
    chat = [
        {"role": "user", "content": "find (x)"},
        {"role": "assistant", "content": "a and x see"},
    ]
    plain = [
        {**message, "content": re.sub(r"\b[ax]\b", "bob", message["content"])} for message in chat
    ]
    for kind, own in OVER.items():
        host = HOSTS[kind]
        for name in ("vicuna", "llama2", "qwen2_5_training"):
            options = {"chat_template": TEMPLATES[name], "return_assistant_tokens_mask": True}
            ours, theirs = (one.apply_chat_template(plain, **options) for one in (own, host))
            # (of a part that "▁" begins, the host takes its first character to be that alone)
            assert kind == "unigram" or ours["assistant_masks"] == theirs["assistant_masks"]
            batch = own.apply_chat_template([chat, chat], return_tensors="pt", **options)
            for row, names in enumerate(batch.names):
                ids = batch["input_ids"][row][batch["assistant_masks"][row].bool()]
                said = re.sub("ASSISTANT:|<[^>]*>", "", own.decode(ids, names=names))
                assert said.split() == ["a", "and", "x", "see"]
        options = {"chat_template": CHATML}
        for more in (
            {"continue_final_message": True, "return_dict": False},
            {"tokenize": False, "add_generation_prompt": True},
            {"padding": "max_length", "max_length": 90, "return_dict": False},
            {"truncation": True, "max_length": 5, "return_dict": False},
        ):
            more |= options
            assert own.apply_chat_template(plain, **more) == host.apply_chat_template(plain, **more)
        text = own.apply_chat_template(chat, tokenize=False, continue_final_message=True, **options)
        assert text.endswith("a and x see") and marked_names(text) == ["x", "a", "x"]
        with pytest.raises(ValueError, match="sanitize_control_tokens is not supported"):
            own.apply_chat_template(chat, sanitize_control_tokens=True, **options)
        with pytest.raises(ValueError, match="empty conversation"):
            own.apply_chat_template([], **options)


def test_what_hosts_say_of_answers_is_kept(tmp_path):
    host = copy.deepcopy(HOSTS["byte level"])
    host.response_template = {"fields": {}}
    host.chat_control_tokens = ["<|im_end|>"]
    for made in (
        TextTokenizer.from_tokenizer(host, RULE),
        CanonicalTokenizer.from_tokenizer(host, RULE),
    ):
        made.save_pretrained(tmp_path)
        loaded = AutoTokenizer.from_pretrained(tmp_path)
        assert loaded.response_template == {"fields": {}}
        assert loaded.chat_control_tokens == ["<|im_end|>"]


CONTENTS = "{% for m in messages %}{{ m.content }}{% endfor %}"


@given(st.text("a1 \U000f0000\U00100000\U00100001\U00100100\U0010fffd", max_size=9))
def test_characters_without_a_meaning_are_no_marks(content):
    for said in (content, f"{content} x1"):
        chat = [{"role": "user", "content": said}]
        text = OVER["byte level"].apply_chat_template(chat, tokenize=False, chat_template=CONTENTS)
        assert text == said
        assert marked_names(text) == re.findall(r"\b[a-z][0-9]*\b", said)


def test_a_chat_has_any_number_of_names():
    said = [" ".join(f"x{i}" for i in range(70_000)), "x69999 x0 x65793"]
    chat = [{"role": "user", "content": f"{part}\n"} for part in said]
    text = OVER["byte level"].apply_chat_template(chat, tokenize=False, chat_template=CONTENTS)
    assert text == "".join(f"{part}\n" for part in said)
    assert marked_names(text) == " ".join(said).split()


@pytest.mark.parametrize("kind", OVER)
def test_templates_that_sort_names_write_them_as_they_are_said(kind):
    """Gemma 4 sorts parameters and arguments: of others too, the text is the same but for names."""
    rules = {"tool": {"rule": "tools", "count": 9}}
    own = type(OVER[kind]).from_tokenizer(HOSTS[kind], rules)
    options = {"chat_template": (FOLDER / "gemma4.jinja").read_text()}

    def asked(tool, first, second, **more):
        kinds = {first: {"type": "integer"}, second: {"type": "string"}}
        parameters = {"type": "object", "properties": kinds, "required": [first]}
        function = {"name": tool, "description": "book it", "parameters": parameters}
        call = {"function": {"name": tool, "arguments": {second: "x", first: 1}}}
        chat = [
            {"role": "user", "content": f"call {tool} with {second}"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": tool, "content": "done"},
        ]
        tools = [{"type": "function", "function": function}]
        return own.apply_chat_template(chat, tools, **options, **more)

    for more in ({}, {"add_generation_prompt": True}):
        tables = [("f_1", "a_1", "b_1"), ("g_2", "b_1", "a_1"), ("Zz_1", "zz_2", "Aa_3")]
        batches = [asked(*table, **more) for table in tables]
        assert len({tuple(batch["input_ids"]) for batch in batches}) == 1
        texts = [asked(*table, tokenize=False, **more) for table in tables]
        for text, (tool, first, second) in zip(texts, tables, strict=True):
            assert text.index(f"{first}:{{") < text.index(f"{second}:{{")
            assert f"call:{tool}{{{first}:1,{second}:" in text
            ids = own(text, add_special_tokens=False)["input_ids"]
            assert ids == batches[0]["input_ids"]


@pytest.mark.parametrize("kind", OVER)
def test_tools_and_calls_that_a_template_leaves_out_are_an_error(kind):
    rules = {"tool": {"rule": "tools", "count": 9}}
    for own in (OVER[kind], type(OVER[kind]).from_tokenizer(HOSTS[kind], rules)):
        chat = [{"role": "user", "content": "call f1"}]
        left_out = [(CALLS, None, "tool_calls"), (CALLS, [TOOL], "tools"), (chat, [TOOL], "tools")]
        for messages, tools, what in left_out:
            written = [{"content": "", **message} for message in messages]
            with pytest.raises(ValueError, match=rf"leaves out `{what}` \('f1'\)"):
                own.apply_chat_template(written, tools, chat_template=TEMPLATES["smollm2"])
        # one of two, as some templates do it
        template = "{{ messages[0].content }}{% if tools %}{{ tools[0].function.name }}{% endif %}"
        one = {"tools": [TOOL], "chat_template": template, "tokenize": False}
        assert own.apply_chat_template(chat, **one) == "call f1f1"
        two = [TOOL, {"function": {"name": "g7"}}]
        with pytest.raises(ValueError, match=r"leaves out `tools` \('g7'\)"):
            own.apply_chat_template(chat, **{**one, "tools": two})
        # what a template asks for, it writes
        strict = "{{ messages[0].tool_calls[0].function.name }}"
        assert own.apply_chat_template(CALLS[1:2], chat_template=strict, tokenize=False) == "f1"


def test_answers_are_parsed_with_the_special_tokens_that_part_them():
    """As ids too, which Transformers decodes by the default, and with the names of their chat."""
    asked = SimpleNamespace(config=SimpleNamespace(model_type="gemma4"))
    host = copy.deepcopy(HOSTS["byte level"])
    marks = ["<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", '<|"|>']
    host.add_tokens(marks, special_tokens=True)
    host.response_template = get_response_template(None, asked)
    own = TextTokenizer.from_tokenizer(host, RULE)
    prefix, answer = "<|turn>model\n", '<|tool_call>call:f1{x:<|"|>b<|"|>}<tool_call|><turn|>'
    batch = own([prefix, answer], add_special_tokens=False)
    expected = own.parse_response(answer, prefix=prefix)
    assert expected["tool_calls"][0]["function"] == {"name": "f1", "arguments": {"x": "b"}}
    first, second = batch["input_ids"]
    for ids in (second, [second, second], torch.tensor([second])):
        found = own.parse_response(ids, prefix=first, names=batch.names[1])
        assert found == (expected if ids is second else [expected] * len(ids))
    assert own.parse_response([answer], prefix=prefix) == [expected]
    told = [own.parse_response([second, second], prefix=first, names=[batch.names[1]] * 2)]
    assert told == [[expected, expected]]
    parsers = [own.get_response_parser(prefix=said) for said in (prefix, first)]
    assert len({repr([*map(repr, parser.feed(answer))]) for parser in parsers}) == 1
    assert own.decode(second, names=batch.names[1]) == "call:f1{x:b}"
