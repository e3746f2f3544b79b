"""What an answer has to be, by a request: JSON, JSON by a schema, or calls of tools.

It is a grammar over what each token writes. A symbol writes a character of its own, which no other
token can write, and the names in a schema are written by these too; so what a model may write does
not depend on what anything is called. A name gets back into an answer as JSON writes it: a quote in
it does no harm.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from transformers.convert_slow_tokenizer import bytes_to_unicode

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.text_pieces import JOIN
from hf_alpha.modeling.tokenization_text import TextTokenizer

FIRST, JOINED = 0x100000, "\U0010fffd"
"""Characters that symbols write, from `FIRST` on, and what says that no space is before one."""
FREE = "^[^\U00100000-\U0010ffff]*$"
"""A string without symbols."""
MAX_GRAMMAR = 32 * 1024
"""Characters of what an answer has to be: 1,000 properties take a third of a second."""
WHAT = "response_format, tool_choice"
SPACE = r" |\n[ \t]{0,20}"
OF_STRINGS = ("pattern", "format", "minLength", "maxLength")
"""What a schema says of the letters of a string, which a name could change."""
OF_KEYS = ("patternProperties", "propertyNames")
OF_JSON = frozenset(("true", "false", "null"))
"""Words outside of strings."""
SAMPLE = '{"a b": [1, -2.5], "c": "d"}'


class TokenBytes:
    """What each token of a tokenizer writes, in bytes; None for what writes no text.

    Raises:
        ValueError: that depends on more than the token.
    """

    def __init__(self, tokenizer: Any):
        if not isinstance(tokenizer, TextTokenizer) or tokenizer.symbols_are_words:
            raise self._fault()
        self.tokenizer, backend = tokenizer, tokenizer.backend_tokenizer
        self.is_canonical = tokenizer.spells_names
        read = _reader(backend)
        if read is None:
            raise self._fault()
        added = backend.get_added_tokens_decoder()
        silent = {*tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}
        symbols = {index: number for number, index in enumerate(tokenizer.symbol_ids)}
        self.tokens: list[bytes | None] = []
        for index, token in enumerate(tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])):
            if index in symbols:
                written = chr(FIRST + symbols[index]).encode()
            elif token == JOIN and not self.is_canonical:
                written = JOINED.encode()
            else:
                written = str(token).encode() if index in added else read(str(token))
                written = b"" if index in silent or b"\xf4" in written else written
            self.tokens.append(written or None)
        ids = backend.encode(SAMPLE, add_special_tokens=False).ids
        text = self.text(ids)
        if text is None or not text.strip() == SAMPLE == tokenizer.decode(ids).strip():
            raise self._fault()

    @staticmethod
    def _fault() -> ValueError:
        return ValueError(
            f"{WHAT}: this model's tokenizer does not write JSON letter by "
            "letter, so that no form can be promised: leave them out"
        )

    def text(self, ids: Sequence[int]) -> str | None:
        """Return what tokens write; None if one of them writes no text."""
        written = [self.tokens[index] for index in ids]
        if None in written:
            return None
        return b"".join(w for w in written if w is not None).decode(errors="replace")


def _reader(backend: Any) -> Callable[[str], bytes] | None:
    """Return what reads a token as bytes; None where its text depends on other tokens."""
    decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder else {}
    kinds = {part["type"] for part in (decoder, *decoder.get("decoders", ())) if part}
    if "ByteLevel" in kinds:
        table = {character: byte for byte, character in bytes_to_unicode().items()}
        return lambda token: bytes(table[c] for c in token if c in table)
    if kinds & {"Metaspace", "Replace", "Fuse"} and "WordPiece" not in kinds:
        byte = re.compile("<0x([0-9A-F]{2})>")
        return lambda token: (
            bytes.fromhex(found[1])
            if (found := byte.fullmatch(token)) and "ByteFallback" in kinds
            else token.replace("\u2581", " ").encode()
        )
    return None


class NameWriter:
    """Writes the strings of a schema as a model writes them, with the names of a row.

    Args:
        names: of the row that is answered.
        may_add: the model can write names that the row lacks.

    Attributes:
        names: these, and others of the strings.
    """

    def __init__(self, spelling: TokenBytes, names: Mapping[str, str], may_add: bool):
        self._spelling, self.names, self._may_add = spelling, dict(names), may_add
        self._written: dict[str, str] = {}
        self.is_canonical = spelling.is_canonical

    def write(self, text: str) -> str:
        """Write a string.

        Raises:
            ValueError: it cannot be written so that its names come back.
        """
        if text not in self._written:
            self._written[text] = self._write(text)
        return self._written[text]

    def _write(self, text: str) -> str:
        tokenizer, quoted = self._spelling.tokenizer, f'"{text}"'
        try:
            answer: Any = tokenizer(text_target=quoted, names=self.names, add_special_tokens=False,
                                    allow_absent_symbols=self._may_add)  # fmt: skip
        except FormulaError as error:
            told = f"{error}".removeprefix("row 0: ")
            if not self._may_add:
                told = "a name that the text lacks cannot be written: say it in a message"
            raise ValueError(f"{text!r}: {told}") from None
        names: dict[str, str] = answer.names
        ids = answer["input_ids"]
        written = (self._spelling.text(ids) or "").strip()
        if tokenizer.decode(ids, names=names).strip() != quoted or len(written) < 2:
            told = f"{text!r} cannot be written beside the names of the text"
            raise ValueError(f"{told}, or not by this model's tokenizer: call it otherwise")
        self.names = names
        return written[1:-1]

    def schema(self, schema: Any) -> Any:
        """Write the keys and values that a schema names.

        Raises:
            ValueError: as above; or it says of letters what a name would change.
        """
        if not isinstance(schema, dict):
            return schema
        written = {key: self._part(key, part) for key, part in schema.items()}
        if self.names and (odd := [key for key in OF_KEYS if key in schema]):
            raise ValueError(f"{odd[0]} says of letters what names would change: leave it out")
        if odd := [key for key in OF_STRINGS if key in schema]:
            if self.is_canonical and self.names:
                told = f"{odd[0]} says of letters what names would change"
                raise ValueError(f"{told}, which this model writes as words: leave it out")
            if not self.is_canonical:
                written["allOf"] = [*written.get("allOf", ()), {"pattern": FREE}]
        return written

    def _part(self, key: str, part: Any) -> Any:
        if key in ("enum", "const"):
            return self._value(part)
        if key == "required" and isinstance(part, list):
            return [self._value(name) for name in part]
        if key in ("properties", "$defs", "definitions") and isinstance(part, dict):
            name = self.write if key == "properties" else str
            return {name(one): self.schema(of_one) for one, of_one in part.items()}
        if isinstance(part, list):
            return [self.schema(one) for one in part]
        return self.schema(part)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.write(key): self._value(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._value(part) for part in value]
        return self.write(value) if isinstance(value, str) else value


class Form(NamedTuple):
    """What an answer has to be: a grammar of llguidance, and the names to give back to it."""

    grammar: str
    names: dict[str, str]


def form_of(
    request: Any, spelling: TokenBytes, names: Mapping[str, str], thought: str | None, may_add: bool
) -> Form:
    """Return the form of the answers to a chat.

    Args:
        names: of its text.
        thought: what ends a thought that an answer begins in.
        may_add: the model can write names that the text lacks.

    Raises:
        ValueError: it cannot be promised.
    """
    writer = NameWriter(spelling, names, may_add)
    try:
        grammar = "\n".join(_rules(request, writer, thought))
    except RecursionError:
        raise ValueError(f"{WHAT}: a schema is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{WHAT}: {error}") from None
    if len(grammar) > MAX_GRAMMAR:
        raise ValueError(f"{WHAT}: schemas have at most {MAX_GRAMMAR:,} characters in all")
    words = [word for word, name in writer.names.items() if word != name]
    odd = [word for word in words if word in OF_JSON or word[0].isdigit()]
    if spelling.is_canonical and odd:
        told = f"this model writes {odd[0]!r} for a name, which is a word or a number of JSON"
        raise ValueError(f"{WHAT}: {told}")
    return Form(grammar, {key: _escaped(name) for key, name in writer.names.items()})


def _rules(request: Any, writer: NameWriter, thought: str | None) -> Iterator[str]:
    """Yield the rules of a grammar."""
    schema, kinds = request.schema_of_answer, []
    if schema is not None and not request.is_forced:
        kinds.append("text")
        yield f"text: {_by_schema(schema, writer)}"
    for number, function in enumerate(request.callable):
        name = json.dumps(writer.write(function["name"]), ensure_ascii=False)
        head = json.dumps(f'{{"name": {name}, "arguments": ', ensure_ascii=False)
        parameters = function.get("parameters") or {"type": "object"}
        arguments = f'{head} ({_by_schema(parameters, writer, lenient=True)}) "}}"'
        yield f'call_{number}: "<tool_call>" SPACE? {arguments} SPACE? "</tool_call>"'
    if request.callable:
        calls = " | ".join(f"call_{number}" for number in range(len(request.callable)))
        yield from (f"call: {calls}", "SPACE: /[ \\n]{1,2}/")
        kinds.append("call (SPACE? call)*" if request.may_call_twice else "call")
    yield f"start: {'thought GAP? ' * (thought is not None)}({' | '.join(kinds)})"
    if thought is not None:
        end = re.escape(thought).replace("/", "\\/")
        yield f"thought[lazy]: /(?s:.*){end}/"
        yield r"GAP: /\s{1,4}/"


def _by_schema(schema: Any, writer: NameWriter, **options: Any) -> str:
    """Return the rule for JSON by a schema."""
    if not isinstance(schema, dict):
        raise ValueError("a schema is a JSON object")
    options["whitespace_pattern"] = SPACE
    if writer.is_canonical:  # in "\n" and the like, n could be a word for a name
        options["json_allowed_escapes"] = '"\\'
    written = {**writer.schema(schema), "x-guidance": options}
    return f"%json {json.dumps(written, ensure_ascii=False)}"


def _escaped(name: str) -> str:
    """Return a name as it stands in a string of JSON."""
    written = json.dumps(name, ensure_ascii=False)[1:-1]
    return name if written == name else written
