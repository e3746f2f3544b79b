import copy
import random

import pytest
from datasets import Dataset
from strategies import make_model

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, TextTokenizer
from hf_alpha.answer.base import Random, Search, Solver
from hf_alpha.answer.models import Model
from hf_alpha.answer.solving import Chain
from hf_alpha.evaluation import Report, evaluate, run
from hf_alpha.evaluation.report import OUTSIDE
from hf_alpha.generation import generate_answers
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Verdict, get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer

TASK = PropositionalTask()
FAST = {"max_new_tokens": 5, "progress": False}


def make_rows(count: int, symbols: int = 4) -> list[dict]:
    rng = random.Random(0)
    problems = [TASK.sample(rng, rng.randint(1, 9), "abcdefgh"[:symbols]) for _ in range(count)]
    return [{"problem": p, "answer": TASK.target(p)} for p in problems]


def by_chance(task, rows, seed: int = 0) -> Report:
    return run(Random("chance", seed), task, rows, progress=False)


class CountingTask(PropositionalTask):
    """Counts its checks, and stops the run like Ctrl-C at one of them."""

    def __init__(self, stop_at: int | None = None):
        self.checks = 0
        self.stop_at = stop_at

    def check(self, *args, **kwargs) -> Verdict:
        if self.checks == self.stop_at:
            raise KeyboardInterrupt
        self.checks += 1
        return super().check(*args, **kwargs)


@pytest.mark.parametrize("encoding", ["learned", "streams"])
def test_records_say_what_the_model_answered_and_the_task_found(encoding):
    model = make_model(symbol_encoding=encoding, symbol_classes={"proposition": 3})
    tokenizer, rows = build_tokenizer("propositional", 3), make_rows(24)
    report = evaluate(model, tokenizer, "propositional", Dataset.from_list(rows), top_n=2, **FAST)
    answers = generate_answers(
        model, tokenizer, [row["problem"] for row in rows], num_return_sequences=2, **FAST
    )
    assert {len(TASK.symbols_of(row["problem"])) for row in rows} >= {2, 3, 4}
    for index, (row, found, record) in enumerate(zip(rows, answers, report.records, strict=True)):
        problem = row["problem"]
        assert (record.index, record.problem, record.target) == (index, problem, row["answer"])
        assert record.num_symbols == len(TASK.symbols_of(problem))
        assert record.size == len(TASK.parse(problem))
        if record.num_symbols == 4:
            assert record.answers is None and record.verdicts == (OUTSIDE,)
        else:
            assert list(record.answers) == found
            checked = [TASK.check(problem, x, row["answer"], "compact") for x in found]
            assert record.verdicts == tuple(checked)
    assert report.by_num_symbols[4].is_outside


def test_a_rule_that_finds_no_name_in_most_problems_is_named(caplog):
    rules = {"small": {"pattern": "[a-z]", "count": 3}, "large": {"pattern": "[A-Z]", "count": 3}}
    tokenizer = TextTokenizer.from_texts(["swap a B"], rules)
    config = AlphaConfig.for_tokenizer(tokenizer, encoder_position="rope", d_model=36)
    model, task = AlphaForConditionalGeneration(config), get_task("text")
    rows = [{"problem": f"swap {x}", "answer": x} for x in ("a B", "A B", "A", "B C")]
    evaluate(model, tokenizer, task, rows[:2], **FAST)
    assert not caplog.messages  # in half of the problems there is one
    evaluate(model, tokenizer, task, rows, **FAST)
    (message,) = caplog.messages
    assert (
        "the rule of 'small', {'pattern': '[a-z]', 'count': 3}, finds no name in 3 of 4" in message
    )


def test_the_search_is_as_wide_as_the_papers_unless_told():
    for settings, beams in [
        ({}, 3), ({"top_n": 2}, 3), ({"top_n": 4}, 4), ({"num_beams": 1}, 1),
        ({"num_beams": 1, "top_n": 2}, 2),
    ]:  # fmt: skip
        answerer = Model("", make_model(), None, Search(**settings))
        assert answerer.search_arguments(TASK)["num_beams"] == beams


