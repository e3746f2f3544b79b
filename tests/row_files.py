"""Rows written as files of all kinds."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow
from datasets import Dataset


def write(path: Path, rows: list[dict], encoding: str = "utf-8") -> Path:
    """Write rows as the file's name says: *.csv, *.tsv, *.json, *.jsonl, compressed or binary."""
    if ".parquet" in path.name:
        Dataset.from_list(rows).to_parquet(path)
        return path
    if ".arrow" in path.name:
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        return path
    with _opened(path, encoding) as file:
        if ".json" in path.name:
            text = [json.dumps(row, ensure_ascii=False) for row in rows]
            file.write(f"[{', '.join(text)}]" if ".jsonl" not in path.name else "\n".join(text))
        else:
            tab = "excel-tab" if ".tsv" in path.name else "excel"
            writer = csv.DictWriter(file, list(rows[0]), dialect=tab)
            writer.writeheader()
            writer.writerows(rows)
    return path


def _opened(path: Path, encoding: str) -> io.TextIOWrapper:
    if path.suffix == ".zst":
        file = pyarrow.output_stream(path, compression="zstd")
    else:
        file = (gzip.open if path.suffix == ".gz" else open)(path, "wb")
    return io.TextIOWrapper(file, encoding=encoding, newline="")
