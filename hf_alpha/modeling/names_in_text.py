r"""Names in plain text: where they stand, by a rule for each class of symbols.

A rule finds names by a regular expression, by a list, by a column of the data that lists them, by a
function of the user's, or as people of a field do (`ready_rules`). They are whole words unless it
says otherwise: `x` is no part of `max`.

Names that are spelled alike are one name, unless a rule says which binding each belongs to: of
`\x. x (\x. x)` two names are spelled `x`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import Any

import regex  # type: ignore[import-untyped]

from .choices import TIME_LIMIT, too_slow
from .name_rules import Find, NamedFunction, NameRule, reads_answers
from .name_spelling import speller
from .spans import SPAN, Kept, MarkedText, Span, apart, is_only_a_word, outside, overlapping
from .text_pieces import Memory, Segment, together
from .words import (
    ESCAPES,
    PLAIN_WORDS,
    RUNS_ON,
    WORDS,
    inside_word,
    is_one_word,
    name_pattern,
    whole_words,
)

Names = Mapping[str, Sequence[str | Sequence[int]]]  # class -> names, or their [start, stop]


@dataclass
class NameFinder:
    """Finds the names of texts, by the rules of all classes.

    Where names overlap, the one that begins first counts, then the longer one, then that of the
    class given first.

    Attributes:
        rules: class -> rule, in the order of the classes; without one, no text has names.
        functions: class -> the function of its rule; imported by whoever may import it.
        columns: class -> the column of the data that lists its names, where its rule is one: they
            are known row by row only, and not from a text alone.
        inside: classes whose names may stand inside words.

    Raises:
        ValueError: a rule cannot be used, or two classes have a name in common.
    """

    rules: Mapping[str, NameRule]
    functions: dict[str, Find] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.rules, Mapping):
            raise ValueError(
                f"symbols are {self.rules!r}: give class -> rule, such as "
                "{variable: {pattern: '[a-z][0-9]*', count: 10}}"
            )
        self.rules = {name: NameRule.of(name, rule) for name, rule in self.rules.items()}
        for name, rule in self.rules.items():
            if isinstance(rule.function, NamedFunction):
                self.functions.setdefault(name, rule.function.function)
        owner: dict[str, str] = {}
        for name, rule in self.rules.items():
            for token in rule.tokens:
                if token in owner:
                    raise ValueError(
                        f"symbols: the name {token!r} is in the classes {owner[token]!r} and "
                        f"{name!r}: a name belongs to one class"
                    )
                owner[token] = name
        self.columns = {name: rule.column for name, rule in self.rules.items() if rule.column}
        self._patterns = {
            name: _pattern_of(rule) for name, rule in self.rules.items() if not rule.column
        }
        self.inside: Collection[str] = {
            name for name, rule in self.rules.items() if not rule.finds_words
        }
        self._read = [name for name, rule in self.rules.items() if rule.function or rule.rule]
        self._no_names = {name: rule.reserved for name, rule in self.rules.items() if rule.reserved}
        self.by_words = all(rule.has_words_alone for rule in self.rules.values())
        self._class_of = Memory(self._class_of_word)

    def find(
        self, text: str, classes: Mapping[str, str] | None = None, kept: Kept = ()
    ) -> tuple[Span, ...]:
        """Return the names of a text, in order.

        Args:
            text: the text; a `MarkedText` has its own.
            classes: name -> class, of names beside those that the rules find: in an answer the
                names of its problem, as they are spelled.
            kept: start, stop and token of the tokenizer's own tokens in the text, in order. What
                lies in one is no name, whoever says so, and a pattern finds what is beside it.

        Raises:
            ValueError: a class finds its names by a function that is not there, its pattern takes
                longer than `TIME_LIMIT`, or a name that is marked or that a function finds has a
                token of `kept` in it.
        """
        if isinstance(text, MarkedText):
            return tuple(outside(text, text.spans, kept)) if kept else text.spans
        by_words = self.by_words and not kept and (text.isascii() or not RUNS_ON.search(text))
        if by_words and all(map(is_one_word, classes or ())):
            return self._by_words(str(text), classes or {})
        spans = self._by_rules(text, classes is None, kept)
        spans += self._unbound(text, classes or {}, kept)
        if classes and (self.inside or self._read):
            found = {span.symbol_class for span in spans}
            known = {kind for kind in {*classes.values()} if self.knows(kind, found, str(text))}
            classes = {name: kind for name, kind in classes.items() if kind not in known}
            if any(getattr(self.reader(kind), "unbound", None) for kind in {*classes.values()}):
                escapes = [(*match.span(), "") for match in ESCAPES.finditer(text)]  # of code
                kept = sorted([*kept, *escapes]) if escapes else kept
        return self.with_given(text, spans, classes, kept)

    def spell(
        self,
        pieces: Sequence[tuple[str, str | None]],
        classes: Mapping[str, str],
        names: Mapping[str, str],
    ) -> list[str]:
        """Put names in place of symbols, as their rules spell them.

        Args:
            pieces: of a text: each with the symbol that it is, or None.
            classes: symbol -> class.
            names: symbol -> how it was spelled; others are written as they are.

        Returns:
            What is written for each piece.
        """
        written = [piece if token is None else names.get(token, token) for piece, token in pieces]
        for kind in self._read:
            of_kind = {token for token, other in classes.items() if other == kind}
            places = [place for place, (_, token) in enumerate(pieces) if token in of_kind]
            symbols = [token for _, token in pieces if token in of_kind]
            if (spell := speller(self.reader(kind), symbols, names, pieces)) is not None:
                edges = zip([-1, *places], [*places, len(pieces)], strict=True)
                between = ["".join(written[start + 1 : stop]) for start, stop in edges]
                for place, spelling in zip(places, spell(between, symbols, names), strict=True):
                    written[place] = spelling
        return written

    def confused(
        self,
        segments: Sequence[Segment],
        classes: Mapping[str, str],
        kept: Callable[[str], Kept],
        words: Collection[str] = (),
    ) -> list[tuple[int, int]]:
        """Return where an answer is read as a name of its problem though none was written there.

        Args:
            segments: the answer; those that are not plain were written as names.
            classes: name -> class, of the problem's names.
            kept: from a text to what `find` takes.
            words: names that are words of the problem too: these may be meant.
        """
        asked = classes.keys() - words
        if not self._may_have(segments, asked):
            return []
        text = together(segments)
        try:
            spans = self.find(text, classes, kept(text))
        except ValueError:  # a pattern is slow, or what a function finds has a kept token in it
            spans = self.with_given(text, [], classes)
        stops = [*accumulate(len(part) for part, _ in segments)]
        written = zip([0, *stops], stops, [word for _, word in segments], strict=False)
        places = {(start, stop) for start, stop, word in written if word is not None}
        of_tools = [kind for kind, rule in self.rules.items() if rule.rule == "tools"]
        return [
            (span.start, span.stop)
            for span in spans
            if text[span.start : span.stop] in asked
            and span[:2] not in places
            and not (span[2] in of_tools and is_only_a_word(text, span))
        ]

    def _may_have(self, segments: Sequence[Segment], names: Collection[str]) -> bool:
        """Whether a text may have names beside those that were written there; it takes no time."""
        if not self.inside and all(map(is_one_word, names)):
            plain = "\n".join([text for text, word in segments if word is None])
            return not set(names).isdisjoint(WORDS.findall(plain))
        text, written = together(segments), Counter(t for t, word in segments if word is not None)
        return any(text.count(name) > written[name] for name in names)

    def take_functions(self, other: "NameFinder") -> None:
        """Take over the functions of another finder, of the rules that name the same ones."""
        for name, function in other.functions.items():
            if name in self.rules and self.rules[name].function == other.rules[name].function:
                self.functions[name] = function

    def require_functions(self) -> None:
        """Check that all functions that rules name are there.

        Raises:
            ValueError: naming the first one that is not.
        """
        for name, rule in self.rules.items():
            if rule.function is not None:
                self._function(name, rule)

    def require_names(self, text: str) -> None:
        """Refuse a problem that does not say where its names are, where rules need that.

        Raises:
            ValueError: the names of a class are listed in a column of the data.
        """
        for name, column in self.columns.items():
            if not isinstance(text, MarkedText):
                raise ValueError(
                    f"the names of class {name!r} are listed in the column {column!r} of the "
                    "data, which this text lacks: give them as `names`, on the command line by "
                    "--names, or in Python the text as MarkedText"
                )

    def mark(self, text: str, names: Names | Sequence[str], kept: Kept = ()) -> MarkedText:
        """Return a text with its names marked, those that are listed for it and those of rules.

        Args:
            names: class -> names, or their [start, stop] in the text; or a list, see `by_class`.
                A name may be a list of its spellings.
            kept: as for `find`.

        Raises:
            ValueError: a name is empty or listed for two classes; a [start, stop] is empty, lies
                outside the text or overlaps another one; a class finds its names by a function that
                is not there; or its pattern takes longer than `TIME_LIMIT`.
        """
        classes, places = self.listed(names)
        spans = [*MarkedText(text, places).spans, *self._by_rules(text, True, kept)]
        text = MarkedText(text, self.with_given(text, spans, classes, kept))
        text.variants = variants_in(names)
        return text

    def listed(self, names: Names | Sequence[str]) -> tuple[dict[str, str], list[Span]]:
        """Return name -> class of names that are listed, and the places that are; see `mark`."""
        classes: dict[str, str] = {}
        places = []
        for kind, listed in self.by_class(names).items():
            for name in listed:
                if not isinstance(name, str):
                    places.append(Span.of(name[0], name[1], kind))
                elif not name:
                    raise ValueError(f"an empty name is listed for the class {kind!r}")
                elif classes.setdefault(name, kind) != kind:
                    raise ValueError(
                        f"the name {name!r} is listed for the classes {classes[name]!r} and "
                        f"{kind!r}: a name belongs to one class"
                    )
        return classes, places

    def find_said(self, text: str, classes: Mapping[str, str], kept: Kept = ()) -> tuple[Span, ...]:
        """Return the names of a text that answers none, those of `classes` too; see `find`."""
        return self.with_given(text, self._by_rules(text, True, kept), classes, kept)

    def variants(self, name: str, kind: str) -> list[str]:
        """Return other spellings of a name, if the rule of its class says some."""
        find = getattr(self.reader(kind), "variants", None)
        return [] if find is None else [*find(name)]

    def by_class(self, names: Names | Sequence[str]) -> Names:
        """Return names that are listed for a text as class -> names, each spelling for itself.

        Args:
            names: these, where some classes may have None, or a list of names of the class whose
                rule is a column, or of the only class.

        Raises:
            ValueError: there is no such class, or a list is of no class or of several.
        """
        classes = list(self.columns or self.rules)
        if isinstance(names, list | tuple) and len(classes) == 1:
            return {classes[0]: _each(names)}
        if not isinstance(names, Mapping) or names.keys() - self.rules.keys():
            known = ", ".join(f'"{name}": [...]' for name in classes)
            wanted = f"give {{{known}}}, all or some of it, for each text"
            raise ValueError(f"names: {wanted if known else 'it takes none'}")
        return {kind: _each(listed) for kind, listed in names.items() if listed is not None}

    def with_given(
        self, text: str, spans: list[Span], classes: Mapping[str, str] | None, kept: Kept = ()
    ) -> tuple[Span, ...]:
        """Return names that rules find, and given ones; what overlaps is left out."""
        spans = _with_names(text, spans, classes, kept, self.inside) if classes else spans
        return apart(spans, list(self.rules))

    def knows(self, name: str, found: Container[str], answer: str) -> bool:
        """Whether the names of a class in an answer are those alone that its rule finds there.

        One of whole words that finds none has perhaps not read it, unless it says that it has.
        """
        if name in self.inside and self._patterns.get(name) is not None:
            return True
        if name not in self._read or not reads_answers(reader := self.reader(name)):
            return False
        has_read = getattr(reader, "reads", None) or (lambda _: False)
        return name in self.inside or name in found or has_read(answer)

    def reader(self, name: str) -> Any:
        """What finds the names of a class, a function or ready-made rule; None without one."""
        return self.rules[name].ready or self.functions.get(name)

    def _by_words(self, text: str, classes: Mapping[str, str]) -> tuple[Span, ...]:
        """Return what `find` does if a name is nothing but a word: each word is looked up once."""
        between_and_words = PLAIN_WORDS.split(text)
        ends = list(accumulate(map(len, between_and_words)))
        words = between_and_words[1::2]
        kinds: Iterable[str | None] = map(self._class_of.__getitem__, words)
        if classes:
            kinds = (classes.get(word) or kind for word, kind in zip(words, kinds, strict=True))
        places = zip(ends[::2], ends[1::2], kinds, repeat(""), strict=False)
        return tuple(map(SPAN, [place for place in places if place[2] is not None]))

    def _class_of_word(self, word: str) -> str | None:
        found = self._by_rules(word, functions=True)
        return found[0].symbol_class if found else None

    def _by_rules(self, text: str, functions: bool, kept: Kept = ()) -> list[Span]:
        """Return what the rules find, class by class; not every function is given an answer."""
        spans: list[Span] = []
        for name, rule in self.rules.items():
            reader = self.reader(name) if name in self._read else None
            if rule.function is not None and functions:
                reader = self._function(name, rule)
            if reader is not None and (functions or reads_answers(reader)):
                found = reader(str(text))
                places = [Span.of(start, stop, name, *rest) for start, stop, *rest in found]
                spans += outside(text, MarkedText(text, places).spans, kept)
            elif (pattern := self._patterns.get(name)) is not None:
                limit = TIME_LIMIT if rule.pattern is not None else None  # lists are fast
                try:
                    matches = _matches(pattern, text, kept, limit, rule.words)
                except TimeoutError:
                    raise too_slow(f"symbols: {name!r}", rule.pattern, text) from None
                spans += [Span(start, stop, name) for start, stop in matches if start < stop]
        if self._no_names:
            return [s for s in spans if text[s[0] : s[1]] not in self._no_names.get(s[2], ())]
        return spans

    def _unbound(self, text: str, classes: Mapping[str, str], kept: Kept) -> list[Span]:
        """Return what an answer does not bind itself and its problem has, by rules that say so."""
        spans: list[Span] = []
        for kind in set(classes.values()) & self.rules.keys():
            if (find := getattr(self.reader(kind), "unbound", None)) is not None:
                places = (Span(start, stop, kind) for start, stop, *_ in find(str(text)))
                names = [s for s in places if classes.get(text[s.start : s.stop]) == kind]
                spans += outside(text, names, kept)
        return spans

    def _function(self, name: str, rule: NameRule) -> Find:
        if name not in self.functions:
            raise ValueError(
                f"the names of class {name!r} are found by the function {rule.function!r}, which "
                "is not imported, since others may have named it: if you trust it, pass "
                f"--trust-remote-code to hf-alpha, or set tokenizer.finder.functions[{name!r}] in "
                "Python; or give texts as MarkedText, with their names"
            )
        return self.functions[name]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the rules as JSON has them."""
        return {name: rule.to_dict() for name, rule in self.rules.items()}


