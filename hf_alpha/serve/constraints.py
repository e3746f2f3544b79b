"""Answers that are what a request says: JSON, JSON by a schema, calls of tools.

What may come next is worked out by llguidance over what each token writes. A symbol writes a
character of its own, one that no other token can write, and the names in a schema are written by
these too. So what a model may write does not depend on what anything is called. A name gets back
into an answer as JSON writes it, so that a quote in it does no harm.
"""

import json
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from transformers.convert_slow_tokenizer import bytes_to_unicode

from hf_alpha.environment import how_to_install
from hf_alpha.modeling.text_pieces import JOIN
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.serve.messages import Calls

FIRST, JOINED = 0x100000, "\U0010fffd"
"""Characters that symbols write, from `FIRST` on, and what says that no space is before one."""
FREE = "^[^\U00100000-\U0010ffff]*$"
"""A string without symbols."""
MAX_SCHEMA = 32 * 1024
"""Characters of all schemas of a request: 2,000 properties take a second."""
SPACE = r"[ \n\t]{1,40}"
OF_STRINGS = ("pattern", "format", "minLength", "maxLength")
"""What a schema says of the letters of a string, which a name could change."""
OF_KEYS = ("patternProperties", "propertyNames")
NO_NAMES = frozenset(("true", "false", "null"))
"""Words of JSON outside of strings."""
SAMPLE = '{"a b": [1, -2.5], "c": "d"}'


