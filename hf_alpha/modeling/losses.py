"""Losses of classes that are 0, and no NaN, where nothing is to be learned."""

import torch
from torch.nn import functional as F

from .checks import IGNORE


def class_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Mean cross-entropy of classes, 0 where every label is -100.

    Args:
        logits: (..., C).
        labels: (...); -100 where no loss is wanted.
        num_items_in_batch: labels that are wanted in all micro-batches of a step, which the sum is
            divided by; by default those here.
    """
    rows, wanted = logits.float().flatten(0, -2), labels.to(logits.device).long().flatten()
    total = F.cross_entropy(rows, wanted, reduction="sum", ignore_index=IGNORE)
    count = (wanted != IGNORE).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(count, device=total.device).clamp(min=1)


def place_loss(logits_BL: torch.Tensor, place_B: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of places in sequences; those beyond the sequence have none."""
    return class_loss(logits_BL, place_B.masked_fill(place_B >= logits_BL.shape[1], IGNORE))


__all__ = ["class_loss", "place_loss"]
