"""The tokenizer for texts in which some words are names, over any fast tokenizer of Transformers.

A name becomes one symbol before the text reaches the tokenizer beneath, whatever its spelling and
however many subwords it would have; so no name has an influence on how the rest is split. Decoding
puts the names back.

How spaces beside a name are kept is the tokenizer's `spacing`:

- `before`: a symbol stands for a name and the space before it, and `<join>` says that there is
  none: `f(x, y)` is `f ( <join> <name_0> , <name_1> )`. The rest is up to the tokenizer beneath.
- `kept`: a symbol stands for a name alone, for texts in which spaces are rare.
- `words`: of a tokenizer of words, between any two of which a space is implied; `<join>` says that
  there is none, and other whitespace has tokens of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]
from tokenizers import AddedToken, Tokenizer, decoders
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .grammar import FormulaError
from .names_in_text import MarkedText, NameFinder, Span
from .text_pieces import BETWEEN, JOIN, SPACINGS, Piece, Table, join_words, moved, pieces_of
from .tokenization_symbols import (
    AlphaEncoding,
    Names,
    SymbolTokenizer,
    check_counts,
    name_rows,
    text_rows,
)
from .tokenizer_beneath import Seen, fast_backend, tokenizer_beneath

FEWEST_SYMBOLS = 10
"""A class has at least so many symbols unless its rule says otherwise."""

Features = dict[str, list[int]]


class TextTokenizer(SymbolTokenizer, PreTrainedTokenizerFast):
    """Tokenizer for texts whose names become symbols; made by `from_texts` or `from_tokenizer`.

    It is the fast tokenizer beneath in everything else: pairs, truncation, special tokens, offsets.
    A batch has `stream_ids` (B, S) beside the usual keys: the symbols of each row in order of first
    occurrence, -1 padded; `batch.names` has the names that they stand for, row by row.

    Names get symbols row by row: one that is a symbol's own name (see `symbol_names`) that symbol,
    the others free ones of their class, in order of first occurrence. A symbol can also be written
    as its token, `<variable_3>`.

    Args:
        symbols: class -> rule, see `NameRule`.
        symbol_ranges: class -> id ranges [start, stop) of its symbols.
        symbol_names: token -> the name that it stands for wherever that name occurs.
        spacing: "before", "kept" or "words", see the module.
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
        **kwargs: Any,
    ):
        if spacing not in SPACINGS:
            raise ValueError(f"spacing is {spacing!r}: choose one of {', '.join(SPACINGS)}")
        self.spacing = spacing
        self.symbol_names = dict(symbol_names or {})
        ranges = {
            name: [list(pair) for pair in pairs] for name, pairs in (symbol_ranges or {}).items()
        }
        self.symbol_ranges = dict(sorted(ranges.items(), key=lambda item: item[1]))
        # JSON files sort their keys: the order of the classes is that of their first symbols
        order = [name for name in self.symbol_ranges if name in (symbols or {})]
        symbols = symbols or {}
        self.finder = NameFinder({name: symbols[name] for name in (*order, *symbols)})
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

    def extend_symbols(self, counts: Mapping[str, int]) -> list[int]:
        """Add symbols to classes, at the end of the vocabulary: the ids in use never move.

        The model has a method of the same name, which has to be called with the same counts.

        Returns:
            The new ids.

        Raises:
            ValueError: a class is unknown, or a count is negative or beyond a million.
        """
        check_counts(counts)
        for name in counts:
            if name not in self.finder.rules:
                known = ", ".join(map(repr, self.finder.rules))
                raise ValueError(f"no symbol class {name!r}: this tokenizer's classes are {known}")
        first = len(self)
        for name, count in counts.items():
            before = self.symbol_classes.get(name, 0)
            tokens = [f"<{name}_{before + i}>" for i in range(count)]
            if taken := [token for token in tokens if token in self.get_vocab()]:
                raise ValueError(
                    f"the token {taken[0]} is in the vocabulary already, and is no symbol of class "
                    f"{name!r}: call the class otherwise"
                )
            start = len(self)
            self._tokenizer.add_tokens([AddedToken(t, normalized=False) for t in tokens])
            if count:
                self.symbol_ranges.setdefault(name, []).append([start, start + count])
        self.init_kwargs["symbol_ranges"] = self.symbol_ranges
        self._rebuild_tables()
        return list(range(first, len(self)))

    def _rebuild_tables(self) -> None:
        self._tokens: Table = {}
        self._class_of: dict[int, str] = {}
        for name, pairs in self.symbol_ranges.items():
            for number, index in enumerate(i for pair in pairs for i in range(*pair)):
                self._tokens[f"<{name}_{number}>"] = index
                self._class_of[index] = name
        vocabulary = self.get_vocab()
        if wrong := [token for token, i in self._tokens.items() if vocabulary.get(token) != i]:
            raise ValueError(
                f"`symbol_ranges` {self.symbol_ranges} do not fit the vocabulary, in which "
                f"{wrong[0]} is {vocabulary.get(wrong[0])}"
            )
        self._token_of = {index: token for token, index in self._tokens.items()}
        self._own = {**self._tokens, **{n: self._tokens[t] for t, n in self.symbol_names.items()}}
        self._shown = {**{token: token for token in self._tokens}, **self.symbol_names}
        classes = "|".join(regex.escape(name) for name in self.finder.rules)
        self._token_pattern = regex.compile(rf"<(?:{classes})_\d+>")
        joined = regex.escape(JOIN)
        space = " ?" if self._adds_spaces() else ""
        self._written = regex.compile(
            rf"{space}({joined})?{space}(<(?:{classes})_\d+>)|{space}{joined}"
        )
        special = {*self.all_special_ids} - {self.unk_token_id}
        self._special = frozenset(special)

    def _adds_spaces(self) -> bool:
        """Whether the decoder beneath writes spaces around tokens, as that of BERT does."""
        return isinstance(self._tokenizer.decoder, decoders.WordPiece | None)

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
        options = {**kwargs, "allow_absent_symbols": allow_absent_symbols}
        target_length = max_target_length or max_length
        if text is not None:
            encoding = super().__call__(text, text_pair, max_length=max_length, **options)
        else:
            encoding = super().__call__(
                text_target, max_length=target_length, names=names, **options
            )
        if text is not None and text_target is not None:
            encoding["labels"] = self._labels(text, text_target, encoding, target_length, options)
        if padding or return_tensors is not None:
            rows = {
                key: [value] if _single(text, text_target) else value
                for key, value in encoding.items()
            }
            padded = self.pad(
                rows,
                padding=padding,
                max_length=max_length if padding == PaddingStrategy.MAX_LENGTH else None,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
                return_tensors=return_tensors,
            )
            if _single(text, text_target) and return_tensors is None:
                padded.data = {key: column[0] for key, column in padded.data.items()}
            padded.names = encoding.names
            return padded
        return encoding

    def _labels(
        self, text: Any, targets: Any, encoding: AlphaEncoding, length: int | None, options: Any
    ) -> list:
        if isinstance(text, str) != isinstance(targets, str):
            raise ValueError("give `text` and `text_target` both as one string or both as a list")
        if not isinstance(text, str) and len(text) != len(targets):
            raise ValueError(f"{len(text)} rows in `text`, but {len(targets)} in `text_target`")
        kept = {
            k: v
            for k, v in options.items()
            if k in ("allow_absent_symbols", "truncation", "add_special_tokens", "verbose")
        }
        answers = super().__call__(targets, max_length=length, names=encoding.names, **kept)
        return answers["input_ids"]

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
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"{len(texts)} rows in `text`, but {len(pairs)} in `text_pair`")
        known = None if names is None else name_rows(names, len(texts))
        rows = [
            self._prepare(
                row,
                one,
                pairs[row] if pairs else None,
                known[row] if known is not None else None,
                strict=known is not None and not allow_absent_symbols,
            )
            for row, one in enumerate(texts)
        ]
        encoding = super()._encode_plus(
            [row.text for row in rows],
            [row.pair for row in rows] if pairs else None,
            truncation_strategy=truncation_strategy,
            max_length=max_length,
            **kwargs,
        )
        samples = encoding.get("overflow_to_sample_mapping", range(len(rows)))
        is_symbol = self._class_of
        encoding["stream_ids"] = [
            list(dict.fromkeys(i for i in ids if i in is_symbol)) for ids in encoding["input_ids"]
        ]
        if "offset_mapping" in encoding:
            encoding["offset_mapping"] = [
                rows[sample].offsets(found)
                for sample, found in zip(samples, encoding.encodings, strict=True)
            ]
        # Without `encodings`, which know the characters of what the tokenizer beneath got only.
        names_of_rows = [rows[i].names(self._token_of) for i in samples]
        result = AlphaEncoding(dict(encoding), names=names_of_rows)
        if padding_strategy != PaddingStrategy.DO_NOT_PAD or return_tensors is not None:
            result = self.pad(
                result,
                padding=padding_strategy,
                max_length=max_length,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
                return_tensors=return_tensors,
            )
        if single and return_tensors is None and "overflow_to_sample_mapping" not in encoding:
            result.data = {key: column[0] for key, column in result.data.items()}
            result.names = names_of_rows[0]
        return result

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
    ) -> list[Features]:
        """Encode rows as plain lists, with nothing around them: for large data sets.

        The arguments and the errors are those of a call.

        Returns:
            For each row `input_ids`, `stream_ids` and `labels` (with answers); `pad` makes batches
            of such rows.
        """
        batch = self(
            list(problems),
            text_target=None if answers is None else list(answers),
            allow_absent_symbols=allow_absent_symbols,
            return_attention_mask=False,
            verbose=False,
        )
        columns = {k: batch[k] for k in ("input_ids", "stream_ids", "labels") if k in batch}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def tokenize(self, text: str, pair: str | None = None, **kwargs: Any) -> list[str]:
        """The tokens of one text, its names replaced by symbols."""
        kwargs.setdefault("add_special_tokens", False)
        return self.convert_ids_to_tokens(self(text, pair, **kwargs)["input_ids"])

    def find_names(self, text: str, known: Mapping[str, str] | None = None) -> tuple[Span, ...]:
        """Return the names of a text, those written as the tokens of symbols included.

        Args:
            text: the text.
            known: name -> class, of names that are known to be some.
        """
        spans = self.finder.find(text, known)
        if "<" not in text or isinstance(text, MarkedText):
            return spans
        tokens = {
            match.start(): Span(
                match.start(), match.end(), self._class_of[self._tokens[match.group()]]
            )
            for match in self._token_pattern.finditer(text)
            if match.group() in self._tokens
        }
        inside = {i for span in tokens.values() for i in range(span.start, span.stop)}
        return tuple(sorted([*(s for s in spans if s.start not in inside), *tokens.values()]))

    def _prepare(
        self, row: int, text: str, pair: str | None, known: Names | None, strict: bool
    ) -> "_Row":
        """Put symbols in place of the names of a row."""
        try:
            table = {name: self._tokens[token] for token, name in (known or {}).items()}
            classes = {name: self._class_of[index] for name, index in table.items()}
            both = [text] if pair is None else [text, pair]
            found = [self.find_names(each, classes or None) for each in both]
            if strict:
                self._check_known(both, found, table)
            else:
                table = self._assign(both, found, table)
            pieces = [
                pieces_of(self.spacing, each, spans, table, self._token_of)
                for each, spans in zip(both, found, strict=True)
            ]
        except FormulaError as error:
            raise FormulaError(f"row {row}: {error}", error.position) from None
        between = BETWEEN if self.spacing == "words" else ""
        prepared = [between.join(piece.text for piece in each) for each in pieces]
        return _Row(
            prepared[0], prepared[1] if pair is not None else None, pieces, table, len(between)
        )

    def _assign(self, texts: list[str], found: list[tuple[Span, ...]], table: Table) -> Table:
        """Name -> id, in order of first occurrence: a symbol's own name keeps it."""
        classes: dict[str, str] = {}
        for text, spans in zip(texts, found, strict=True):
            for start, stop, kind in spans:
                name = str.__getitem__(text, slice(start, stop))
                if classes.setdefault(name, kind) != kind:
                    raise FormulaError(
                        f"the name {name!r} is of class {classes[name]!r} and of class {kind!r} in "
                        "one text: a name belongs to one class",
                        start,
                    )
        assigned = dict(table)
        for name, kind in classes.items():
            own = self._own.get(name)
            if own is not None and self._class_of[own] == kind:
                assigned.setdefault(name, own)
        used = set(assigned.values())
        free: dict[str, Iterator[int]] = {}
        for name, kind in classes.items():
            if name not in assigned:
                if kind not in free:
                    ids = (i for pair in self.symbol_ranges.get(kind, ()) for i in range(*pair))
                    free[kind] = (i for i in ids if i not in used)
                index = next(free[kind], None)
                if index is None:
                    wanted = sum(other == kind for other in classes.values())
                    count = self.symbol_classes.get(kind, 0)
                    raise FormulaError(
                        f"{wanted} names of class {kind!r}, but the vocabulary has {count} symbols "
                        f"for them: call extend_symbols({{{kind!r}: {wanted - count}}}) on the "
                        "tokenizer and on the model"
                    )
                assigned[name] = index
        return {name: assigned[name] for name in (*table, *classes)}

    @staticmethod
    def _check_known(texts: list[str], found: list[tuple[Span, ...]], table: Table) -> None:
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
        dropped = self._special if skip_special_tokens else frozenset()
        ids = [int(i) for i in ids if i >= 0 and i not in dropped]
        if outside := [i for i in ids if i >= len(self)]:
            raise ValueError(
                f"id {outside[0]} is outside this tokenizer's vocabulary of {len(self)} tokens: "
                "model and tokenizer have to be extended alike (`extend_symbols`)"
            )
        shown = {**self._shown, **(names or {})}
        if self.spacing == "words":
            return join_words([shown.get(t, t) for t in self.convert_ids_to_tokens(ids)])
        text = self._decode(ids, skip_special_tokens=False)
        implied = self.spacing == "before"

        def name(match: Any) -> str:
            joined, token = match.group(1), match.group(2)
            if token is None:
                return ""  # a `<join>` that joins nothing
            space = " " if implied and joined is None and match.start() > 0 else ""
            return space + shown.get(token, token)

        return self._written.sub(name, text)

    # Making one

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        symbols: Mapping[str, Any],
        tokenizer: str = "words",
        **kwargs: Any,
    ) -> "TextTokenizer":
        """Make a tokenizer from data: vocabulary, classes, names, and how spaces are kept.

        A class gets `count` symbols by its rule, else as many as a text has names, and ten at
        least. They are called after the most frequent names.

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
        finder = NameFinder(symbols)
        if iter(texts) is texts:
            texts = list(texts)
        seen = Seen(finder, texts)
        beneath, spacing, special = tokenizer_beneath(tokenizer, seen)
        made = cls._over(beneath, spacing, finder, {**special, **kwargs})
        counts = {
            name: rule.count or max(len(rule.tokens), seen.most[name], FEWEST_SYMBOLS)
            for name, rule in finder.rules.items()
        }
        made._call_symbols(counts, {name: seen.frequent(name) for name in counts})
        return made

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
        seen = Seen(finder, texts) if texts is not None else None
        beneath, special = fast_backend(tokenizer)
        spacing = "before" if seen is None else seen.spacing
        made = cls._over(beneath, spacing, finder, {**special, **kwargs})
        counts, names = {}, {}
        for name, rule in finder.rules.items():
            most = seen.most[name] if seen else 0
            counts[name] = rule.count or max(len(rule.tokens), most, FEWEST_SYMBOLS)
            names[name] = seen.frequent(name) if seen else list(rule.tokens)
        made._call_symbols(counts, names)
        return made

    @classmethod
    def _over(
        cls, beneath: Tokenizer, spacing: str, finder: NameFinder, kwargs: Mapping[str, Any]
    ) -> "TextTokenizer":
        if spacing != "kept" and beneath.token_to_id(JOIN) is None:
            beneath.add_tokens([AddedToken(JOIN, normalized=False)])
        symbols = finder.to_dict()
        made = cls(tokenizer_object=beneath, symbols=symbols, spacing=spacing, **kwargs)
        made.finder.functions.update(finder.functions)
        return made

    def _call_symbols(self, counts: Mapping[str, int], names: Mapping[str, Sequence[str]]) -> None:
        """Add symbols, called by names as far as there are some."""
        self.extend_symbols(counts)
        for kind, called in names.items():
            for number, name in enumerate(called[: counts[kind]]):
                self.symbol_names[f"<{kind}_{number}>"] = name
        self.init_kwargs["symbol_names"] = self.symbol_names
        self._rebuild_tables()


class _Row(NamedTuple):
    """A row on its way to the tokenizer beneath."""

    text: str
    pair: str | None
    pieces: list[list[Piece]]
    table: Table
    gap: int  # characters between pieces

    def names(self, token_of: Mapping[int, str]) -> Names:
        """Symbol token -> name."""
        return {token_of[index]: name for name, index in self.table.items()}

    def offsets(self, encoding: Any) -> list[tuple[int, int]]:
        """Where in the texts as they were given the tokens stand."""
        starts = []
        for pieces in self.pieces:
            start, found = 0, []
            for piece in pieces:
                found.append(start)
                start += len(piece.text) + self.gap
            starts.append(found)
        pairs = zip(encoding.sequence_ids, encoding.offsets, strict=True)
        return [
            (0, 0) if which is None else moved(self.pieces[which], starts[which], *span)
            for which, span in pairs
        ]


def _single(text: Any, text_target: Any) -> bool:
    return isinstance(text if text is not None else text_target, str)


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


TextTokenizer.register_for_auto_class("AutoTokenizer")

__all__ = ["TextTokenizer"]
