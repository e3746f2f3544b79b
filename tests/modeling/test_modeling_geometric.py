"""Geometric encoders: against references, BERT itself, and their promises."""

import pytest
import torch
from geometrics import FORMS, SMALL, batch, small_config, small_model
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.geometric import graph_attention, relation_names, rotary_attention
from torch import nn
from transformers import BertConfig, BertModel

from hf_alpha.modeling.modeling_geometric import (
    Elements,
    GeometricForMaskedLM,
    GeometricForSequenceClassification,
    GeometricForTokenClassification,
    GeometricModel,
    GeometricSelfAttention,
)
from hf_alpha.modeling.positions import rotary
from hf_alpha.modeling.segment_relations import relation_ids

HEADS = (
    GeometricForMaskedLM, GeometricForSequenceClassification, GeometricForTokenClassification
)  # fmt: skip
EACH_FORM = pytest.mark.parametrize("form", FORMS)
ELEMENTS = [*((i, i) for i in range(5)), (0, 2), (1, 2), (1, 2), (2, 4)]


def attention_and_reference(form: str) -> tuple[GeometricSelfAttention, Elements, object]:
    """An attention block, where its elements lie, and one head of it as the paper writes it."""
    config = small_config(**{**FORMS[form], "share_relations": False})
    torch.manual_seed(0)
    block = GeometricSelfAttention(config).double()
    starts, ends = torch.tensor([ELEMENTS]).unbind(-1)
    if config.relation_attention == "graph":
        elements = Elements(relations=relation_ids(starts, ends, config.max_distance))
        names = relation_names(config.max_distance)

        def reference(query, key, value):
            vectors = dict(zip(names, block.relations.vectors.weight, strict=True))
            return graph_attention(query, key, value, vectors, ELEMENTS, config.max_distance)

    else:
        turns = [rotary(x, config.head_size, 10_000.0) for x in (starts, ends)]
        elements = Elements(starts=turns[0], ends=turns[1])

        def reference(query, key, value):
            return rotary_attention(query, key, value, ELEMENTS, 10_000.0, depth=5)

    return block, elements, reference


@pytest.mark.parametrize("form", ["graph", "rotary"])
@pytest.mark.parametrize("way", ["eager", "sdpa"])
def test_attention_is_that_of_the_paper(form, way):
    """Forward and gradients, with eight elements of which two cover the same tokens."""
    block, elements, reference = attention_and_reference(form)
    block.config._attn_implementation = way
    hidden = torch.randn(1, len(ELEMENTS), SMALL["hidden_size"], dtype=torch.float64)
    hidden.requires_grad_()
    found, _ = block(hidden, elements)
    heads = [
        linear(hidden)[0].unflatten(-1, (-1, block.head_size)).unbind(1)
        for linear in (block.query, block.key, block.value)
    ]
    wanted = torch.cat([reference(*head) for head in zip(*heads, strict=True)], dim=1)[None]
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)  # angles are float32
    weights, inputs = torch.randn_like(found), (hidden, *block.parameters())
    ours, theirs = (torch.autograd.grad((x * weights).sum(), inputs) for x in (found, wanted))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", ["gated graph", "gated rotary"])
def test_gates_mix_with_attention_to_tokens(form):
    block, elements, reference = attention_and_reference(form)
    shown = torch.tensor([[1] * 5 + [0] * 4], dtype=torch.bool)
    hide = torch.zeros(1, 1, 1, 9, dtype=torch.float64).masked_fill(~shown[:, None, None], -1e300)
    elements = elements._replace(token_mask=hide)
    gates = torch.tensor([0.0, 1.0, 0.25], dtype=torch.float64)
    block.gate.data.copy_(gates)
    hidden = torch.randn(1, 9, SMALL["hidden_size"], dtype=torch.float64)
    found = block(hidden, elements)[0].unflatten(-1, (3, -1))
    query, key, value = (
        linear(hidden).unflatten(-1, (3, -1))[0] for linear in (block.query, block.key, block.value)
    )
    for head, gate in enumerate(gates):
        q, k, v = query[:, head], key[:, head], value[:, head]
        plain = (q @ k[:5].T / block.head_size**0.5).softmax(-1) @ v[:5]
        wanted = (1 - gate) * plain + gate * reference(q, k, v)
        torch.testing.assert_close(found[0, :, head], wanted, rtol=1e-6, atol=1e-6)


