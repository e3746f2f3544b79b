import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import interrupted
import pytest
from datasets import load_dataset
from deadly_targets import DeadlyTargets
from file_trees import files_of
from reference import commuting as reference

from hf_alpha.data.keys import key_of, split_of
from hf_alpha.data.rows import training_problems
from hf_alpha.hub.push import push
from hf_alpha.logic.drawing.chunk import Chunk
from hf_alpha.logic.drawing.chunk import rows_of as rows_of_chunk
from hf_alpha.logic.drawing.generate import generate, generate_grid
from hf_alpha.logic.ltl import LTLTask
from hf_alpha.tasks import DrawnTask, Verdict, get_task

TASK, LTL = get_task("propositional"), LTLTask()
SETTINGS = {"num_samples": 1500, "sizes": (1, 12), "num_symbols": 4}


def run(folder, **changes):
    settings = {**SETTINGS, "progress": False, **changes}
    return generate("propositional", folder, settings.pop("num_samples"), **settings)


def rows_of(folder):
    return {name: list(split) for name, split in load_dataset(str(folder)).items()}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate") / "data"
    counts = run(folder)
    return folder, counts, rows_of(folder)


def test_rows(dataset):
    folder, counts, splits = dataset
    assert counts == {name: len(rows) for name, rows in splits.items()}
    assert sum(counts.values()) == SETTINGS["num_samples"]
    assert set(os.listdir(folder)) == {"README.md", "data", "generation.json"}
    for row in (row for rows in splits.values() for row in rows):
        tokens = TASK.parse(row["problem"], "compact")
        assert (len(tokens), len(TASK.symbols_in(tokens))) == (row["size"], row["num_symbols"])
        assert set(TASK.symbols_in(tokens)) <= set("abcd")
        assert row["answer"] == TASK.target(row["problem"])
        assert TASK.check(row["problem"], row["answer"]) == Verdict.correct
    names = {TASK.symbols_of(row["problem"])[0] for row in splits["train"]}
    assert names == set("abcd")
    for split, share in {"train": 0.8, "validation": 0.1, "test": 0.1}.items():
        assert abs(counts[split] / SETTINGS["num_samples"] - share) < 0.03
    card = (folder / "README.md").read_text()
    assert card.startswith("---\n") and "Targets: equivariant" in card
    assert "| num_symbols | `4` |" in card


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("alpha", "enough"), [(0.0, False), (0.095, True), (0.02, False)])
def test_sizes_are_uniform_within_alpha(alpha, enough, tmp_path, caplog):
    run(tmp_path / "data", alpha=alpha)
    sizes = Counter(row["size"] for rows in rows_of(tmp_path / "data").values() for row in rows)
    limit = SETTINGS["num_samples"] * (1 / 12 + alpha)
    assert max(sizes.values()) <= limit
    full = [sizes[size] for size in range(7, 13)]
    assert max(full) - min(full) <= 1  # what small sizes lack is shared out evenly
    assert sizes[1] == sizes[2] == 1 and sizes[3] == 4
    if enough:
        assert sizes.total() == SETTINGS["num_samples"] and not caplog.text
    else:
        assert max(full) == int(limit)
        assert f"{SETTINGS['num_samples'] - sizes.total()} of 1500 rows are missing" in caplog.text


def test_the_number_of_workers_changes_nothing(dataset, tmp_path):
    run(tmp_path / "data", num_workers=2)
    assert files_of(tmp_path / "data") == files_of(dataset[0])


A_PART = ("os.rename", "/.parts/samples-")  # a chunk of rows gets its name


def test_a_killed_run_continues_to_the_same_files(dataset, tmp_path):
    folder = tmp_path / "killed"
    process = interrupted.start((*A_PART, 6), signal.SIGKILL, folder, SETTINGS)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    parts = {path: path.stat().st_mtime_ns for path in (folder / ".parts").glob("*.parquet")}
    assert len(parts) == 5 and not (folder / "generation.json").exists()
    with pytest.raises(ValueError, match=r"other settings: seed is 0 there and 7 here"):
        run(folder, seed=7)
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    run(folder)
    assert files_of(folder) == files_of(dataset[0])


