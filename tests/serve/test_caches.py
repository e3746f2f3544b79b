"""Rows whose caches are cut and joined go on as they would alone."""

from functools import partial

import pytest
import torch
from retrofits import make_retrofit, random_batch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, MistralConfig

from hf_alpha import AlphaConfig, AlphaForCausalLM
from hf_alpha.serve import caches

TOKENS = 9
"""Of an answer."""


def write(model, rows, tokens, cache=None):
    """Write more tokens of rows, which grow; return the cache, and whether it is by token."""
    width = max(map(len, rows))
    inputs = {
        "input_ids": torch.tensor([[0] * (width - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }
    settings = {"do_sample": False, "return_dict_in_generate": True, "max_new_tokens": tokens}
    settings |= {"past_key_values": cache, "eos_token_id": None, "pad_token_id": 0}
    output = model.generate(**inputs, **settings)
    for row, ids in zip(rows, output.sequences.tolist(), strict=True):
        row.extend(ids[width:])
    length = output.sequences.shape[1] - 1
    return output.past_key_values, caches.is_by_token(output.past_key_values, len(rows), length)


def texts(model, *sizes):
    """Rows of ids without padding."""
    batch = random_batch(1, model.config, sizes, side="left")
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    return [ids[mask > 0].tolist() for ids, mask in pairs]


OWN = {
    "is_encoder_decoder": False,
    "num_base_tokens": 10,
    "symbol_classes": {"name": 6, "function": 4},
    "symbol_encoding": "relational",
    "new_symbols": True,
    "d_model": 16,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 24,
    "decoder_position": "log_length",
}
MODELS = {
    f"{host} {encoding}": partial(make_retrofit, host, symbol_encoding=encoding)
    for host in ("llama", "gpt2")
    for encoding in ("relational", "dual_part", "learned")
}
MODELS["own, new symbols"] = lambda: AlphaForCausalLM(AlphaConfig(**OWN)).eval()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_rows_that_are_cut_and_joined_go_on(make):
    torch.manual_seed(0)
    model = make()
    rows = texts(model, (7, 3), (4, 2), (5, 3), (6, 1), (9, 2))
    alone = [list(row) for row in rows]
    for row in alone:
        write(model, [row], TOKENS)
    ours, is_by_token = write(model, rows[:3], 4)
    assert is_by_token
    caches.cut(ours, [2, 1], 8)
    theirs, _ = write(model, rows[3:], 1)
    caches.join(ours, theirs)
    some = [rows[2], rows[1], *rows[3:]]
    write(model, some, TOKENS, ours)
    for row, expected in zip(rows[1:], alone[1:], strict=True):
        assert row[: len(expected)] == expected


def test_what_is_not_kept_by_token_is_known():
    model = make_retrofit("llama", symbol_encoding="streams")
    _, is_by_token = write(model, texts(model, (7, 3), (4, 2)), 2)
    assert not is_by_token
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 9}
    window = DynamicCache(config=MistralConfig(**sizes, sliding_window=4))
    assert not caches.is_by_token(window, 1, 4)
    plain = LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=1, intermediate_size=8))
    assert write(plain, [[3, 4], [5, 6, 7]], 2)[1]
    assert not caches.is_by_token(None, 1, 4) and not caches.is_by_token(DynamicCache(), 1, 0)
