import pytest

from hf_alpha.data.formats import read_format


def test_an_unknown_format_is_told_what_there_is_and_where_those_of_benchmarks_are(tmp_path):
    told = r"no format 'clutrr': known are squad, conll, or .* benchmarks\.studies\.formats:"
    with pytest.raises(ValueError, match=told):
        read_format("clutrr", str(tmp_path))
