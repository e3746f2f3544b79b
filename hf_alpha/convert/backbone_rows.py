"""Which rows of a model of Transformers become those of symbols, and what they begin with."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice, product
from typing import Any

from transformers import PreTrainedModel

from hf_alpha.convert.host_tables import draw_rows, fill_row, resize_tables, row_length, table_rows
from hf_alpha.convert.shared import ConversionError
from hf_alpha.modeling.host_words import LETTERS, host_words
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import Span
from hf_alpha.modeling.symbol_encodings import encoding_class

CLASS = "name"
"""What the only class of symbols is called, unless it is said otherwise."""
MORE_WORDS = (*map(str.upper, LETTERS), *map("".join, product("bcfghjklnpqrvwxz", repeat=2)))
"""Words for names where letters are used up: two names with the same one are hard to tell apart.
Pairs have no vowel, so they are no words of English."""
RELATION_SCALE = 100.0
"""So rates of 1e-4 and more move the bias of a gate by whole numbers in some hundred steps."""

Tokens = str | Sequence[str] | Mapping[str, str | Sequence[str]]


def by_class(tokens: Tokens, classes: Sequence[str]) -> dict[str, list[str]]:
    """Return tokens by class: of a mapping, or all of them for the only class.

    Raises:
        ConversionError: there are several classes, and it is not said which they are for.
    """
    if isinstance(tokens, Mapping):
        return {name: _listed(some) for name, some in tokens.items()}
    if len(classes) != 1:
        raise ConversionError(
            f"{tokens!r}: say which class tokens are for, {{'{classes[0]}': ...}}"
        )
    return {classes[0]: _listed(tokens)}


def _listed(tokens: str | Sequence[str]) -> list[str]:
    return tokens.replace(",", " ").split() if isinstance(tokens, str) else list(tokens)


def token_id(tokenizer: Any, token: str) -> int:
    """Return the id of a token, as it is written in a text or in the vocabulary.

    Raises:
        ConversionError: the tokenizer splits it.
    """
    ids = tokenizer(token, add_special_tokens=False)["input_ids"]
    if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
        return ids[0]
    index = tokenizer.get_vocab().get(token)
    if index is not None:
        return index
    parts = " ".join(tokenizer.convert_ids_to_tokens(ids))
    raise ConversionError(
        f"{token!r} is no token: the tokenizer makes {parts} of it. Take a token, or let names be "
        f"found in texts, however they are split: symbols={{'{CLASS}': ['{token}', ...]}}"
    )


def _word_ids(tokenizer: Any, word: str) -> list[int]:
    """Return the ids of a word's tokens; a token may be written as it is in the vocabulary.

    Raises:
        ConversionError: a part of it is unknown.
    """
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    if len(ids) < 2 or tokenizer.unk_token_id in ids or word in tokenizer.get_vocab():
        return [token_id(tokenizer, word)]
    return ids


def _words_for(name: str, size: int, tokenizer: Any, finder: NameFinder) -> list[list[int]]:
    """Return the tokens of each of the words that a class's names may be for a model.

    Examples of a ready-made rule; letters that are names by the rule, and where there are more
    symbols, more such words; if there are none, the tokens that are names (digits, say), if those
    are few; else all letters. [[]] for none at all.
    """
    most = max(len(LETTERS), size)

    def is_name(word: str) -> bool:
        return finder.find(word) == (Span(0, len(word), name),)

    try:
        some = host_words(tokenizer, chain(LETTERS, MORE_WORDS))
        words = {word: _word_ids(tokenizer, word) for word in some}
    except ValueError:  # it writes none of them
        words = {}
    rule = finder.rules[name]
    known: list[list[int]] = []
    for example in getattr(finder.reader(name), "examples", ()):
        with suppress(ConversionError):
            known.append(_word_ids(tokenizer, example))
    if known:
        return known
    if rule.pattern is not None or rule.tokens:
        if fitting := [ids for word, ids in words.items() if is_name(word)]:
            return fitting[:most]
        found = (i for i in range(len(tokenizer)) if is_name(tokenizer.decode([i]).strip()))
        tokens = [[i] for i in islice(found, len(LETTERS) + 1)]
        if 0 < len(tokens) <= len(LETTERS):
            return tokens
    return list(words.values())[:most] or [[]]


class BackboneRows:
    """Which rows of the backbone are for what.

    Base tokens have the rows of their ids. The rows of symbols' ids are free for what the symbols
    of a class share: no id leads to them any more.

    Attributes:
        base: ids of base tokens that the backbone has rows for already.
        class_rows: class -> its rows.
    """

    def __init__(self, host: PreTrainedModel, tokenizer: Any, plain: Any, config: Any):
        self.host, self.config = host, config
        self.ranges = copy.deepcopy(tokenizer.symbol_ranges)
        self.classes = dict(tokenizer.symbol_classes)
        self.size = len(tokenizer)
        symbols = {i for pairs in self.ranges.values() for pair in pairs for i in range(*pair)}
        self.symbols = sorted(symbols)
        self.old = table_rows(host)
        all_base = [i for i in range(self.size) if i not in symbols]
        self.base = [i for i in all_base if i < self.old]
        self.new_base = [i for i in all_base if i >= self.old]
        self.sources = self._sources(plain, tokenizer)
        self.class_rows = self._places()

    def _sources(self, plain: Any, tokenizer: Any) -> dict[str, list[list[int]]]:
        """Return, for each row of a class, the ids of the tokens that it begins with.

        They are tokens of the tokenizer as it was, for which no word is a name.
        """
        encoding = encoding_class(self.config.encoding)
        if encoding.rows_per_class is None:
            return {}
        roles = [
            self._named_rows(plain, role)
            for role in ("actual", "placeholder")[: encoding.rows_per_class]
        ]
        if encoding.rows_in_turn:
            return {name: self._words(name, roles[0], plain, tokenizer) for name in self.ranges}
        sources = {
            name: self._defaults(
                name, [list(chain(*rows.get(name, []))) for rows in roles], len(plain)
            )
            for name in self.ranges
        }
        for name, rows in sources.items():
            if len(rows) == 2 and rows[0] and sorted(rows[0]) == sorted(rows[1]):
                raise ConversionError(
                    f"actual and placeholder of class {name!r} are the same: a stream could not "
                    "tell its own symbol from others; choose two tokens"
                )
        return sources

    def _words(
        self, name: str, named: Mapping[str, list[list[int]]], plain: Any, tokenizer: Any
    ) -> list[list[int]]:
        """Return the tokens of each word that stands for a name of a class: one or more words."""
        members = [[i] for i in self._members(name) if i < len(plain)]
        rows = named.get(name) or members
        rows = rows or _words_for(name, len(self._members(name)), plain, tokenizer.finder)
        return [*map(list, dict.fromkeys(map(tuple, rows)))]

    def _named_rows(self, plain: Any, role: str) -> dict[str, list[list[int]]]:
        """Return, for each class, the ids of each word's tokens that is named for a role."""
        role_tokens = getattr(self.config, role)
        tokens = {} if role_tokens is None else by_class(role_tokens, list(self.ranges))
        if unknown := tokens.keys() - self.ranges.keys():
            raise ConversionError(f"{role}: there is no class {sorted(unknown)[0]!r}")
        return {name: [_word_ids(plain, word) for word in words] for name, words in tokens.items()}

    def _defaults(self, name: str, rows: list[list[int]], num_tokens: int) -> list[list[int]]:
        """Return the rows of a class, those that nothing is named for filled in.

        They begin with symbols that were tokens before: all of them, if the class has one row; of
        two, each with the first symbol that the other one does not begin with.
        """
        members = [i for i in self._members(name) if i < num_tokens]
        if len(rows) == 1:
            return [rows[0] or members]
        actual, placeholder = rows
        actual = actual or [i for i in members if i not in placeholder][:1]
        return [actual, placeholder or [i for i in members if i not in actual][:1]]

    def settings(self) -> dict[str, Any]:
        """Return the settings of the configuration for the vocabulary and the places of rows."""
        settings: dict[str, Any] = {
            "num_base_tokens": self.size - len(self.symbols),
            "vocab_size": self.size,
            "symbol_classes": self.classes,
            "symbol_ranges": self.ranges,
            "class_rows": self.class_rows,
        }
        encoding = encoding_class(self.config.encoding)
        decodes = not self.host.config.is_encoder_decoder
        # What is added to the words of a trained encoder-decoder stays at 1: at the rates that suit
        # its weights, something of their length would move too far (docs/LOG.md).
        words = any(len(rows) > 1 for rows in self.class_rows.values())
        if encoding.rows_per_class == 1 and (decodes or not words):
            settings["random_scale"] = row_length(self.host, self.base)
        if decodes and encoding.memories is not None:
            settings["relation_scale"] = RELATION_SCALE
        return settings

    def apply(self) -> None:
        """Make the rows."""
        class_rows = self.class_rows
        last = max([*self.new_base, *(row for rows in class_rows.values() for row in rows), 0])
        if not self.sources:  # each symbol has a row of its own
            last = max(last, *self.symbols)
        resize_tables(self.host, max(self.old, last + 1))
        new = [] if self.sources else [i for i in self.symbols if i >= self.old]
        for name, rows in class_rows.items():
            for row, sources in zip(rows, self.sources[name], strict=True):
                if not sources:
                    new.append(row)
                elif sources != [row]:
                    fill_row(self.host, row, sources)
        draw_rows(self.host, new, self.base)

    def _places(self) -> dict[str, list[int]]:
        """Return each class's rows: that of its only source, if a symbol of the class; else free.

        No two are the same: classes have no symbol in common, and a class no source twice.
        """
        used_rows = {i for rows in self.sources.values() for ids in rows for i in ids}
        free = (i for i in chain(self.symbols, count(self.size)) if i not in used_rows)
        return {
            name: [
                ids[0] if len(ids) == 1 and ids[0] in self._members(name) else next(free)
                for ids in rows
            ]
            for name, rows in self.sources.items()
        }

    def _members(self, name: str) -> list[int]:
        """Return the symbols of a class."""
        return [i for pair in self.ranges[name] for i in range(*pair)]
