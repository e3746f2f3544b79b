"""The page in a real browser: typed, clicked and read as a user does."""

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright", reason="needs Playwright: pip install playwright")

from browser import CHROMIUM, PROBLEM, Visit, visit

from hf_alpha.tasks import get_task
from hf_alpha.tasks.registry import built_in_tasks

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: apt-get install chromium"
)


@pytest.fixture(scope="module")
def opened(choices, page_server) -> Iterator[Visit]:
    page = page_server.serve(choices)
    with visit(page.local_url) as opened:
        yield opened
    page.close()


def test_examples_are_problems_of_their_tasks():
    for name in built_in_tasks():
        problems = get_task(name).samples
        for problem in problems:
            assert get_task(name).read(problem).symbols


@needs_browser
def test_type_click_rename_and_read(opened):
    said = opened.ask(PROBLEM, "Solve")
    assert "correct" in said and "Every word of the trace satisfies the formula" in said
    assert "names: wait, go, done" in said
    table = opened.page.locator("#reply pre").inner_text().split("\n")
    assert table[-1].startswith("wait & X ") and table[-1].split()[-4] == "1" and " | " in table[-1]
    renamed = opened.ask(PROBLEM, "Rename")
    assert renamed.startswith("the same answer but for the names")
    assert "wait → name1" in renamed
    assert opened.page.locator("#reply strong.correct, #reply strong.exact").count() == 2
    opened.page.get_by_label("number input for Answers").fill("10")
    opened.ask(PROBLEM, "Solve")
    assert opened.page.locator("#reply summary").count() == 10
    opened.page.get_by_label("number input for Answers").fill("1")


@needs_browser
def test_what_is_wrong_is_said(opened):
    opened.ask("a & (b", "Solve")
    alert = opened.page.get_by_role("alert").inner_text()
    assert alert == "'(' at character 5 is never closed"
    said = opened.ask("a & !a & b", "Solve")
    assert "unsatisfiable" in said and "asked: ltl-relational; found by bounded search" in said
    assert opened.page.locator("#reply li").all_inner_texts() == ["a", "!a"]
