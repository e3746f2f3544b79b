"""A certificate that what reaches a model depends on no name: renamings made to break that."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

import regex  # type: ignore[import-untyped]

from hf_alpha.alias.chat import (
    CanonicalRequest,
    Unescaped,
    names_of,
    texts_of,
    undescribed,
    write_request,
)
from hf_alpha.alias.people import parts_of
from hf_alpha.io.plain_text import counted
from hf_alpha.modeling.canonical_answers import Forms, bare, forms
from hf_alpha.modeling.canonical_names import CanonicalNames, Spelling
from hf_alpha.modeling.chat_names import write_data
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import overlapping
from hf_alpha.modeling.text_pieces import cut_at_names
from hf_alpha.modeling.words import WORDS as ALL_WORDS
from hf_alpha.modeling.words import like_a_word, name_pattern

Table = dict[tuple[str, str], str]
"""(class, name) -> the name in its place."""
Ask = Callable[[dict[str, Any]], Any]
"""From a request to its answer, both in OpenAI's form."""
SWAPPED, WORDS, OTHERS = "swapped", "words for names", "other people"
INVENTED: dict[str, Callable[[int], str]] = {
    "invented": lambda n: f"zuka_{n}lo",
    "misleading": lambda n: ("delete_everything", "get_stock_price", "send_email")[n % 3] + f"_{n}",
    "reserved": lambda n: ("None_", "class_", "return_", "null_")[n % 4] + f"{n}",
    "long": lambda n: f"n{n}_" + "x" * 197,
    "other scripts": lambda n: ("größe_", "变量_", "имя_", "नाम_")[n % 4] + f"{n}",
}
"""Kind of renaming -> the name of a number."""
PEOPLE = ("Maria", "Ahmed", "Kenji", "Olga", "Priya", "Diego", "Amara", "Lars", "Mei", "Fatima",
          "Garcia", "Novak", "Okafor", "Larsen", "Kim", "Haddad", "Tanaka", "Silva")  # fmt: skip
"""Parts of names that people have, for a rule that finds people."""
TEXTS = ("messages", "prompt")
FIELDS = ("messages", "prompt", "tools", "functions", "tool_choice", "response_format", "names")
_LIKE_A_NAME = regex.compile(r"\w*[\p{L}\d](?:_|\p{Ll}\p{Lu})\w+")
_LAST_WORD = regex.compile(r"(?<!\w)\w*$")
_EDGES = regex.compile(r"(?s)(\W*+)\w.*?(\W*)")
_MOST_SHOWN = 5


@dataclass
class Certificate:
    """What was tried, and what came of it.

    Attributes:
        texts: chats and texts.
        names: all their names, once for each text.
        renamings: of texts, by kind.
        differing: (text, kind) of those that reach the model otherwise than the text does.
        missed: of these, those in which a name is not found, so that it goes out.
        asked: renamings under which a model's answers were compared.
        changed: (text, kind) of those whose answer in canonical spelling is not the renamed one.
        changed_plain: of those whose answer is not when the model is asked as it is.
        undescribed: tools and parameters without a description -> how many texts have them. What
            they are for, their names alone say, which a rule may keep (`keep: undescribed`).
        like_names: words that reach the model and look like names -> how many texts have them.
        parts_left: words of names of several words that reach it -> how many texts have them.
    """

    texts: int = 0
    names: int = 0
    renamings: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[int, str]] = field(default_factory=list)
    missed: list[tuple[int, str]] = field(default_factory=list)
    asked: int = 0
    changed: list[tuple[int, str]] = field(default_factory=list)
    changed_plain: list[tuple[int, str]] = field(default_factory=list)
    undescribed: Counter[str] = field(default_factory=Counter)
    like_names: Counter[str] = field(default_factory=Counter)
    parts_left: Counter[str] = field(default_factory=Counter)

    @property
    def holds(self) -> bool:
        """Whether no renaming made a difference in canonical spelling."""
        return not (self.differing or self.changed)

    def __add__(self, other: "Certificate") -> "Certificate":
        """Return the certificate of the texts of both."""
        both = {name: part + getattr(other, name) for name, part in vars(self).items()}
        for name, of_texts in both.items():
            if isinstance(of_texts, list):
                both[name] = sorted(of_texts, key=itemgetter(0))
        return Certificate(**both)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"holds": self.holds, **vars(self)}

    def __str__(self) -> str:
        tried = sum(self.renamings.values())
        numbers = ((self.texts, "text"), (self.names, "name"), (tried, "renaming"))
        said = ", ".join(counted(*pair) for pair in numbers)
        said += f": {len(self.differing):,} reach the model otherwise"
        if self.missed:
            said += f", {len(self.missed):,} of them as a name is not found"
        for how, changed in (("plain", self.changed_plain), ("canonical", self.changed)):
            if self.asked:
                said += f"\n{how:<9}  {len(changed):,} of {self.asked:,} answers change"
        return said


