"""Attention of Transformers with relations: against scores written out, and in whole models."""

import pytest
import torch
from retrofits import make_retrofit, random_batch
from strategies import slot_relations
from torch import nn
from transformers import Gemma2Config
from transformers.models.bart import modeling_bart
from transformers.models.gemma2 import modeling_gemma2

from hf_alpha.modeling.host_attention import (
    PREFIX,
    Gated,
    LayerRelations,
    StackRelations,
    relational_attention,
)
from hf_alpha.modeling.masks import additive
from hf_alpha.modeling.relations import NONE, IndexRelations, Relations, one_hot

SIZES = [(7, 3), (5, 2)]  # tokens of source and target of each sample
HEADS, WIDTH, NAMES = 4, 6, 3
SOURCE = torch.tensor([[0, -1, 1, 0, 2], [-1, 0, 0, -1, 1]])
TARGET = torch.tensor([[-1, 1, 1], [0, -1, 0]])
PLACES = torch.arange(TARGET.shape[1])


def block(sees_source: bool) -> nn.Module:
    """An attention block of BART, whose eager function it then is."""
    made = modeling_bart.BartAttention(HEADS * WIDTH, HEADS, config=None)
    made.sees_source = sees_source
    return made.eval()


def gated(generator: torch.Generator, own_BM: torch.Tensor, count: int) -> Gated:
    """Relations of the target to keys, each of random symbols but the first, with random gates."""
    same = one_hot(TARGET, NAMES, torch.float32)
    others = [torch.randint(2, same.shape, generator=generator).float() for _ in range(count - 1)]
    gates = torch.randn(*TARGET.shape, count * HEADS, generator=generator)
    return slot_relations((same, *others), own_BM), gates


