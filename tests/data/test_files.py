"""Single files of rows: what is wrong with them is said, with the place."""

import gzip
import json

import pytest
from pyarrow import compress
from row_files import write

from hf_alpha.data.files import _look_through, check_header, read_files
from hf_alpha.data.rows import load
from hf_alpha.io.records import DEEPEST
from hf_alpha.modeling.names_in_text import NameFinder

FINDER = NameFinder({"variable": {"pattern": "[a-z][0-9]*"}})
ROWS = [{"source": f"add x{n}", "target": "x"} for n in range(3)]


def read_pairs(place, **options):
    return load(place, source="source", target="target", finder=FINDER, **options)


BAD_FILES = {
    "empty.csv": (b"", "empty.csv holds no row"),
    "empty.jsonl": (b"\n", "empty.jsonl holds no row"),
    "header.csv": (b"source,target\n", "header.csv holds no row"),
    "short.csv": (b"source,target\nx,y\nx\n", r"row 1: the column 'target' holds nothing: give"),
    "long.csv": (b"source,target\nf(x,y),y\n", "header has 2 cells, the first row 3: put a text"),
    "later.csv": (b"source,target\nx,y\nf(x,y),y\n", r"later.csv cannot be read: .* line 3, saw 3"),
    "quote.tsv": (b'source\ttarget\nx\ty\n"x\ty\nx\ty\n"x\ty\n',
                  "quote.tsv cannot be read: line 3: a double quote begins a cell .* to line 5"),
    "later.tsv": (b'source\ttarget\n"x\nx"\ty\n"x\ty\nx\ty\n"x\ty\n',
                  "later.tsv cannot be read: line 4: a double quote begins a cell .* to line 6"),
    "latin.csv": ("source,target\nx,y\né,y\n".encode("latin-1"),
                  "latin.csv, line 3: byte 0xe9 at 18 of the file is no UTF-8: .*: latin-1`"),
    "accents.csv": ("source,target\né,y\n".encode() + b"\xe9,y\n",
                    "accents.csv, line 3: byte 0xe9 at 19 of the file is no UTF-8"),
    "latin.jsonl": ('{"source": "x", "target": "é"}'.encode("latin-1"),
                    "latin.jsonl, line 1: byte 0xe9 at 27 of the file is no UTF-8"),
    "latin.csv.gz": (gzip.compress("source,target\nx,é\n".encode("latin-1")), "line 2: byte 0xe9"),
    "utf-16.csv": ("source,target\nx,y\n".encode("utf-16"), "line 1: .*such as `encoding: utf-16`"),
    "broken.jsonl": (b'{"source": "x", "target": "y"}\n{"source": "x", "tar\n',
                     "broken.jsonl, line 2 is no JSON: .*: give an object in each line"),
    "words.jsonl": (b"hello\n", "words.jsonl, line 1 is no JSON"),
    "null.jsonl": (b'{"source": "x", "target": "y"}\n{"source": null, "target": "y"}',
                   "null.jsonl, row 1: the column 'source' holds nothing: give a text"),
    "space.csv": (b"source,target\nx, \n", "space.csv, row 0: the column 'target' holds ' ': give"),
    "number.jsonl": (b'{"source": "x", "target": "y"}\n{"source": "x", "target": 5}',
                     "number.jsonl, row 1: the column 'target' holds 5, which is no text"),
    "damaged.parquet": (b"PAR1 no PAR1", "damaged.parquet cannot be read: "),
    "packed.jsonl.zst": (b"{}", "packed.jsonl.zst cannot be read: .*Unknown frame descriptor"),
    "cut.jsonl.zst": (compress(b"{}", "zstd", asbytes=True)[:-1], "read: Truncated compressed"),
    "cut.csv.zst": (compress(b"source,target\nx,y\n" * 9999, "zstd", asbytes=True)[:-9],
                    "cut.csv.zst cannot be read: Truncated compressed stream"),
    "latin.csv.zst": (compress(b"source,target\nx,\xe9\n", "zstd", asbytes=True),
                      "line 2: byte 0xe9"),
    "packed.parquet.gz": (gzip.compress(b"PAR1"), "packed.parquet.gz is of no kind"),
    "text.txt": (b"x\ny\n", r"text.txt is of no kind .*\.csv, .*; plain text has no columns"),
    "twice.csv": (b"source,n,n,target,source\nx,1,2,y,z\n",
                  "twice.csv has the column 'source' more than once: rename all but the one to be"),
    "twice.jsonl": (b'{"source": "x", "target": "y", "source": "z"}', "twice.jsonl.* twice"),
    "list.jsonl": (b'{"source": "x", "target": "y"}\n[]\n{"so', "list.jsonl, line 3 is no JSON"),
    "twice.json": (b'[{"source": "x", "target": "y", "source": "z"}]', "twice.json.* twice"),
    "quote.csv": (b'source,target\nx,y\nx,"y\n', "quote.csv cannot be read: .* EOF inside string"),
    "cut.csv.gz": (gzip.compress(b"source,target\nx,y\n" * 9)[:-20], "cut.csv.gz cannot be read: "),
    "cut.jsonl.gz": (gzip.compress(b"{}")[:-5], "cut.jsonl.gz cannot be read: "),
    "plain.jsonl.gz": (b"{}", "plain.jsonl.gz cannot be read: Not a gzipped file"),
    "deep.jsonl": (b'{"source": "x", "target": "y"}\n{"source": "\\"", "n": ' + b"[" * 100_000,
                   "deep.jsonl, line 2 is no JSON: maximum recursion depth exceeded"),
    "deep.json": (b'[{"source": "x", "target": "y", "n": \n' + b"[\n" * 100_000, "deep.json"),
    "digits.jsonl": (b'{"source": "x", "target": ' + b"9" * 5000 + b"}", "digits.jsonl"),
    "numbers.json": (b"[1, 2]", "numbers.json"),
    "table.xlsx": (b"x\ny\n", r"table.xlsx is of no kind that rows are read from: give one of"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_with_the_place(name, tmp_path):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_pairs(tmp_path / name)
    with pytest.raises(ValueError, match=name):
        list(read_pairs(tmp_path / name, streaming=True))


def test_brackets_in_texts_are_not_deep(tmp_path):
    """Nor are many rows, or what an escaped quotation mark or backslash stands before."""
    texts = ["[" * 500, '"[' * 500, "\\" * 3 + '"[' * 500, "[" * 500 + "\\"]
    rows = [{"source": text, "target": "x", "n": [{"m": []}]} for text in texts * 200]
    for name in ("a.jsonl", "a.json"):
        assert read_pairs(write(tmp_path / name, rows))["problem"] == texts * 200
    # A text over several parts of a file; and one without an end, which ends with its line.
    (file := tmp_path / "long.jsonl").write_text(json.dumps({"source": "[" * (3 << 20)}))
    _look_through(file, None)
    file.write_text('{"source": "x\n' + "[" * 101)
    with pytest.raises(ValueError, match=r"long\.jsonl: lists and .* nested more than 100"):
        _look_through(file, None)
    file.write_text("[" * DEEPEST)
    _look_through(file, None)


def test_lines_of_a_folder_with_brackets(tmp_path):
    (folder := tmp_path / "[a]").mkdir()
    (folder / "notes.txt").write_text("x\n")
    assert read_files(folder, {}, lines="line")["train"]["line"][:] == ["x"]


def test_a_date_or_an_escape_may_lie_over_the_border_of_parts(tmp_path):
    text = "x" * ((1 << 20) - len('{"n": "\\')) + '\\"' + "[" * (DEEPEST + 1)
    (tmp_path / "long.jsonl").write_text(f'{{"n": "{text}"}}')
    assert not _look_through(tmp_path / "long.jsonl", None)
    for before in (1, 6, 10):  # signs of the first part
        text = "x" * ((1 << 20) - len('{"n": "", "d": ') - before)
        (file := tmp_path / "long.jsonl").write_text(f'{{"n": "{text}", "d": "2010-05-01"}}')
        assert _look_through(file, None)


def test_every_file_of_a_folder_is_looked_through(tmp_path):
    """Of the second one it is said what is wrong, and where."""
    date, row = ({"source": source, "target": "x"} for source in ("2010-05-01", "x"))
    deep = '{"source": "x", "target": "y", "n": ' + "[" * DEEPEST + "]" * DEEPEST + "}\n"
    for first, content, message in [
        (date, deep, "2.jsonl: lists and mappings are nested more than"),
        (date, json.dumps(row) + '\n{"source": "x"', "2.jsonl, line 2 is no JSON"),
        (row, json.dumps(row) + '\n{"source": "x"', "2.jsonl, line 2 is no JSON"),
        (date, json.dumps(row) + "\n5\n", "2.jsonl cannot be read: line 2 holds 5 in place of"),
    ]:
        write(tmp_path / "1.jsonl", [first])
        (tmp_path / "2.jsonl").write_text(content)
        with pytest.raises(ValueError, match=message):
            read_pairs(tmp_path)
    (tables := tmp_path / "tables").mkdir()
    write(tables / "1.csv", [row])
    (tables / "2.csv").write_bytes(b"source,target\n\xe9,x\n")
    with pytest.raises(ValueError, match=r"2\.csv, line 2: byte 0xe9"):
        read_pairs(tables)


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_later_rows_are_checked_too(end, tmp_path):
    rows = [{"source": "x", "target": "x"}] * 1500 + [{"source": "x", "target": ""}]
    place = write(tmp_path / f"a.{end}", rows)
    for streaming in (False, True):
        with pytest.raises(ValueError, match=r"row 1500: the column 'target' holds nothing"):
            list(read_pairs(place, streaming=streaming))
    if end == "csv":
        with pytest.raises(ValueError, match="no encoding 'klingon': give one such as latin-1"):
            read_pairs(place, encoding="klingon")


def test_columns_that_are_empty_for_long_are_read_like_others(tmp_path):
    """Where Arrow has no type for one that is used, the place is said; others are left out."""
    long = {"source": "x" + " ." * 100_000, "target": "x"}
    rows = [{**long, "n": None, "m": None} for _ in range(60)] + [{**ROWS[0], "n": "a", "m": 1}]
    place = write(tmp_path / "a.jsonl", [*rows, {**ROWS[0], "m": "b"}])
    found = read_pairs(place)
    assert len(found) == 62 and found[60]["problem"] == ROWS[0]["source"]
    read = read_files(place, dict.fromkeys(["source", "target"], ""))["train"]
    assert read.column_names == ["source", "target", "n"] and read["n"][60] == "a"
    place = write(tmp_path / "b.jsonl", [*rows, {**ROWS[0], "target": ["x"]}])
    told = (
        r"b\.jsonl, line 62: the column 'target' holds \['x'\], and 'x' before \(b.jsonl, line 1\)"
    )
    with pytest.raises(ValueError, match=told):
        read_pairs(place)


@pytest.mark.parametrize("streaming", [False, True])
def test_texts_that_look_like_dates_stay_texts(tmp_path, streaming):
    dates = [{"source": "2010-05-01", "target": "2010-05-01 10:00", "n": n} for n in range(3)]
    words = [{"source": "May", "target": "none", "n": 3}]
    (tmp_path / "list.json").write_text(json.dumps(dates, indent=1))
    places = [tmp_path / "list.json"]
    places += [write(tmp_path / name, dates) for name in ("a.jsonl", "a.jsonl.gz", "a.csv")]
    places += [
        write(tmp_path / "b.jsonl", dates + words),
        write(tmp_path / "c.jsonl", words + dates),
    ]
    places += [write(tmp_path / "d.jsonl", dates, "utf-16")]
    (tmp_path / "two").mkdir()
    places += [write(tmp_path / "two" / "1.jsonl", words).parent]
    write(tmp_path / "two" / "2.jsonl", dates)
    for place in places:
        encoding = "utf-16" if place.name == "d.jsonl" else None
        found = read_pairs(place, streaming=streaming, encoding=encoding)
        texts = {(row["problem"], row["answer"]) for row in found.with_format(None)}
        more = {("May", "none")} if place.name in ("b.jsonl", "c.jsonl", "two") else set()
        assert texts == {("2010-05-01", "2010-05-01 10:00")} | more, place
    later = write(tmp_path / "later.jsonl", [{"source": "2010-05-01"}, *dates])
    columns = read_files(later, {}, streaming=False)["train"].column_names
    assert columns == ["source", "target", "n"]  # also those that the first row lacks
    (tmp_path / "splits").mkdir()
    for split, rows in (("train", words), ("test", dates)):
        write(tmp_path / "splits" / f"{split}.jsonl", rows)
    found = read_pairs(tmp_path / "splits", split="test", streaming=streaming)
    assert next(iter(found.with_format(None)))["problem"] == "2010-05-01"


@pytest.mark.parametrize("end", [".jsonl", ".parquet"])
def test_all_files_of_a_folder_count_or_none(tmp_path, end):
    """`datasets` leaves files out whose names say no split, if those of others do."""
    write(tmp_path / f"part1{end}", ROWS)
    write(tmp_path / f"part2{end}", ROWS)
    for hidden in (".cache", "__old"):
        (tmp_path / hidden).mkdir()
        write(tmp_path / hidden / f"train{end}", ROWS)
    (tmp_path / "config.json").write_text("{}")
    assert len(read_pairs(tmp_path)) == 2 * len(ROWS)
    assert len(read_pairs(tmp_path, encoding="latin-1")) == 2 * len(ROWS)  # of a kind that has one
    write(tmp_path / f"part3-test{end}", ROWS)
    with pytest.raises(ValueError, match=rf"split part1{end} is: .* part3-test{end} \(test\)"):
        read_pairs(tmp_path)
    header = f"---\nconfigs:\n- config_name: default\n  data_files: part1{end}\n---\n"
    (tmp_path / "README.md").write_text(header)
    assert len(read_pairs(tmp_path)) == len(ROWS)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16-le", "UTF-16BE", "utf-32-le"])
def test_a_byte_order_mark_is_no_part_of_a_text(encoding, streaming, tmp_path):
    """Where the encoding says the order of bytes too, as that of Excel's "Unicode text" is."""
    for mark in ("", "\ufeff"):
        for name, text in {
            "a.csv": "source,target\nadd x0,é\n",
            "a.tsv": "source\ttarget\nadd x0\té\n",
            "a.jsonl": '{"source": "add x0", "target": "é"}\n',
        }.items():
            (tmp_path / name).write_bytes(f"{mark}{text}".encode(encoding))
            (row,) = read_pairs(tmp_path / name, streaming=streaming, encoding=encoding)
            assert (row["problem"], row["answer"]) == ("add x0", "é")
        (tmp_path / "a.txt").write_bytes(f"{mark}x\n".encode(encoding))
        lines = read_files(tmp_path / "a.txt", {}, encoding=encoding, lines="line")["train"]
        assert lines["line"][:] == ["x"]


def test_a_cell_may_be_longer_than_the_module_csv_takes(tmp_path):
    """131,072 characters are its limit, which no other reader of tables has."""
    (tmp_path / "long.csv").write_text(f"source,target\n{'x ' * 100_000},y\n")
    assert len(read_pairs(tmp_path / "long.csv")[0]["problem"]) == 200_000


@pytest.mark.parametrize("streaming", [False, True])
def test_a_csv_may_have_semicolons_tabs_or_bars(streaming, tmp_path):
    """Excel writes semicolons where numbers have a comma; the header says which sign it is."""
    rows = [("add x1, x2; x3", "x|\ty"), ("x", "y, z")]
    for number, sign in enumerate(",;\t|"):
        cells = [("n", "source", "target"), *(("1", *row) for row in rows)]
        lines = [sign.join(f'"{cell}"' for cell in line) for line in cells]
        lines[0] = "\ufeff\r\n" + lines[0].replace('"', "")
        (tmp_path / f"{number}.csv").write_text("\r\n\r\n".join(lines), newline="")
        read = read_pairs(tmp_path / f"{number}.csv", streaming=streaming)
        assert [(row["problem"], row["answer"]) for row in read] == rows
        # of a file with one column more, such a line is no cell
        told = [f'"sep={sign}"' if number % 2 else f"SEP={sign}", *lines]
        told[1] = told[1].removeprefix("\ufeff\r\n")
        for name, encoding in (("told.csv", "utf-8-sig"), ("told.tsv", "utf-16")):
            file = tmp_path.with_name(name)
            file.write_bytes("\r\n".join(told).encode(encoding))
            read = read_pairs(file, streaming=streaming, encoding=encoding)
            assert [(row["problem"], row["answer"]) for row in read] == rows
    together = read_pairs(tmp_path, streaming=streaming)
    assert [(row["problem"], row["answer"]) for row in together] == 4 * rows
    both = {"source": "", "target": ""}
    for columns in (both, {}):  # whose rows may lack a text
        assert check_header(tmp_path / "1.csv", columns, None) == ";"
    kept = read_files(tmp_path / "1.csv", both, streaming=True, others=True)["train"]
    assert next(iter(kept)) == {"n": "1", "source": rows[0][0], "target": rows[0][1]}
    (tmp_path / "other.csv").write_text("question;answer\nx;y\n")
    with pytest.raises(ValueError, match="it has 'question', 'answer'; say which one"):
        read_pairs(tmp_path / "other.csv", streaming=streaming)
