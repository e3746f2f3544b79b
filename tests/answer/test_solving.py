import csv
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import torch
from commands import hf_alpha
from reference.propositional import pigeons
from strategies import make_model
from toy_task import ToyTask
from transformers import AutoTokenizer

import hf_alpha as hf_alpha_root
from hf_alpha import MarkedText, TextTask, TextTokenizer
from hf_alpha.answer.base import Answerer, Refutation, Reply, Solver
from hf_alpha.answer.models import Model
from hf_alpha.answer.solving import WINDOW, Chain, Solution, ask, solve
from hf_alpha.loading import load_checkpoint
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.modeling.symbol_encodings import encoding_class
from hf_alpha.tasks import Verdict, get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.tasks.checking import Answer
from hf_alpha.tasks.decision import Decision

ROOT = Path(__file__).resolve().parents[2]
TASK = PropositionalTask()
KNOWN = {"a": "a1", "!a": "a0", "&ab": "a1b1", "&a!b": "a1b0"}


def asked(model, *arguments, **settings):
    """The command that asks this model alone."""
    return hf_alpha("solve", "--method", "model", "--model", model, *arguments, **settings)


def overfit(model, tokenizer, pairs: dict[str, str], steps: int = 120):
    """Let a model learn a few answers by heart; a `streams` model knows them under any names."""
    batch = tokenizer(list(pairs), text_target=list(pairs.values()), padding=True,
                      return_tensors="pt")  # fmt: skip
    # The seed was chosen with this kernel and one thread.
    kernel, threads = model.config._attn_implementation, torch.get_num_threads()
    model.set_attn_implementation("eager")
    torch.set_num_threads(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()
    model.set_attn_implementation(kernel)
    torch.set_num_threads(threads)
    return model.eval()


@pytest.fixture(scope="module")
def streams(tmp_path_factory) -> Path:
    """A model of three symbols that has learnt `KNOWN`, under whatever names."""
    return trained(tmp_path_factory.mktemp("streams") / "model", "propositional", KNOWN)


@pytest.fixture(scope="module")
def ltl(tmp_path_factory) -> Path:
    """A model that has learnt the answer to `G(a -> F b)`, under whatever names."""
    return trained(tmp_path_factory.mktemp("ltl") / "model", "ltl", {"G(a -> F b)": "{b}"})


def trained(folder: Path, task: str, pairs: dict[str, str]) -> Path:
    tokenizer = build_tokenizer(task, 3)
    model = make_model(
        num_base_tokens=tokenizer.num_base_tokens,
        symbol_classes={"proposition": 3},
        adacos=False,
        logit_scale=10.0,
        dropout=0.0,
    )
    overfit(model, tokenizer, pairs).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class Says(Answerer):
    """Gives the same answers to all problems."""

    name = "says"

    def __init__(self, *answers):
        self.answers = answers

    def answer(self, task, problems):
        yield {index: Reply(tuple(map(Answer, self.answers))) for index in problems}


def test_the_first_correct_answer_is_the_best(streams):
    for answers, best in [(("a1", "a0", "b1"), "a0"), (("a1", "b1"), "a1")]:
        chain = Chain("says", [lambda answers=answers: Says(*answers)], top_n=3)
        ((reply,),) = ([*replies.values()] for replies in chain.answer(TASK, {7: "!a"}) if replies)
        solution = Solution("!a", [*zip(reply.answers, reply.verdicts, strict=True)])
        assert solution.best[0] == best and reply.is_settled == (best == "a0")


class Replies(Answerer):
    """Gives one reply, and what may be wrong with it."""

    def __init__(self, name, **reply):
        self.name, self.reply = name, Reply(**reply)

    def notes(self, task, problem):
        return [f"{self.name} notes {problem}"]

    def answer(self, task, problems):
        time.sleep(0.01)
        yield dict.fromkeys(problems, self.reply)


OUTSIDE = {"outside": True, "reason": "names"}
LATE = {"reason": "late", "detail": "late by 1 s"}
WRONG, WORSE = ({"answers": (Answer(text),), "by": text} for text in ("a1", "b0"))
RIGHT = {"answers": (Answer("a0"),), "verdicts": (Verdict.exact,)}


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([OUTSIDE], {"outside": True, "reason": "names"}),
        ([OUTSIDE, LATE], {"outside": False, "reason": "names; late by 1 s"}),
        ([LATE, OUTSIDE], {"outside": True, "reason": "late by 1 s; names"}),
        ([OUTSIDE, WRONG], {"answers": ("a1",), "by": "a1", "notes": "1"}),
        ([WRONG, LATE], {"answers": ("a1",), "by": "a1", "notes": "0", "reason": "late by 1 s"}),
        ([WRONG, WORSE], {"answers": ("b0", "a1"), "by": "b0", "notes": "01"}),
        ([WRONG, WORSE, RIGHT], {"answers": ("a0", "b0"), "by": "b0", "notes": "012"}),
        ([RIGHT, WRONG], {"answers": ("a0",), "notes": "0"}),
        ([WRONG, {"unsatisfiable": True, "core": ("a",)}, WORSE],
         {"unsatisfiable": True, "core": ("a",), "answers": ("a1",), "by": "a1", "notes": "0"}),
    ],
)  # fmt: skip
def test_a_chain_has_what_all_who_were_asked_made_of_a_problem(replies, expected):
    """Up to two answers, the last ones first; notes of those who answered."""
    asked = []

    def load(number):
        asked.append(Replies(str(number), **replies[number]))
        return asked[-1]

    chain = Chain("all", [partial(load, number) for number in range(len(replies))], top_n=2)
    ((reply,),) = ([*some.values()] for some in chain.answer(TASK, {7: "!a"}) if some)
    expected = {"notes": "", **expected}
    expected["notes"] = tuple(f"{number} notes !a" for number in expected["notes"])
    assert replace(reply, verdicts=(), seconds=0.0) == Reply(**expected)
    verdicts = {"a0": Verdict.exact}
    assert reply.verdicts == tuple(verdicts.get(each, Verdict.wrong) for each in reply.answers)
    assert reply.is_settled == (len(asked) < len(replies) or RIGHT in replies)
    assert reply.seconds > 0.01 * len(asked)


