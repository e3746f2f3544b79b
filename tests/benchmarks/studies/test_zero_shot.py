import json

import pytest
import torch
from commands import study
from small_objectives import BERT, write_rows
from transformers import BertConfig, BertForMaskedLM

from benchmarks.studies.zero_shot import PROMPTS, Prompt, fill, predict, read_task, records_of
from hf_alpha.objectives.tokenizers import make_tokenizer

TOKENIZER = make_tokenizer(
    "words", ["Yes No Maybe great terrible correct incorrect It was This is . ? , cats purr Tom"]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose most likely word is always Yes."""
    sizes = {key: value for key, value in BERT.items() if key != "model_type"}
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(**sizes, vocab_size=len(TOKENIZER)))
    with torch.no_grad():
        model.cls.predictions.bias[TOKENIZER.convert_tokens_to_ids("Yes")] += 9
    out = tmp_path_factory.mktemp("zero") / "model"
    model.save_pretrained(out)
    TOKENIZER.save_pretrained(out)
    return out


@pytest.mark.parametrize(
    ("task", "texts", "written"),
    [
        ("rte", ["Tom purr.", "Cats purr."], "[CLS] Tom purr ? [MASK] , cats purr . [SEP]"),
        ("mrpc", ["Tom purr.", "Cats purr."], "[CLS] Tom purr . [MASK] , cats purr . [SEP]"),
        ("sst2", ["cats purr"], "[CLS] cats purr It was [MASK] . [SEP]"),
        ("cola", ["Tom purr."], "[CLS] Tom purr . This is [MASK] . [SEP]"),
    ],
)
def test_prompts_are_those_of_the_paper(task, texts, written):
    ids, gap = fill(PROMPTS[task], texts, TOKENIZER, 32)
    assert TOKENIZER.convert_ids_to_tokens(ids) == written.split()
    assert gap == written.split().index("[MASK]")


def test_long_texts_are_cut_and_the_gap_stays():
    ids, gap = fill(PROMPTS["rte"], ["Tom purr " * 30, "cats"], TOKENIZER, 16)
    tokens = TOKENIZER.convert_ids_to_tokens(ids)
    assert len(ids) == 16 and tokens.index("[MASK]") == gap
    assert tokens[-3:] == [",", "cats", "[SEP]"]
    with pytest.raises(ValueError, match="max_length 6 leaves no room"):
        fill(PROMPTS["rte"], ["Tom", "cats"], TOKENIZER, 6)


def test_a_batch_is_its_rows(folder):
    model = BertForMaskedLM.from_pretrained(folder)
    rows = [["Tom purr", "cats"], ["Tom " * 20, "cats purr purr"], ["cats", "Tom"]]
    together = predict(model, TOKENIZER, PROMPTS["mnli"], rows)
    alone = [predict(model, TOKENIZER, PROMPTS["mnli"], [row])[0] for row in rows]
    assert torch.allclose(torch.tensor(together), torch.tensor(alone), atol=1e-5)
    assert all(abs(sum(row) - 1) < 1e-5 and row[0] > 0.9 for row in together)


def test_the_command_scores_files(folder, tmp_path):
    rows = [
        {"premise": "Tom purr.", "hypothesis": "cats.", "label": label}
        for label in ("entailment", "not_entailment", "entailment", 0)
    ]
    rows = [{**row, "label": str(row["label"])} for row in rows]
    file = write_rows(tmp_path / "rte.jsonl", rows)
    told = [str(folder), "--task", "rte", "--data", file]
    told += ["--columns", "premise,hypothesis,label", "--out", str(tmp_path / "out")]
    done = study("studies.zero_shot", *told)
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert found == {"metrics": {"all": {"accuracy": 0.75}}, "samples": {"all": 4}}
    swapped = [*told, "--words", "entailment=No,not_entailment=Yes"]
    assert study("studies.zero_shot", *swapped).code == 0
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert found["metrics"]["all"]["accuracy"] == 0.25


def test_what_cannot_be_asked_is_said(folder, tmp_path):
    with pytest.raises(ValueError, match="no prompt for the task 'wnli': known are sst2, cola"):
        read_task("wnli")
    with pytest.raises(ValueError, match=r"needs \{0\} and one \{mask\}"):
        Prompt("{0}", {"a": "Yes", "b": "No"})
    prompt = Prompt("{0} {mask}", {"a": "Yes", "b": "unheard"})
    with pytest.raises(ValueError, match="the label word 'unheard' is no token of its own, but"):
        predict(BertForMaskedLM.from_pretrained(folder), TOKENIZER, prompt, [["Tom"]])
    with pytest.raises(ValueError, match="row 1: 'maybe' is no label: entailment, not_entailment"):
        records_of(PROMPTS["rte"], [[0, 1], [1, 0]], ["entailment", "maybe"])
    for label in (None, "x", 6):
        row = {"sentence1": "Tom", "sentence2": "cats", "label": label}
        bad = write_rows(tmp_path / "stsb.jsonl", [{**row, "label": 2}, row])
        with pytest.raises(ValueError, match=f"row 1: .*{label}.* is no number between 0 and 5"):
            read_task("stsb", bad)
    file = write_rows(tmp_path / "rows.jsonl", [{"sentence": "Tom", "label": 1}])
    told = [str(folder), "--task", "sst2", "--data", file, "--words", "positive"]
    fault = "words are 'positive': 'positive' is no label with a word; write label=word,label=word"
    assert fault in study("studies.zero_shot", *told).error
