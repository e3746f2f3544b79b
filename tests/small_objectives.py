"""Small data and recipes for objectives that do not answer with text."""

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
