"""Keep an evaluation of released models in the store of results.

    python benchmarks/evaluations.py small 'hf-alpha evaluate ... --out runs/evaluations/small'

runs the command, which goes on where it stopped and does nothing where all is done, and puts what
its `--out` holds into the store as `evaluations/small`: the table that people read, and for each
model the right answers and problems by number of names and of tokens, and how far answers are off.
"""

import argparse
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.io.records import read_json
from studies import store

TABLES = ("table.txt", "report.txt", "output.txt")
"""Of models that answer, of those that tell classes, and of the tour."""
EDITS = "edit_distance"


def cells(report: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Right answers and problems: number of names -> number of tokens -> both."""
    found: dict[str, dict[str, list[int]]] = {}
    for cell in report["by_cell"]:
        right = round(cell.get("correct", cell["exact"]) * cell["count"])
        found.setdefault(str(cell["num_symbols"]), {})[str(cell["size"])] = [right, cell["count"]]
    return found


def content(folder: Path) -> tuple[str, dict[str, Any]]:
    """The table in a folder of an evaluation, and what a result keeps of its numbers."""
    text = next(file for name in TABLES if (file := folder / name).is_file()).read_text("utf-8")
    data: dict[str, Any] = {}
    for file in sorted(folder.glob("*/report.json")):
        report, model = read_json(file), file.parent.name
        data.setdefault("models", {})[model] = cells(report)
        if EDITS in report["overall"]:
            edits = {str(row["num_symbols"]): row[EDITS] for row in report["by_num_symbols"]}
            data.setdefault(EDITS, {})[model] = edits
    if (metrics := folder / "metrics.json").is_file():
        data |= read_json(metrics)
    return text.rstrip(), data


def main(argv: Sequence[str] | None = None) -> None:
    """Run, and keep."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("name", help="of the result, without `evaluations/`")
    parser.add_argument("command", help="an evaluation with --out")
    parser.add_argument("--store", type=Path, default=store.RESULTS, help="another store")
    args = parser.parse_args(argv)
    words = shlex.split(args.command)
    if "--out" not in words:
        parser.error("the command has no --out: nothing says where its table will be")
    subprocess.run(words, check=True)
    text, data = content(Path(words[words.index("--out") + 1]))
    store.write(
        f"evaluations/{args.name}", args.command, data, text, measure.conditions(), args.store
    )


if __name__ == "__main__":
    measure.run(main)
