"""Where parameters stand in a text that is no program of Python, by one pattern that looks again.

A bracket that nothing closes ends them, and is looked for from each `def` before it.
"""

import regex

BRACKETS = r"(?(DEFINE)(?P<brackets>[[({](?:[^][(){}]++|(?&brackets))*+[])}]))"
PARAMETERS = regex.compile(
    rf"(?|\bdef\s+\w+\s*\(((?:[^][(){{}}]++|(?&brackets))*+)"
    rf"|\blambda\b((?:[^][(){{}}:]++|(?&brackets))*+)){BRACKETS}"
)


def parameter_lists(code: str) -> list[tuple[int, int]]:
    return [match.span(1) for match in PARAMETERS.finditer(code)]
