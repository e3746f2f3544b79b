"""The first training steps of every `debug` recipe: loss and gradient norm of each, as a file.

    python tests/trajectories.py

writes `tests/snapshots/trajectory-<task>.json` anew; do so only where a change of the numbers is
meant. `tests/test_train.py` compares them. Dropout is off: its random bits depend on the processor.
"""

import json
import sys
import tempfile
from pathlib import Path

from hf_alpha.recipe import read_recipe
from hf_alpha.resources import resource_path
from hf_alpha.train import train

TASKS = sorted(path.parent.name for path in resource_path("training").glob("*/debug.yaml"))
OVERRIDES = [
    "model.dropout=0.0", "training.max_steps=4", "training.eval_strategy=no",
    "training.save_strategy=no", "training.disable_tqdm=true", "data.max_eval_samples=8",
]  # fmt: skip
NUMBERS = ("loss", "grad_norm")


def measure(task: str, folder: Path) -> list[dict[str, float]]:
    """Train for a few steps in a folder; loss and gradient norm of each."""
    overrides = [*OVERRIDES, f"training.output_dir={folder}/run"]
    if read_recipe(f"{task}/debug").data.path:
        overrides += [f"data.path={folder}/data", "data.generate.num_samples=160"]
    history = train(read_recipe(f"{task}/debug", overrides)).state.log_history
    return [{name: entry[name] for name in NUMBERS} for entry in history if "grad_norm" in entry]


def snapshot(task: str) -> Path:
    return Path(__file__).parent / "snapshots" / f"trajectory-{task}.json"


def main() -> None:
    for task in sys.argv[1:] or TASKS:
        with tempfile.TemporaryDirectory() as folder:
            steps = measure(task, Path(folder))
        snapshot(task).write_text(json.dumps(steps, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
