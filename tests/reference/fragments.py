"""Parameters of Python that is no whole program, by what each place has before it."""

import regex

HEAD = regex.compile(r"\bdef\s+\w+\s*\(|\blambda\b")
NAME = regex.compile(r"(?<!\w)[^\W\d]\w*")
BEFORE = regex.compile(r"(?:,|\bdef\s+\w+\s*\(|\blambda(?!\w))[\s*]*$")
PAIRS = regex.compile(r"[([{][^][(){}]*+[])}]")


def parameters(code: str) -> list[tuple[int, int]]:
    """Return where names stand behind a head or a comma of parameters, in quadratic time."""
    return [m.span() for m in NAME.finditer(code) if m[0] != "lambda" and _is_one(code, m.start())]


def _is_one(code: str, place: int) -> bool:
    if (before := BEFORE.search(code, 0, place)) is None or _in_head(code, place):
        return False
    return before[0][0] != "," or any(
        _goes_on(code[head.end() : before.start()], head[0] == "lambda")
        for head in HEAD.finditer(code, 0, before.start())
    )


def _in_head(code: str, place: int) -> bool:
    """Whether a name is a function's own, `def f(`."""
    return any(head.start() <= place < head.end() for head in HEAD.finditer(code))


def _goes_on(between: str, is_lambda: bool) -> bool:
    """Whether parameters go on behind a text: what it opens is closed, and nothing ends them."""
    rest = None
    while rest != between:  # lambdas with an end, and pairs of brackets
        rest, between = between, PAIRS.sub("", between)
        between = regex.sub(r"\blambda\b[^][(){}:]*+:", "", between)
    return not regex.search(r"[][(){}]", between) and not (is_lambda and ":" in between)
