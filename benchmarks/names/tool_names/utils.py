"""Which tool answers a request? Asked with tools under four names each, and what that changes."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).with_name("questions.jsonl")
OWN, INVENTED, SWAPPED, CANONICAL = "own", "invented", "swapped", "canonical"
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"

Asked = tuple[str, str, int, int]
"""A question as it was asked once: its id, the kind of names, the tool chosen, the right one."""


def namings(question: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of a question's tools, by kind."""
    own = [tool["name"] for tool in question["tools"]]
    rng = random.Random(question["id"])

    def half() -> str:
        return "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(2))

    return {
        OWN: own,
        INVENTED: [f"{half()}_{half()}" for _ in own],
        SWAPPED: own[1:] + own[:1],
        CANONICAL: [f"tool_{letter}" for letter in "bcdef"[: len(own)]],
    }


def load(**kwargs: Any) -> dict[str, Any]:
    """Return the rows: each question under each kind of names, one after another."""
    from datasets import Dataset

    rows = []
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        for kind, names in namings(question).items():
            said = [tool["description"] for tool in question["tools"]]
            listed = [f"- `{name}`: {does}." for name, does in zip(names, said, strict=True)]
            rows.append(
                {
                    "id": question["id"],
                    "kind": kind,
                    "request": question["request"],
                    "tools": "\n".join(listed),
                    "choices": [f"`{name}`" for name in names],
                    "answer": question["answer"],
                }
            )
    return {"test": Dataset.from_list(rows)}


def process_results(
    doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]
) -> dict[str, Asked]:
    """Return what was asked, for each metric, which gets all of a question's namings."""
    scores = [score for score, _ in results]
    asked: Asked = (doc["id"], doc["kind"], scores.index(max(scores)), doc["answer"])
    return dict.fromkeys((OWN, INVENTED, SWAPPED, CANONICAL, "consistency", "always"), asked)


def accuracy(asked: Sequence[Asked], kind: str) -> float:
    """Return the share of right answers under one kind of names."""
    right = [chosen == answer for _, of, chosen, answer in asked if of == kind]
    return sum(right) / len(right) if right else float("nan")


def own(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names as they are."""
    return accuracy(asked, OWN)


def invented(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names that mean nothing."""
    return accuracy(asked, INVENTED)


def swapped(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names of one another."""
    return accuracy(asked, SWAPPED)


def canonical(asked: Sequence[Asked]) -> float:
    """Return the share of right answers with names by their order: tool_b, tool_c, ...."""
    return accuracy(asked, CANONICAL)


def renamed(asked: Sequence[Asked]) -> Iterable[list[tuple[int, bool]]]:
    """Return the tools chosen and whether they are right, by question, without canonical names."""
    by_question: dict[str, list[tuple[int, bool]]] = {}
    for question, kind, chosen, answer in asked:
        if kind != CANONICAL:
            by_question.setdefault(question, []).append((chosen, chosen == answer))
    return by_question.values()


def consistency(asked: Sequence[Asked]) -> float:
    """Return the share of pairs of namings of a question under which the same tool is chosen."""
    agree = [
        one == other for found in renamed(asked) for (one, _), (other, _) in combinations(found, 2)
    ]
    return sum(agree) / len(agree) if agree else float("nan")


def always(asked: Sequence[Asked]) -> float:
    """Return the share of questions that are right under all namings."""
    right = [all(is_right for _, is_right in found) for found in renamed(asked)]
    return sum(right) / len(right) if right else float("nan")
