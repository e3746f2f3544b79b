"""A check of proofs: which rules, of those that are given, lead from a fact to a goal.

`a1 -> b2 . c3 -> d4 . b2 -> c3 . fact : a1 . goal : c3 .` is answered by `a1 -> b2 ; b2 -> c3`.
`examples/tasks/proofs.py` draws such pairs.
"""


def check(source: str, answer: str, target: str | None = None) -> bool:
    """Return whether an answer's rules are of the source and lead from its fact to its goal.

    Raises:
        ValueError: the source is no problem of this kind.
    """
    match [part.split() for part in source.split(".")]:
        case [*rules, ["fact", ":", first], ["goal", ":", last], []]:
            pass
        case _:
            raise ValueError(f"{source!r} does not end like 'fact : a1 . goal : b2 .'")
    reached = first
    for step in (part.split() for part in answer.split(";")):
        if step not in rules or step[0] != reached:
            return False
        reached = step[-1]
    return reached == last
