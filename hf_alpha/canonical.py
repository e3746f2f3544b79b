"""Canonical spelling: names written as words that a model knows, and back in its answers.

The names of a text become `b`, `c`, ... by first occurrence, so a model reads the same whatever
they are called, and its answer gets them back. That is exact by construction, for any number of
names, and touches no weight: the model may be a folder, a pipeline, or behind an address. By random
words in place of the first ones, a model is asked several times, and the answers vote.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import regex  # type: ignore[import-untyped]

from hf_alpha.modeling.names_in_text import NameFinder, Span, parts
from hf_alpha.modeling.tokenizer_beneath import AddedTokens

LETTERS = tuple("bcefghjklnpqruvwxyz")
"""Words for names. The others are words of English, or stand behind an apostrophe (isn't, I'm)."""
_WORD = regex.compile(r"\w+")
_INSIDE_WORD = regex.compile(r"(?<=\w)(?=\w)")
_WHOLE_WORDS = regex.compile(r"(?s).*\s")


def numbered_words() -> Iterator[str]:
    """Yield the words for names where all others are used: v1, v2, ..."""
    return (f"v{number}" for number in count(1))


def host_words(tokenizer: Any) -> tuple[str, ...]:
    """Return the words for names that are one token of a tokenizer.

    There may be none, where each word is several tokens.

    Raises:
        ValueError: the tokenizer cannot write such words.
    """

    def tokens(word: str) -> int:
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        written = tokenizer.decode(ids).replace(" ", "")
        return 0 if tokenizer.unk_token_id in ids or written != word else len(ids)

    words = tuple(word for word in LETTERS if tokens(word) == 1)
    if not words and not tokens(next(numbered_words())):
        raise ValueError(
            "the tokenizer knows none of the words for names (b, c, ..., v1, v2, ...): say which "
            "ones it writes, words=['1', '2']"
        )
    return words


class CanonicalNames:
    """Writes the names of texts as words of a model, in order of first occurrence.

    Args:
        symbols: class -> rule for its names: a pattern, a list, and all that `NameRule` takes.
        tokenizer: of the model, if it is at hand: its one-token words are taken, and its special
            tokens are no names.
        words: in place of these, in this order; where they are used up, v1, v2, ... follow.
        kept: classes whose names stay as they are, where they mean something.

    Raises:
        ValueError: a rule is wrong, or a word is none; there are no words for the tokenizer.
    """

    def __init__(
        self,
        symbols: Mapping[str, Any],
        tokenizer: Any = None,
        words: Iterable[str] = (),
        kept: Collection[str] = (),
    ):
        self.finder = NameFinder(symbols)
        if unknown := set(kept) - self.finder.rules.keys():
            raise ValueError(f"kept: there is no class {sorted(unknown)[0]!r}")
        self.kept = frozenset(kept)
        words = dict.fromkeys(words) or (LETTERS if tokenizer is None else host_words(tokenizer))
        self.words = tuple(words)
        if wrong := [word for word in self.words if not _WORD.fullmatch(word)]:
            raise ValueError(f"{wrong[0]!r} is no word of letters and digits")
        rules = self.finder.rules.items()
        self._meaningful = frozenset(
            chain.from_iterable((*r.reserved, *(r.tokens if c in kept else ())) for c, r in rules)
        )
        beneath = getattr(tokenizer, "backend_tokenizer", None)
        self._added = None if beneath is None else AddedTokens.of(beneath)

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
        spans = self.names_in(text)
        plain = str(text)
        for start, stop, _ in spans:
            if any(_INSIDE_WORD.match(plain, place) for place in (start, stop)):
                raise ValueError(f"the name {plain[start:stop]!r} at {start} is a part of a word")
        between = (before for before, _ in parts(plain, spans))
        others = frozenset(chain.from_iterable(map(_WORD.findall, between)))
        words = random.Random(draw).sample(self.words, len(self.words)) if draw else self.words
        folded = {word.casefold() for word in (*others, *self._meaningful)}
        free = tuple(word for word in words if word.casefold() not in folded)
        numbered = (word for word in numbered_words() if word not in {*folded, *self.words})
        unused, table, classes = chain(free, numbered), dict[str, str](), dict[str, str]()
        for start, stop, kind in spans:
            if (name := plain[start:stop]) not in table:
                table[name], classes[name] = next(unused), kind
        return Spelled(_respelled(plain, spans, table), table, classes, others, free, self)

    def names_in(self, text: str, classes: Mapping[str, str] | None = None) -> tuple[Span, ...]:
        """Return the names of a text that are written as words; arguments of `NameFinder.find`."""
        own = () if self._added is None else self._added.find(text)
        spans = self.finder.find(text, classes, own)
        return tuple(span for span in spans if span.symbol_class not in self.kept)


@dataclass(frozen=True)
class Spelled:
    """A text whose names are written as words.

    Attributes:
        text: for the model.
        words: name -> word, in order of first occurrence.
        classes: name -> class.
        others: the text's words that are no names.
        free: words for names that the text does not have beside its names, in their order.
        names: what wrote it.
    """

    text: str
    words: dict[str, str]
    classes: dict[str, str] = field(repr=False)
    others: frozenset[str] = field(repr=False)
    free: tuple[str, ...] = field(repr=False)
    names: CanonicalNames = field(repr=False)

    def answer(self, target: str) -> str:
        """Write an answer to the text in the same words, to train with; new names get the next."""
        spans = self.names.names_in(target, self.classes)
        found = (str(target)[start:stop] for start, stop, _ in spans)
        table = {name: name for name in self.others} | self.words
        fresh = self._fresh(set(self.words.values()) | self.others)
        for name in found:
            if name not in table:
                table[name] = next(fresh)
        return _respelled(target, spans, table)

    def back(self, answer: str) -> str:
        """Write an answer of the model with the names of the text.

        A name of the answer's own, one that the rules find or a word for names that the text does
        not use, stays as it is, unless the text has such a name: then it gets the next free word.
        """
        return "".join(self.stream([answer]))

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Write an answer as it comes, word by word; as `back`, for rules that look at one word."""
        table = {word: word for word in self.others}
        table |= {word: name for name, word in self.words.items()}
        taken = {*self.others, *self.words, *self.words.values()}
        held = ""
        for chunk in chunks:
            ready = _WHOLE_WORDS.match(held + chunk)
            cut = ready.end() if ready else 0
            if cut:
                yield self._back((held + chunk)[:cut], table, taken)
            held = (held + chunk)[cut:]
        if held:
            yield self._back(held, table, taken)

    def _back(self, answer: str, table: dict[str, str], taken: set[str]) -> str:
        """Write a part of an answer; what its own names are called is added to the arguments."""
        spans = self._names_of_answer(answer)
        for start, stop, _ in spans:
            if (name := answer[start:stop]) not in table:
                table[name] = next(self._fresh(taken)) if name in taken else name
                taken.add(table[name])
        return _respelled(answer, spans, table)

    def key(self, answer: str) -> str:
        """Return an answer of the model with numbers for names: equal for equal answers."""
        table = {word: word for word in self.others}
        table |= {word: f"\0{rank}" for rank, word in enumerate(self.words.values())}
        spans = self._names_of_answer(answer)
        for start, stop, _ in spans:
            table.setdefault(answer[start:stop], f"\0{len(table)}")
        return _respelled(answer, spans, table)

    def _names_of_answer(self, answer: str) -> tuple[Span, ...]:
        """Return where a model's answer has names: words for names, and what the rules find."""
        some_class = next(iter(self.names.finder.rules))
        classes = dict.fromkeys((*self.free, *self.words.values()), some_class)
        classes |= {self.words[name]: kind for name, kind in self.classes.items()}
        return self.names.names_in(answer, classes)

    def _fresh(self, taken: Collection[str]) -> Iterator[str]:
        return (word for word in chain(self.free, numbered_words()) if word not in taken)


