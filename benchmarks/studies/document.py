"""A page of the tables and its pictures, written from the store alone."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from hf_alpha.io.folders import write_text

from .results import Entry, Results
from .sizes import Size
from .table import Row, Table, papers

HEAD = """# The papers' tables, measured again
`python -m benchmarks.studies TABLE` trains and tests what is missing from a table. Columns that \
begin with `paper:` have the papers' numbers. The paragraph below a table gives the size at which \
they were measured. Do not compare them with ours digit by digit.

Each cell is the mean over the seeds. The number after ± is half the difference between the \
largest and the smallest value. No seed is left out. `hours` is the training time, as the mean \
over the seeds. A solver checks each answer. If the check times out, the answer counts as not \
correct.
"""


def write_document(tables: Iterable[Table], sizes: Iterable[Size], out: Path, path: Path) -> None:
    """Write a page of all that has been measured, and its pictures beside it.

    Args:
        tables: in the order of the page.
        sizes: those that are shown where something has been measured.
        out: folder of the store.
        path: of the page.
    """
    tables, sizes = list(tables), list(sizes)
    measured_sizes = [
        s for s in sizes if any(Results.of(out, table.name, s.name).rows for table in tables)
    ]
    parts = [
        HEAD,
        *(f"**Size `{s.name}`.** {s.text}\n" for s in measured_sizes),
    ]
    sections = {table: _sections(table, sizes, out, path.parent) for table in tables}
    parts += [part for section in sections.values() for part in section]
    parts += _to_do(table for table, section in sections.items() if not section)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(parts))


def _sections(table: Table, sizes: list[Size], out: Path, folder: Path) -> list[str]:
    """What has been measured of a table; empty if that is nothing."""
    size_results = [(size, Results.of(out, table.name, size.name)) for size in sizes]
    shown = [_measured(table, size, rows, folder) for size, rows in size_results if rows.rows]
    head = f"## {table.title}\n{_what(table)}\n"
    return [head, *shown] if shown else []


def _to_do(tables: Iterable[Table]) -> list[str]:
    lines = [f"- {_what(table)}" for table in tables]
    return ["## Not measured yet\n" + "\n".join(lines) + "\n"] if lines else []


def _what(table: Table) -> str:
    return f"`python -m benchmarks.studies {table.name}`: {table.summary}."


def _measured(table: Table, size: Size, results: Results, folder: Path) -> str:
    """A table at a size: words, findings, numbers, pictures, and how they were made."""
    findings = [f"- {sentence}" for sentence in table.findings(results, size)]
    sources = [papers()[b.paper] for b in table.blocks(size) if b.paper in papers()]
    theirs = [f"Size in the paper ({paper['source']}): {paper['size']}." for paper in sources]
    pictures = []
    for name, figure in table.pictures(results, size).items():
        file = f"{table.name}-{size.name}-{name}.png"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / file, dpi=110)
        pictures.append(f"![{table.title}: {name}]({file})")
    parts = [
        f"Size `{size.name}`. {table.text(size)}",
        "\n".join(findings),
        table.render(results, size),
        *pictures,
        *dict.fromkeys(theirs),
        _conditions(results),
        _lacking(table.rows(size), results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _conditions(results: Results) -> str:
    """How the rows were made, in one line."""
    entries = [entry for seeds in results.rows.values() for entry in seeds.values()]
    trained = [entry["training"] for entry in entries if entry["training"]]
    hours = [training["hours"] for training in trained]
    steps = sorted({training["steps"] for training in trained})
    words = [f"{len(entries)} (one for each row and seed)"]
    if trained:
        batches = " or ".join(str(size) for size in sorted({t["batch_size"] for t in trained}))
        words.append(f"{_numbers(steps)} steps of {batches} problems")
        words.append(f"{sum(hours):.1f} hours of training")
    words += [_all(entries, "hardware"), f"threads: {_all(entries, 'threads')}"]
    words.append(f"measured {min(e['date'] for e in entries)} to {max(e['date'] for e in entries)}")
    return f"Measurements: {'; '.join(words)}."


def _numbers(values: list[int]) -> str:
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"


def _all(entries: Iterable[Entry], key: str) -> str:
    return ", ".join(sorted({str(entry[key]) for entry in entries}))


def _lacking(rows: Sequence[Row], results: Results) -> str:
    """What is missing, in words that `--only` takes: `ltl-*-reduced` where all of a kind are."""
    kinds: dict[str, list[str]] = {}
    for name in (row.name for row in rows):
        parts = name.split("-")
        kinds.setdefault(f"{parts[0]}-*-{parts[-1]}", []).append(name)
    missing_names: list[str] = []
    for kind, names in kinds.items():
        lacking = [name for name in names if name not in results.rows]
        missing_names += [kind] if len(lacking) == len(names) > 2 else lacking
    return (
        f"Not measured yet: {', '.join(f'`{name}`' for name in missing_names)}."
        if missing_names
        else ""
    )


__all__ = ["write_document"]