def test_the_users_names_come_back_with_verdicts(streams):
    answers = {
        "request & !grant": "request 1 grant 0",
        "& x ! y": "x1y0",
        "~p_1": "p_1 0",
        "&ab": "a1b1",
        '"req 1" & !größe': '"req 1" 1 größe 0',
        "p.q & !p.r": "p.q 1 p.r 0",
        '"true" & !"say \\"x\\""': '"true" 1 "say \\"x\\"" 0',
        '!"plain"': "plain 0",
        "&é!ö": "é1ö0",
    }
    done = asked(streams, *answers)
    assert done.out == "".join(f"{one}\n  correct    {two}\n" for one, two in answers.items())
    assert done.code == 0 and done.err == ""
    wrong = asked(streams, "^a^b^ca")
    assert wrong.code == 1 and wrong.err == ""


def test_file_and_standard_input_are_read_line_by_line(streams, tmp_path):
    lines = "a\n\n  & a b\n"
    expected = "a\n  correct    a1\n  & a b\n  correct    a1b1\n"
    assert asked(streams, stdin=lines).out == expected
    file = tmp_path / "formulas.txt"
    file.write_text(lines)
    assert asked(streams, "--file", file).out == expected
    file.write_text(lines, encoding="utf-8-sig")
    assert asked(streams, "--file", file).out == expected
    file.write_text(f"# of formulas\n{lines} # the end\n")
    assert asked(streams, "--file", file).out == expected
    assert "has nothing but comments" in hf_alpha("solve", stdin="# a\n").err
    file.write_text(lines)
    both = asked(streams, "!a", "--file", file)
    assert both.out == "!a\n  correct    a0\n" + expected
    file.write_text("p\x0c\n&\u2028a b\n")  # other signs than \n end no line
    assert asked(streams, "--file", file).out == (
        "p\\x0c\n  correct    p1\n&\u2028a b\n  correct    a1b1\n"
    )
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"problem": "a"}\n"& a b"\n')
    known = "a\n  correct    a1\n& a b\n  correct    a1b1\n"
    assert asked(streams, "--file", rows).out == known
    for table, separator in ((tmp_path / "rows.csv", ","), (tmp_path / "rows.tsv", "\t")):
        table.write_text(
            separator.join(["id", "problem"]) + f"\n1{separator}a\n2{separator}& a b\n"
        )
        assert asked(streams, "--file", table).out == known
        done = asked(streams, "--file", table, "--source", "formula")
        assert "has no column 'formula': it has 'id', 'problem'" in done.err
        table.write_text(table.read_text().replace("problem", "formula"))
        assert asked(streams, "--file", table, "--source", "formula").out == known
    assert "--source is a column of --file" in hf_alpha("solve", "a", "--source", "x").err
    rows.write_text('{"problem": "a"}\n{"source": "a"}\n')
    done = hf_alpha("solve", "--file", rows)
    assert "row 1 has no column 'problem'" in done.err and "correct    a1" in done.out
    rows.write_text('{"source": "a"}\n')
    assert "rows.jsonl has no column 'problem'" in hf_alpha("solve", "--file", rows).err
    file.write_bytes(b"a & b\xff\na #\n\nb")
    done = hf_alpha("solve", "--file", file)
    assert f"{file}, line 1 is no text in UTF-8" in done.err
    assert f"{file}, line 2: '#' at character 3" in done.err
    assert done.code == 1 and "b\n  correct    b1\n" in done.out


