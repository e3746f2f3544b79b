"""The vocabulary of a tokenizer of texts: tokens, symbols of each class, and names of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import regex  # type: ignore[import-untyped]
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from .names_in_text import NameFinder, check_list
from .text_pieces import JOIN, SPACINGS
from .tokenization_symbols import SymbolTokenizer, Table, as_ranges, check_counts
from .tokenizer_beneath import AddedTokens, NamesInData, post_processor


class TextVocabulary(SymbolTokenizer, PreTrainedTokenizerFast):
    """What a `TextTokenizer` is made of, which describes the arguments, and how that may change.

    Attributes:
        finder: finds names, by the rule of each class.
        symbol_names: token -> the name that it stands for wherever that name occurs.
        spacing: how spaces beside a name are kept.
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
        **kwargs: Any,
    ):
        if spacing not in SPACINGS:
            raise ValueError(f"spacing is {spacing!r}: choose one of {', '.join(SPACINGS)}")
        self.spacing = spacing
        self.begins_parts = None if begins_parts is None else (begins_parts[0], begins_parts[1])
        self.symbol_names = dict(symbol_names or {})
        ranges = as_ranges(symbol_ranges or {})
        self.symbol_ranges = dict(sorted(ranges.items(), key=lambda item: item[1]))
        # JSON files sort their keys: the order of the classes is that of their first symbols
        order = [name for name in self.symbol_ranges if name in (symbols or {})]
        symbols = symbols or {}
        self.finder = NameFinder({name: symbols[name] for name in (*order, *symbols)})
        self._by_row = any(rule.by_row for rule in self.finder.rules.values())
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
        spaces = [self.spacing, *(self.begins_parts or ())]
        return [rules, self.symbol_ranges, self.symbol_names, *spaces, beneath, *answers]

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
        self._by_row = any(rule.by_row for rule in finder.rules.values())

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
            if others := [t for t in new if self._tokenizer.token_to_id(t) is not None]:
                raise ValueError(
                    f"the token {others[0]} is in the vocabulary already, no symbol of class "
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
        # before the tables are there, special tokens of the constructor are made known
        constructed = hasattr(self, "_symbol_ids")
        if constructed or self._from_file:
            self._refuse_new(new_tokens)
        if constructed and not special_tokens:
            return 0
        count = super()._add_tokens(new_tokens, special_tokens)
        if constructed:
            self._added = AddedTokens.of(self._tokenizer, without=self._token_of)
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
        self._symbol_ids: Table = {}
        for name, pairs in self.symbol_ranges.items():
            for number, index in enumerate(i for pair in pairs for i in range(*pair)):
                self._symbol_ids[self._symbol_token(name, number, index)] = index
        if unknown := [token for token in self.symbol_names if token not in self._symbol_ids]:
            raise ValueError(f"`symbol_names` has {unknown[0]!r}, which is no symbol")
        self._token_of = {index: token for token, index in self._symbol_ids.items()}
        self._own_names = self._table_of(self.symbol_names)
        self._token_pattern = regex.compile(_symbol_pattern(self.finder.rules))
        self._written = regex.compile(self._written_pattern())
        self._added = AddedTokens.of(self._tokenizer, without=self._token_of)

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
        decoder = self._tokenizer.decoder
        # BERT's decoder writes spaces of its own between tokens
        space = " ?" if decoder is None or " " in decoder.decode(["a", "b"]) else ""
        return f"{space}({JOIN})?{space}({symbol})|{space}{JOIN}"

    def _marks(self) -> set[str]:
        """Special tokens, which are no text; unknown tokens are left in."""
        tokens = [t for key, t in self.special_tokens_map.items() if key != "unk_token"]
        return {*map(str, tokens), *map(str, self.extra_special_tokens)}


def _symbol_pattern(classes: Iterable[str]) -> str:
    return rf"<(?:{'|'.join(map(regex.escape, classes))})_\d+>"


__all__ = ["TextVocabulary"]