def certify(
    requests: Iterable[Mapping[str, Any]],
    names: CanonicalNames,
    ask: Ask | None = None,
    shard: tuple[int, int] = (1, 1),
) -> Certificate:
    """Rename the names of requests in several ways, and see whether that makes a difference.

    A model is asked as it is and in canonical spelling. Answers are compared in the first names;
    one that was cut off, as far as it goes.

    Names that are like words (`city`) are swapped among themselves: in prose such a word is no
    name. A name that a rule finds is given only names that the rule finds too.

    Args:
        requests: in OpenAI's form: `messages` with `tools`, or a `prompt`.
        ask: a model, whose answers are compared too.
        shard: (k, n) takes the k-th of n shares of the requests, k from 1 on; the certificate of
            all of them is the sum.

    Raises:
        ValueError: a request is wrong; the message says which. Or names have no words, as rings of
            molecules, which no chat renames.
    """
    if names.by_rule:
        raise ValueError(
            f"names of the class {min(names.by_rule)!r} are spelled by their rule, and have "
            "no words to be renamed to"
        )
    made = Certificate()
    first, count = shard
    for number, body in islice(enumerate(requests), first - 1, None, count):
        try:
            _try_one(made, number, body, names, ask)
        except ValueError as error:
            raise ValueError(f"text {number + 1}: {error}") from None
    return made


def _try_one(
    made: Certificate,
    number: int,
    body: Mapping[str, Any],
    names: CanonicalNames,
    ask: Ask | None,
) -> None:
    spelled, firsts = CanonicalRequest(names, body), _first_spellings(names.finder, body)
    found = [*dict.fromkeys(firsts.values())]
    made.texts, made.names = made.texts + 1, made.names + len(found)
    bare = undescribed(body)
    made.undescribed.update(bare)
    made.like_names.update(_like_names(spelled, names) - bare)
    made.parts_left.update(spelled.parts_left)
    first = None if ask is None else _answers(ask, body, spelled, {})
    for kind, table in _tables(names, found, body):
        other = _renamed(names, body, _in_each_spelling(table, firsts))
        request = CanonicalRequest(names, other)
        made.renamings[kind] += 1
        if json.dumps(request.body) != json.dumps(spelled.body):
            made.differing.append((number, kind))
            expected = {(of, table.get((of, name), name)) for of, name in found}
            missed = expected - {*_first_spellings(names.finder, other).values()}
            made.missed += [(number, kind)] if missed else []
        if ask is None or first is None:
            continue
        made.asked += 1
        plain, canonical = map(_agree, first, _answers(ask, other, request, table))
        made.changed_plain += [] if plain else [(number, kind)]
        made.changed += [] if canonical else [(number, kind)]


