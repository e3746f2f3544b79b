"""Names of a text that is no whole program of Python: the beginning of one, or more than one."""

import keyword
from collections.abc import Iterator

import regex  # type: ignore[import-untyped]

from .python_code import A_NAME, NAME, code_alone

_DEFINED = regex.compile(rf"(?|\bclass\s+({NAME})|\bdef\s+({NAME})(?!\s*\(\s*(?:self|cls)\b))")
"""Not methods, which are attributes."""
_BRACKETS = r"(?(DEFINE)(?P<brackets>[[({](?:[^][(){}]++|(?&brackets))*+[])}]))"
_HEAD = regex.compile(r"\bdef\s+\w+\s*\(|\blambda\b")
"""Parameters begin behind it."""
_PARAMETER = regex.compile(rf"\s*\**({NAME})?(?:[^][(){{}},]|(?&brackets))*+,?{_BRACKETS}")
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
_KEYWORD = regex.compile(r"\s*=(?!=)")
_BRACKET = regex.compile(r"[][(){}]")
_LAMBDA_END = regex.compile(r"[][(){}:]")
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
    return [(i, j) for i, j in _words_of(code) if code[i:j] in bound - imported]


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
    spans = _parameter_lists(code)
    return [m.span(1) for span in spans for m in _PARAMETER.finditer(code, *span) if m[1]]


def _parameter_lists(code: str) -> Iterator[tuple[int, int]]:
    closed, end = _closed(code), 0
    for head in _HEAD.finditer(code):
        if head.start() >= end:  # not among parameters
            end = _end(code, head, closed)
            yield head.end(), end


def _closed(code: str) -> dict[int, int]:
    """Return where each bracket that is closed opens -> where the text goes on behind it."""
    opened, closed = list[int](), dict[int, int]()
    for bracket in _BRACKET.finditer(code):
        if bracket[0] in "([{":
            opened.append(bracket.start())
        elif opened:
            closed[opened.pop()] = bracket.end()
    return closed


def _end(code: str, head: regex.Match[str], closed: dict[int, int]) -> int:
    """Return where parameters end: in a text that is no program, perhaps at an open bracket."""
    ends, stop = (_LAMBDA_END if head[0] == "lambda" else _BRACKET), head.end()
    while end := ends.search(code, stop):
        if end.start() not in closed:
            return int(end.start())
        stop = closed[end.start()]
    return len(code)
