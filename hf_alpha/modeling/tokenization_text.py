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

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .grammar import FormulaError, check_unicode
from .names_in_text import Kept, MarkedText, NameFinder, Span, check_list
from .text_pieces import (
    BETWEEN,
    JOIN,
    SPACINGS,
    Piece,
    Table,
    join_words,
    moved,
    pieces_of,
    spelled,
)
from .tokenization_symbols import (
    AlphaEncoding,
    Names,
    SymbolTokenizer,
    as_ranges,
    check_counts,
    name_rows,
    text_rows,
)
from .tokenizer_beneath import (
    OWN_TOKENS,
    AddedTokens,
    Seen,
    fast_backend,
    is_made,
    post_processor,
    tokenizer_beneath,
)

FEWEST_SYMBOLS = 10
"""A class has at least so many symbols unless its rule says otherwise."""

Features = dict[str, list[int]]


class TextTokenizer(SymbolTokenizer, PreTrainedTokenizerFast):
    """Tokenizer for texts whose names become symbols; made by `from_texts` or `from_tokenizer`.

    It is the fast tokenizer beneath in everything else: pairs, truncation, special tokens, offsets.
    A text without names has its ids, and an end token behind them. `decode` with `names` gives the
    text back:

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
        target_template: what is written around answers, as `tokenizer.json` has it, if that is not
            what is written around texts: mBART and NLLB name the language.
        **kwargs: what `PreTrainedTokenizerFast` takes.

    Raises:
        ValueError: the arguments contradict one another.
    """

    model_input_names = ["input_ids", "attention_mask", "stream_ids"]  # noqa: RUF012

    def __init__(
        self,
        *args: Any,
        symbols: Mapping[str, Any] | None = None,
        symbol_ranges: Mapping[str, Sequence[Sequence[int]]] | None = None,
        symbol_names: Mapping[str, str] | None = None,
        spacing: str = "before",
        target_template: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        if spacing not in SPACINGS:
            raise ValueError(f"spacing is {spacing!r}: choose one of {', '.join(SPACINGS)}")
        self.spacing = spacing
        self.symbol_names = dict(symbol_names or {})
        ranges = as_ranges(symbol_ranges or {})
        self.symbol_ranges = dict(sorted(ranges.items(), key=lambda item: item[1]))
        # JSON files sort their keys: the order of the classes is that of their first symbols
        order = [name for name in self.symbol_ranges if name in (symbols or {})]
        symbols = symbols or {}
        self.finder = NameFinder({name: symbols[name] for name in (*order, *symbols)})
        self._by_row = any(rule.by_row for rule in self.finder.rules.values())
        self._answers = None
        if target_template is not None:
            self._answers = post_processor(target_template)
            kwargs["target_template"] = dict(target_template)
        self._from_file = bool(ranges) and kwargs.get("tokenizer_file") is not None
        for key in ("is_local", "local_files_only"):  # where it was loaded from is not its data
            kwargs.pop(key, None)
        super().__init__(
            *args,
            symbols=self.finder.to_dict(),
            symbol_ranges=self.symbol_ranges,
            symbol_names=self.symbol_names,
            spacing=spacing,
            **kwargs,
        )
        self._rebuild_tables()

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs: Any) -> Any:
        """Leave `tokenizer.json` to the constructor: all of the tokenizer beneath is in there."""
        return kwargs

    def settings(self) -> list[Any]:
        """Return all that ids depend on besides the code, as plain data."""
        beneath = json.loads(self._tokenizer.to_str())
        for key in ("truncation", "padding"):  # of the last call
            del beneath[key]
        rules = list(self.finder.to_dict().items())
        answers = [self.init_kwargs["target_template"]] if self._answers is not None else []
        return [rules, self.symbol_ranges, self.symbol_names, self.spacing, beneath, *answers]

    # Vocabulary

    @property
    def num_base_tokens(self) -> int:
        """Number of tokens that are no symbols, special tokens included."""
        return len(self) - len(self.symbol_ids)

    @property
    def symbol_ids(self) -> list[int]:
        """The ids of all symbols, class by class."""
        return [i for pairs in self.symbol_ranges.values() for pair in pairs for i in range(*pair)]

    @property
    def vocab_size(self) -> int:
        """Number of tokens, symbols and special tokens included."""
        return len(self)

    @property
    def symbols_are_words(self) -> bool:
        """Whether symbols are tokens that the tokenizer beneath had before, see `over_tokens`."""
        return not all(map(self._token_pattern.fullmatch, self._tokens))

    def symbol_words(self) -> dict[str, list[str]]:
        """Return what the symbols of each class are as text, without spaces around."""
        words: dict[str, list[str]] = {}
        for index, name in self._class_of.items():
            word = self._tokenizer.decode([index], skip_special_tokens=False).strip()
            if word not in words.setdefault(name, []):
                words[name].append(word)
        return words

    def use_rules(self, symbols: Mapping[str, Any]) -> None:
        """Find names by these rules from now on; no id changes.

        Args:
            symbols: class -> rule, as for `from_texts`; the classes are those that there are.

        Raises:
            ValueError: the classes are others, or symbols are tokens of the tokenizer beneath: then
                no name can be put in their place.
        """
        finder = NameFinder(symbols)
        if finder.rules.keys() != self.finder.rules.keys():
            ours, theirs = ", ".join(self.finder.rules), ", ".join(finder.rules)
            raise ValueError(
                f"the rules are for the classes {theirs}, but the tokenizer has symbols of the "
                f"classes {ours}: name the same classes in both (hf-alpha convert --symbols "
                f"{','.join(f'{name}=32' for name in finder.rules)})"
            )
        if self.symbols_are_words:
            shown = " ".join(list(self._tokens)[:5])
            raise ValueError(
                f"symbols of this tokenizer are tokens that it had before ({shown}), so that no "
                "rule can put other names in their place: add symbols by from_tokenizer"
            )
        rules = {name: finder.rules[name] for name in self.finder.rules}  # classes keep their order
        self.finder = NameFinder(rules)
        self.init_kwargs["symbols"] = self.finder.to_dict()
        self._by_row = any(rule.by_row for rule in rules.values())

    def name_symbols(self, texts: Iterable[str] | None = None) -> None:
        """Give symbols names of their own, if they have none: such a name is one symbol always.

        Only models that learn a vector for each symbol need that (`config.learns_names`): the names
        are saved with the tokenizer, and decoding writes them where no other `names` are given.
        Nothing changes if there are some already: vectors may have been trained with them.

        Args:
            texts: data whose most frequent names these are, in classes whose rule lists none.

        Raises:
            ValueError: the texts are one string.
        """
        if texts is not None:
            check_list("texts", texts)
        if self.symbol_names:
            return
        seen = None if texts is None else Seen(self.finder, texts, self._added)
        for kind, rule in self.finder.rules.items():
            called = rule.tokens if seen is None else seen.frequent(kind)
            taken = set(self.symbol_names.values())
            free = [name for name in called if name not in taken]
            for number, name in enumerate(free[: self.symbol_classes[kind]]):
                self.symbol_names[f"<{kind}_{number}>"] = name
        self.init_kwargs["symbol_names"] = self.symbol_names
        self._rebuild_tables()

    def forget_names(self) -> None:
        """Take their own names from symbols; what the tokenizer saves has none of them."""
        self.symbol_names = self.init_kwargs["symbol_names"] = {}
        self._rebuild_tables()

    def extend_symbols(self, counts: Mapping[str, int]) -> list[int]:
        """Add symbols to classes, at the end of the vocabulary: the ids in use never move.

        New ids go to the classes in their own order, whatever that of `counts`. The model has a
        method of the same name, which has to be called with the same counts.

        Returns:
            The new ids.

        Raises:
            ValueError: a class is unknown, or a count is negative or beyond a million.
        """
        check_counts(counts, self.finder.rules)
        classes = self.symbol_classes
        tokens = {
            name: [f"<{name}_{classes.get(name, 0) + i}>" for i in range(counts[name])]
            for name in self.finder.rules
            if counts.get(name)
        }
        for name, new in tokens.items():
            if taken := [t for t in new if self._tokenizer.token_to_id(t) is not None]:
                raise ValueError(
                    f"the token {taken[0]} is in the vocabulary already, and is no symbol of class "
                    f"{name!r}: call the class otherwise"
                )
        ids: list[int] = []
        for name, new in tokens.items():
            self._tokenizer.add_tokens([AddedToken(t, normalized=False) for t in new])
            start = self._tokenizer.token_to_id(new[0])
            self.symbol_ranges.setdefault(name, []).append([start, start + len(new)])
            ids += range(start, start + len(new))
        self.init_kwargs["symbol_ranges"] = self.symbol_ranges
        self._rebuild_tables()
        return ids

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Make tokens of the vocabulary special.

        Raises:
            ValueError: a token is not in the vocabulary; nothing is changed then.
        """
        for value in special_tokens_dict.values():
            self._refuse_new(value if isinstance(value, list | tuple) else [value])
        return super().add_special_tokens(dict(special_tokens_dict), replace_extra_special_tokens)

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        made = hasattr(self, "_tokens")  # before, special tokens of the constructor are made known
        if made or self._from_file:
            self._refuse_new(new_tokens)
        if made and not special_tokens:
            return 0
        count = super()._add_tokens(new_tokens, special_tokens)
        if made:
            self._added = AddedTokens.of(self._tokenizer, without=self._class_of)
        return count

    def _refuse_new(self, tokens: Iterable[Any]) -> None:
        for token in map(str, tokens):
            if self._tokenizer.token_to_id(token) is None:
                raise ValueError(
                    f"cannot add token {token!r}: a model with symbols takes no other new tokens. "
                    "Add symbols by `extend_symbols`, and tokens to the tokenizer beneath, before "
                    "from_tokenizer puts symbols on top of it"
                )

    def _rebuild_tables(self) -> None:
        self._tokens: Table = {}
        self._class_of: dict[int, str] = {}
        for name, pairs in self.symbol_ranges.items():
            for number, index in enumerate(i for pair in pairs for i in range(*pair)):
                self._tokens[self._symbol_token(name, number, index)] = index
                self._class_of[index] = name
        if unknown := [token for token in self.symbol_names if token not in self._tokens]:
            raise ValueError(f"`symbol_names` has {unknown[0]!r}, which is no symbol")
        self._token_of = {index: token for token, index in self._tokens.items()}
        self._named = {name: self._tokens[token] for token, name in self.symbol_names.items()}
        self._token_pattern = regex.compile(_symbol_pattern(self.finder.rules))
        self._written = regex.compile(self._written_pattern())
        self._added = AddedTokens.of(self._tokenizer, without=self._class_of)

    def _symbol_token(self, name: str, number: int, index: int) -> str:
        """The token of a symbol: one of its own, or one that the tokenizer beneath had before."""
        own = f"<{name}_{number}>"
        known, token = self._tokenizer.token_to_id(own), self._tokenizer.id_to_token(index)
        if token is None or (known is not None and known != index):
            raise ValueError(
                f"`symbol_ranges` {self.symbol_ranges} do not fit the vocabulary, in which "
                f"{own} is {known}"
            )
        return token

    def _written_pattern(self) -> str:
        """What names are put in place of in decoded text: group 1 `<join>`, group 2 the symbol."""
        symbol = _symbol_pattern(self.finder.rules)
        if self.spacing != "before":
            return f"()({symbol})"
        decoder = self._tokenizer.decoder
        # BERT's decoder writes spaces of its own between tokens
        space = " ?" if decoder is None or " " in decoder.decode(["a", "b"]) else ""
        return f"{space}({JOIN})?{space}({symbol})|{space}{JOIN}"

    def _marks(self) -> set[str]:
        """Special tokens, which are no text; unknown tokens are left in."""
        tokens = [t for key, t in self.special_tokens_map.items() if key != "unk_token"]
        return {*map(str, tokens), *map(str, self.extra_special_tokens)}

    # Encoding

    def __call__(
        self,
        text: str | Sequence[str] | None = None,
        text_pair: str | Sequence[str] | None = None,
        text_target: str | Sequence[str] | None = None,
        *,
        names: Sequence[Names] | Names | None = None,
        allow_absent_symbols: bool = False,
        padding: bool | str | PaddingStrategy = False,
        max_length: int | None = None,
        max_target_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        **kwargs: Any,
    ) -> AlphaEncoding:
        """Encode texts, answers, or texts with their answers.

        Args:
            text: texts; one that knows its names is a `MarkedText`.
            text_pair: second texts, whose names are those of the first.
            text_target: the answers; with `text` they give `labels` (B, M) in the names of their
                row, alone they give `input_ids`.
            names: for `text_target` alone, the `names` of the encoding that it answers.
            allow_absent_symbols: take answers with names that their input lacks. No model but a
                `learned` one can give such an answer, so that they are an error otherwise. (Of
                `text_target` without `text` and `names` nothing is known.)
            padding: as in any tokenizer; labels are always padded on the right, with -100.
            max_length: as in any tokenizer.
            max_target_length: the same for answers; `max_length` if not given.
            pad_to_multiple_of: as in any tokenizer.
            padding_side: as in any tokenizer.
            return_tensors: as in any tokenizer.
            **kwargs: as in any tokenizer: `truncation`, `return_offsets_mapping` and so on.

        Raises:
            FormulaError: a row has more names than there are symbols, or its answer has a name
                that it lacks.
            ValueError: rows and answers do not match, or there are none.
        """
        if text is None and text_target is None:
            raise ValueError("give `text` or `text_target`")
        if text is not None and names is not None:
            raise ValueError("`names` belong to `text_target` alone: `text` brings its own")
        if None not in (text, text_target) and isinstance(text, str) != isinstance(
            text_target, str
        ):
            raise ValueError("give `text` and `text_target` both as one string or both as a list")
        single = isinstance(text if text is not None else text_target, str)
        if single:
            text, text_pair, text_target = (
                [value] if isinstance(value, str) else value
                for value in (text, text_pair, text_target)
            )
        options = {**kwargs, "allow_absent_symbols": allow_absent_symbols}
        target_length = max_target_length or max_length
        if text is None:
            with self._around_answers():
                encoding = super().__call__(
                    text_target, max_length=target_length, names=names, **options
                )
        else:
            encoding = super().__call__(text, text_pair, max_length=max_length, **options)
            if text_target is not None:
                encoding["labels"] = self._labels(text_target, encoding, target_length, options)
        if padding or return_tensors is not None:
            encoding = self.pad(
                encoding,
                padding=padding,
                max_length=max_length if padding == PaddingStrategy.MAX_LENGTH else None,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
                return_attention_mask=kwargs.get("return_attention_mask"),
                return_tensors=return_tensors,
            )
        return _unbatched(encoding, return_tensors) if single else encoding

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
        self, targets: Any, encoding: AlphaEncoding, length: int | None, options: Any
    ) -> list[list[int]]:
        """The ids of answers to rows that are encoded."""
        if "overflow_to_sample_mapping" in encoding:
            raise ValueError("a part of a text has no answer: leave out return_overflowing_tokens")
        if len(targets) != len(encoding["input_ids"]):
            raise ValueError(
                f"{len(encoding['input_ids'])} rows in `text`, but {len(targets)} in `text_target`"
            )
        kept = {
            key: options[key]
            for key in ("allow_absent_symbols", "truncation", "add_special_tokens", "verbose")
            if key in options
        }
        with self._around_answers():
            answers = super().__call__(targets, max_length=length, names=encoding.names, **kept)
        if not options["allow_absent_symbols"]:
            self._check_present(answers, encoding)
        return answers["input_ids"]

    def _check_present(self, answers: AlphaEncoding, encoding: AlphaEncoding) -> None:
        """Refuse answers with symbols that their texts lack, or truncation has cut off."""
        names = name_rows(answers.names, len(answers["stream_ids"]))
        for row, (wanted, present) in enumerate(
            zip(answers["stream_ids"], encoding["stream_ids"], strict=True)
        ):
            if lost := [i for i in wanted if i not in present]:
                token = self._token_of[lost[0]]
                why = (
                    "truncation has cut off the input: raise max_length, leave the row out,"
                    if token in names[row]
                    else "the input lacks: correct the row, leave it out,"
                )
                raise FormulaError(
                    f"row {row}: the answer has the {self._class_of[lost[0]]} "
                    f"{names[row].get(token, token)!r}, which {why} or pass "
                    "allow_absent_symbols=True"
                )

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        *,
        names: Sequence[Names] | Names | None = None,
        allow_absent_symbols: bool = False,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        **kwargs: Any,
    ) -> AlphaEncoding:
        """Put symbols in place of names, let the tokenizer beneath encode, and say what is what."""
        if is_split_into_words:
            raise ValueError("names are found in whole texts: leave out is_split_into_words")
        single = isinstance(text, str)
        texts, pairs = text_rows(text, "text") or [], text_rows(text_pair, "text_pair")
        if not texts:
            raise ValueError("there are no rows to encode")
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"{len(texts)} rows in `text`, but {len(pairs)} in `text_pair`")
        known = None
        if names is not None:
            known = [self._table(row, n) for row, n in enumerate(name_rows(names, len(texts)))]
        split = kwargs.get("split_special_tokens")
        rows = self._prepared(texts, pairs, known, allow_absent_symbols, split=split)
        encoding = super()._encode_plus(
            [row.prepared[0] for row in rows],
            None if pairs is None else [row.prepared[1] for row in rows],
            truncation_strategy=truncation_strategy,
            max_length=max_length,
            **kwargs,
        )
        encoding["stream_ids"] = [self._streams(ids) for ids in encoding["input_ids"]]
        samples = encoding.get("overflow_to_sample_mapping", range(len(rows)))
        if "offset_mapping" in encoding:
            encoding["offset_mapping"] = [
                rows[sample].offsets(found, self.spacing)
                for sample, found in zip(samples, encoding.encodings, strict=True)
            ]
        names = [rows[i].names() for i in samples]
        result = AlphaEncoding(dict(encoding), names=names, beneath=encoding.encodings)
        if padding_strategy != PaddingStrategy.DO_NOT_PAD or return_tensors is not None:
            result = self.pad(
                result,
                padding=padding_strategy,
                max_length=max_length,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
                return_attention_mask=kwargs.get("return_attention_mask"),
                return_tensors=return_tensors,
            )
        return _unbatched(result, return_tensors) if single else result

    def _streams(self, ids: list[int]) -> list[int]:
        """The symbols of a row, by first occurrence."""
        is_symbol = self._class_of
        return list(dict.fromkeys([i for i in ids if i in is_symbol]))

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = super()._pad(encoded_inputs, *args, **kwargs)
        if "offset_mapping" in outputs:
            offsets = list(outputs["offset_mapping"])
            filling = [(0, 0)] * (len(outputs["input_ids"]) - len(offsets))
            left = (kwargs.get("padding_side") or self.padding_side) == "left"
            outputs["offset_mapping"] = filling + offsets if left else offsets + filling
        return outputs

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
        if targets is not None and len(targets) != len(texts):
            raise ValueError(f"{len(texts)} rows in `problems`, but {len(targets)} in `answers`")
        rows = self._prepared(texts, None, None, False, first_row)
        encoded = self._ids_of(rows)
        features: list[Features] = [
            {"input_ids": ids, "stream_ids": self._streams(ids)} for ids in encoded
        ]
        if targets is not None:
            known = [row.table for row in rows]
            prepared = self._prepared(targets, None, known, allow_absent_symbols, first_row)
            with self._around_answers():
                labels = self._ids_of(prepared)
            for row, ids in zip(features, labels, strict=True):
                row["labels"] = ids
        return features

    def _ids_of(self, rows: Sequence["_Row"]) -> list[list[int]]:
        self.set_truncation_and_padding(
            PaddingStrategy.DO_NOT_PAD, TruncationStrategy.DO_NOT_TRUNCATE, 0, 0, None, None
        )
        self._tokenizer.encode_special_tokens = self.split_special_tokens
        encodings = self._tokenizer.encode_batch_fast([row.prepared[0] for row in rows])
        return [encoding.ids for encoding in encodings]

    def tokenize(self, text: str, pair: str | None = None, **kwargs: Any) -> list[str]:
        """The tokens of one text, its names replaced by symbols."""
        kwargs.setdefault("add_special_tokens", False)
        return self.convert_ids_to_tokens(self(text, pair, **kwargs)["input_ids"])

    def find_names(
        self,
        text: str,
        known: Mapping[str, str] | None = None,
        split_special_tokens: bool | None = None,
    ) -> tuple[Span, ...]:
        """Return the names of a text, those written as the tokens of symbols included.

        Args:
            text: the text.
            known: name -> class, of names that are known to be some.
            split_special_tokens: special tokens are text like any other; by default the
                tokenizer's attribute.

        Raises:
            ValueError: see `NameFinder.find`.
        """
        return self._names(text, known, self._kept(text, split_special_tokens))

    def _kept(self, text: str, split: bool | None) -> list[tuple[int, int, str]]:
        """The tokens of the tokenizer beneath that a text has itself: start, stop, token."""
        return self._added.find(text, self.split_special_tokens if split is None else split)

    def _names(self, text: str, known: Mapping[str, str] | None, kept: Kept) -> tuple[Span, ...]:
        spans = self.finder.find(text, known, kept)
        if "<" not in text:
            return spans
        tokens = tuple(
            Span(match.start(), match.end(), self._class_of[self._tokens[match.group()]])
            for match in self._token_pattern.finditer(text)
            if match.group() in self._tokens
        )
        first, second = (spans, tokens) if isinstance(text, MarkedText) else (tokens, spans)
        apart = [s for s in second if all(s.stop <= o.start or o.stop <= s.start for o in first)]
        return tuple(sorted([*first, *apart]))

    def _prepared(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        known: Sequence[Table] | None,
        allow_absent_symbols: bool,
        first_row: int = 0,
        split: bool | None = None,
    ) -> list["_Row"]:
        """Put symbols in place of the names of all rows, some of which may be known."""
        rows = []
        strict = known is not None and not allow_absent_symbols
        for row, text in enumerate(texts):
            both = (text,) if pairs is None else (text, pairs[row])
            try:
                table = None if known is None else known[row]
                rows.append(self._prepare(both, table, strict, split))
            except FormulaError as error:
                raise FormulaError(f"row {first_row + row}: {error}", error.position) from None
            except ValueError as error:
                raise ValueError(f"row {first_row + row}: {error}") from None
        return rows

    def _table(self, row: int, names: Names) -> Table:
        if unknown := [token for token in names if token not in self._tokens]:
            raise ValueError(f"row {row}: `names` has {unknown[0]!r}, which is no symbol")
        return {name: self._tokens[token] for token, name in names.items()}

    def _prepare(
        self, texts: tuple[str, ...], known: Table | None, strict: bool, split: bool | None
    ) -> "_Row":
        """Put symbols in place of the names of a row; `known` are those of the row it answers."""
        for text in texts:
            check_unicode(text)  # the tokenizer beneath would call it no string
        table = known or {}
        classes = {name: self._class_of[index] for name, index in table.items()}
        if known is None and self._by_row:
            for text in texts:
                self.finder.require_names(text)
        kept = [self._kept(text, split) for text in texts]
        found = [
            self._names(text, None if known is None else classes, tokens)
            for text, tokens in zip(texts, kept, strict=True)
        ]
        if strict:
            self._check_known(texts, found, table)
        else:
            table = self._assign(texts, found, table)
        symbols = {name: self._token_of[index] for name, index in table.items()}
        marks = self._marks() if any(kept) else ()
        pieces = [
            pieces_of(
                self.spacing, text, spans, symbols, [(i, j, t in marks) for i, j, t in tokens]
            )
            for text, spans, tokens in zip(texts, found, kept, strict=True)
        ]
        between = BETWEEN if self.spacing == "words" else ""
        prepared = [between.join([piece[0] for piece in each]) for each in pieces]
        return _Row(prepared, pieces, table, symbols)

    def _assign(
        self, texts: Sequence[str], found: Sequence[tuple[Span, ...]], table: Table
    ) -> Table:
        """The symbols of the names of a row; `table` are those of the row that it answers."""
        classes: dict[str, str] = {}
        for text, spans in zip(texts, found, strict=True):
            plain = str(text)
            for start, stop, kind in spans:
                name = plain[start:stop]
                if classes.setdefault(name, kind) != kind:
                    raise FormulaError(
                        f"the name {name!r} is of class {classes[name]!r} and of class {kind!r} in "
                        "one text: a name belongs to one class",
                        start,
                    )
        return self.number_names(classes, table)

    def number_names(self, classes: Mapping[str, str], known: Table | None = None) -> Table:
        """Return the symbols that names get in a row: name -> id, first those that are known.

        Args:
            classes: name -> class, in order of first occurrence.
            known: name -> id, of names that have their symbols already.

        Raises:
            FormulaError: a class has more names than symbols.
        """
        assigned = dict(known or {})
        used = set(assigned.values())
        for own in (self._tokens, self._named):
            for name, kind in classes.items():
                index = own.get(name)
                if index is None or index in used or name in assigned:
                    continue
                if self._class_of[index] == kind:
                    assigned[name] = index
                    used.add(index)
        for kind in self.finder.rules:
            if new := [n for n, k in classes.items() if k == kind and n not in assigned]:
                assigned.update(zip(new, self._free(kind, len(new), used), strict=True))
        return {name: assigned[name] for name in (*(known or ()), *classes)}

    def _free(self, kind: str, wanted: int, used: set[int]) -> list[int]:
        """The first free symbols of a class."""
        ids = (i for pair in self.symbol_ranges.get(kind, ()) for i in range(*pair))
        free = list(islice((i for i in ids if i not in used), wanted))
        if short := wanted - len(free):
            count = self.symbol_classes.get(kind, 0)
            raise FormulaError(
                f"{count + short} names of class {kind!r}, but the vocabulary has {count} symbols "
                f"for them: set `count` in its rule before the tokenizer is made, or call "
                f"extend_symbols({{{kind!r}: {short}}}) on the tokenizer and on the model"
            )
        return free

    @staticmethod
    def _check_known(texts: Sequence[str], found: Sequence[tuple[Span, ...]], table: Table) -> None:
        for text, spans in zip(texts, found, strict=True):
            for start, stop, kind in spans:
                if (name := str(text)[start:stop]) not in table:
                    raise FormulaError(
                        f"the answer {_short(text)!r} has the {kind} {name!r}, which the input "
                        "lacks, so that no model but a `learned` one can give it: correct the row, "
                        "leave it out, or pass allow_absent_symbols=True",
                        start,
                    )

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
        shown = {**self.symbol_names, **(names or {})}
        if self.spacing == "words":
            return join_words(self.convert_ids_to_tokens(ids), shown)
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        pieces, at = [], 0
        for match in self._written.finditer(text):
            pieces += [(text[at : match.start()], False), self._spelling(text, match, shown)]
            at = match.end()
        return spelled([*pieces, (text[at:], False)])

    def _spelling(self, text: str, match: Any, shown: Names) -> tuple[str, bool]:
        """What stands for a symbol in decoded text, and whether that is a name."""
        joined, token = match.group(1), match.group(2)
        if token is None:
            return "", False  # a `<join>` that joins nothing
        if token not in self._tokens:
            return match.group(), False
        before = text[match.start() - 1] if match.start() else " "
        implied = joined is None and self.spacing == "before" and not before.isspace()
        return " " * implied + shown.get(token, token), True

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
        seen = Seen(finder, texts, AddedTokens(OWN_TOKENS))
        beneath, spacing, special = tokenizer_beneath(tokenizer, seen)
        return cls._over(beneath, spacing, finder, seen, {**special, **kwargs})

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        symbols: Mapping[str, Any],
        texts: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> "TextTokenizer":
        """Put symbols on top of a fast tokenizer; its own ids do not change.

        Args:
            tokenizer: a fast tokenizer, or its folder or Hub name.
            symbols: class -> rule, as for `from_texts`.
            texts: data to look at for how many symbols are needed and how spaces are kept.
            **kwargs: what `PreTrainedTokenizerFast` takes.

        Raises:
            ValueError: the tokenizer is not a fast one, or an argument is wrong.
        """
        finder = NameFinder(symbols)
        beneath, special = fast_backend(tokenizer)
        seen = Seen(finder, texts, AddedTokens.of(beneath)) if texts is not None else None
        spacing = "before" if seen is None else seen.spacing
        return cls._over(beneath, spacing, finder, seen, {**special, **kwargs})

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
        ids = [i for some in tokens.values() for i in some]
        if twice := [i for i, times in Counter(ids).items() if times > 1]:
            raise ValueError(f"{beneath.id_to_token(twice[0])!r} is given twice as a symbol")
        return cls(
            tokenizer_object=beneath,
            symbols={name: len(some) for name, some in tokens.items()},
            symbol_ranges={name: _merged(some) for name, some in tokens.items()},
            spacing="kept",
            **{**special, **kwargs},
        )

    @classmethod
    def _over(
        cls,
        beneath: Tokenizer,
        spacing: str,
        finder: NameFinder,
        seen: Seen | None,
        kwargs: Mapping[str, Any],
    ) -> "TextTokenizer":
        """Put symbols on top of a tokenizer, as many as rules or data ask for."""
        if spacing != "kept" and beneath.token_to_id(JOIN) is None:
            beneath.add_tokens([AddedToken(JOIN, normalized=False)])
        symbols = finder.to_dict()
        made = cls(tokenizer_object=beneath, symbols=symbols, spacing=spacing, **kwargs)
        made.finder.functions.update(finder.functions)
        counts = {}
        for name, rule in finder.rules.items():
            most = seen.most[name] if seen else 0
            counts[name] = rule.count or max(len(rule.tokens), most, FEWEST_SYMBOLS)
        made.extend_symbols(counts)
        return made


class _Row(NamedTuple):
    """A row on its way to the tokenizer beneath."""

    prepared: list[str]  # its text, and its second text if there is one, with symbols
    pieces: list[list[Piece]]  # which these are made of
    table: Table
    symbols: dict[str, str]  # name -> token

    def names(self) -> Names:
        """Symbol token -> name."""
        return {token: name for name, token in self.symbols.items()}

    def offsets(self, encoding: Any, spacing: str) -> list[tuple[int, int]]:
        """Where in the texts as they were given the tokens stand."""
        gap = len(BETWEEN) if spacing == "words" else 0
        starts = [
            [0, *accumulate(len(written) + gap for written, *_ in each)][: len(each)]
            for each in self.pieces
        ]
        pairs = zip(encoding.sequence_ids, encoding.offsets, strict=True)
        return [
            (0, 0) if which is None else moved(self.pieces[which], starts[which], *span)
            for which, span in pairs
        ]


def _merged(ids: Iterable[int]) -> list[list[int]]:
    """Ranges [start, stop) of ids, in their order."""
    ranges: list[list[int]] = []
    for i in ids:
        if ranges and ranges[-1][1] == i:
            ranges[-1][1] = i + 1
        else:
            ranges.append([i, i + 1])
    return ranges


def _symbol_pattern(classes: Iterable[str]) -> str:
    return rf"<(?:{'|'.join(map(regex.escape, classes))})_\d+>"


def _unbatched(encoding: AlphaEncoding, return_tensors: Any) -> AlphaEncoding:
    """The only row of a batch, unless it is in tensors or in several parts."""
    if return_tensors is None and "overflow_to_sample_mapping" not in encoding:
        encoding.data = {key: column[0] for key, column in encoding.data.items()}
        encoding.names = encoding.names[0] if isinstance(encoding.names, list) else None
    return encoding


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


TextTokenizer.register_for_auto_class("AutoTokenizer")

__all__ = ["TextTokenizer"]
