"""Models of Transformers that are asked by prompts: small ones, made here."""

import json
from pathlib import Path

import pytest
import torch
from chat_server import serving, solver
from commands import hf_alpha
from small_tokenizers import byte_level
from transformers import GenerationMixin, GPT2Config, GPT2LMHeadModel, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from hf_alpha.evaluation.compare import compare
from hf_alpha.evaluation.evaluate import Exam
from hf_alpha.evaluation.instructed import AskedModel, Formulas, KeptReplies, LocalModel
from hf_alpha.evaluation.report import table
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task

TASK = get_task("propositional")
CHAT = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] "
ROWS = [{"problem": problem} for problem in ("a", "&a!b", "^ab", "=a!c", "|!aa", "& request ! a")]
SETTINGS = {"batch_size": 4, "solver": "auto", "timeout": 10.0, "num_workers": 0, "progress": False}


class Speaker(PreTrainedModel, GenerationMixin):
    """A decoder that answers a prompt by a rule: text -> text."""

    config_class = GPT2Config

    def __init__(self, tokenizer, rule):
        super().__init__(GPT2Config(
            vocab_size=len(tokenizer), n_positions=4096, eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None, use_cache=False,
        ))  # fmt: skip
        self.tokenizer, self.rule = tokenizer, rule
        self.nothing = torch.nn.Parameter(torch.zeros(()))
        self.asked: list[str] = []

    def forward(self, input_ids, attention_mask=None, **kwargs) -> CausalLMOutput:
        logits = torch.zeros(*input_ids.shape[:1], 1, self.config.vocab_size)
        for row, said in enumerate(self.answers):
            logits[row, 0, said[input_ids.shape[1] - self.width]] = 9.0
        return CausalLMOutput(logits=logits)

    def generate(self, input_ids, **settings):
        texts = self.tokenizer.batch_decode(input_ids)
        self.asked += texts
        end = [self.config.eos_token_id] * 300
        self.answers = [self.tokenizer(self.rule(text))["input_ids"] + end for text in texts]
        self.width = input_ids.shape[1]
        return super().generate(input_ids=input_ids, **settings)


def speaker(rule, chat: bool = True, **generation) -> LocalModel:
    tokenizer = byte_level()
    tokenizer.chat_template = CHAT if chat else None
    return LocalModel(Speaker(tokenizer, rule), tokenizer, generation)


def random_gpt2(seed: int = 0) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(byte_level()), n_embd=16, n_layer=1, n_head=2, n_positions=1600,
        initializer_range=1.0, bos_token_id=None, eos_token_id=byte_level().eos_token_id,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def in_one_line(rule):
    return lambda prompt: rule(prompt).partition("\n\n")[2]


@pytest.mark.parametrize("chat", [True, False])
def test_right_answers_are_found_and_follow_the_names(chat):
    solve = solver(TASK)
    # One that continues texts goes on with examples of its own.
    rule = (
        solve if chat else lambda prompt: f' {in_one_line(solve)(prompt)}\n\nFormula: b\n{{"b": 1}}'
    )
    model = AskedModel("m", speaker(rule, chat))
    report = model.evaluate(Exam(TASK, ROWS, None, SETTINGS))
    assert report.overall.correct == 1.0 and report.reasons == {}
    assert report.records[1].answers == ("a1b0",)
    assert report.records[5].answers == ("request 1 a 0",)
    asked = model.asked.module.asked
    assert all(text.startswith("[user] Find an assign") == chat for text in asked)
    assert all(text.endswith("[assistant] " if chat else "\nAssignment:") for text in asked)
    problems = [row["problem"] for row in ROWS[:4]]
    found = model.covariance(Exam(TASK, [], None, SETTINGS), problems)
    assert found.mean == 1.0 and found.constant == 0
    # Names: a, b, c of these problems, and two more to have as many as the vocabulary.
    assert [sample.possible for sample in found.samples] == [5, 20, 20, 20]


def test_what_is_compared_for_covariance_are_answers():
    stubborn = AskedModel("m", speaker(lambda prompt: 'Of course: {"a": true}.'))
    # "a": five renamings. Undone by a bijection that swaps a and another name: a, b, c, d, e.
    found = stubborn.covariance(Exam(TASK, [], None, SETTINGS), ["a"])
    assert found.mean == 0 and (found.constant, found.nameless) == (1, 0)
    silent = AskedModel("m", speaker(lambda prompt: "That is a hard one: a or b?"))
    found = silent.covariance(Exam(TASK, [], None, SETTINGS), ["a", "&a!b"])
    assert found.mean == 1 and (found.constant, found.nameless) == (2, 2), "no answer, and it shows"


