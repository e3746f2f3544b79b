"""Models whose answers are known, behind a server and here: their scores, files and resumption."""

import json
from dataclasses import replace

import pytest
from chat_server import serving
from pictures import is_picture
from small_tokenizers import byte_level
from transformers import GPT2Config, GPT2LMHeadModel

from hf_alpha.evaluation.instructed import LocalModel
from hf_alpha.evaluation.service import Service, ServiceError
from hf_alpha.names_benchmark.questions import Kind, marked
from hf_alpha.names_benchmark.run import Plan, ask_all, names_benchmark, scores_of
from hf_alpha.names_benchmark.suites import SUITES

PLAN = Plan(questions=3, difficulty=1, namings=2, examples=2)


def targets(plan, plain=False):
    """Prompt -> its item, and the right answer in its names."""
    return {
        str(item.prompt(plain)): (
            item,
            str(marked(item.question.target, item.names, item.question.classes)),
        )
        for item in plan.items()
    }


def rule(plan, knows):
    """Replies right if `knows` says so of an item, else `I do not know`."""
    known = targets(plan)

    def reply(prompt):
        item, target = known[prompt]
        return f"Let me see.\nAnswer: {target}" if knows(item) else "Answer: ?"

    return reply


def scores(plan, knows):
    with serving(rule(plan, knows)) as server:
        model = Service(server.address, "it")
        return scores_of(ask_all("it", model, list(plan.items())))


def test_who_knows_all_is_right_under_all_names():
    found = scores(PLAN, lambda item: True)
    assert set(found) == {*SUITES, "all"}
    for one in found.values():
        assert one.always.mean == 1 and one.all_kinds.changed.mean == 0
        assert one.covariance.mean == 1 and one.all_kinds.missing == 0


def test_who_knows_seen_names_alone():
    found = scores(replace(PLAN, suites=("tools", "sql")), lambda item: item.kind is Kind.SEEN)
    for one in found.values():
        assert [kind.right.mean for kind in one.kinds.values()] == [1, 0, 0, 0]
        assert one.kinds[Kind.SEEN].changed.mean == 0
        assert one.kinds[Kind.NONSENSE].broken.mean == 1
        assert one.all_kinds.broken.mean == pytest.approx(6 / 7)
        assert one.covariance.mean == pytest.approx(1 - 1 / 7)


def test_plans():
    """The same plan asks the same; more questions and namings begin with those of fewer."""
    assert targets(PLAN) == targets(PLAN)
    assert targets(PLAN).keys() != targets(replace(PLAN, seed=1)).keys()
    more = targets(replace(PLAN, questions=4, namings=3)).keys()
    assert targets(PLAN).keys() < more
    for item in PLAN.items():
        shown = {name for _, names in item.examples for name in names}
        assert (set(item.names) <= shown) == (item.kind is Kind.SEEN)
        assert item.question.text not in {example.text for example, _ in item.examples}
    first = next(item for item in PLAN.items() if item.suite.name == "people")
    names = [names for _, names in first.examples]
    assert names == [("P1", "P2", "P3"), ("P4", "P5", "P6")], "examples show many names"
    for wrong, why in (
        ({"suites": ("sqll",)}, "no suite 'sqll'"),
        ({"difficulty": 6}, "difficulty 6: questions of proofs have names for 1 to 5"),
        ({"suites": ()}, "needs a suite"),
        ({"namings": 0}, "a naming or more"),
    ):
        with pytest.raises(ValueError, match=why):
            replace(PLAN, **wrong)


def test_files_and_resumption(tmp_path):
    plan = replace(PLAN, suites=("people", "programs"))
    everything = rule(plan, lambda item: item.kind is not Kind.MISLEADING)
    broken = [{}] * 10 + [{"status": 400}]
    with serving(everything, broken) as server:
        model = Service(server.address, "it", parallel=1)
        with pytest.raises(ServiceError):
            names_benchmark({"it": model}, plan, tmp_path, progress=False)
        assert not (tmp_path / "report.json").exists()
        asked = len(server.requests)
        text, _ = names_benchmark(
            {"it": model}, plan, tmp_path, command="run | it", date="today", progress=False
        )
        prompts = [request["messages"][0]["content"] for request in server.requests]
        assert asked > 10 and len(prompts) == len(set(prompts)) + 1, "the refused one again"
        names_benchmark({"it": model}, plan, tmp_path, progress=False)
        assert len(server.requests) == len(prompts)
    report = json.loads((tmp_path / "report.json").read_text())
    row = report["models"]["it"]
    assert row["scores"]["all"]["kinds"]["misleading"]["broken"]["mean"] == 1
    assert row["outcomes"]["broken"] == pytest.approx(2 / 7)
    assert [one["broken"] for one in row["questions"]] == [2] * 6
    assert len(row["answers"]) == 2 * 3 * 8
    assert (tmp_path / "table.txt").read_text() == text + "\n"
    line = next(line.split() for line in text.splitlines() if line.split()[:2] == ["it", "all"])
    assert line[2:5] == ["100.0", "[100,", "100]"]
    assert is_picture(tmp_path / "names.png")


def test_a_model_that_only_continues(tmp_path):
    """An untrained GPT-2: no answers, and the table says that this says nothing."""
    tokenizer = byte_level()
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=512, vocab_size=len(tokenizer),
                        bos_token_id=None, eos_token_id=tokenizer.eos_token_id)  # fmt: skip
    model = LocalModel(GPT2LMHeadModel(config).eval(), tokenizer, {"max_new_tokens": 4})
    plan = Plan(("kinship",), 2, 1, 1, 0)
    text, _ = names_benchmark({"gpt2": model}, plan, tmp_path, progress=False)
    assert "gpt2: 100.0 % have no answer, 0.0 % of questions are ever right" in text
    report = json.loads((tmp_path / "report.json").read_text())
    reasons = {one["missing"] for one in report["models"]["gpt2"]["answers"]}
    assert reasons <= {"cut off at the limit of tokens", "an answer that cannot be read"}


def test_a_chat_template_is_used():
    """The prompt is a user's message, with instructions though there are no examples."""
    tokenizer = byte_level()
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=1024, bos_token_id=None,
                        vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)  # fmt: skip
    model = LocalModel(GPT2LMHeadModel(config).eval(), tokenizer, {"max_new_tokens": 2})
    items = list(Plan(("people",), 1, 1, 1, 0).items())
    assert not model.plain and len(ask_all("it", model, items)) == 4
    prompt = items[0].prompt(model.plain)
    read = tokenizer.decode(model._encode(prompt)["input_ids"])
    assert read == f"<user>{prompt}" and SUITES["people"].instructions in prompt


def test_drawn_answers_are_refused(tmp_path):
    model = Service("http://localhost:1/v1", "it", request={"temperature": 1})
    with pytest.raises(ValueError, match="answers of it are drawn at random"):
        names_benchmark({"it": model}, PLAN, tmp_path)
