"""The meaning of propositional logic, as textbooks define it."""

from itertools import product


def value(tokens: list[str], values: dict[str, bool]) -> bool:
    """The textbook's evaluation, which consumes the tokens."""
    token = tokens.pop(0)
    if token in "01":
        return token == "1"
    if token == "!":
        return not value(tokens, values)
    if token not in "&|=^":
        return values[token]
    one, two = value(tokens, values), value(tokens, values)
    return {"&": one and two, "|": one or two, "=": one == two, "^": one != two}[token]


def completions(given: dict[str, bool], free: list[str]) -> list[dict[str, bool]]:
    return [
        {**given, **dict(zip(free, x, strict=True))}
        for x in product((True, False), repeat=len(free))
    ]


def pigeons(holes: int) -> str:
    """Say that so many holes hold one pigeon more, one a hole: false, and hard to refute."""
    at = [[f"p{p}h{h}" for h in range(holes)] for p in range(holes + 1)]
    parts = [["|"] * (holes - 1) + row for row in at]
    for hole in range(holes):
        for one in range(holes + 1):
            parts += [["!", "&", at[one][hole], at[two][hole]] for two in range(one)]
    return " ".join([*["&"] * (len(parts) - 1), *(token for part in parts for token in part)])