def test_shards_make_the_same_files(dataset, tmp_path):
    """One of three begins elsewhere, and its parts are copied; another has two processes."""
    folder, made = tmp_path / "data", 0
    told = run(tmp_path / "elsewhere", shard=(3, 3))
    assert told["missing"] > told["made"] > 0
    shutil.copytree(tmp_path / "elsewhere", folder)
    for number in itertools.cycle((1, 2, 3)):
        before = {path: path.stat().st_mtime_ns for path in (folder / ".parts").iterdir()}
        told = run(folder, shard=(number, 3), num_workers=1 + (number == 2))
        if "missing" not in told:
            break
        assert {path: path.stat().st_mtime_ns for path in before} == before
        assert len([*(folder / ".parts").iterdir()]) == len(before) + told["made"]
        made += told["made"]
    assert made > 9 and told == dataset[1]
    assert files_of(folder) == files_of(dataset[0])


@pytest.mark.slow
def test_runs_in_one_folder_do_not_harm_each_other(dataset, tmp_path):
    """One is stopped in the middle, and finds the dataset finished."""
    folder = tmp_path / "data"
    stopped = interrupted.start((*A_PART, 3), signal.SIGSTOP, folder, SETTINGS)
    while len(list((folder / ".parts").glob("*.parquet"))) < 2:
        assert stopped.exitcode is None
        time.sleep(0.005)
    run(folder)
    os.kill(stopped.pid, signal.SIGCONT)
    stopped.join()
    assert stopped.exitcode == 0
    assert files_of(folder) == files_of(dataset[0])


