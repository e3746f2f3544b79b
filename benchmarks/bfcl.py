"""BFCL's questions about tools, as its files have them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import lines_of

TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
"""BFCL's types -> those of JSON Schema."""


def as_json_schema(schema: Any) -> Any:
    """Return a schema of BFCL as JSON Schema has it."""
    if isinstance(schema, list):
        return [as_json_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    written = {key: as_json_schema(value) for key, value in schema.items()}
    if isinstance(kind := schema.get("type"), str):
        written["type"] = TYPES.get(kind, kind)
    return written


def questions(folder: Path, name: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the questions of a file, each with the calls that are right."""
    rows, answers = (lines_of(folder / f"{name}{end}.jsonl.gz") for end in ("", "-answers"))
    right = {row["id"]: row["ground_truth"] for row in answers}
    for row in rows:
        yield row, right[row["id"]]