def test_names_of_formulas():
    names = Formulas(TASK, ["& p.q a", "b"])
    assert names.classes == [["p.q", "a", "b", "c", "d"]]
    assert names.read("p.q & a") == ("&", "p.q", "a")
    assert Formulas(TASK, ["&&&&&&abcdefg"]).classes == [list("abcdefg")]


def test_no_answer_is_wrong_and_says_why(tmp_path):
    replies = {
        "a": "a is true",
        "a & !b": '{"a": true, "b": null}',
        "a xor b": '{"a": true, "b": false',
        "a <-> !c": '{"a": true}',
        "!a | a": "",
    }

    def rule(prompt: str) -> str:
        return replies.get(prompt.rpartition("Formula: ")[2].splitlines()[0], "x" * 2000)

    model = AskedModel("m", speaker(rule, max_new_tokens=40))
    report = model.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
    assert [record.outcome for record in report.records] == ["malformed"] * 3 + [
        "wrong", "malformed", "malformed",
    ]  # fmt: skip
    reasons = [record.reason for record in report.records]
    assert reasons == [
        "no JSON object", "a JSON object that is no assignment", "no JSON object", None,
        "empty reply", "cut off at the limit of tokens",
    ]  # fmt: skip
    assert report.records[4].answers == (), "nothing said is not the empty assignment"
    assert report.overall.correct == 0
    assert (
        "no answer of m to 5 of 6 problems: 2 no JSON object, 1 a JSON object that is no "
        "assignment, 1 empty reply, 1 cut off at the limit of tokens"
    ) in table([report])
    stored = json.loads((tmp_path / "report.json").read_text())
    assert stored["no_answer"]["no JSON object"] == 2
    kept = [json.loads(x) for x in (tmp_path / "replies-0.jsonl").read_text().splitlines() if x]
    assert {line["text"] for line in kept} >= {*replies.values()}


@pytest.mark.parametrize(
    ("chat", "text", "outcome"),
    [
        (True, 'Let me think. First try {"a": true}. That gives', "malformed"),
        (False, ' {"a": true} or', "malformed"),
        (False, ' {"a": true}\n\n', "correct"),
        (False, ' {"a": true}\n\nFormula: b', "correct"),
    ],
)
def test_a_reply_that_was_cut_off_has_no_answer(chat, text, outcome):
    """At the limit of tokens; of a text that only goes on, the first paragraph is the reply."""
    model = AskedModel("m", speaker(lambda prompt: text + "x" * 99, chat, max_new_tokens=len(text)))
    (record,) = model.evaluate(Exam(TASK, ROWS[:1], None, SETTINGS)).records
    assert record.outcome == outcome
    assert record.reason == (None if outcome == "correct" else "cut off at the limit of tokens")


class Stopping(LocalModel):
    """Counts what it is asked, and stops like Ctrl-C when it has answered so much."""

    def __init__(self, *args, most: int = 100):
        super().__init__(*args)
        self.asked, self.most = 0, most

    def ask(self, prompts, keep):
        if self.asked == self.most:
            raise KeyboardInterrupt
        self.asked += len(prompts)
        super().ask(prompts, keep)


def test_a_random_gpt2_is_asked_alone_or_in_batches_and_goes_on_where_it_was(tmp_path):
    def entry(seed=0, most=100):
        model = Stopping(random_gpt2(seed), byte_level(), {"max_new_tokens": 8}, most=most)
        return AskedModel("m", model)

    alone = {**SETTINGS, "batch_size": 1}
    whole = entry().evaluate(Exam(TASK, ROWS, None, SETTINGS))
    assert whole == entry().evaluate(Exam(TASK, ROWS, None, alone))
    assert set(whole.reasons) <= {"no JSON object", "cut off at the limit of tokens"}
    with pytest.raises(KeyboardInterrupt):
        entry(most=4).evaluate(Exam(TASK, ROWS, tmp_path, alone))
    again = entry()
    assert again.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS)) == whole
    assert again.asked.asked == 2, "of six problems four had been asked"
    with pytest.raises(ValueError, match="holds an evaluation with weights"):
        entry(seed=1).evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))


def test_replies_to_another_chat_template_are_not_taken(tmp_path):
    def entry(template):
        tokenizer = byte_level()
        tokenizer.chat_template = template
        model = LocalModel(Speaker(tokenizer, solver(TASK)), tokenizer)
        return AskedModel("m", model)

    first = entry(CHAT)
    first.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
    other, same = entry(CHAT.replace("user", "human") + "Well, "), entry(CHAT)
    assert len(KeptReplies(same.asked, tmp_path).replies) == len(ROWS)
    assert not KeptReplies(other.asked, tmp_path).replies
    with pytest.raises(ValueError, match="holds an evaluation with encoded = "):
        other.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))