SMALL = {"num_samples": 200, "sizes": (1, 9), "num_symbols": 3}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small") / "data"
    run(folder, **SMALL)
    return files_of(folder)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("event", "argument", "left"),
    [
        ("os.rename", "data/validation", ".validation-00000-of-00001.parquet."),
        ("os.rename", "README.md", ".README.md."),
        ("os.rename", "data/.../generation.json", ".generation.json."),
        ("shutil.rmtree", ".parts", "..parts."),
    ],
)
def test_a_run_killed_at_its_end_leaves_nothing_for_good(
    small, tmp_path, hub, event, argument, left
):
    folder = tmp_path / "data"
    argument = argument.replace("data/...", str(folder))
    process = interrupted.start((event, argument, 1), signal.SIGKILL, folder, SMALL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert any(path.name.startswith(left) for path in folder.rglob(".*"))
    if event == "shutil.rmtree":  # the dataset is finished, and may be shared
        (folder / "data" / f".train.parquet.{'0' * 32}").write_text("half")
        push(folder, "me/data")
        assert not [name for name in hub.files("me/data", "dataset") if "/." in f"/{name}"]
    run(folder, **SMALL)
    assert files_of(folder) == small
    assert set(os.listdir(folder)) == {"README.md", "data", "generation.json"}


@pytest.mark.slow
def test_a_full_disk_is_an_error_that_leaves_nothing_half_written(tmp_path):
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, -1)); "
        "from hf_alpha.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "generate-data", str(tmp_path / "data"), "--quiet"]
    done = subprocess.run([*command, "--samples", "9999"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr and "too large" in done.stderr
    left = [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert left and all(re.fullmatch(r"generation\.json|samples.*\.parquet", name) for name in left)


def test_a_finished_run_is_kept(dataset, tmp_path):
    folder, counts, _ = dataset
    before = files_of(folder)
    assert run(folder) == counts
    with pytest.raises(ValueError, match=r"alpha is 0.095 there and 0.5 here.*another folder"):
        run(folder, alpha=0.5)
    assert files_of(folder) == before
    shutil.copytree(folder, tmp_path / "older")
    record = json.loads((folder / "generation.json").read_text())
    assert record["rows"] == counts and record["settings"].pop("equivalence") == "commuting"
    record["settings"]["version"] = 1
    (tmp_path / "older" / "generation.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"version is 1 there and 2 here, equivalence is None"):
        run(tmp_path / "older")


def test_an_empty_split_gets_no_file(tmp_path):
    counts = run(tmp_path / "data", num_samples=1, sizes=(1, 1))
    assert list(counts.values()) == [1]
    assert {name: len(rows) for name, rows in rows_of(tmp_path / "data").items()} == counts


def test_grid(tmp_path):
    grid = {"num_symbols": range(4), "sizes": range(1, 8), "per_cell": 5, "progress": False}
    counts = generate_grid("propositional", tmp_path / "one", **grid)
    generate_grid("propositional", tmp_path / "two", **grid, num_workers=2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    rows = rows_of(tmp_path / "one")
    assert counts == {"test": len(rows["test"])}
    cells = Counter()
    for row in rows["test"]:
        cells[row["num_symbols"], row["size"]] += 1
        assert set(TASK.symbols_of(row["problem"])) == set("abc"[: row["num_symbols"]])
        assert len(TASK.parse(row["problem"])) == row["size"]
        assert split_of(key_of(TASK.canonical(row["problem"]))) == "test"
        assert TASK.check(row["problem"], row["answer"]) == Verdict.correct
    assert max(cells.values()) == 5 and cells[2, 7] == cells[3, 7] == 5
    assert not any(size < 2 * k - 1 for k, size in cells)


@pytest.mark.parametrize(("task", "commutative"), [(TASK, "&|=^"), (LTL, "&|")])
def test_no_test_problem_is_a_training_problem_written_differently(task, commutative, tmp_path):
    """Up to renaming and commuting, each problem in all the ways there are to write it."""
    quick = {"constant_priority": 0.5, "alpha": 1.0, "progress": False}
    generate(task, tmp_path / "data", 800, (1, 9), num_symbols=3, **quick)
    generate_grid(task, tmp_path / "grid", range(4), range(1, 10), 10, seed=3, progress=False)
    splits = {**rows_of(tmp_path / "data"), "grid": rows_of(tmp_path / "grid")["test"]}
    syntax = task.grammar.operators, task.grammar.constants, commutative
    forms = {
        name: [reference.canonical(row["problem"], *syntax) for row in rows]
        for name, rows in splits.items()
    }
    for name, found in forms.items():
        assert len(set(found)) == len(found) > 50, name
    forms["test"] = set(forms["test"]) | set(forms.pop("grid"))
    for one, other in itertools.combinations(forms.values(), 2):
        assert set(one).isdisjoint(other)


@pytest.mark.slow
def test_a_grid_keeps_clear_of_other_training_data_too(tmp_path):
    grid = {"num_symbols": (1, 2), "sizes": range(1, 8), "per_cell": 20, "progress": False}
    run(tmp_path / "old", num_symbols=2, sizes=(1, 8), alpha=1.0, equivalence="renaming")
    known = training_problems(tmp_path / "old")
    forms = {TASK.canonical(problem) for problem in known}
    found = {}
    for name, changes in {"all": {}, "some": {"exclude": known}}.items():
        for workers in (1, 2):
            folder = tmp_path / f"{name} {workers}"
            generate_grid("propositional", folder, **grid, **changes, num_workers=workers)
        assert files_of(tmp_path / f"{name} 1") == files_of(tmp_path / f"{name} 2")
        rows = rows_of(folder)["test"]
        found[name] = {TASK.canonical(row["problem"]) for row in rows}
    assert found["all"] & forms and not found["some"] & forms
    assert found["all"] - forms <= found["some"]
    with pytest.raises(ValueError, match="other settings: exclude is None there"):
        generate_grid("propositional", tmp_path / "all 1", **grid, exclude=known)


def test_bad_settings(tmp_path):
    bad = {
        "sizes must be": {"sizes": (5, 4)},
        "num_samples must be": {"num_samples": 0},
        "alpha must be": {"alpha": 2},
        "no leaves": {"num_symbols": 0},
        "unknown targets 'best': choose one of equivariant, papers": {"targets": "best"},
        "there is no problem with these": {"num_symbols": 1, "sizes": (3, 3)},
        "few_symbols must be": {"few_symbols": -1},
        "many_symbols must be": {"many_symbols": -1},
        "= 5 and up_to_symbols = 2 go": {"many_symbols": 5, "up_to_symbols": 2, "num_symbols": 2},
        "many_symbols = 0 and up_to_symbols = 9 go together": {"up_to_symbols": 9},
        "num_workers must be": {"num_workers": 0},
        "shard must be one of 1/4 to 4/4, got 5/4": {"shard": (5, 4)},
        "task 'propositional' knows no hard problems": {"hard": 0.1},
        "unknown equivalence 'equal': choose one of commuting, r": {"equivalence": "equal"},
    }
    for message, settings in bad.items():
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "data", **settings)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="is not empty"):
        run(tmp_path / "data")


def test_up_to_renaming_only_the_rows_are_those_of_the_first_release(tmp_path):
    run(tmp_path / "data", num_samples=3000, equivalence="renaming")
    rows = json.dumps(rows_of(tmp_path / "data"), sort_keys=True).encode()
    assert hashlib.sha256(rows).hexdigest()[:16] == "4176fe6341849a78"


@pytest.fixture(scope="module")
def ltl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ltl") / "data"
    generate(LTL, folder, 200, (1, 15), num_symbols=3, few_symbols=60, progress=False)
    return folder, rows_of(folder)


def test_ltl(ltl):
    folder, splits = ltl
    settings = json.loads((folder / "generation.json").read_text())["settings"]
    assert settings["constant_priority"] == 1.0 and settings["alpha"] == 0.112
    rows = [row for rows in splits.values() for row in rows]
    for row in rows:
        tokens = LTL.parse(row["problem"], "compact")
        assert (len(tokens), len(LTL.symbols_in(tokens))) == (row["size"], row["num_symbols"])
        assert row["answer"] == LTL.target(row["problem"])
        assert row["witness_length"] == LTL.facts_of(tokens)["witness_length"]
        assert LTL.check(row["problem"], row["answer"], solver="lasso") != Verdict.wrong
    assert len({row["witness_length"] for row in rows}) > 1
    keys = {LTL.canonical(row["problem"]): split for split in splits for row in splits[split]}
    assert len(keys) == len(rows)
    assert all(split_of(key_of(key)) == split for key, split in keys.items())
    card = (folder / "README.md").read_text()
    for piece in ("symbolic lasso trace", "Targets: equivariant", "found without Spot", "one sym"):
        assert piece in card


@pytest.mark.parametrize(("hardness", "count"), [(1, 400), (2, 60)])
def test_hard(hardness, count, tmp_path):
    """So large a share needs more steps than the hardness."""
    settings = {"sizes": (10, 14), "num_symbols": 3, "hard": 0.4, "progress": False}
    generate(LTL, tmp_path, count, **settings, hardness=hardness)
    rows = [row for rows in rows_of(tmp_path).values() for row in rows]
    by_size = Counter(row["size"] for row in rows)
    hard = Counter(row["size"] for row in rows if row["witness_length"] > hardness)
    assert len(rows) == count and by_size.keys() == set(range(10, 15))
    assert all(0.4 * number <= hard[size] <= 0.8 * number for size, number in by_size.items())
    card = (tmp_path / "README.md").read_text()
    assert "**Hard: at least 40%" in card and ("Hardness 2." in card) == (hardness == 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hard": 2}, "hard is a share and must be between 0 and 1, got 2"),
        ({"hard": 0.4, "hardness": 5}, "must be between 1 and 4 for task 'ltl', got 5"),
        ({"hardness": 2}, "hardness = 2 needs hard"),
        ({"walk": 5}, "walk = 5 needs hard"),
        ({"hard": 0.4, "walk": -1}, "walk must be at least 0, got -1"),
    ],
)
def test_bad_settings_of_hard_problems(settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        generate(LTL, tmp_path / "data", 60, **settings)
    assert not (tmp_path / "data").exists()


def test_walks_find_more_hard_problems(tmp_path):
    settings = {"sizes": (12, 13), "num_symbols": 3, "hard": 0.8, "hardness": 2, "progress": False}
    generate(LTL, tmp_path / "data", 300, **settings, walk=50)
    rows = [row for rows in rows_of(tmp_path / "data").values() for row in rows]
    assert len(rows) == 300 == len({LTL.canonical(row["problem"]) for row in rows})
    assert sum(row["witness_length"] > 2 for row in rows) >= 240
    assert all(LTL.check(row["problem"], row["answer"]).is_correct for row in rows)
    assert json.loads((tmp_path / "data/generation.json").read_text())["settings"]["walk"] == 50
    assert "**Walk: 50.**" in (tmp_path / "data/README.md").read_text()
    chunk = Chunk(
        task=LTL, targets="equivariant", equivalence="", seed="0", size=12, num_symbols=3,
        draws=2000, hard=1.0, hardness=2,
    )  # fmt: skip
    drawn, walked = (list(rows_of_chunk(replace(chunk, walk=walk))) for walk in (0, 50))
    assert len(walked) > 5 * len(drawn) > 0
    without = type("Walkless", (type(LTL),), {"vary": DrawnTask.vary})()
    with pytest.raises(NotImplementedError, match="task 'ltl' has no `vary`"):
        generate(without, tmp_path / "none", 60, **settings, walk=5)
    assert not (tmp_path / "none").exists()


def test_symbols_that_have_no_room_are_missed_with_a_warning(tmp_path, caplog):
    more = {"many_symbols": 500, "up_to_symbols": 4, "progress": False}
    counts = generate("propositional", tmp_path / "data", 60, (1, 5), num_symbols=2, **more)
    rows = rows_of(tmp_path / "data")["train"]
    many = sum(row["num_symbols"] > 2 for row in rows)
    assert counts["train"] == len(rows) and many < 500
    assert f"{500 - many} of 500 rows are missing of many_symbols: " in caplog.text


def test_problems_that_are_not_held_out_differ_as_texts(tmp_path):
    counts = generate("copying", tmp_path / "data", 500, progress=False)
    rows = [row for rows in rows_of(tmp_path / "data").values() for row in rows]
    assert len({row["problem"] for row in rows}) == len(rows) == sum(counts.values()) == 500
    assert all(row["problem"] == row["answer"] and 3 <= row["size"] <= 30 for row in rows)
    small = {"num_symbols": (1, 2), "sizes": (1, 2, 3), "progress": False}
    generate_grid("copying", tmp_path / "grid", **small)
    texts = {row["problem"] for row in rows_of(tmp_path / "grid")["test"]}
    assert texts == {"a", "aa", "aaa", "ab", "ba", "aab", "aba", "baa", "abb", "bab", "bba"}


@pytest.mark.slow
def test_killed_workers_lose_nothing(tmp_path, caplog):
    settings = {"sizes": (1, 8), "num_symbols": 2, "alpha": 1.0, "progress": False}
    (tmp_path / "deaths").mkdir()
    task = DeadlyTargets(tmp_path / "deaths")
    generate(task, tmp_path / "data", 200, **settings, num_workers=3)
    assert "worker process(es) died" in caplog.text
    generate("propositional", tmp_path / "whole", 200, **settings)
    assert files_of(tmp_path / "data") == files_of(tmp_path / "whole")
