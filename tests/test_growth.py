"""What takes a text, a chat, names or a vocabulary takes no more work than in proportion to it.

Work is counted, not timed: instructions of Python that the package's own code executes, loops
inside a comprehension included. What a library does at once (a pattern, a set of many words) is one
instruction, so a vocabulary that is made into a set for each row is looked for by itself.
"""

import json

import pytest
from instructions import instructions
from serving import CHAT
from small_tokenizers import byte_level

from hf_alpha import AlphaTokenizer, CanonicalNames, CanonicalTokenizer, TextTokenizer
from hf_alpha.alias.certificate import certify
from hf_alpha.alias.chat import CanonicalRequest, CanonicalStream
from hf_alpha.modeling.names_in_text import NameFinder

SMALL, TIMES = 40, 4
MOST = 1.125 * TIMES


def names(number: int) -> list[str]:
    return [f"ra{place}q" for place in range(number)]


def text(number: int) -> str:
    """Each name twice, among words."""
    return " ".join(f"{name} sees {name}." for name in names(number))


def source(number: int) -> str:
    return "\n".join(f"def größe{n}(x):\n    y = x\n    return größe{n}(y)" for n in range(number))


def chat(number: int, tools: int = 1) -> dict:
    """A chat of so many turns over so many tools."""
    said = [{"role": "user", "content": f"Ask get_{n % tools} of ra{n}q."} for n in range(number)]
    schemas = [
        {
            "type": "function",
            "function": {
                "name": f"get_{n}",
                "description": f"What get_{n} gives.",
                "parameters": {"type": "object", "properties": {f"of_{n}": {"type": "string"}}},
            },
        }
        for n in range(tools)
    ]
    return {"messages": said, "tools": schemas}


PATTERN = {"name": {"pattern": r"ra\d+q"}}
TOOLS = {"tool": {"rule": "tools"}}


def text_tokenizer(number: int = 700, rules: dict = PATTERN, kind: type = TextTokenizer):
    rules = {name: {**rule, "count": number} for name, rule in rules.items()}
    host = byte_level()
    host.chat_template = "{% for m in messages %}</s>{{ m.content }}</s>{% endfor %}"
    return kind.from_tokenizer(host, rules)


def canonical_tokenizer(rules: dict = PATTERN):
    host = byte_level()
    host.chat_template = CHAT.replace("<{{ m.role }}>", "</s>")
    return CanonicalTokenizer.from_tokenizer(host, rules)


def decoding(number: int):
    tokenizer = text_tokenizer()
    encoded = tokenizer(text(number))
    return lambda: tokenizer.decode(encoded["input_ids"], names=encoded.names, new_names="t")


def of_spelled(number: int):
    spelled = CanonicalNames(PATTERN).spell(text(number))
    return lambda: spelled.back(spelled.text)


def streamed(number: int):
    spelled = CanonicalNames(PATTERN).spell(text(number))
    return lambda: [
        *spelled.stream(spelled.text[i : i + 3] for i in range(0, len(spelled.text), 3))
    ]


def answered(number: int):
    names = CanonicalNames(TOOLS)
    request = CanonicalRequest(names, chat(number, number))
    said = json.dumps(request.body["messages"])
    return lambda: request.back({"choices": [{"message": {"role": "assistant", "content": said}}]})


def answered_in_parts(number: int):
    names = CanonicalNames(TOOLS)
    request = CanonicalRequest(names, chat(number, number))
    said = " ".join(m["content"] for m in request.body["messages"])
    chunks = [{"choices": [{"index": 0, "delta": {"content": said[i : i + 4]}}]}
              for i in range(0, len(said), 4)]  # fmt: skip
    stream = CanonicalStream(request, names)
    return lambda: [stream.feed(chunk) for chunk in chunks]


