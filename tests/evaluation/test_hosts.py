"""Models without symbols answer as generate does, one by one, and stand beside converted ones."""

import json

import pytest
import torch
from commands import hf_alpha
from small_tokenizers import byte_level, unigram
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from hf_alpha.alias.plain import PlainTokenizer
from hf_alpha.answer.base import Search
from hf_alpha.answer.models import Model
from hf_alpha.evaluation.compare import compare
from hf_alpha.tasks import get_task
from hf_alpha.tasks.base import WARNED

RULES = {"name": {"pattern": "alice|bob|carol|x|y|z", "count": 4}}
ROWS = [
    {"problem": text, "answer": "alice", "num_symbols": names, "size": len(text.split())}
    for text, names in (
        ("alice sees bob", 2),
        ("alice sees alice and bob", 2),
        ("x and y and z", 3),
        ("x", 1),
    )
]


def encoder_decoder():
    tokenizer = unigram(end=True)
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 3, "num_heads": 2}
    config = T5Config(**sizes, vocab_size=len(tokenizer), decoder_start_token_id=0, **special)
    return T5ForConditionalGeneration(config).eval(), tokenizer


def decoder(positions: int = 128):
    tokenizer = byte_level()
    sizes = {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": positions}
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    return GPT2LMHeadModel(GPT2Config(**sizes, **ends, vocab_size=len(tokenizer))).eval(), tokenizer


def as_it_is(model, tokenizer, **search) -> Model:
    return Model("host", model, PlainTokenizer.of(tokenizer), Search(**search))


def by_hand(model, tokenizer, text: str, limit: int) -> str:
    """Greedy answer to one text, token by token."""
    ids = tokenizer(text)["input_ids"]
    pair = model.config.is_encoder_decoder
    written: list[int] = []
    for _ in range(limit):
        with torch.no_grad():
            if pair:
                so_far = torch.tensor([[0, *written]])
                logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=so_far).logits
            else:
                logits = model(input_ids=torch.tensor([[*ids, *written]])).logits
        written.append(int(logits[0, -1].argmax()))
        if written[-1] == tokenizer.eos_token_id:
            break
    return tokenizer.decode(written, skip_special_tokens=True).strip()


@pytest.mark.parametrize("make", [encoder_decoder, decoder])
def test_answers_are_those_of_the_model_alone(make, tmp_path):
    torch.manual_seed(0)
    model, tokenizer = make()
    task = get_task("text").configured(symbols=RULES)
    options = {"covariance": 2, "max_renamings": 3, "progress": False}
    host = as_it_is(model, tokenizer, max_new_tokens=5)
    text, (report, _) = compare([host], task, ROWS, tmp_path, **options)
    for row, record in zip(ROWS, report.records, strict=True):
        assert list(record.answers) == [by_hand(model, tokenizer, row["problem"], 5)]
    assert report.alpha_covariance.used == len(ROWS)
    assert compare([host], task, ROWS, tmp_path, **options)[0] == text


@pytest.mark.parametrize("make", [encoder_decoder, decoder])
def test_several_answers_are_those_of_the_beams(make):
    torch.manual_seed(0)
    model, tokenizer = make()
    task, limit = get_task("text").configured(symbols=RULES), {"max_new_tokens": 4}
    host = as_it_is(model, tokenizer, top_n=3, **limit)
    beams = {"num_beams": 3, "num_return_sequences": 3, "do_sample": False, **limit}
    problems = {index: row["problem"] for index, row in enumerate(ROWS)}
    found = {}
    for replies in host.answer(task, problems):
        found |= replies
    for index, text in problems.items():
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        written = model.generate(ids, **beams)[:, 0 if make is encoder_decoder else ids.shape[1] :]
        texts = tokenizer.batch_decode(written, skip_special_tokens=True)
        assert found[index].answers == tuple(text.strip() for text in texts)


@pytest.mark.parametrize(("make", "seed"), [(encoder_decoder, 2), (decoder, 1)])
def test_an_answer_that_its_limit_cuts_off_is_not_ended(make, seed):
    torch.manual_seed(seed)  # with which three tokens differ
    model, tokenizer = make()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    task, text = get_task("text").configured(symbols=RULES), ROWS[0]["problem"]

    def answer(limit: int):
        host = as_it_is(model, tokenizer, max_new_tokens=limit)
        ((reply,),) = (replies.values() for replies in host.answer(task, {7: text}))
        return reply.answers[0]

    inputs = tokenizer(text, return_tensors="pt")["input_ids"]
    *before, end = model.generate(inputs, max_new_tokens=3, do_sample=False)[0, -3:].tolist()
    assert end not in before
    model.generation_config.eos_token_id = end
    assert [answer(limit).ended for limit in (1, 2, 3, 4)] == [False, False, True, True]
    assert answer(3) == answer(4) == answer(2)


@pytest.mark.parametrize("make", [encoder_decoder, decoder])
def test_words_that_a_host_does_not_know_are_told(make, tmp_path, caplog):
    task = get_task("text").configured(symbols=RULES)
    rows = [ROWS[0], {**ROWS[0], "problem": "alice sees größe"}]
    host = as_it_is(*make(), max_new_tokens=2)
    compare([host], task, rows, tmp_path, covariance=0, progress=False)
    WARNED.clear()
    told = "1 of 2 problems have words that the model does not know" in caplog.text
    assert told == (make is encoder_decoder) == ("'größe'" in caplog.text)


def test_texts_that_are_too_long_have_no_answer(tmp_path):
    model, tokenizer = decoder(positions=24)
    task = get_task("text").configured(symbols=RULES)
    rows = [*ROWS[:1], {**ROWS[0], "problem": "alice sees bob " * 20}]
    _, (report, _) = compare(
        [as_it_is(model, tokenizer)], task, rows, tmp_path, covariance=0, progress=False
    )
    assert report.reasons == {"longer than the model's positions": 1}
    assert report.records[0].answers


def test_before_and_after_in_one_table(tmp_path):
    torch.manual_seed(0)
    model, tokenizer = encoder_decoder()
    host, converted, out = (tmp_path / name for name in ("host", "converted", "out"))
    for part in (model, tokenizer):
        part.save_pretrained(host)
    said = hf_alpha("info", host)
    assert said.code == 0, said.err
    assert f"hf-alpha convert {host} OUT" in " ".join(said.out.split())
    done = hf_alpha("convert", host, converted, "--to", "relational", "--names", "alice|bob|[xyz]")
    assert done.code == 0, done.err
    rows = [{"source": row["problem"], "target": row["answer"]} for row in ROWS]
    data = tmp_path / "test.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["evaluate", host, converted, "--data", data, "--out", out]
    done = hf_alpha(*arguments, "--covariance", 1)
    assert done.code == 0, done.err
    rows = [line.split()[:2] for line in (out / "table.txt").read_text().splitlines()]
    assert ["correct", "host"] in rows and ["alpha_covariance", "host"] in rows
    assert sum(row[:1] == ["converted"] for row in rows) == 3
    alone = hf_alpha("evaluate", host, "--data", data, "--out", tmp_path / "alone")
    assert "host has no symbols, and no recipe says what its problems are" in alone.error
    card = hf_alpha(*arguments, "--card")
    assert "--card is for models with symbols" in card.error
