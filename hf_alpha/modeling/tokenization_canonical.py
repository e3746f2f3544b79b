"""A tokenizer that spells names canonically on the way to any model, and back in its answers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from .canonical_names import CanonicalNames, WordsOf
from .choices import check_choice
from .host_words import LETTERS
from .names_in_text import NameFinder
from .tokenization_symbols import CutRow, Names, Reading, Table
from .tokenization_text import TextTokenizer
from .tokenizer_beneath import fast_backend

RENAMINGS = ("first_occurrence", "random")


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

    spells_names = True

    def __init__(
        self,
        *args: Any,
        symbols: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        words: WordsOf = LETTERS,
        kept: Sequence[str] = (),
        symbol_renaming: str = "first_occurrence",
        **kwargs: Any,
    ):
        check_choice("symbol_renaming", symbol_renaming, RENAMINGS)
        rules = symbols or {}
        classes = list(classes or rules)  # JSON files sort the keys of `symbols`
        words = words if isinstance(words, str | Mapping) else list(words)
        self._options: dict[str, Any] = {"words": words, "kept": list(kept)}
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
        words: WordsOf | None = None,
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
            words=names.setting,
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

    def _check_ids(self, ids: Iterable[int]) -> None:
        """Take any id: a model may have more rows than tokens, which the host decodes to nothing.

        There are no symbols by which model and tokenizer could differ.
        """

    def _table_of(self, names: Names) -> Table:
        return {}  # of words, names are all there is to know

    def _row(self, texts: tuple[str, ...], reading: Reading) -> CutRow:
        """Put words in place of the names of a row, or of an answer to one."""
        own = self._kept(texts, reading)
        if reading.asked is not None:
            names = reading.asked.names
            spelled = self.canonical.spell_answer(texts[0], names, own[0], reading.allow_absent)
            cut, table = spelled
            return CutRow([cut], {}, {}, table)
        row = self.canonical.spell_row(texts, own=own)
        if self.symbol_renaming == "random":
            seed = crc32("\0".join(cut.written for cut in row.pieces).encode())
            row = self.canonical.spell_row(texts, seed or 1, own)
        return CutRow(row.pieces, {}, {}, row.table)

    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        text = super()._write(ids, skip_special_tokens, None)
        return self.canonical.back(text, names) if names else text


CanonicalTokenizer.register_for_auto_class("AutoTokenizer")
