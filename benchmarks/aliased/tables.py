"""Tables of what models answer under several namings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import measure
from aliased.questions import INVENTED, OWN, SWAPPED, WORDS

ALWAYS, ALL, SAME_TEXT = "always", "all", "sent alike"
Answers = Mapping[str, Mapping[str, Any]]
"""Question -> condition -> (right, answer)."""


def p_value(more: int, fewer: int) -> float:
    """Return how likely pairs that differ are at least as uneven, if neither side is better."""
    tried = more + fewer
    tail = sum(comb(tried, k) for k in range(min(more, fewer) + 1)) / 2**tried
    return min(1.0, 2 * tail)


def against(rows: Sequence[Mapping[str, Any]], one: str, other: str) -> tuple[int, int]:
    """Return how many questions are right under one naming alone, and under the other one alone."""
    pairs = Counter((row[one][0], row[other][0]) for row in rows)
    return pairs[True, False], pairs[False, True]


def signs(pairs: tuple[int, int]) -> str:
    """Write a sign test of questions that one side has right alone, and the other side alone."""
    p = p_value(*pairs)
    return f"{pairs[0]} : {pairs[1]}, {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def answered(rows: Answers, conditions: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the questions that were asked under all of these namings."""
    return [row for row in rows.values() if all(each in row for each in conditions)]


def share(rows: Sequence[Mapping[str, Any]], condition: str) -> float:
    """Return right answers in per cent."""
    return 100 * sum(row[condition][0] for row in rows) / len(rows)


def turns(
    rows: Sequence[Mapping[str, Any]], conditions: Sequence[str] = (OWN, INVENTED, SWAPPED)
) -> int:
    """Count questions that are right under one of some namings, and wrong under another."""
    return sum(len({row[each][0] for each in conditions}) > 1 for row in rows)


def is_always_right(row: Mapping[str, Any]) -> bool:
    """Whether a question is right as it is, with invented and with swapped names."""
    return all(row[each][0] for each in (OWN, INVENTED, SWAPPED))


def beyond_always(rows: Sequence[Mapping[str, Any]], word: str) -> tuple[int, int]:
    """Return how many questions are right in canonical spelling alone, and in all names alone."""
    pairs = Counter((row[word][0], is_always_right(row)) for row in rows)
    return pairs[True, False], pairs[False, True]


def main_table(task: str, word: str, found: Mapping[str, Answers]) -> tuple[str, dict[str, Any]]:
    """Return the table of a task, by model and of all models together, and its counts."""
    conditions, lines, data = (OWN, INVENTED, SWAPPED, word), [], {}
    if len(found) > 1:
        together = {(model, key): row for model, rows in found.items() for key, row in rows.items()}
        found = {**found, ALL: together}  # type: ignore[dict-item]
    for model, all_rows in found.items():
        if not (rows := answered(all_rows, conditions)):
            continue
        pairs = ((SWAPPED, OWN), (word, OWN), (word, SWAPPED))
        alike = sum(row[SAME_TEXT] for row in rows)
        cells = [f"{share(rows, each):.1f}" for each in conditions]
        cells += [
            f"{100 * turns(rows) / len(rows):.0f}",
            *(signs(against(rows, *pair)) for pair in pairs),
        ]
        lines.append([model, f"{len(rows)}", *cells, f"{alike}"])
        data[model] = {
            "questions": len(rows),
            "right": {each: sum(row[each][0] for row in rows) for each in conditions},
            ALWAYS: sum(is_always_right(row) for row in rows),
            "right under one and wrong under another": turns(rows),
            "signs": {f"{a} : {b}": against(rows, a, b) for a, b in pairs}
            | {f"{word} : {ALWAYS}": beyond_always(rows, word)},
            SAME_TEXT: alike,
        }
    columns = [task, "questions", OWN, INVENTED, SWAPPED, f"canonical (`{word}`)", "hangs on names"]
    columns += ["swapped : own", "canonical : own", "canonical : swapped", SAME_TEXT]
    return (measure.table(columns, lines) if lines else ""), data


def leaderboard(data: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Return one table of all tasks: models by what they get right whatever names are.

    Args:
        data: the counts of all tasks, as `drawn` returns them.
        words: task -> those that stand for canonical spelling in its tables.
    """
    lines = []
    for task, counts in data.items():
        word, rows = words[task], []
        for model, found in counts["models"].items():
            of = 100 / found["questions"]
            own, canonical = (of * found["right"][each] for each in (OWN, word))
            cells = [f"{own:.1f}", f"{of * found[ALWAYS]:.1f}", f"{canonical:.1f}"]
            cells += [signs(found["signs"][f"{word} : {other}"]) for other in (OWN, ALWAYS)]
            if model != ALL:
                rows.append((canonical, [task, model, f"{found['questions']}", *cells]))
        lines += [line for _, line in sorted(rows, key=lambda row: -row[0])]
    columns = ["task", "model", "questions", OWN, ALWAYS, "canonical", "canonical : own"]
    columns.append("canonical : always")
    return measure.table(columns, lines, ["model"])


def words_table(task: str, usual: str, found: Mapping[str, Answers]) -> tuple[str, dict[str, Any]]:
    """Return the table of words for names, by model and of all together, and its counts."""
    lines, data = [], {}
    together: dict[str, list[Mapping[str, Any]]] = {}
    for model, all_rows in found.items():
        for word in WORDS:
            if rows := answered(all_rows, (OWN, word)):
                cells = [f"{len(rows)}", f"{share(rows, OWN):.1f}", f"{share(rows, word):.1f}"]
                both = answered(all_rows, (word, usual))
                together.setdefault(word, []).extend(both)
                beside = signs(against(both, word, usual)) if word != usual else ""
                cells += [signs(against(rows, word, OWN)), beside]
                lines.append([model, f"`{word}`", *cells])
                data[f"{model} {word}"] = [len(rows), *against(rows, word, OWN)]
    for word, rows in together.items() if len(found) > 1 else ():
        if word != usual:
            beside = signs(against(rows, word, usual))
            lines.append(["all", f"`{word}`", f"{len(rows)}", "", "", "", beside])
            data[f"all {word}"] = [len(rows), *against(rows, word, usual)]
    columns = [f"{task}: words", "word", "questions", OWN, "in words", "in words : own"]
    columns.append(f"in words : `{usual}`")
    return (measure.table(columns, lines, ["word"]) if len(lines) > len(found) else ""), data
