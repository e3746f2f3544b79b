import csv
import gzip
import json
import random
import re
import string
import sys
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict, IterableDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.data.files import _check_depth
from hf_alpha.data.keys import canonical_text, pair_key
from hf_alpha.data.pairs import hold_out, renamings
from hf_alpha.data.rows import load, problems, problems_in
from hf_alpha.modeling.names_in_text import MarkedText, NameFinder
from hf_alpha.own_code import import_functions


def read_pairs(place, source="source", target="target", **options):
    return load(place, source=source, target=target, **options)


def overlap(train, validation, finder):
    return renamings(train, problems_in(validation, ""), finder)


FINDER = NameFinder({"variable": {"pattern": "[a-z][0-9]*"}})
ROWS = [
    {"source": "add x , y2", "target": 'y2 + "x"', "more": 1.5},
    {"source": "NA", "target": "007", "more": None},
    {"source": "größe é\nx", "target": "null", "more": 2.0},
]
FOUND = {"problem": [r["source"] for r in ROWS], "answer": [r["target"] for r in ROWS]}


def write(path: Path, rows: list[dict], encoding: str = "utf-8") -> Path:
    if ".parquet" in path.name:
        Dataset.from_list(rows).to_parquet(path)
        return path
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding=encoding, newline="") as file:
        if ".json" in path.name:
            text = [json.dumps(row, ensure_ascii=False) for row in rows]
            file.write(f"[{', '.join(text)}]" if ".jsonl" not in path.name else "\n".join(text))
        else:
            tab = "excel-tab" if ".tsv" in path.name else "excel"
            writer = csv.DictWriter(file, list(rows[0]), dialect=tab)
            writer.writeheader()
            writer.writerows(rows)
    return path


def rows_of(dataset) -> dict[str, list]:
    return Dataset.from_list(list(dataset)).to_dict()


@pytest.mark.parametrize("streaming", [False, True])
def test_all_files_give_the_same_pairs(tmp_path, streaming):
    """Texts as they stand: no numbers, no missing values; a byte order mark does not matter."""
    names = [
        "a.csv",
        "a.tsv",
        "a.jsonl",
        "a.json",
        "a.parquet",
        "a.csv.gz",
        "a.tsv.gz",
        "a[1].jsonl",
    ]
    places = [write(tmp_path / name, ROWS) for name in [*names, "b.jsonl.gz"]]
    places += [
        write(tmp_path / f"bom{end}", ROWS, "utf-8-sig") for end in (".csv", ".jsonl", ".tsv")
    ]
    for end in (".csv", ".tsv", ".jsonl", ".parquet", ".jsonl.gz"):
        (folder := tmp_path / f"folder{end}").mkdir()
        write(folder / f"train{end}", ROWS)
        (folder / "README.md").write_text("what this is")
        places.append(folder)
    Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "disk"))
    DatasetDict({"train": Dataset.from_list(ROWS)}).save_to_disk(str(tmp_path / "dict"))
    for place in [*places, tmp_path / "disk", tmp_path / "dict"]:
        found = read_pairs(place, finder=FINDER, streaming=streaming)
        assert isinstance(found, IterableDataset) == streaming
        assert rows_of(found) == FOUND, place
    for encoding in ("latin-1", "utf-16"):
        for end in (".csv", ".tsv", ".jsonl"):
            place = write(tmp_path / f"{encoding}{end}", ROWS, encoding)
            found = read_pairs(place, finder=FINDER, streaming=streaming, encoding=encoding)
            assert rows_of(found) == FOUND, place


