"""Canonical spelling of texts: names written as words that a model knows, and back in its answers.

The names of a text become `b`, `c`, ... by first occurrence, so a model reads the same whatever
they are called, and its answer gets them back. That is exact by construction, for any number of
names, and touches no weight.

A text is spelled from its start to its end, and a word that was given to a name stays its word. So
the spelling of a text begins with the spelling of its beginning: of a conversation, no later turn
changes what was written before. A plain word that is spelled like a word in use is a name from then
on, which gets a word of its own and comes back as it was.
"""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import chain, compress, count
from typing import Any

import regex  # type: ignore[import-untyped]

from .bound_names import BoundName, key_of
from .canonical_answers import ENDINGS, BackStream, Forms, bare, forms
from .host_words import LETTERS, count_tokens, host_words
from .name_rules import reads_answers
from .names_in_text import NameFinder
from .spans import Kept, MarkedText, Span, keys_in, overlapping, parts
from .text_pieces import Cut, Place, cut_at_names
from .words import (
    PLAIN_WORDS,
    RUNS_ON,
    WORDS,
    inside_word,
    is_one_word,
    like_a_word,
    whole_words,
)

_END_OF_FORM = regex.compile(rf"(?i:{'|'.join(reversed(ENDINGS))})?_*")
LAST_LETTERS = "bcdefghijklmnopqrstuvwxyz"

WordsOf = str | Iterable[str] | Mapping[str, str | Iterable[str]]
"""Words for names, or class -> words: a list, or the stem of any number of them."""


class Words:
    """Words for names, in their order; there is no end of them.

    Args:
        words: the first ones, which v1, v2, ... follow; or a stem: `tool_` stands for
            tool_b, ..., tool_z, tool_2b, ..., none of which begins another one.

    Raises:
        ValueError: one of them is no word.
    """

    def __init__(self, words: str | Iterable[str]):
        self.stem = words if isinstance(words, str) else None
        self.listed = tuple(dict.fromkeys(() if self.stem is not None else words))
        for word in (*self.listed, *[f"{self.stem}b"] * (self.stem is not None)):
            if not WORDS.fullmatch(word):
                raise ValueError(f"{word!r} is no word of letters and digits of one script")
        last = LAST_LETTERS
        if self.stem is not None and self.stem[-1:].islower():
            last = last.upper()
        self._last = last
        given = RUNS_ON.search(self.stem or "".join(self.listed))
        self.letters = f"v{given[0] if given else ''}"  # one of each kind of words
        stem = regex.escape(self.stem or "")
        numbered = r"v\d+" if self.stem is None else rf"{stem}\d*[a-z]"
        self._pattern = regex.compile(numbered, regex.IGNORECASE)
        self._folded = frozenset(word.casefold() for word in self.listed)

    @property
    def setting(self) -> str | list[str]:
        """What makes these words."""
        return list(self.listed) if self.stem is None else self.stem

    def __iter__(self) -> Iterator[str]:
        """Yield them, without end."""
        if self.stem is None:
            numbered = (f"v{number}" for number in count(1))
            return chain(self.listed, (word for word in numbered if word not in self.listed))
        numbers = chain([""], map(str, count(2)))
        return (f"{self.stem}{number}{last}" for number in numbers for last in self._last)

    def variants(self, word: str) -> Iterator[str]:
        """Yield words for other spellings of a name with this word: `PersonB2`, `PersonB3`, ..."""
        mark = "_" if word[-1].isdigit() or f"{word}2" in self else ""
        numbered = (f"{word}{mark}{number}" for number in count(2))
        return (new for new in numbered if new not in self)

    def __contains__(self, word: str) -> bool:
        """Whether a word is one of them, in upper or lower case."""
        return word.casefold() in self._folded or self._pattern.fullmatch(word) is not None

    def drawn(self, seed: int) -> Iterator[str]:
        """Yield them in an order that is drawn; the first ones first, for 0 in their order."""
        if not seed:
            return iter(self)
        words = iter(self)
        first = [next(words) for _ in range(len(self.listed) or len(LAST_LETTERS))]
        return chain(random.Random(seed).sample(first, len(first)), words)


