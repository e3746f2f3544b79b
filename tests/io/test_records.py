"""Records of tools are whole, or their file is named."""

import pytest

from hf_alpha.io.records import read_json


@pytest.mark.parametrize("content", ["", "[1]", "{", "\xff"])
def test_damaged_records_are_named(tmp_path, content):
    (tmp_path / "record.json").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r"record\.json is damaged: "):
        read_json(tmp_path / "record.json")