@pytest.mark.slow
def test_rows_of_data_are_read_and_answers_of_many_lines_are_indented(tmp_path):
    pairs = {"keep x\nand y": "x\ny", "keep y\nand x": "y\nx"}
    rules = {"variable": {"pattern": "[xyz]", "count": 3}}
    tokenizer = TextTokenizer.from_texts([*pairs, *pairs.values()], rules)
    settings = {"encoder_position": "rope", "adacos": False, "logit_scale": 10.0, "dropout": 0.0}
    model = make_model(
        symbol_classes=tokenizer.symbol_classes,
        num_base_tokens=tokenizer.num_base_tokens,
        **settings,
    )
    overfit(model, tokenizer, pairs).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    file = tmp_path / "rows.jsonl"
    file.write_text('{"source": "keep z\\nand x", "target": "?"}\n\n"keep y\\nand x"\n')
    solved = ["solve", "--model", tmp_path / "model"]
    done = hf_alpha(*solved, "--file", file)
    assert done.out == (
        f"keep z\nand x\n  answer     z\n{'':13}x\nkeep y\nand x\n  answer     y\n{'':13}x\n"
    )
    texts = ["keep z\nand x", "keep y\nand x"]
    cut_off = [*solve(texts, model=tmp_path / "model", max_new_tokens=2)]
    assert not any(answer.ended for each in cut_off for answer, _ in each.answers)
    for bad, message in (
        ("[1]", "row 0: write a string or a row"),
        ('{"text": "x"}', "row 0 has no column 'source': it has 'text'"),
        ('{"source": 3}', "row 0: the column 'source' holds 3, which is no text"),
        ("x", "row 0 is no JSON"),
    ):
        file.write_text(bad)
        done = hf_alpha(*solved, "--file", file)
        assert done.code == 1 and message in done.err
    assert "is no text in UTF-8" in hf_alpha(*solved, "x \udcff").error


def test_an_answer_says_whether_the_models_own_limit_has_cut_it_off(streams):
    model, tokenizer = load_checkpoint(streams)
    (whole,) = solve(["&ab"], task=TASK, model=(model, tokenizer), method="model")
    assert [(text, text.ended) for text, _ in whole.answers] == [("a1b1", True)]
    model.generation_config.max_length = 3
    (cut,) = solve(["&ab"], task=TASK, model=(model, tokenizer), method="model")
    assert [(text, text.ended) for text, _ in cut.answers] == [("a1", False)]
    (more,) = solve(["&ab"], task=TASK, model=(model, tokenizer), method="model", max_new_tokens=8)
    assert more.answers == whole.answers


def test_one_bad_formula_does_not_stop_the_others(streams):
    bad = ["& a", "a # b", "(a | b", "&a!b c", "!" * 10_000, "(" * 10_000 + "a"]
    done = asked(streams, "a", *bad, "&ab")
    assert done.code == 1
    assert done.out.startswith("a\n  correct    a1\n& a\n")
    assert done.out.endswith("\n&ab\n  correct    a1b1\n")
    errors = done.err.splitlines()
    assert len(errors) == len(bad) and all(line.startswith("  error: ") for line in errors)
    assert "'#' at character 3" in errors[1]


SYNTAX_ERRORS = """
import sys, hf_alpha.cli
for arguments in CALLS:
    sys.argv[1:] = ["solve", *arguments]
    try:
        hf_alpha.cli.main()
    except SystemExit as stop:
        print(stop.code, {"torch", "transformers"} & set(sys.modules))
"""


def test_syntax_errors_are_told_before_torch_is_loaded():
    errors = {
        ("a # b",): "'#' at character 3 has no meaning here",
        ("--task", "ltl", "Y a", "(b"): "'Y' at character 1: past operators are not read",
    }
    script = SYNTAX_ERRORS.replace("CALLS", repr([*errors]))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n").count("1 set()") == 2, done.stderr
    assert all(error in done.stderr for error in errors.values())
    assert "Traceback" not in done.stderr


def test_a_formula_deeper_than_the_stack_is_answered(streams):
    formula = "!" * 3_000 + "a"
    done = asked(streams, stdin=formula)
    assert done.code in (0, 1) and done.err == ""
    assert done.out.startswith(formula + "\n  ")


def test_top_n_prints_n_different_answers_best_first(streams):
    done = asked(streams, "--top", 4, "p | !q", "&pq")
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line for line in lines if line[0] != " "] == ["p | !q", "&pq"]
    assert lines[6] == "  correct    p1q1"
    assert len(set(lines[1:5])) == len(set(lines[6:10])) == 4 and len(lines) == 10


