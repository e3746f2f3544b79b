import pytest

from hf_alpha.data.formats import read_format


def test_words_and_tags_are_read_with_and_without_numbers(tmp_path):
    """Separators may hold a tab, as in WNUT-17; comments have none, words may begin with #."""
    (tmp_path / "a").write_text("2\tO\n#Ann\tB-person\n\t\n\nBo\tO\n")
    (tmp_path / "b").write_text(
        "# id = 1\n# text = 2 #Ann\n1\t2\tO\t-\t-\n2\t#Ann\tB-PER\t-\tx\n\n"
    )
    first = {"source": ["2", "#Ann"], "target": ["O", "B-person"]}
    assert read_format("conll", str(tmp_path / "a")) == [first, {"source": ["Bo"], "target": ["O"]}]
    assert read_format("conll", str(tmp_path / "b")) == [{**first, "target": ["O", "B-PER"]}]
    (tmp_path / "a").write_text("Bo\tO\n\nAnn B-person\n")
    with pytest.raises(ValueError, match=r"a, line 3: 'Ann B-person' is neither word and tag nor"):
        read_format("conll", str(tmp_path / "a"))


def test_an_unknown_format_is_told_what_there_is_and_where_those_of_benchmarks_are(tmp_path):
    told = r"no format 'clutrr': known are squad, conll, or .* benchmarks\.studies\.formats:"
    with pytest.raises(ValueError, match=told):
        read_format("clutrr", str(tmp_path))
