"""The site of the documents is whole: docs/make_site.py, in strict mode."""

import sys
from pathlib import Path

import pytest
from public_names import public_names

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))
SITE = "site_name: x\ndocs_dir: build/pages\nsite_dir: build/site\nnav: [README.md{}]\n"


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
    for name in public_names():
        assert f'id="{name.rpartition(".")[2].lower()}"' in reference, name
    assert "how interchangeable names are chosen" in reference, "the docstrings are there"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A repository with two pages, which are all that is built."""
    import make_site

    for name, value in {"ROOT": tmp_path, "PAGES": tmp_path / "build" / "pages"}.items():
        monkeypatch.setattr(make_site, name, value)
    monkeypatch.setattr(make_site, "FIRST", ("README.md",))
    monkeypatch.setattr(make_site, "write_commands", lambda: None)
    monkeypatch.setattr(make_site, "write_reference", lambda: None)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n[back](../README.md#one)\n")
    text = "# One\n[page](docs/page.md) `[x](no.md)` [the `src`](docs)\n"
    (tmp_path / "README.md").write_text(text)
    (tmp_path / "mkdocs.yml").write_text(SITE.format(", docs/page.md"))
    return make_site


def test_links_within_the_repository_work_on_the_site(small, tmp_path):
    small.main()
    page = (tmp_path / "build" / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="docs/page/"' in page and "[x](no.md)" in page and "the <code>src</code>" in page


def test_lists_and_tables_need_no_empty_line_before_them(small, tmp_path):
    text = "# Page\nThree ways:\n- one\n- two\n```\na\n- code\n```\nA table:\n| a |\n|---|\n| b |\n"
    (tmp_path / "docs" / "page.md").write_text(text)
    small.main()
    page = (tmp_path / "build" / "site" / "docs" / "page" / "index.html").read_text("utf-8")
    assert page.count("<li>one</li>") == page.count("<td>b</td>") == 1
    assert "a\n- code\n" in small.spaced(text)


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