def _respelled(text: str, spans: Iterable[Span], table: Mapping[str, str]) -> str:
    """Return a text whose names are written otherwise."""
    pieces = parts(str(text), spans)
    return "".join(
        before + (table[str(text)[span.start : span.stop]] if span else "")
        for before, span in pieces
    )


@dataclass(frozen=True)
class Vote:
    """The answer that most spellings give, and which share of them give another one."""

    answer: str
    doubt: float


@dataclass(frozen=True)
class CanonicalModel:
    """A model that reads and writes canonical spelling, for those who ask it in their own names.

    Args:
        ask: the model: from a text to its answer, or for `stream` to the parts of it.
        names: how names are written.
    """

    ask: Callable[[str], Any]
    names: CanonicalNames

    def __call__(self, text: str) -> str:
        """Return the answer to a text."""
        spelled = self.names.spell(text)
        return spelled.back(self.ask(spelled.text))

    def stream(self, text: str) -> Iterator[str]:
        """Yield the parts of an answer as they come."""
        spelled = self.names.spell(text)
        return spelled.stream(self.ask(spelled.text))

    def vote(self, text: str, spellings: int = 5) -> Vote:
        """Return the answer that most of so many spellings give, the first ones of equally many.

        The first spelling is canonical, the others are drawn, by no name.

        Raises:
            ValueError: there is none.
        """
        if spellings < 1:
            raise ValueError(f"spellings is {spellings}: give 1 or more")
        asked = [self.names.spell(text, draw) for draw in range(spellings)]
        answers = [self.ask(spelled.text) for spelled in asked]
        keys = [spelled.key(answer) for spelled, answer in zip(asked, answers, strict=True)]
        best, votes = Counter(keys).most_common(1)[0]
        first = keys.index(best)
        return Vote(asked[first].back(answers[first]), (spellings - votes) / spellings)


def generating(model: Any, tokenizer: Any, **options: Any) -> Callable[[str], str]:
    """Return a model of Transformers as what answers a text.

    Args:
        model: an encoder-decoder, or a decoder, whose answer is what follows the text.
        tokenizer: of the model.
        **options: of `generate`.
    """
    from hf_alpha.generation import generate_rows  # with torch, which an address does not need

    def ask(text: str) -> str:
        encoded = tokenizer(text)
        row = {key: encoded[key] for key in ("input_ids", "attention_mask")}
        (ids,) = generate_rows(model, tokenizer, [row], options)
        return str(tokenizer.decode(ids, skip_special_tokens=True))

    return ask


__all__ = ["CanonicalModel", "CanonicalNames", "Spelled", "Vote", "generating", "host_words"]
