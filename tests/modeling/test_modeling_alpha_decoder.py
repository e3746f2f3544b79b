"""A decoder alone: against the model in loops, its inputs, and what it refuses."""

import math

import pytest
import torch
from families.test_alpha_decoder import BASE, NEW, DecoderFamily, make_decoder
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

from hf_alpha import AlphaConfig, AlphaForCausalLM, AlphaForConditionalGeneration
from hf_alpha.modeling.new_symbols import UNUSABLE
from hf_alpha.modeling.positions import rotary, rotate

NAMES = 6


def rotated(x, heads):
    """Heads (H, L, K) of states (L, D), rotated."""
    length, width = x.shape
    x = x.view(1, 1, length, heads, width // heads)
    return rotate(x, rotary(torch.arange(length)[None], width // heads, 1e4))[0, 0].transpose(0, 1)


def reference_logits(model, ids):
    """Logits of one text by a relational model with new symbols, token by token: (L, V)."""
    config, text = model.config, model.model
    heads, unit = config.decoder_attention_heads, lambda x: F.normalize(x, dim=-1)
    table, memory = unit(text.shared.weight), text.symbol_memory
    kind = [0 if i < BASE else 1 if i < BASE + NAMES else 2 for i in ids]
    rows = [BASE + kind[t] - 1 if kind[t] else i for t, i in enumerate(ids)]
    x = table[rows] + torch.stack(
        [memory.first * (kind[t] > 0 and ids[t] not in ids[:t]) for t in range(len(ids))]
    )
    x[0] += unit(text.start.weight[0])
    x *= config.d_model**0.5 if config.scale_embedding else 1.0
    last = [None] * len(ids)  # the symbol that stood last
    for t in range(len(ids)):
        last[t] = ids[t] if kind[t] else last[t - 1] if t else None

    def relate(scores, gates):
        """Scores (H, L, L) with relations, and without what is to come."""
        gates = gates.view(len(ids), 2, heads)
        for t in range(len(ids)):
            for j in range(len(ids)):
                same = last[t] is not None and ids[j] == last[t]
                behind = last[t] is not None and j > 0 and last[j - 1] == last[t]
                scores[:, t, j] += gates[t, 0] * same + gates[t, 1] * behind
                if j > t:
                    scores[:, t, j] = -torch.inf
        return scores

    turns = config.decoder_position == "rope"
    place = rotated if turns else lambda x, h: x.view(len(ids), h, -1).transpose(0, 1)
    growth = [1.0 if turns else math.log(t + 2) / math.log(65) for t in range(len(ids))]
    for layer in text.layers:
        block, asking = layer.self_attn, x * torch.tensor(growth)[:, None]
        q, k, v = block.q_proj(asking), block.k_proj(x), block.v_proj(x)
        scores = place(q, heads) @ place(k, heads).mT * block.scaling
        scores = relate(scores, block.gates(asking))
        values = v.view(len(ids), heads, -1).transpose(0, 1)
        attended = (scores.softmax(-1) @ values).transpose(0, 1).reshape(len(ids), -1)
        x = layer.self_attn_layer_norm(x + block.out_proj(attended))
        x = layer.final_layer_norm(x + layer.fc2(layer.activation(layer.fc1(x))))
    states, scale = memory.norm(x), model.logit_scale.scale
    queries, keys = (
        made(states).view(len(ids), heads, -1).transpose(0, 1)
        for made in (memory.query_proj, memory.key_proj)
    )
    scores = relate(queries @ keys.mT / queries.shape[-1] ** 0.5, memory.gates(states))
    scores[..., [j for j in range(len(ids)) if not kind[j]]] = -torch.inf
    weights = scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))
    logits = torch.full((len(ids), config.vocab_size), UNUSABLE)
    logits[:, :BASE] = scale * unit(x) @ table[:BASE].T
    new = scale * unit(x) @ unit(text.new_symbols.weight).T
    for t in range(len(ids)):
        for first, stop, c in ((BASE, BASE + NAMES, 0), (BASE + NAMES, config.vocab_size, 1)):
            fresh = [i for i in range(first, stop) if i not in ids[: t + 1]]
            for i in range(first, stop):
                places = [j for j in range(t + 1) if ids[j] == i]
                if places:
                    pointer = memory.strength @ weights[:, t, places].sum(-1)
                    logits[t, i] = scale * (unit(x[t]) @ table[BASE + c] + pointer)
                elif i == fresh[0]:
                    logits[t, i] = new[t, c]
    return logits


@pytest.mark.parametrize("position", ["rope", "log_length"])
@pytest.mark.parametrize("seed", range(4))
@torch.no_grad()
def test_equals_reference(seed, position):
    scaled = seed % 2 == 1
    model = make_decoder(seed, **NEW, decoder_position=position, scale_embedding=scaled)
    batch = DecoderFamily().make_batch(seed, model.config, [(9, 4)])
    expected = reference_logits(model, batch["input_ids"][0].tolist())
    torch.testing.assert_close(model(**batch).logits[0], expected, atol=1e-5, rtol=1e-5)


def test_parameters_are_those_of_a_decoder():
    model = make_decoder(**NEW)
    names = {name for name, _ in model.named_parameters() if not name.startswith("model.layers.")}
    parts = ("first", "strength", "query_proj.weight", "key_proj.weight")
    parts += tuple(f"{part}.{name}" for part in ("norm", "gates") for name in ("weight", "bias"))
    memory = {f"model.symbol_memory.{name}" for name in parts}
    tables = {f"model.{name}.weight" for name in ("shared", "start", "new_symbols")}
    assert names == {*tables, *memory}
    layer = {name.split(".")[0] for name, _ in model.model.layers[0].named_parameters()}
    assert layer == {"self_attn", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"}
    assert model.model.shared.weight.shape == (BASE + 2, 16)


def test_half_of_the_heads_begin_with_each_relation():
    model = AlphaForCausalLM(make_decoder(**NEW).config)
    bias = model.model.layers[0].self_attn.gates.bias.view(2, 2)
    assert bias.tolist() == [[2.0, 0.0], [0.0, 2.0]]


@torch.no_grad()
def test_logits_of_the_last_tokens_are_those_of_all():
    model = make_decoder(**NEW)
    batch = DecoderFamily().make_batch(1, model.config, [(8, 3), (6, 2)], "left")
    for number in (1, 2, 5):
        last = model(**batch, logits_to_keep=number).logits
        torch.testing.assert_close(last, model(**batch).logits[:, -number:])


def test_new_names_cost_nothing_where_there_are_none():
    """Probabilities of all next tokens add up to 1, whatever the number of symbols."""
    model = make_decoder(**NEW)
    batch = DecoderFamily().make_batch(1, model.config, [(8, 3)])
    with torch.no_grad():
        before = model(**batch).logits.softmax(-1)
        model.extend_symbols({"name": 200})
        after = model(**batch).logits.softmax(-1)
    torch.testing.assert_close(after[..., : before.shape[-1]], before)
    assert float(after[..., before.shape[-1] :].max()) == 0.0


def test_a_loaded_model_is_a_decoder_alone(tmp_path):
    make_decoder(**NEW).save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(model).__name__ == "AlphaForCausalLM" and model.config.new_symbols
    with pytest.raises(ValueError, match="AlphaForCausalLM"):
        AlphaForConditionalGeneration(model.config)
    with pytest.raises(ValueError, match="is_encoder_decoder=False"):
        AlphaForCausalLM(AlphaConfig())


def test_inputs_that_do_not_fit():
    model = make_decoder(**NEW)
    batch = DecoderFamily().make_batch(1, model.config, [(5, 2)])
    with pytest.raises(ValueError, match="atention_mask"):
        model(**batch, atention_mask=batch["attention_mask"])
    with pytest.raises(ValueError, match="input_ids are missing"):
        model(attention_mask=batch["attention_mask"])
    with pytest.raises(ValueError, match="a label for each token"):
        model(**batch, labels=batch["input_ids"][:, :-1])
    listing = make_decoder(symbol_encoding="relational")
    outputs = listing(**batch, use_cache=True)
    with pytest.raises(ValueError, match="stream_ids are missing"):
        listing(batch["input_ids"][:, -1:], past_key_values=outputs.past_key_values)


def test_a_prompt_is_checked_and_a_cache_goes_on_with_another_list():
    """Ids that generation gets first are read, and symbols are kept by what they are."""
    model = make_decoder(symbol_encoding="relational")
    symbols = [BASE + 2, BASE, BASE + 1]
    ids = torch.tensor([[3, symbols[0], symbols[1], 4, symbols[0], 3, symbols[1], 4]])
    lists = torch.tensor([symbols]), torch.tensor([symbols[1::-1]])
    cache = model(ids[:, :5], stream_ids=lists[0], use_cache=True).past_key_values
    with torch.no_grad():
        found = model(ids[:, 5:], stream_ids=lists[1], past_key_values=cache).logits
        expected = model(ids, stream_ids=lists[1]).logits[:, 5:]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for wrong in (model.config.vocab_size, symbols[2]):
        prompt = torch.cat((ids, torch.tensor([[wrong]])), 1)
        with pytest.raises(ValueError, match=r"outside the model's vocabulary|lack symbol"):
            model.generate(prompt, stream_ids=lists[1], max_new_tokens=2)


@pytest.mark.parametrize("encoding", ["relational", "streams"])
def test_tokens_that_are_guessed_change_no_answer(encoding):
    """By an assistant, or from the prompt: what is guessed wrong is taken out of the cache."""
    model = make_decoder(symbol_encoding=encoding)
    batch = DecoderFamily().make_batch(1, model.config, [(7, 3)])
    settings = {"min_new_tokens": 8, "max_new_tokens": 8, "do_sample": False}
    expected = model.generate(**batch, **settings, use_cache=False)
    for guesses in ({"assistant_model": model}, {"prompt_lookup_num_tokens": 3}):
        assert model.generate(**batch, **settings, **guesses).equal(expected)


def test_hidden_states_and_attentions_are_returned():
    model = make_decoder(**NEW)
    model.set_attn_implementation("eager")
    batch = DecoderFamily().make_batch(1, model.config, [(5, 2)])
    outputs = model(**batch, output_hidden_states=True, output_attentions=True)
    assert [tuple(x.shape) for x in outputs.hidden_states] == [(1, 5, 16)] * 3
    assert [tuple(x.shape) for x in outputs.attentions] == [(1, 2, 5, 5)] * 2


def test_a_prefix_sees_itself_in_both_directions_and_nothing_behind():
    model = make_decoder(**NEW, prefix_lm=True)
    ids = torch.tensor([[0, 3, BASE, 4, BASE + 1, 5]])
    inputs = {"attention_mask": (ids > 0).long()}
    prefix = torch.tensor([[0, 1, 1, 1, 0, 0]])

    def changed(place, mask):
        other = ids.clone()
        other[0, place] = 6
        one, two = (model(x, prefix_mask=mask, **inputs).logits[0] for x in (ids, other))
        return [(a != b).any().item() for a, b in zip(one, two, strict=True)]

    assert changed(3, prefix)[1:] == [True] * 5
    assert changed(3, None)[1:] == [False, False, True, True, True]
    assert changed(5, prefix)[1:] == [False] * 4 + [True]
    labels = torch.tensor([[-100, -100, -100, -100, BASE + 1, 5]])
    by_labels = model(ids, labels=labels, **inputs)
    assert torch.equal(
        by_labels.logits[0, 1:], model(ids, prefix_mask=prefix, **inputs).logits[0, 1:]
    )


def test_a_cache_of_a_prefix_goes_on_with_its_mask():
    model = make_decoder(**NEW, prefix_lm=True)
    ids = torch.tensor([[3, BASE, 4]])
    cache = model(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="prefix_mask is missing"):
        model.generate(ids, past_key_values=cache, max_new_tokens=2)
