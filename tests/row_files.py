"""Rows written as files of all kinds."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow
from datasets import Dataset


def write(path: Path, rows: list[dict], encoding: str = "utf-8") -> Path:
    """Write rows as the file's name says, in capitals too: tables, JSON, compressed, binary."""
    name = path.name.lower()
    if ".parquet" in name:
        Dataset.from_list(rows).to_parquet(path)
        return path
    if ".arrow" in name:
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        return path
    with _opened(path, encoding) as file:
        if "json" in name:
            text = [json.dumps(row, ensure_ascii=False) for row in rows]
            file.write(f"[{', '.join(text)}]" if ".json." in f"{name}." else "\n".join(text))
        else:
            tab = "excel-tab" if ".tsv" in name else "excel"
            writer = csv.DictWriter(file, list(rows[0]), dialect=tab)
            writer.writeheader()
            writer.writerows(rows)
    return path


def _opened(path: Path, encoding: str) -> io.TextIOWrapper:
    suffix = path.suffix.lower()
    if suffix == ".zst":
        file = pyarrow.output_stream(path, compression="zstd")
    else:
        file = (gzip.open if suffix == ".gz" else open)(path, "wb")
    return io.TextIOWrapper(file, encoding=encoding, newline="")
