"""Small data and recipes for objectives that do not answer with text."""

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from commands import hf_alpha
from safetensors.torch import load_file

from hf_alpha.recipe import Recipe, parse_recipe

BERT: dict[str, Any] = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 128,
    "hidden_dropout_prob": 0.1,
}
SIZES = {key: value for key, value in BERT.items() if key != "model_type"}
FOLNET: dict[str, Any] = {
    "model_type": "folnet",
    "hidden_size": 16,
    "binary_hidden_size": 8,
    "head_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "binary_intermediate_size": 16,
}
TRAINING: dict[str, Any] = {
    "max_steps": 4,
    "per_device_train_batch_size": 4,
    "logging_steps": 2,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
    "seed": 1,
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
PEOPLE = ("Ann", "Bea", "Cleo", "Dan", "Eli", "Finn")


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def relations(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Who is who to whom: a story, a query, a relation, and the names in them."""
    rng, rows = random.Random(seed), []
    for _ in range(count):
        one, two = rng.sample(PEOPLE, 2)
        kind = rng.choice(["mother", "sister", "aunt"])
        story = f"{one} is the {kind} of {two}, it is {rng.choice(DAYS)}."
        rows.append({"story": story, "query": [two, one], "kind": kind, "people": [one, two]})
    return rows


def recipe(
    folder: Path,
    objective: Any,
    data: Mapping[str, Any],
    training: Mapping[str, Any] | None = None,
    **more: Any,
) -> Recipe:
    """A recipe with a small BERT, whose output folder is `folder`/out."""
    changed = {**TRAINING, "output_dir": str(folder / "out"), **(training or {})}
    said = {"task": "text", "objective": objective, "data": dict(data), "training": changed}
    return parse_recipe({"model": BERT, **said, **more} if "checkpoint" not in more else {
        **said, **more
    })  # fmt: skip


def evaluated(
    out: Path, *options: object, into: Path | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Evaluate a model by the command; its metrics by group, and the record of each row."""
    folder = into or out / "evaluation"
    done = hf_alpha("evaluate", out, *options, "--out", folder)
    assert done.code == 0, done.err
    records = (folder / "predictions.jsonl").read_text().splitlines()
    return json.loads((folder / "metrics.json").read_text()), [*map(json.loads, records)]


def cut_off(out: Path, step: int) -> dict[str, Any]:
    """Leave of a run what it had written before it ended at a step; returns its weights."""
    weights = load_file(out / "model.safetensors")
    for file in out.glob("*.*"):
        file.unlink() if file.is_file() else None
    (out / f"checkpoint-{step}" / "trainer_state.json").unlink()
    return weights


def same_weights(weights: Mapping[str, Any], out: Path) -> bool:
    again = load_file(out / "model.safetensors")
    return all(torch.equal(weights[name], again[name]) for name in weights | again)
