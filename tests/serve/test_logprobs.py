"""How likely tokens were, asked by OpenAI's own client: in the names of the text."""

import math

import openai
import pytest
import torch
from serving import TEXTS, canonical, chat, complete, converted, renamed, scripted, served
from small_tokenizers import byte_level

from hf_alpha.serve.logprobs import Logprobs

MAKERS = {
    "relational": converted,
    "canonical": canonical,
    "t5": lambda: converted("t5", encoding="streams"),
}


def rated(client, prompt, **options):
    """Text and log-probabilities of an answer, whole, after they have come in parts too."""
    options = {"logprobs": 3, **options}
    (whole,) = complete(client, prompt, **options).choices
    parts = [chunk.choices[0] for chunk in complete(client, prompt, stream=True, **options)]
    for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        told = [getattr(part.logprobs, key) or [] for part in parts if part.logprobs]
        joined = [one for listed in told for one in listed]
        expected = getattr(whole.logprobs, key) or []
        assert joined == pytest.approx(expected) if key == "token_logprobs" else True
        assert len(joined) == len(expected)
        assert joined == expected or "logprobs" in key
    return whole.text, whole.logprobs


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_tokens_are_in_the_names_of_the_text(make):
    model, tokenizer = make()
    with served(model, tokenizer) as client:
        (text, one), (other, two) = (rated(client, prompt) for prompt in TEXTS)
        assert other == renamed(text) and two.tokens == [*map(renamed, one.tokens)]
        assert two.token_logprobs == pytest.approx(one.token_logprobs, abs=1e-4)
        assert "".join(one.tokens).split() == text.split()
        assert any("a1" in token for token in one.tokens) or make is not converted
        for place, token in zip(one.text_offset, one.tokens, strict=True):
            assert text[place : place + len(token)] == token or make is not converted
        for token, rate, top in zip(one.tokens, one.token_logprobs, one.top_logprobs, strict=True):
            assert len(top) <= 3 and list(top.values()) == sorted(top.values(), reverse=True)
            assert top[token] == pytest.approx(rate) == max(top.values()) < 0
        none = complete(client, TEXTS[0], logprobs=0).choices[0].logprobs
        assert none.tokens == one.tokens and none.top_logprobs is None
        assert complete(client, TEXTS[0]).choices[0].logprobs is None


def test_they_are_the_models_own_whatever_is_drawn_or_stopped():
    model, tokenizer = canonical()
    ids = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    expected = model(ids).logits[0, -1].log_softmax(-1).tolist()
    with served(model, tokenizer) as client:
        for options in ({}, {"temperature": 1.9, "seed": 1}, {"top_p": 0.1, "seed": 2}):
            _, told = rated(client, TEXTS[0], max_tokens=4, **options)
            best = max(told.top_logprobs[0].values())
            assert best == pytest.approx(max(expected), abs=1e-4)
            assert sum(map(math.exp, told.top_logprobs[0].values())) < 1
            assert any(abs(told.token_logprobs[0] - x) < 1e-4 for x in expected)
        text, _ = rated(client, TEXTS[0])
        stopped, told = rated(client, TEXTS[0], stop=[text[5:8]])
        assert stopped == text[: text.find(text[5:8])]
        assert told is None or max(told.text_offset) < len(stopped)
    told = Logprobs(tokenizer, tokenizer("a"), True, 2)
    told.rate(torch.tensor([0.0, -math.inf]))  # JSON has no such number
    told.add(1)
    assert told.take(9)[0]["logprob"] == -9999


def test_a_word_that_begins_as_a_name_is_no_name():
    """Its second token says so; and a character of two tokens has no bytes of its own."""
    with served(*scripted(byte_level(), [*">Ġby.", "</s>"])) as client:
        told = complete(client, "my_name>", logprobs=0).choices[0].logprobs
        assert told.tokens == [" ", "b", "y", "."]
    with served(*scripted(byte_level(), [*">Ġb.", "</s>"])) as client:
        told = complete(client, "my_name>", logprobs=0).choices[0].logprobs
        assert told.tokens == [" ", "my_name", "."]
        assert complete(client, "my_name>").choices[0].text == " my_name."


def test_chats_tell_them_beside_the_message():
    with served(*converted()) as client:
        asked = {"logprobs": True, "top_logprobs": 2, "max_tokens": 8}
        whole = chat(client, TEXTS[0], **asked)
        assert "".join(one.token for one in whole.logprobs.content) == whole.message.content
        for one in whole.logprobs.content:
            assert bytes(one.bytes).decode() == one.token and len(one.top_logprobs) == 2
            assert one.top_logprobs[0].token == one.token
        ask = {"model": "small", "messages": [{"role": "user", "content": TEXTS[0]}], **asked}
        chunks = [c.choices[0] for c in client.chat.completions.create(stream=True, **ask)]
        parts = [one for c in chunks if c.logprobs for one in c.logprobs.content]
        assert [one.token for one in parts] == [one.token for one in whole.logprobs.content]
        for wrong in ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 21}):
            with pytest.raises(openai.BadRequestError, match="logprobs"):
                chat(client, "x", **wrong)
        with pytest.raises(openai.BadRequestError, match="logprobs"):
            complete(client, "x", logprobs=6)
