"""Every command that takes a file takes the same files, and the same columns of them."""

import gzip
import json
import re
import shutil

import own_process
import pytest
from commands import hf_alpha
from row_files import write

from hf_alpha.data.formats import FILES
from hf_alpha.tasks.text.swapping import swapping_pairs

KINDS = [
    "a.csv", "a.csv.gz", "a.CSV", "a.tsv", "a.Tsv.GZ", "a.json", "a.json.gz", "a.jsonl",
    "a.JSONL.gz", "a.csv.ZST", "a.ndjson", "a.parquet", "a.arrow", "a.Parquet",
]  # fmt: skip
ROWS = [
    {"number": n, "asked": row["source"], "answered": row["target"]}
    for n, row in enumerate(swapping_pairs(8))
]
COLUMNS = ["data.source=asked", "data.target=answered"]
TINY = [
    "model.d_model=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.encoder_attention_heads=2", "model.decoder_attention_heads=2",
    "model.encoder_ffn_dim=16", "model.decoder_ffn_dim=16", "training.max_steps=1",
]  # fmt: skip
COMMANDS = ["solve", "certify", "evaluate", "train", "compare"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the rows, after a step."""
    folder = tmp_path_factory.mktemp("files")
    done = run("train", write(folder / "rows.jsonl", ROWS), folder / "model")
    assert done.code == 0, done.err
    return folder / "model"


def run(command, file, out, model=None, source="asked"):
    """Run a command with a file; training names its columns in the recipe, others by options."""
    columns = [f"data.source={source}", COLUMNS[1]]
    recipe = ["text/swap", *TINY, *columns, f"data.train={file}", "data.validation=null"]
    return hf_alpha(*{
        "solve": ["solve", "--model", model, "--file", file, "--source", source],
        "certify": ["certify", file, "--source", source, "--names", "[a-z]"],
        "evaluate": ["evaluate", model, "--data", file, "--source", source, "--target",
                     "answered", "--covariance", 0, "--out", out],
        "train": ["train", *recipe, f"training.output_dir={out}"],
        "compare": ["compare", *recipe, f"data.test={file}", "data.validation=0.5", "--encodings",
                    "learned", "--covariance", 0, "--quiet", "--out", out],
    }[command])  # fmt: skip


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("certify", KINDS),
        ("solve", KINDS[::4]),  # one of each: table, text, JSON, Arrow
        pytest.param("solve", KINDS, marks=pytest.mark.slow),
    ],
)
def test_rows_of_every_kind_of_file_are_the_same(tmp_path, model, command, kinds):
    first, *others = (
        run(command, write(tmp_path / kind, ROWS), tmp_path / "out", model) for kind in kinds
    )
    assert first.code == 0 and "asked" not in first.out, first
    assert first.out.count("\n  answer ") == len(ROWS) or first.out.startswith("8 texts, ")
    assert [other for other in others if other != first] == []


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["evaluate", "train", "compare"])
def test_models_are_trained_and_tested_with_every_kind_of_file(tmp_path, model, command, kind):
    done = run(command, write(tmp_path / kind, ROWS), tmp_path / "out", model)
    assert done.code == 0, done.err


def test_rows_of_training_are_told_under_any_names(tmp_path, model):
    """Wherever the model is, and by a model that goes on from it, too."""
    released = tmp_path / "released"
    assert hf_alpha("release", model, released).code == 0
    (released / "recipe.yaml").write_text(
        (released / "recipe.yaml").read_text().replace("rows.jsonl", "nowhere.jsonl")
    )
    asked = re.sub(r"\b[a-z]\b", lambda name: chr((ord(name[0]) - 96) % 26 + 97), ROWS[0]["asked"])
    other = {"asked": "swap a a : F a", "answered": "F a"}
    rows = [ROWS[0] | {"asked": asked}, other, ROWS[2]]
    file = write(tmp_path / "test.csv", [{"asked": "", "answered": "", **row} for row in rows])
    told = "? 2 of 3 rows are renamings of training's: rows 0, 2\n"
    assert told in run("evaluate", file, tmp_path / "one", released).out
    more = write(tmp_path / "more.csv", [other | {"number": 9}])
    done = hf_alpha("train", "text/swap", *TINY[-1:], *COLUMNS, f"data.train={more}",
                    "data.validation=null", "model=null", f"checkpoint={released}",
                    f"training.output_dir={tmp_path / 'tuned'}")  # fmt: skip
    assert done.code == 0, done.err
    assert told.replace("2 of 3", "3 of 3").replace("0, 2", "0, 1, 2") in (
        run("evaluate", file, tmp_path / "two", tmp_path / "tuned").out
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_wrong_with_a_file_is_told_before_a_model_is_loaded(tmp_path, model, command):
    broken = shutil.copytree(model, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"no weights")
    for kind in ("a.csv", "a.CSV.gz", "a.parquet", "a.json"):
        file = write(tmp_path / kind, ROWS)
        done = run(command, file, tmp_path / "out", broken, source="ask")
        assert done.code in (1, 2) and f"{file}" in done.err, done
        if command == "certify" and kind == "a.json":
            assert "row 0 has no text in `ask`: it has number, asked, answered" in done.err
        else:
            assert "has no column 'ask': it has " in done.err and "`--source`" in done.err, done
        assert "no weights" not in done.err and "safetensors" not in done.err, done
    table = b"asked,answered\nx,\xe9\n"
    for name, content, message in [
        ("windows.csv", table, "windows.csv, line 2: byte 0xe9 at 17 of the file is no UTF-8: say"),
        ("empty.csv", b"", "empty.csv holds no row: it is empty"),
    ]:
        (tmp_path / name).write_bytes(content)
        done = run(command, tmp_path / name, tmp_path / "out", broken)
        assert message in done.err and done.code in (1, 2), done
    if command == "certify":
        (tmp_path / "empty.jsonl").write_bytes(b"\n")
        done = run(command, tmp_path / "empty.jsonl", tmp_path / "out", broken)
        assert "empty.jsonl holds no text: it is empty" in done.err and done.code == 2, done
    for name in ("a.xlsx", "a.smi", "a.csv.bz2"):
        (tmp_path / name).write_bytes(b"x")
        done = run(command, tmp_path / name, tmp_path / "out", broken)
        assert f"{tmp_path / name} is of no kind that rows are read from" in done.err
        assert all(end in done.err for end in FILES), done.err


def test_lines_and_texts_of_json_are_read_too(tmp_path):
    lines, array = b"a\n\n& a b\n", b'[\n"a",\n {"problem": "& a b"}]'
    records = b'"a"\n\n{"problem": "& a b"}'
    files = dict.fromkeys(["a.txt", "a.TXT", "a", "a.md"], lines)
    files |= {"a.txt.gz": gzip.compress(lines), "a.json": array, "a.jsonl": array}
    for name, content in {**files, "b.json": records, "b.jsonl": records}.items():
        (tmp_path / name).write_bytes(content)
        done = hf_alpha("solve", "--task", "propositional", "--file", tmp_path / name)
        shown = [line for line in done.out.splitlines() if "found by" not in line]
        assert shown == ["a", "  correct    a1", "& a b", "  correct    a1b1"], name
    (tmp_path / "a.json").write_text('["a", 5, {"problem": "b"}]')
    done = hf_alpha("solve", "--file", tmp_path / "a.json")
    assert done.out.count("correct") == 2 and "row 1: write a string or a row" in done.err
    (tmp_path / "a.json").write_text('["a", ')
    assert "a.json is no JSON" in hf_alpha("solve", "--file", tmp_path / "a.json").err
    (tmp_path / "cut.txt.gz").write_bytes(b"a\n")
    done = hf_alpha("solve", "--file", tmp_path / "cut.txt.gz")
    assert "cut.txt.gz cannot be read: Not a gzipped file" in done.err
    done = hf_alpha("certify", tmp_path / "none.jsonl", "--names", "[a-z]")
    assert done.err.count("none.jsonl") == 1 and "No such file or directory" in done.err


def test_a_format_of_the_users_own_is_read_by_every_command(tmp_path, monkeypatch):
    """`data.format` of the recipe, beside a model that was trained here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "arrows_of_mine.py").write_text(
        "def read(path):\n"
        "    for line in open(path):\n"
        "        yield dict(zip(['asked', 'answered'], line.strip().split(' -> ')))\n"
    )
    file = tmp_path / "pairs.csv"
    file.write_text("".join(f"{row['asked']} -> {row['answered']}\n" for row in ROWS))
    own = ["text/swap", *TINY, *COLUMNS, "data.format=arrows_of_mine:read", f"data.train={file}"]
    done = hf_alpha("train", *own, "data.validation=null", "training.output_dir=mine")
    assert done.code == 0, done.err
    assert run("evaluate", file, tmp_path / "report", "mine").code == 0
    done = hf_alpha("solve", "--model", "mine", "--file", file)
    assert done.code == 0 and done.out.count("\n  answer ") == len(ROWS), done
    done = hf_alpha("solve", "--model", "mine", "--file", file, "--out", "answers.csv")
    assert done.out == "8 texts: 8 answered; written to answers.csv\n", done


HELD = """
import re, sys
from hf_alpha.cli import main
try:
    main()
except SystemExit:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    """Of `solve`, which writes a table in the end: kilobytes held at most, in a fresh process."""
    held = []
    for count in (2000, 30_000):
        rows, out = tmp_path / f"{count}.jsonl", tmp_path / f"{count}.csv"
        problems = (f"{'abcde'[i % 5]} & !{'abcde'[i % 3]}" for i in range(count))
        rows.write_text("".join(json.dumps({"problem": one}) + "\n" for one in problems))
        done = own_process.run("-c", HELD, "solve", "--file", rows, "--out", out)
        assert len(out.read_text().splitlines()) == count + 1
        held.append(int(done.stdout.splitlines()[-1]))
    assert held[1] < held[0] + 10_000
