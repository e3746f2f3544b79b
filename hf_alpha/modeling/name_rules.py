r"""What a rule for names may say: where they stand, what binds them, how they are spelled again.

A rule is a function from a text to its names, each as (start, stop) or (start, stop, binding). All
names of one binding are one name, whatever it is called; `\x. x` and `\y. y` are the same text to
a model if the rule says so. Some are ready-made (`ready_rules`); a function of the user's own
(`function: package.module:name`) can be a `ReadyRule` too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import regex  # type: ignore[import-untyped]

from .words import is_one_word, whole_words

CLASS_NAME = r"[A-Za-z][A-Za-z0-9_-]*"
WAYS = ("pattern", "tokens", "column", "function", "rule")
_OF_LETTERS = regex.compile(
    r"(?:\w|\\[dw]|\[(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|\w|\\[dw])+\]"
    r"|\((?:\?:)?|\)|\||[*+?]|\{\d*,?\d*\})+"
)
"""Patterns that match nothing but letters, digits and `_`, so that a name is a word of a text."""
Found = Iterable[Sequence[Any]]  # (start, stop) or (start, stop, binding) of each name
Find = Callable[[str], Found]
Spell = Callable[[Sequence[str], Sequence[str], Mapping[str, str]], Sequence[str]]


@dataclass(frozen=True)
class ReadyRule:
    """How names of a kind are found in a text, and spelled again in an answer.

    Attributes:
        find: from a text to its names, in any order. It takes every text: one that it cannot read
            has no names. A binding is anything with a string of its own. Names without a binding
            are one name where they are spelled alike.
        words: names are whole words; else they may stand inside one.
        spell: gives the names of decoded text their spelling. It gets what stands before each
            occurrence of a symbol and behind the last one, the symbols, and symbol -> how it was
            spelled in the problem (if it was), and returns the spelling of each occurrence. None
            for the old spelling, unless it captures another binding (see `uncaptured`).
        answers: `find` reads answers too. A name of an answer whose binding its problem has is that
            name; one without a binding is the problem's that is spelled so. Else the names of an
            answer are those of its problem, wherever they stand.
        unbound: finds words of an answer that `find` takes for none of its names, but that are
            names if its problem has one that is spelled so.
        reads: whether `find` can read all of an answer: then it has no other names.
        languages: whose languages `find` takes as `language`; None if there is one language.
        attributes: whether `find` takes `attributes`: methods and fields are names too.
        scoped: the rule with `scopes: true`, by which one spelling may be several names.
        ignore_case: whether `find` takes `ignore_case`: spellings may be one name.
        keeps: whether `spell` leaves names of the text as they are, as symbols without it are: then
            a plain word of an answer that is spelled like one gets another spelling.
        examples: names as they are often written, such as digits. The symbols of a converted model
            start from what it knows of these; from letters, if none is given.
        variants: from a name to other spellings of it, which are names in the same text and in what
            follows in a chat. Canonical spelling says by their words that they belong together.
        stem: of the words for its names in canonical spelling, where answers are prose: `Person`.
    """

    find: Callable[..., Found]
    words: bool = True
    spell: Spell | None = None
    answers: bool = True
    unbound: Callable[..., Found] | None = None
    reads: Callable[[str], bool] | None = None
    languages: str | None = None
    attributes: bool = False
    scoped: "ReadyRule | None" = None
    ignore_case: bool = False
    keeps: bool = False
    examples: tuple[str, ...] = ()
    variants: Callable[[str], Iterable[str]] | None = None
    stem: str = ""

    def __call__(self, text: str) -> Found:
        """Find the names of a text."""
        return self.find(text)

    def of(self, **asked: Any) -> "ReadyRule":
        """Return the rule for a `language`, with `attributes`, or with `ignore_case` or not."""
        if not asked:
            return self
        unbound = self.unbound and partial(self.unbound, **asked)
        return replace(self, find=partial(self.find, **asked), unbound=unbound)


@cache
def ready_rules() -> Mapping[str, ReadyRule]:
    """Return the rules that are ready-made: what a rule may be called -> how its names are found.

    A tokenizer that uses none is saved without them, and one that uses none of a programming
    language without those: see `TextTokenizer.code_module`.

    Raises:
        ImportError: this is the code of a tokenizer that uses none.
    """
    rules = _rules_in("ready_rules", "READY_RULES")
    if rules is None:
        raise ImportError(
            "ready-made rules for names are not part of this tokenizer's own code, which was saved "
            "with a tokenizer that uses none: install hf_alpha, and load it by that"
        )
    return {**rules, **(_rules_in("names_in_languages", "LANGUAGE_RULES") or {})}


def is_of_language(rule: str) -> bool:
    """Whether a ready-made rule is one of a programming language, by its grammar."""
    return rule not in (_rules_in("ready_rules", "READY_RULES") or {})


def _rules_in(module: str, table: str) -> Mapping[str, ReadyRule] | None:
    """Return the rules of a module; None if a saved tokenizer's own code lacks it."""
    try:
        rules: Mapping[str, ReadyRule] = getattr(import_module(f"{__package__}.{module}"), table)
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.{module}":
            raise
        return None
    return rules


def reads_answers(reader: Any) -> bool:
    """Whether a function or rule that finds names takes answers too."""
    return getattr(reader, "answers", False)


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
        return bool(self.words and pattern and not read and all(map(is_one_word, self.tokens)))

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


def _words(place: str, key: str, value: Any) -> tuple[str, ...]:
    words = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (None,)
    if not all(isinstance(word, str) and word and word == word.strip() for word in words):
        raise ValueError(f"{place}: {key!r} is {value!r}: give a list of names")
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ValueError(f"{place}: {twice!r} is given twice in {key!r}")
    return words
