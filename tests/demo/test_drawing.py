"""The HTML has tags of its own only, whatever texts say, and shows what the solution has."""

from html.parser import HTMLParser
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.demo.choices import Choice, Renamed
from hf_alpha.demo.drawing import draw_renamed, draw_solution
from hf_alpha.plain_text import printable
from hf_alpha.solving import Solution
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
    task = SimpleNamespace(has_check=True, empty_answer="", explain=lambda *_: explanation)
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
