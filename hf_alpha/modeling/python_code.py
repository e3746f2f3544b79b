"""Code of Python in a text: strings, comments, words, and trees that say where it stands."""

import ast
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, repeat
from typing import Any

import regex  # type: ignore[import-untyped]

NAME = r"(?<!\p{XID_Continue})[\p{XID_Start}_]\p{XID_Continue}*"
_TRIPLE = r"(\"\"\"|''')(?:\\.|[^\\])*?(?:\2|\Z)"
_SINGLE = r"([\"'])(?:\\.|(?!\3)[^\\\n])*+(?:\3|\Z)"
_STRING = regex.compile(rf"(?s)(?<!\w)((?i:[rbuft]{{0,2}}))(?:{_TRIPLE}|{_SINGLE})")
_STRING_OR_COMMENT = regex.compile(rf"{_STRING.pattern}|#[^\n]*")
A_NAME = regex.compile(NAME)
_FIELD = r"""(?sx) \{\{ | \{ \s* ((?: [^][(){}'"!:] | != | (?&quoted) | (?&brackets) )+)
    (?(DEFINE) (?P<quoted> (\"{3}|'{3}) .*? \3 | (["']) .*? \4 )
               (?P<brackets> [[({] (?: [^][(){}'"] | (?&quoted) | (?&brackets) )* [])}] ))"""
_FIELDS = {
    True: regex.compile(_FIELD),  # of raw strings
    False: regex.compile(_FIELD.replace("(?sx)", r"(?sx) \\ (?: N\{[^}]*+\} | [^{] ) |")),
}
"""The beginning of a replacement field of an f-string, with its expression; `{{` is none."""
_WORD_OR_NONE = regex.compile(rf"{_STRING_OR_COMMENT.pattern}|(?P<name>{NAME})")
_EXAMPLE = regex.compile(r"(?m)(?:^|\G)([ \t]*)>>>(?: (.*)|)$((?:\n[ \t]*\.\.\.(?: .*|)$)*)")
_FIRST_OF_LINE = regex.compile(r"(?m)(?<=^[ \t]*)")
_LINE = regex.compile(r"(?m)^[ \t]*(?:>>>|\.\.\.) ?(.*)$")
TOLD = regex.compile(
    rf"(?m)(?<!`)(`{{1,2}})(?P<name>{NAME})\1(?!`)|:(?:param|type|arg|keyword)\s+(?:[^\s:]+\s+)?"
    rf"\*{{0,2}}(?P<name>{NAME})\s*:"
)
"""Words of a docstring that are names of its program: `x`, ``x``, :param x:, :param int x:."""


def parsed(text: str, code: str, starts: list[int] | None = None, mode: str = "exec") -> Any:
    """Parse code of a text, and give its nodes the characters `start` and `stop` of the text.

    `ast` counts bytes of UTF-8. Before Python 3.12 it does not know where the expressions of an
    f-string stand: each of them is parsed again.

    Args:
        text: all of it.
        code: a part of it, whose lines begin in it at `starts`; by default, all.
    """
    with warnings.catch_warnings():  # of escapes in strings
        warnings.simplefilter("ignore")
        tree: Any = ast.parse(code, mode=mode)
    edges = [*_line_starts(code), len(code)]
    lines = [code[i:j] for i, j in pairwise(edges)]
    starts, columns = starts or edges, [*map(_columns, lines)]

    def place(line: int, column: int) -> int:
        return starts[line - 1] + columns[line - 1][column]

    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        is_f_string = isinstance(node, ast.JoinedStr)
        if hasattr(node, "lineno"):
            node.start = place(node.lineno, node.col_offset)
            node.stop = place(node.end_lineno, node.end_col_offset)
        if is_f_string and sys.version_info < (3, 12):
            fields = fields_of(text[node.start : node.stop])
            node.values = [expression(text, field, node.start + i) for field, i in fields]
        else:
            nodes += ast.iter_child_nodes(node)
    return tree


def expression(text: str, code: str, start: int) -> Any:
    """Parse an expression that stands in a text at `start`."""
    code = f"({code})"
    return parsed(text, code, [start - 1 + line for line in _line_starts(code)], "eval").body


def examples_in(text: str, start: int, stop: int) -> Iterator[ast.AST]:
    """Yield the statements of a docstring's examples, `>>> f(x)`, that can be parsed."""
    for example in _EXAMPLE.finditer(text, start, stop):
        lines = [match.span(1) for match in _LINE.finditer(text, *example.span())]
        code = "\n".join(text[i:j] for i, j in lines)
        try:
            yield from parsed(text, code, [i for i, _ in lines]).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _line_starts(code: str) -> list[int]:
    return [0, *(match.end() for match in regex.finditer(r"\r\n|\r|\n", code))]


def _columns(line: str) -> Sequence[int]:
    """Return the character that each byte of a line belongs to, and the end."""
    if line.isascii():
        return range(len(line) + 1)
    characters = (repeat(i, len(char.encode())) for i, char in enumerate(line))
    return [*chain.from_iterable(characters), len(line)]


def inside_quotes(text: str, node: Any) -> tuple[int, int] | None:
    """Return start and stop of what is in the quotes of a string, if it is one in one piece."""
    match = _STRING.fullmatch(text, node.start, node.stop)
    if match is None or "f" in match[1].lower():
        return None
    quotes = len(match[2] or match[3])
    return match.end(1) + quotes, match.end() - quotes


def words_in(text: str, start: int = 0, stop: int | None = None) -> Iterator[int]:
    """Yield where words stand that are no part of strings and comments."""
    end = len(text) if stop is None else stop
    while match := _WORD_OR_NONE.search(text, start, end):
        if match.group("name"):
            yield match.start()
        start = match.end()


def fields_of(strings: str) -> Iterator[tuple[str, int]]:
    """Yield the expressions in strings, of those that are f-strings, and where they stand."""
    for string in _STRING.finditer(strings):
        if "f" in string[1].lower():
            for field in _FIELDS["r" in string[1].lower()].finditer(strings, *string.span()):
                if field[1]:
                    yield field[1].rstrip().removesuffix("="), field.start(1)


def code_alone(text: str) -> str:
    """Return a text as long with strings and comments blank, but for the code in them.

    That is in expressions of f-strings, and in what stands as a docstring does: examples, and words
    that it tells.
    """
    return str(_STRING_OR_COMMENT.sub(_blank, text))


def _blank(match: Any) -> str:
    text, (start, stop) = match.string, match.span()
    blank = list(regex.sub(r"[^\n]", " ", text[start:stop]))
    for field, place in fields_of(text[start:stop]):
        blank[place : place + len(field)] = field
    if match[2] and "f" not in match[1].lower() and _FIRST_OF_LINE.match(text, start):
        inside = match.end(2), stop - 3 * text.endswith(match[2], match.end(2), stop)
        spans = [told.span("name") for told in TOLD.finditer(text, *inside)]
        for example in _EXAMPLE.finditer(text, *inside):
            spans += [line.span(1) for line in _LINE.finditer(text, *example.span())]
        for i, j in spans:
            blank[i - start : j - start] = code_alone(text[i:j])
    return "".join(blank)
