"""The store of results: what is written is read again, and nothing else changes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.studies import store

KEYS = st.text(st.sampled_from('ab #>/é"'), min_size=1, max_size=3).filter(
    lambda key: not key.startswith("#") and store.BETWEEN not in key
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DATA = st.recursive(
    VALUES, lambda parts: st.lists(parts, max_size=3) | st.dictionaries(KEYS, parts, max_size=3)
)


@given(st.dictionaries(KEYS, DATA, max_size=3), st.text(st.sampled_from('a|\n \t"'), max_size=9))
def test_what_is_written_is_read_again(data, text):
    with TemporaryDirectory() as name:
        folder = Path(name)
        try:
            store.write("a/two", "python a/two", data, text, {"date": "today"}, folder)
        except ValueError as error:
            assert "of a result" in str(error) and any(mark in str(data) for mark in "#>")
            return
        store.write("one", "python one", data, text, {"date": "today"}, folder)
        store.write("one", "python other", {"n": 1}, folder=folder)
        found = store.read("a/two", folder)
        assert found == {
            "command": "python a/two", "conditions": {"date": "today"},
            "text": "\n".join(text.splitlines()), "data": data,
        }  # fmt: skip
        assert store.read("one", folder)["data"] == {"n": 1}
        assert store.commands(folder) == {"a/two": "python a/two", "one": "python other"}


def test_each_cell_has_a_line(tmp_path):
    """Rounds and records stand whole."""
    data = {"seconds": {"ours": {"1": [0.5, 0.25]}}, "rows": [{"n": 1, "of": {"a": 2}}, {"n": 3}]}
    store.write("goals", "python goals.py", data, "| a |\n| b |", folder=tmp_path)
    lines = (tmp_path / store.CELLS).read_text().splitlines()
    assert lines == [
        "result\tcell\tvalue",
        'goals\tdata > seconds > ours\t{"1":[0.5, 0.25]}',
        'goals\tdata > rows > #0\t{"n":1, "of":{"a":2}}',
        'goals\tdata > rows > #1\t{"n":3}',
        'goals\ttext > #0\t"| a |"',
        'goals\ttext > #1\t"| b |"',
    ]


def test_results_that_are_written_at_once_are_all_there(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        for result in map(str, range(20)):
            pool.submit(store.write, result, f"python {result}", {"n": result}, folder=tmp_path)
    assert len(store.commands(tmp_path)) == 20
    assert all(store.read(str(n), tmp_path)["data"] == {"n": str(n)} for n in range(20))


def test_what_the_store_cannot_hold_is_refused(tmp_path):
    for key in ("#0", "a > b", " >", "a\tb"):
        with pytest.raises(ValueError, match=r"cannot be (a key|keys) of a result"):
            store.write("one", "python one", {key: {"n": {"m": 1}}}, folder=tmp_path)
    assert not (tmp_path / store.CELLS).exists()
    with pytest.raises(KeyError):
        store.read("one", tmp_path)
