r"""Names in plain text: where they stand, by a rule for each class of symbols.

A rule finds names by a regular expression, by a list, by a column of the data that lists them, by a
function of the user's, or as people of a field do (`ready_rules`). They are whole words unless it
says otherwise: `x` is no part of `max`.

Names that are spelled alike are one name, unless a rule says which binding each belongs to: of
`\x. x (\x. x)` two names are spelled `x`.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]

from .choices import TIME_LIMIT, too_slow
from .name_rules import ReadyRule, reads_answers, ready_rules, uncaptured
from .text_pieces import Memory, Segment, together

CLASS_NAME = r"[A-Za-z][A-Za-z0-9_-]*"
WAYS = ("pattern", "tokens", "column", "function", "rule")

_WORD = regex.compile(r"\w")
_WORDS = regex.compile(r"(\w+)")
_OF_LETTERS = regex.compile(
    r"(?:\w|\\[dw]|\[(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|\w|\\[dw])+\]"
    r"|\((?:\?:)?|\)|\||[*+?]|\{\d*,?\d*\})+"
)
"""Patterns that match nothing but letters, digits and `_`, so that a name is a word of a text."""
_MOST_WORDS = 65_536

Names = Mapping[str, Sequence[str | Sequence[int]]]  # class -> names, or their [start, stop]
Kept = Sequence[tuple[int, int, str]]  # start, stop and token of what is no name in a text
Find = Callable[[str], Iterable[Sequence[Any]]]  # from a text to [start, stop] or more of its names


class Span(NamedTuple):
    """A name in a text: characters `start` to `stop`, its class, and what binds it.

    Names of one class and binding are one name, however they are spelled; those without a binding
    are one name if they are spelled alike.
    """

    start: int
    stop: int
    symbol_class: str
    binding: str = ""

    @classmethod
    def of(cls, start: int, stop: int, symbol_class: str, binding: Any = None) -> "Span":
        """Make one; a binding may be anything with a string of its own."""
        return cls(start, stop, symbol_class, "" if binding is None else str(binding))

    def key(self, text: str) -> str:
        """What the name is in its text, whichever span of it: its binding, else its spelling."""
        if self.binding:
            return f"\0{self.symbol_class} {self.binding}"
        return str(text)[self.start : self.stop]


_SPAN = partial(tuple.__new__, Span)
"""From a tuple; the constructor takes twice as long."""


class MarkedText(str):
    """A text that says itself where its names stand; elsewhere it is a string like any other.

    Args:
        spans: its names, as (start, stop, class) or (start, stop, class, binding).

    Attributes:
        variants: of names that were listed for it, those that are spellings of one another.

    Raises:
        ValueError: a span is empty, lies outside the text or overlaps another one.

    Examples:
        >>> text = MarkedText("Ann came in May", [(0, 3, "person")])
        >>> text == "Ann came in May", text.spans[0].symbol_class
        (True, 'person')
    """

    spans: tuple[Span, ...]
    variants: Sequence[Sequence[str]] = ()

    def __new__(cls, text: str, spans: Iterable[Sequence[Any]]) -> "MarkedText":
        self = super().__new__(cls, text)
        self.spans = tuple(sorted(Span.of(*span) for span in spans))
        end = 0
        for span in self.spans:
            if not end <= span.start < span.stop <= len(text):
                raise ValueError(
                    f"the name at {tuple(span[:3])} is empty, overlaps another one or lies outside "
                    f"the text of {len(text)} characters"
                )
            end = span.stop
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Span, ...]]:  # type: ignore[override]
        return str(self), self.spans


class NamedFunction(str):
    """The name of a function, `package.module:function`, with the function that has it.

    Files of JSON keep the name alone.
    """

    function: Find

    def __new__(cls, function: Find) -> "NamedFunction":
        named = function if hasattr(function, "__qualname__") else type(function)
        self = super().__new__(cls, f"{named.__module__}:{named.__qualname__}")
        self.function = function
        return self

    def __getnewargs__(self) -> tuple[Find]:  # type: ignore[override]
        return (self.function,)

    def __deepcopy__(self, memo: Any) -> "NamedFunction":
        return self


def check_list(name: str, value: Any, items: str = "strings") -> None:
    """Refuse a string where a list is asked for: it would be read letter by letter."""
    if isinstance(value, str):
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        raise ValueError(f"`{name}` is the string {shown!r}: give a list of {items}")


@dataclass(frozen=True)
class NameRule:
    """How the names of one class are found: in one of five ways, or not at all.

    A class without a way has a `count` alone: its names are those that a text gives by the tokens
    of symbols, `<name_3>`.

    Attributes:
        pattern: a regular expression of the `regex` package.
        tokens: the names themselves.
        column: of the data, with the names of each row, or their [start, stop] in its source.
        function: `package.module:function`, from a text to the [start, stop] of its names, or
            [start, stop, binding]; see `ReadyRule` for what else it may say. In Python also the
            function itself.
        rule: one of `ready_rules`.
        reserved: words that are no names of the class, whatever the pattern or function says.
        count: symbols that the vocabulary has for the class; None for as many as one text
            of the data has names, and 10 at least.
        words: names are whole words; else they may stand inside one (`1` in `CN1CC1`), and an
            answer has no names but those that the rule itself finds there, if it can read it.
        keep: of the rule `tools`, "undescribed": tools and parameters without a description keep
            their names, which alone say what they are for.
        attributes: of the rule `python`: methods and fields of classes of the text are names too.
        scopes: of the rule `json`: keys of several objects are several names, by their path.
        ignore_case: of the rule `sql`: `Users` and `users` are one name if the language says so.
    """

    pattern: str | None = None
    tokens: tuple[str, ...] = ()
    column: str | None = None
    function: str | None = None
    rule: str | None = None
    language: str | None = None
    reserved: frozenset[str] = frozenset()
    count: int | None = None
    words: bool = True
    keep: str | None = None
    attributes: bool = False
    scopes: bool = False
    ignore_case: bool = True

    @classmethod
    def of(cls, name: str, rule: Any) -> "NameRule":
        """Read a rule: a mapping with the attributes' names, or one of their values alone.

        Raises:
            ValueError: naming the class and what is wrong.
        """
        if isinstance(rule, cls):
            return rule
        place = f"symbols: {name!r}"
        if callable(rule):
            rule = {"function": rule}
        if way := {str: "pattern", list: "tokens", tuple: "tokens", int: "count"}.get(type(rule)):
            rule = {way: rule}
        if not regex.fullmatch(CLASS_NAME, name):
            raise ValueError(f"{place}: a class is named by letters, digits, '_' and '-'")
        ways = [way for way in WAYS if way in rule] if isinstance(rule, Mapping) else []
        alone = isinstance(rule, Mapping) and "count" in rule and rule.keys() <= {"count", "words"}
        if len(ways) != 1 and not alone:
            raise ValueError(
                f"{place} is {rule!r}: give one of {', '.join(WAYS)}, such as "
                f"{name}: {{pattern: '[a-z][0-9]*', count: 10}}"
            )
        if unknown := rule.keys() - cls.__dataclass_fields__.keys():
            fields = ", ".join(cls.__dataclass_fields__)
            raise ValueError(f"{place}: unknown key {sorted(unknown)[0]!r}; known: {fields}")
        if callable(function := rule.get("function")):
            rule = {**rule, "function": NamedFunction(function)}
        name_rule = cls(**{
            **rule,
            "tokens": _words(place, "tokens", rule.get("tokens", ())),
            "reserved": frozenset(_words(place, "reserved", rule.get("reserved", ()))),
        })  # fmt: skip
        name_rule._check(place)
        return name_rule

    def _check(self, place: str) -> None:
        for key in ("pattern", "column", "function", "rule", "language"):
            if not isinstance(value := getattr(self, key), str | None) or value == "":
                raise ValueError(f"{place}: {key!r} is {value!r}: give a string")
        if self.count is not None and (type(self.count) is not int or self.count < 1):
            raise ValueError(f"{place}: 'count' is {self.count!r}: give a whole number from 1 on")
        for key in ("words", "attributes", "scopes", "ignore_case"):
            if type(value := getattr(self, key)) is not bool:
                raise ValueError(f"{place}: {key!r} is {value!r}: give true or false")
        if self.rule is not None and self.rule not in ready_rules():
            known = ", ".join(ready_rules())
            raise ValueError(f"{place}: no ready-made rule {self.rule!r}: there are {known}")
        if self.keep is not None and (self.rule, self.keep) != ("tools", "undescribed"):
            raise ValueError(
                f"{place}: 'keep' is {self.keep!r}: there is {{rule: tools, keep: undescribed}}"
            )
        if self.language is not None and getattr(self.ready, "languages", None) is None:
            taking = ", ".join(
                f"{key} ({r.languages})" for key, r in ready_rules().items() if r.languages
            )
            raise ValueError(
                f"{place}: 'language' is for the ready-made rules {taking}: leave it out"
            )
        for key, rule in (("attributes", "python"), ("ignore_case", "sql")):
            is_set = getattr(self, key) != type(self).__dataclass_fields__[key].default
            if is_set and not getattr(self.ready, key, False):
                raise ValueError(f"{place}: {key!r} is for the rule {rule}: leave it out")
        if self.scopes and self.ready is None:
            raise ValueError(f"{place}: 'scopes' is for the rule json: leave it out")
        if self.pattern is not None:
            try:
                regex.compile(self.pattern)  # alone: errors say where in it
                matches_empty = whole_words(self.pattern).match("")
            except regex.error as error:
                raise ValueError(f"{place}: the pattern {self.pattern!r}: {error}") from None
            if matches_empty:
                raise ValueError(
                    f"{place}: the pattern {self.pattern!r} matches the empty text: let it match "
                    "at least one character"
                )
        if self.count is not None and len(self.tokens) > self.count:
            raise ValueError(
                f"{place}: {len(self.tokens)} tokens, but count = {self.count}: raise it, or leave "
                "it out"
            )

    @property
    def is_sought(self) -> bool:
        """Whether there is a way to find names: a `count` alone leaves them to the tokenizer."""
        return any(getattr(self, way) for way in WAYS)

    @property
    def ready(self) -> ReadyRule | None:
        """The ready-made rule; None without one, or if it has no such form."""
        if self.rule is None:
            return None
        rule = ready_rules()[self.rule]
        if self.scopes:
            return rule.scoped
        fields = type(self).__dataclass_fields__
        given = {key: getattr(self, key) for key in ("language", "attributes", "ignore_case")}
        return rule.of(**{k: value for k, value in given.items() if value != fields[k].default})

    @property
    def has_words_alone(self) -> bool:
        """Whether all its names are words of letters, digits and `_`, whatever stands beside."""
        pattern = self.pattern is None or _OF_LETTERS.fullmatch(self.pattern)
        read = self.rule or self.function
        return bool(self.words and pattern and not read and all(map(_is_one_word, self.tokens)))

    @property
    def finds_words(self) -> bool:
        """Whether names are whole words."""
        return self.words and (self.ready is None or self.ready.words)

    def to_dict(self) -> dict[str, Any]:
        """Return what `of` reads, as JSON has it."""
        on = ("words", "ignore_case")
        data = {key: value for key, value in asdict(self).items() if value and key not in on}
        data |= {key: False for key in on if not getattr(self, key)}
        return {k: sorted(v) if isinstance(v, frozenset) else v for k, v in data.items()} | (
            {"tokens": list(self.tokens)} if self.tokens else {}
        )


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
            return tuple(_outside(text, text.spans, kept)) if kept else text.spans
        if self.by_words and not kept and all(map(_is_one_word, classes or ())):
            return self._by_words(str(text), classes or {})
        spans = self._by_rules(text, classes is None, kept)
        spans += self._unbound(text, classes or {}, kept)
        if len(self._patterns) == len(self.rules) == 1 and not (classes or self.functions):
            return tuple(spans)  # of one pattern they are in order, and apart
        if classes and (self.inside or self._read):
            found = {span.symbol_class for span in spans}
            classes = {n: kind for n, kind in classes.items() if not self._knows(kind, found)}
        return self._and_given(text, spans, classes, kept)

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
            if (spell := _spelling(self.reader(kind), symbols, names, pieces)) is not None:
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
            spans = self._and_given(text, [], classes)
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
        if not self.inside and all(map(_is_one_word, names)):
            plain = "\n".join([text for text, word in segments if word is None])
            return not set(names).isdisjoint(_WORDS.findall(plain))
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
                    "data, which this text lacks: give them as `names`, or the text as MarkedText, "
                    "or on the command line by --names"
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
        classes: dict[str, str] = {}
        marked = []
        for kind, listed in self.by_class(names).items():
            for name in listed:
                if not isinstance(name, str):
                    marked.append(Span.of(name[0], name[1], kind))
                elif not name:
                    raise ValueError(f"an empty name is listed for the class {kind!r}")
                elif classes.setdefault(name, kind) != kind:
                    raise ValueError(
                        f"the name {name!r} is listed for the classes {classes[name]!r} and "
                        f"{kind!r}: a name belongs to one class"
                    )
        spans = [*MarkedText(text, marked).spans, *self._by_rules(text, True, kept)]
        text = MarkedText(text, self._and_given(text, spans, classes, kept))
        text.variants = variants_in(names)
        return text

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

    def _and_given(
        self, text: str, spans: list[Span], classes: Mapping[str, str] | None, kept: Kept = ()
    ) -> tuple[Span, ...]:
        """Return names that rules find, and given ones; what overlaps is left out."""
        spans = _with_names(text, spans, classes, kept, self.inside) if classes else spans
        return _apart(spans, list(self.rules))

    def _knows(self, name: str, found: Container[str]) -> bool:
        """Whether the names of a class in an answer are those alone that its rule finds there.

        One of whole words that finds none has perhaps not read it.
        """
        if name in self.inside and self._patterns.get(name) is not None:
            return True
        reads = name in self._read and reads_answers(self.reader(name))
        return reads and (name in self.inside or name in found)

    def reader(self, name: str) -> Any:
        """What finds the names of a class, a function or ready-made rule; None without one."""
        return self.rules[name].ready or self.functions.get(name)

    def _by_words(self, text: str, classes: Mapping[str, str]) -> tuple[Span, ...]:
        """Return what `find` does if a name is nothing but a word: each word is looked up once."""
        between_and_words = _WORDS.split(text)
        ends = list(accumulate(map(len, between_and_words)))
        words = between_and_words[1::2]
        kinds: Iterable[str | None] = map(self._class_of.__getitem__, words)
        if classes:
            kinds = (classes.get(word) or kind for word, kind in zip(words, kinds, strict=True))
        places = zip(ends[::2], ends[1::2], kinds, repeat(""), strict=False)
        return tuple(map(_SPAN, [place for place in places if place[2] is not None]))

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
                spans += _outside(text, MarkedText(text, places).spans, kept)
            elif (pattern := self._patterns.get(name)) is not None:
                limit = TIME_LIMIT if rule.pattern is not None else None  # lists are fast
                try:
                    matches = _matches(pattern, text, kept, limit, rule.words)
                except TimeoutError:
                    raise too_slow(f"symbols: {name!r}", rule.pattern, text) from None
                spans += [Span(start, stop, name) for start, stop in matches if start < stop]
        if self._no_names:
            none: frozenset[str] = frozenset()
            return [s for s in spans if text[s[0] : s[1]] not in self._no_names.get(s[2], none)]
        return spans

    def _unbound(self, text: str, classes: Mapping[str, str], kept: Kept) -> list[Span]:
        """Return what an answer does not bind itself and its problem has, by rules that say so."""
        spans: list[Span] = []
        for kind in set(classes.values()) & self.rules.keys():
            if (find := getattr(self.reader(kind), "unbound", None)) is not None:
                places = (Span(start, stop, kind) for start, stop, *_ in find(str(text)))
                names = [s for s in places if classes.get(text[s.start : s.stop]) == kind]
                spans += _outside(text, names, kept)
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


def _spelling(
    reader: Any,
    symbols: Sequence[Any],
    names: Mapping[str, str],
    pieces: Sequence[tuple[str, str | None]],
) -> Any:
    """How symbols are spelled again; None if that is what `names` say."""
    if reader is None or not symbols:
        return None
    if (spell := getattr(reader, "spell", None)) is not None:
        return spell
    used = Counter(str(names.get(token, token)) for token in set(symbols))
    words = {word for piece, token in pieces if token is None for word in _WORDS.findall(piece)}
    return uncaptured(reader) if max(used.values()) > 1 or used.keys() & words else None


Known = dict[str, tuple[str, str]]  # key of a name -> its spelling and class


def known_names(text: str, spans: Iterable[Span]) -> Known:
    """Return the names of a text in order of first occurrence, as an answer to it knows them."""
    known: Known = {}
    for span in spans:
        known.setdefault(span.key(text), (str(text)[span.start : span.stop], span.symbol_class))
    return known


class NamesByWord:
    """Names of which a text is looked through for few: those that have one of its words.

    Args:
        inside: classes whose names may stand inside words, where a text has to be looked through
            for each.
    """

    def __init__(self, inside: Collection[str] = ()):
        self._inside = inside
        self._kinds: dict[str, Any] = {}
        self._by_word: dict[str, list[str]] = {}

    def add(self, name: str, kind: str | None) -> None:
        """Add a name of a class; one that there is keeps its class."""
        if name not in self._kinds:
            self._kinds[name] = kind
            words = () if kind in self._inside else _WORDS.findall(name)
            self._by_word.setdefault(max(words, key=len, default=""), []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def within(self, text: str) -> dict[str, Any]:
        """Return name -> class, of all names that a text has, and perhaps of more."""
        words = dict.fromkeys(["", *_WORDS.findall(text)])
        return {name: self._kinds[name] for word in words for name in self._by_word.get(word, ())}


def keys_in(text: str, spans: Sequence[Span], known: Known | None = None) -> list[str]:
    """Return the key of each name.

    Args:
        known: of an answer, the names of its problem. A name without a binding is the one of its
            class that is spelled so there: that without a binding, else the first. So is one whose
            binding they lack, if it is called by the spelling and a number, `x 2`.
    """
    plain = str(text)
    keys = [span.key(text) if span.binding else plain[span.start : span.stop] for span in spans]
    if not known:
        return keys
    spelled = {pair: key for key, pair in reversed(known.items())}
    for number, (start, stop, kind, binding) in enumerate(spans):
        name = plain[start:stop]
        if keys[number] not in known and (not binding or binding.startswith(f"{name} ")):
            keys[number] = spelled.get((name, kind), keys[number])
    return keys


def without_spelling(text: str, spans: Iterable[Span]) -> str:
    """Return a text with the class and order of bindings in place of their names.

    Texts that differ in the spelling of bindings only have the same one.
    """
    numbers: dict[str, int] = {}
    written = ""
    for part, span in parts(text, spans):
        name = "" if span is None else text[span.start : span.stop]
        if span is not None and span.binding:
            number = numbers.setdefault(span.key(text), len(numbers))
            name = f"\0{span.symbol_class} {number};"
        written += part + name
    return written


def like_a_word(name: str) -> bool:
    """Whether a name may be a word of a language, as `city` and `ID` may, not `get_city`."""
    return name.isalpha() and name in (name.lower(), name.upper(), name.capitalize())


def is_alone(text: str, span: Span) -> bool:
    """Whether a name is all of a text, or stands in quotes."""
    before = text[span.start - 1 : span.start]
    return before == text[span.stop : span.stop + 1] and before in "\"'`"


def is_only_a_word(text: str, span: Span) -> bool:
    """Whether what is spelled like a parameter of a tool is a word of a text, as `city` may be."""
    return like_a_word(text[span.start : span.stop]) and not is_alone(text, span)


def check_marked(names: Iterable[Any], texts: Iterable[str]) -> None:
    """Refuse listed names that are marked in none of some texts, where they are names at all.

    Raises:
        ValueError: naming the first one.
    """
    present = {text[start:stop] for text in texts for start, stop, *_ in getattr(text, "spans", ())}
    if absent := [name for name in names if isinstance(name, str) and name not in present]:
        raise ValueError(f"names: {absent[0]!r} stands in no text, or not as a whole word")


def parts(text: str, spans: Iterable[Span]) -> Iterator[tuple[str, Span | None]]:
    """Yield what stands before each name, with the name, and what stands behind the last one."""
    end = 0
    for span in spans:
        yield text[end : span.start], span
        end = span.stop
    yield text[end:], None


def name_pattern(names: tuple[str, ...], words: bool = True) -> Any:
    """Compile a pattern of names, as whole words or anywhere, the longest first."""
    ordered = sorted(names, key=len, reverse=True)
    pattern = "|".join(regex.escape(name, special_only=True) for name in ordered)
    return whole_words(pattern) if words else regex.compile(pattern)


def whole_words(pattern: str) -> Any:
    r"""Compile a pattern whose matches neither begin nor end inside a word.

    Letters, digits, marks and the underscore make words, of all scripts. (Not `re`: its \w leaves
    out combining marks, and with them half of the world's words.)
    """
    return regex.compile(rf"(?:(?<!\w)|(?!\w))(?:{pattern})(?:(?!\w)|(?<!\w))")


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
            spans += [m.span() for m in shorter if not (words and _inside_word(text, m.end()))]
            matches = pattern.finditer(text, last, timeout=limit)
            match = next(matches, None)
    return spans


def overlapping(start: int, stop: int, kept: Kept) -> Kept:
    """Return those of the tokens, which stand in order, that have a character of a place."""
    first = bisect_right(kept, start, key=itemgetter(1))
    return kept[first : bisect_left(kept, stop, first, key=itemgetter(0))]


def _outside(text: str, spans: Iterable[Span], kept: Kept) -> Iterator[Span]:
    """Yield the spans that lie in no token that is kept."""
    for span in spans:
        around = overlapping(span.start, span.stop, kept)
        for first, last, token in around:
            if not (first <= span.start and span.stop <= last):
                raise ValueError(
                    f"the name {str(text)[span.start : span.stop]!r} at {tuple(span[:3])} overlaps "
                    f"{token!r}, a token of the tokenizer's own at {(first, last)}: leave it out "
                    "of the name"
                )
        if not around:
            yield span


def _with_names(
    text: str, spans: list[Span], classes: Mapping[str, str], kept: Kept, inside: Container[str]
) -> list[Span]:
    """Add all places of given names, which are of the class that is given for them.

    Words are looked up, and others looked for one by one: to compile a pattern of them takes far
    longer than to use it. Those of the classes `inside` are no whole words.
    """
    all_spans = [s for s in spans if s.binding or text[s.start : s.stop] not in classes]
    others = {n: k for n, k in classes.items() if k in inside or not _is_one_word(n)}
    for match in _WORDS.finditer(text) if len(others) < len(classes) else ():
        word, (start, stop) = match[0], match.span()
        if word in classes and word not in others and not overlapping(start, stop, kept):
            all_spans.append(Span(start, stop, classes[word]))
    for name, kind in others.items():
        start = text.find(name)
        while start >= 0:
            stop = start + len(name)
            is_part = kind not in inside and (_inside_word(text, start) or _inside_word(text, stop))
            if not (is_part or overlapping(start, stop, kept)):
                all_spans.append(Span(start, stop, kind))
            start = text.find(name, start + 1)
    return all_spans


def _inside_word(text: str, place: int) -> bool:
    """Whether the characters before and behind a place belong to the same word."""
    return 0 < place < len(text) and _is_word(text[place - 1]) and _is_word(text[place])


@lru_cache(maxsize=_MOST_WORDS)
def _is_one_word(name: str) -> bool:
    return _WORDS.fullmatch(name) is not None


@lru_cache(maxsize=_MOST_WORDS)
def _is_word(character: str) -> bool:
    return _WORD.match(character) is not None


def _apart(spans: list[Span], classes: list[str]) -> tuple[Span, ...]:
    """Leave out what overlaps a name that goes before it."""
    separate: list[Span] = []
    end = 0
    for span in sorted(spans, key=lambda s: (s.start, -s.stop, classes.index(s.symbol_class))):
        if span.start >= end:
            separate.append(span)
            end = span.stop
    return tuple(separate)


def _words(place: str, key: str, value: Any) -> tuple[str, ...]:
    words = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (None,)
    if not all(isinstance(word, str) and word and word == word.strip() for word in words):
        raise ValueError(f"{place}: {key!r} is {value!r}: give a list of names")
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ValueError(f"{place}: {twice!r} is given twice in {key!r}")
    return words