def test_drawn_replies_are_those_of_the_seed(tmp_path):
    def report(seed):
        drawn = {"do_sample": True, "top_k": 0, "max_new_tokens": 8}
        model = LocalModel(random_gpt2(), byte_level(), drawn, seed)
        found = []
        for problem in ("a", "b"):
            prompt = TASK.prompt.ask(TASK.parse(problem), plain=True)
            model.ask([prompt], lambda prompt, reply: found.append(reply.text))
        return model, found

    model, found = report(0)
    assert found == report(0)[1] != report(1)[1]
    with pytest.raises(ValueError, match="those of m are drawn: measure none"):
        AskedModel("m", model).covariance(Exam(TASK, [], None, SETTINGS), ["a"])
    asked: list[object] = []
    model.module.register_forward_pre_hook(lambda *_: asked.append(_))
    with pytest.raises(ValueError, match="those of m are drawn"):
        compare([AskedModel("m", model)], TASK, [{"problem": "a", "num_symbols": 1}], tmp_path)
    assert not asked


def test_what_cannot_be_asked_is_said():
    small = random_gpt2()
    small.config.max_position_embeddings = 64
    with pytest.raises(
        ValueError, match=r"the prompt has .* tokens, but the model has 64 positions"
    ):
        AskedModel("m", LocalModel(small, byte_level())).evaluate(Exam(TASK, ROWS, None, SETTINGS))
    with pytest.raises(ValueError, match="task 'copying' has no prompt"):
        AskedModel("m", speaker(str)).evaluate(Exam(get_task("copying"), [], None, SETTINGS))
    with pytest.raises(ValueError, match="give max_new_tokens"):
        speaker(str, max_length=9)
    with pytest.raises(ValueError, match="leave out num_return_sequences"):
        speaker(str, do_sample=True, num_return_sequences=2)
    with pytest.raises(ValueError, match="m gives one answer to a prompt: leave out top_n"):
        rows = [{"problem": "a", "num_symbols": 1}]
        compare([AskedModel("m", speaker(str))], TASK, rows, Path(), top_n=2)


@pytest.mark.slow
def test_a_command_asks_models_here_and_behind_an_address(tmp_path, monkeypatch):
    folder = tmp_path / "gpt2"
    for part in (random_gpt2(), byte_level()):
        part.save_pretrained(folder)
    problems = ["--task", "propositional", "--symbols", "1-2", "--sizes", "2-5", "--samples", 3]
    with serving(solver(TASK)) as server:
        monkeypatch.setenv("A_KEY", "secret")
        here = ["--out", tmp_path / "out", *problems, "--covariance", 1, "--renamings", 3,
                "--generation", '{"max_new_tokens": 8}', "--quiet"]  # fmt: skip
        done = hf_alpha("ask", folder, *here)
        assert done.code == 0 and "no answer of gpt2 to 4 of 4 problems" in done.out, done.err
        assert hf_alpha("evaluate", folder, "--few-shot", *here).out == done.out, "its old name"
        served = f"some/model@{server.address}"
        there = ["--out", tmp_path / "service", *problems, "--covariance", 1, "--quiet"]
        ours = released_models()["propositional-relational-small"]
        done = hf_alpha("ask", ours, served, *there, "--key-from", "A_KEY")
        assert done.code == 0, done.err
        rows = [line.replace("correct", "").split() for line in done.out.splitlines()]
        assert ["some/model", "100.0", "100.0", "100.0"] in rows
        assert any(row[:1] == [ours.name] for row in rows), "one of ours in the same table"
        assert "some/model: " in done.out and "tokens in" in done.out
        assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}
        kept = "".join(p.read_text() for p in (tmp_path / "service").rglob("*.json*"))
        assert "secret" not in kept and "some/model" in kept
        old = ["--address", server.address, "--served=some/model", "--key-from", "A_KEY"]
        again = hf_alpha("evaluate", ours, *old, *there)
        assert again.out == done.out
        assert again.err == "`hf-alpha evaluate --address` is now `hf-alpha ask`: see its --help\n"
    assert "or ask it by a prompt (hf-alpha ask)" in hf_alpha("evaluate", folder).error

    def error(*arguments: object) -> str:
        return hf_alpha("ask", *arguments, *there).error

    assert "there is no environment variable NO_KEY" in error(served, "--key-from", "NO_KEY")
    assert "--key-from is for a service: name it as NAME@" in error(folder, "--key-from", "A_KEY")
    assert "--parallel is for a service" in error(folder, "--parallel", 4)
    assert "write a JSON object" in error(served, "--generation", "[1]")
    assert "both are asked: ask one of them" in error(folder, served, "--generation", "{}")
    assert "none is asked: leave it out" in error(ours, "--generation", "{}")
    assert "name a folder for the report with --out" in hf_alpha("ask", served).error
