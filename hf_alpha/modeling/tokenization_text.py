"""The tokenizer for texts in which some words are names, over any fast tokenizer of Transformers.

A name becomes one symbol before the text reaches the tokenizer beneath, whatever its spelling and
however many subwords it would have; so no name has an influence on how the rest is split. Decoding
puts the names back.

How spaces beside a name that is a whole word are kept is the tokenizer's `spacing`:

- `before`: a space is implied between a symbol and what it follows, and `<join>` says that there is
  none: `f(x, y)` is `f ( <join> <name_0> , <name_1> )`. Behind whitespace of any other kind nothing
  is implied. The rest is up to the tokenizer beneath.
- `kept`: a symbol stands for a name alone, for texts in which spaces are rare.
- `words`: of a tokenizer of words, between any two of which a space is implied; `<join>` says that
  there is none, and other whitespace has tokens of its own.

A name that may stand inside a word is written as with `kept`, if the tokenizer beneath keeps spaces
beside it, or writes none at all. (BERT's and T5's do neither: there `<join>` says the same, and for
BERT's behind the name too.)
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped]
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy

from .batches import words_beside
from .bound_names import BoundName, GluedName
from .chat_names import ROLES
from .chat_templates import limit_templates
from .chats import WritesChats
from .choices import check_choice, check_list
from .grammar import FormulaError, check_unicode
from .name_rules import is_of_language
from .names_in_text import NameFinder
from .saving import code_files
from .spans import Kept, Known, MarkedText, Span, check_marked, keys_in, parts
from .text_pieces import (
    BETWEEN,
    JOIN,
    SPACINGS,
    Place,
    RowEncoding,
    Segment,
    cut_at_names,
    reads_on,
    spaced,
    spell_apart,
    together,
    unjoined,
)
from .tokenization_symbols import (
    AlphaEncoding,
    CutRow,
    Features,
    Marked,
    Names,
    Reading,
    SymbolTokenizer,
    as_ranges,
)
from .tokenizer_beneath import (
    OWN_TOKENS,
    AddedTokens,
    NamesInData,
    PartIds,
    fast_backend,
    is_made,
    keeps_spaces,
    post_processor,
    tokenizer_beneath,
    writes_spaces,
)

limit_templates()
RULED = ("tokenization_text", "tokenization_canonical")
"""Modules beside which are two that have ready-made rules too."""
FEWEST_SYMBOLS = 10
"""A class has at least so many symbols unless its rule says otherwise."""


class TextTokenizer(WritesChats, SymbolTokenizer, PreTrainedTokenizerFast):
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

    Of a chat, rules and lists of names look at what was said alone, see `apply_chat_template`.

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
            own in a text, as before a text ("▁"), whether it does so before a space too, and
            whether it is written for it before a text.
        target_template: what is written around answers, as `tokenizer.json` has it, if that is not
            what is written around texts: of a decoder, the end token; mBART and NLLB name the
            language.
        chat_roles: of the messages in which names are looked for.
        **kwargs: what `PreTrainedTokenizerFast` takes.

    Attributes:
        finder: finds names, by the rule of each class.

    Raises:
        ValueError: the arguments contradict one another.

    Examples:
        >>> rules = {"variable": {"pattern": "[a-z]", "count": 3}}
        >>> of_texts = TextTokenizer.from_texts(["swap x y"], rules)
        >>> batch = of_texts(["swap k m"])
        >>> batch["stream_ids"], of_texts.batch_decode(batch["input_ids"], names=batch.names)
        ([[7, 8]], ['swap k m'])
    """

    model_input_names = ["input_ids", "attention_mask", "stream_ids"]  # noqa: RUF012

    def __init__(
        self,
        *args: Any,
        symbols: Mapping[str, Any] | None = None,
        symbol_ranges: Mapping[str, Sequence[Sequence[int]]] | None = None,
        symbol_names: Mapping[str, str] | None = None,
        spacing: str = "before",
        begins_parts: Sequence[Any] | None = None,
        target_template: Mapping[str, Any] | None = None,
        chat_roles: Sequence[str] = ROLES,
        **kwargs: Any,
    ):
        check_list("chat_roles", chat_roles)
        self.chat_roles = list(chat_roles)
        check_choice("spacing", spacing, SPACINGS)
        self.spacing, self._between = spacing, BETWEEN if spacing == "words" else ""
        self.begins_parts = None if begins_parts is None else tuple(begins_parts)
        self.symbol_names = dict(symbol_names or {})
        ranges = as_ranges(symbol_ranges or {})
        self.symbol_ranges = dict(sorted(ranges.items(), key=lambda item: item[1]))
        # JSON files sort their keys: the order of the classes is that of their first symbols
        order = [name for name in self.symbol_ranges if name in (symbols or {})]
        symbols = symbols or {}
        self.finder = NameFinder({name: symbols[name] for name in (*order, *symbols)})
        if begins_parts is not None:
            kwargs["begins_parts"] = list(begins_parts)
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
            chat_roles=self.chat_roles,
            **kwargs,
        )
        self._rebuild_tables()

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs: Any) -> Any:
        """Leave `tokenizer.json` to the constructor: all of the tokenizer beneath is in there."""
        return kwargs

    @property
    def code_module(self) -> str:
        """The module that is saved with it: with ready-made rules only if it uses one of them."""
        module = type(self).__module__.rpartition(".")[2]
        used = [rule.rule for rule in self.finder.rules.values() if rule.rule]
        if not used or module not in RULED:
            return module
        return f"{module}_languages" if any(map(is_of_language, used)) else f"{module}_ruled"

    def _save_pretrained(
        self, save_directory: Any, file_names: tuple[str, ...], *args: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        if self._auto_class is not None:  # Transformers has written the code of the class's module
            self._save_code(Path(file_names[0]))
        return super()._save_pretrained(save_directory, file_names, *args, **kwargs)

    def _save_code(self, configuration: Path) -> None:
        """Write the code of `code_module`, and name that in the configuration beside it."""
        name, module = type(self).__name__, type(self).__module__.rpartition(".")[2]
        if self.code_module != module:
            for source in code_files(self):
                shutil.copyfile(source, configuration.with_name(source.name))
            text = configuration.read_text(encoding="utf-8")
            text = text.replace(f'"{module}.{name}"', f'"{self.code_module}.{name}"')
            configuration.write_text(text, encoding="utf-8")

    def settings(self) -> list[Any]:
        beneath = json.loads(self._tokenizer.to_str())
        for key in ("truncation", "padding"):  # of the last call
            del beneath[key]
        rules = list(self.finder.to_dict().items())
        answers = [self.init_kwargs["target_template"]] if self._answers is not None else []
        spaces = [self.spacing, *(self.begins_parts or ())]
        return [rules, self.symbol_ranges, self.symbol_names, *spaces, beneath, *answers]

    # From texts to ids

    def _mark(self, texts: tuple[str, ...], reading: Reading) -> Marked:
        kept, asked = self._kept(texts, reading), reading.asked
        known = asked and {
            key: (asked.names[symbol], self._class_at[asked.table[key]])
            for key, symbol in asked.symbols.items()
        }
        spans = [self._names(*pair, known) for pair in zip(texts, kept, strict=True)]
        keys = [keys_in(*pair, known) for pair in zip(texts, spans, strict=True)]
        marks, inside = self._marks() if any(kept) else (), self._added.inside

        def cut(symbols: dict[str, str]) -> list[Any]:
            cuts = []
            for text, names, of_names, own in zip(texts, spans, keys, kept, strict=True):
                tokens = [(i, j, token in marks, token not in inside) for i, j, token in own]
                places: list[Place] = [
                    (start, stop, symbols[key], *self._spaces[kind])
                    for (start, stop, kind, _), key in zip(names, of_names, strict=True)
                ]
                cuts.append(cut_at_names(self.spacing, text, places, tokens, self.begins_parts))
            return cuts

        classes, spellings = _classes(texts, spans, keys)
        words = self._words_beside(texts, spans, known or {}, any(kept))
        return Marked(classes, cut, spellings, words)

    def _words_beside(
        self, texts: tuple[str, ...], spans: Sequence[Sequence[Span]], known: Known, kept: bool
    ) -> set[str]:
        """What texts have beside their names that would be read as one of them in an answer."""
        if self.finder.by_words and not kept and not any(isinstance(t, MarkedText) for t in texts):
            return set()  # all words that are spelled so are names
        spelled = [
            (str(text)[s.start : s.stop], s.symbol_class)
            for text, found in zip(texts, spans, strict=True)
            for s in found
        ]
        names = self._in_use([*spelled, *known.values()])
        words: set[str] = set()
        for text, found in zip(texts if names else (), spans, strict=False):
            segments = list[Segment]()
            for before, span in parts(str(text), found):
                name = "" if span is None else text[span.start : span.stop]
                segments += [(before, None), (str(name), "")]
            places = self.finder.confused(segments, names, self._kept_in)
            words.update(str(text)[start:stop] for start, stop in places)
        return words

    def _kept(self, texts: tuple[str, ...], reading: Reading) -> list[Kept]:
        """Tokens that the tokenizer beneath has itself, which are no names, in texts."""
        for text in texts:
            check_unicode(text)  # the tokenizer beneath would call it no string
            if reading.asked is None:
                self.finder.require_names(text)
        split = reading.options.get("split_special_tokens")
        split = self.split_special_tokens if split is None else split
        return [self._added.find(text, split) for text in texts]

    def _names(self, text: str, kept: Kept, known: Known | None) -> tuple[Span, ...]:
        """The names of a text, those that are written as tokens of symbols included.

        Args:
            kept: tokens of the tokenizer beneath that it has itself, which are no names.
            known: of an answer, the names of the row that it answers.
        """
        classes = None if known is None else dict(reversed(known.values()))
        spans = self.finder.find(text, classes, kept)
        if "<" not in text:
            return spans
        tokens = tuple(
            Span(match.start(), match.end(), self.class_of(self._symbol_ids[match.group()]))
            for match in self._token_pattern.finditer(text)
            if match.group() in self._symbol_ids
        )
        first, second = (spans, tokens) if isinstance(text, MarkedText) else (tokens, spans)
        apart = [s for s in second if all(s.stop <= o.start or o.stop <= s.start for o in first)]
        return tuple(sorted([*first, *apart]))

    def _columns(
        self,
        rows: list[CutRow],
        max_length: int | None,
        are_answers: bool = False,
        is_split_into_words: bool = False,
        **options: Any,
    ) -> AlphaEncoding:
        if is_split_into_words:
            raise ValueError("names are found in whole texts: leave out is_split_into_words")
        texts = zip(*([cut.written for cut in row.pieces] for row in rows), strict=True)
        with self._around(are_answers):
            encoding = super(SymbolTokenizer, self).__call__(
                *map(list, texts), max_length=max_length, **options
            )
        encoding["stream_ids"] = [self._streams(ids) for ids in encoding["input_ids"]]
        of_parts = [rows[i] for i in encoding.get("overflow_to_sample_mapping", range(len(rows)))]
        parts = encoding.encodings and [  # of a chat's control tokens there are ids only
            RowEncoding(part, row.pieces, self._between)
            for part, row in zip(encoding.encodings, of_parts, strict=True)
        ]
        if "offset_mapping" in encoding:
            encoding["offset_mapping"] = [part.offsets for part in parts]
        return AlphaEncoding(dict(encoding), parts, names=[row.names for row in of_parts])

    def _features(self, rows: list[CutRow], are_answers: bool = False) -> list[Features]:
        self.set_truncation_and_padding(
            PaddingStrategy.DO_NOT_PAD, TruncationStrategy.DO_NOT_TRUNCATE, 0, 0, None, None
        )
        self._tokenizer.encode_special_tokens = self.split_special_tokens
        with self._around(are_answers):
            all_ids = self._part_ids.of_texts([row.pieces[0] for row in rows])
        return [{"input_ids": ids, "stream_ids": self._streams(ids)} for ids in all_ids]

    @contextmanager
    def _around(self, answers: bool) -> Iterator[None]:
        """Have special tokens written around texts, or around answers."""
        of_texts = self._tokenizer.post_processor
        if answers and self._answers is not None:
            self._tokenizer.post_processor = self._answers
        try:
            yield
        finally:
            self._tokenizer.post_processor = of_texts

    # From names that are given

    def mark(self, texts: Sequence[str], names: Any) -> list[MarkedText]:
        """Mark the names that are given for texts of a row, and those that rules find in them.

        Args:
            texts: one, or two that belong together.
            names: class -> names, or a list, see `NameFinder.by_class`; or a `MarkedText`, the
                text with all of its names.

        Raises:
            ValueError: there are no such classes, or a name stands in no text.
        """
        if isinstance(names, MarkedText):
            return [names]
        marked = [self.finder.mark(text, names, self._added.find(text)) for text in texts]
        check_marked(chain.from_iterable(self.finder.by_class(names).values()), marked)
        return marked

    # Decoding

    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        if skip_special_tokens:
            dropped = self.silent_ids
            ids = [index for index in ids if index not in dropped]
        return together(self._named(self.pieces(ids), names or {}))

    @property
    def silent_ids(self) -> set[int]:
        """Ids of special tokens, which decoding leaves out."""
        marks = {self._tokenizer.token_to_id(token) for token in self._marks()}
        return marks | self._special_ids - {self.unk_token_id}

    def pieces(self, ids: Sequence[int]) -> list[tuple[str, str | None]]:
        """Cut what ids are as text at its symbols: pieces, and symbols with themselves beside."""
        if self._between:
            return unjoined(self.convert_ids_to_tokens(ids), self._symbol_ids)
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        pieces, end = list[tuple[str, str | None]](), 0
        for match in self._written.finditer(text):
            pieces.append((text[end : match.start()], None))
            joined, token = match.group(1), match.group(2)
            end = match.end()
            if token is None:
                continue  # a `<join>` that joins nothing
            if token not in self._symbol_ids:
                pieces.append((match.group(), None))
                continue
            spaced, _ = self._spaces[self.class_of(self._symbol_ids[token])]
            before = text[match.start() - 1] if match.start() else " "
            if joined is None and spaced and not before.isspace():
                pieces.append((" ", None))
            pieces.append((token, token))
        return [*pieces, (text[end:], None)]

    def segments(
        self, pieces: Sequence[tuple[str, str | None]], spellings: Iterable[str], names: Names
    ) -> list[Segment]:
        """Put pieces of a text together, each as it is spelled, with spaces where these read on."""
        rules, ids = self.finder.rules, self._symbol_ids
        words = {
            token for _, token in pieces if token and rules[self.class_of(ids[token])].finds_words
        }
        words -= {token for token in words if isinstance(names.get(token), GluedName)}
        pairs = zip(spellings, pieces, strict=True)
        return spaced((text, token is not None, token in words) for text, (_, token) in pairs)

    def _named(self, pieces: Sequence[tuple[str, str | None]], names: Names) -> list[Segment]:
        """Put names in place of the symbols of decoded text, and leave no plain word for a name."""
        classes = {t: self.class_of(self._symbol_ids[t]) for _, t in pieces if t is not None}
        written = self.finder.spell(pieces, classes, {**self.symbol_names, **names})
        segments = self.segments(pieces, written, names)
        spellings = [(text, token) for text, (_, token) in zip(written, pieces, strict=True)]
        # A name that has another spelling now left the old one to a word of the answer.
        left = {token for text, token in spellings if token and text != names.get(token, text)}
        named = [(n, token) for token, n in names.items() if token not in left] + spellings
        ids, kinds = self._symbol_ids, self._class_at
        used = self._in_use((n, kinds[ids[t]]) for n, t in named if t in ids and t != n)
        if not used:
            return segments
        beside = words_beside(names)

        def confused(segments: list[Segment], others: Mapping[str, str]) -> list[tuple[int, int]]:
            any_class = next(iter(used.values()))
            more = {other: used.get(word, any_class) for word, other in others.items()}
            return self.finder.confused(segments, used | more, self._kept_in, beside)

        return spell_apart(segments, used.keys() | beside, confused)

    def _in_use(self, names: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Name -> class, by the first of each, but for those that their rule spells anew."""
        readers = {kind: self.finder.reader(kind) for kind in self.finder.rules}
        anew = {
            kind for kind, reader in readers.items()
            if getattr(reader, "spell", None) is not None and not reader.keeps
        }  # fmt: skip
        return {name: kind for name, kind in reversed([*names]) if kind not in anew}

    def _kept_in(self, text: str) -> Kept:
        return self._added.find(text, self.split_special_tokens)

    # Vocabulary

    @property
    def vocab_size(self) -> int:
        return len(self)

    @property
    def symbols_are_words(self) -> bool:
        """Whether symbols are tokens that the tokenizer beneath had before, see `over_tokens`."""
        return not all(map(self._token_pattern.fullmatch, self._symbol_ids))

    def symbol_words(self) -> dict[str, list[str]]:
        """Return what the symbols of each class are as text, without spaces around."""
        words: dict[str, list[str]] = {}
        for index in self.symbol_ids:
            name = self.class_of(index)
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
            shown = " ".join(list(self._symbol_ids)[:5])
            raise ValueError(
                f"symbols of this tokenizer are tokens that it had before ({shown}), so that no "
                "rule can put other names in their place: add symbols by from_tokenizer"
            )
        # classes keep their order
        self._set_rules(NameFinder({name: finder.rules[name] for name in self.finder.rules}))

    def _set_rules(self, finder: NameFinder) -> None:
        self.finder, self.init_kwargs["symbols"] = finder, finder.to_dict()

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
        data_names = None if texts is None else NamesInData(self.finder, texts, self._added)
        for kind, rule in self.finder.rules.items():
            names = rule.tokens if data_names is None else data_names.frequent(kind)
            others = set(self.symbol_names.values())  # of the classes before
            names = [name for name in names if name not in others]
            for number, name in enumerate(names[: self.symbol_classes[kind]]):
                self.symbol_names[f"<{kind}_{number}>"] = name
        self.init_kwargs["symbol_names"] = self.symbol_names
        self._rebuild_tables()

    def forget_names(self) -> None:
        """Take their own names from symbols; what the tokenizer saves has none of them."""
        self.symbol_names = self.init_kwargs["symbol_names"] = {}
        self._rebuild_tables()

    def _new_tokens(self, counts: Mapping[str, int]) -> dict[str, list[str]]:
        classes = self.symbol_classes
        tokens = {
            name: [f"<{name}_{classes.get(name, 0) + i}>" for i in range(count)]
            for name, count in counts.items()
        }
        for token in chain.from_iterable(tokens.values()):
            if self._has(token):
                raise ValueError(
                    f"the token {token} is in the vocabulary already, and no symbol: call the "
                    "class otherwise"
                )
        return tokens

    def _append(self, tokens: list[str]) -> None:
        self._tokenizer.add_tokens([AddedToken(token, normalized=False) for token in tokens])

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        # before the tables are there, special tokens of the constructor are made known
        constructed = hasattr(self, "_token_of")
        if constructed or self._from_file:
            self._refuse_new(new_tokens)
        if constructed and not special_tokens:
            return 0
        count = super()._add_tokens(new_tokens, special_tokens)
        if constructed:
            self._look_beneath()
        return count

    def _has(self, token: str) -> bool:
        return self._tokenizer.token_to_id(token) is not None

    def _rebuild_tables(self) -> None:
        self._symbol_ids = {}
        for name, pairs in self.symbol_ranges.items():
            for number, index in enumerate(i for pair in pairs for i in range(*pair)):
                self._symbol_ids[self._symbol_token(name, number, index)] = index
        if unknown := [token for token in self.symbol_names if token not in self._symbol_ids]:
            raise ValueError(f"`symbol_names` has {unknown[0]!r}, which is no symbol")
        super()._rebuild_tables()
        self.init_kwargs["symbol_ranges"] = self.symbol_ranges
        self._own_names = self._table_of(self.symbol_names)
        self._token_pattern = regex.compile(_symbol_pattern(self.finder.rules))
        self._spaces = self._spaces_of_parts()
        self._written = regex.compile(self._written_pattern())
        self._look_beneath()

    def _look_beneath(self) -> None:
        self._added = AddedTokens.of(self._tokenizer, self._token_of, self.begins_parts)
        self._part_ids = PartIds(self._tokenizer, self._token_of)
        added = self._tokenizer.get_added_tokens_decoder()
        special = {index for index, token in added.items() if token.special}
        self._special_ids = special - self._token_of.keys()  # such as the end of a turn

    def _symbol_token(self, name: str, number: int, index: int) -> str:
        """The token of a symbol: one of its own, or one that the tokenizer beneath had before."""
        own = f"<{name}_{number}>"
        own_index, token = self._tokenizer.token_to_id(own), self._tokenizer.id_to_token(index)
        if token is None or own_index not in (None, index):
            raise ValueError(
                f"`symbol_ranges` {self.symbol_ranges} do not fit the vocabulary, in which "
                f"{own} is {own_index}"
            )
        return token

    def _written_pattern(self) -> str:
        """What names are put in place of in decoded text: group 1 `<join>`, group 2 the symbol."""
        symbol = _symbol_pattern(self.finder.rules)
        if self.spacing != "before":
            return f"()({symbol})"
        # BERT's decoder writes spaces of its own between tokens
        space = " ?" if writes_spaces(self._tokenizer) else ""
        before = f"{space}({JOIN})?{space}"
        if not any(closed for _, closed in self._spaces.values()):
            return f"{before}({symbol})|{space}{JOIN}"
        closing = _symbol_pattern(kind for kind, (_, closed) in self._spaces.items() if closed)
        behind = f"(?:(?<={closing}){space}{JOIN}{space})?"
        return f"{before}({symbol}){behind}|{space}{JOIN}"

    def _spaces_of_parts(self) -> dict[str, tuple[bool, bool]]:
        """Class -> whether spaces before and behind its names are implied."""
        words = {name: (self.spacing == "before", False) for name in self.finder.rules}
        if not self.finder.inside or self.spacing != "before":
            return words
        keeps = keeps_spaces(self._tokenizer)
        both = (not keeps, not keeps and writes_spaces(self._tokenizer))
        return {**words, **dict.fromkeys(self.finder.inside, both)}

    def _marks(self) -> set[str]:
        """Special tokens, which are no text; unknown tokens are left in."""
        tokens = [t for key, t in self.special_tokens_map.items() if key != "unk_token"]
        return {*map(str, tokens), *map(str, self.extra_special_tokens)}

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
        added = AddedTokens.of(beneath, begins_parts=special.get("begins_parts"))
        data_names = NamesInData(finder, texts, added) if texts is not None else None
        if finder.inside:
            keeps = len(finder.inside) == len(finder.rules) and keeps_spaces(beneath)
            spacing = spacing or ("kept" if keeps else "before")
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
        tokenizer._grow(counts)
        return tokenizer


def _classes(
    texts: Sequence[str], spans: Sequence[Sequence[Span]], keys: Sequence[Sequence[str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Key -> class, and key -> spelling of what is bound or glued, in order of first occurrence."""
    classes: dict[str, str] = {}
    names: dict[str, str] = {}
    for given, found, of_found in zip(texts, spans, keys, strict=True):
        text, is_marked = str(given), isinstance(given, MarkedText)  # rules glue no names
        for (start, stop, kind, _), key in zip(found, of_found, strict=True):
            if classes.setdefault(key, kind) != kind:
                raise FormulaError(
                    f"the name {text[start:stop]!r} is of class {classes[key]!r} and of class "
                    f"{kind!r} in one text: a name belongs to one class",
                    start,
                )
            if is_marked and _is_glued(text, start, stop):
                names[key] = GluedName(names.get(key, text[start:stop]), key)
            elif key[0] == "\0" and key not in names:
                names[key] = BoundName(text[start:stop], key)
    return classes, names


def _is_glued(text: str, start: int, stop: int) -> bool:
    """Whether a name and what is beside it read as one word."""
    before, behind = text[max(start - 1, 0) : start], text[stop : stop + 1]
    return reads_on(before, text[start]) or reads_on(text[stop - 1], behind)


def _symbol_pattern(classes: Iterable[str]) -> str:
    return rf"<(?:{'|'.join(map(regex.escape, classes))})_\d+>"


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
