"""Write questions.jsonl from the Berkeley Function-Calling Leaderboard.

    python make_questions.py FOLDER questions.jsonl

FOLDER has live_multiple.jsonl.gz, multiple.jsonl.gz and their -answers.jsonl.gz: the files
BFCL_v4_live_multiple.json, ... of gorilla's bfcl_eval/data, compressed. Taken are 200 questions of
one message with 3 to 5 tools, all described, that name none of these; one for each right tool among
the same tools.
"""

import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILES = "live_multiple", "multiple"
COUNT, LONGEST = 200, 600


def rows_of(file: Path) -> list[Any]:
    """Return the rows of a compressed file."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def questions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the questions, in an order that is always the same."""
    seen = set[tuple[str, ...]]()
    for name in FILES:
        answers = {row["id"]: row for row in rows_of(folder / f"{name}-answers.jsonl.gz")}
        rows = rows_of(folder / f"{name}.jsonl.gz")
        random.Random(0).shuffle(rows)
        for row in rows:
            (right,) = answers[row["id"]]["ground_truth"][0]
            key = (*(tool["name"] for tool in row["function"]), right)
            question = asked(row, right)
            if key not in seen and is_taken(row, question):
                seen.add(key)
                yield question


def asked(row: dict[str, Any], right: str) -> dict[str, Any]:
    """Return a question: its first message, and of each tool the first sentence on it."""
    tools = [
        {"name": tool["name"], "description": tool["description"].split(". ")[0].rstrip(".")}
        for tool in row["function"]
    ]
    return {
        "id": row["id"],
        "request": row["question"][0][0]["content"],
        "tools": tools,
        "answer": [tool["name"] for tool in tools].index(right),
    }


def is_taken(row: dict[str, Any], question: dict[str, Any]) -> bool:
    """Whether a question is short, has one message and 3 to 5 tools, and none is named in prose."""
    names = {tool["name"] for tool in question["tools"]}
    said = [question["request"], *(tool["description"] for tool in question["tools"])]
    return (
        len(row["question"]) == len(row["question"][0]) == 1
        and 3 <= len(names) == len(question["tools"]) <= 5
        and all(said)
        and sum(map(len, said)) <= LONGEST
        and not any(name in text for name in names for text in said)
    )


if __name__ == "__main__":
    found = [*questions(Path(sys.argv[1]))][:COUNT]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
    Path(sys.argv[2]).write_text(lines, encoding="utf-8")
