"""Templates of chats of strangers: none takes long or much, and usual ones write what they did."""

import json
import resource
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template
from small_tokenizers import word_level
from transformers.utils.chat_template_utils import render_jinja_template

from hf_alpha.modeling import chat_templates
from hf_alpha.modeling.chat_templates import TemplateLimitError
from hf_alpha.modeling.tokenization_text import TextTokenizer

CHAT = [
    {"role": "user", "content": "Hi there"},
    {"role": "assistant", "content": "fine " * 50},
    {"role": "user", "content": "more?"},
]
TOOL = {
    "name": "get_weather",
    "description": "Say the weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"name": "get_weather", "arguments": {"city": "Paris"}}
CALLING = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "id": "123456789", "function": CALL}]},
    {"role": "tool", "name": "get_weather", "tool_call_id": "123456789", "content": "sunny"},
    {"role": "assistant", "content": "It is sunny", "reasoning_content": "hmm"},
]  # fmt: skip
DOUBLED = (
    "{%% set n = namespace(x=%s) %%}{%% for i in range(99) %%}{%% set n.x = %s %%}{%% endfor %%}"
)
HUNDRED_THOUSAND = "('x' * 99999)"
TOO_LONG = [
    "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3,
    "{% set r = range(99999)|list %}" + "{% for a in r %}" * 3 + "{% endfor %}" * 3,
    "{% for a in range(99999) %}{% set b = range(99999)|map('string')|list %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(80) }}",
]
TOO_MUCH = [
    "{{ 'x' * 10**10 }}",
    "{{ messages * 10**9 }}",
    "{{ 'x'|center(10**10) }}",
    "{{ 'x'.ljust(10**10) }}",
    "{{ '%010000000000d' % 1 }}",
    "{{ '%*d' % (10**10, 1) }}",
    "{{ '{:>10000000000}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 10**10) }}",
    "{{ '%9999999999d'|format(1) }}",
    "{{ strftime_now('%9999999999d') }}",
    f"{{{{ {HUNDRED_THOUSAND}.replace('x', {HUNDRED_THOUSAND}) }}}}",
    f"{{{{ {HUNDRED_THOUSAND}|replace('x', {HUNDRED_THOUSAND}) }}}}",
    f"{{{{ {HUNDRED_THOUSAND}|map('replace', 'x', {HUNDRED_THOUSAND}[:999])|join }}}}",
    f"{{{{ range(99999)|join({HUNDRED_THOUSAND}) }}}}",
    f"{{{{ {HUNDRED_THOUSAND}.join(range(99999)|map('string')) }}}}",
    f"{{{{ {HUNDRED_THOUSAND}.join(dict(range(19998)|map('string')|batch(2)).keys()) }}}}",
    "{{ ('a\\n' * 99999)|indent('x' * 9999) }}",
    "{{ 9**9**9**9**9**9 }}",
    "{{ 1|round(10**9) }}",
    "{{ messages|batch(10**9, 'x')|list }}",
    "{{ (1).to_bytes(10**10, 'big') }}",
    "{{ ''.encode().ljust(10**10) }}",
    "{{ [[1]]|sum(start=[]) }}",
    "{% for a in range(99999) %}{{ messages * 9 }}{% endfor %}",
    "{% for a in range(99999) %}" + 999 * "x" + "{% endfor %}",
    "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{{ " + "[" * 2000 + "]" * 2000 + " }}",
    "x" * 600_000,
    *[DOUBLED % start for start in (
        ("'xx'", "n.x ~ n.x"), ("'xx'", "n.x + n.x"), ("'xx'", "n.x * 2"), ("9", "n.x * n.x"),
        ("[1]", "n.x + n.x"), ("[1]", "[n.x, n.x]"), ("[1]", "(n.x, n.x)"),
        ("[1]", "{'a': n.x, 'b': n.x}"), ("[1]", "dict(a=n.x, b=n.x)"),
        ("'xx'", "'%s%s' % (n.x, n.x)"), ("'xx'", "'{0}{0}'.format(n.x)"),
        ("'xx'", "[n.x, n.x]|join"))],
]  # fmt: skip


def written(template: str, chat: Any = CHAT, **options: Any) -> str:
    return render_jinja_template([chat], chat_template=template, **options)[0][0]


@pytest.mark.parametrize("template", [*TOO_LONG, *TOO_MUCH], ids=lambda text: text[:60])
def test_a_template_without_end_is_ended(template, monkeypatch):
    """Before it has taken the memory, and while it takes the time."""
    monkeypatch.setattr(chat_templates, "SECONDS", 0.1 if template in TOO_LONG else 60)
    monkeypatch.setattr(chat_templates, "LARGEST", 5_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TemplateLimitError, match="the chat template"):
        written(template)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 500_000, f"the peak of memory is {grown:,} KiB higher"


def test_a_tokenizer_with_names_says_so_too():
    tokenizer = TextTokenizer.from_texts(["x b"], {"name": {"pattern": "[xy]", "count": 2}})
    tokenizer.chat_template = TOO_MUCH[0]
    with pytest.raises(ValueError, match="the chat template makes or writes more than 50,000,000"):
        tokenizer.apply_chat_template(CHAT)
    with pytest.raises(ValueError, match="the chat template makes or writes more than 50,000,000"):
        word_level().apply_chat_template(CHAT, chat_template=TOO_MUCH[0])


@cache
def templates() -> dict[str, tuple[Template, Template]]:
    """All that TRL brings: as Transformers compiles them, and with limits."""
    trl = pytest.importorskip("trl")
    texts = {
        file.name: file.read_text()
        for file in sorted(Path(trl.__file__).parent.glob("chat_templates/*.jinja"))
    }
    compiled = chat_templates._compile_freely, chat_templates._compile
    return {name: tuple(make(text) for make in compiled) for name, text in texts.items()}


@pytest.mark.parametrize("chat", [CHAT, CALLING, CHAT * 6], ids=["chat", "calls", "long"])
def test_usual_templates_write_what_they_did(chat):
    """With tools and without, whether they take the chat or raise an error."""
    tokens = {f"{name}_token": f"<{name}>" for name in ("bos", "eos", "pad", "unk")}
    number = 0
    for name, both in templates().items():
        for tools in (None, [{"type": "function", "function": TOOL}]):
            given = {"messages": chat, "tools": tools, "add_generation_prompt": bool(tools)}
            said = []
            for template in both:
                try:
                    said.append(template.render(json.loads(json.dumps(given)) | tokens))
                except Exception as error:
                    said.append(f"{type(error)} {error}")
            assert said[0] == said[1], name
            number += 1
    assert number > 50


def test_parts_of_a_chat_that_the_model_learns_are_marked():
    """By a template that says so, piece by piece."""
    text = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content ~ '!' }}{% endif %}{% endfor %}"
    )
    rendered, spans = render_jinja_template(
        [CHAT], chat_template=text, return_assistant_tokens_mask=True
    )
    assert [rendered[0][i:j] for i, j in spans[0]] == [CHAT[1]["content"]]
    assert rendered[0].startswith("Hi there!fine")


def test_a_long_chat_is_written():
    long = [{"role": "user", "content": "word " * 1_000_000}]
    text = (
        "{% for m in messages %}{{ '<' + m.role ~ '>' + m['content'] | trim + '\n' }}{% endfor %}"
    )
    assert len(written(text, long)) > 4_999_000