def test_a_random_answer_is_the_same_for_the_same_seed():
    rows = [row for row in make_rows(300) if row["answer"] is not None]
    report = by_chance(TASK, rows, 1)
    assert report == by_chance("propositional", rows, 1)
    assert report != by_chance(TASK, rows, 2)
    three = run(Random("chance", 1, 3), TASK, rows, progress=False)
    assert all(len(record.answers) == 3 for record in three.records)
    assert three.overall.correct == report.overall.correct <= three.overall.top_n
    assert 0.3 < report.overall.correct < 0.95
    assert all(r.outcome in ("exact", "correct", "wrong") for r in report.records)
    assert all(set(r.answers[0]) - {"0", "1"} == set(TASK.symbols_of(r.problem))
               for r in report.records)  # fmt: skip


def test_solvers_and_chains_are_answerers_like_models(tmp_path):
    rows = [*make_rows(20), {"problem": "&a!a"}]
    report = run(Solver(), TASK, rows, tmp_path, progress=False)
    assert report == Report.load(tmp_path)
    *found, contradiction = report.records
    assert all(record.any_correct for record in found if record.target is not None)
    assert contradiction.answers == () and contradiction.verdicts == ("malformed",)
    assert report.reasons["proved to have no answer"] >= 1
    chance, seen = Random("chance"), []

    class Rest(Solver):
        def answer(self, task, problems):
            seen.extend(problems)
            return super().answer(task, problems)

    chain = run(Chain("both", [lambda: chance, Rest]), TASK, rows, progress=False)
    assert [r.any_correct for r in chain.records] == [r.any_correct for r in report.records]
    alone = run(chance, TASK, rows, progress=False)
    assert seen == [record.index for record in alone.records if not record.any_correct]