@EACH_FORM
def test_ways_to_attend_agree(form):
    inputs = batch()
    one, two = (small_model(**FORMS[form], attn_implementation=x) for x in ("eager", "sdpa"))
    torch.testing.assert_close(one(**inputs).logits, two(**inputs).logits, rtol=1e-4, atol=1e-5)
    weights = one(**inputs, output_attentions=True).attentions
    assert [tuple(x.shape) for x in weights] == [(3, 3, 13, 13)] * 2
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(3, 3, 13))


def test_without_relations_it_is_bert():
    """The same names of weights and the same outputs, whatever segments there are."""
    sizes = {name: SMALL[name] for name in SMALL if name not in ("segment_labels", "max_distance")}
    torch.manual_seed(0)
    bert = BertModel(BertConfig(**sizes)).eval()
    ours = GeometricModel(small_config(relation_attention="none")).eval()
    ours.load_state_dict(bert.state_dict())
    inputs = batch()
    plain = {name: inputs[name] for name in ("input_ids", "token_type_ids")}
    mask = torch.ones_like(plain["input_ids"])
    mask[1, 5:] = 0
    found, wanted = ours(**inputs, attention_mask=mask), bert(**plain, attention_mask=mask)
    seen = mask[..., None] > 0
    for name in ("last_hidden_state", "pooler_output"):
        a, b = found[name], wanted[name]
        a, b = (a * seen, b * seen) if a.dim() == 3 else (a, b)
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert found.segment_hidden_state is None


@EACH_FORM
def test_no_segments_and_padding_are_the_same(form):
    model, inputs = small_model(**FORMS[form]), batch()
    plain = {name: inputs[name] for name in ("input_ids", "token_type_ids")}
    wanted = model(**plain).logits
    nothing = {name: torch.zeros_like(inputs[name]) for name in inputs if name.startswith("seg")}
    empty = {name: tensor[:, :0] for name, tensor in nothing.items()}
    assert torch.equal(model(**plain, **empty).logits, wanted)
    torch.testing.assert_close(model(**plain, **nothing).logits, wanted, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(model(**inputs).logits, wanted, atol=1e-2)


@EACH_FORM
def test_every_weight_takes_part_in_training(form):
    """Without segments too, as training in several processes wants it; outputs are the same."""
    model, inputs = small_model(**FORMS[form]), batch()
    plain = {name: inputs[name] for name in ("input_ids", "token_type_ids")}
    wanted = model(**plain).logits
    logits = model.train()(**plain).logits
    logits.sum().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None]
    torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["gated graph", "gated rotary"])
def test_closed_gates_hide_segments(form):
    """With gates at 0, `==`: segments and relations change nothing that tokens say."""
    model, inputs = small_model(**FORMS[form]), batch()
    for name, parameter in model.named_parameters():
        if name.endswith("gate"):
            parameter.data.zero_()
    wanted = model(**inputs).logits
    other = {**inputs, "segment_ids": inputs["segment_ids"] * 2 % 3}
    assert torch.equal(model(**other).logits, wanted)
    plain = {name: inputs[name] for name in ("input_ids", "token_type_ids")}
    torch.testing.assert_close(model(**plain).logits, wanted, rtol=1e-5, atol=1e-5)
    model(**inputs, labels=inputs["input_ids"]).loss.backward()
    gates = [p.grad for name, p in model.named_parameters() if name.endswith("gate")]
    assert all(grad.abs().min() > 0 for grad in gates)  # so that they open when it helps


