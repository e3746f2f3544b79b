"""What FOLNet's heads do beside the shared promises: losses, vocabularies, precisions, refusals."""

from dataclasses import fields

import pytest
import torch
from folnets import FORMS, NO_DROPOUT, folnet_batch, make_folnet
from torch.nn import functional as F

SIZES = [(8, 4), (5, 2), (7, 0)]
WRITERS = ["AutoModelForSeq2SeqLM", "AutoModelForCausalLM"]
TAGGERS = ["AutoModelForMaskedLM", "AutoModelForTokenClassification", *WRITERS]
ALL = [
    *TAGGERS, "AutoModel", "AutoModelForPreTraining", "AutoModelForSequenceClassification",
    "AutoModelForMultipleChoice", "AutoModelForQuestionAnswering",
]  # fmt: skip
HEADS = [name for name in ALL if name not in (*WRITERS, "AutoModel")]
LEARNED = {"symbol_encoding": "learned"}
NO_SYMBOLS = {**LEARNED, "symbol_classes": {}, "num_base_tokens": 20}


def labelled(model, auto_class):
    """A batch with labels, padded on the side that the form is made for."""
    side = "left" if model.config.is_decoder else "right"
    batch = folnet_batch(1, model.config, SIZES, side=side)
    if auto_class == "AutoModelForTokenClassification":
        return {**batch, "labels": batch["token_type_ids"]}
    if model.config.is_encoder_decoder:
        return {**batch, "labels": batch["decoder_input_ids"].clone()}
    padding = batch["attention_mask"] == 0
    return {**batch, "labels": batch["input_ids"].masked_fill(padding, -100)}


@pytest.mark.parametrize("auto_class", WRITERS)
def test_static_caches_are_refused(auto_class):
    model = make_folnet(auto_class, **LEARNED)
    batch = folnet_batch(1, model.config, SIZES, side="left")
    batch.pop("decoder_input_ids", None)
    with pytest.raises(ValueError, match="no static cache: leave out cache_implementation"):
        model.generate(**batch, cache_implementation="static", max_new_tokens=3)


@pytest.mark.parametrize("auto_class", WRITERS)
def test_assisted_decoding_gives_the_same(auto_class):
    """It crops the cache where the assistant was wrong."""
    model, assistant = (make_folnet(auto_class, seed, **LEARNED) for seed in (0, 1))
    batch = folnet_batch(1, model.config, [(6, 2)])
    batch.pop("decoder_input_ids", None)
    expected = model.generate(**batch, max_new_tokens=8)
    assert model.generate(**batch, max_new_tokens=8, assistant_model=assistant).equal(expected)


@pytest.mark.parametrize(
    "auto_class", [*WRITERS, "AutoModelForMaskedLM", "AutoModelForPreTraining"]
)
@pytest.mark.parametrize("size", [17, 27])
def test_a_vocabulary_without_symbols_is_resized(auto_class, size, tmp_path):
    """Logits of the ids that stay are the same; a resized model is saved and loaded."""
    model = make_folnet(auto_class, **NO_SYMBOLS)
    batch = folnet_batch(1, model.config, [(8, 0), (5, 0)], side="left")
    for name in ("input_ids", "decoder_input_ids"):
        if name in batch:
            batch[name].clamp_(max=16)
    with torch.no_grad():
        before = model(**batch).logits
        embedding = model.resize_token_embeddings(size)
        after = model(**batch).logits
    assert embedding.num_embeddings == model.config.vocab_size == model.config.num_base_tokens
    assert after.shape[-1] == size
    torch.testing.assert_close(after[..., :17], before[..., :17])
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    with torch.no_grad():
        assert torch.equal(again(**batch).logits, after)