def test_columns_and_splits(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for number, split in enumerate(("train", "validation")):
        write(folder / f"{split}.csv", [{"answer": f"q{number}", "problem": "r", "source": "s"}])
    found = read_pairs(folder, source="answer", target="problem", finder=FINDER, split="train")
    assert found.to_dict() == {"problem": ["q0"], "answer": ["r"]}
    with pytest.raises(ValueError, match=r"choose a split of .*data: it has train, validation"):
        read_pairs(folder, source="answer", target="problem", finder=FINDER)
    with pytest.raises(ValueError, match=r"no split 'test' in .*data: it has train, validation"):
        read_pairs(folder, source="answer", target="problem", finder=FINDER, split="test")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        place = write(tmp_path / name, [{"src": "x", "target": "y", "names": "x"}])
        for streaming in (False, True):
            with pytest.raises(
                ValueError,
                match=r"a\..* no column 'source': it has 'src', 'target', 'names'; say which one "
                r"it is by `data\.source` in the recipe, or rename it in the data$",
            ):
                read_pairs(place, finder=FINDER, streaming=streaming)
        other = NameFinder({"a": {"column": "spans"}})
        with pytest.raises(
            ValueError, match=r"a\..* no column 'spans': it has 'src'.* by `symbols\.a\.column` in"
        ):
            read_pairs(place, source="src", finder=other)


def test_a_dataset_of_the_hub(hub, tmp_path, monkeypatch):
    for config in ("small", "large"):
        Dataset.from_list([{"q": f"{config} x", "a": "x"}]).push_to_hub("me/pairs", config)
    place = {"path": "me/pairs", "config": "large"}
    found = read_pairs(place, source="q", target="a", finder=FINDER)
    assert found.to_dict() == {"problem": ["large x"], "answer": ["x"]}
    with pytest.raises(FileNotFoundError, match="me/nothing is neither a file or folder here nor"):
        read_pairs("me/nothing", finder=FINDER)
    monkeypatch.chdir(tmp_path.parent)
    for name in ("nowhere", "err/nope.jsonl", f"{tmp_path.name}/nope"):
        with pytest.raises(FileNotFoundError, match=f"no file or folder {name}; a dataset of the"):
            read_pairs(name, finder=FINDER)
    place = write(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(ValueError, match=r"a.jsonl is no dataset of the Hub: .* 'large'"):
        read_pairs({"path": place, "config": "large"}, finder=FINDER)


BAD_FILES = {
    "empty.csv": (b"", "empty.csv holds no row"),
    "empty.jsonl": (b"\n", "empty.jsonl holds no row"),
    "header.csv": (b"source,target\n", "header.csv holds no row"),
    "short.csv": (b"source,target\nx,y\nx\n", r"row 1: the column 'target' holds nothing: give"),
    "long.csv": (b"source,target\nf(x,y),y\n", "header has 2 cells, the first row 3: put a text"),
    "later.csv": (b"source,target\nx,y\nf(x,y),y\n", r"later.csv cannot be read: .* line 3, saw 3"),
    "latin.csv": ("source,target\nx,y\né,y\n".encode("latin-1"),
                  "latin.csv, line 3: byte 0xe9 at 18 of the file is no UTF-8: .*: latin-1`"),
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
    "text.txt": (b"x\ny\n", r"text.txt is of no kind .*\.csv, .*; plain text has no columns"),
    "twice.csv": (b"source,n,n,target,source\nx,1,2,y,z\n",
                  "twice.csv has the column 'source' more than once: rename all but the one to be"),
    "twice.jsonl": (b'{"source": "x", "target": "y", "source": "z"}', "twice.jsonl.* twice"),
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
        read_pairs(tmp_path / name, finder=FINDER)
    with pytest.raises(ValueError, match=name):
        list(read_pairs(tmp_path / name, finder=FINDER, streaming=True))


def test_brackets_in_texts_are_not_deep(tmp_path):
    """Nor are many rows, or what an escaped quotation mark or backslash stands before."""
    texts = ["[" * 500, '"[' * 500, "\\" * 3 + '"[' * 500, "[" * 500 + "\\"]
    rows = [{"source": text, "target": "x", "n": [{"m": []}]} for text in texts * 200]
    for name in ("a.jsonl", "a.json"):
        assert read_pairs(write(tmp_path / name, rows), finder=FINDER)["problem"] == texts * 200
    # A text over several parts of a file; and one without an end, which ends with its line.
    (file := tmp_path / "long.jsonl").write_text(json.dumps({"source": "[" * (3 << 20)}))
    _check_depth(file, None)
    file.write_text('{"source": "x\n' + "[" * 101)
    with pytest.raises(ValueError, match=r"long\.jsonl: lists and .* nested more than 100"):
        _check_depth(file, None)


def test_bad_folders_encodings_and_rows_that_are_streamed(tmp_path):
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=r"bare holds no file that rows are read from"):
        read_pairs(tmp_path / "bare", finder=FINDER)
    (tmp_path / "mixed").mkdir()
    for name in ("a.csv", "b.jsonl"):
        write(tmp_path / "mixed" / name, ROWS)
    with pytest.raises(ValueError, match=r"mixed holds files of several kinds \(csv, json\)"):
        read_pairs(tmp_path / "mixed", finder=FINDER)
    with pytest.raises(
        ValueError, match="there is no encoding 'klingon': give one such as latin-1"
    ):
        read_pairs(tmp_path / "mixed" / "a.csv", finder=FINDER, encoding="klingon")
    rows = [{"source": "x", "target": "x"}] * 1500 + [{"source": "x", "target": ""}]
    for place in (write(tmp_path / "a.csv", rows), write(tmp_path / "a.parquet", rows)):
        with pytest.raises(ValueError, match=r"row 1500: the column 'target' holds nothing"):
            read_pairs(place, finder=FINDER)
        streamed = read_pairs(place, finder=FINDER, streaming=True)
        with pytest.raises(ValueError, match=r"row 1500: the column 'target' holds nothing"):
            list(streamed)


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
    finder = NameFinder({"x": "[a-z]"})
    for place in places:
        encoding = "utf-16" if place.name == "d.jsonl" else None
        found = read_pairs(place, finder=finder, streaming=streaming, encoding=encoding)
        texts = {(row["problem"], row["answer"]) for row in found.with_format(None)}
        more = {("May", "none")} if place.name in ("b.jsonl", "c.jsonl", "two") else set()
        assert texts == {("2010-05-01", "2010-05-01 10:00")} | more, place
    (tmp_path / "splits").mkdir()
    for split, rows in (("train", words), ("test", dates)):
        write(tmp_path / "splits" / f"{split}.jsonl", rows)
    found = read_pairs(tmp_path / "splits", finder=finder, split="test", streaming=streaming)
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
    assert len(read_pairs(tmp_path, finder=FINDER)) == 2 * len(ROWS)
    write(tmp_path / f"part3-test{end}", ROWS)
    with pytest.raises(ValueError, match=rf"split part1{end} is: .* part3-test{end} \(test\)"):
        read_pairs(tmp_path, finder=FINDER)
    header = f"---\nconfigs:\n- config_name: default\n  data_files: part1{end}\n---\n"
    (tmp_path / "README.md").write_text(header)
    assert len(read_pairs(tmp_path, finder=FINDER)) == len(ROWS)


def spans_of(dataset) -> list[list[tuple[str, str]]]:
    texts = problems(next(iter(dataset.with_format(None).iter(100))))
    assert all(type(text) is MarkedText for text in texts)
    return [[(text[s.start : s.stop], s.symbol_class) for s in text.spans] for text in texts]


@pytest.mark.parametrize("streaming", [False, True])
def test_names_by_a_column(tmp_path, streaming):
    finder = NameFinder({"person": {"column": "who"}, "number": "[0-9]+"})
    source = "Ann met Bob 2 times: Annex"
    for listed in (["Bob", "Ann"], [[8, 11], [0, 3]]):
        for end in (".jsonl", ".parquet"):
            rows = [{"source": source, "target": "Bob", "who": w} for w in (listed, [])]
            place = write(tmp_path / f"a{end}", rows)
            found = read_pairs(place, finder=finder, streaming=streaming)
            assert spans_of(found) == [
                [("Ann", "person"), ("Bob", "person"), ("2", "number")], [("2", "number")],
            ]  # fmt: skip
            assert list(next(iter(found))) == ["problem", "answer", "names"]
    rows = [{"source": source, "target": "Bob", "who": w} for w in ("Ann met", "")]
    found = read_pairs(write(tmp_path / "a.csv", rows), finder=finder, streaming=streaming)
    assert spans_of(found) == [[("Ann met", "person"), ("2", "number")], [("2", "number")]]
    assert problems({"problem": ["x"]}) == ["x"]


@pytest.mark.parametrize(
    ("who", "message"),
    [
        (5, "holds 5: give a list of names, a list of their"),
        (None, "holds nothing: give a list of names"),
        ([1, 2], r"holds \[1, 2\]: give a list"),
        ([[0, 1, 2]], "give a list"),
        (["Nina"], "has the name 'Nina', which is no word of the source 'Ann met Bob'"),
        (["An"], "has the name 'An', which is no word"),
        ([[0, 30]], "is empty, overlaps another one or lies outside the text of 11 characters"),
        ([""], "an empty name|holds"),
    ],
)
def test_columns_without_names_are_refused(who, message, tmp_path):
    finder = NameFinder({"person": {"column": "who"}})
    rows = [{"source": "Ann met Bob", "target": "Bob", "who": w} for w in (["Ann"], who)]
    place = write(tmp_path / "a.jsonl", rows)
    with pytest.raises(ValueError, match=f"a.jsonl, row 1: .*({message})"):
        read_pairs(place, finder=finder)


FUNCTIONS = """
def calls(text):
    if text == "boom":
        raise RuntimeError("no formula")
    return [(i - 1, i) for i, c in enumerate(text) if c == "("]

number = 3
"""


def test_names_by_a_function(tmp_path, monkeypatch):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)  # as for a user who starts the command beside the module
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_functions", raising=False)
    rules = {"function": {"function": "own_functions:calls"}, "variable": "[x-z]"}
    place = write(tmp_path / "a.jsonl", [{"source": "f(g(x))", "target": "x"}])
    finder = NameFinder(rules)
    with pytest.raises(ValueError, match="'own_functions:calls', which is not imported"):
        read_pairs(place, finder=finder)  # others may have named it
    import_functions(finder)
    found = read_pairs(place, finder=finder)
    assert spans_of(found) == [[("f", "function"), ("g", "function"), ("x", "variable")]]
    assert finder.functions["function"]("h(") == [(0, 1)]
    place = write(tmp_path / "b.jsonl", [{"source": "boom", "target": "x"}])
    with pytest.raises(ValueError, match=r"b.jsonl, row 0: RuntimeError: no formula"):
        read_pairs(place, finder=finder)
    for path, message in [
        (
            "own_functions:call",
            "'function': the function 'own_functions:call': own_functions has no",
        ),
        (
            "own_functions:number",
            "the function 'own_functions:number' is 3, which cannot be called",
        ),
        ("nowhere_at_all:f", "there is no module 'nowhere_at_all' in .* or on Python's path"),
        ("calls", "the function 'calls': write package.module:function"),
    ]:
        with pytest.raises(ValueError, match=message):
            import_functions(NameFinder({"function": {"function": path}}))


pieces = st.lists(
    st.sampled_from(["x", "y", "x1", "f", "g", "+", "\0", "variable 0;", "7"]), max_size=8
)
TWO = NameFinder({"variable": "[w-z][0-9]*", "function": "[f-h]"})


def renaming_of(one: str, two: str) -> bool:
    """By a bijection between names of the same class, with the same text between them."""
    spans = TWO.find(one), TWO.find(two)
    if len(spans[0]) != len(spans[1]):
        return False
    there, back, ends = {}, {}, [0, 0]
    for first, second in zip(*spans, strict=True):
        names = one[first.start : first.stop], two[second.start : second.stop]
        same = first.symbol_class == second.symbol_class
        if not same or one[ends[0] : first.start] != two[ends[1] : second.start]:
            return False
        if there.setdefault(names[0], names[1]) != names[1]:
            return False
        if back.setdefault(names[1], names[0]) != names[0]:
            return False
        ends = [first.stop, second.stop]
    return one[ends[0] :] == two[ends[1] :]


@given(
    pieces, pieces, st.permutations(["x", "y", "x1"]), st.permutations(["f", "g", "h"]), st.data()
)
@settings(deadline=None, max_examples=300)
def test_canonical_texts_are_equal_just_for_renamings(one, two, variables, functions, data):
    renamed = dict(zip(["x", "y", "x1", "f", "g", "h"], [*variables, *functions], strict=True))
    same = " ".join(renamed.get(piece, piece) for piece in one)
    texts = [" ".join(one), " ".join(two)]
    assert canonical_text(texts[0], TWO) == canonical_text(same, TWO)
    assert pair_key(texts[0], TWO) == pair_key(same, TWO) and len(pair_key(same, TWO)) == 8
    near = list(one)
    if near:
        near[data.draw(st.integers(0, len(near) - 1))] = data.draw(
            st.sampled_from(["x", "f", "7", "\0"])
        )
    for other in (texts[1], " ".join(near)):
        equal = canonical_text(texts[0], TWO) == canonical_text(other, TWO)
        assert equal == renaming_of(texts[0], other)


def some_pairs(count: int, seed: int = 0) -> Dataset:
    """Texts of one to four variables among ten: many are renamings of others."""
    rng = random.Random(seed)
    texts = [
        " + ".join(rng.choice(string.ascii_lowercase[:10]) for _ in range(rng.randint(1, 4)))
        + f" * {rng.randint(0, 9)}"
        for _ in range(count)
    ]
    return Dataset.from_dict({"problem": texts, "answer": texts})


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_held_out_is_no_renaming_of_what_is_trained_on(seed):
    dataset = some_pairs(1500)
    train, validation = hold_out(dataset, 0.2, FINDER, seed)
    assert len(train) + len(validation) == 1500 and overlap(train, validation, FINDER) == 0
    sides = [{pair_key(text, FINDER) for text in side["problem"]} for side in (train, validation)]
    assert not sides[0] & sides[1] and 0.05 < len(sides[1]) / sum(map(len, sides)) < 0.4
    # Row by row: other rows, their order and the way they are read do not matter.
    shuffled = hold_out(dataset.shuffle(seed=3), 0.2, FINDER, seed)
    streamed = hold_out(dataset.to_iterable_dataset(num_shards=3), 0.2, FINDER, seed)
    part = hold_out(dataset.select(range(700)), 0.2, FINDER, seed)[1]
    for whole, mixed, streams in zip((train, validation), shuffled, streamed, strict=True):
        assert sorted(mixed["problem"]) == sorted(whole["problem"])
        assert isinstance(streams, IterableDataset)
        assert [row["problem"] for row in streams] == whole["problem"][:]
    assert part["problem"][:] == validation["problem"][: len(part)]
    assert hold_out(dataset, 0.2, FINDER, 7)[1]["problem"][:] != validation["problem"][:]


def test_marked_names_are_those_that_count():
    """Of a column: a word that the row does not list is no name."""
    finder = NameFinder({"person": {"column": "who"}})
    rows = {"problem": ["Ann met Bob", "Bob met Ann", "Ann met Ann", "Ann met Bob"]}
    spans = [[(0, 3), (8, 11)], [(0, 3), (8, 11)], [(0, 3), (8, 11)], [(0, 3)]]
    rows["names"] = [
        [{"start": i, "stop": j, "symbol_class": "person"} for i, j in row] for row in spans
    ]
    keys = [pair_key(text, finder) for text in problems(rows)]
    assert keys[0] == keys[1] and len(set(keys)) == 3


def test_overlap_counts_rows():
    train = Dataset.from_dict({"problem": ["x + y", "x + y", "x - y"]})
    validation = Dataset.from_dict({"problem": ["a + b", "b + c", "a + a", "q - r", "1"]})
    assert overlap(train, validation, FINDER) == 3
    assert overlap(train.to_iterable_dataset(), validation.to_iterable_dataset(), FINDER) == 3


def test_shares_that_leave_a_side_empty():
    dataset = some_pairs(3)
    for share in (0, 1, -0.5, 5):
        with pytest.raises(ValueError, match=f"share to hold out is {share}: give a number"):
            hold_out(dataset, share, FINDER)
    dataset = some_pairs(40)
    for share in (0.001, 0.999):
        with pytest.raises(ValueError, match="different problems; give a share") as no:
            hold_out(dataset, share, FINDER)
        better = float(re.search(r"give a share of ([0-9.]+),", str(no.value))[1])
        assert all(map(len, hold_out(dataset, better, FINDER)))
    same = Dataset.from_dict({"problem": ["x + y", "b + a"] * 50})
    with pytest.raises(
        ValueError, match=r"of 100 rows are .* have only 1 different problems; give more problems,"
    ):
        hold_out(same, 0.5, FINDER)
