"""Masks of what may come next allow all answers and nothing else."""

import random

import pytest
import torch

from hf_alpha.logic.ltl.trace import read_trace
from hf_alpha.logic.propositional.notation import read_assignment
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer

READERS = {"ltl": read_trace, "propositional": read_assignment}


def texts_of(tokenizer, rows):
    return [tokenizer.decode(row, skip_special_tokens=True) for row in rows]


@pytest.mark.parametrize("name", READERS)
def test_what_is_allowed_is_an_answer(name):
    """Random walks along what is allowed end in texts that are read."""
    tokenizer = build_tokenizer(name, 4)
    mask = get_task(name).answer_mask(tokenizer)
    generator = torch.Generator().manual_seed(0)
    ids = torch.zeros(300, 0, dtype=torch.long)
    ended = 0
    for _ in range(24):
        allowed = mask(ids)
        assert allowed.any(1).all() and allowed.shape == (len(ids), len(tokenizer))
        new = torch.multinomial(allowed.float(), 1, generator=generator)
        done = new[:, 0] == tokenizer.eos_token_id
        for text in texts_of(tokenizer, ids[done]):
            assert READERS[name](text, "compact") is not None, text
        ended += int(done.sum())
        ids = torch.cat([ids, new], 1)[~done]
    assert ended > 20


@pytest.mark.parametrize("name", READERS)
def test_every_answer_is_allowed(name):
    tokenizer, task = build_tokenizer(name, 4), get_task(name)
    mask, rng = task.answer_mask(tokenizer), random.Random(2)
    answers = {"{1}"} if name == "ltl" else {""}
    for _ in range(100):
        decision = task.decide(task.sample(rng, rng.randrange(2, 20), "abcd"))
        answers |= {decision.answer} - {None}
    if name == "ltl":
        answers |= {"a;&a!b;{|ab;!a}", "!&ab;{0;1}"}
    vocabulary = tokenizer.get_vocab()
    symbols = dict(zip("abcd", tokenizer.symbol_ids, strict=True))
    for answer in answers:
        row = [symbols[c] if c in symbols else vocabulary[c] for c in answer]
        row.append(tokenizer.eos_token_id)
        for length, token in enumerate(row):
            assert mask(torch.tensor([row[:length]], dtype=torch.long).view(1, -1))[0, token], (
                answer
            )