@pytest.mark.parametrize("how", ["weights", "autocast"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("auto_class", TAGGERS)
def test_half_precision_is_finite(auto_class, dtype, how):
    model = make_folnet(auto_class, **LEARNED)
    batch = labelled(model, auto_class)
    model = model.to(dtype) if how == "weights" else model
    with torch.autocast("cpu", dtype, enabled=how == "autocast"):
        outputs = model(**batch)
    outputs.loss.backward()
    assert outputs.logits.isfinite().all() and outputs.loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.slow  # test_modeling_alpha.py compiles
@pytest.mark.parametrize("auto_class", ["AutoModelForMaskedLM", "AutoModelForSeq2SeqLM"])
def test_compiled_models_are_one_graph(auto_class):
    model = make_folnet(auto_class, **LEARNED, num_hidden_layers=1)
    batch = labelled(model, auto_class)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(**batch)
    expected = model(**batch)
    torch.testing.assert_close(compiled.logits, expected.logits, atol=1e-5, rtol=1e-5)
    gradients = [
        torch.autograd.grad(x.loss, model.get_input_embeddings().weight)[0]
        for x in (compiled, expected)
    ]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


def test_gradients_pass_through_the_attentions_that_are_returned():
    model = make_folnet("AutoModelForMaskedLM", **LEARNED)
    outputs = model(**labelled(model, "AutoModelForMaskedLM"), output_attentions=True)
    gradients = torch.autograd.grad(outputs.loss, outputs.attentions)
    assert all(gradient.any() for gradient in gradients)


def test_a_causal_loss_takes_labels_that_are_shifted_already():
    """As where a text is cut into parts, whose last tokens are followed by the next part's."""
    model = make_folnet("AutoModelForCausalLM", **LEARNED)
    batch = labelled(model, "AutoModelForCausalLM")
    labels = batch.pop("labels")
    shifted = F.pad(labels[:, 1:], (0, 1), value=-100)
    expected = model(**batch, labels=labels).loss
    assert torch.equal(model(**batch, shift_labels=shifted).loss, expected)
    assert torch.equal(
        model(**batch, labels=labels.roll(1, 1), shift_labels=shifted).loss, expected
    )
    shifted[:, -1] = 3
    assert not torch.equal(model(**batch, labels=labels, shift_labels=shifted).loss, expected)


def test_pairs_without_token_types_are_refused():
    model = make_folnet("AutoModelForPreTraining", **LEARNED)
    ids = torch.tensor([[3, 4, 5]])
    with pytest.raises(ValueError, match="next_sentence_label without token_type_ids"):
        model(ids, next_sentence_label=torch.tensor([1]))
    types = torch.tensor([[0, 1, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="row 1 of token_type_ids has one type only"):
        model(ids.expand(2, 3), token_type_ids=types, next_sentence_label=torch.tensor([1, 0]))
    model(ids.expand(2, 3), token_type_ids=types, next_sentence_label=torch.tensor([1, -100]))


def test_the_loss_of_spans_is_that_of_transformers_and_no_nan():
    model = make_folnet("AutoModelForQuestionAnswering", **LEARNED)
    ids = folnet_batch(1, model.config, SIZES)["input_ids"]
    rows, length = ids.shape
    beyond = torch.full((rows,), length)
    inside = torch.arange(rows)
    out = model(ids, start_positions=inside, end_positions=inside + 1)
    theirs = model.loss_function(out.start_logits, out.end_logits, inside, inside + 1)
    torch.testing.assert_close(out.loss, theirs)
    assert float(model(ids, start_positions=beyond, end_positions=beyond).loss.detach()) == 0.0
    with pytest.raises(ValueError, match="end_positions has -1: a position is at least 0"):
        model(ids, start_positions=inside, end_positions=inside - 1)
    with pytest.raises(ValueError, match="start_positions alone: give start_positions and end_pos"):
        model(ids, start_positions=inside)


def test_several_numbers_and_several_classes_take_whole_labels():
    labels = torch.tensor([[4, 5, 6], [0, 1, 0]])
    for kind, given in (
        ("regression", labels),
        ("multi_label_classification", labels.clamp(max=1)),
    ):
        model = make_folnet(
            "AutoModelForSequenceClassification", num_labels=3, problem_type=kind, **LEARNED
        )
        ids = torch.tensor([[3, 4, 5], [5, 4, 3]])
        losses = [model(ids, labels=x).loss for x in (given, given.float())]
        assert losses[0] == losses[1] and losses[0].isfinite()


def test_inputs_of_a_wrong_shape_are_named():
    model = make_folnet("AutoModelForMultipleChoice", **LEARNED)
    with pytest.raises(
        ValueError, match=r"input_ids are \(2, 3\): give \(samples, choices, length"
    ):
        model(torch.ones(2, 3, dtype=torch.long))
    model = make_folnet("AutoModelForCausalLM", **LEARNED)
    ids = torch.tensor([3, 4])
    with pytest.raises(ValueError, match=r"input_ids are \(2,\): give \(samples, length\)"):
        model(ids)
    with pytest.raises(ValueError, match=r"prefix_mask is \(2, 1\), and there are 1 texts"):
        model(ids[None], prefix_mask=torch.ones(2, 1))


def test_a_prefix_model_learns_with_the_prefix_that_it_generates_with():
    """Without a mask, the prefix is what has no label before the answer."""
    model = make_folnet("AutoModelForCausalLM", prefix_lm=True, **LEARNED)
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    marked, prefix = torch.tensor([[-100, -100, -100, 6, -100]]), torch.ones(1, 3)
    found = model(ids, labels=marked)
    given = model(ids, labels=marked, prefix_mask=prefix)
    shifted = model(ids, shift_labels=torch.tensor([[-100, -100, 6, -100, -100]]))
    assert torch.equal(found.logits, given.logits) and found.loss == given.loss == shifted.loss
    assert not torch.equal(found.logits, model(ids).logits)


def test_a_prefix_has_no_loss():
    """There, a position sees the token that it would predict."""
    model = make_folnet("AutoModelForCausalLM", **LEARNED)
    ids, prefix = torch.tensor([[3, 4, 5, 6, 7]]), torch.ones(1, 3, dtype=torch.long)
    marked = torch.tensor([[-100, -100, -100, 6, 7]])
    found = [model(ids, prefix_mask=prefix, labels=labels).loss for labels in (ids, marked)]
    assert found[0] == found[1]
    other = torch.tensor([[3, 4, 8, 6, 7]])
    seen = (
        model(ids, prefix_mask=prefix).logits[0, 0],
        model(other, prefix_mask=prefix).logits[0, 0],
    )
    assert not torch.equal(*seen)
    assert torch.equal(model(ids).logits[0, :2], model(other).logits[0, :2])


@pytest.mark.parametrize("num_beams", [1, 2])
def test_generation_returns_the_kernels_of_a_decoder(num_beams):
    model = make_folnet("AutoModelForSeq2SeqLM", **LEARNED)
    batch = folnet_batch(1, model.config, SIZES)
    batch.pop("decoder_input_ids")
    found = model.generate(
        **batch, num_beams=num_beams, max_new_tokens=3, output_attentions=True,
        return_dict_in_generate=True,
    )  # fmt: skip
    rows, heads, queries, columns = found.decoder_attentions[-1][0].shape
    assert (rows, heads, queries) == (3 * num_beams, 2, 1)
    assert columns == batch["input_ids"].shape[1] + len(found.decoder_attentions)


def test_inputs_that_do_not_fit_are_refused():
    model = make_folnet("AutoModelForMaskedLM", **LEARNED, position_scheme="absolute",
                        max_position_embeddings=4)  # fmt: skip
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    with pytest.raises(ValueError, match=r"attention_mask is \(1, 3\), and there are 1 rows of 5"):
        model(ids, attention_mask=torch.ones(1, 3))
    with pytest.raises(ValueError, match=r"token_type_ids are \(1, 4\)"):
        model(ids, token_type_ids=ids[:, :4] * 0)
    with pytest.raises(ValueError, match="token_type_ids go up to 2, but type_vocab_size is 2"):
        model(ids, token_type_ids=torch.full_like(ids, 2))
    with pytest.raises(ValueError, match="5 tokens is longer than max_position_embeddings"):
        model(ids)
    model(ids, attention_mask=torch.tensor([[0, 1, 1, 1, 1]]))  # positions count from a token on
    with pytest.raises(ValueError, match=r"is of 'encoder'.*is_decoder=True"):
        type(make_folnet("AutoModelForCausalLM", **LEARNED))(model.config)


def test_reentrant_checkpointing_reaches_the_encoder():
    model = make_folnet("AutoModelForSeq2SeqLM", **LEARNED, **NO_DROPOUT, position_scheme="shaw")
    batch, found = labelled(model.train(), "AutoModelForSeq2SeqLM"), []
    for reentrant in (None, False, True):
        if reentrant is not None:
            model.activation_checkpointing_enable({"use_reentrant": reentrant})
        model.zero_grad()
        model(**batch).loss.backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


@pytest.mark.parametrize("auto_class", HEADS)
def test_heads_return_the_binary_atoms_that_are_asked_for(auto_class):
    """Those of the model beneath; and without being asked none, whatever they read themselves."""
    model = make_folnet(auto_class, **LEARNED)
    ids = folnet_batch(1, model.config, SIZES)["input_ids"]
    given = ids.view(3, 1, -1).expand(-1, 2, -1) if "Choice" in auto_class else ids
    found = model(given, output_binary_states=True, output_hidden_states=True)
    atoms = model.folnet(given.flatten(0, -2)).binary_hidden_state
    assert torch.equal(found.binary_hidden_state, atoms)
    assert "binary_hidden_state" not in model(given)
    assert "binary_hidden_state" in model.config.keys_to_ignore_at_inference


def test_a_choice_is_scored_as_a_text_alone():
    model = make_folnet("AutoModelForMultipleChoice", **LEARNED)
    batch = folnet_batch(1, model.config, SIZES)
    choices = {name: torch.stack((x, x.roll(1, 0)), dim=1) for name, x in batch.items()}
    alone = model.classifier(model.folnet(**batch).pooler_output)[:, 0]
    outputs = model(**choices, labels=torch.tensor([0, 1, 1]))
    torch.testing.assert_close(outputs.logits, torch.stack((alone, alone.roll(1)), dim=1))
    theirs = F.cross_entropy(outputs.logits, torch.tensor([0, 1, 1]))
    torch.testing.assert_close(outputs.loss, theirs)


def test_outputs_have_the_order_of_their_class():
    """As tuples too, where Trainer looks for the loss in front."""
    model = make_folnet("AutoModelForPreTraining", **LEARNED)
    batch = folnet_batch(1, model.config, SIZES)
    labels = {"next_sentence_label": torch.tensor([0, 1, 1])}
    loss, logits, pairs = model(**batch, **labels, return_dict=False)
    assert (loss.dim(), logits.shape[:2], pairs.shape) == (0, batch["input_ids"].shape, (3, 2))
    labels["labels"] = labelled(model, "AutoModelForMaskedLM")["labels"]
    found = model(**batch, **labels, output_hidden_states=True, output_binary_states=True)
    assert list(found) == [
        "loss", "logits", "seq_relationship_logits", "binary_hidden_state", "hidden_states"
    ]  # fmt: skip
    words = model(**batch, labels=labels["labels"]).loss
    torch.testing.assert_close(found.loss, words + loss)
    base = model.folnet(**batch, output_hidden_states=True)
    assert list(base)[:4] == [
        "last_hidden_state", "pooler_output", "binary_hidden_state", "hidden_states"
    ]  # fmt: skip
    for auto_class in WRITERS:
        model = make_folnet("AutoModel", symbol_encoding="learned", **FORMS[auto_class])
        found = model(**folnet_batch(1, model.config, SIZES), use_cache=True)
        names = [field.name for field in fields(found)]
        assert list(found) == sorted(found, key=names.index) and "past_key_values" in found


@pytest.mark.parametrize("auto_class", ALL)
def test_vectors_positions_and_inputs_without_a_token_are_refused(auto_class):
    model = make_folnet(auto_class, **LEARNED)
    ids, more = torch.full((2, 3), 3), {}
    if model.config.is_encoder_decoder:
        more["decoder_input_ids"] = ids
    if "Choice" in auto_class:
        ids = ids[:, None]
    with pytest.raises(ValueError, match="inputs_embeds is not supported: give token ids"):
        model(inputs_embeds=torch.zeros(1, 3, model.config.hidden_size))
    with pytest.raises(ValueError, match="position_ids is not supported: the tokens of a row"):
        model(ids, **more, position_ids=torch.arange(3)[None])
    for nothing in (ids[:0], ids[..., :0]):
        with pytest.raises(ValueError, match=r"input_ids are \(.*0.*\), without a token: give"):
            model(nothing, **more)
        if auto_class in WRITERS:
            with pytest.raises(ValueError, match=r"input_ids are \(.*0.*\), without a token"):
                model.generate(nothing, max_new_tokens=2)
    if more:
        with pytest.raises(ValueError, match=r"decoder_input_ids are \(2, 0\), without a token"):
            model(ids, decoder_input_ids=ids[:, :0])
    if auto_class != "AutoModelForCausalLM":
        with pytest.raises(ValueError, match="prefix_mask is for a decoder alone"):
            model(ids, **more, prefix_mask=torch.ones(2, 2))


def test_a_label_of_several_classes_lies_between_0_and_1():
    ids = torch.tensor([[3, 4, 5], [5, 4, 3]])
    for kind in ({"problem_type": "multi_label_classification"}, {}):
        model = make_folnet("AutoModelForSequenceClassification", num_labels=3, **kind, **LEARNED)
        labels = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]])
        theirs = F.binary_cross_entropy_with_logits(model(ids).logits, labels)
        torch.testing.assert_close(model(ids, labels=labels).loss, theirs)
        for wrong in (5.0, -100.0, float("nan")):
            labels[0, 2] = wrong
            with pytest.raises(ValueError, match=rf"labels\[0, 2\] is {wrong}: in multi_label"):
                model(ids, labels=labels)


@pytest.mark.parametrize(
    ("auto_class", "settings", "labels", "said"),
    [
        ("AutoModelForSequenceClassification", {}, [1], r"\(1,\), and .* give \(2,\)"),
        ("AutoModelForSequenceClassification", {}, [[0, 1], [1, 0]], r"\(2, 2\).* give \(2,\)"),
        ("AutoModelForSequenceClassification", {"num_labels": 1}, [0.5] * 3, r"give \(2,\)"),
        ("AutoModelForSequenceClassification", {"problem_type": "regression"}, [1, 2],
         r"2 inputs with 2 labels each: give \(2, 2\)"),
        ("AutoModelForMultipleChoice", {}, [0], r"labels is \(1,\), .* give \(2,\)"),
        ("AutoModelForCausalLM", {}, [3, 4], r"labels is \(2,\), and there are 2 rows of 3"),
        ("AutoModelForCausalLM", {}, 3, r"labels is \(\), and there are 2 rows of 3"),
        ("AutoModelForSeq2SeqLM", {}, [3, 4], r"labels are \(2,\): give \(samples, length\)"),
    ],
)  # fmt: skip
def test_labels_of_another_number_are_refused(auto_class, settings, labels, said):
    model = make_folnet(auto_class, **settings, **LEARNED)
    ids = torch.full((2, 2, 3) if "Choice" in auto_class else (2, 3), 3)
    with pytest.raises(ValueError, match=said):
        model(ids, labels=torch.tensor(labels))


def test_a_label_for_each_input_may_stand_in_a_column():
    ids, types = torch.tensor([[3, 4, 5], [5, 4, 3]]), torch.tensor([[0, 1, 1], [0, 0, 1]])
    for auto_class, names in (
        ("AutoModelForSequenceClassification", ["labels"]),
        ("AutoModelForQuestionAnswering", ["start_positions", "end_positions"]),
        ("AutoModelForPreTraining", ["next_sentence_label"]),
    ):
        model = make_folnet(auto_class, **LEARNED)
        label = torch.tensor([1, 0])
        losses = [
            model(ids, token_type_ids=types, **dict.fromkeys(names, x)).loss
            for x in (label, label[:, None])
        ]
        assert losses[0] == losses[1]
        with pytest.raises(ValueError, match=rf"{names[0]} is \(1,\), and there are 2 inputs"):
            model(ids, token_type_ids=types, **dict.fromkeys(names, label[:1]))


def test_scores_of_some_positions_are_those_among_all():
    model = make_folnet("AutoModelForCausalLM", **LEARNED)
    batch = labelled(model, "AutoModelForCausalLM")
    labels = batch.pop("labels")
    everything = model(**batch).logits
    places = torch.tensor([1, 4])
    for kept, expected in ((2, everything[:, -2:]), (places, everything[:, places])):
        assert torch.equal(model(**batch, logits_to_keep=kept).logits, expected)
    behind = labels[:, 1:][:, places]
    theirs = F.cross_entropy(everything[:, places].flatten(0, 1), behind.flatten())
    found = model(**batch, labels=labels, logits_to_keep=places).loss
    torch.testing.assert_close(found, theirs)
    shapes = []
    model.logit_scale.register_forward_hook(lambda *given: shapes.append(given[2].shape[-2]))
    model.generate(**batch, max_new_tokens=3, min_new_tokens=3)
    assert shapes == [1, 1, 1]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_prefix_model_goes_on_from_a_kept_cache(side):
    """With the prefix that the cache was made with, as without a cache; else it is an error."""
    model = make_folnet("AutoModelForCausalLM", prefix_lm=True, **LEARNED)
    batch = folnet_batch(1, model.config, [(6, 2), (6, 1)], side=side)
    prompt, prefix = batch["input_ids"], batch["attention_mask"]
    if side == "left":
        prefix[0, :2] = 0
    often = {"max_new_tokens": 4, "min_new_tokens": 4, "return_dict_in_generate": True}
    first = model.generate(prompt, attention_mask=prefix, **often)
    text = torch.cat((first.sequences, prompt[:, -3:]), dim=1)
    mask = F.pad(prefix, (0, text.shape[1] - prefix.shape[1]), value=1)
    with pytest.raises(ValueError, match="holds 9 tokens, and prefix_mask is missing"):
        model.generate(text, attention_mask=mask, past_key_values=first.past_key_values, **often)
    ways = [
        model.generate(
            text, attention_mask=mask, prefix_mask=prefix, past_key_values=cache,
            output_logits=True, **often,
        )
        for cache in (None, first.past_key_values)
    ]  # fmt: skip
    assert torch.equal(ways[0].sequences, ways[1].sequences)
    torch.testing.assert_close(ways[0].logits, ways[1].logits, atol=1e-5, rtol=1e-5)
