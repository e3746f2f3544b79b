"""A user's own task of lm-evaluation-harness, asked of models that find names in texts."""

import json
from pathlib import Path

import own_process
import pytest
import torch
from hosts import make_host
from small_tokenizers import word_level

from hf_alpha.canonical import CanonicalTokenizer
from hf_alpha.convert import SymbolConfig, get_symbol_model

TASK = """
task: mine
custom_dataset: !function mine.rows
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["</s>"], max_gen_toks: 12, do_sample: false}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
ROWS = """
import json
from pathlib import Path
from datasets import Dataset

def rows(**settings):
    lines = Path(__file__).with_name("rows.jsonl").read_text().splitlines()
    return {"test": Dataset.from_list([json.loads(line) for line in lines])}
"""
QUESTIONS = ("x = {0} and {1} = y", "{1} and {0} and {1} =", "{0} = {0} and x = {1}")
NAMES = (("n_a", "n_b"), ("n_long", "n_q"), ("n_b", "n_a"))
MANY = "x = " + " and ".join(f"n_{i}" for i in range(9))
"""More names than the model has symbols."""


@pytest.fixture(scope="module")
def task(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    (folder / "mine.yaml").write_text(TASK)
    (folder / "mine.py").write_text(ROWS)
    return folder


def ask(task: Path, model: Path, rows: list[dict], kind: str = "hf-alpha") -> list[dict]:
    """What the harness' own command logs of each row."""
    (task / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = task / "out" / model.name
    done = own_process.run(
        "-m", "hf_alpha.evaluation.harness", "run", "--model", kind,
        "--model_args", f"pretrained={model}", "--device", "cpu", "--batch_size", 4,
        "--include_path", task, "--tasks", "mine", "--log_samples", "--output_path", out,
        cwd=task, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (file,) = out.rglob("samples_mine_*.jsonl")
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    file.unlink()
    return sorted(logged, key=lambda one: one["doc_id"])


def renamed(text: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """A text of words with other names."""
    table = dict(zip(old, new, strict=True))
    return " ".join(table.get(word, word) for word in text.split())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["relational", "column", "canonical"])
def test_answers_have_the_names_of_each_document(tmp_path: Path, task: Path, kind: str):
    """A renamed question has the renamed answer; so the task's own metric sees names."""
    tokenizer = word_level(words=("a", "b", "c", "d"))
    torch.manual_seed(0)
    host = make_host("llama", vocab_size=len(tokenizer), eos_token_id=2, bos_token_id=1)
    rule = {"column": "names"} if kind == "column" else {"pattern": r"n_\w+"}
    model, folder = host, tmp_path / kind
    if kind == "canonical":
        tokenizer = CanonicalTokenizer.from_tokenizer(tokenizer, {"name": rule})
    else:
        config = SymbolConfig("relational", symbols={"name": {**rule, "count": 6}})
        model, tokenizer = get_symbol_model(host, tokenizer, config)
    for saved in (model, tokenizer):
        saved.save_pretrained(folder)
    rows = [
        {"question": text.format(*names), "answer": "?", "names": list(names)}
        for text in QUESTIONS
        for names in NAMES
    ]
    if kind != "canonical":  # which has as many words as names
        rows.append({"question": MANY, "answer": "?", "names": [f"n_{i}" for i in range(9)]})
    replies = [one["filtered_resps"][0] for one in ask(task, folder, rows)]
    assert len(replies) == len(rows) and all(replies)
    groups = [replies[i : i + 3] for i in range(0, 9, 3)]
    for group in groups:
        for names, reply in zip(NAMES[1:], group[1:], strict=True):
            assert reply.split() == renamed(group[0], NAMES[0], names).split()
    assert any(name in reply.split() for reply, *_ in groups for name in NAMES[0])
    assert not any("<name" in reply for reply in replies)
    known = [{**row, "answer": reply} for row, reply in zip(rows, replies, strict=True)]
    assert [one["exact_match"] for one in ask(task, folder, known)] == [1.0] * len(rows)


@pytest.mark.slow
def test_what_cannot_be_asked_is_said(tmp_path: Path, task: Path):
    tokenizer = word_level()
    host = make_host("llama", vocab_size=len(tokenizer), eos_token_id=2, bos_token_id=1)
    for saved in (host, tokenizer):
        saved.save_pretrained(tmp_path / "plain")
    with pytest.raises(AssertionError, match="its tokenizer finds no names: take --model hf"):
        ask(task, tmp_path / "plain", [{"question": "x = y", "answer": "y"}])
