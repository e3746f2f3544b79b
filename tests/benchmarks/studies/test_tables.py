"""What all tables promise, at all sizes."""

from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.document import write_document
from benchmarks.studies.results import Results
from benchmarks.studies.run import settings_of
from benchmarks.studies.sizes import SIZES
from benchmarks.studies.table import SEVERAL, papers
from benchmarks.studies.tables import TABLES

CASES = [(table, size) for table in TABLES.values() for size in (*SIZES.values(), TINY)]

MEASURED = Path(__file__).parents[3] / "docs" / "results" / "tables"
SAYING = {"encodings", "heatmaps", "ablation", "conversion", "cost", "copying"}
"""Tables that put numbers into sentences."""


def of_case(case):
    return f"{case[0].name}-{case[1].name}"


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_rows_are_told_apart_and_their_recipes_can_be_read(case):
    table, size = case
    rows = table.rows(size)
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.name.startswith(row.task) and len(row.cells) == len(table.heads)
        if row.model is not None:
            settings = row.model.settings(size, 0)
            assert settings["training.seed"] == "0"
            assert not any("runs" in value for value in settings.values()), "no places"
    tasks = [row.task for row in rows]
    assert tasks == sorted(tasks, key=tasks.index), "the tasks one after the other"


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_what_is_measured_has_the_settings_of_the_rows(case):
    """Else whoever runs the command meets an error, and the document shows another model."""
    table, size = case
    results, rows = Results.of(MEASURED, table.name, size.name), table.rows(size)
    assert results.rows.keys() <= {row.name for row in rows}
    for row in rows:
        for seed in results.rows.get(row.name, {}):
            assert results.has(row.name, seed, settings_of(table, row, seed, size))


@pytest.mark.parametrize("name", SIZES)
def test_models_of_one_name_are_equal(name):
    found = {}
    for table in TABLES.values():
        for row in table.rows(SIZES[name]):
            if row.model is not None:
                assert found.setdefault(row.model.name, row.model) == row.model


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_the_papers_rows_stand_beside_ours(case):
    table, size = case
    names = {row.name for row in table.rows(size)}
    for block in table.blocks(size):
        if block.paper:
            paper = papers()[block.paper]
            assert paper["source"] and paper["size"]
            assert paper["rows"].keys() <= names
            assert {len(cells) for cells in paper["rows"].values()} == {len(paper["columns"])}


def test_each_block_of_the_papers_belongs_to_a_table():
    used = {block.paper for table, size in CASES for block in table.blocks(size)}
    assert papers().keys() <= used


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_all_that_can_be_measured_is_shown_and_put_in_words(table, tmp_path):
    results = Results.of(tmp_path / "docs" / "tables", table.name, TINY.name)
    blocks, rows = table.blocks(TINY), table.rows(TINY)
    numbers = {column.key: 0.5 for block in blocks for column in block.columns}
    numbers |= {"correct more names": 0.5, "failed": []}  # what sentences and pictures take
    numbers |= {"cells": [[1, 1, 2, 0.5], [4, 7, 2, None]]}
    made = {"hardware": "a processor", "threads": 1, "date": "2020-01-02", "settings": {}}
    for row in rows:
        training = {"steps": 1, "batch_size": 2, "hours": 0.5} if row.model is not None else {}
        for seed in range(1 if row.model is None else SEVERAL):
            results.put(row.name, seed, {"measured": numbers, "training": training, **made})
    write_document([table], [TINY], results.folder, tmp_path / "page" / "page.md")
    text = (tmp_path / "page" / "page.md").read_text()
    tasks = {row.task for row in rows}
    assert text.count("\n| --- |") == len(blocks) * len(tasks)
    findings = table.findings(results, TINY)
    assert text.count("\n- ") == len(findings)
    assert findings or table.name not in SAYING
    assert len(list((tmp_path / "page").glob("*.png"))) == len(table.pictures(results, TINY))
    assert "Not measured yet" not in text and "None" not in text
