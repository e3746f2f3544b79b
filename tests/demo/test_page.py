"""The page in a real browser: typed, clicked and read as a user does."""

from collections.abc import Iterator

import pytest

pytest.importorskip("gradio", reason="needs Gradio: pip install 'hf_alpha[demo]'")
pytest.importorskip("playwright", reason="needs Playwright: pip install playwright")

from browser import CHROMIUM, PROBLEM, Visit, visit

from hf_alpha.demo.page import as_json, build_page
from hf_alpha.demo.server import serve
from hf_alpha.tasks import get_task
from hf_alpha.tasks.registry import built_in_tasks

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: apt-get install chromium"
)


@pytest.fixture(scope="module")
def opened(service) -> Iterator[Visit]:
    page = serve(service, wait=False, say=lambda text: None)
    with visit(page.local_url) as opened:
        yield opened
    page.close()


def test_examples_are_problems_of_their_tasks():
    for name in built_in_tasks():
        problems = get_task(name).samples
        for problem in problems:
            assert get_task(name).read(problem).symbols


def test_the_interface_gives_what_json_holds(service):
    reply = service.solve("a &", "ltl-relational")
    assert as_json(reply)["status"] == "error" and as_json(reply)["answers"] == []
    assert build_page(service).title.startswith("hf_alpha")


@needs_browser
def test_type_click_rename_and_read(opened):
    said = opened.ask(PROBLEM, "Solve")
    assert "correct" in said and "Every word of the trace satisfies the formula" in said
    cells = opened.page.locator("#reply table.explanation tr:last-child td")
    assert cells.first.inner_text() == "1"
    assert opened.page.locator("#reply td.loop").count() > 0
    renamed = opened.ask(PROBLEM, "Rename")
    assert renamed.startswith("the same answer but for the names")
    assert "wait → " in renamed and "correct" in renamed
    opened.ask(PROBLEM, "10 answers")
    assert opened.page.locator("#reply .answer").count() == 10


@needs_browser
def test_what_is_wrong_is_said(opened):
    opened.ask("a & (b", "Solve")
    alert = opened.page.get_by_role("alert").inner_text()
    assert alert == "'(' at character 5 is never closed"
    said = opened.ask("a & !a & b", "Solve")
    assert "unsatisfiable" in said and "asked: ltl-relational; found by bounded search" in said
    assert opened.page.locator("#reply li").all_inner_texts() == ["a", "!a"]


@needs_browser
def test_markup_in_names_is_text(opened):
    """HTML, and what Gradio takes for a template in its own texts."""
    names = ["<img src=x onerror=alert(1)>", "${1+1}", "{{value}}", "</div><b>", "名前"]
    problem = " & ".join(f'"{name}"' for name in names)
    for button in ("Solve", "10 answers"):
        said = opened.ask(problem, button)
        assert all(name in said for name in names)
    assert opened.page.locator("#reply img, #reply b, #reply script").count() == 0


@needs_browser
def test_another_task_has_its_models_examples_and_syntax(opened):
    page = opened.page
    page.get_by_label("Task").click()
    page.get_by_role("option", name="propositional").click()
    page.get_by_text(get_task("propositional").samples[2], exact=True).click()
    page.wait_for_function(
        "() => document.querySelector('#problem textarea').value === 'a ^ b ^ c'"
    )
    assert page.get_by_label("Who answers").input_value() == "propositional-relational"
    assert "found by propositional-relational" in opened.ask("a ^ b ^ c", "Solve")
    page.get_by_label("Who answers").click()
    page.get_by_role("option", name="propositional-solver").click()
    assert "asked: propositional-solver" in opened.ask("a ^ b ^ c", "Solve")
    page.get_by_text("Syntax").click()
    assert "exclusive or" in page.locator("table.syntax").inner_text()


@needs_browser
def test_a_narrow_screen_shows_everything(opened):
    opened.page.set_viewport_size({"width": 380, "height": 800})
    opened.ask("G(a -> F (b & X (c U (d & F long_name_of_a_proposition)))) & F a", "Rename")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 380
    for button in ("Solve", "Rename", "10 answers"):
        box = opened.page.get_by_role("button", name=button, exact=True).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 380


@needs_browser
def test_nothing_complained_and_nothing_was_fetched_from_elsewhere(opened):
    """After all that was clicked above."""
    opened.ask(PROBLEM, "Solve")
    assert opened.complaints == [] and opened.elsewhere == []
