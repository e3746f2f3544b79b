"""A problem that was read: what it knows, and that nothing reads it again."""

import random

import pytest
from toy_task import ToyTask

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.tasks import Problem, get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.tasks.text import TextTask


@pytest.mark.parametrize(
    ("task", "text", "notation", "tokens", "symbols"),
    [
        ("propositional", "x -> !y", "infix", "| ! x ! y", "x y"),
        ("ltl", "F req & req", None, "& U 1 req req", "req"),
        ("copying", "abca", "compact", "a b c a", "a b c"),
        (ToyTask(), "q & p & q", None, "& & q p q", "q p"),
    ],
)
def test_a_problem_knows_its_tokens_and_is_not_read_again(
    task, text, notation, tokens, symbols, readings
):
    task = get_task(task)
    problem = task.read(text, notation)
    assert isinstance(problem, Problem) and problem.given == text
    assert problem.tokens == tuple(tokens.split()) == tuple(task.parse(str(problem)))
    assert problem.symbols == tuple(symbols.split())
    readings.clear()
    assert task.read(problem) is problem
    assert task.parse(problem) == tokens.split() and task.symbols_of(problem) == symbols.split()
    assert task.needed_symbols([problem]) == len(problem.symbols)
    assert task.canonical(problem) and task.random_answer(problem, random.Random(0))
    assert task.check(problem, task.target(problem)).is_correct
    assert not {text, problem} & {*readings}


def test_a_text_knows_its_names_and_remains_marked():
    task = TextTask({"person": {"column": "people"}})
    story = MarkedText("Ann met Di Ray", [(0, 3, "person"), (8, 14, "person")])
    problem = task.read(story)
    assert isinstance(problem, Problem) and isinstance(problem, MarkedText)
    assert (problem, problem.given, problem.spans) == (story, story, story.spans)
    assert problem.symbols == ("Ann", "Di Ray") and problem.tokens == ("Ann", "met", "Di Ray")
    assert task.needed_symbols([problem]) == {"person": 2} and task.read(problem) is problem
    assert not isinstance(TextTask().read("Ann met Di"), MarkedText)


@pytest.mark.parametrize("text", ["a <-> X b", "G !(a ^ b)", "a | b -> F c", "& a U b c"])
def test_a_model_reads_a_problem_as_it_reads_its_text(text):
    """Also where it has not the task's operators: here it lacks `|`."""
    tokenizer, problem = build_tokenizer("ltl", 3), get_task("ltl").read(text)
    assert tokenizer(problem)["input_ids"] == tokenizer(text)["input_ids"]


def test_answers_that_come_one_by_one_do_not_have_their_formula_read_again(readings):
    task = get_task("ltl")
    verdicts = [task.check("a U b", answer) for answer in ("{b}", "{!b}", "a;{b}")]
    assert [verdict.is_correct for verdict in verdicts] == [True, False, True]
    assert readings.count("a U b") == 1


CHAIN = " <-> ".join("abcdefghijklmnopqrstu")
"""Two million tokens, once it is rewritten."""


def test_only_models_have_a_limit_of_length():
    task = get_task("ltl")
    problem = task.read(CHAIN)
    assert problem == "<-> " + " <-> ".join("abcdefghijklmnopqrst") + " u"
    assert problem.written == tuple(problem.split()) and "".join(problem.symbols) == CHAIN[::6]
    assert task.check(problem, "{" + " & ".join(problem.symbols) + "}").is_correct
    for ask in build_tokenizer("ltl", 30), task.canonical, task.target, task.parse:
        with pytest.raises(FormulaError, match="too many for a model: write it without them"):
            ask(problem)


def test_a_text_that_is_no_problem_is_an_error_where_it_is_read():
    for name, text in {"propositional": "a &", "ltl": "Y a", "copying": "a&b"}.items():
        with pytest.raises(FormulaError):
            get_task(name).read(text)