def variants_in(names: Names | Sequence[Any]) -> list[Sequence[str]]:
    """Return those of names, as `NameFinder.by_class` takes them, that are lists of spellings."""
    lists: Iterable[Any] = names.values() if isinstance(names, Mapping) else [names]
    return [entry for listed in lists for entry in listed or () if _are_spellings(entry)]


def _are_spellings(entry: Any) -> bool:
    return isinstance(entry, list | tuple) and all(isinstance(name, str) for name in entry)


def _each(listed: Sequence[Any]) -> list[Any]:
    """Return a list of names with each spelling for itself."""
    return [name for entry in listed for name in (entry if _are_spellings(entry) else [entry])]


def _pattern_of(rule: NameRule) -> Any:
    if rule.pattern is not None:
        return whole_words(rule.pattern) if rule.words else regex.compile(rule.pattern)
    return name_pattern(rule.tokens, rule.words) if rule.tokens else None


def _matches(
    pattern: Any, text: str, kept: Kept, limit: float | None, words: bool = True
) -> list[tuple[int, int]]:
    """Where a pattern matches, but for what is kept; raises TimeoutError after `limit` seconds.

    Matches may look at what is kept, and end no word early, if they are `words`.
    """
    spans: list[tuple[int, int]] = []
    matches = pattern.finditer(text, timeout=limit)
    match = next(matches, None)
    for first, last, _ in (*kept, (len(text), len(text), "")):
        while match is not None and match.end() <= first:
            spans.append(match.span())
            match = next(matches, None)
        if match is not None and match.start() < last:
            shorter = pattern.finditer(text, match.start(), first, timeout=limit)
            spans += [m.span() for m in shorter if not (words and inside_word(text, m.end()))]
            matches = pattern.finditer(text, last, timeout=limit)
            match = next(matches, None)
    return spans


def _with_names(
    text: str, spans: list[Span], classes: Mapping[str, str], kept: Kept, inside: Container[str]
) -> list[Span]:
    """Add all places of given names, which are of the class that is given for them.

    Words are looked up, and others looked for one by one: to compile a pattern of them takes far
    longer than to use it. Those of the classes `inside` are no whole words.
    """
    all_spans = [s for s in spans if s.binding or text[s.start : s.stop] not in classes]
    others = {n: k for n, k in classes.items() if k in inside or not is_one_word(n)}
    for match in WORDS.finditer(text) if len(others) < len(classes) else ():
        word, (start, stop) = match[0], match.span()
        if word in classes and word not in others and not overlapping(start, stop, kept):
            all_spans.append(Span(start, stop, classes[word]))
    for name, kind in others.items():
        start = text.find(name)
        while start >= 0:
            stop = start + len(name)
            is_part = kind not in inside and (inside_word(text, start) or inside_word(text, stop))
            if not (is_part or overlapping(start, stop, kept)):
                all_spans.append(Span(start, stop, kind))
            start = text.find(name, start + 1)
    return all_spans