class Spelling:
    """What each token of a tokenizer writes, in bytes; None for what writes no text.

    Raises:
        ValueError: that depends on more than the token.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer, backend = tokenizer, getattr(tokenizer, "backend_tokenizer", None)
        self.is_canonical = isinstance(tokenizer, CanonicalTokenizer)
        read = backend and _reader(backend) if isinstance(tokenizer, TextTokenizer) else None
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
            "response_format, tool_choice: this model's tokenizer does not write JSON letter by "
            "letter, so that no form can be promised: leave them out"
        )

    def text(self, ids: Sequence[int]) -> str | None:
        """Return what tokens write; None if one of them writes no text."""
        written = [self.tokens[index] for index in ids]
        return None if None in written else b"".join(w for w in written if w).decode(errors="replace")


def _reader(backend: Any) -> Any:
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

    def __init__(self, spelling: Spelling, names: Mapping[str, str], may_add: bool):
        self._spelling, self.names, self._may_add = spelling, dict(names), may_add
        self._written: dict[str, str] = {}

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
        answer = tokenizer(text_target=quoted, names=self.names, allow_absent_symbols=True,
                           add_special_tokens=False)  # fmt: skip
        if not self._may_add and (new := answer.names.keys() - self.names.keys()):
            told = f"{answer.names[min(new)]!r} is a name that the text lacks, and this model writes"
            raise ValueError(f"{told} only names of its text: have it stand in a message")
        ids = answer["input_ids"]
        written = (self._spelling.text(ids) or "").strip()
        if tokenizer.decode(ids, names=answer.names).strip() != quoted or len(written) < 2:
            told = f"{text!r} cannot be written beside the names of the text"
            raise ValueError(f"{told}, or not by this model's tokenizer: call it otherwise")
        self.names = answer.names
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
            if self._spelling.is_canonical and self.names:
                told = f"{odd[0]} says of letters what names would change"
                raise ValueError(f"{told}, which this model writes as words: leave it out")
            if not self._spelling.is_canonical:
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
    request: Any, spelling: Spelling, names: Mapping[str, str], thought: str | None, may_add: bool
) -> Form:
    """Return the form of the answers to a request.

    Args:
        names: of its text.
        thought: what ends a thought that an answer begins in.
        may_add: the model can write names that the text lacks.

    Raises:
        ValueError: it cannot be promised.
    """
    writer = NameWriter(spelling, names, may_add)
    try:
        rules = [*_rules(request, writer, thought)]
        if len("".join(rules)) > MAX_SCHEMA:
            raise ValueError(f"schemas have at most {MAX_SCHEMA:,} characters, all together")
    except RecursionError:
        raise ValueError("response_format, tool_choice: a schema is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"response_format, tool_choice: {error}") from None
    if spelling.is_canonical and (odd := [w for w in writer.names if w in NO_NAMES or w[0] in DIGITS]):
        told = f"this model writes {odd[0]!r} for a name, which is a word or a number of JSON"
        raise ValueError(f"response_format, tool_choice: {told}")
    return Form("\n".join(rules), {k: _escaped(name) for k, name in writer.names.items()})


def _rules(request: Any, writer: NameWriter, thought: str | None) -> Iterator[str]:
    """Yield the rules of a grammar."""
    options: dict[str, Any] = {"whitespace_pattern": SPACE}
    if writer.is_canonical:  # in "\n" and the like, n could be a word for a name
        options["json_allowed_escapes"] = '"\\'

    def by(schema: Any, **more: Any) -> str:
        written = {**writer.schema(schema), "x-guidance": {**options, **more}}
        return f"%json {json.dumps(written, ensure_ascii=False)}"

    kinds = []
    if request.schema_of_answer is not None:
        kinds.append("text")
        yield f"text: {by(request.schema_of_answer)}"
    if request.tools:
        kinds.append('call (SPACE? call)*' if request.several else "call")
        yield f"call: {' | '.join(f'call_{i}' for i in range(len(request.callable)))}"
        yield r"SPACE: /[ \n]{1,2}/"
    for number, tool in enumerate(request.callable):
        name, parameters = tool["name"], tool.get("parameters") or {"type": "object"}
        head = f'{{"name": {json.dumps(writer.write(name), ensure_ascii=False)}, "arguments": '
        yield (
            f'call_{number}: "<tool_call>" SPACE? {json.dumps(head, ensure_ascii=False)} '
            f'({by(parameters, lenient=True)}) "}}" SPACE? "</tool_call>"'
        )
    begins = "" if thought is None else "thought "
    yield f"start: {begins}({' | '.join(kinds)})"
    if thought is not None:
        yield rf"thought[lazy]: /(?s:.*){re.escape(thought).replace('/', '\\/')}\s*/"


def _escaped(name: str) -> str:
    """Return a name as it stands in a string of JSON."""
    written = json.dumps(name, ensure_ascii=False)[1:-1]
    return name if written == name else written


class Matcher:
    """Says what may come next in one answer."""

    def __init__(self, matcher: Any):
        self._matcher = matcher

    def again(self) -> "Matcher":
        """Return one for another answer to the same request, from its beginning."""
        return Matcher(self._matcher.deep_copy())

    def forbid(self, scores: torch.Tensor) -> None:
        """Make the scores (V,) of tokens that may not come next impossible.

        Raises:
            ValueError: none is left.
        """
        mask = np.unpackbits(
            np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little"
        )
        allowed = torch.zeros(len(scores), dtype=torch.bool)
        columns = min(len(scores), len(mask))
        allowed[:columns] = torch.from_numpy(mask[:columns]).bool()
        scores.masked_fill_(~allowed.to(scores.device), float("-inf"))
        if not scores.isfinite().any():
            raise ValueError(self._matcher.get_error() or "the model can write nothing of it")

    def take(self, token: int) -> bool:
        """Take the next token; return whether the answer is whole and nothing may follow."""
        self._matcher.consume_token(token)
        return bool(self._matcher.is_stopped())


class Matchers:
    """Makes matchers for forms.

    Args:
        ends: tokens that end an answer.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int]):
        self._tokenizer, self._ends, self._lock = tokenizer, ends, threading.Lock()
        self._vocabulary: Any = None

    def matcher(self, form: Form) -> Matcher:
        """Return what holds an answer to a form.

        Raises:
            ValueError: there is no such form; the library is missing.
        """
        try:
            import llguidance
        except ImportError:
            raise ValueError(f"response_format, tool_choice: {how_to_install('llguidance')}") from None
        with self._lock:
            if self._vocabulary is None or self._vocabulary.size != len(self._tokenizer):
                self._vocabulary = Vocabulary(Spelling(self._tokenizer), self._ends)
        grammar = llguidance.LLMatcher.grammar_from_lark(form.grammar)
        matcher = llguidance.LLMatcher(self._vocabulary.ll, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(f"response_format, tool_choice: {matcher.get_error()}")
        return Matcher(matcher)


class Vocabulary:
    """A tokenizer as llguidance takes it."""

    def __init__(self, spelling: Spelling, ends: Collection[int]):
        import llguidance

        self._spelling, self.size = spelling, len(spelling.tokens)
        # a token that llguidance calls special is no text
        self.tokens = [w or b"\xff<%d>" % i for i, w in enumerate(spelling.tokens)]
        self.special_token_ids = [i for i, w in enumerate(spelling.tokens) if w is None]
        self.bos_token_id = None
        self.eos_token_id = min(ends, default=len(self.tokens))
