"""Where the A-normal forms of anf-relational go wrong first, beyond the operations of its training.

    python benchmarks/first_wrong.py --out first-wrong

Terms are those of benchmarks/beyond.py, and of 16 operations, the most of training. An answer and
the right one are compared statement by statement, with new names numbered, up to the first that
differ: which one it is, what of it is wrong first, and whether it is due later, was there before,
or is no operation of the term at all.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

import measure
from beyond import CARDS, OPERATIONS, POINTS, Point, problems_of
from hf_alpha.answer.base import Search
from hf_alpha.answer.models import load_answerer
from hf_alpha.recipe import RECIPE_FILE, read_recipe

MODEL = "anf-relational"
PARTS = ("let", "new name", "=", "left operand", "operator", "right operand", "end")
"""Of a statement, token by token."""
Statement = list[str]


def statements(form: str, term: str) -> list[Statement]:
    """The statements of a form, with the names that its term lacks numbered."""
    given, numbers = {*term.split(), *PARTS, "&", "|", "^"}, dict[str, str]()
    return [
        [word if word in given else numbers.setdefault(word, f"#{len(numbers)}") for word in words]
        for words in (part.split() for part in form.split(";"))
    ]


def first_wrong(term: str, answer: str, target: str) -> tuple[int, str, str] | None:
    """Number of the first wrong statement, the part that is wrong first, and what it is instead."""
    written, due = statements(answer, term), statements(target, term)
    for number, right in enumerate(due):
        found = written[number] if number < len(written) else []
        if found == right:
            continue
        same = next(i for i in range(7) if found[i : i + 1] != right[i : i + 1])
        part = PARTS[same] if len(right) > 1 and len(found) > 1 else "end"
        operations = [statement[3:] for statement in due]
        instead = "no operation of the term"
        if found[3:] and found[3:] in operations[number + 1 :]:
            instead = "a later one"
        elif found[3:] and found[3:] in operations[:number]:
            instead = "one before"
        return number + 1, part, instead
    return None


def found_at(point: Point, args: argparse.Namespace) -> dict[str, Any]:
    """What goes wrong first in each answer at a point."""
    search = Search(num_beams=1, batch_size=20)
    model = load_answerer(MODEL, str(CARDS / MODEL), torch.device("cpu"), search)
    task = read_recipe(CARDS / MODEL / RECIPE_FILE).configured_task
    rows = problems_of(MODEL, point, task, args)
    problems = dict(enumerate(row["problem"] for row in rows))
    model.extend(task, list(problems.values()))
    model = model.ready(task, [(row["problem"], row["answer"]) for row in rows])
    wrong = []
    for replies in model.answer(task, problems):
        for index, reply in replies.items():
            row = rows[index]
            wrong.append(first_wrong(row["problem"], str(reply.answers[0]), row["answer"]))
    return {"operations": point.value, "terms": len(rows), "wrong": [x for x in wrong if x]}


def most(values: Sequence[str]) -> str:
    """The most frequent values, in %."""
    counted = Counter(values).most_common(3)
    return ", ".join(f"{value} {100 * count / len(values):.0f}" for value, count in counted)


def table(found: Sequence[dict[str, Any]]) -> str:
    """A line for each number of operations."""
    heads = ["operations", "right, %", "first wrong statement, median", "in its, %", "it is, %"]
    lines = []
    for point in found:
        numbers, parts, instead = ([x[i] for x in point["wrong"]] for i in range(3))
        share = 100 * (1 - len(numbers) / point["terms"])
        median = f"{statistics.median_low(numbers)}" if numbers else "-"
        lines.append([point["operations"], f"{share:.1f}", median, most(parts), most(instead)])
    return measure.table(heads, lines, words=heads[3:])


def main() -> None:
    """Ask and print."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("--samples", type=int, default=100, help="terms of a point (100)")
    args = parser.parse_args()
    sizes = [(names, OPERATIONS) for names in (4, 8, 12, 16)]
    points = [Point("operations", str(OPERATIONS), sizes), *POINTS[MODEL]]
    found = [found_at(point, args) for point in points]
    measure.finish(table(found), found, args.out)


if __name__ == "__main__":
    measure.run(main)
