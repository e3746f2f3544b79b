"""Prompts of all tasks: what a right answer looks like there, and how it is found in a reply."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.tasks import Task, Verdict, get_task
from hf_alpha.tasks.prompts import NoAnswer
from hf_alpha.tasks.propositional.prompt import SHOWN, WORDS

TASKS = [get_task(name) for name in ("propositional", "ltl")]
NAMES = ["a", "b", "request", "grant_1", "Frame", "cycle", "p.q", "größe", '"a b"', '"};{"',
         '"xor"', '"1"', '"a:b"', '"\\"q\\""']  # fmt: skip
BEFORE = ["", "Sure. Here it is, step by step:\n\n", "<think>cycle{a}, or {}?</think>",
          "no tag here {</think>\n", "```json\n", "```\n", "**Answer:** ", "Trace: ",
          "Assignment: `", "The formula holds if {a}.\n\n- "]  # fmt: skip
AFTER = ["", ".", "\n```", "`\n\nThat holds, since a {step} says so.", "\n\nLet me know!", " **"]


@st.composite
def solved(draw, task: Task) -> tuple[list[str], str]:
    """Canonical tokens of a problem with any names, and a right answer."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    names = [task.grammar.named((name, 0))[0] for name in names]
    sizes = [size for size in range(1, 10) if task.is_feasible(size, len(names))]
    rng = random.Random(draw(st.integers(0, 2**32)))
    tokens = task.draw(rng, draw(st.sampled_from(sizes)), names)
    answer = task.target_of(tokens)
    return tokens, "" if answer is None else answer


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(st.data())
def test_a_right_answer_comes_back_whatever_stands_around_it(task, data):
    _, answer = data.draw(solved(task))
    if not answer and task.name == "ltl":
        return
    shown = task.prompt.write_answer(answer)
    reply = data.draw(st.sampled_from(BEFORE)) + shown + data.draw(st.sampled_from(AFTER))
    assert task.prompt.read(reply) == answer


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(st.data())
def test_the_formula_of_a_prompt_is_the_problem(task, data):
    """With the precedences that the prompt states: each operator of its list in its place."""
    tokens, _ = data.draw(solved(task))
    text = task.prompt.write_problem(tokens)
    grammar = task.grammar
    if task.name == "propositional":
        words = {word: token for token, word in WORDS.items()}
        assert [words.get(token, token) for token in SHOWN.parse(text, "infix")] == tokens
    else:
        assert grammar.parse(text, "infix") == tokens
    for plain in (True, False):
        assert f"\nYour turn\nFormula: {text}\n" in task.prompt.ask(tokens, plain)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_examples_are_right_and_a_plain_prompt_ends_where_the_answer_begins(task):
    prompt = task.prompt
    asked = prompt.ask(task.parse(task.example))
    assert len(prompt.examples) == 4, "as in the paper"
    for problem, answer in prompt.examples:
        assert task.check(problem, answer) == Verdict.correct
        shown = prompt.write_problem(task.parse(problem)), prompt.write_answer(answer)
        assert "\nFormula: {}\n{label}: {}\n".format(*shown, label=prompt.label) in asked
    assert asked.endswith(prompt.request)
    assert prompt.ask(task.parse(task.example), plain=True).endswith(f"\n{prompt.label}:")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(st.one_of(st.text(), st.text('cyle{};:"ab!&|X01 \n`<think/>truefals,'), st.text('{}[],:"1')))
def test_any_reply_gets_an_answer_or_a_reason(task, reply):
    found = task.prompt.read(reply)
    if isinstance(found, NoAnswer):
        assert found.reason
    else:
        task.check("a", found)
        assert task.prompt.read(task.prompt.write_answer(found)) == found


def test_replies_to_propositional_logic():
    read = get_task("propositional").prompt.read
    assert read('{"a": true}, or rather {"b": false}') == "b0", "the last one counts"
    assert read('{"a": true} and not {"b": null}') == "a1", "the last one that can be read"
    assert read("{}") == "" and read('{"a": 1, "b": 0}') == "a1b0"
    assert read('{"req 1": true, "b": false}') == '"req 1" 1 b 0'
    for reply, reason in {
        "": "empty reply",
        " \n": "empty reply",
        "<think>a is true, so": "thoughts without an end",
        "a is true": "no JSON object",
        "{'a': True}": "no JSON object",
        '{"a": true': "no JSON object",
        "a1b0": "no JSON object",
        '{"a": true, "a": true}': "a JSON object that is no assignment",
        '{"a": "true"}': "a JSON object that is no assignment",
        '{"a": 1.0}': "a JSON object that is no assignment",
        '{"assignment": {"a": true}}': "a JSON object that is no assignment",
        '{"a": ' * 100_000: "no JSON object",
    }.items():
        assert read(reply) == NoAnswer(reason), reply[:40]


def test_replies_to_linear_temporal_logic():
    read = get_task("ltl").prompt.read
    assert read("a;\n  a & b;\ncycle{b}") == "a;&ab;{b}", "over several lines"
    assert read('"1; b; cycle {1; a}"') == "1;b;{1;a}"
    assert read("Trace: a; cycle{1}\nHere cycle{1} says: anything.") == "a;{1}"
    assert read("a; cycle{1}\nor: b; cycle{1}") == "b;{1}", "the last one counts"
    assert read("request; cycle{!grant}") == "request ; { ! grant }"
    for reply, reason in {
        "": "empty reply",
        "a; b; {c}": "no cycle{...}",
        "a; cycle{b": "no cycle{...}",
        "bicycle{a}": "no cycle{...}",
        "It is X a; cycle{1}": "a trace that cannot be read",
        "X a; cycle{1}": "a trace that cannot be read",
        "a; cycle{}": "a trace that cannot be read",
        "a b; cycle{1}": "a trace that cannot be read",
    }.items():
        assert read(reply) == NoAnswer(reason), reply
