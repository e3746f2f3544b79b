"""Answers of a form, asked by OpenAI's own client: JSON, JSON by a schema, calls of tools."""

import asyncio
import json
from types import SimpleNamespace

import jsonschema
import openai
import pytest
import torch
from serving import CHAT, PATTERN, caller, canonical, chat, converted, renamed, served
from small_tokenizers import byte_level, unigram
from transformers import LlamaConfig
from transformers.convert_slow_tokenizer import bytes_to_unicode

from hf_alpha import CanonicalTokenizer, TextTokenizer
from hf_alpha.serve.constraints import TokenBytes, form_of
from hf_alpha.serve.matching import Matchers
from hf_alpha.serve.messages import MessageReader, template_of
from hf_alpha.serve.requests import Chat, read_request

SAID = "alice sees xa1 and ya1"
SCHEMA = {
    "type": "object",
    "properties": {
        "xa1": {"enum": [1, 2, 3]},
        "who": {"enum": ["ya1", "xa1", "see ya1 now", "alice"]},
        "of": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["xa1", "who", "of"],
    "additionalProperties": False,
    "$defs": {"part": {"anyOf": [{"const": {"ya1": ["xa1"]}}, {"type": "null"}]}},
}
PARAMETERS = {**SCHEMA, "title": "it", "unknown": 1}
TOOLS = [
    {"type": "function", "function": {"name": "xa1", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "other"}},
]
DRAWN = [{}, {"temperature": 1.7, "seed": 1}]


def by_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}


def other_names(data):
    return json.loads(renamed(json.dumps(data)))


def with_template(made):
    made[1].chat_template = CHAT + "{# <tool_call> #}"
    return made


MAKERS = {"canonical": canonical, "relational": lambda: converted(beneath=byte_level)}


@pytest.fixture(scope="module", params=MAKERS.values(), ids=MAKERS)
def client(request):
    with served(*with_template(request.param())) as client:
        yield client


def test_json_by_a_schema_is_the_same_whatever_names_are_called(client):
    """Keys, values and text with names; greedy, drawn, and in parts."""
    seen = set()
    for options in DRAWN:
        options = {"max_tokens": 300, **options}
        one = chat(client, SAID, response_format=by_schema(SCHEMA), **options)
        two = chat(client, renamed(SAID), response_format=by_schema(other_names(SCHEMA)), **options)
        assert two.message.content == renamed(one.message.content)
        assert one.finish_reason == two.finish_reason == "stop"
        jsonschema.validate(json.loads(one.message.content), SCHEMA)
        seen.add(one.message.content)
    assert len(seen) > 1 and any("ya1" in text for text in seen)


def test_any_object_of_json_begins_as_one(client):
    one, two = (chat(client, said, response_format={"type": "json_object"}, max_tokens=40)
                for said in (SAID, renamed(SAID)))  # fmt: skip
    assert one.message.content.startswith("{") and two.message.content == renamed(
        one.message.content
    )
    assert (
        chat(client, SAID, response_format={"type": "text"}, max_tokens=9).message.content[0] != "{"
    )


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\tb"])
def test_a_name_with_a_quote_stands_in_json_as_json_writes_it(client, name):
    schema = {"type": "object", "properties": {name: {"const": f"to {name} ."}}, "required": [name],
              "additionalProperties": False}  # fmt: skip
    reply = chat(client, f"alice sees {name} .", [name], response_format=by_schema(schema),
                 max_tokens=300)  # fmt: skip
    assert json.loads(reply.message.content) == {name: f"to {name} ."}


def test_a_tool_is_called_where_one_has_to_be(client):
    named = {"type": "function", "function": {"name": "xa1"}}
    greedy, drawn = DRAWN
    for choice, options in ((named, {"max_tokens": 300, **greedy}),
                            ("required", {"max_tokens": 100, **drawn})):  # fmt: skip
        one = chat(client, SAID, tools=TOOLS, tool_choice=choice, **options)
        two = chat(client, renamed(SAID), tools=other_names(TOOLS),
                   tool_choice=other_names(choice), **options)  # fmt: skip
        told = [[(c.function.name, c.function.arguments) for c in reply.message.tool_calls]
                for reply in (one, two)]  # fmt: skip
        assert told[1] == [(renamed(name), renamed(written)) for name, written in told[0]]
        assert one.message.content == ""
        assert one.finish_reason == two.finish_reason in ("tool_calls", "length")
        for name, written in told[0]:
            if name == "xa1" and one.finish_reason != "length":
                jsonschema.validate(json.loads(written), SCHEMA)
            assert name == "xa1" or choice == "required"
        if choice is named:
            assert len(told[0]) == 1 and one.finish_reason == "tool_calls"


