"""The picture of the names benchmark, from result files of lm-evaluation-harness.

    python -m benchmarks.names.picture OUT.png RESULTS.json [RESULTS.json ...]

Each file (`lm_eval --output_path`, `results_*.json`) is a model. A panel has right answers by kind
of names, the other what renaming does to answers.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = ("seen", "unseen", "nonsense", "misleading")
CHANGES = {"changed": "changes the answer", "right_to_wrong": "turns a right answer wrong"}


def mean(results: Mapping[str, Any], measure: str) -> float:
    """Return a measure over all questions, in per cent: all tasks have equally many."""
    names = {task for group in results.get("group_subtasks", {}).values() for task in group}
    rows = {name: row for name, row in results["results"].items() if f"{measure},none" in row}
    rows = {name: row for name, row in rows.items() if name in names} or rows
    return 100 * sum(row[f"{measure},none"] for row in rows.values()) / len(rows)


def draw(models: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw both panels, with a line or bar for each model.

    Args:
        models: name -> results of the harness.
        path: the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2 + 0.2 * len(models)), layout="constrained")
    FigureCanvasAgg(figure)
    right, changes = figure.subplots(1, 2)
    for name, results in models.items():
        right.plot(KINDS, [mean(results, kind) for kind in KINDS], marker="o", label=name)
    right.set_ylim(-4, 104)
    right.set_title("right answers by kind of names, %", fontsize=10)
    right.grid(axis="y", color="0.9")
    width = 0.8 / len(models)
    for index, (name, results) in enumerate(models.items()):
        places = [place + index * width for place in range(len(CHANGES))]
        changes.barh(places, [mean(results, one) for one in CHANGES], width, label=name)
    middle = (len(models) - 1) * width / 2
    changes.set_yticks([place + middle for place in range(len(CHANGES))], CHANGES.values())
    changes.invert_yaxis()
    changes.set_xlim(0, 100)
    changes.set_title("what renaming a question does, % of renamings", fontsize=10)
    for axis in (right, changes):
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=4,
                  frameon=False, fontsize=9)  # fmt: skip
    figure.savefig(path, dpi=150)


def main(path: str, *files: str) -> None:
    """Draw the picture of some result files."""
    models = {}
    for file in files:
        results = json.loads(Path(file).read_text(encoding="utf-8"))
        name = str(results.get("model_name") or file)
        models[name if name not in models else file] = results
    draw(models, Path(path))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python -m benchmarks.names.picture OUT.png RESULTS.json ...")
    main(*sys.argv[1:])
