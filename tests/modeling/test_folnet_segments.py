"""FOLNet with symbolic segments: their relations as binary base atoms."""

import pytest
import torch
from folnets import folnet_batch, make_folnet
from reference.folnet_segments import SegmentsReference

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.modeling_folnet import (
    FolnetForMultipleChoice,
    FolnetForTokenClassification,
    FolnetModel,
)

LABELS = ["compound", "date"]
SIZES = {
    "hidden_size": 14, "binary_hidden_size": 9, "num_hidden_layers": 2, "num_attention_heads": 3,
    "head_size": 4, "intermediate_size": 11, "max_distance": 3, "binary_intermediate_size": 10,
    "vocab_size": 17, "pad_token_id": 0, "segment_labels": LABELS,
}  # fmt: skip
SEGMENTS = [[(1, 1, 3), (2, 2, 3), (1, 3, 5)], [(2, 1, 2)], []]
"""Of each row: number of the label plus 1, first and last token."""
LENGTHS = [7, 4, 3]


def make_model(model_class=FolnetModel, **settings):
    torch.manual_seed(0)
    model = model_class(FolnetConfig(**{**SIZES, **settings})).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * parameter.shape[-1] ** -0.5)
    return model


def make_batch(left=False):
    """Rows of different lengths, padded on one side, and their segments."""
    generator = torch.Generator().manual_seed(0)
    most = max(LENGTHS)
    batch = {name: torch.zeros(3, most, dtype=torch.long) for name in
             ("input_ids", "attention_mask", "token_type_ids")}  # fmt: skip
    segments = torch.zeros(3, 3, 3, dtype=torch.long)
    for row, length in enumerate(LENGTHS):
        seen = slice(most - length, most) if left else slice(0, length)
        batch["input_ids"][row, seen] = torch.randint(3, 17, (length,), generator=generator)
        batch["attention_mask"][row, seen] = 1
        batch["token_type_ids"][row, seen] = (torch.arange(length) > 2).long()
        for place, (label, first, last) in enumerate(SEGMENTS[row]):
            segments[place, row] = torch.tensor([label, first + seen.start, last + seen.start])
    names = ("segment_ids", "segment_starts", "segment_ends")
    return batch | dict(zip(names, segments.permute(2, 1, 0), strict=True))


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("cls_atoms", [True, False])
def test_it_equals_the_reference(cls_atoms, left):
    """Forward and gradients of all weights, row by row without padding."""
    model, batch = make_model(cls_atoms=cls_atoms), make_batch(left)
    atoms = model(**batch)
    weights = {f"folnet.{name}": weight for name, weight in model.named_parameters()}
    reference = SegmentsReference(model.config, weights)
    ours = theirs = torch.zeros(())
    for row in range(len(LENGTHS)):
        real = batch["attention_mask"][row] > 0
        unary, binary = reference.encode_with(
            batch["input_ids"][row, real], batch["token_type_ids"][row, real], SEGMENTS[row]
        )
        found = atoms.last_hidden_state[row, real], atoms.binary_hidden_state[row, real][:, real]
        for one, two in zip(found, (unary, binary), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
            weight = torch.randn(one.shape, dtype=one.dtype)
            ours, theirs = ours + (one * weight).sum(), theirs + (two * weight).sum()
    gradients = [
        torch.autograd.grad(loss, list(weights.values()), allow_unused=True, materialize_grads=True)
        for loss in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_without_segments_it_is_the_same_model():
    model, batch = make_model(), make_batch()
    plain = {name: batch[name] for name in batch if not name.startswith("segment")}
    nothing = {name: 0 * batch[name] for name in batch if name.startswith("segment")}
    empty = {name: tensor[:, :0] for name, tensor in nothing.items()}
    wanted, seen = model(**plain), batch["attention_mask"] > 0
    for segments in (nothing, empty):
        found = model(**plain, **segments)
        for one, two in (
            (found.last_hidden_state[seen], wanted.last_hidden_state[seen]),
            (found.binary_hidden_state[0], wanted.binary_hidden_state[0]),
            (found.pooler_output, wanted.pooler_output),
        ):
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(model(**batch).pooler_output, wanted.pooler_output)


def test_new_weights_are_labels_and_names_of_relations():
    shapes = {name: tuple(x.shape) for name, x in make_model().named_parameters()}
    plain = {name: tuple(x.shape) for name, x in make_model(segment_labels=[]).named_parameters()}
    name = "encoder.embeddings.{}_embeddings.weight"
    assert shapes.pop(name.format("segment")) == (len(LABELS) + 1, 14)
    assert (plain[name.format("distance")], shapes[name.format("distance")]) == ((8, 9), (17, 9))
    plain[name.format("distance")] = (17, 9)
    assert shapes == plain


@pytest.mark.parametrize("encoding", ["streams", "relational", "learned"])
def test_renamed_symbols_beside_segments_change_nothing(encoding):
    """Segments go with every encoding of names; renaming is exact with them too."""
    model = make_folnet(
        "AutoModelForMaskedLM", symbol_encoding=encoding, segment_labels=LABELS,
        position_scheme="relative",
    )  # fmt: skip
    batch = folnet_batch(1, model.config, [(6, 3), (4, 2)])
    one = torch.ones(2, 1, dtype=torch.long)
    batch |= {"segment_ids": one, "segment_starts": one, "segment_ends": 2 * one}
    logits = model(**batch).logits
    assert logits.shape[:2] == batch["input_ids"].shape
    if encoding == "learned":
        return
    base, total = model.config.num_base_tokens, model.config.vocab_size
    order = torch.cat((torch.arange(base), torch.arange(base, total).flip(0)))
    moved = {**batch, "input_ids": order[batch["input_ids"]]}
    if "stream_ids" in batch:
        known = batch["stream_ids"] >= 0
        moved["stream_ids"] = torch.where(known, order[batch["stream_ids"].clamp(min=0)], -1)
    assert torch.equal(model(**moved).logits[..., order], logits)


def test_heads_take_them():
    model, batch = make_model(FolnetForTokenClassification), make_batch()
    labels = batch["attention_mask"] - 1  # 0 for tokens, -1 for padding
    outputs = model(**batch, labels=labels.where(labels == 0, -100), output_hidden_states=True)
    assert outputs.logits.shape == (3, 7, 2)
    assert [x.shape[1] for x in outputs.hidden_states] == [10, 10, 7]
    outputs.loss.backward()
    weight = model.folnet.encoder.embeddings.segment_embeddings.weight
    assert weight.grad[1:].abs().sum(1).min() > 0 and not weight.grad[0].any()


@pytest.mark.parametrize(
    "settings",
    [{"is_decoder": True}, {"is_encoder_decoder": True}, {"position_scheme": "absolute"}],
)
def test_other_forms_refuse_them(settings):
    with pytest.raises(ValueError, match="segment_labels are for encoders"):
        FolnetConfig(**{**SIZES, **settings})


def test_choices_have_segments_of_their_own():
    model, batch = make_model(FolnetForMultipleChoice), make_batch()
    with torch.no_grad():
        together = model(**{name: value[None] for name, value in batch.items()}).logits
        alone = [
            model(**{name: value[None, row : row + 1] for name, value in batch.items()}).logits
            for row in range(len(LENGTHS))
        ]
        plain = {name: value for name, value in batch.items() if not name.startswith("segment")}
        without = model(**{name: value[None] for name, value in plain.items()}).logits
    torch.testing.assert_close(together, torch.cat(alone, 1))
    assert not torch.allclose(together[0, 0], without[0, 0]), "segments matter"