def called_in_parts(number: int):
    """Arguments of a call, among as many tools, with a word that is as long."""
    request = CanonicalRequest(CanonicalNames(TOOLS), chat(number, number))
    said = json.dumps({"said": request.body["messages"], "all": "a" * 20 * number})
    calls = [
        {"index": 0, "function": {"arguments": said[i : i + 4]}} for i in range(0, len(said), 4)
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    stream = CanonicalStream(request, CanonicalNames(TOOLS))
    return lambda: [stream.feed(chunk) for chunk in chunks]


def formulas(number: int):
    notation = pytest.importorskip("hf_alpha.logic.propositional.notation")
    tokenizer = AlphaTokenizer(
        base_tokens=["0", "1", "!", "&", "|", "=", "^"],
        symbol_classes={"proposition": 700},
        grammar=notation.PROPOSITIONAL,
    )
    formula = " ".join([*["&"] * (number - 1), *(f"p{n}" for n in range(number))])
    return lambda: tokenizer.decode(tokenizer(formula)["input_ids"])


def schema(number: int) -> str:
    return "; ".join(f"select x{n}.c{n} from tab{n} as x{n}" for n in range(number))


def in_turns(build, take):
    """A case: what takes an argument of so many parts, and how it is made."""
    return lambda number: (lambda made: lambda: take(made))(build(number))


WORK = {
    "find": in_turns(text, NameFinder(PATTERN).find),
    "find among tokens": lambda number: (
        lambda: NameFinder(PATTERN).find(
            text(number), None, [(m, m + 1, ".") for m, c in enumerate(text(number)) if c == "."]
        )
    ),
    "given names": lambda number: (
        lambda: NameFinder({"name": {"column": "names"}}).mark(text(number), names(number))
    ),
    "given names of two words": lambda number: (
        lambda: NameFinder({"name": {"column": "n"}}).mark(
            text(number), [f"{name} sees" for name in names(number)]
        )
    ),
    "find nothing among tokens": in_turns(
        lambda number: [(3 * n, 3 * n + 1, "<") for n in range(number)],
        lambda kept: NameFinder(PATTERN).find("<a " * len(kept), None, kept),
    ),
    "python": in_turns(source, NameFinder({"name": {"rule": "python"}}).find),
    "sql": in_turns(schema, NameFinder({"name": {"rule": "sql"}}).find),
    "json": in_turns(
        lambda number: json.dumps({name: name for name in names(number)}),
        NameFinder({"name": {"rule": "json"}}).find,
    ),
    "smiles": in_turns(lambda n: "C1CC1" * n, NameFinder({"ring": {"rule": "smiles"}}).find),
    "spell": in_turns(text, CanonicalNames(PATTERN).spell),
    "back": of_spelled,
    "stream": streamed,
    "encode": lambda number: (lambda t: lambda: t(text(number)))(text_tokenizer()),
    "decode": decoding,
    "encode, canonical": lambda number: (lambda t: lambda: t(text(number)))(canonical_tokenizer()),
    "chat": lambda number: (lambda t: lambda: t.apply_chat_template(chat(number)["messages"]))(
        text_tokenizer()
    ),
    "chat, canonical": lambda number: (
        lambda t: lambda: t.apply_chat_template(chat(number)["messages"])
    )(canonical_tokenizer()),
    "chat with tools, canonical": lambda number: (
        lambda t: lambda: t.apply_chat_template(**chat_of(number))
    )(canonical_tokenizer(TOOLS)),
    "request": lambda number: lambda: CanonicalRequest(CanonicalNames(TOOLS), chat(number, number)),
    "answer": answered,
    "answer in parts": answered_in_parts,
    "call in parts": called_in_parts,
    "certify": lambda number: (
        lambda: certify([chat(number // 5, number // 5)], CanonicalNames(TOOLS))
    ),
    "formulas": formulas,
    "extend": lambda number: lambda: text_tokenizer(4).extend_symbols({"name": number}),
}


def chat_of(number: int) -> dict:
    asked = chat(number, number)
    return {"conversation": asked["messages"], "tools": asked["tools"]}


@pytest.mark.parametrize("name", WORK)
def test_work_grows_as_its_input_does(name):
    WORK[name](9)()  # what is made once
    small, large = (instructions(WORK[name](number)) for number in (SMALL, SMALL * TIMES))
    assert large <= MOST * small, f"{small:,} instructions, {large:,} for {TIMES} times as much"


def test_decoding_asks_for_no_vocabulary(monkeypatch):
    """To make a set of 50,000 words takes longer than to decode a row, also one with new names."""
    tokenizer, asked = text_tokenizer(), []
    encoded = tokenizer(text(5))
    monkeypatch.setattr(TextTokenizer, "get_vocab", lambda self: asked.append(1) or {})
    assert tokenizer.decode(encoded["input_ids"], names=encoded.names, new_names="t") == text(5)
    assert tokenizer.decode(encoded["input_ids"], new_names="t").startswith("t1 sees t1. t2")
    assert not asked