def renamed(names: CanonicalNames, body: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return a request with other names, in answers in the forms that the first ones have there.

    A name that would lose its form, as one without capitals does in capitals, is not renamed, and
    none to a word for names, whose forms stand for themselves.

    Args:
        table: (class, name) -> the name in its place, in each of its spellings.
    """
    firsts = _first_spellings(names.finder, body)
    return _renamed(names, body, _in_each_spelling(table, firsts))


def _in_each_spelling(table: Table, firsts: Mapping[tuple[str, str], tuple[str, str]]) -> Table:
    return {pair: table[first] for pair, first in firsts.items() if first in table} | table


def _renamed(names: CanonicalNames, body: Mapping[str, Any], table: Table) -> dict[str, Any]:
    finder = names.finder
    found = names_of(finder, body)
    spelling = Spelling(names, variants=found.variants)
    spelling.avoid(found.stay)
    has_answers, formless = any(answers for answers, _ in texts_of(body)), set[str]()

    def write(answers: bool, text: str) -> str:
        text = Unescaped.of(text)
        spans, keys = found.find(text, answers)
        cut = spelling.add(text, spans, (), keys, answers) if has_answers else None
        called = [(span.symbol_class, text[span.start : span.stop]) for span in spans]
        new = [(*span[:2], table[pair], False, False)
               for span, pair in zip(spans, called, strict=True) if pair in table]  # fmt: skip
        for word, start, stop, as_is in cut.pieces if cut and answers else ():
            if not (as_is or overlapping(start, stop, spans)):
                new.append((start, stop, formed(word), False, False))
        cut = cut_at_names("kept", text, sorted(new))
        return text.written(cut) if isinstance(text, Unescaped) else cut.written

    def formed(form: str) -> str:
        """Return a name as a word for it is written in a form."""
        folded = {form.casefold(), bare(form).casefold()}
        word = next(word for word in spelling.table if not folded.isdisjoint(forms(word)))
        name = spelling.table[word]
        new = next((new for (_, old), new in table.items() if old == name), name)
        now, plain = Forms({word: new}), regex.sub(f"(?i){regex.escape(word)}", word, form)
        is_lost = plain != form and now.name(form) == now.name(plain)
        if new != name and (is_lost or names.class_of(new) is not None):
            formless.add(name)
        return now.name(form) or form

    def called(kind: str) -> Callable[[str], str]:
        return lambda name: table.get((kind, name), name)

    new = write_request(body, write)
    if formless:
        return _renamed(names, body, {p: new for p, new in table.items() if p[1] not in formless})
    if (given := body.get("names")) is not None:
        first = next(iter(finder.by_class(given)), "")
        listed = given if isinstance(given, Mapping) else {first: given}
        new["names"] = {kind: write_data(of, called(kind)) for kind, of in listed.items()}
    return new


def _first_spellings(
    finder: NameFinder, body: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (class, spelling) -> the same with the first spelling, where a name has several.

    As `T1` and `t1` are one to SQL. Two names that share a spelling are renamed together.
    """
    found = names_of(finder, body)
    firsts: dict[tuple[str, str], tuple[str, str]] = {}
    of_binding: dict[tuple[str, str], tuple[str, str]] = {}
    for answers, text in texts_of(body):
        for span in found.find(text, answers)[0]:
            pair = span.symbol_class, text[span.start : span.stop]
            first = of_binding.setdefault((span.symbol_class, span.binding), pair)
            firsts.setdefault(pair, firsts.get(first, pair) if span.binding else pair)
    return firsts


def _tables(
    names: CanonicalNames, found: list[tuple[str, str]], body: Mapping[str, Any]
) -> Iterator[tuple[str, Table]]:
    """Yield renamings of these names, with their kind."""
    finder = names.finder
    parts = _parts(finder, found)
    by_group: dict[Any, list[str]] = {}
    for kind, name in parts:
        by_group.setdefault((kind, like_a_word(name), _signs(name)), []).append(name)
    swapped: Table = {}
    for (kind, *_), group in by_group.items():
        swapped |= {(kind, a): b for a, b in zip(group, [*group[1:], group[0]], strict=True)}
    if any(name != new for (_, name), new in swapped.items()):
        yield SWAPPED, _together(finder, found, swapped)
    text = json.dumps(body, ensure_ascii=False)
    words = {kind: [*islice(series, len(parts))][::-1] for kind, series in names.words.items()}
    tables = {kind: [invent(n) for n in range(len(parts))] for kind, invent in INVENTED.items()}
    people = [f"{PEOPLE[n % len(PEOPLE)]}{'o' * (n // len(PEOPLE))}" for n in range(len(parts))]
    tables[OTHERS] = people if any(finder.variants(name, kind) for kind, name in found) else []
    tables[WORDS] = [words[kind][number] for number, (kind, _) in enumerate(parts)]
    for kind, invented in tables.items():
        new = zip(parts, invented, strict=False)
        table = {pair: _formed(finder, *pair, word) for pair, word in new}
        if usable := _together(finder, found, _usable(finder, table, text)):
            yield kind, usable


def _parts(finder: NameFinder, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is renamed: names, and parts of those of which the rule knows spellings."""
    spellings = {(k, s) for k, name in found for s in finder.variants(name, k) if s != name}
    parts = dict[tuple[str, str], None]()
    for kind, name in found:
        if not finder.variants(name, kind):
            parts[kind, name] = None
        elif (kind, name) not in spellings:
            parts |= {(kind, part): None for part in parts_of(name)}
    return [*parts]


def _together(finder: NameFinder, found: list[tuple[str, str]], parts: Table) -> Table:
    """Return names renamed as their parts are, and other spellings as these names."""
    table: Table = {}
    for kind, name in sorted(found, key=lambda pair: -len(pair[1].split())):
        spellings = finder.variants(name, kind)
        words = name.split(" ") if spellings else [name]
        new = " ".join(parts.get((kind, word), word) for word in words)
        if (kind, name) not in table:
            table[kind, name] = new
            others = zip(spellings, finder.variants(new, kind), strict=True)
            table = {(kind, old): other for old, other in others} | table
    return {pair: table[pair] for pair in found if table[pair] != pair[1]}


def _formed(finder: NameFinder, kind: str, name: str, new: str) -> str:
    """Return a new name in the form of an old one: with its signs at the edges; a person's."""
    if finder.variants(name, kind):
        new = new.replace("_", "")
        return new[:1].upper() + new[1:]
    before, behind = _signs(name)
    return f"{before}{new}{behind}"


def _signs(name: str) -> tuple[str, str]:
    """Return what is no letter or digit at the edges of a name, as in `alice@`."""
    match = _EDGES.fullmatch(name)
    return (match[1], match[2]) if match else ("", "")


def _usable(finder: NameFinder, table: Table, text: str) -> Table:
    """Leave out names that the text has already, or that a rule does not find."""

    def is_found(kind: str, name: str) -> bool:
        rule = finder.rules[kind]
        if rule.rule == "tools" or rule.column:
            return not like_a_word(name)
        if rule.function:
            return True  # whether it finds it in its text, is what is asked
        spans = finder.find(name)
        return [(s.start, s.stop, s.symbol_class) for s in spans] == [(0, len(name), kind)]

    new = {pair: name for pair, name in table.items() if is_found(pair[0], name)}
    folded = text.casefold()
    return {pair: name for pair, name in new.items() if name.casefold() not in folded}


def _like_names(spelled: CanonicalRequest, names: CanonicalNames) -> set[str]:
    """Return the words that reach the model and look like names."""
    texts = "\n".join(text for _, text in texts_of(spelled.body))
    words = set(filter(_LIKE_A_NAME.fullmatch, ALL_WORDS.findall(texts)))
    known = Forms(spelled.table)
    return {word for word in words if known.name(word) is None and names.class_of(word) is None}


@dataclass(frozen=True)
class _Said:
    """What an answer says and calls, in the first names; and whether it was cut off."""

    text: str
    is_cut: bool


def _answers(
    ask: Ask, body: Mapping[str, Any], request: CanonicalRequest, table: Table
) -> tuple[_Said, _Said]:
    """Return the answers to a request as it is, and in canonical spelling."""
    plain = ask({key: value for key, value in body.items() if key != "names"})
    return _said(plain, table), _said(request.back(ask(request.body)), table)


def _said(answer: Any, table: Table) -> _Said:
    choice = answer["choices"][0]
    message = choice.get("message") or {"content": choice.get("text")}
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    parts = [message.get("content") or "", *(f"{c['name']} {_data(c['arguments'])}" for c in calls)]
    text, old = "\n".join(parts), {new: name for (_, name), new in table.items()}
    if old:
        text = name_pattern((*old,)).sub(lambda match: old[match[0]], text)
    return _Said(text, choice.get("finish_reason") == "length")


def _agree(one: _Said, two: _Said) -> bool:
    """Whether two answers are one; of one that was cut off, but for its last word."""
    first, second = (_LAST_WORD.sub("", a.text) if a.is_cut else a.text for a in (one, two))
    begins = (one.is_cut and second.startswith(first), two.is_cut and first.startswith(second))
    return first == second or any(begins)


def _data(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def request_of(
    content: Any, place: str, finder: NameFinder, source: str | None = None
) -> dict[str, Any]:
    """Return the request that a text or a row is.

    A row has `messages`, and perhaps `tools`, or a `prompt` or `source`; and the columns in which
    rules have names.

    Args:
        place: what errors call it.
        source: the column of texts, in place of these.

    Raises:
        ValueError: it is no such row.
    """
    if isinstance(content, str):
        return {"prompt": content}
    if not isinstance(content, Mapping):
        raise ValueError(f"{place} is no record: give an object, or a text")
    fields = FIELDS if source is None else [key for key in FIELDS if key not in TEXTS]
    body = {key: content[key] for key in fields if content.get(key) is not None}
    if body.keys().isdisjoint(TEXTS):
        text = content.get(source or "source")
        if not isinstance(text, str):
            asked = "`messages`, `prompt` or `source`" if source is None else f"text in `{source}`"
            has = f"it has {', '.join(content)}; say which one is the text by `--source`"
            raise ValueError(f"{place} has no {asked}: {has}")
        body["prompt"] = text
    columns = {kind: content[of] for kind, of in finder.columns.items() if of in content}
    return {**body, "names": columns} if columns and "names" not in body else body


def shown(counts: Counter[str]) -> str:
    """Return the most frequent of what was counted, for a line."""
    listed = [f"{name} ({number})" for name, number in counts.most_common(_MOST_SHOWN)]
    return ", ".join(listed) + (", ..." if len(counts) > _MOST_SHOWN else "")