def test_files_of_others_are_left_alone(tmp_path):
    model, tokenizer = make_model(), build_tokenizer("propositional", 5)
    names = {
        "progress-0.jsonl": ("my notes", "belongs to no evaluation"),
        "progress.json": ("[" * 100_000, "progress.json is damaged: it is no JSON"),
        "report.json": ('{"a": 1}', "report.json is damaged"),
        "records.jsonl": ("[]\n", "report.json or records.jsonl is damaged"),
    }
    report = '{"model": "m", "settings": {}, "alpha_covariance": null}'
    for name, (content, message) in names.items():
        (folder := tmp_path / name).mkdir()
        texts = {"report.json": report, "records.jsonl": ""} if name[:2] == "re" else {}
        for file, text in {**texts, name: content}.items():
            (folder / file).write_text(text)
        with pytest.raises(ValueError, match=message):
            evaluate(model, tokenizer, TASK, make_rows(2), folder=folder, batch_size=4, **FAST)
        assert (folder / name).read_text() == content


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    model, tokenizer = make_model(), build_tokenizer("propositional", 5)
    rows, settings = make_rows(20), {"batch_size": 4, "num_beams": 1, **FAST}
    whole = evaluate(model, tokenizer, TASK, rows, **settings)

    with pytest.raises(KeyboardInterrupt):
        evaluate(model, tokenizer, CountingTask(stop_at=10), rows, folder=tmp_path, **settings)
    with pytest.raises(FileNotFoundError):
        Report.load(tmp_path)
    part = tmp_path / "progress-0.jsonl"
    assert len(part.read_text().splitlines()) == 8
    part.write_text(part.read_text()[:-20])  # as if killed while writing the eighth

    with pytest.raises(ValueError, match="other settings: num_beams is 1 there and 2 here, "):
        evaluate(model, tokenizer, TASK, rows, folder=tmp_path, **{**settings, "num_beams": 2})
    with pytest.raises(ValueError, match="other settings: weights is"):
        evaluate(make_model(1), tokenizer, TASK, rows, folder=tmp_path, **settings)

    second = CountingTask()
    resumed = evaluate(
        model, tokenizer, second, rows, folder=tmp_path, **{**settings, "batch_size": 3}
    )
    assert second.checks == 13
    assert resumed == whole == Report.load(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records.jsonl", "report.json"]

    finished = CountingTask()
    assert evaluate(model, tokenizer, finished, rows, folder=tmp_path, **settings) == whole
    assert finished.checks == 0
    with pytest.raises(ValueError, match="other settings: data is"):
        evaluate(model, tokenizer, TASK, rows[1:], folder=tmp_path, **settings)

    other, wider = copy.deepcopy(model), build_tokenizer("propositional", 5)
    other.generation_config.suppress_tokens = [3]
    wider.name_patterns = {"proposition": "[a-e]"}
    for key, each, tokens in [("generation", other, tokenizer), ("tokenizer", model, wider)]:
        with pytest.raises(ValueError, match=f"other settings: {key} is"):
            evaluate(each, tokens, TASK, rows, folder=tmp_path, **settings)

    (tmp_path / "records.jsonl").unlink()  # as where only reports are kept in a repository
    again = CountingTask()
    assert evaluate(model, tokenizer, again, rows, folder=tmp_path, **settings) == whole
    assert again.checks == 20 and Report.load(tmp_path) == whole


def test_bad_rows_are_named():
    model, tokenizer = make_model(), build_tokenizer("propositional", 5)
    with pytest.raises(ValueError, match="row 1 has no `problem` or `source`: it has formula"):
        evaluate(model, tokenizer, TASK, [{"problem": "a"}, {"formula": "a"}], **FAST)
    with pytest.raises(FormulaError, match="problem 1: "):
        evaluate(model, tokenizer, TASK, [{"problem": "a"}, {"problem": "&a"}], **FAST)
    with pytest.raises(ValueError, match="row 0 is 'a': give rows such as"):
        evaluate(model, tokenizer, TASK, ["a", "b"], **FAST)
    with pytest.raises(ValueError, match="`dataset` is the string '&ab': give a list of rows"):
        evaluate(model, tokenizer, TASK, "&ab", **FAST)


def test_pairs_may_be_called_source_and_target():
    model, tokenizer = make_model(), build_tokenizer("propositional", 5)
    pairs = [("a", "a1"), ("&a!b", "a1b0")]
    ours = [{"problem": problem, "answer": answer} for problem, answer in pairs]
    users = [{"source": problem, "target": answer} for problem, answer in pairs]
    assert evaluate(model, tokenizer, TASK, users, **FAST) == evaluate(
        model, tokenizer, TASK, ours, **FAST
    )


def test_strings_outside_the_vocabulary_are_as_far_as_they_are_long():
    model = make_model(
        symbol_encoding="learned", num_base_tokens=3, symbol_classes={"character": 2},
        encoder_position="rope",
    )  # fmt: skip
    rows = [{"problem": problem} for problem in ("abab", "abcabc", "xyx", "request grant request")]
    report = evaluate(model, build_tokenizer("copying", 2), "copying", rows, **FAST)
    task = get_task("copying")
    assert report.settings["num_beams"] == 1 and report.settings["solver"] == "auto"
    assert report.records[1].verdicts == (OUTSIDE,) and report.records[1].distance == 6
    for record in report.records:
        if record.answers is not None:
            assert record.distance == task.distance(record.problem, record.answers[0])
    assert report.overall.edit_distance == sum(r.distance for r in report.records) / 4
    random_report = by_chance("copying", rows)
    assert all(record.distance is not None for record in random_report.records)
    assert by_chance(TASK, make_rows(1)).overall.edit_distance is None


class FactTask(PropositionalTask):
    """Knows the number of negations, and counts how often it had to find it."""

    facts = ("negations",)

    def __init__(self):
        self.found = 0

    def facts_of(self, tokens, answer=None):
        self.found += 1
        return {"negations": tokens.count("!")}


def test_facts_are_read_or_found_once():
    task, rows = FactTask(), [{"problem": p} for p in ("a", "!a", "!b", "&!a!b")]
    report = by_chance(task, rows)
    assert [record.facts for record in report.records] == [{"negations": n} for n in (0, 1, 1, 2)]
    assert by_chance(task, rows) == report and task.found == 4
    known = [{"problem": "!!a", "num_symbols": 1, "size": 3, "negations": None}]
    (record,) = by_chance(task, known).records
    assert record.facts == {"negations": None} and task.found == 4
    assert {n: rates.count for n, rates in report.by_fact("negations").items()} == {
        0: 1,
        1: 2,
        2: 1,
    }
