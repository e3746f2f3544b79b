r"""What a rule for names may say: where they stand, what binds them, how they are spelled again.

A rule is a function from a text to its names, each as (start, stop) or (start, stop, binding). All
names of one binding are one name, whatever it is called; `\x. x` and `\y. y` are the same text to
a model if the rule says so. Some are ready-made (`ready_rules`); a function of the user's own
(`function: package.module:name`) can be a `ReadyRule` too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from itertools import count
from typing import Any

Found = Iterable[Sequence[Any]]  # (start, stop) or (start, stop, binding) of each name
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


# -- spelling -------------------------------------------------------------------------------------


def uncaptured(rule: Any) -> Spell:
    """Return how names get their old spelling, unless it would capture another name or a word.

    Two bindings may have been spelled alike, or as a word of the text that is no name, `list`. The
    first one in the text keeps its spelling, and so does the word. Another one has it too if the
    rule then says of the text that they are two; else it gets a number.
    """

    def spell(
        between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
    ) -> Sequence[str]:
        table = {symbol: names.get(symbol, symbol) for symbol in symbols}
        text = " ".join(between)
        words = text.casefold()  # to SQL, `T1` and `t1` are one name
        used = {name.casefold() for name in (*names.values(), *table.values())}
        numbers: dict[str, Iterator[int]] = {}

        def numbered(name: str) -> str:
            spelled = (f"{name}{n}" for n in numbers.setdefault(name, count(1)))
            new = next(o for o in spelled if o.casefold() not in used and o.casefold() not in words)
            used.add(new.casefold())
            return new

        reading = _Reading(rule, between, symbols, table)
        if hidden := {s for s in reading.missing if table[s] in text}:
            other = {**table, **{symbol: numbered(table[symbol]) for symbol in hidden}}
            missing = _Reading(rule, between, symbols, other).missing
            for symbol in hidden:
                if missing[symbol] < reading.missing[symbol]:
                    table[symbol] = other[symbol]
            reading = _Reading(rule, between, symbols, table)
        while captured := [s for s in reading.captured() if table[s] == names.get(s, s)]:
            table |= {symbol: numbered(table[symbol]) for symbol in captured}
            reading = _Reading(rule, between, symbols, table)
        return [table[symbol] for symbol in symbols]

    return spell


class _Reading:
    """What a rule says of a text in which symbols are spelled by a table.

    Attributes:
        places: each symbol, with what the rule takes the name there for.
        bound: what binds words of the text that are no symbols.
        missing: symbol -> at how many places the rule finds none: in a comment, or where the text
            has a word of its own that is kept.
    """

    def __init__(
        self, rule: Any, between: Sequence[str], symbols: Sequence[str], table: Mapping[str, str]
    ):
        text, starts = "", []
        for before, symbol in zip(between, symbols, strict=False):
            starts.append(len(text) + len(before))
            text += before + table[symbol]
        found = {start: binding for start, _, *binding in rule(text + between[-1])}
        self.missing = Counter(s for s, i in zip(symbols, starts, strict=True) if i not in found)
        # Names without a binding are one name if they are spelled alike.
        self.places = [
            (symbol, tuple(found.pop(start, ())) or table[symbol])
            for symbol, start in zip(symbols, starts, strict=True)
        ]
        self.bound = {tuple(binding) for binding in found.values() if binding}

    def captured(self) -> list[str]:
        """Return the symbols that are read as an earlier one, or that bind a word."""
        ranks = {symbol: rank for rank, (symbol, _) in enumerate(reversed(self.places))}
        owners: dict[Any, str | None] = dict.fromkeys(self.bound)
        captured: dict[str, None] = {}
        for symbol, key in self.places:
            if symbol in captured:
                continue
            owner = owners.setdefault(key, symbol)
            if owner is None or (ranks[owner] > ranks[symbol] and owner not in captured):
                captured[symbol] = None
            elif owner != symbol:
                captured[owner] = None
                owners[key] = symbol
        return [*captured]
