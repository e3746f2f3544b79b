"""The site of the documents is whole: docs/make_site.py, in strict mode."""

import sys
from pathlib import Path

import pytest

import hf_alpha

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))


@pytest.mark.slow
def test_the_site_has_each_page_command_and_name():
    import make_site

    make_site.main()
    site = ROOT / "build" / "site"
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / page.stem / "index.html").is_file(), page
    solve = (site / "docs" / "commands" / "solve" / "index.html").read_text(encoding="utf-8")
    assert "--top" in solve and "the N best answers" in solve
    reference = (site / "docs" / "interface" / "index.html").read_text(encoding="utf-8")
    for name in set(hf_alpha.__all__) - {"__version__"}:
        assert f'id="{name.lower()}"' in reference, name
    assert "how interchangeable names are chosen" in reference, "the docstrings are there"


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("README.md", "[x](docs/none.md)", "README.md links to docs/none.md: no such file"),
        ("README.md", "# One\n[x](docs/page.md#none)", "not built"),
        ("docs/page.md", "![x](none.png)", "docs/page.md links to none.png: no such file"),
        ("docs/lost.md", "# Lost", "not in the nav of mkdocs.yml: docs/lost.md"),
    ],
)
def test_a_broken_page_is_refused(small, tmp_path, file, text, says):
    (tmp_path / file).write_text(text)
    with pytest.raises((SystemExit, FileNotFoundError), match=says):
        small.main()
