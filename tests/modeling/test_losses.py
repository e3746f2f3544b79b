"""Labels as losses take them."""

import pytest
import torch
from geometrics import batch, small_model
from transformers import PreTrainedConfig
from transformers.utils.generic import find_labels

from hf_alpha.modeling.losses import labels_for_loss
from hf_alpha.modeling.modeling_folnet import FolnetForCausalLM
from hf_alpha.modeling.modeling_geometric import GeometricForSequenceClassification
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM


@pytest.mark.parametrize(
    ("classes", "kind", "labels", "wanted"),
    [
        (3, None, torch.tensor([2, 0], dtype=torch.int32), torch.tensor([2, 0])),
        (3, "single_label_classification", torch.tensor([2.0, 0.0]), torch.tensor([2, 0])),
        (1, None, torch.tensor([7, 100_001]), torch.tensor([[7.0], [100_001.0]])),
        (1, "multi_label_classification", torch.tensor([1, 0]), torch.tensor([[1.0], [0.0]])),
        (2, None, torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[1.0, 0], [0, 1]])),
        (2, "regression", torch.tensor([[5, 0], [0, -1]]), torch.tensor([[5.0, 0], [0, -1]])),
    ],
)
def test_labels_have_the_shape_and_dtype_of_their_loss(classes, kind, labels, wanted):
    config = PreTrainedConfig(num_labels=classes, problem_type=kind)
    found = labels_for_loss(labels, torch.zeros(2, classes, dtype=torch.float16), config)
    assert found.dtype == wanted.dtype and torch.equal(found, wanted)


def test_classes_as_ones_need_their_kind():
    config = PreTrainedConfig(num_labels=3)
    with pytest.raises(ValueError, match=r"give \(2,\), or set config.problem_type: single_label"):
        labels_for_loss(torch.eye(3, dtype=torch.long)[:2], torch.zeros(2, 3), config)


def test_numbers_are_not_rounded_in_mixed_precision():
    model, inputs = small_model(GeometricForSequenceClassification, num_labels=1), batch()
    labels = torch.tensor([3.801, 1001.0, 100_100.0])
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            found = model(**inputs, labels=labels)
        exact = (found.logits.float()[:, 0] - labels).square().mean()
        torch.testing.assert_close(found.loss, exact)


@pytest.mark.parametrize("model", [FolnetForCausalLM, RetrofitForCausalLM])
def test_trainer_asks_for_labels_alone(model):
    assert find_labels(model) == ["labels"]
