"""The store of results: a table with a line for each cell, and one with a line for each result.

benchmarks/results/README.md says what stands where. A result's data are nested as JSON has it; in
the table they are a line for each innermost object or list of numbers: its place, and what it is.
Objects in a list are told whole. So `read` returns what `write` was given.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hf_alpha.io.folders import write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"
"""The store of the repository."""
COMMANDS, CELLS = "commands.tsv", "cells.tsv"
HEADS = {
    COMMANDS: ("result", "command", "conditions"),
    CELLS: ("result", "cell", "value"),
}
BETWEEN = " > "
"""Stands between the keys of a place; `#3` is the fourth of a list."""


class _Node(dict[str, Any]):
    """A part of the data that has places of its own, in distinction from what a line says."""


def commands(folder: Path = RESULTS) -> dict[str, str]:
    """The command that measured each result, in the order of their names."""
    return {result: command for result, command, _ in _lines(folder / COMMANDS)}


def read(result: str, folder: Path = RESULTS) -> dict[str, Any]:
    """Return what is known of a result.

    Returns:
        `command`, `conditions` (date, versions, processor, load; empty where they were not kept),
        `text` (Markdown or a printed table) and `data`.

    Raises:
        KeyError: there is no such result.
    """
    found = {name: rest for name, *rest in _lines(folder / COMMANDS)}
    command, conditions = found[result]
    root = _Node()
    for name, place, value in _lines(folder / CELLS):
        if name == result:
            *keys, last = place.split(BETWEEN)
            node = root
            for key in keys:
                node = node.setdefault(key, _Node())
            node[last] = json.loads(value)
    content = {"text": [], **_plain(root)}
    lines = content.pop("text")
    return {
        "command": command,
        "conditions": json.loads(conditions),
        "text": "\n".join(lines),
        **content,
    }


def write(
    result: str,
    command: str,
    data: Any,
    text: str = "",
    conditions: Mapping[str, Any] | None = None,
    folder: Path = RESULTS,
) -> None:
    """Put a result into a store, in the place of what it had under this name.

    Args:
        result: its name; results stand in the order of their names.
        command: that measured it.
        data: as JSON takes it, in an object.
        text: what people read.
        conditions: where and with what it was measured.
        folder: of the store; made where there is none.
    """
    content = {"data": data, **({"text": text.splitlines()} if text else {})}
    own = {
        COMMANDS: [(result, command, _value(dict(conditions or {})))],
        CELLS: [(result, place, _value(value)) for place, value in _cells(content)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        for name, lines in own.items():
            others = [line for line in _lines(folder / name) if line[0] != result]
            all_lines = sorted([*others, *lines], key=lambda line: line[0])
            table = ("\t".join(line) for line in (HEADS[name], *all_lines))
            write_text(folder / name, "\n".join(table) + "\n")


def _cells(data: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The lines of nested data: places, and what stands there."""
    if keys == ("text",) or _has_objects(data):  # texts line by line, so that changes can be read
        yield from ((_place(*keys, f"#{number}"), part) for number, part in enumerate(data))
    elif isinstance(data, dict) and any(map(_is_deep, data.values())):
        for key, part in data.items():
            if key.startswith("#"):
                raise ValueError(f"{key!r} cannot be a key of a result: it would be a number")
            yield from _cells(part, (*keys, key))
    else:
        yield _place(*keys), data


def _place(*keys: str) -> str:
    """Where a value stands, from which its keys can be told again."""
    place = BETWEEN.join(keys)
    if place.split(BETWEEN) != [*keys] or "\t" in place or "\n" in place:
        raise ValueError(f"{keys} cannot be keys of a result: they have a mark of the store")
    return place


def _is_deep(data: Any) -> bool:
    return isinstance(data, dict) or _has_objects(data)


def _has_objects(data: Any) -> bool:
    return isinstance(data, list | tuple) and any(isinstance(part, dict) for part in data)


def _plain(node: Any) -> Any:
    """The data of which a tree of places is, with its lists."""
    if not isinstance(node, _Node):
        return node
    parts = [_plain(part) for part in node.values()]
    return parts if next(iter(node), "").startswith("#") else dict(zip(node, parts, strict=True))


def _value(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(", ", ":"))


def _lines(path: Path) -> list[tuple[str, ...]]:
    """The lines of a table below its head."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [tuple(line.split("\t")) for line in text.split("\n")[1:] if line]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While this goes on, no other process writes there."""
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


__all__ = ["RESULTS", "commands", "read", "write"]