@pytest.mark.parametrize("groups", [HEADS, 2], ids=["all heads", "shared keys"])
@pytest.mark.parametrize("name", ["sdpa", "eager"])
@pytest.mark.parametrize("sees_source", [False, True])
@pytest.mark.parametrize("scaling", [None, 0.3])
def test_relations_add_scores(name, sees_source, groups, scaling):
    if name == "eager" and groups != HEADS:
        pytest.skip("eager attention of BART has a key for each head")
    generator = torch.Generator().manual_seed(0)
    told = StackRelations(gated(generator, TARGET, 1), gated(generator, SOURCE, 2))
    own = SOURCE if sees_source else TARGET
    query = torch.randn(2, HEADS, 3, WIDTH, generator=generator)
    key, value = torch.randn(2, 2, groups, own.shape[1], WIDTH, generator=generator)
    mask = torch.zeros(2, 1, 3, own.shape[1])
    mask[1, ..., -1] = torch.finfo(mask.dtype).min
    made = block(sees_source)
    made.num_key_value_groups = HEADS // groups
    output, _ = relational_attention(
        name, made, query, key, value, mask, scaling=scaling, symbol_relations=told
    )
    relations, gates = told.of(made, query, own.shape[1])
    assert relations is (told.across if sees_source else told.within)[0]
    scores = (query @ key.repeat_interleave(HEADS // groups, 1).mT) * (scaling or WIDTH**-0.5)
    gates = gates.unflatten(-1, (-1, HEADS)).permute(2, 0, 3, 1)[..., None]
    for gate, matrix in zip(gates, relations.matrices, strict=True):
        scores = scores + gate * matrix
    weights = (scores + mask).softmax(-1)
    expected = (weights @ value.repeat_interleave(HEADS // groups, 1)).transpose(1, 2)
    torch.testing.assert_close(output, expected)


def test_a_window_of_keys_has_the_relations_to_the_last_ones():
    generator = torch.Generator().manual_seed(0)
    relations, gates = gated(generator, TARGET, 1)
    to_last = slot_relations(relations.queries, TARGET[:, -2:])
    query = torch.randn(2, HEADS, 3, WIDTH, generator=generator)
    key, value = torch.randn(2, 2, HEADS, 2, WIDTH, generator=generator)
    outputs = [
        relational_attention(
            "sdpa", block(False), query, key, value, torch.zeros(2, 1, 3, 2), scaling=0.5,
            symbol_relations=StackRelations((told, gates), positions=PLACES),
        )[0]
        for told in (relations, to_last)
    ]  # fmt: skip
    assert torch.equal(*outputs)


def test_layers_have_gates_of_their_own_decided_by_queries():
    generator = torch.Generator().manual_seed(0)
    held = TARGET, nn.functional.pad(TARGET[:, :-1], (1, 0))
    both = [slot_relations((one_hot(TARGET, NAMES, torch.float32),), own) for own in held]
    last = TARGET.masked_fill(TARGET < 0, NONE)
    relations = IndexRelations(last, held, NAMES, torch.float32)
    weight = torch.randn(2, HEADS, WIDTH, 2, generator=generator)
    bias = torch.randn(2, HEADS, 2, generator=generator)
    query, key, value = torch.randn(3, 2, HEADS, 3, WIDTH, generator=generator)
    made = block(False)
    for made.layer_idx in (0, 1):
        output, _ = relational_attention(
            "sdpa", made, query, key, value, None, scaling=0.3,
            symbol_relations=LayerRelations(relations, weight, bias[:, :, None], PLACES),
        )  # fmt: skip
        scores = query @ key.mT * 0.3
        for number, relation in enumerate(both):
            gate = torch.einsum("bhtk,hk->bht", query, weight[made.layer_idx, ..., number])
            gate = gate + bias[made.layer_idx, :, number, None]
            scores = scores + gate[..., None] * relation.matrices[0]
        expected = (scores.softmax(-1) @ value).transpose(1, 2)
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("mask_type", [None, torch.float32, torch.bool])
def test_one_new_token_attends_as_the_last_of_all(mask_type, monkeypatch):
    """Its relations go into the mask, and the keys of all tokens before are not copied."""
    generator = torch.Generator().manual_seed(0)
    length = TARGET.shape[1]
    same = one_hot(TARGET, NAMES, torch.float32)
    weight = torch.randn(1, HEADS, WIDTH, 1, generator=generator)
    bias = torch.randn(1, HEADS, 1, generator=generator)
    query, key, value = torch.randn(3, 2, HEADS, length, WIDTH, generator=generator)
    shown = torch.ones(2, 1, length, length, dtype=torch.bool).tril()
    shown[1, ..., 0] = mask_type is None
    made = block(False)
    made.layer_idx = 0

    def attend(start, mask):
        relations = slot_relations((same[:, start:],), TARGET)
        return relational_attention(
            "sdpa", made, query[:, :, start:], key, value, mask,
            symbol_relations=LayerRelations(relations, weight, bias[:, :, None], PLACES),
        )[0]  # fmt: skip

    whole = attend(0, additive(shown, torch.float32))
    last = (
        shown[:, :, -1:] if mask_type is torch.bool else additive(shown[:, :, -1:], torch.float32)
    )
    monkeypatch.setattr(Relations, "extend_keys", lambda *_: pytest.fail("keys are copied"))
    found = attend(length - 1, None if mask_type is None else last)
    torch.testing.assert_close(found, whole[:, -1:])


def test_one_new_token_is_squashed_with_its_relations():
    """Gemma 2 squashes scores (`softcap`), and not what is in the mask."""
    generator = torch.Generator().manual_seed(0)
    length = TARGET.shape[1]
    same = one_hot(TARGET, NAMES, torch.float32)
    told = torch.zeros(1, HEADS, WIDTH, 1), torch.full((1, HEADS, 1, 1), 4.0)
    query, key, value = torch.randn(3, 2, HEADS, length, WIDTH, generator=generator)
    sizes = {"hidden_size": HEADS * WIDTH, "num_attention_heads": HEADS, "head_dim": WIDTH}
    config = Gemma2Config(**sizes, num_key_value_heads=HEADS, num_hidden_layers=1)
    made = modeling_gemma2.Gemma2Attention(config, 0).eval()
    made.sees_source = False
    mask = additive(torch.ones(2, 1, length, length, dtype=torch.bool).tril(), torch.float32)

    def attend(start):
        relations = slot_relations((same[:, start:],), TARGET)
        return relational_attention(
            "eager", made, query[:, :, start:], key, value, mask[:, :, start:],
            symbol_relations=LayerRelations(relations, *told, PLACES), softcap=1.5,
        )[0]  # fmt: skip

    torch.testing.assert_close(attend(length - 1), attend(0)[:, -1:])


@pytest.mark.parametrize("host", ["t5", "bart", "t5gemma"])
def test_attention_is_chosen_as_in_any_model(host):
    model = make_retrofit(host, symbol_encoding="relational")
    for weight in model.relations.parameters():
        nn.init.normal_(weight, std=0.3)
    batch = random_batch(1, model.config, SIZES)
    logits = {}
    with torch.no_grad():
        for name in ("eager",) if host == "t5gemma" else ("sdpa", "eager"):
            model.set_attn_implementation(name)
            assert model.backbone.config._attn_implementation == PREFIX + name
            logits[name] = model(**batch).logits
        plain = dict.fromkeys(logits)
        model.relations.encoder_gates.weight.data.zero_()
        for name in logits:
            model.set_attn_implementation(name)
            plain[name] = model(**batch).logits
    for name, expected in logits.items():
        torch.testing.assert_close(expected, logits["eager"], atol=1e-5, rtol=1e-5)
        assert not torch.equal(plain[name], expected)
    if host != "t5gemma":
        attentions = model(**batch, output_attentions=True)
        assert attentions.encoder_attentions[0].shape[-2:] == (SIZES[0][0],) * 2