def default_words(reader: Any, tokenizer: Any = None) -> str | tuple[str, ...]:
    """Return the words for the names that a function or rule finds, if none are given.

    They are letters, for formulas and code. Where answers may be prose, a letter would be taken for
    a word that the answer means: there they have a stem, as the rule says.
    """
    stem: str = getattr(reader, "stem", "")
    if stem and (tokenizer is None or count_tokens(tokenizer, f"{stem}b")):
        return stem
    return LETTERS if tokenizer is None else host_words(tokenizer)


class CanonicalNames:
    """Writes the names of texts as words of a model, in order of first occurrence.

    What a text's words stand for is a table, word -> name: of the words for its names, and of words
    that it has itself and that could be taken for one, which stand for themselves.

    Args:
        symbols: class -> rule for its names: a pattern, a list, and all that `NameRule` takes.
        tokenizer: of the model, if it is at hand: its one-token words are taken, and its special
            tokens are no names.
        words: in place of these, see `Words`; for all classes, or class -> words.
        kept: classes whose names stay as they are, where they mean something.

    Attributes:
        words: class -> its words; classes may have the same ones.
        by_rule: class -> how its rule spells names that may stand inside words, such as rings of
            molecules by the lowest free number. Bindings have no words: each text is spelled for
            itself, and an answer of the model stays as it is, for its rings are its own. Names that
            are one where they are spelled alike, such as atom maps, are those of the text.

    Raises:
        ValueError: a rule is wrong, or a word is none; there are no words for the tokenizer.

    Examples:
        >>> spelled = CanonicalNames({"variable": "[a-z]+[0-9]"}, words=["x", "y"]).spell("a1 + b2")
        >>> spelled.text, spelled.back("y is 3")
        ('x + y', 'b2 is 3')
    """

    words: Mapping[str, Words]

    def __init__(
        self,
        symbols: Mapping[str, Any] | NameFinder,
        tokenizer: Any = None,
        words: WordsOf | None = None,
        kept: Collection[str] = (),
    ):
        self.finder = symbols if isinstance(symbols, NameFinder) else NameFinder(symbols)
        self.of_tools = any(rule.rule == "tools" for rule in self.finder.rules.values())
        rules, self.kept = self.finder.rules, frozenset(kept)
        inside = [name for name in self.finder.inside if name not in self.kept]
        spells = {name: getattr(self.finder.reader(name), "spell", None) for name in inside}
        self.by_rule = {name: spell for name, spell in spells.items() if spell is not None}
        if parts := [name for name in inside if name not in self.by_rule]:
            raise ValueError(
                f"the names of class {parts[0]!r} are no whole words, and no rule spells them: in "
                "an answer, words for them could not be told from the rest. Take a model with "
                "symbols, or for rings of molecules {rule: smiles}"
            )
        others = rules.keys() - self.by_rule.keys() - self.kept
        if self.by_rule and others:
            raise ValueError(
                f"the names of class {min(self.by_rule)!r} are spelled by their rule, and a word "
                f"for one of {min(others)!r} could be a part of them: leave one class out"
            )
        if kept and not self.kept < rules.keys():
            raise ValueError(f"kept is {sorted(kept)}: give some of {', '.join(rules)}, not all")
        meaningful = ((*r.reserved, *(r.tokens if c in kept else ())) for c, r in rules.items())
        self._meaningful = frozenset(word.casefold() for word in chain.from_iterable(meaningful))
        self.words = self._words_of(words, tokenizer)
        readers = {name: self.finder.reader(name) for name in self.words.keys() & rules.keys()}
        code = [getattr(r, "unbound", None) or rules[n].language for n, r in readers.items()]
        self.of_code = any(code)
        self._unread = {  # numbers: their words are none, so a rule does not find them in answers
            name
            for (name, reader), is_code in zip(readers.items(), code, strict=True)
            if reads_answers(reader) and not (is_code or [*reader(next(iter(self.words[name])))])
        }
        self._added: Any = None
        if (beneath := getattr(tokenizer, "backend_tokenizer", None)) is not None:
            from .tokenizer_beneath import AddedTokens  # needs Transformers, as a tokenizer does

            self._added = AddedTokens.of(beneath)

    def _words_of(self, words: WordsOf | None, tokenizer: Any) -> dict[str, Words]:
        """Return class -> words; classes with the same ones share them, and so each word."""
        if self.by_rule:
            return {}
        rules, by_class = self.finder.rules, words if isinstance(words, Mapping) else {}
        if unknown := [name for name in by_class if name not in rules]:
            known = ", ".join(rules) or "none"
            raise ValueError(f"words: there is no class {unknown[0]!r}; the classes are {known}")
        made: dict[Any, Words] = {}

        def make(given: str | Iterable[str]) -> Words:
            given = given if isinstance(given, str) else tuple(given)
            if not isinstance(given, str):
                given = tuple(
                    word for word in given if f"{word}".casefold() not in self._meaningful
                )
            return made.setdefault(given, Words(given))

        if words is not None and not isinstance(words, Mapping):
            return dict.fromkeys(rules or [""], make(words))
        if not rules:
            return {"": make(default_words(None, tokenizer))}
        read = self.finder.reader
        return {
            name: make(by_class[name] if name in by_class else default_words(read(name), tokenizer))
            for name in rules
        }

    @property
    def setting(self) -> list[str] | dict[str, Any]:
        """The words as JSON has them: a list, if it is one for all classes, else class -> words."""
        settings = {name: words.setting for name, words in self.words.items()}
        first = next(iter(settings.values()), None)
        alike = isinstance(first, list) and all(each == first for each in settings.values())
        return first if alike else settings  # type: ignore[return-value]

    def spell(self, text: str, draw: int = 0) -> "Spelled":
        """Write the names of a text as words.

        Args:
            text: the text; a `MarkedText` knows its names.
            draw: 0 for the words in their order, else their order is drawn with this seed. Which
                words are skipped, as the text has them beside its names, depends on no name.

        Raises:
            ValueError: see `NameFinder.find`; or a name is a part of a word, and could not be told
                from the rest of it in an answer.
        """
        self.finder.require_names(text)
        return self.spell_row([text], draw)

    def spell_row(
        self, texts: Sequence[str], draw: int = 0, own: Sequence[Kept | None] = (None, None)
    ) -> "Spelled":
        """Write the names of a text, or of two that belong together, as `spell` does.

        Args:
            draw: see `spell`.
            own: of each, what tokens it has that are no names; by default the tokenizer says it.
        """
        spelling = Spelling(self, draw=draw)
        found = [self._found(*pair) for pair in zip(texts, own, strict=False)]
        for text, (_, names) in zip(texts, found, strict=True):
            stay = (span for span in names if span.symbol_class in self.kept)
            spelling.avoid(str(text)[span.start : span.stop] for span in stay)
        pieces = []
        for text, (tokens, names) in zip(texts, found, strict=True):
            pieces.append(spelling.add(text, self._spelled(names), tokens))
        return Spelled(spelling.words, spelling.table, pieces, self)

    def spell_answer(
        self,
        target: str,
        table: Mapping[str, str],
        own: Kept | None = None,
        allow_absent: bool = True,
    ) -> tuple[Cut, dict[str, str]]:
        """Write an answer to a text in the same words, to train with; new names get the next.

        Args:
            own: see `spell_row`.
            allow_absent: else a new name is an error.

        Returns:
            The answer, and the table with the words for new names.

        Raises:
            FormulaError: a name is new, and may not be.
        """
        given = {str(n): self.class_of(word) for word, n in table.items() if word != n}
        own, found = self._found(target, own, given)
        spans, spelling = self._spelled(found), Spelling(self, table)
        kinds = {target[span.start : span.stop]: span.symbol_class for span in spans}
        known = {key_of(name): (str(name), kinds.get(name, "")) for name in table.values()}
        keys = keys_in(target, spans, known)
        if not allow_absent:
            from .tokenization_symbols import check_present

            pairs = [*zip(keys, spans, strict=True)]
            classes = {k: s.symbol_class for k, s in pairs if not (self.by_rule and s.binding)}
            called = {key: target[span.start : span.stop] for key, span in pairs}
            check_present(target, classes, spelling.words, called)
        return spelling.add(target, spans, own, keys), spelling.table

    def back(self, answer: str, table: Mapping[str, str]) -> str:
        """Write an answer of the model with the names of a text.

        A name of the answer's own, one that the rules find or a word for names that the text does
        not use, stays as it is, unless the text has such a name: then it gets the next free word.
        So does a word that is spelled like a name of the text, whatever found that.
        """
        return "".join(self.stream([answer], table))

    def stream(self, chunks: Iterable[str], table: Mapping[str, str]) -> Iterator[str]:
        """Write an answer as it comes, word by word; as `back`, for rules that look at one word.

        It comes at once where a rule reads whole answers, or two names are spelled alike.
        """
        back = self.back_stream(table)
        for chunk in chunks:
            if ready := back.feed(chunk):
                yield ready
        if rest := back.close():
            yield rest

    def back_stream(self, table: Mapping[str, str]) -> BackStream:
        """Return what takes the parts of an answer, as `stream` does."""
        return BackStream(self, table)

    def back_by_rule(self, answer: str, table: Mapping[str, str]) -> str:
        """Write an answer with the names of a text, of classes that their rules spell."""
        spans = [span for span in self.finder.find(answer) if not span.binding]
        pieces: list[tuple[str, str | None]] = []
        for between, span in parts(answer, spans):
            pieces += [(between, None), ("", span and answer[span.start : span.stop])]
        classes = {answer[span.start : span.stop]: span.symbol_class for span in spans}
        own = {name: name for name in classes.keys() - table.keys() - {*table.values()}}
        return "".join(self.finder.spell(pieces, classes, {**table, **own}))

    def words_in(self, answer: str, table: Mapping[str, str]) -> dict[str, str | None]:
        """Return word -> class, of an answer's words that are words for names, or in its table."""
        words = {word: self.class_of(word) for word in WORDS.findall(answer)}
        return {word: kind for word, kind in words.items() if kind is not None or word in table}

    def class_of(self, word: str) -> str | None:
        """Return a class whose words have this one; None if none has."""
        return next((name for name, words in self.words.items() if word in words), None)

    def names_in(
        self, text: str, own: Kept | None = None, more: Mapping[str, str | None] | None = None
    ) -> tuple[Span, ...]:
        """Return the names of a text that are written as words.

        Args:
            own: what tokens it has that are no names; by default the tokenizer says it.
            more: of an answer, name -> class of names beside those that the rules find: in one to
                learn those of its text, in a model's the words for names. None is the first class.
        """
        return () if self.by_rule else self._spelled(self._found(text, own, more)[1])

    def _found(
        self, text: str, own: Kept | None = None, more: Mapping[str, str | None] | None = None
    ) -> tuple[Kept, tuple[Span, ...]]:
        """Return the tokens of a text that are no names, and its names, also those that stay."""
        if own is None:
            own = () if self._added is None else self._added.find(text)
        if not self.finder.rules:
            return own, ()
        kind = next(name for name in self.finder.rules if name not in self.kept)
        given = None if more is None else {name: k or kind for name, k in more.items()}
        spans = self.finder.find(text, given, own)
        unread = {name: k for name, k in (given or {}).items() if k in self._unread}
        return own, self.finder.with_given(text, [*spans], unread, own) if unread else spans

    def _spelled(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        return tuple(span for span in spans if span.symbol_class not in self.kept)

    def is_free(self, word: str, taken: Collection[str]) -> bool:
        return word.casefold() not in self._meaningful and not any(f in taken for f in forms(word))


class Spelling:
    """Texts that are spelled one behind another, each name as the same word in all of them.

    Spellings of one name (`Alice Brenner`, `Brenner`) have words that say so, `PersonB` for the one
    that is there first, then `PersonB2`, ...: so each comes back as it was.

    Args:
        table: word -> what it stands for, of texts before these.
        draw: see `CanonicalNames.spell`.
        variants: of names, those that are spellings of one another; rules may know others.

    Attributes:
        words: key of a name -> word, in order of first occurrence.
        table: word -> what it stands for.
    """

    def __init__(
        self,
        names: CanonicalNames,
        table: Mapping[str, str] | None = None,
        draw: int = 0,
        variants: Iterable[Sequence[str]] = (),
    ):
        self._kin: dict[str, _Kin] = {}
        self._know(variants)
        self.table = dict(table or {})
        self._plain = {word for word, name in self.table.items() if word == name}
        given = {word: name for word, name in self.table.items() if word != name}
        self.words = {word: word for word in self._plain}
        self.words |= {key_of(name): word for word, name in given.items()}
        self._between: list[str] = []
        self._searched: dict[str, int] = {}  # name -> how many of these it was looked for in
        self._taken = {word.casefold() for word in self.table}
        self._names, self._next = names, dict[int, Iterator[str]]()
        self._draw = draw
        first = next(iter(names.words), "")
        self._called = dict[str, tuple[str, str]]()  # names in small letters -> name and word
        self._lengths: dict[str, list[int]] = {}  # first word of these -> how long names are
        self._given: dict[str, str] = {}  # form of a word for names -> class
        for word in given:
            self._given |= dict.fromkeys(forms(word), names.class_of(word) or first)

    def parts_left(self) -> set[str]:
        """Return words of names of several words that stay in the texts, where a model reads them.

        In upper or lower case; not particles (`van`) and initials.
        """
        plain = {word.strip("_").casefold() for word in self._plain}
        names = (name for name in self.words if len(name.split()) > 1 and name[0] != "\0")
        parts = {part for name in names for part in WORDS.findall(name)}
        parts = {part for part in parts if len(part) > 2 and not part[0].islower()}
        return {part for part in parts if part.casefold() in plain}

    def _know(self, variants: Iterable[Sequence[str]]) -> None:
        for spellings in variants:
            kin = _Kin()
            for name in spellings:
                self._kin.setdefault(name, kin)

    def avoid(self, names: Iterable[str]) -> None:
        """Give no name a word that these have, which stay as they are."""
        self._taken |= {name.casefold() for name in names}

    def add(
        self,
        text: str,
        spans: Sequence[Span],
        own: Kept = (),
        keys: Sequence[str] | None = None,
        answers: bool = False,
    ) -> Cut:
        """Spell a text.

        Args:
            spans: its names.
            own: the tokens that it has and that are no names: they stay as they are.
            keys: of its names, by default as `keys_in` has them.
            answers: whether it was an answer of the model, which may have had words in forms.

        Returns:
            The text, cut at its names.

        Raises:
            ValueError: a name is a part of a word, or stands right behind another one.
        """
        if self._names.by_rule:
            return cut_at_names("kept", text, self._by_rule(text, spans))
        self._know(getattr(text, "variants", ()))
        plain, places = str(text), list[Place]()
        keys, start = keys_in(text, spans) if keys is None else keys, 0
        if not plain.isascii():
            fits = [not self._goes_out(plain, span) for span in spans]
            spans, keys = [*compress(spans, fits)], [*compress(keys, fits)]
        if self._names.of_code and not isinstance(text, MarkedText):  # a chat has parts
            # Strings and attributes are read as they are, and no answer would get them back.
            between = "\n".join(part for part, _ in parts(plain, spans))
            self.avoid(dict.fromkeys(WORDS.findall(between)).keys() - self.table.keys())
        called, given = dict.fromkeys(plain[span.start : span.stop] for span in spans), iter(keys)
        code = cache(partial(self._words_of_code, plain, spans))
        words = PLAIN_WORDS if plain.isascii() else WORDS
        for between, span in parts(plain, spans):
            self._between.append(between)
            end = start + len(between)
            for match in words.finditer(plain, start, end):
                if match.start() < start:
                    continue
                form = self._form_at(plain, match, end) if answers and self._called else None
                if (place := form or self._plain_word(match, own, code)) is not None:
                    places.append(place)
                    start = place[1]
            if span is not None:
                places.append(self._name(plain, span, next(given)))
                if len(places) > 1 and places[-2][1] == places[-1][0]:
                    name, end = plain[span.start : span.stop], span.start
                    raise ValueError(f"the name {name!r} at {end} stands right behind another name")
                start = span.stop
        for name in called:
            if name not in self.table and self._stays(name):
                self.table[name] = name
        return cut_at_names("kept", text, places)

    def _stays(self, name: str) -> bool:
        """Whether a name stands somewhere as plain text too, where no rule has found it."""
        if name in self._plain or not self._plain.issuperset(words := WORDS.findall(name)):
            return name in self._plain
        first, self._searched[name] = self._searched.get(name, 0), len(self._between)
        others = (text for text in self._between[first:] if name in text)
        return len(words) > 1 and any(map(whole_words(regex.escape(name)).search, others))

    def _by_rule(self, text: str, spans: Sequence[Span]) -> list[Place]:
        """Return names as their rules spell them, whatever they are called."""
        places: list[Place] = []
        for kind, spell in self._names.by_rule.items():
            names = [span for span in spans if span.symbol_class == kind]
            between = [before for before, _ in parts(text, names)]
            spellings = spell(between, [span.key(text) for span in names], self.words)
            for (start, stop, _, binding), spelling in zip(names, spellings, strict=True):
                places.append((start, stop, spelling, False, False))
                if not binding:
                    self.words[text[start:stop]] = spelling
                    self.table[spelling] = text[start:stop]
        return sorted(places)

    def _glued(self, text: str, span: Span) -> tuple[bool, bool]:
        """Return whether the word for a name would go on what is before it, or behind in it."""
        letters = self._names.words[span.symbol_class].letters
        before, behind = text[max(span.start - 1, 0) : span.start], text[span.stop : span.stop + 1]
        is_before = any(inside_word(before + letter, 1) for letter in letters)
        return is_before, any(inside_word(letter + behind, 1) for letter in letters)

    def _goes_out(self, text: str, span: Span) -> bool:
        """Whether a name stands as a word where one for it would be none: in Chinese beside `x`."""
        edges = zip(self._glued(text, span), span[:2], (span.start, span.stop - 1), strict=True)
        return any(
            is_glued and is_one_word(text[at]) and not inside_word(text, edge)
            for is_glued, edge, at in edges
        )

    def _name(self, text: str, span: Span, key: str) -> Place:
        """Return the word for a name; a sign at its edge stays, where the word would be glued."""
        start, stop, kind, _ = span
        name, (before, behind) = text[start:stop], self._glued(text, span)
        start, stop = start + before, stop - behind
        rest = text[start:stop]
        if rest != name and (
            not WORDS.search(rest) or any(inside_word(text, edge) for edge in span[:2])
        ):
            raise ValueError(f"the name {name!r} at {span.start} is a part of a word")
        kin = None if span.binding else self._kin_of(name, kind)
        key = key if rest == name else rest if key == name else f"{key}\0{rest}"
        return start, stop, self._word_for(key, BoundName.of(rest, key), kind, kin), False, False

    def _kin_of(self, name: str, kind: str) -> "_Kin":
        """Return the spellings that a name is one of: those that its rule knows, if no other."""
        if name not in self._kin:
            others = self._names.finder.variants(name, kind)
            known = (self._kin[other] for other in others if other in self._kin)
            # one that has another full name, as a brother has, is none of this one's
            kin = next((kin for kin in known if kin.names <= {*others}), _Kin())
            for each in (name, *others):
                self._kin.setdefault(each, kin)
        self._kin[name].names.add(name)
        return self._kin[name]

    def _words_of_code(self, text: str, spans: Sequence[Span]) -> Collection[Any] | None:
        """Return where words stand that may be names of another text; None if all may be."""
        finder, found = self._names.finder, {span.symbol_class for span in spans}
        if not (self._names.of_code and all(finder.knows(k, found, text) for k in finder.rules)):
            return None
        finds = (getattr(finder.reader(kind), "unbound", None) for kind in finder.rules)
        return {(i, j) for find in filter(None, finds) for i, j, *_ in find(text)}

    def _plain_word(self, match: Any, own: Kept, code: Callable[[], Any]) -> Place | None:
        """Look at a word that is no name: it is one if it is spelled like a word in use.

        Not in strings of code, say: no answer would get it back.
        """
        word, (start, stop) = match.group(), match.span()
        if overlapping(start, stop, own):
            return None
        if word not in self._plain:
            folded, core = word.casefold(), bare(word).casefold()
            if (kind := self._given.get(folded) or self._given.get(core)) is not None:
                is_escape = self._names.of_code and match.string[start - 1 : start] == "\\"
                if is_escape or ((words := code()) is not None and (start, stop) not in words):
                    return None
                key = f"\0word {word}"
                new = self._word_for(key, BoundName(word, key), kind)
                return start, stop, new, False, False
            self._plain.add(word)
            self._taken |= {folded, core}
            if self._names.class_of(word) is not None:
                self.table.setdefault(word, word)
        return None

    def _form_at(self, text: str, match: Any, end: int) -> Place | None:
        """Return where a name stands in a form, or behind an escape, that begins with a word."""
        (start, stop), word = match.span(), match.group()
        if is_behind := word[0] in "bfnrt" and text[start - 1 : start] == "\\":
            start, word = start + 1, word[1:]
        stops, first = [stop], word.strip("_")
        for length in self._lengths.get(first.casefold(), ()) if self._lengths else ():
            last = _END_OF_FORM.match(text, start + word.find(first) + length).end()
            is_whole = last <= end and is_one_word(text[last - 1]) and not inside_word(text, last)
            stops += [last] * is_whole
        for stop in reversed(stops):
            if (form := self._form_of(text[start:stop], is_behind)) is not None:
                return start, stop, form, False, False
        return None

    def _form_of(self, word: str, as_is: bool) -> str | None:
        """Return a form of the word for a name that is written in a form, as `BOB` is one of Bob.

        Answers have names in forms: so a later turn has the words that the model wrote.

        Args:
            as_is: whether a name as it is counts.
        """
        if word in self._plain:
            return None
        if not self._given.keys().isdisjoint((word.casefold(), bare(word).casefold())):
            return None  # spelled like a word in use
        for core in dict.fromkeys((word.strip("_"), word)):  # names may have underscores at ends
            for ending in ("", *ENDINGS):
                stem = core[: len(core) - len(ending)]
                name, given = self._called.get(stem.casefold(), ("", ""))
                if name and (as_is or name != word) and core.casefold().endswith(ending):
                    before, _, behind = word.partition(core)
                    for form in (given, given.upper(), given[:1].upper() + given[1:]):
                        new = f"{before}{form}{core[len(stem) :]}{behind}"
                        if Forms({given: name}).name(new) == word:
                            return new
        return None

    def _word_for(self, key: str, name: str, kind: str, kin: "_Kin | None" = None) -> str:
        """Return the word of a name, which is the next of its class, or kin, if it is new."""
        if key not in self.words:
            series = self._names.words[kind]
            words = self._next.setdefault(id(series), series.drawn(self._draw))
            words = series.variants(kin.word) if kin and kin.word else words
            word = next(w for w in words if self._names.is_free(w, self._taken))
            self.words[key], self.table[word] = word, name
            self._given |= dict.fromkeys(forms(word), kind)
            self._taken.add(word.casefold())
            is_said = not (self._names.finder.rules[kind].rule == "tools" and like_a_word(name))
            if key == name and is_said and not self._names.of_code:
                self._called.setdefault(name.casefold(), (name, word))
                if not is_one_word(name) and (first := WORDS.match(name)):
                    lengths = self._lengths.setdefault(first[0].casefold(), [])
                    lengths += {len(name), len(name.upper())} - {*lengths}
            if kin is not None:
                kin.word = kin.word or word
        return self.words[key]


@dataclass
class _Kin:
    """Spellings of one name: those that were met, and the word of the first."""

    names: set[str] = field(default_factory=set)
    word: str = ""


@dataclass(frozen=True)
class Spelled:
    """A text whose names are written as words.

    Attributes:
        words: name -> word, in order of first occurrence.
        table: word -> what it stands for, see `CanonicalNames`.
        pieces: the text for the model, and a second one that belongs to it, cut at their names.
    """

    words: dict[str, str]
    table: dict[str, str] = field(repr=False)
    pieces: list[Cut] = field(repr=False)
    names: CanonicalNames = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The text for the model."""
        return self.pieces[0].written

    def answer(self, target: str) -> str:
        """Write an answer to the text in the same words, to train with; new names get the next."""
        return self.names.spell_answer(target, self.table)[0].written

    def back(self, answer: str) -> str:
        """Write an answer of the model with the names of the text; see `CanonicalNames.back`."""
        return self.names.back(answer, self.table)

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Write an answer as it comes; see `CanonicalNames.stream`."""
        return self.names.stream(chunks, self.table)

    def key(self, answer: str) -> str:
        """Return an answer of the model with numbers for names: equal for equal answers."""
        if self.names.by_rule:
            return self.names.spell_answer(answer, {word: word for word in self.table})[0].written
        ranks = {word: f"\0{rank}" for rank, word in enumerate(self.words.values())}
        table = {word: word for word in self.table} | ranks
        spans = self.names.names_in(answer, more=self.names.words_in(answer, self.table))
        keys = [answer[span.start : span.stop] for span in spans]
        for word in keys:
            table.setdefault(word, f"\0{len(table)}")
        places: list[Place] = [
            (span.start, span.stop, table[word], False, False)
            for span, word in zip(spans, keys, strict=True)
        ]
        return cut_at_names("kept", answer, places).written
