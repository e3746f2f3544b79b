"""The tokenizer: formulas with anybody's names in, token ids and streams out, and back.

The vocabulary is the base tokens (pad 0, start 1, end 2, then the task's), then the symbols. A
sample's names are mapped onto symbols row by row; the mapping travels with the encoding as
`batch.names`, so the tokenizer itself keeps nothing between calls.

Decoding has one spelling for each sequence, and encoding it gives the sequence back. With a
grammar, and for plain strings of symbols (no base tokens), tokens of one character stand side by
side (`&a!b`, `a1b0`), and there are spaces as soon as one is longer (`request 1 grant 0`). With
base tokens but no grammar there are always spaces (`x + y`).
"""

import json
import os
import re
import string
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain, count
from typing import Any, Self

import regex  # type: ignore[import-untyped]
from transformers import PreTrainedTokenizer

from .choices import TIME_LIMIT, refuse, too_slow
from .grammar import FormulaError, Grammar, is_plain_name, unquoted, words
from .tokenization_symbols import (
    AlphaEncoding,
    CutRow,
    Features,
    Marked,
    Names,
    Reading,
    SymbolTokenizer,
    Table,
    as_ranges,
)

_END = 2
_FIXED = (
    "a model knows padding, start and end by the ids 0, 1 and 2, so that special tokens cannot be "
    "changed or added (symbols can: `extend_symbols`)"
)
_AGAIN = "save the tokenizer there again, or take the file from where it came"
_HARMLESS = {"verbose", "split_special_tokens", "stride", "return_token_type_ids"}


