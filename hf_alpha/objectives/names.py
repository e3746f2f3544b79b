"""Names in the rows of objectives: found by a recipe's rules, and kept where a text is cut."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hf_alpha.checkpoints.imported_code import import_functions
from hf_alpha.data.rows import names_of_row
from hf_alpha.modeling.bound_names import key_of
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.modeling.tokenization_symbols import in_row


class Name(NamedTuple):
    """A name in a sequence, or the key of its binding."""

    name: str
    symbol_class: str


def find_names(symbols: Mapping[str, Any]) -> NameFinder | None:
    """Return a finder of names by a recipe's rules; None without rules.

    Raises:
        ValueError: a rule cannot be used, or its function cannot be imported.
    """
    if not symbols:
        return None
    finder = NameFinder(symbols)
    import_functions(finder)
    return finder


def finder_of(tokenizer: Any) -> NameFinder | None:
    """Return the finder of a tokenizer's names; None where there are no symbols.

    Raises:
        ValueError: it needs a function that was not imported: see `hf_alpha.trust`.
    """
    finder: NameFinder | None = getattr(tokenizer, "finder", None)
    if finder is not None:
        finder.require_functions()
    return finder


def name_columns(finder: NameFinder | None) -> list[str]:
    """Return the columns of the data that list names."""
    return [] if finder is None else list(finder.columns.values())


def marked(
    texts: Sequence[str], row: Mapping[str, Any], place: int, finder: NameFinder | None
) -> list[str]:
    """Return the texts of a row with their names marked.

    Args:
        row: lists names in the columns that rules name; it may lack some, as rows do that are part
            of a document whose names they list.
        finder: of the names; None where there are none.

    Raises:
        ValueError: a column holds no list of names, or see `NameFinder.mark`.
    """
    if finder is None:
        return list(texts)
    with in_row(place):
        cells = {column: row[column] or [] for column in finder.columns.values()}
        names = names_of_row(cells, finder.columns, texts, allow_absent=True)
        return [finder.mark(text, names) for text in texts]


def encoded(tokenizer: Any, *texts: list[str] | str, place: str, **options: Any) -> Any:
    """Encode rows of texts with a tokenizer.

    Args:
        texts: of all rows, and their second texts; or those of one row.

    Raises:
        ValueError: the tokenizer refuses a row: it has more names than there are symbols, say.
    """
    try:
        return tokenizer(*texts, **options)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def cut_out(text: str, start: int, stop: int) -> str:
    """Return the characters [start, stop) of a text, with the names that are whole in there."""
    if not isinstance(text, MarkedText):
        return text[start:stop]
    first, last = (bisect_left(text.spans, (place,)) for place in (start, stop))
    spans_inside = [span for span in text.spans[first:last] if span.stop <= stop]
    spans = [(i - start, j - start, *rest) for i, j, *rest in spans_inside]
    return MarkedText(text[start:stop], spans)


def with_names(tokenizer: Any, ids: Iterable[int], names: Mapping[str, str]) -> list[int | Name]:
    """Return ids of a text, with names in place of symbols, if the tokenizer has symbols.

    Args:
        names: symbol token -> name, of the text.
    """
    if not getattr(tokenizer, "symbol_ids", ()):  # names are words of the model, if there are any
        return list(ids)
    names_by_id = {tokenizer.convert_tokens_to_ids(token): name for token, name in names.items()}
    symbols = {
        index: Name(key_of(name), tokenizer.class_of(index)) for index, name in names_by_id.items()
    }
    return [symbols.get(index, index) for index in ids]


def numbered(tokenizer: Any, tokens: Sequence[int | Name]) -> list[int]:
    """Return tokens of a sequence from several texts, with symbols in place of its names.

    Raises:
        ValueError: there are more names than symbols, or one is of two classes.
    """
    classes: dict[str, str] = {}
    for token in tokens:
        if isinstance(token, Name) and classes.setdefault(*token) != token.symbol_class:
            raise ValueError(
                f"the name {token.name!r} is of class {classes[token.name]!r} and of class "
                f"{token.symbol_class!r}: a name belongs to one class"
            )
    table = tokenizer.assign_symbols(classes) if classes else {}
    return [table[token.name] if isinstance(token, Name) else token for token in tokens]
