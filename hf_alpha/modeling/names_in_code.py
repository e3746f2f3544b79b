"""Names of code and data, as the library of each field reads them."""

import re
from functools import cache
from hashlib import blake2b
from importlib import import_module
from typing import Any

import regex  # type: ignore[import-untyped]

from .python_code import NAME

_IDENTIFIER = regex.compile(NAME)
_NUMBER = regex.compile(
    r"(?<!\w\.?)(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+"
    r"|(?:\d+(?:_\d+)*+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)(?!\.?\w)"
)
# No letter or digit beside it, of ASCII alone: Chinese has no space before a quote.
_STRING = regex.compile(
    r'(?<![0-9A-Za-z])"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+)"(?![0-9A-Za-z])'
)
_STRING_OR_BRACKET = regex.compile(f"{_STRING.pattern}|[][{{}}]")
_COLON = re.compile(r"\s*:\s*")  # `regex` looks for the sign in all of the text first
Places = list[tuple[int, int]]


def numbers(text: str) -> Places:
    """Return start and stop of literal numbers, `3`, `0.5`, `1e-9`, `0xFF`, without their sign.

    Digits of words (`x1`, `3rd`) and of versions and addresses (`1.2.3`) are none.
    """
    return [match.span() for match in _NUMBER.finditer(text)]


def identifiers(text: str, language: str | None = None) -> Places:
    """Return start and stop of Unicode identifiers: letters of any script, digits and `_`.

    Args:
        language: one of Pygments, such as "javascript": what it takes for keywords and builtins of
            the language, strings, or comments, is no name.

    Raises:
        ImportError: Pygments is not installed.
        ValueError: it does not know the language.
    """
    if language is None:
        return [match.span() for match in _IDENTIFIER.finditer(text)]
    lexer, is_name = _lexer(language)
    return [
        match.span()
        for start, kind, token in lexer.get_tokens_unprocessed(text)
        if is_name(kind)
        for match in _IDENTIFIER.finditer(text, start, start + len(token))
    ]


@cache
def _lexer(language: str) -> tuple[Any, Any]:
    lexers = library("pygments.lexers", "pygments", "identifiers of a language")
    kinds = import_module("pygments.token").Name
    try:
        lexer = lexers.get_lexer_by_name(language)
    except import_module("pygments.util").ClassNotFound:
        raise ValueError(
            f"the language {language!r} of a rule is none that Pygments has: "
            "https://pygments.org/languages lists them"
        ) from None
    return lexer, lambda kind: kind in kinds and kind not in kinds.Builtin


def json_names(text: str) -> Places:
    """Return start and stop of the keys of objects, and of strings that are one of them.

    In a schema the latter are references: `"required": ["city"]`. The text may have JSON in it,
    whole or in part: a quote behind a letter or digit of ASCII begins no string (`5" wide`), and
    one before such ends none.
    """
    strings = [match for match in _STRING.finditer(text) if match[1].strip()]
    keys = {match[1] for match in strings if _COLON.match(text, match.end())}
    return [match.span(1) for match in strings if match[1] in keys]


def json_paths(text: str) -> list[tuple[Any, ...]]:
    """Return what `json_names` finds, each bound by its path: the keys around it, and no indices.

    A string that is spelled like the keys of several paths may be any of them: these are one name.
    So are all keys that are spelled alike where a bracket closes none.
    """
    found, paths = [], dict[str, set[str]]()  # spelling of keys -> their paths
    around = [("", "")]  # what closes each object or array, and its path
    value, path = -1, ""  # where that of the last key begins, and its path
    for match in _STRING_OR_BRACKET.finditer(text):
        sign, key = match[0], match[1]
        if sign in ("{", "["):
            inner = path if match.start() == value else around[-1][1]
            around.append(("}" if sign == "{" else "]", inner))
        elif key is None:
            if around.pop()[0] != sign:
                return [*json_names(text)]
        elif (colon := _COLON.match(text, match.end())) is None:
            found.append((match, ""))
        elif key.strip():
            value, path = colon.end(), _joined(around[-1][1], key)
            paths.setdefault(key, set()).add(path)
            found.append((match, path))
    for match, path in found:
        if not path and len(paths.get(match[1], "")) > 1:
            paths[match[1]] = {""}
    return [
        (*match.span(1), f"{match[1]} {path if path in of_key else min(of_key)}")
        for match, path in found
        if (of_key := paths.get(match[1]))
    ]


def _joined(path: str, key: str) -> str:
    """Return a path by a number, so that deep ones take no longer."""
    return blake2b(f"{path}.{key}".encode(errors="surrogatepass"), digest_size=8).hexdigest()


def json_words(text: str) -> Places:
    """Return what may be a key of another text: strings and identifiers."""
    strings = [match.span(1) for match in _STRING.finditer(text)]
    return strings + [match.span() for match in _IDENTIFIER.finditer(text)]


def library(module: str, package: str, what: str) -> Any:
    """Import a library that is perhaps not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} need {module}: pip install {package} ({error})") from None
