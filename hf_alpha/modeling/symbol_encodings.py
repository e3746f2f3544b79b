"""The symbol encodings that there are, by name."""

from .encoding import SymbolEncoding
from .encoding_dual_part import DualPartEncoding
from .encoding_learned import LearnedEncoding
from .encoding_relational import RelationalEncoding
from .encoding_streams import StreamsEncoding

_ENCODINGS: dict[str, type[SymbolEncoding]] = {
    each.name: each
    for each in (LearnedEncoding, DualPartEncoding, StreamsEncoding, RelationalEncoding)
}


def register_encoding(encoding: type[SymbolEncoding]) -> type[SymbolEncoding]:
    """Make an encoding known by its name, as a decorator of its class.

    Raises:
        ValueError: the name is taken by another class.

    Examples:
        >>> @register_encoding
        ... class Nameless(SymbolEncoding):
        ...     name = "nameless"
        ...     rows_per_class = 1  # a symbol is its class, and no more
        >>> AlphaConfig(symbol_encoding="nameless").symbol_encoding
        'nameless'
    """
    registered = _ENCODINGS.get(encoding.name, encoding)
    # The same one again is a module, or a cell of a notebook, that ran anew.
    if (registered.__module__, registered.__qualname__) != (
        encoding.__module__,
        encoding.__qualname__,
    ):
        raise ValueError(f"there is a symbol encoding {encoding.name!r} already: {registered}")
    _ENCODINGS[encoding.name] = encoding
    return encoding


def encoding_class(name: str) -> type[SymbolEncoding]:
    """Returns the encoding of a name.

    Raises:
        ValueError: there is none; the message lists the names.
    """
    if name not in _ENCODINGS:
        raise ValueError(f"symbol_encoding must be one of {', '.join(_ENCODINGS)}; not {name!r}")
    return _ENCODINGS[name]
