"""What TRL's trainers ask of a decoder in place of logits: scores of its labels.

TRL puts a `forward` in place of the model's own, which multiplies the last states with the matrix
of the head. Scores of symbols are no such product, so the model gives itself what TRL's would.

Shapes: B batch, T length, V vocabulary, N labelled positions.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from transformers.utils import ModelOutput

from .checks import IGNORE
from .choices import refuse
from .new_symbols import UNUSABLE


@dataclass
class LabelScores(ModelOutput):
    """Of each label, as TRL's `FusedCausalLMOutput` has it; 0 where there is none: (B, T).

    Attributes:
        loss: mean of `-log_probs`.
        log_probs: logarithm of a label's probability.
        entropy: of all that might stand there.
        log_sum_sq_probs: logarithm of the sum of squared probabilities; without a gradient.
        mean_logits: over the columns that a text can use; without a gradient.
        is_top1: whether nothing else is more probable.
        aux_loss: None; TRL asks for it.
    """

    loss: torch.Tensor | None = None
    log_probs: torch.Tensor | None = None
    entropy: torch.Tensor | None = None
    log_sum_sq_probs: torch.Tensor | None = None
    mean_logits: torch.Tensor | None = None
    is_top1: torch.Tensor | None = None
    label_mask: torch.Tensor | None = None
    aux_loss: torch.Tensor | None = None

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        """Returns scores in which all that is by label is changed."""
        own = {field.name: self[field.name] for field in fields(self) if field.name in self}
        return type(self)(**{name: change(x) if x.dim() else x for name, x in own.items()})


def label_scores(
    logits_BTV: torch.Tensor,
    labels_BT: torch.Tensor,
    usable: Any = None,
    smoothing: float = 0.0,
    num_items: torch.Tensor | int | None = None,
    temperature: float = 1.0,
) -> LabelScores:
    """Returns the scores of labels; arguments as of `token_loss`, and what logits are divided by.

    Raises:
        ValueError: labels are to be smoothed, of which TRL's losses know nothing.
    """
    refuse(
        smoothing,
        f"label_smoothing {smoothing} in the model's configuration has no part in a loss of TRL's: "
        "set model.config.label_smoothing = 0",
    )
    mask = labels_BT != IGNORE
    labels_N, logits_NV = labels_BT[mask], logits_BTV[mask].float()
    there_NV = logits_NV > UNUSABLE / 2
    logits_NV = logits_NV / temperature
    log_probs_NV = logits_NV.log_softmax(-1)
    with torch.no_grad():
        squares_N = (2.0 * log_probs_NV).logsumexp(-1)
        means_N = torch.where(there_NV, logits_NV, 0.0).sum(-1) / there_NV.sum(-1)

    def by_label(x_N: torch.Tensor) -> torch.Tensor:
        return x_N.new_zeros(mask.shape).masked_scatter(mask, x_N)

    log_probs = by_label(log_probs_NV.gather(-1, labels_N[:, None])[:, 0])
    items = mask.sum().clamp(min=1) if num_items is None else num_items
    return LabelScores(
        loss=-log_probs.sum() / items,
        log_probs=log_probs,
        entropy=by_label(-(log_probs_NV.exp() * log_probs_NV).sum(-1)),
        log_sum_sq_probs=by_label(squares_N),
        mean_logits=by_label(means_N),
        is_top1=by_label(log_probs_NV.argmax(-1) == labels_N),
        label_mask=mask,
    )


def temperature_of(forward: Any) -> float | None:
    """Returns the temperature of a `forward` of TRL's; None if it is none.

    Raises:
        RuntimeError: it is made in another way than in the versions that are known.
    """
    function = getattr(forward, "__func__", None)
    if not getattr(function, "__globals__", {}).get("__name__", "").startswith("trl."):
        return None
    settings = inspect.getclosurevars(function).nonlocals  # type: ignore[arg-type]
    if "temperature" not in settings:
        raise RuntimeError(
            "this version of TRL asks models for something that this one does not know: "
            "pip install 'trl==1.16.*'"
        )
    return float(settings["temperature"])
