"""Canonical spelling: names written as words that a model knows, and back in its answers.

The names of a text become `b`, `c`, ... by first occurrence, so a model reads the same whatever
they are called, and its answer gets them back. That is exact by construction, for any number of
names, and touches no weight. `CanonicalNames` does it with texts, `CanonicalTokenizer` on the way
to the tokenizer of any model.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any
from zlib import crc32

import regex  # type: ignore[import-untyped]

from .batches import BoundName, key_of
from .choices import check_choice
from .name_rules import reads_answers
from .names_in_text import Kept, NameFinder, Span, keys_in, parts
from .text_pieces import Cut, Place, cut_at_names
from .tokenization_symbols import Names, Row, Table, check_present
from .tokenization_text import TextTokenizer
from .tokenizer_beneath import AddedTokens, fast_backend

LETTERS = tuple("bcefghjklnpqruvwxyz")
"""Words for names. The others are words of English, or stand behind an apostrophe (isn't, I'm)."""
RENAMINGS = ("first_occurrence", "random")
_WORD = regex.compile(r"\w+")
_NUMBERED = regex.compile(r"v\d+")
_INSIDE_WORD = regex.compile(r"(?<=\w)(?=\w)")
_WHOLE_WORDS = regex.compile(r"(?s).*\s")


def numbered_words() -> Iterator[str]:
    """Yield the words for names where all others are used: v1, v2, ..."""
    return (f"v{number}" for number in count(1))


def host_words(tokenizer: Any, words: Iterable[str] = LETTERS) -> tuple[str, ...]:
    """Return the words for names that are one token of a tokenizer.

    There may be none, where each word is several tokens.

    Raises:
        ValueError: the tokenizer cannot write such words.
    """

    def tokens(word: str) -> int:
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        written = tokenizer.decode(ids).replace(" ", "")
        return 0 if tokenizer.unk_token_id in ids or written != word else len(ids)

    words = tuple(word for word in words if tokens(word) == 1)
    if not words and not tokens(next(numbered_words())):
        raise ValueError(
            "the tokenizer knows none of the words for names (b, c, ..., v1, v2, ...): say which "
            "ones it writes, words=['1', '2']"
        )
    return words


class CanonicalNames:
    """Writes the names of texts as words of a model, in order of first occurrence.

    What a text's words stand for is a table, word -> name: of the words for its names, and of words
    that it has itself and that could be taken for one, which stand for themselves.

    Args:
        symbols: class -> rule for its names: a pattern, a list, and all that `NameRule` takes.
        tokenizer: of the model, if it is at hand: its one-token words are taken, and its special
            tokens are no names.
        words: in place of these, in this order; where they are used up, v1, v2, ... follow.
        kept: classes whose names stay as they are, where they mean something.

    Raises:
        ValueError: a rule is wrong, or a word is none; there are no words for the tokenizer.

    Examples:
        >>> spelled = CanonicalNames({"variable": "[a-z]+[0-9]"}, words=["x", "y"]).spell("a1 + b2")
        >>> spelled.text, spelled.back("y is 3")
        ('x + y', 'b2 is 3')
    """

    def __init__(
        self,
        symbols: Mapping[str, Any] | NameFinder,
        tokenizer: Any = None,
        words: Iterable[str] | None = None,
        kept: Collection[str] = (),
    ):
        self.finder = symbols if isinstance(symbols, NameFinder) else NameFinder(symbols)
        rules, self.kept = self.finder.rules, frozenset(kept)
        if parts := [name for name in self.finder.inside if name not in self.kept]:
            raise ValueError(
                f"the names of class {parts[0]!r} are no whole words: in an answer, words for them "
                "could not be told from the rest. Take a model with symbols"
            )
        if kept and not self.kept < rules.keys():
            raise ValueError(f"kept is {sorted(kept)}: give some of {', '.join(rules)}, not all")
        if words is None:
            words = LETTERS if tokenizer is None else host_words(tokenizer)
        words = dict.fromkeys(words)
        if wrong := [word for word in words if not _WORD.fullmatch(word)]:
            raise ValueError(f"{wrong[0]!r} is no word of letters and digits")
        meaningful = ((*r.reserved, *(r.tokens if c in kept else ())) for c, r in rules.items())
        self._meaningful = frozenset(word.casefold() for word in chain.from_iterable(meaningful))
        self.words = tuple(word for word in words if word.casefold() not in self._meaningful)
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
        return self.spell_row([text], draw)

    def spell_row(
        self, texts: Sequence[str], draw: int = 0, own: Sequence[Kept | None] = (None, None)
    ) -> "Spelled":
        """Write the names of a text, or of two that belong together, as `spell` does.

        Args:
            draw: see `spell`.
            own: of each, what tokens it has that are no names; by default the tokenizer says it.
        """
        spans = [self.names_in(*pair) for pair in zip(texts, own, strict=False)]
        others: dict[str, None] = {}
        for text, names in zip(texts, spans, strict=True):
            for before, _ in parts(str(text), names):
                others |= dict.fromkeys(_WORD.findall(before))
        words = random.Random(draw).sample(self.words, len(self.words)) if draw else self.words
        unused, table, called = self._unused(others, words), dict[str, str](), dict[str, str]()
        keys = [keys_in(*pair) for pair in zip(texts, spans, strict=True)]
        for text, names, of_names in zip(map(str, texts), spans, keys, strict=True):
            for (start, stop, *_), key in zip(names, of_names, strict=True):
                name = text[start:stop]
                if any(_INSIDE_WORD.match(text, place) for place in (start, stop)):
                    raise ValueError(f"the name {name!r} at {start} is a part of a word")
                if key not in table:
                    table[key], called[key] = next(unused), BoundName.of(name, key)
        folded, those = {word.casefold() for word in self.words}, {*called.values()}
        like = (w for w in others if w in those or w.casefold() in folded or _NUMBERED.fullmatch(w))
        pieces = [_cut(*row, table) for row in zip(texts, spans, keys, strict=True)]
        stands_for = {w: w for w in like} | {word: called[key] for key, word in table.items()}
        return Spelled(table, stands_for, pieces, self)

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
        """
        spans = self.names_in(target, own, [name for word, name in table.items() if word != name])
        words, unused = {key_of(name): word for word, name in table.items()}, self._unused(table)
        kinds = {target[span.start : span.stop]: span.symbol_class for span in spans}
        known = {key_of(name): (str(name), kinds.get(name, "")) for name in table.values()}
        keys = keys_in(target, spans, known)
        pairs = list(zip(keys, spans, strict=True))
        classes = {key: span.symbol_class for key, span in pairs}
        called = {k: BoundName.of(str(target)[s.start : s.stop], k) for k, s in pairs}
        if not allow_absent:
            check_present(target, classes, words, called)
        new = {key: next(unused) for key in classes if key not in words}
        table = {**table, **{word: called[key] for key, word in new.items()}}
        return _cut(target, spans, keys, words | new), table

    def back(self, answer: str, table: Mapping[str, str]) -> str:
        """Write an answer of the model with the names of a text.

        A name of the answer's own, one that the rules find or a word for names that the text does
        not use, stays as it is, unless the text has such a name: then it gets the next free word.
        """
        return "".join(self.stream([answer], table))

    def stream(self, chunks: Iterable[str], table: Mapping[str, str]) -> Iterator[str]:
        """Write an answer as it comes, word by word; as `back`, for rules that look at one word.

        It comes at once where a rule reads whole answers, or two names are spelled alike.
        """
        table, held = dict(table), ""
        names = [name for word, name in table.items() if word != name]
        readers = map(self.finder.reader, self.finder.rules)
        # what a name is, or would capture, depends on all of the answer
        at_once = len({*names}) < len(names) or any(map(reads_answers, readers))
        for chunk in chunks:
            ready = None if at_once else _WHOLE_WORDS.match(held + chunk)
            cut = ready.end() if ready else 0
            if cut:
                yield self._back((held + chunk)[:cut], table)
            held = (held + chunk)[cut:]
        if held:
            yield self._back(held, table)

    def _back(self, answer: str, table: dict[str, str]) -> str:
        """Write a part of an answer; what its own names are called is added to the table."""
        keys = Counter(map(key_of, table.values()))
        # Of a name and a word of the text beside names that are spelled alike, the word stays.
        words = {word for word, name in table.items() if word == name and keys[key_of(name)] > 1}
        spans = self.names_in(answer, more=[*self.words, *table])
        spans = tuple(span for span in spans if answer[span.start : span.stop] not in words)
        for start, stop, *_ in spans:
            if (name := answer[start:stop]) not in table:
                called = {*table.values()}
                fresh = self._unused({*table, *called}) if name in called else iter([name])
                table[name] = next(fresh)
        classes = {answer[span.start : span.stop]: span.symbol_class for span in spans}
        pieces: list[tuple[str, str | None]] = []
        for part, span in parts(answer, spans):
            word = span and answer[span.start : span.stop]
            pieces += [(part, None), (word or "", word)]
        return "".join(self.finder.spell(pieces, classes, table))

    def names_in(
        self, text: str, own: Kept | None = None, more: Iterable[str] | None = None
    ) -> tuple[Span, ...]:
        """Return the names of a text that are written as words.

        Args:
            own: what tokens it has that are no names; by default the tokenizer says it.
            more: of an answer, names beside those that the rules find: in one to learn those of its
                text, in a model's the words for names.
        """
        if not self.finder.rules:
            return ()
        if own is None:
            own = () if self._added is None else self._added.find(text)
        kind = next(name for name in self.finder.rules if name not in self.kept)
        spans = self.finder.find(text, None if more is None else dict.fromkeys(more, kind), own)
        return tuple(span for span in spans if span.symbol_class not in self.kept)

    def _unused(self, taken: Iterable[str], words: Iterable[str] | None = None) -> Iterator[str]:
        """Yield words for names but for these and those that differ from them in case only."""
        folded = {word.casefold() for word in taken} | self._meaningful
        numbered = (word for word in numbered_words() if word not in self.words)
        words = chain(self.words if words is None else words, numbered)
        return (word for word in words if word.casefold() not in folded)


