"""The HTML has tags of its own only, whatever texts say, and shows what the solution has."""

from html.parser import HTMLParser
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.answer.solving import Solution
from hf_alpha.demo.choices import Choice, Renamed
from hf_alpha.demo.drawing import draw_renamed, draw_solution
from hf_alpha.io.plain_text import printable
from hf_alpha.tasks import Problem, Verdict, get_task
from hf_alpha.tasks.checking import Answer
from hf_alpha.tasks.explanation import Explanation, TableRow

TAGS = {"div", "section", "p", "code", "pre", "strong", "details", "summary", "ul", "li"}
HOSTILE = st.one_of(
    st.text(), st.sampled_from(["<img src=x onerror=alert(1)>", '"><script>', "&lt;", "{{x}}"])
)
LTL = Choice("m", get_task("ltl"))
FORMULA = LTL.task.read("a")


class Reader(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def solved(text: str, verdict: Verdict = Verdict.correct, ended: bool = True) -> Solution:
    answer = Answer(text)
    answer.ended = ended
    return Solution("a", [(answer, verdict)], read=FORMULA)


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_texts_of_others_are_never_markup(problem, answer, name, other):
    explanation = Explanation((other,), ("1",), (TableRow(name, (True,)),), 0)
    task = SimpleNamespace(
        has_check=True, label=str, empty_answer="", explain=lambda *_: explanation
    )
    solution = solved(answer)
    solution.problem, solution.read_as, solution.found_by = problem, other, other
    solution.core, solution.notes = (answer, name), [name]
    solution.read = Problem(problem, problem, [name], [name])
    choice = Choice(name, task)
    for page in (
        draw_solution(choice, solution),
        draw_solution(choice, Solution(problem, error=answer)),
        draw_renamed(choice, Renamed(solution, solution, {name: other}, False)),
    ):
        reader = Reader(page)
        assert reader.tags <= TAGS and reader.attributes <= {"class", "role", "open"}
        assert printable(problem).replace("\r", "\n") in reader.text.replace("\r", "\n")
        assert printable(answer).replace("\r", "\n") in reader.text.replace("\r", "\n")


def test_what_is_said_of_names():
    right, other = Solution("a"), Solution("b")
    said = Reader(draw_renamed(LTL, Renamed(right, other, {"a": "b"}, True))).text
    assert said == "the same answer but for the names a → bab"
    said = Reader(draw_renamed(LTL, Renamed(solved("{a}"), other, {"a": "b"}, False))).text
    assert said.startswith("another answer under other names a → b") and said.endswith("b")
    assert "correct {a}" in said
    assert "no two answers" in draw_renamed(LTL, Renamed(right, other, {"a": "b"}))
    page = draw_renamed(LTL, Renamed(Solution("a &", error="it ends")))
    assert "it ends" in page and "answer" not in page


def test_who_found_it_and_what_contradicts():
    solution = Solution("a & b", found_by="m", seconds=0.25, read=LTL.task.read("a & b"))
    said = Reader(draw_solution(LTL, solution)).text
    assert said == "a & btaken for names: a, bfound by m, 0.250 s"
    proved = Solution("a & !a & b", unsatisfiable=True, core=("a", "!a"), found_by="Spot")
    said = Reader(draw_solution(LTL, proved)).text
    assert "unsatisfiable" in said and "contradict one another:a!a" in said
    assert said.endswith("asked: m; found by Spot, 0.000 s")
    page = draw_solution(LTL, solved("a ;", Verdict.malformed, ended=False))
    assert "cut off" in page and '<strong class="malformed">' in page
    given_up = solved("!a;1", Verdict.wrong)
    given_up.error = "time is up"
    page = draw_solution(LTL, given_up)
    assert "time is up" in page and "wrong" in page and "<details open>" in page
    assert "</summary><p>" in page and "<pre>" not in page
    page = draw_solution(LTL, solved("!a;{1}", Verdict.wrong))
    assert "</summary><p>" in page and "</p><pre>" in page  # sentences wrap, the table does not
    unchecked = Choice("m", get_task("text").configured(symbols={"name": ["a"]}))
    said = Reader(draw_solution(unchecked, solved("b", Verdict.undecided))).text
    assert "answer b" in said and "Why" not in said