@pytest.mark.slow
def test_an_answer_is_a_form_or_a_call_where_both_may_be(client):
    kinds = set()
    for seed in range(4):
        reply = chat(client, SAID, tools=TOOLS[:1], response_format=by_schema(SCHEMA), seed=seed,
                     parallel_tool_calls=False, temperature=2, max_tokens=300)  # fmt: skip
        kinds.add(reply.finish_reason)
        for told in [c.function.arguments for c in reply.message.tool_calls or ()] or [
            reply.message.content
        ]:
            jsonschema.validate(json.loads(told), SCHEMA)
    assert kinds == {"stop", "tool_calls"}


def test_neighbours_get_what_each_gets_alone(client):
    """Those with a form, those without, and one whose form the model cannot write."""
    kinds = [
        {"response_format": by_schema(SCHEMA)},
        {},
        {"tools": TOOLS, "tool_choice": "required", "temperature": 1.2, "seed": 3},
        {"response_format": {"type": "json_object"}, "n": 2},
    ]
    ask = {"model": "small", "messages": [{"role": "user", "content": SAID}], "max_tokens": 50}
    alone = [[(c.message.content, c.finish_reason) for c in
              client.chat.completions.create(**ask, **kind).choices] for kind in kinds]  # fmt: skip

    async def ask_all():
        url = {"base_url": client.base_url, "api_key": "none", "max_retries": 0}
        async with openai.AsyncOpenAI(**url) as many:
            asks = (many.chat.completions.create(**ask, **kinds[i % 4]) for i in range(12))
            return await asyncio.gather(*asks)

    told = [
        [(c.message.content, c.finish_reason) for c in r.choices] for r in asyncio.run(ask_all())
    ]
    assert told == alone * 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"response_format": {"type": "xml"}}, 'give {"type": "json_object"}'),
        ({"response_format": by_schema(1)}, 'give {"type": "json_object"}'),
        ({"response_format": by_schema({"not": {}})}, "Unimplemented keys"),
        ({"response_format": by_schema({"enum": ["x" * 40_000]})}, "at most 32,768 characters"),
        ({"response_format": by_schema({"patternProperties": {"a": {}}})}, "s says of letters"),
        ({"response_format": by_schema({"enum": ["</s>"]})}, "cannot be written"),
        ({"tool_choice": "required"}, "there is no such tool"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "f"}}},
         "there is no such tool"),
        ({"tools": [{"type": "function"}], "tool_choice": "required"}, "tools, tool_choice: give"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_refused(client, options, told):
    with pytest.raises(openai.BadRequestError) as raised:
        chat(client, SAID, **options)
    assert told in raised.value.message


def test_odd_schemas_end_in_words(client):
    """Such as one that nothing fulfils, and one that is nested deep."""
    for schema in ({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}):
        with pytest.raises(openai.BadRequestError, match="response_format"):
            chat(client, SAID, response_format=by_schema(schema))
    schema = {"const": "ya1"}
    for _ in range(20):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    reply = chat(client, SAID, response_format=by_schema(schema), max_tokens=500)
    jsonschema.validate(json.loads(reply.message.content), schema)


def test_other_models_say_that_they_promise_no_form():
    """One whose tokens are words, and one whose template says nothing of calls."""
    asked = {"tools": TOOLS, "tool_choice": "required"}
    refused = pytest.raises(openai.BadRequestError, match="does not write JSON letter by letter")
    with served(*caller()) as client, refused:
        chat(client, SAID, **asked)
    model, tokenizer = canonical()
    tokenizer.chat_template = CHAT
    model.config.model_type = "gemma4"
    refused = pytest.raises(openai.BadRequestError, match="JSON within <tool_call>")
    with served(model, tokenizer) as client, refused:
        chat(client, SAID, **asked)


def request_of(**fields):
    body = {"model": "small", "messages": [{"role": "user", "content": SAID}], **fields}
    return read_request(Chat, json.dumps(body).encode())


def forms(make, schema, text=SAID, may_add=False):
    """The form of answers to a text, and to one with other names."""
    tokenizer = make()
    for write in (str, renamed):
        request = request_of(response_format=by_schema(json.loads(write(json.dumps(schema)))))
        names = tokenizer(write(text)).names
        yield form_of(request, TokenBytes(tokenizer), names, None, may_add)


RULES = {"name": {"pattern": PATTERN, "count": 4}}
TOKENIZERS = {
    "canonical": lambda: CanonicalTokenizer.from_tokenizer(byte_level(), {"name": PATTERN}),
    "symbols": lambda: TextTokenizer.from_tokenizer(byte_level(), RULES),
}


@pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_form_depends_on_no_name(make):
    """Also one that the text lacks, where the model can write it."""
    one, two = forms(make, {**SCHEMA, "required": ["xa1", "xb9"]}, may_add=True)
    assert one.grammar == two.grammar and "a1" not in one.grammar
    assert {
        k: renamed(v) for k, v in one.names.items()
    } == two.names and "xb9" in two.names.values()
    with pytest.raises(ValueError, match="'xb9': a name that the text lacks"):
        list(forms(make, {"enum": ["xb9"]}))


def test_letters_of_a_string_are_no_names_where_a_schema_speaks_of_them():
    schema = {"type": "string", "maxLength": 4, "pattern": "^[a-z]+$"}
    with pytest.raises(ValueError, match="pattern says of letters what names would change"):
        list(forms(TOKENIZERS["canonical"], schema))
    assert "allOf" in next(forms(TOKENIZERS["symbols"], schema)).grammar
    next(forms(TOKENIZERS["canonical"], schema, "alice"))


def test_words_for_names_are_no_words_of_json_and_values_get_others():
    def make(*words):
        return lambda: CanonicalTokenizer.from_tokenizer(byte_level(), {"name": PATTERN}, words)

    for words in (["true", "b"], ["b", "1"]):
        with pytest.raises(ValueError, match="a word or a number of JSON"):
            list(forms(make(*words), SCHEMA))
    form = next(forms(make("b", "c"), {"enum": ["b"]}, may_add=True))
    word = json.loads(form.grammar.partition("%json ")[2].partition("\n")[0])["enum"][0]
    assert word != "b" and form.names[word] == "b" and form.names["b"] == "xa1"


def matched(tokenizer, form, text):
    """How many characters of a text may be written, one token for each; and whether it is whole."""
    matcher = Matchers(tokenizer, [0]).matcher(form)
    written = [piece and piece.decode(errors="ignore") for piece in TokenBytes(tokenizer).tokens]
    for place, character in enumerate(text):
        scores = torch.zeros(len(tokenizer) + 2)
        assert matcher.forbid(scores) and not scores[len(tokenizer) :].isfinite().any()
        if not scores[token := written.index(character)].isfinite():
            return place, False
        matcher.take(token)
    matcher.forbid(scores := torch.zeros(len(tokenizer)))
    return len(text), bool(scores[0].isfinite())


def test_what_may_be_written_is_what_a_form_says():
    """Escapes only where no word for a name can stand in them; no parts of a symbol's character."""
    for make, whole in ((TOKENIZERS["canonical"], False), (TOKENIZERS["symbols"], True)):
        (form, _), tokenizer = forms(make, {"type": "string"}), make()
        for text, may in (('"a b"', True), ('"\\"\\\\"', True), ('"\\n"', whole)):
            assert matched(tokenizer, form, text) == ((len(text), True) if may else (2, False))
        byte = tokenizer.convert_tokens_to_ids(bytes_to_unicode()[0xF4])
        assert TokenBytes(tokenizer).tokens[byte] is None
    (form, _), tokenizer = forms(TOKENIZERS["symbols"], {"type": "string", "maxLength": 1}), make()
    assert matched(tokenizer, form, '"a"') == (3, True)
    assert matched(tokenizer, form, '"\U00100000"') == (1, False)


def test_a_thought_that_is_begun_may_go_on_before_the_form():
    tokenizer = TOKENIZERS["symbols"]()
    request = request_of(response_format={"type": "json_object"})
    form = form_of(request, TokenBytes(tokenizer), {}, "</think>", False)
    assert matched(tokenizer, form, 'so {"</think> {}') == (16, True)
    assert matched(tokenizer, form, "so </think> no") == (12, False)
    calls = SimpleNamespace(chat_template="<tool_call>")
    template = template_of(SimpleNamespace(config=LlamaConfig()), calls)
    for prefix, ends in (("<think>", "</think>"), ("", None), ("<think>a</think>", None)):
        assert MessageReader(template, f"<|im_start|>assistant\n{prefix}", []).thought == ends


def test_what_tokens_write_is_known_or_refused():
    spelling = TokenBytes(TOKENIZERS["symbols"]())
    ids = spelling.tokenizer('"xa1" é')["input_ids"]
    assert spelling.text(ids) == '"\U0010fffd\U00100000" é'
    with pytest.raises(ValueError, match="does not write JSON letter by letter"):
        TokenBytes(TextTokenizer.from_tokenizer(unigram(), RULES))
