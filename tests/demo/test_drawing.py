"""The HTML has tags of its own only, whatever texts say, and shows what the reply has."""

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.demo.drawing import MEANINGS, draw_renamed, draw_reply, draw_syntax
from hf_alpha.demo.service import Renamed, Reply, Shown
from hf_alpha.plain_text import printable
from hf_alpha.solving import Solution
from hf_alpha.tasks import Verdict, get_task
from hf_alpha.tasks.explanation import Explanation, Row

TAGS = {"div", "p", "code", "span", "details", "summary", "table", "tr", "th", "td", "ul", "li"}
HOSTILE = st.one_of(
    st.text(), st.sampled_from(["<img src=x onerror=alert(1)>", '"><script>', "&lt;", "{{x}}"])
)


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


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
@settings(deadline=None)
def test_texts_of_others_are_never_markup(problem, answer, name, other):
    explanation = Explanation((other,), ("1",), (Row(name, (True,)),), 0)
    shown = Shown(answer, Verdict.correct, explanation)
    solution = Solution(problem, read_as=other, found_by=other, core=(answer, name),
                        notes=[name])  # fmt: skip
    reply = Reply(name, solution, (shown, Shown(other, None, Explanation(()), ended=False)))
    for page in (
        draw_reply(reply),
        draw_reply(Reply(name, Solution(problem, error=answer))),
        draw_renamed(Renamed(reply, reply, {name: other}, False)),
    ):
        reader = Reader(page)
        assert reader.tags <= TAGS and reader.attributes <= {"class", "role", "open"}
        assert printable(problem).replace("\r", "\n") in reader.text.replace("\r", "\n")
        assert printable(answer).replace("\r", "\n") in reader.text.replace("\r", "\n")


def test_what_is_said_of_names():
    right, other = Reply("m", Solution("a")), Reply("m", Solution("b"))
    assert "the same answer" in draw_renamed(Renamed(right, other, {"a": "b"}, True))
    old = Reply("m", Solution("a"), (Shown("{a}", Verdict.correct, Explanation(())),))
    said = Reader(draw_renamed(Renamed(old, other, {"a": "b"}, False))).text
    assert said.startswith("another answer with other names; under the old ones {a}")
    assert "no two answers" in draw_renamed(Renamed(right, other, {"a": "b"}, None))
    failed = Reply("m", Solution("a &", error="it ends"))
    page = draw_renamed(Renamed(failed, failed, {}, None))
    assert "it ends" in page and "answer" not in page


def test_who_found_it_and_what_contradicts():
    said = Reader(draw_reply(Reply("m", Solution("a", found_by="m", seconds=0.25)))).text
    assert said == "afound by m, 0.250 s"
    proved = Solution("a & !a & b", unsatisfiable=True, core=("a", "!a"), found_by="Spot")
    said = Reader(draw_reply(Reply("m", proved))).text
    assert "unsatisfiable" in said and "contradict one another:a!a" in said
    assert said.endswith("asked: m; found by Spot, 0.000 s")
    cut = Shown("a ;", Verdict.malformed, Explanation(()), ended=False)
    assert "cut off" in draw_reply(Reply("m", Solution("a"), (cut,)))
    given_up = Reply(
        "m", Solution("a", error="time is up"), (Shown("b", Verdict.wrong, cut.explanation),)
    )
    assert "time is up" in draw_reply(given_up) and "wrong" in draw_reply(given_up)


def test_the_syntax_names_every_operator_with_its_meaning():
    for name in ("ltl", "propositional"):
        task = get_task(name)
        reader = Reader(draw_syntax(task))
        for token in (*task.grammar.operators, *task.grammar.derived, *task.grammar.constants):
            assert MEANINGS[token] in reader.text
    assert "in which the task finds the names" in draw_syntax(get_task("copying"))
