"""Losses of classes that are 0, and no NaN, where nothing is to be learned, and their labels."""

import torch
from torch.nn import functional as F
from transformers import PreTrainedConfig

from .checks import IGNORE, check_classes, check_label_shape, check_multi_labels

OTHER_KINDS = (
    ", or set config.problem_type: single_label_classification, multi_label_classification or "
    "regression"
)


def class_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Returns the mean cross-entropy of classes, 0 where every label is -100.

    Args:
        logits: (..., C).
        labels: (...); -100 where no loss is wanted.
        num_items_in_batch: labels that are wanted in all micro-batches of a step, which the sum is
            divided by; by default those here.
    """
    rows, classes = logits.float().flatten(0, -2), labels.to(logits.device).long().flatten()
    total = F.cross_entropy(rows, classes, reduction="sum", ignore_index=IGNORE)
    count = (classes != IGNORE).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(count, device=total.device).clamp(min=1)


def place_loss(logits_BL: torch.Tensor, place_B: torch.Tensor) -> torch.Tensor:
    """Returns the mean cross-entropy of places in sequences; those beyond a sequence have none."""
    return class_loss(logits_BL, place_B.masked_fill(place_B >= logits_BL.shape[1], IGNORE))


def labels_for_loss(
    labels: torch.Tensor, logits_BC: torch.Tensor, config: PreTrainedConfig
) -> torch.Tensor:
    """Returns labels as Transformers' loss for texts takes them, by `config.problem_type`.

    Args:
        labels: (B,) for classes, and for numbers where `config.num_labels` is 1; else
            (B, num_labels).
        logits_BC: scores of the classes.
        config: of the model; without a `problem_type`, whole labels are classes.

    Raises:
        ValueError: labels are too few or too many, or no such label exists.
    """
    kind, (samples, classes) = config.problem_type, logits_BC.shape
    whole = classes > 1 and not labels.is_floating_point()
    if kind == "single_label_classification" or (kind is None and whole):
        check_label_shape(labels, samples, way_out=OTHER_KINDS)
        check_classes(labels, classes)
        return labels.long()
    check_label_shape(labels, samples, classes, way_out=OTHER_KINDS)
    if kind == "multi_label_classification" or (kind is None and classes > 1):
        check_multi_labels(labels)
    return labels.float().reshape(logits_BC.shape)  # half precision would round large numbers


__all__ = ["class_loss", "labels_for_loss", "place_loss"]