class AlphaTokenizer(SymbolTokenizer, PreTrainedTokenizer):
    """Tokenizer for sequences in which some tokens are interchangeable names.

    A batch of formulas has `input_ids` (B, L), `attention_mask` (B, L), `stream_ids` (B, S): each
    row's symbols by first occurrence, -1 padded, and `tree_paths` (B, L): see `Grammar.tree_paths`.

    A call takes formulas in any notation of the grammar, or in `notation` only: "compact", "prefix"
    or "infix". A formula that has its tokens with it, as `Grammar.read` gives them, in an attribute
    `written`, is not read again. Part of a formula is no formula: a row that is longer than
    `max_length` is an error, whatever `truncation` says. Pairs of texts are refused, and other
    options of tokenizers unless they change nothing.

    Args:
        vocab_file: `vocab.json` of a saved tokenizer; only checked against the other arguments.
        base_tokens: the task's tokens that are no symbols, in vocabulary order; none has spaces.
        symbol_classes: class -> number of symbols, for a new tokenizer; their tokens are chosen.
        symbol_tokens: the tokens of all symbols in vocabulary order, if chosen already.
        symbol_ranges: class -> id ranges [start, stop) of its symbols, given with `symbol_tokens`.
        name_patterns: class -> regular expression of the names that belong to it; only looked at
            if there are several classes. A class without a pattern takes what no pattern matches.
            Names in quotes are matched without them.
        grammar: how formulas are written (`Grammar` or its `to_dict`); None for plain sequences,
            which are split at whitespace, or into known tokens and characters.
        pad_token: id 0.
        bos_token: id 1, also the decoder's start.
        eos_token: id 2, after every input and answer.
        **kwargs: what `PreTrainedTokenizer` takes. Without "tree_paths" in `model_input_names`
            there are none, as for models that do not take them.

    Raises:
        ValueError: the arguments contradict one another.

    Examples:
        >>> of_terms = AlphaTokenizer(base_tokens=["f"], symbol_classes={"variable": 3})
        >>> batch = of_terms("f z x")
        >>> batch["input_ids"], batch["stream_ids"]
        ([3, 4, 5, 2], [4, 5])
    """

    vocab_files_names = {"vocab_file": "vocab.json"}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask", "stream_ids", "tree_paths"]  # noqa: RUF012

    def __init__(
        self,
        vocab_file: str | None = None,
        base_tokens: Iterable[str] = (),
        symbol_classes: Mapping[str, int] | None = None,
        symbol_tokens: Iterable[str] = (),
        symbol_ranges: Mapping[str, Sequence[Sequence[int]]] | None = None,
        name_patterns: Mapping[str, str] | None = None,
        grammar: Grammar | dict[str, Any] | None = None,
        pad_token: str = "<pad>",
        bos_token: str = "<s>",
        eos_token: str = "</s>",
        **kwargs: Any,
    ):
        self.grammar = _as_grammar(grammar)
        self.base_tokens = _token_list("base_tokens", base_tokens)
        self.symbol_tokens = _token_list("symbol_tokens", symbol_tokens)
        self.symbol_ranges = as_ranges(symbol_ranges or {})
        # from a file they come as objects, whose text is the token
        special = (getattr(token, "content", token) for token in (pad_token, bos_token, eos_token))
        self._special_tokens = _token_list("pad_token, bos_token, eos_token", special)
        self._rebuild_tables()
        name_patterns = _as_patterns(name_patterns or {})
        if symbol_classes:
            self._grow(symbol_classes)
        # JSON files sort their keys: the order of the classes is that of their first symbols
        self.symbol_ranges = dict(sorted(self.symbol_ranges.items(), key=lambda item: item[1]))
        self.name_patterns = {
            name: name_patterns[name] for name in self.symbol_ranges if name in name_patterns
        }
        unknown = ", ".join(sorted(name_patterns.keys() - self.symbol_ranges.keys()))
        refuse(unknown, f"`name_patterns` has no class {unknown} to match")
        self._check(vocab_file)
        for key in ("is_local", "local_files_only"):  # where it was loaded from is not its data
            kwargs.pop(key, None)
        for key in (*self.SPECIAL_TOKENS_ATTRIBUTES, "extra_special_tokens"):
            refuse(kwargs.get(key), f"`{key}` {kwargs.get(key)!r}: {_FIXED}")
        super().__init__(
            base_tokens=self.base_tokens,
            symbol_tokens=self.symbol_tokens,
            symbol_ranges=self.symbol_ranges,
            name_patterns=self.name_patterns,
            grammar=self.grammar,
            pad_token=pad_token,
            bos_token=bos_token,
            eos_token=eos_token,
            **kwargs,
        )
        self.special_tokens_pattern = "eos"
        if self.grammar is None:
            self.model_input_names = [k for k in self.model_input_names if k != "tree_paths"]

    @staticmethod
    def from_texts(
        texts: Iterable[str],
        symbols: Mapping[str, Any],
        tokenizer: str = "words",
        **kwargs: Any,
    ) -> Any:
        """Warn, and make a `TextTokenizer`: the old name of `TextTokenizer.from_texts`."""
        message = "AlphaTokenizer.from_texts makes a TextTokenizer: call TextTokenizer.from_texts"
        warnings.warn(message, FutureWarning, stacklevel=2)
        # By name, as no formula needs it: a saved model carries what is imported above.
        of_texts = import_module(f"{__package__}.tokenization_text").TextTokenizer
        return of_texts.from_texts(texts, symbols, tokenizer, **kwargs)

    def settings(self) -> list[Any]:
        grammar = self.grammar and self.grammar.to_dict()
        return [self.get_vocab(), self.symbol_ranges, self.name_patterns, grammar]

    # Vocabulary

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    def get_vocab(self) -> dict[str, int]:
        """Token -> id."""
        return {token: index for index, token in enumerate(self._tokens)}

    def __len__(self) -> int:
        return self.vocab_size

    def _new_tokens(self, counts: Mapping[str, int]) -> dict[str, list[str]]:
        """The next free letters, then `p26` and so on."""
        is_name = self.grammar.is_name if self.grammar else bool
        taken, number, tokens = {*self._tokens}, len(self.symbol_tokens), dict[str, list[str]]()
        for kind, wanted in counts.items():
            initial = kind[0] if kind[0] in string.ascii_letters else "s"
            for _ in range(wanted):
                spellings = chain(string.ascii_lowercase, (f"{initial}{n}" for n in count(number)))
                token = next(name for name in spellings if name not in taken and is_name(name))
                tokens.setdefault(kind, []).append(token)
                taken.add(token)
                number += 1
        return tokens

    def _append(self, tokens: list[str]) -> None:
        self.symbol_tokens += tokens
        self._tokens += tokens

    def _rebuild_tables(self) -> None:
        self._tokens = [*self._special_tokens, *self.base_tokens, *self.symbol_tokens]
        # what users may write: special tokens have no spelling
        self._ids = {t: i for i, t in enumerate(self._tokens) if i >= len(self._special_tokens)}
        first = len(self._tokens) - len(self.symbol_tokens)
        self._symbol_ids = {t: i for t, i in self._ids.items() if i >= first}
        self._base = {*self.base_tokens}
        super()._rebuild_tables()

    def _check(self, vocab_file: str | None) -> None:
        first, total = self.num_base_tokens, len(self._tokens)
        twice = sorted(token for token, count in Counter(self._tokens).items() if count > 1)
        pairs = sorted(pair for ranges in self.symbol_ranges.values() for pair in ranges)
        edges = [first, *chain.from_iterable(pairs), total]
        is_name = self.grammar.is_name if self.grammar else bool
        written = [*self.base_tokens, *self.symbol_tokens]
        unwritable = [token for token in written if token.split() != [token]]
        unwritable += [token for token in self.symbol_tokens if not is_name(token)]
        needed = [*self.grammar.operators, *self.grammar.constants] if self.grammar else []
        missing = [token for token in needed if token not in self.base_tokens]
        refuse(missing, f"`base_tokens` lack tokens of the grammar: {' '.join(missing)}")
        refuse(twice, f"tokens occur twice in the vocabulary: {' '.join(twice)}")
        refuse(
            edges[::2] != edges[1::2],
            f"`symbol_ranges` {self.symbol_ranges} do not cover the ids of the symbols, "
            f"{first} to {total - 1}, once each",
        )
        refuse(
            unwritable,
            f"token {next(iter(unwritable), None)!r} could not be written: call it otherwise",
        )
        if vocab_file is not None:
            with open(vocab_file, encoding="utf-8") as file:
                saved = json.load(file)
            refuse(
                saved != self.get_vocab(),
                f"{vocab_file} and tokenizer_config.json beside it disagree",
            )

    # What is fixed

    def __setattr__(self, key: str, value: Any) -> None:
        """Set an attribute, but no special token: those are fixed, and the old value is no change.

        Raises:
            ValueError: a special token would change.
        """
        token = key.removesuffix("_ids").removesuffix("_id")
        if token not in (*self.SPECIAL_TOKENS_ATTRIBUTES, "extra_special_tokens"):
            super().__setattr__(key, value)
        elif getattr(value, "content", value) != getattr(self, key):
            raise ValueError(f"cannot set {key} to {str(value)!r}: {_FIXED}")

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        self._refuse_new(new_tokens)
        # a token that is there stays as it is; at the start, the special ones are made known
        known = self._added_tokens_encoder
        fresh = [t for t in new_tokens if str(t) in self._special_tokens and str(t) not in known]
        return super()._add_tokens(fresh, special_tokens)

    def _has(self, token: str) -> bool:
        return token in self._tokens

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> Self:
        """Load a tokenizer, as every class of Transformers does.

        Raises:
            OSError: there is no such folder or repository, or it lacks files.
            ValueError: its files cannot be used; the message says which and what is wrong.
        """
        folder = os.fspath(pretrained_model_name_or_path)
        try:
            return super().from_pretrained(folder, *args, **kwargs)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise ValueError(f"{folder} holds no tokenizer: {error} ({_AGAIN})") from error

    def _convert_token_to_id(self, token: str) -> int | None:
        return self.get_vocab()[token] if token in self._special_tokens else self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        self._check_ids([index])
        return self._tokens[index]

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Write vocab.json, in the order of the ids."""
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        path = os.path.join(save_directory, prefix + self.vocab_files_names["vocab_file"])
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(self.get_vocab(), indent=2, ensure_ascii=False) + "\n")
        return (path,)

    @classmethod
    def convert_added_tokens(cls, obj: Any, save: bool = False, add_type_field: bool = True) -> Any:
        """Make an object ready for tokenizer_config.json: all of it passes through here."""
        if isinstance(obj, Grammar):
            return obj.to_dict()
        return super().convert_added_tokens(obj, save=save, add_type_field=add_type_field)

    # From formulas to ids

    def _mark(self, texts: tuple[str, ...], reading: Reading) -> Marked:
        refuse(len(texts) > 1, "AlphaTokenizer does not support text_pair")
        asked, allow_absent, options = reading
        text, table = texts[0], {} if asked is None else asked.table
        if asked is not None:
            tokens = self._read_answer(text, table, allow_absent)
        elif self.grammar is not None:
            notation = options.get("notation")
            written = getattr(text, "written", None) or self.grammar.read(text, notation)
            tokens = self.grammar.rewritten([*written])
        elif not (tokens := [token for token, _ in self._split(text, self._ids)]):
            raise FormulaError("the input is empty", 0)
        classes = {}
        for token in [token for token in dict.fromkeys(tokens) if token not in self._base]:
            if (index := self._symbol_ids.get(token)) is not None:
                classes[token] = self._class_at[index]
            elif token not in table:
                classes[token] = self._class_of_name(token, tokens.index(token))
        return Marked(classes, lambda symbols: [[symbols.get(token, token) for token in tokens]])

    def _asked(self, names: Sequence[Names] | Names | None, number: int) -> list[CutRow | None]:
        if names is None:
            return [CutRow([], {}, {}, {})] * number
        return super()._asked(names, number)

    def _features(self, rows: list[CutRow], are_answers: bool = False, end: bool = True) -> Any:
        return [self._feature(row, are_answers, end) for row in rows]

    def _feature(self, row: CutRow, is_answer: bool, end: bool) -> Features:
        (tokens,) = row.pieces
        ids = [self._ids[token] for token in tokens] + [_END] * end
        if is_answer:
            return {"input_ids": ids}
        features = {"input_ids": ids, "stream_ids": list(row.table.values())}
        if self.grammar is not None and "tree_paths" in self.model_input_names:
            features["tree_paths"] = self.grammar.tree_paths(tokens) + [0] * end
        return features

    def _columns(
        self,
        rows: list[CutRow],
        max_length: int | None,
        are_answers: bool = False,
        *,
        notation: str | None = None,
        add_special_tokens: bool = True,
        truncation: bool | str | None = None,
        return_attention_mask: bool | None = None,
        **others: Any,
    ) -> AlphaEncoding:
        refused = [key for key, value in others.items() if value and key not in _HARMLESS]
        refuse(refused, f"AlphaTokenizer does not support {', '.join(refused)}")
        features = self._features(rows, are_answers, add_special_tokens)
        columns = {key: [row[key] for row in features] for key in features[0]}
        if max_length is None and truncation:
            max_length = self.model_max_length
        for row, ids in enumerate(columns["input_ids"]):
            refuse(
                max_length is not None and len(ids) > max_length,
                f"row {row} has {len(ids)} tokens in `{'labels' if are_answers else 'input_ids'}`, "
                f"more than max_length={max_length}: part of a formula is no formula, so leave the "
                "row out or raise the limit",
            )
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self.model_input_names
        if return_attention_mask:
            columns["attention_mask"] = [[1] * len(ids) for ids in columns["input_ids"]]
        return AlphaEncoding(columns, names=[row.names for row in rows])

    def _read_answer(self, answer: str, table: Table, allow_absent: bool) -> list[str]:
        """The tokens of an answer to a row with this table, in which it may have no other names."""
        known: Mapping[str, int] = self._ids
        if not table.items() <= self._symbol_ids.items():
            used = set(table.values())  # a symbol that stands for a name loses its own token
            known = {**{t: i for t, i in self._ids.items() if i not in used}, **table}
        characters = known.keys() >= {*answer}
        if characters and not (len(answer) > 1 and answer in known):
            return [*answer]
        absent = [x for x in answer if x in self._symbol_ids and x not in table]
        if characters and self.grammar is not None and (allow_absent or not absent):
            raise FormulaError(
                f"the answer {answer!r} is a name of its input and can be read character by "
                "character too: write spaces between the characters, or quotes around the name",
                0,
            )
        split = self._split(answer, known)
        for token, start in split:
            if token not in known:
                raise FormulaError(self._unknown(token, start, known), start)
        return [token for token, _ in split]

    def _unknown(self, token: str, start: int, table: Mapping[str, int]) -> str:
        """What is wrong with a token of an answer that is not in the table of its row."""
        names = " ".join(name for name, i in table.items() if i >= self.num_base_tokens)
        place = f"unknown token {token!r} at character {start + 1} of the answer"
        if token in self._ids:
            return f"{place}: its symbol stands for another name of the row (known: {names})"
        return (
            f"{place}: write tokens side by side or, with names of several letters, one space "
            f"between them (base tokens: {' '.join(self.base_tokens)}; names: {names})"
        )

    def _split(self, text: str, table: Mapping[str, int]) -> list[tuple[str, int]]:
        """Tokens and where they start: words if there is whitespace, else the longest known."""
        pieces = [(match.group(), match.start()) for match in re.finditer(r"\S+", text)]
        if self.grammar is not None and '"' in text:
            pieces = [self.grammar.named(word) for word in words(text)]
        if len(pieces) > 1 or (pieces and pieces[0][0] in table):
            return pieces
        longest = max(map(len, table), default=1)
        end = len(text.rstrip())
        start = end - len(text.strip())
        pieces = []
        while start < end:
            lengths = range(min(longest, end - start), 1, -1)
            size = next((n for n in lengths if text[start : start + n] in table), 1)
            pieces.append((text[start : start + size], start))
            start += size
        return pieces

    def _class_of_name(self, name: str, position: int) -> str:
        classes = list(self.symbol_ranges)
        is_name = self.grammar.is_name if self.grammar else is_plain_name
        if not classes or not is_name(name):
            raise FormulaError(
                f"unknown token {name!r}, token {position + 1} of the input: known are "
                f"{' '.join(self.base_tokens)}" + (" and names" if classes else "")
            )
        if len(classes) == 1:
            return classes[0]
        for candidate, pattern in self.name_patterns.items():
            try:
                if regex.fullmatch(pattern, unquoted(name), timeout=TIME_LIMIT):
                    return candidate
            except TimeoutError:
                raise too_slow(f"`name_patterns` of {candidate!r}", pattern, name) from None
        open_classes = [c for c in classes if c not in self.name_patterns]
        if not open_classes:
            raise FormulaError(
                f"name {name!r}, token {position + 1} of the input, belongs to no class: "
                f"the name patterns are {self.name_patterns}"
            )
        return open_classes[0]

    # Decoding

    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        start = len(self._special_tokens) if skip_special_tokens else 0
        tokens = [self._tokens[index] for index in ids if index >= start]
        if names:
            tokens = [names.get(token, token) for token in tokens]
        writable = self._ids if names is None else names.values()
        text = self.convert_tokens_to_string(tokens)
        if len(tokens) > 1:  # side by side they may look like a name of the row
            return " ".join(tokens) if text in writable else text
        if self.grammar is None or len(text) < 2 or not self.grammar.is_name(text):
            return text
        if {*text} <= {*self.base_tokens, *writable}:  # a name that may look like tokens
            return text if text[0] == '"' else f'"{text}"'
        return self.grammar.format(tokens)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """`a1b0`, or with spaces: `request 1 grant 0`; the module says when."""
        plain = self.grammar is None and bool(self.base_tokens)
        compact = not plain and all(len(token) == 1 for token in tokens)
        return ("" if compact else " ").join(tokens)


def _as_grammar(value: Any) -> Grammar | None:
    # by its methods: in a checkpoint folder this file has a copy of the class of its own
    if value is None or hasattr(value, "tree_paths"):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"`grammar` is a {type(value).__name__}: give a Grammar, or None")
    return Grammar.from_dict(value)


def _token_list(name: str, value: Any) -> list[str]:
    tokens: list[Any] = list(value) if isinstance(value, Iterable) else [None]
    others = [token for token in tokens if not (isinstance(token, str) and token)]
    refuse(others, f"`{name}` is {value!r}: give tokens, as strings")
    return tokens


def _as_patterns(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"`name_patterns` is {value!r}: give class -> regular expression")
    for name, pattern in value.items():
        try:
            regex.compile(pattern)
        except (regex.error, TypeError) as error:
            raise ValueError(f"`name_patterns` of {name!r}, {pattern!r}: {error}") from None
    return value


AlphaTokenizer.register_for_auto_class("AutoTokenizer")
