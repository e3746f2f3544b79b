r"""What a rule for names may say: where they stand, what binds them, how they are spelled again.

A rule is a function from a text to its names, each as (start, stop) or (start, stop, binding). All
names of one binding are one name, whatever it is called; `\x. x` and `\y. y` are the same text to
a model if the rule says so. Some are ready-made (`ready_rules`); a function of the user's own
(`function: package.module:name`) can be a `ReadyRule` too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    examples: tuple[str, ...] = ()
    variants: Callable[[str], Iterable[str]] | None = None
    stem: str = ""

    def __call__(self, text: str) -> Found:
        """Find the names of a text."""
        return self.find(text)

    def of(self, language: str | None) -> "ReadyRule":
        """Return the rule for a language."""
        if language is None:
            return self
        unbound = self.unbound and partial(self.unbound, language=language)
        return replace(self, find=partial(self.find, language=language), unbound=unbound)


def ready_rules() -> Mapping[str, ReadyRule]:
    """Return the rules that are ready-made: what a rule may be called -> how its names are found.

    A tokenizer that uses none is saved without them: see `TextTokenizer.code_module`.

    Raises:
        ImportError: this is the code of such a tokenizer.
    """
    module = f"{__package__}.ready_rules"
    try:
        rules: Mapping[str, ReadyRule] = import_module(module).READY_RULES
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(
            "ready-made rules for names are not part of this tokenizer's own code, which was saved "
            "with a tokenizer that uses none: install hf_alpha, and load it by that"
        ) from None
    return rules


def reads_answers(reader: Any) -> bool:
    """Whether a function or rule that finds names takes answers too."""
    return getattr(reader, "answers", False)


# -- spelling -------------------------------------------------------------------------------------


def uncaptured(find: Callable[[str], Found]) -> Spell:
    """Return how names get their old spelling, unless it would capture another binding.

    Two bindings may have been spelled alike. The first one in the text keeps its spelling. Another
    one has it too if `find` then says of the text that they are two; else it gets a number.
    """

    def spell(
        between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
    ) -> Sequence[str]:
        table: dict[str, str] = {}
        alike: list[str] = []
        for symbol in symbols:
            if symbol not in table:
                old = names.get(symbol, symbol)
                if old in table.values():
                    alike.append(symbol)
                    old = _numbered(old, {*names.values(), *table.values()}, between)
                table[symbol] = old
        for symbol in alike:
            asked = {**table, symbol: names[symbol]}
            if _partition(find, between, symbols, asked) == _ranks(symbols):
                table = asked
        return [table[symbol] for symbol in symbols]

    return spell


def _numbered(name: str, used: set[str], between: Sequence[str]) -> str:
    """Return a name with a number behind it that no name and no text has."""
    text = " ".join(between)
    return next(new for n in count(1) if (new := f"{name}{n}") not in used and new not in text)


def _partition(
    find: Callable[[str], Found],
    between: Sequence[str],
    symbols: Sequence[str],
    table: Mapping[str, str],
) -> list[int] | None:
    """Return which names of a text are one, as numbers; None if others stand in it, or fewer."""
    text, places = "", []
    for before, symbol in zip(between, symbols, strict=False):
        start = len(text) + len(before)
        text += before + table[symbol]
        places.append((start, len(text)))
    found = {tuple(place[:2]): place[2:] for place in find(text + between[-1])}
    if not found.keys() >= {*places}:
        return None
    keys = [(*found[place],) or text[slice(*place)] for place in places]
    return _ranks(keys)


def _ranks(keys: Sequence[Any]) -> list[int]:
    """Return keys as numbers, by first occurrence."""
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
    return [ranks[key] for key in keys]