def test_explain_says_why_below_each_answer(streams):
    done = asked(streams, "--explain", "request & !grant", "& x |")
    assert done.out.splitlines()[:7] == [
        "request & !grant",
        "  correct    request 1 grant 0",
        "    Every symbol has a value, and the formula is true.",
        "                       answer",
        "    request                 1",
        "    grant                   0",
        "    !grant                  1",
    ]
    several = asked(streams, "--explain", "--top", 3, "&ab")
    assert several.out.count("    &") == 0 and several.out.count("\n    ") >= 3


def test_notation_is_detected_or_named(streams):
    known = {"model": streams, "task": "propositional", "method": "model"}
    assert solve("a&b", notation="infix", **known).error is None
    assert solve("a&b", notation="prefix", **known).error
    with pytest.raises(ValueError, match="unknown notation 'polish': choose one of prefix, com"):
        solve("a", notation="polish", **known)


def test_a_formula_that_begins_with_a_dash_comes_after_two(streams):
    done = asked(streams, "--device", "cpu", "--", "->ab", "&ab")
    assert done.code in (0, 1) and done.err == ""
    assert done.out.startswith("->ab\n  ") and done.out.endswith("&ab\n  correct    a1b1\n")
    assert "-- '->ab'" in hf_alpha("solve", "--help").out


def test_more_names_than_the_vocabulary(streams, tmp_path):
    many = "n0 & !n1 | n2 | n3 | n4 | n5"
    done = asked(streams, many, "request & !grant")
    assert done.err == "" and len(done.out.splitlines()) == 4
    assert done.out.endswith("  correct    request 1 grant 0\n")

    settings = {"symbol_classes": {"proposition": 3}, "symbol_encoding": "learned"}
    make_model(**settings).save_pretrained(tmp_path)
    build_tokenizer("propositional", 3).save_pretrained(tmp_path)
    done = asked(tmp_path, many, "&ab")
    assert done.code == 1 and done.out.startswith(f"{many}\n&ab\n  ")
    reason = encoding_class("learned").no_extension
    said = f"more names than the 3 symbols that this model was trained on: {reason}\n"
    assert f"  error: {said}" in done.err