@EACH_FORM
@settings(max_examples=20)
@given(left=st.integers(0, 4), right=st.integers(0, 4), more=st.integers(0, 3))
def test_padding_and_the_rest_of_a_batch_change_nothing(form, left, right, more):
    model, inputs = small_model(**FORMS[form]), batch()
    alone = {name: tensor[:1] for name, tensor in inputs.items()}
    wanted = model(**alone).logits[0]
    mask = nn.functional.pad(torch.ones_like(inputs["input_ids"]), (left, right))
    mask[1:, left + 4 : left + 9] = 0
    padded = {}
    for name, tensor in inputs.items():
        sides = (0, more) if name.startswith("segment") else (left, right)
        moved = tensor + left * name.endswith(("starts", "ends"))
        padded[name] = nn.functional.pad(moved, sides)
    found = model(**padded, attention_mask=mask).logits[0, left : left + 9]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@EACH_FORM
def test_the_order_of_segments_does_not_matter(form):
    model, inputs = small_model(**FORMS[form]), batch()
    turned = {n: t.flip(1) if n.startswith("segment") else t for n, t in inputs.items()}
    one, two = model(**inputs).logits, model(**turned).logits
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


@EACH_FORM
@pytest.mark.parametrize("head", HEADS)
def test_heads_round_trip_and_learn(form, head, tmp_path):
    """Saving, loading, checkpointed gradients, half precision; every weight gets a gradient."""
    model, inputs = small_model(head, **FORMS[form]), batch()
    rows, length = inputs["input_ids"].shape
    shape = (rows,) if head is GeometricForSequenceClassification else (rows, length)
    inputs["labels"] = torch.randint(2, shape)
    wanted = model(**inputs)
    wanted.loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    assert not [name for name, grad in gradients.items() if grad is None]
    model.save_pretrained(tmp_path)
    again = head.from_pretrained(tmp_path)
    assert torch.equal(again(**inputs).logits, wanted.logits)
    again.train().gradient_checkpointing_enable()
    again(**inputs).loss.backward()
    for name, parameter in again.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-5)
    assert again.eval().to(torch.bfloat16)(**inputs).logits.isfinite().all()


@pytest.mark.slow  # test_modeling_alpha.py compiles
@pytest.mark.parametrize("form", ["graph", "gated rotary"])
def test_it_compiles_whole(form):
    model, inputs = small_model(**FORMS[form]), batch()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        wanted = model(**inputs).logits
        torch.testing.assert_close(compiled(**inputs).logits, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segment_ids": None}, "give segment_ids, segment_starts and segment_ends, or none"),
        ({"segment_ids": torch.full((3, 4), 4)}, "between 4 and 4, but the model knows 3"),
        ({"segment_ends": torch.full((3, 4), 9)}, "to 9: give columns of the 9 tokens"),
        ({"segment_ends": torch.full((3, 4), -1)}, "segment 0 of row 0 goes from token"),
        ({"segment_ends": torch.zeros(3, 3, dtype=torch.long)}, r"\(3, 3\), and there are 3 rows"),
        ({"input_ids": None}, "give one of input_ids and inputs_embeds"),
        ({"input_ids": torch.full((3, 9), 40)}, "token id 40 is outside"),
        ({"token_type_ids": torch.full((3, 9), 2)}, "token_type_ids go up to 2"),
        ({"attention_mask": torch.ones(3, 8)}, r"attention_mask is \(3, 8\)"),
        ({"labels": torch.full((3, 9), 40)}, "the model has 40 classes"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        small_model()(**{**batch(), **change})


def test_a_text_longer_than_its_table_of_positions():
    inputs = batch(length=33)
    with pytest.raises(ValueError, match="33 tokens is longer than max_position_embeddings"):
        small_model(relation_attention="none")(**inputs)
    assert small_model()(**inputs).logits.shape == (3, 33, 40)
