"""A pipeline that answers in the names of each prompt."""

import re
from pathlib import Path

import pytest
from hosts import make_host
from small_tokenizers import unigram
from transformers import pipeline

from hf_alpha import NamesTextGenerationPipeline, SymbolConfig, get_symbol_model

MODEL = Path(__file__).resolve().parents[2] / "model_cards" / "anf-relational"
PROMPTS = ["alpha & ( t1 | beta )", "x | y"]


@pytest.fixture(scope="module")
def complete():
    return pipeline(
        "text-generation", model=str(MODEL), trust_remote_code=True,
        pipeline_class=NamesTextGenerationPipeline,
    )  # fmt: skip


def test_answers_have_the_names_of_their_prompts_and_new_ones(complete):
    answers = [" let t2 = t1 | beta ; let t3 = alpha & t2 ; t3", " let t1 = x | y ; t1"]
    for size in (1, 2):
        rows = complete(PROMPTS, do_sample=False, max_new_tokens=40, batch_size=size)
        texts = [prompt + answer for prompt, answer in zip(PROMPTS, answers, strict=True)]
        assert [row["generated_text"] for (row,) in rows] == texts
    (row,) = complete(
        PROMPTS[1], do_sample=False, max_new_tokens=40, return_full_text=False, new_names="n"
    )
    assert row == {"generated_text": " let n1 = x | y ; n1"}
    (row,) = complete(PROMPTS[1], do_sample=False, max_new_tokens=4, return_tensors=True)
    assert list(row) == ["generated_token_ids"]
    rows = complete(
        PROMPTS[1], do_sample=False, max_new_tokens=40, num_beams=3, num_return_sequences=3
    )
    assert rows[0]["generated_text"] == texts[1] and len({r["generated_text"] for r in rows}) == 3


@pytest.fixture(scope="module")
def converted():
    """A decoder with random weights, and a rule for its names."""
    tokenizer = unigram()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    host = make_host("llama", vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=None)
    rule = {"name": {"pattern": "[xyz]1", "count": 5}}
    made = get_symbol_model(host, tokenizer, SymbolConfig(symbols=rule))
    return NamesTextGenerationPipeline(*made, max_new_tokens=12, do_sample=False)


TEXTS = ["alice sees x1 and y1", "alice sees z1 and x1"]


def test_a_converted_decoder_goes_on_in_the_names_of_a_prompt_or_chat(converted):
    told, renamed = (converted(text)[0]["generated_text"] for text in TEXTS)
    assert told.startswith(TEXTS[0]) and "<name" not in told and len(told) > len(TEXTS[0])
    assert re.sub("[xy]1", lambda name: {"x1": "z1", "y1": "x1"}[name[0]], told) == renamed
    messages = [{"role": "user", "content": TEXTS[0]}]
    first, second = converted(messages)[0]["generated_text"]
    assert first == messages[0] and second["role"] == "assistant"
    assert second["content"] and "<name" not in second["content"]
    # the assistant's last message is gone on with
    messages.append({"role": "assistant", "content": "and x1"})
    first, second = converted(messages)[0]["generated_text"]
    assert first == messages[0] and second["content"].startswith("and x1")
    assert len(second["content"]) > 10 and "<name" not in second["content"]


def test_names_are_given_for_each_prompt_or_chat(converted):
    """Which no rule finds."""
    for make in (str, lambda text: [{"role": "user", "content": text}]):
        prompts = [make(f"{name} sees bob and {name}") for name in ("dora", "emil")]
        rows = converted(prompts, names=[["dora"], {"name": ["emil"]}], return_full_text=False)
        one, two = (row["generated_text"] for (row,) in rows)
        assert two == one.replace("dora", "emil")
        (row,) = converted(prompts[0], names=["dora"], return_full_text=False)
        assert row["generated_text"] == one
        unlisted = [row["generated_text"] for (row,) in converted(prompts, return_full_text=False)]
        assert unlisted[0] not in (one, unlisted[1])
        with pytest.raises(ValueError, match="'zoe' stands in no text"):
            converted(prompts[0], names=["zoe"])


TEMPLATE = {
    "start_anchor": "and y1",
    "defaults": {"role": "assistant"},
    "fields": {"content": {"content": "text"}},
}


def test_messages_are_read_by_the_response_template(converted):
    messages = [{"role": "user", "content": TEXTS[0]}]
    (_, second) = converted(messages)[0]["generated_text"]
    converted.tokenizer.response_template = TEMPLATE
    try:
        (_, parsed) = converted(messages)[0]["generated_text"]
    finally:
        converted.tokenizer.response_template = None
    assert parsed["content"].strip() == second["content"].strip()