def test_extended_on_the_way_answers_as_extended_before(streams):
    problems = ["a | b & !c | d", "&e!f", "^a^b^c^de"]
    (model, tokenizer), (larger, larger_tokenizer) = load_checkpoint(streams), load_checkpoint(
        streams
    )  # fmt: skip
    larger.extend_symbols({"proposition": 20})
    larger_tokenizer.extend_symbols({"proposition": 20})
    first = list(solve(problems, task=TASK, model=(model, tokenizer), method="model", top_n=2))
    assert first == list(
        solve(problems, task=TASK, model=(larger, larger_tokenizer), method="model", top_n=2)
    )
    assert tokenizer.symbol_classes == {"proposition": 5}
    assert first[1].solved and first[1].answers[0] == ("e1f0", Verdict.correct)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere/at/all", "a"], "error: no checkpoint folder 'nowhere/at/all'"),
        (["--model", ".", "a"], "error: '.' is no checkpoint folder"),
        ([], "error: no formula: the input is empty"),
        (["--file", "nowhere.txt"], "file 'nowhere.txt' does not exist"),
        (["--file", "."], "file '.' is a directory"),
        (
            ["--task", "chess", "a"],
            "error: unknown task 'chess': choose one of copying, ltl, propositional",
        ),
        (["--top", "0", "a"], "Invalid value for '--top'"),
    ],
)
def test_bad_calls_say_what_is_wrong(streams, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    model = [] if "--model" in arguments else ["--model", streams]
    done = hf_alpha("solve", *model, *arguments)
    assert message in done.error


def test_ltl_says_what_it_rewrites(ltl):
    done = asked(ltl, "G(request -> F grant)", "& a")
    assert done.out == (
        "G(request -> F grant)\n"
        "  read as    !(1 U (request & !(1 U grant)))\n"
        "  correct    { grant }\n"
        "& a\n"
    )
    assert done.code == 1 and "operand is missing" in done.err


@pytest.mark.parametrize("formula", ["a <-> b", "G (a ^ b)"])
def test_the_model_is_given_what_read_as_shows(formula, ltl):
    model, tokenizer = load_checkpoint(ltl)
    inputs = []
    model.get_encoder().register_forward_pre_hook(
        lambda _, args, kwargs: inputs.append(kwargs["input_ids"].tolist()), with_kwargs=True
    )
    (solution,) = solve([formula], task=get_task("ltl"), model=(model, tokenizer), method="model")
    assert solution.problem == formula and "<->" not in solution.read_as
    shown = tokenizer(solution.read_as, notation="infix")["input_ids"]
    assert inputs == [[shown]] == [[tokenizer(formula)["input_ids"]]]


def test_a_formula_is_read_once(ltl, readings):
    done = asked(ltl, "--top", "3", "G(alarm -> F reset)")
    assert "  read as    !(1 U (alarm & !(1 U reset)))\n" in done.out
    assert [text for text in readings if "alarm" in text] == ["G(alarm -> F reset)"]


def test_a_lone_name_that_looks_like_operators_stays_a_name(ltl):
    done = asked(ltl, '"Grant"', '"X1"')
    assert "read as" not in done.out and done.err == ""
    formulas = ['G("a;b" -> F "}")', 'G(größe -> F "p q")']
    done = asked(ltl, *formulas)
    assert [line for line in done.out.splitlines() if "correct" in line] == [
        '  correct    { "}" }',
        '  correct    { "p q" }',
    ]
    assert '  read as    !(1 U ("größe" & !(1 U "p q")))' in done.out.splitlines()


def test_the_task_is_what_the_model_says(ltl, tmp_path, hub):
    """By its recipe, or by its tokenizer; another task, or none, is an error that says so."""
    assert asked(ltl, "G(a -> F b)").out.endswith("  correct    {b}\n")
    other = asked(ltl, "--task", "propositional", "a").error
    assert other == (
        f"error: {ltl} is for the task 'ltl', not for 'propositional': leave out --task, or name "
        "another model"
    )
    older = tmp_path / "older"  # saved when models read | as it is
    shutil.copytree(ltl, older)
    tokenizer = AutoTokenizer.from_pretrained(ltl)
    tokenizer.grammar = LTL
    tokenizer.save_pretrained(older)
    read = asked(older, "G(a -> F b)").out
    assert "  read as    !(1 U !(!a | 1 U b))\n" in read
    copies = make_model(num_base_tokens=3, symbol_classes={"character": 3}, encoder_position="rope")
    copies.save_pretrained(tmp_path)
    build_tokenizer("copying", 3).save_pretrained(tmp_path)
    unsaid = hf_alpha("solve", "--model", tmp_path, "ab").error
    assert "does not say which task it is for: name it by --task: copying, ltl, propo" in unsaid
    assert hf_alpha("solve", "--model", tmp_path, "--task", "copying", "ab").err == ""
    for command in (["solve", "x y", "--model"], ["evaluate"]):
        found = hf_alpha(*command, "nobody/nope").error
        assert "'nobody/nope' is neither a folder here nor a complete model that can be re" in found


@pytest.mark.slow
def test_names_of_a_column_are_given_with_the_text(streams, tmp_path):
    rules = {name: {"column": f"{name}s", "count": 3} for name in ("person", "place")}
    text = MarkedText("give zoe -> max in rome", [(5, 8, "person"), (19, 23, "place")])
    tokenizer = TextTokenizer.from_texts([text], rules)
    tokenizer.save_pretrained(tmp_path)
    make_model(
        encoder_position="rope",
        num_base_tokens=tokenizer.num_base_tokens,
        symbol_classes=tokenizer.symbol_classes,
    ).save_pretrained(tmp_path)

    def asked(*names: str, model: Path = tmp_path):
        options = [word for name in names for word in ("--names", name)]
        return hf_alpha("solve", "--model", model, *options, text)

    solution = next(solve([
        MarkedText(text, [(5, 8, "person"), (12, 15, "person"), (19, 23, "place")])
    ], task=TextTask(rules), model=load_checkpoint(tmp_path)))  # fmt: skip
    done = asked("person=zoe, max", "place=rome")
    assert done.out == f"{text}\n  answer     {solution.answers[0][0]}\n"
    assert asked("person=zoe,max,place=rome").out == done.out
    rows = tmp_path / "rows.jsonl"
    row = {"source": text, "persons": ["zoe", "max"], "places": "rome"}
    rows.write_text(f"{json.dumps(row)}\n")
    assert hf_alpha("solve", "--model", tmp_path, "--file", rows).out == done.out
    rows.write_text(json.dumps({**row, "places": ["oslo"]}))
    error = hf_alpha("solve", "--model", tmp_path, "--file", rows).err
    assert "row 0: the column 'places' has the name 'oslo', which is no word of the" in error
    assert "or on the command line by --names" in asked().err
    assert "'ma' stands in no text, or not as" in asked("person=zoe,ma").error
    assert "names zoe: write person=..., with one of the classes person, place" in (
        asked("zoe").error
    )
    assert "'propositional' has none" in asked("zoe", model=streams).error


def test_model_and_tokenizer_that_disagree(streams, tmp_path):
    make_model(symbol_classes={"proposition": 4}).save_pretrained(tmp_path)
    build_tokenizer("propositional", 3).save_pretrained(tmp_path)
    assert hf_alpha("solve", "--model", tmp_path, "a").error.startswith(
        f"error: {tmp_path}: model and tokenizer disagree: symbol_classes is {{'proposition': 4}}"
    )


def test_a_problem_is_solved_in_one_line():
    """Its task is found by its operators; the solver needs no model."""
    solution = hf_alpha_root.solve("G(a -> F b)")
    assert solution.solved and solution.found_by == "bounded search"
    assert solution.read_as == "!(1 U !(!a | 1 U b))" and solution.seconds > 0
    assert hf_alpha_root.solve("a & !b").answers == [("a1b0", Verdict.correct)]
    several = list(hf_alpha_root.solve(["F a", "F &", "G a & F !a"]))
    assert [one.status for one in several] == ["solved", "error", "unsatisfiable"]
    assert several[2].found_by == "bounded search", "nobody is asked after a proof"
    assert solve(TASK.read("request & !grant"), task=TASK).problem == "request & !grant"
    chain = solve(" <-> ".join("abcdefghijklmnopqrstu"), task="ltl")
    assert chain.solved and chain.read_as is None and chain.record()["tokens"] is None
    assert list(solve([])) == []


def test_a_solver_answers_where_the_model_is_wrong(streams):
    """Its answer is the first one, and says who found it; answers of the model stay behind it."""
    model = load_checkpoint(streams)
    problems = ["^a^b^ca", "^^abc", "^a^b!c", "&^ab^bc", "^a!^bc"]
    tried = solve(problems, task=TASK, model=model, method="model", top_n=2)
    wrong, problem = next(pair for pair in zip(tried, problems, strict=True) if not pair[0].solved)
    assert wrong.found_by == "model"
    (both,) = solve([problem], task=TASK, model=model, top_n=2)
    assert both.found_by == "python-sat" and both.best[1] is Verdict.correct
    assert len(both.answers) == 2 and both.answers[0] == both.best
    (known,) = solve(["&ab"], task=TASK, model=model)
    assert known.found_by == "model" and known.answers == [("a1b1", Verdict.correct)]
    done = hf_alpha("solve", "--model", streams, problem, "&ab", "a & !a & b")
    assert re.findall("found by   (.*), ", done.out) == ["python-sat", "model", "python-sat"]
    assert done.code == 0
    assert "  unsatisfiable\n  because    a\n  and        !a\n" in done.out


def test_what_nothing_proves_is_not_called_unsatisfiable():
    """Neither by a task without a proof, nor by one whose solver gives up."""
    toy = ToyTask()
    solution = Solution("& a b", read=toy.read("& a b"))
    assert [*ask(Chain("proof", [Refutation]), toy, [solution])] == [solution]
    assert toy.has_answer("& a b") is None and solution.status == "unknown"


def test_unknown_is_told_when_the_time_is_up():
    """Of pigeons in too few holes, which takes resolution exponential time."""
    hard, options = pigeons(10), ("--method", "solver", "--timeout", "0.2")
    done = hf_alpha("solve", *options, "--task", "propositional", hard, "a")
    assert done.code == 1 and "  unknown\na\n" in done.out
    assert "error: the solver was not done within 0.2 s" in done.err


class GivesUp(PropositionalTask):
    """Its solver has never time enough."""

    def decide(self, problem, timeout=None):
        return Decision("nobody", reason="the time is up")


def test_an_answer_takes_the_place_of_an_error(streams):
    """Whoever answers after one who could not, and in whatever order they are asked."""
    task, model = GivesUp(), Model("streams", *load_checkpoint(streams))
    solution = Solution("&ab", read=task.read("&ab"))
    assert [*ask(Chain("solver", [Solver]), task, [solution])] == [solution]
    assert (solution.status, solution.error) == ("unknown", "the time is up")
    for links in ([Solver, lambda: model], [lambda: model, Solver]):
        (solution,) = ask(Chain("both", links), task, [solution])
        assert (solution.status, solution.error) == ("solved", None)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"method": "magic"}, "unknown method 'magic': choose one of auto, model, solver"),
        ({"method": "solver", "top_n": 3}, "the method 'solver' asks no model"),
        ({"method": "solver", "task": "copying"}, "task 'copying' has no solver"),
        ({"timeout": 0}, "timeout is 0"),
        ({"top_n": 0}, "top_n is 0"),
        ({"task": TextTask({})}, "no model of task 'text' is released"),
        ({"model": (None, None)}, "say by `task` which task the model is for"),
    ],
)
def test_settings_that_contradict_one_another(settings, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        solve("a", **settings)


def test_batches_answer_as_one_by_one(streams):
    """In the order of the input, whatever lies between; large problems make smaller batches."""
    model = load_checkpoint(streams)
    problems = ["&ab", "a #", "!a", "! " * 300 + "a", "&a!b", "a"] * 6
    settings = {"task": TASK, "model": model, "method": "model"}
    one_by_one = [solve(problem, **settings) for problem in problems[:6]]
    together = list(solve(iter(problems), **settings))
    assert together == one_by_one * 6


def test_a_stream_is_read_a_window_at_a_time():
    read = []

    def problems():
        for number in range(3 * WINDOW):
            read.append(number)
            yield f"a{number}"

    solutions = solve(problems(), task=TASK)
    assert next(solutions).answers[0][0] == "a0 1" and len(read) == WINDOW
    assert sum(solution.solved for solution in solutions) == 3 * WINDOW - 1


def test_who_waits_for_a_slow_problem_has_the_answers_before_it():
    """Also behind one that cannot be read; a problem that nobody settles keeps its place."""
    asked = []

    class Slow(PropositionalTask):
        def decide(self, problem, seconds=10.0):
            asked.append(problem.given)
            if problem.given == "d":
                return Decision("nobody", reason="the time is up")
            return super().decide(problem, seconds)

    solutions = solve(["a", "b #", "c", "d", "e"], task=Slow(), method="solver")
    assert [next(solutions).problem for _ in range(3)] == ["a", "b #", "c"] and asked == ["a", "c"]
    assert [one.status for one in solutions] == ["unknown", "solved"]


def test_json_is_what_the_schema_says(streams, tmp_path):
    schema = json.loads((ROOT / "docs" / "solve.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    arguments = ["G(a -> F b)", "F a & G !a & b", "F (", "X a", "--task", "ltl"]
    done = hf_alpha("solve", "--json", *arguments)
    more = hf_alpha("solve", "--json", "--model", streams, "--top", 2, "&ab", "a & !a")
    rows = [json.loads(line) for line in (done.out + more.out).splitlines()]
    for row in rows:
        jsonschema.validate(row, schema)
    assert [row["status"] for row in rows] == [
        "solved", "unsatisfiable", "error", "solved", "solved", "unsatisfiable"
    ]  # fmt: skip
    assert rows[1]["core"] == ["F a", "G !a"] and rows[3]["answer"] and rows[0]["tokens"] == 10
    assert set(schema["required"]) == set(schema["properties"]) == rows[0].keys()


def test_answers_in_a_file_are_resumed(tmp_path):
    """After a stop at any byte the file becomes what it would have been."""
    problems = tmp_path / "problems.txt"
    problems.write_text("F a\n\nF (\nG a & F !a\nX b\n")
    out = tmp_path / "answers.jsonl"
    command = ["solve", "--file", problems, "--out", out]
    done = hf_alpha(*command)
    assert done.code == 1 and done.err == ""
    assert done.out == f"4 formulas: 1 error, 2 solved, 1 unsatisfiable; written to {out}\n"
    whole = out.read_bytes()
    assert "is there already: --resume goes on with it" in hf_alpha(*command).error
    lines = whole.splitlines(keepends=True)
    for kept in (0, 10, len(lines[0]), len(lines[0]) + len(lines[1]) + 3, len(whole)):
        out.write_bytes(whole[:kept])
        assert hf_alpha(*command, "--resume").out == done.out
        assert [{**row, "seconds": 0} for row in rows_in(out)] == [
            {**json.loads(line), "seconds": 0} for line in lines
        ]
    problems.write_text("F a\nF b\n")
    assert "line 2 answers 'F (', but the input has 'F b' there" in (
        hf_alpha(*command, "--resume").error
    )
    for foreign in (
        "[]\n",
        "a note",
        '{"problem": "F"',
        '{"a": 1}',
        '{"problem": "F a"}\n',
        "\xff",
    ):
        out.write_text(foreign, encoding="latin-1")
        assert f"{out}, line 1" in hf_alpha(*command, "--resume").error
        assert out.read_text(encoding="latin-1") == foreign, "it is not ours, and stays"
    out.write_text("[" * 100_000 + "\n")
    assert f"{out}, line 1" in hf_alpha(*command, "--resume").error
    out.write_bytes(lines[0] + b"a note")
    assert f"{out}, line 2" in hf_alpha(*command, "--resume").error
    problems.write_text("F a\n")
    for more in (b"a note", lines[1][:5]):  # there is no next problem that it could answer
        out.write_bytes(lines[0] + more)
        assert f"{out}, line 2" in hf_alpha(*command, "--resume").error
        assert out.read_bytes() == lines[0] + more
    nowhere = tmp_path / "no" / "o.jsonl"
    assert f"no folder {nowhere.parent} to write" in hf_alpha("solve", "a", "--out", nowhere).error
    assert f"{tmp_path} is a folder" in hf_alpha("solve", "a", "--out", tmp_path).error
    assert "--resume goes on with the file of --out" in hf_alpha("solve", "a", "--resume").error


@pytest.mark.parametrize("end", [".csv", ".TSV"])
def test_a_table_of_answers_has_the_rows_and_is_written_whole(tmp_path, end):
    """Also one that is gone on with; a row that cannot be read keeps its place."""
    problems, out = tmp_path / "problems.csv", tmp_path / f"answers{end}"
    problems.write_text('n,problem,answer\n1,a & b,"x, y"\n2,,#\n3,!a,\n4,# a,z\n')
    command = ["solve", "--task", "propositional", "--file", problems, "--out", out]
    done = hf_alpha(*command)
    assert done.out == f"4 formulas: 2 error, 2 solved; written to {out}\n" and done.code == 1
    rows = read_table(out)
    given = [("1", "a & b", "x, y"), ("2", "", "#"), ("3", "!a", ""), ("4", "# a", "z")]
    assert [(row["n"], row["problem"], row["answer"]) for row in rows] == given
    assert [row["new_answer"] for row in rows] == ["a1b1", "", "a0", ""]
    assert [row["status"] for row in rows] == ["solved", "error", "solved", "error"]
    assert "row 1: the column 'problem' holds nothing" in rows[1]["error"]
    assert "is there already, and whole" in hf_alpha(*command, "--resume").error
    lines = tmp_path / "answers.jsonl"
    assert hf_alpha(*command[:-1], lines).code == 1
    assert [row["row"]["n"] for row in rows_in(lines)] == [row["n"] for row in rows]
    content, collected = out.read_bytes(), lines.read_bytes()
    part = out.with_name(f"{out.name}.part")
    assert not part.exists()
    for kept in (0, 300, len(collected)):
        out.unlink()
        part.write_bytes(collected[:kept])
        assert "--resume goes on with it" in hf_alpha(*command).error and not out.exists()
        assert hf_alpha(*command, "--resume").out == done.out
        assert out.read_bytes() == content and not part.exists()
    again = [*command[:4], out, "--out", tmp_path / "again.csv"]
    assert hf_alpha(*again).code == 1
    assert "new_new_answer" in read_table(tmp_path / "again.csv")[0]
    error = hf_alpha("solve", "a", "--out", tmp_path / "a.xlsx").error
    assert "--out writes .jsonl, .ndjson, .json, .csv, .tsv: give" in error


def read_table(file: Path) -> list[dict]:
    dialect = "excel-tab" if file.suffix.lower() == ".tsv" else "excel"
    with file.open(newline="", encoding="utf-8") as lines:
        return [*csv.DictReader(lines, dialect=dialect)]


def test_scores_are_log_probabilities_of_answers(streams):
    """Those of answers that are read in one pass, whatever the search; batches do not matter."""
    model, tokenizer = load_checkpoint(streams)
    model.eval()
    problems = ["&ab", "|!a!b", "!a"]
    for settings in ({"num_beams": 1}, {"num_beams": 4, "top_n": 4, "length_penalty": 0.3}):
        settings |= {"task": TASK, "model": (model, tokenizer), "method": "model"}
        for solution in solve(problems, scores=True, **settings):
            for answer, _ in solution.answers:
                pair = tokenizer.encode_pair(solution.problem, answer)
                inputs = tokenizer.pad([pair], return_tensors="pt")
                with torch.no_grad():
                    logits = model(**inputs).logits.log_softmax(-1)
                rates = logits.gather(2, inputs["labels"][..., None])
                assert answer.score == pytest.approx(rates.sum().item(), abs=1e-4)
        (one,) = solve(problems[:1], **settings)
        assert {answer.score for answer, _ in one.answers} == {None}


def rows_in(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_grammar_keeps_a_model_to_answers(streams, tmp_path):
    model = load_checkpoint(streams)
    problems, settings = ["|!a!b", "^a^b^ca", "&ab"], {"task": TASK, "model": model, "top_n": 10}
    free, kept = (
        [
            verdict
            for solution in solve(problems, **settings, method="model", grammar=grammar)
            for _, verdict in solution.answers
        ]
        for grammar in (False, True)
    )
    assert Verdict.malformed in free and Verdict.malformed not in kept
    with pytest.raises(ValueError, match="no grammar of answers for this task"):
        solve("ab", task="copying", method="model", grammar=True)
