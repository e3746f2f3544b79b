"""Names of a text that is no whole program of Python: the beginning of one, or more than one."""

import keyword
import re
from collections.abc import Iterator

import regex  # type: ignore[import-untyped]

from .python_code import A_NAME, NAME, code_alone

_DEFINED = regex.compile(rf"(?|\bclass\s+({NAME})|\bdef\s+({NAME})(?!\s*\(\s*(?:self|cls)\b))")
"""Not methods, which are attributes."""
_PARTS = regex.compile(rf"(?P<head>\bdef\s+\w+\s*\(|\blambda\b)|(?P<name>{NAME})|[^\s*]")
"""What parameters begin behind; names, brackets and signs."""
_TARGET = rf"[(\[]*\*?{NAME}[)\]]*"
_TARGETS = (
    regex.compile(
        rf"(?m)(?:^|;)[ \t]*({_TARGET}(?:[ \t]*,[ \t]*{_TARGET})*+)[ \t]*,?[ \t]*(?::[^=\n]*)?"
        r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
    ),
    regex.compile(r"\bfor\s+([^\n:=]{0,300}?)\s+in\b"),
    regex.compile(rf"\bas\s+({NAME})"),
    regex.compile(rf"({NAME})\s*:="),
)
_KEYWORD = re.compile(r"\s*=(?!=)")  # `regex` looks for the sign in all of the text first
_BRACKET = regex.compile(r"[][(){}]")
_IMPORTS = regex.compile(r"(?m)^[ \t]*(?:from\s.*\simport|import)\s.*$")


def fragment_names(text: str) -> list[tuple[int, int]]:
    """Return the names of a text that is no whole program: the beginning of one, or more than one.

    As far as its words show, it binds what stands behind `def`, `class`, `for` and `as`, before
    `=`, and among parameters. All of one spelling is one name, but for attributes, keywords of
    calls, and what is imported.
    """
    code = code_alone(text)
    imported = {name for line in _IMPORTS.findall(code) for name in A_NAME.findall(line)}
    patterns = (_DEFINED, *_TARGETS)
    bound = {code[i:j] for i, j in _parameters(code)}
    bound.update(
        name for pattern in patterns for match in pattern.finditer(code)
        for name in A_NAME.findall(match[1])
    )  # fmt: skip
    bound -= imported
    return [(i, j) for i, j in _words_of(code) if code[i:j] in bound]


def fragment_words(text: str) -> list[tuple[int, int]]:
    """Return the words of a text that may be names: no attributes and no keywords."""
    return list(_words_of(code_alone(text)))


def _words_of(code: str) -> Iterator[tuple[int, int]]:
    parameters, opened, before = {*_parameters(code)}, 0, 0
    for match in A_NAME.finditer(code):
        name, (start, stop) = match.group(), match.span()
        gap, before = code[before:start], stop
        for bracket in _BRACKET.findall(gap):
            opened = max(0, opened + (1 if bracket in "([{" else -1))
        sign = gap.rstrip()[-1:]
        # In brackets: `a, b = c` assigns.
        is_keyword = opened and sign in ("(", ",") and _KEYWORD.match(code, stop)
        if not (
            sign == "."
            or (is_keyword and (start, stop) not in parameters)
            or keyword.iskeyword(name)
            or name.startswith("__")
        ):
            yield start, stop


def _parameters(code: str) -> list[tuple[int, int]]:
    """Return where parameters stand: in a text that is no program, perhaps of what has no end."""
    around, begins, found = list[str](), False, list[tuple[int, int]]()
    for match in _PARTS.finditer(code):
        part, kind = match.group(), match.lastgroup
        if begins and kind == "name":
            found.append(match.span())
        begins = kind == "head" or (part == "," and around[-1:] in (["def"], ["lambda"]))
        if kind == "head" or part in "([{":
            around.append(part.split()[0])
        elif part in ")]}":
            while around and around.pop() == "lambda":
                pass
        elif part == ":" and around[-1:] == ["lambda"]:
            around.pop()
    return found
