"""torch.export and ONNX with dynamic batch and length; results as of the model itself."""

import pytest
import torch
from geometrics import FORMS, batch, small_model
from strategies import make_model, random_batch

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.modeling_folnet import (
    FolnetForCausalLM,
    FolnetForConditionalGeneration,
    FolnetForSequenceClassification,
)

pytestmark = pytest.mark.slow
ENCODINGS = {
    "streams, rope": {"encoder_position": "rope"},
    "streams, tree": {"encoder_position": "tree"},
    "relational": {"symbol_encoding": "relational", "encoder_position": "tree"},
    "learned": {"symbol_encoding": "learned", "encoder_position": "sinusoidal"},
    "dual_part": {"symbol_encoding": "dual_part", "encoder_position": "rope"},
}
BATCH, LENGTH, TARGET, STREAMS = (
    torch.export.Dim(name, min=2, max=64) for name in ("batch", "length", "target", "streams")
)
DIMENSIONS = {
    "input_ids": {0: BATCH, 1: LENGTH},
    "attention_mask": {0: BATCH, 1: LENGTH},
    "tree_paths": {0: BATCH, 1: LENGTH},
    "stream_ids": {0: BATCH, 1: STREAMS},
    "decoder_input_ids": {0: BATCH, 1: TARGET},
}


FOLNET = {
    "hidden_size": 16, "binary_hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "head_size": 4, "intermediate_size": 32, "pad_token_id": 0,
    "binary_intermediate_size": 16, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "vocab_size": 54,
}  # fmt: skip
PEOPLE = {"symbol_classes": {"person": 4}, "symbol_encoding": "relational"}


class Logits(torch.nn.Module):
    """The whole model as a function of tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, tree_paths, stream_ids, decoder_input_ids):
        return self.model(
            input_ids, attention_mask, stream_ids, tree_paths, decoder_input_ids, use_cache=False
        ).logits


class States(torch.nn.Module):
    """The encoder likewise."""

    def __init__(self, model):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, input_ids, attention_mask, tree_paths, stream_ids):
        return self.encoder(input_ids, attention_mask, stream_ids, tree_paths).last_hidden_state


parts = pytest.mark.parametrize("module", [Logits, States])
encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def inputs(module, config, sizes, target):
    """A batch by name, streams given: exported models cannot find out how many there are."""
    batch = random_batch(3, config, sizes, target_length=target)
    symbols = [row[row >= config.num_base_tokens].unique() for row in batch["input_ids"]]
    batch["stream_ids"] = torch.nn.utils.rnn.pad_sequence(symbols, True, -1)
    names = [name for name in DIMENSIONS if name != "decoder_input_ids" or module is Logits]
    return {name: batch[name] for name in names}


def prepared(module, encoding):
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    model = make_model(**ENCODINGS[encoding], **layers, adacos=False, logit_scale=5.0)
    small = inputs(module, model.config, [(6, 3), (5, 4), (6, 2)], 4)
    large = inputs(module, model.config, [(11, 5), (9, 2), (11, 1), (8, 4), (3, 2)], 7)
    shapes = {name: DIMENSIONS[name] for name in small}
    return module(model).eval(), small, large, shapes


@parts
@encodings
def test_exported_programs_take_other_sizes(encoding, module):
    whole, small, large, shapes = prepared(module, encoding)
    with torch.no_grad():
        program = torch.export.export(whole, (), small, dynamic_shapes=shapes)
        for batch in (small, large):
            torch.testing.assert_close(
                program.module()(**batch), whole(**batch), atol=1e-5, rtol=1e-5
            )


@parts
@encodings
def test_onnx_models_take_other_sizes(encoding, module, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    whole, small, large, shapes = prepared(module, encoding)
    path = tmp_path / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(
            whole, (), str(path), kwargs=small, dynamic_shapes=shapes, dynamo=True, verbose=False
        )
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = {x.name for x in session.get_inputs()}
        for batch in (small, large):
            feeds = {name: x.numpy() for name, x in batch.items() if name in names}
            (found,) = session.run(None, feeds)
            torch.testing.assert_close(
                torch.from_numpy(found), whole(**batch), atol=1e-5, rtol=1e-5
            )


@pytest.mark.parametrize("form", ["graph", "gated rotary"])
def test_geometric_encoders_are_exported(form):
    """With a dynamic number of texts, tokens and segments."""
    model, segments = small_model(**FORMS[form]), torch.export.Dim("segments", min=2, max=64)
    dimensions = {
        name: {0: BATCH, 1: segments if name.startswith("segment") else LENGTH} for name in batch()
    }
    program = torch.export.export(model, (), batch(), dynamic_shapes=dimensions, strict=False)
    other = batch(rows=4, length=12, segments=6, seed=3)
    found = program.module()(**other).logits
    torch.testing.assert_close(found, model(**other).logits, rtol=1e-4, atol=1e-5)


class FolnetLogits(torch.nn.Module):
    """A FOLNet as a function of tensors, without a cache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return self.model(**batch).logits


@pytest.mark.parametrize(
    ("head", "settings"),
    [
        (FolnetForSequenceClassification, PEOPLE),
        (FolnetForCausalLM, {"is_decoder": True}),
        (FolnetForConditionalGeneration, {"is_encoder_decoder": True, **PEOPLE}),
    ],
)
def test_folnets_are_exported(head, settings):
    """With a dynamic number of texts and of tokens."""
    model = head(FolnetConfig(**FOLNET, **settings)).eval()
    whole, answers = FolnetLogits(model), head is FolnetForConditionalGeneration

    def draw(rows, length, target):
        ids = torch.randint(5, 54, (rows, length))
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        batch["attention_mask"][0, length - 2 :] = 0
        if answers:
            batch["decoder_input_ids"] = torch.randint(5, 54, (rows, target))
        if settings.keys() & PEOPLE.keys():
            batch["stream_ids"] = torch.arange(50, 54).expand(rows, -1)
        if head is not FolnetForSequenceClassification:
            batch["use_cache"] = False
        return batch

    small = draw(3, 7, 5)
    kept = {"stream_ids": {0: BATCH}, "use_cache": None}
    shapes = {name: kept.get(name, DIMENSIONS.get(name)) for name in small}
    with torch.no_grad():
        program = torch.export.export(
            whole,
            (small,),
            dynamic_shapes={"batch": shapes},
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        ).module()
        other = draw(5, 13, 9)
        torch.testing.assert_close(program(other), whole(other), rtol=1e-5, atol=1e-5)
