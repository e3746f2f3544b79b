"""Answers in canonical spelling, written back: words for names, in the forms that models give them.

An answer has the words of a text's names, also as `PERSONB` or `PersonBs`, and names of its own. It
gets the text's names back as it comes, and no name of its own becomes one of these.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import regex  # type: ignore[import-untyped]

from .bound_names import key_of
from .name_rules import reads_answers
from .spans import Span, is_only_a_word, parts
from .text_pieces import Beginnings
from .words import WORDS, NamesByWord

if TYPE_CHECKING:  # which makes streams of answers itself
    from .canonical_names import CanonicalNames

ENDINGS = ("s", "es")
_PROSE = 4  # letters of a word that is written with a capital, or in plural, as words of prose are
TERMINAL = r"(?:\x1b|(?<!\\)\\++(?i:u001b|x1b|033|e))\[[\d;]*[A-Za-z]"
"""Colours of terminals."""
_WITH_SIGNS = regex.compile(
    rf"({TERMINAL}|\\[bfnrt]|\\u[0-9a-fA-F]{{4}})((?:\w|\\_)++)|(?<!\w)(\w++(?:\\_\w*+)++)"
)
"""A word with an escape right before it, or with those of Markdown."""
_LAST_SPACE = regex.compile(r"(?r)[\s\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")


def forms(word: str) -> list[str]:
    """Return how a word for names may be written in prose, in upper or lower case."""
    folded = word.casefold()
    return [folded, *(f"{folded}{ending}" for ending in ENDINGS if len(word) >= _PROSE)]


def bare(form: str) -> str:
    """Return a word of prose without the underscores around it, which Markdown has."""
    core = form.strip("_")
    return core if len(core) >= _PROSE else form


class Forms:
    """Finds the names that words of an answer stand for by a table, in the forms of these words.

    Words of prose have forms: in capitals, with a first capital, in plural, and in `_Markdown_`.
    """

    def __init__(self, table: Mapping[str, str]):
        self._table = table
        self._bases = {w.casefold(): w for w, n in table.items() if w != n and len(w) >= _PROSE}

    def name(self, form: str) -> str | None:
        """Return a name; None for a word that is no form of one in the table."""
        if form in self._table:
            return str(self._table[form])
        if (core := bare(form)) != form:
            name, (before, _, behind) = self.name(core), form.partition(core)
            return None if name in (None, core) else f"{before}{name}{behind}"
        folded = form.casefold() if self._bases else ""
        for ending in ("", *ENDINGS):
            word = self._bases.get(folded.removesuffix(ending))
            if word is not None and folded.endswith(ending):
                return _in_form(self._table[word], word, form, ending)
        return None


def _in_form(name: str, word: str, form: str, ending: str) -> str:
    """Return a name in the form that its word has in an answer."""
    stem = form[: len(form) - len(ending)] if ending else form
    if stem != word and stem.isupper():
        name = name.upper()
    elif stem != word and stem[:1].isupper():
        name = name[:1].upper() + name[1:]
    return str(name) + form[len(stem) :]


class BackStream:
    """Writes an answer with the names of a text as it comes; see `CanonicalNames.stream`.

    Attributes:
        not_given: words with a stem, as names have them, that stand for none: they stay.
        at_once: all of an answer comes at its end, since a rule reads whole texts, or two names are
            spelled alike.
    """

    def __init__(self, names: "CanonicalNames", table: Mapping[str, str]):
        self._names, self._table, self._held = names, dict(table), ""
        self._forms, self.not_given = Forms(self._table), set[str]()
        self._called, self._same = NamesByWord(), dict[str, str]()
        self._taken, self._own, self._next = set[str](), set[str](), dict[str, Iterator[str]]()
        for word, name in table.items():
            self._take(word, name)
        # Where a name and a word of the text are spelled alike, the word stays.
        keys = Counter(map(key_of, table.values()))
        self._stay = {
            word for word, name in table.items() if word == name and keys[key_of(name)] > 1
        }
        called = [name for word, name in table.items() if word != name]
        readers = map(names.finder.reader, names.finder.rules)
        # what a name is, or would capture, depends on all of the answer
        alike = len({*called}) < len(called)
        of_text = bool(table) or not names.by_rule
        self.at_once = alike or (of_text and any(map(reads_answers, readers)))
        self._beginnings = Beginnings(called)

    def feed(self, chunk: str) -> str:
        """Take more of the answer; return what no further part changes."""
        space = None if self.at_once else _LAST_SPACE.search(chunk)
        end = len(self._held) + space.end() if space else 0
        self._held += chunk
        return self._write(self._beginnings.place(self._held[:end])) if space else ""

    def close(self) -> str:
        """Return the rest of the answer."""
        return self._write(len(self._held))

    def _take(self, word: str, name: str) -> None:
        self._called.add(str(name), self._names.class_of(word))
        self._taken |= {word.casefold(), name.casefold()}

    def _add(self, form: str, name: str) -> None:
        # `Tool_b` and `tool_b` of GET_X are spelled alike, and are one
        self._same[form] = next((w for w, n in self._table.items() if n == name), form)
        self._table[form] = name

    def _write(self, stop: int) -> str:
        part, self._held = self._held[:stop], self._held[stop:]
        if not part:
            return ""
        if self._names.by_rule:
            return self._names.back_by_rule(part, self._table) if self._table else part
        for word in dict.fromkeys(WORDS.findall(part)):
            if word not in self._table and (name := self._forms.name(word)) is not None:
                self._add(word, name)
                self._take(word, name)
        called = {name: kind for name, kind in self._called.within(part).items() if name in part}
        words = self._names.words_in(part, self._table) | dict.fromkeys(self._with_signs(part))
        if called and self.at_once:
            # What a program binds itself may be called otherwise, and leave its name to a word.
            pieces, classes = self._cut(part, words)
            written = self._names.finder.spell(pieces, classes, self._table)
            spelled = zip(written, pieces, strict=True)
            left = {
                self._table[w] for new, (_, w) in spelled if w and new != self._table.get(w, new)
            }
            called = {name: kind for name, kind in called.items() if name not in left}
        pieces, classes = self._cut(part, called | words)
        found = {name: self._word_for(name, kind) for name, kind in classes.items()}
        pieces = [(text, name and found[name]) for text, name in pieces]
        classes = {found[name]: kind for name, kind in classes.items()}
        return "".join(self._names.finder.spell(pieces, classes, self._table))

    def _with_signs(self, text: str) -> Iterator[str]:
        r"""Yield words for names behind escapes, `\ntool_b` in a text, or with them, `tool\_b`."""
        if "\\" not in text and "\x1b" not in text:
            return
        least = _PROSE if self._names.of_code else 2  # letters: code has its own, so has LaTeX
        for match in _WITH_SIGNS.finditer(text):
            sign, word = match[1] or "", match[2] or match[3]
            core, marks = word.replace("\\_", "_"), word.count("\\_")
            if len(core) < least or marks not in (0, core.count("_")):
                continue
            found, name = match.group(), self._forms.name(core)
            if name is not None and name != core:
                self._add(found, sign + (name.replace("_", "\\_") if marks else name))
                yield found

    def _cut(
        self, text: str, more: Mapping[str, str | None]
    ) -> tuple[list[tuple[str, str | None]], dict[str, str]]:
        """Cut a text at its names; return the pieces, names with themselves, and name -> class."""
        spans = [x for x in self._names.names_in(text, more=more) if self._is_name(text, x)]
        pieces: list[tuple[str, str | None]] = []
        for between, span in parts(text, spans):
            word = span and text[span.start : span.stop]
            pieces += [(between, None), (word or "", word)]
        return pieces, {text[start:stop]: kind for start, stop, kind, _ in spans}

    def _is_name(self, text: str, span: Span) -> bool:
        found = text[span.start : span.stop]
        if found in self._stay:
            return False
        is_word = found in self._table and found not in self._own
        return is_word or not (self._names.of_tools and is_only_a_word(text, span))

    def _word_for(self, name: str, kind: str) -> str:
        """Return the word of the table that a name of the answer is: by default itself.

        One that is new gets a spelling: its own if that is free. `B` is `b` where a rule says so.
        """
        if name in self._table:
            return self._same.get(name, name)
        is_like_one = name.casefold() in self._taken
        given = [(w, n) for w, n in self._table.items() if w != n] if is_like_one else []
        for word, _ in given:
            if self._are_one(kind, name, word):
                return word
        called = name
        if name in self._called or any(self._are_one(kind, name, known) for _, known in given):
            series = self._next.setdefault(kind, iter(self._names.words[kind]))
            called = next(word for word in series if self._names.is_free(word, self._taken))
        self._table[name] = called
        self._own.add(name)
        self._take(name, called)
        if called == name and (words := self._names.words[kind]).stem and name in words:
            self.not_given.add(name)
        return name

    def _are_one(self, kind: str, name: str, other: str) -> bool:
        """Whether two spellings that differ are one name to the rule of a class."""
        if name == other or name.casefold() != other.casefold():
            return False
        found = map(self._names.finder.find, (name, str(other)))
        one, two = ([span.binding for span in spans if span[2] == kind] for spans in found)
        return any(one) and one == two