def _cut(text: str, spans: Sequence[Span], keys: Sequence[str], words: Mapping[str, str]) -> Cut:
    """Cut a text at its names, and put words in their place."""
    pairs = zip(spans, keys, strict=True)
    names: list[Place] = [(s.start, s.stop, words[key], False, False) for s, key in pairs]
    return cut_at_names("kept", text, names)


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

    @property
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
        ranks = {word: f"\0{rank}" for rank, word in enumerate(self.words.values())}
        table = {word: word for word in self.table} | ranks
        spans = self.names.names_in(answer, more=[*self.names.words, *self.table])
        keys = [answer[span.start : span.stop] for span in spans]
        for word in keys:
            table.setdefault(word, f"\0{len(table)}")
        return _cut(answer, spans, keys, table).written


class CanonicalTokenizer(TextTokenizer):
    """The tokenizer of any model, for texts whose names are spelled canonically on the way to it.

    It is made by `from_tokenizer`. A text has the ids that the tokenizer beneath gives to it once
    its names are words of the model; no token is added. Everything else is as `TextTokenizer` has
    it, with words in place of symbols: `batch.names` has what the words of each row stand for (see
    `CanonicalNames`), `text_target` is written in the words of its row, and `decode` with `names`
    writes an answer with the names of the row. So a model gives renamed answers to renamed texts,
    whatever its weights.

    Args:
        classes: the classes of names, in their order.
        kept: classes whose names stay as they are.
        symbol_renaming: "first_occurrence", or "random": the order of words is drawn for each text,
            by what it is without its names, so that training reaches all of them.
        **kwargs: what `TextTokenizer` takes, but for symbols of its own.

    Raises:
        ValueError: the arguments contradict one another.

    Examples:
        >>> rules = {"variable": {"pattern": "[a-z]"}}
        >>> canonical = CanonicalTokenizer.from_tokenizer(host_tokenizer, rules, words=["x", "y"])
        >>> canonical("add q p")["input_ids"] == host_tokenizer("add x y")["input_ids"]
        True
    """

    def __init__(
        self,
        *args: Any,
        symbols: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        words: Sequence[str] = LETTERS,
        kept: Sequence[str] = (),
        symbol_renaming: str = "first_occurrence",
        **kwargs: Any,
    ):
        check_choice("symbol_renaming", symbol_renaming, RENAMINGS)
        rules = symbols or {}
        classes = list(classes or rules)  # JSON files sort the keys of `symbols`
        self._options: dict[str, Any] = {"words": list(words), "kept": list(kept)}
        self.symbol_renaming = symbol_renaming
        super().__init__(
            *args,
            symbols={name: rules[name] for name in classes},
            classes=classes,
            **self._options,
            symbol_renaming=symbol_renaming,
            **{**kwargs, "spacing": "kept"},
        )

    @classmethod
    def from_tokenizer(  # type: ignore[override]
        cls,
        tokenizer: Any,
        symbols: Mapping[str, Any],
        words: Iterable[str] | None = None,
        kept: Collection[str] = (),
        **kwargs: Any,
    ) -> "CanonicalTokenizer":
        """Spell names canonically in front of a tokenizer, which stays as it is.

        Args:
            tokenizer: a fast tokenizer.
            symbols: class -> rule by which its names are found; there may be none as yet.
            words: see `CanonicalNames`, by default those that are one token.
            kept: classes whose names stay as they are.

        Raises:
            ValueError: the tokenizer is not a fast one, or an argument is wrong.
        """
        beneath, settings = fast_backend(tokenizer, symbols=False)
        names = CanonicalNames(symbols, tokenizer, words, kept)
        spelling = cls(
            tokenizer_object=beneath,
            symbols=names.finder.to_dict(),
            words=names.words,
            kept=sorted(kept),
            **{**settings, **kwargs},
        )
        spelling.finder.functions.update(names.finder.functions)
        return spelling

    def settings(self) -> list[Any]:
        return [*super().settings(), self._options, self.symbol_renaming]

    def use_rules(self, symbols: Mapping[str, Any]) -> None:
        self._set_rules(NameFinder(symbols))
        self.init_kwargs["classes"] = list(self.finder.rules)
        self._rebuild_tables()

    def _rebuild_tables(self) -> None:
        super()._rebuild_tables()
        self.canonical = CanonicalNames(self.finder, self, **self._options)

    def _table_of(self, names: Names) -> Table:
        return {}  # of words, names are all there is to know

    def _row(
        self,
        texts: tuple[str, ...],
        asked: Row | None,
        allow_absent: bool,
        options: Mapping[str, Any],
    ) -> Row:
        """Put words in place of the names of a row, or of an answer to one."""
        own = self._kept(texts, asked, options)
        if asked is not None:
            cut, table = self.canonical.spell_answer(texts[0], asked.names, own[0], allow_absent)
            return Row([cut], {}, {}, table)
        row = self.canonical.spell_row(texts, own=own)
        if self.symbol_renaming == "random":
            seed = crc32("\0".join(cut.written for cut in row.pieces).encode())
            row = self.canonical.spell_row(texts, seed or 1, own)
        return Row(row.pieces, {}, {}, row.table)

    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        text = super()._write(ids, skip_special_tokens, None)
        return self.canonical.back(text, names) if names else text


CanonicalTokenizer.register_for_auto_class("AutoTokenizer")
