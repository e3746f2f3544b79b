"""The tasks of lm-evaluation-harness: plans, measures by hand, and a run of the harness itself."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import byte_level
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.names import picture, tasks
from benchmarks.names.questions import Kind
from benchmarks.names.suites import SUITES
from benchmarks.names.tasks import MEASURES, Plan, item_of, results, rows

FOLDER = Path(tasks.__file__).parent


def table(*questions, kinds=("seen", "misleading")):
    """Answers of questions: of each kind a text, whose letters are answers; capitals are right."""
    return [
        (number, kind, i, None if a == "-" else a, a.isupper())
        for number, texts in enumerate(questions)
        for kind, text in zip(kinds, texts, strict=True)
        for i, a in enumerate(text)
    ]


def test_measures_by_hand():
    """Two questions, each with two namings of two kinds; `X`, `Y` are right answers, `w` wrong."""
    asked = table(("XY", "wX"), ("w-", "Xw"))
    measured = {name: getattr(tasks, name)(asked) for name in MEASURES if name not in
                ("unseen", "nonsense")}  # fmt: skip
    assert measured == {
        "seen": 2 / 4, "misleading": 2 / 4, "always": 0,
        "changed": 4 / 6,  # Y w from X, nothing X from w
        "right_to_wrong": 1 / 6, "wrong_to_right": 1 / 6, "no_answer": 1 / 8,
        "alpha_covariance": pytest.approx(1 / 3),  # 3 different answers of 4, twice: 1 - 2/3
    }  # fmt: skip


def test_equal_averages_hide_changes():
    asked = table(("X", "w"), ("w", "X"))
    assert tasks.seen(asked) == tasks.misleading(asked) == 1 / 2
    assert tasks.changed(asked) == 1 and tasks.always(asked) == tasks.alpha_covariance(asked) == 0


two = st.text("XYwv-", min_size=2, max_size=2)


@given(st.lists(st.tuples(two, two), min_size=1, max_size=6), st.randoms())
def test_what_always_holds(questions, rng):
    """In whatever order the harness gives the answers."""
    asked = table(*questions)
    shuffled = rng.sample(asked, len(asked))
    for name in ("seen", "misleading", "always", "changed", "right_to_wrong", "wrong_to_right",
                 "alpha_covariance", "no_answer"):  # fmt: skip
        assert math.isclose(getattr(tasks, name)(asked), getattr(tasks, name)(shuffled))
    broken, mended = tasks.right_to_wrong(asked), tasks.wrong_to_right(asked)
    assert broken + mended <= tasks.changed(asked) + 1e-9, "another verdict is another answer"
    assert tasks.always(asked) <= min(tasks.seen(asked), tasks.misleading(asked)) + 1e-9
    reference = sum(right for _, kind, i, _, right in asked if (kind, i) == ("seen", 0))
    rights = sum(one[4] for one in asked)
    change = (tasks.wrong_to_right(asked) - tasks.right_to_wrong(asked)) * 3 * len(questions)
    assert math.isclose(rights - 4 * reference, change, abs_tol=1e-9)


@pytest.mark.parametrize("suite", SUITES)
def test_targets_are_right_and_only_names_differ(suite):
    """Each row's target, in its own names, is a right answer; a question's prompts are one text."""
    settings = {"suite": suite, "questions": 2, "namings": 2, "examples": 1, "unknown": "left out"}
    first, second = (rows(**settings)["test"] for _ in range(2))
    assert first.to_list() == second.to_list() and len(first) == 2 * 4 * 2
    unnamed = {}
    for row in first:
        item = item_of(row)
        reply = item.question.target
        for number, name in enumerate(item.names):
            reply = reply.replace(chr(0xE000 + number), name)
        (asked,) = {*results(row, [f" {reply}\nand more"]).values()}
        assert asked[:3] == (row["number"], row["kind"], row["naming"])
        assert asked[3] == item.question.target and asked[4], (row, reply)
        (nothing,) = {*results(row, [""]).values()}
        assert nothing[3:] == (None, False)
        unnamed.setdefault(row["number"], set()).add(item.question.text)
    assert all(len(texts) == 1 for texts in unnamed.values())
    assert {row["kind"] for row in first} == {*map(str, Kind)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"suite": "poetry"}, "no suite 'poetry': choose from propositional, ltl"),
        ({"suite": "sql", "difficulty": 9}, "questions of sql have names for 1 to 5"),
        ({"suite": "sql", "namings": 0}, "ask at least one question"),
    ],
)
def test_plans_that_cannot_be_asked(settings, message):
    with pytest.raises(ValueError, match=message):
        Plan(**settings)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("group", ["names_chat", "names"])
def test_the_harness_asks_a_model(tmp_path, group):
    """All suites, by the files that `lm_eval --include_path` reads, with a tiny GPT-2."""
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    tokenizer = byte_level()
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 2048}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes, pad_token_id=0))
    found = lm_eval.simple_evaluate(
        HFLM(model, tokenizer=tokenizer, device="cpu", batch_size=8),
        tasks=[group],
        task_manager=TaskManager(
            include_path=str(FOLDER),
            include_defaults=False,
            metadata={"questions": 1, "namings": 1, "examples": 0},
        ),
        gen_kwargs={"max_gen_toks": 2},
        apply_chat_template=group == "names_chat",
        bootstrap_iters=0,
    )
    assert found["groups"][group]["no_answer,none"] > 0.5
    assert set(found["group_subtasks"][group]) == {f"names_{suite}" for suite in SUITES}
    chats = [row["doc"]["chat"] for rows in found["samples"].values() for row in rows]
    assert chats == [group == "names_chat"] * 4 * len(SUITES)
    (tmp_path / "results.json").write_text(json.dumps({**found, "samples": None}, default=str))
    picture.main(f"{tmp_path / 'names.png'}", f"{tmp_path / 'results.json'}")
    assert (tmp_path / "names.png").stat().st_size > 10_000
