"""The tokenizer for texts in which some words are names, over any fast tokenizer of Transformers.

A name becomes one symbol before the text reaches the tokenizer beneath, whatever its spelling and
however many subwords it would have; so no name has an influence on how the rest is split. Decoding
puts the names back.

How spaces beside a name are kept is the tokenizer's `spacing`:

- `before`: a space is implied between a symbol and what it follows, and `<join>` says that there is
  none: `f(x, y)` is `f ( <join> <name_0> , <name_1> )`. Behind whitespace of any other kind nothing
  is implied. The rest is up to the tokenizer beneath.
- `kept`: a symbol stands for a name alone, for texts in which spaces are rare.
- `words`: of a tokenizer of words, between any two of which a space is implied; `<join>` says that
  there is none, and other whitespace has tokens of its own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from tokenizers import AddedToken, Tokenizer
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .grammar import FormulaError
from .names_in_text import NameFinder
from .symbols_in_text import PreparesTexts, Row, RowEncoding
from .text_pieces import JOIN, join_words, spelled
from .tokenization_symbols import (
    AlphaEncoding,
    Features,
    Names,
    SymbolTokenizer,
    check_row_counts,
    name_rows,
    text_rows,
)
from .tokenizer_beneath import (
    OWN_TOKENS,
    AddedTokens,
    NamesInData,
    fast_backend,
    is_made,
    tokenizer_beneath,
)

FEWEST_SYMBOLS = 10
"""A class has at least so many symbols unless its rule says otherwise."""

_OF_ANSWERS = ("allow_absent_symbols", "truncation", "add_special_tokens", "verbose")


class TextTokenizer(PreparesTexts):
    """Tokenizer for texts whose names become symbols; made by `from_texts` or `from_tokenizer`.

    It is the fast tokenizer beneath in everything else: pairs, truncation, special tokens, offsets.
    A text without names has its ids, with what it writes around them. Answers (`text_target`, alone
    or with a text) have an end token always: a decoder's tokenizer writes none behind a text, which
    goes on. `decode` with `names` gives the text back:

    - to the letter with `characters`, `bpe:8000` and byte-level tokenizers (GPT-2, BART); with
      `words` too, but for words that are not in the vocabulary;
    - with SentencePiece and others that put a space before a text (T5, Llama), but for a space at
      its start and, where they do so themselves (T5), for other whitespace, which becomes one space
      or none;
    - as BERT and its like write it (lower case, spaces around signs), with the names spelled as
      they were, and no space before a name that had none.

    Special tokens and others that were added to the tokenizer beneath (`</s>`, `<extra_id_0>`) are
    what they are to it wherever a text has them, with the spaces that it gives to them, and no part
    of them is a name: not in a `MarkedText` either, in which a name that has such a token in it, or
    a part of one and more, is an error. With `split_special_tokens` the special ones are text. A
    space beside a special token is lost with `words`. `<join>` is such a token: a text should not
    have it.

    A batch has `stream_ids` (B, S) beside the usual keys: the symbols of each row in order of first
    occurrence, -1 padded; `batch.names` has the names that they stand for, row by row.

    Names get symbols row by row: one that is a symbol's own name (see `name_symbols`) that symbol,
    the others free ones of their class, in order of first occurrence. A symbol can also be written
    as its token, `<variable_3>`; so it is decoded where no `names` say what it stands for and it
    has no name of its own.

    Args:
        symbols: class -> rule, see `NameRule`.
        symbol_ranges: class -> id ranges [start, stop) of its symbols.
        symbol_names: token -> the name that it stands for wherever that name occurs.
        spacing: "before", "kept" or "words", see the module.
        begins_parts: what the tokenizer beneath writes before what follows a special token of its
            own in a text, as before a text ("▁"), and whether it does so before a space too.
        target_template: what is written around answers, as `tokenizer.json` has it, if that is not
            what is written around texts: of a decoder, the end token; mBART and NLLB name the
            language.
        **kwargs: what `PreTrainedTokenizerFast` takes.

    Raises:
        ValueError: the arguments contradict one another.
    """

    # Encoding

    def _encode(
        self,
        texts: list[str] | None,
        pairs: list[str] | None,
        targets: list[str] | None,
        *,
        names: Sequence[Names] | Names | None,
        padding: bool | str | PaddingStrategy,
        max_length: int | None,
        max_target_length: int | None,
        **kwargs: Any,
    ) -> AlphaEncoding:
        if texts is None:
            with self._around_answers():
                return self._encode_rows(
                    targets, names=names, max_length=max_target_length, **kwargs
                )
        encoding = self._encode_rows(texts, pairs, max_length=max_length, **kwargs)
        if targets is not None:
            encoding["labels"] = self._labels(targets, encoding, max_target_length, kwargs)
        return encoding

    def _encode_rows(
        self,
        texts: Sequence[str] | None,
        pairs: Sequence[str] | None = None,
        *,
        names: Sequence[Names] | Names | None = None,
        allow_absent_symbols: bool = False,
        is_split_into_words: bool = False,
        **kwargs: Any,
    ) -> AlphaEncoding:
        """Put symbols in place of names, let the tokenizer beneath encode, and say what is what."""
        if is_split_into_words:
            raise ValueError("names are found in whole texts: leave out is_split_into_words")
        if not texts:
            raise ValueError("there are no rows to encode")
        check_row_counts(texts, pairs, "text", "text_pair")
        tables = None if names is None else self._tables_of(names, len(texts))
        split = kwargs.get("split_special_tokens")
        rows = self._prepare(texts, pairs, tables, allow_absent_symbols, split_special_tokens=split)
        encoding = super(SymbolTokenizer, self).__call__(
            [row.texts[0] for row in rows],
            None if pairs is None else [row.texts[1] for row in rows],
            **kwargs,
        )
        encoding["stream_ids"] = [self._streams(ids) for ids in encoding["input_ids"]]
        of_parts = [rows[i] for i in encoding.get("overflow_to_sample_mapping", range(len(rows)))]
        parts = encoding.encodings and [  # of a chat's control tokens there are ids only
            RowEncoding(part, row, self.spacing)
            for part, row in zip(encoding.encodings, of_parts, strict=True)
        ]
        if "offset_mapping" in encoding:
            encoding["offset_mapping"] = [part.offsets for part in parts]
        return AlphaEncoding(dict(encoding), parts, names=[row.names for row in of_parts])

    @contextmanager
    def _around_answers(self) -> Iterator[None]:
        """Have special tokens written around texts as around answers."""
        of_texts = self._tokenizer.post_processor
        self._tokenizer.post_processor = self._answers or of_texts
        try:
            yield
        finally:
            self._tokenizer.post_processor = of_texts

    def _labels(
        self,
        targets: Sequence[str],
        encoding: AlphaEncoding,
        max_length: int | None,
        options: Mapping[str, Any],
    ) -> list[list[int]]:
        """The ids of answers to rows that are encoded."""
        if "overflow_to_sample_mapping" in encoding:
            raise ValueError("a part of a text has no answer: leave out return_overflowing_tokens")
        check_row_counts(encoding["input_ids"], targets, "text", "text_target")
        options = {key: options[key] for key in _OF_ANSWERS if key in options}
        with self._around_answers():
            answers = self._encode_rows(
                targets, names=encoding.names, max_length=max_length, **options
            )
        if not options.get("allow_absent_symbols"):
            self._check_present(answers, encoding)
        return answers["input_ids"]

    def _check_present(self, answers: AlphaEncoding, encoding: AlphaEncoding) -> None:
        """Refuse answers with symbols that their texts lack, or truncation has cut off."""
        names = name_rows(answers.names, len(answers["stream_ids"]))
        for row, (symbols, present) in enumerate(
            zip(answers["stream_ids"], encoding["stream_ids"], strict=True)
        ):
            if absent := [index for index in symbols if index not in present]:
                token = self._token_of[absent[0]]
                why = (
                    "truncation has cut off the input: raise max_length, leave the row out,"
                    if token in names[row]
                    else "the input lacks: correct the row, leave it out,"
                )
                raise FormulaError(
                    f"row {row}: the answer has the {self.class_of(absent[0])} "
                    f"{names[row].get(token, token)!r}, which {why} or pass "
                    "allow_absent_symbols=True"
                )

    def _streams(self, ids: list[int]) -> list[int]:
        """The symbols of a row, by first occurrence."""
        symbols = self._token_of
        return list(dict.fromkeys([index for index in ids if index in symbols]))

    def encode_pair(
        self, problem: str, answer: str | None = None, allow_absent_symbols: bool = False
    ) -> Features:
        """Encode one row as plain lists; see `encode_pairs`."""
        answers = None if answer is None else [answer]
        (features,) = self.encode_pairs([problem], answers, allow_absent_symbols)
        return features

    def encode_pairs(
        self,
        problems: Sequence[str],
        answers: Sequence[str] | None = None,
        allow_absent_symbols: bool = False,
        first_row: int = 0,
    ) -> list[Features]:
        """Encode rows as plain lists, with nothing around them: for large data sets.

        The arguments and the errors are those of a call; `first_row` is the number of the first
        row in error messages.

        Returns:
            For each row `input_ids`, `stream_ids` and `labels` (with answers); `pad` makes batches
            of such rows.
        """
        texts = text_rows(problems, "problems") or []
        targets = text_rows(answers, "answers")
        check_row_counts(texts, targets, "problems", "answers")
        rows = self._prepare(texts, first_row=first_row)
        features: list[Features] = [
            {"input_ids": ids, "stream_ids": self._streams(ids)} for ids in self._ids_of(rows)
        ]
        if targets is not None:
            tables = [row.table for row in rows]
            answer_rows = self._prepare(targets, None, tables, allow_absent_symbols, first_row)
            with self._around_answers():
                labels = self._ids_of(answer_rows)
            for row, ids in zip(features, labels, strict=True):
                row["labels"] = ids
        return features

    def _ids_of(self, rows: Sequence[Row]) -> list[list[int]]:
        self.set_truncation_and_padding(
            PaddingStrategy.DO_NOT_PAD, TruncationStrategy.DO_NOT_TRUNCATE, 0, 0, None, None
        )
        self._tokenizer.encode_special_tokens = self.split_special_tokens
        encodings = self._tokenizer.encode_batch_fast([row.texts[0] for row in rows])
        return [encoding.ids for encoding in encodings]

    def tokenize(self, text: str, pair: str | None = None, **kwargs: Any) -> list[str]:
        """The tokens of one text, its names replaced by symbols."""
        kwargs.setdefault("add_special_tokens", False)
        return self.convert_ids_to_tokens(self(text, pair, **kwargs)["input_ids"])

    # Decoding

    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        marks = self._marks() if skip_special_tokens else ()
        dropped = {self._tokenizer.token_to_id(token) for token in marks}
        ids = [int(i) for i in ids if i >= 0 and i not in dropped]
        if outside := [i for i in ids if i >= len(self)]:
            raise ValueError(
                f"id {outside[0]} is outside this tokenizer's vocabulary of {len(self)} tokens: "
                "model and tokenizer have to be extended alike (`extend_symbols`)"
            )
        names = {**self.symbol_names, **(names or {})}
        if self.spacing == "words":
            return join_words(self.convert_ids_to_tokens(ids), names)
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        pieces, end = [], 0
        for match in self._written.finditer(text):
            pieces += [(text[end : match.start()], False), self._spelling(text, match, names)]
            end = match.end()
        return spelled([*pieces, (text[end:], False)])

    def _spelling(self, text: str, match: Any, names: Names) -> tuple[str, bool]:
        """What stands for a symbol in decoded text, and whether that is a name."""
        joined, token = match.group(1), match.group(2)
        if token is None:
            return "", False  # a `<join>` that joins nothing
        if token not in self._symbol_ids:
            return match.group(), False
        before = text[match.start() - 1] if match.start() else " "
        implied = joined is None and self.spacing == "before" and not before.isspace()
        return " " * implied + names.get(token, token), True

    # Making one

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        symbols: Mapping[str, Any],
        tokenizer: str = "words",
        **kwargs: Any,
    ) -> "TextTokenizer":
        """Make a tokenizer from data: vocabulary, classes, and how spaces are kept.

        A class gets `count` symbols by its rule, else as many as a text has names, and ten at
        least.

        Args:
            texts: sources and targets, read twice if they can be, else kept. Texts that know their
                names are `MarkedText`.
            symbols: class -> rule: a regular expression, a list of names, or see `NameRule`.
            tokenizer: "words", "characters", "bpe:8000" (a byte-level BPE of so many tokens), or
                the folder or Hub name of any fast tokenizer.
            **kwargs: what `PreTrainedTokenizerFast` takes.

        Raises:
            ValueError: there are no texts, or no names in them, or an argument is wrong.
        """
        if iter(texts) is texts:
            texts = list(texts)
        if not is_made(tokenizer):
            return cls.from_tokenizer(tokenizer, symbols, texts, **kwargs)
        finder = NameFinder(symbols)
        data_names = NamesInData(finder, texts, AddedTokens(OWN_TOKENS))
        beneath, spacing, special = tokenizer_beneath(tokenizer, data_names)
        return cls._over(beneath, spacing, finder, data_names, {**special, **kwargs})

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        symbols: Mapping[str, Any],
        texts: Iterable[str] | None = None,
        spacing: str | None = None,
        **kwargs: Any,
    ) -> "TextTokenizer":
        """Put symbols on top of a fast tokenizer; its own ids do not change.

        Args:
            tokenizer: a fast tokenizer, or its folder or Hub name.
            symbols: class -> rule, as for `from_texts`.
            texts: data to look at for how many symbols are needed and how spaces are kept.
            spacing: how they are kept, else.
            **kwargs: what `PreTrainedTokenizerFast` takes.

        Raises:
            ValueError: the tokenizer is not a fast one, or an argument is wrong.
        """
        finder = NameFinder(symbols)
        beneath, special = fast_backend(tokenizer)
        data_names = (
            NamesInData(finder, texts, AddedTokens.of(beneath)) if texts is not None else None
        )
        spacing = spacing or ("before" if data_names is None else data_names.spacing)
        return cls._over(beneath, spacing, finder, data_names, {**special, **kwargs})

    @classmethod
    def over_tokens(
        cls, tokenizer: Any, tokens: Mapping[str, Sequence[int]], **kwargs: Any
    ) -> "TextTokenizer":
        """Make tokens of a fast tokenizer symbols, as they are; no id changes, and none is added.

        Texts are split as ever: names of more than one token are no names here. Symbols that are
        added later can be written as their tokens, `<name_5>`.

        Args:
            tokenizer: a fast tokenizer, or its folder or Hub name.
            tokens: class -> ids of its symbols.
            **kwargs: what `PreTrainedTokenizerFast` takes.

        Raises:
            ValueError: the tokenizer is not a fast one, or an id is no token, or is one twice.
        """
        beneath, special = fast_backend(tokenizer)
        counts = Counter(chain.from_iterable(tokens.values()))
        if twice := [index for index, times in counts.items() if times > 1]:
            raise ValueError(f"{beneath.id_to_token(twice[0])!r} is given twice as a symbol")
        return cls(
            tokenizer_object=beneath,
            symbols={name: len(ids) for name, ids in tokens.items()},
            symbol_ranges={name: _merged(ids) for name, ids in tokens.items()},
            spacing="kept",
            **{**special, **kwargs},
        )

    @classmethod
    def _over(
        cls,
        beneath: Tokenizer,
        spacing: str,
        finder: NameFinder,
        data_names: NamesInData | None,
        kwargs: Mapping[str, Any],
    ) -> "TextTokenizer":
        """Put symbols on top of a tokenizer, as many as rules or data ask for."""
        if spacing != "kept" and beneath.token_to_id(JOIN) is None:
            beneath.add_tokens([AddedToken(JOIN, normalized=False)])
        symbols = finder.to_dict()
        tokenizer = cls(tokenizer_object=beneath, symbols=symbols, spacing=spacing, **kwargs)
        tokenizer.finder.functions.update(finder.functions)
        counts = {}
        for name, rule in finder.rules.items():
            most = data_names.most[name] if data_names else 0
            counts[name] = rule.count or max(len(rule.tokens), most, FEWEST_SYMBOLS)
        tokenizer.extend_symbols(counts)
        return tokenizer


def _merged(ids: Iterable[int]) -> list[list[int]]:
    """Ranges [start, stop) of ids, in their order."""
    ranges: list[list[int]] = []
    for index in ids:
        if ranges and ranges[-1][1] == index:
            ranges[-1][1] = index + 1
        else:
            ranges.append([index, index + 1])
    return ranges


TextTokenizer.register_for_auto_class("AutoTokenizer")

__all__ = ["TextTokenizer"]
