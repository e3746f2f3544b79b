"""Scale of cosine logits and the token loss.

Shapes: B batch, T length, V vocabulary, N labelled positions.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init

from .checks import IGNORE

MAX_SCALE = 100.0
MAX_ANGLE = math.pi / 4
ADACOS = ("mean", "sum")
ANGLE_BINS = 1 << 14  # a bin is 5e-5 rad wide: the median is exact enough for float32 training


class LogitScale(nn.Module):
    """Multiplies cosines by a scale, kept in the checkpoint and, with AdaCos, adapted in training.

    AdaCos (Zhang et al. 2019, equations 12-15, with the positions of a sequence as batch):
    `s <- min(100, ln B / cos(min(pi / 4, median angle)))`, B the mean or the sum over labelled
    positions of the sum over the other usable columns of exp(s cos). Zhang et al. have the mean
    over a batch. 2410.17161 (Section 4.3) does not say which, but finds that so many positions
    "can lead to numerical issues" and therefore clips at 100, which a sum explains: it adds
    ln(positions) to ln B. The scale changes once per optimiser step, however the batch is cut into
    micro-batches and processes: each training forward adds to statistics that are sums (a histogram
    of angles gives the median), summed over processes, and the first forward after an optimiser
    step turns them into the next scale.

    Args:
        adacos: `"mean"` or `"sum"`, of B; False for a scale that stays. True is `"mean"`, as
            configurations had it before there was a choice.

    Attributes:
        statistics: of the current optimiser step: angle histogram below pi/4, angles above, sum of
            exp, positions. No buffer, because it has to keep its precision in a half-precision
            model and belongs in no checkpoint.
    """

    scale: torch.Tensor

    def __init__(self, initial: float, adacos: bool | str):
        super().__init__()
        self.initial = initial
        self.adaptive = bool(adacos)
        self.sums = adacos == "sum"
        self.register_buffer("scale", torch.tensor(float(initial)))
        self._forget()

    def reset(self) -> None:
        """Initialise what a checkpoint did not bring."""
        init.constant_(self.scale, self.initial)
        self._forget()

    def _forget(self) -> None:
        self.statistics = torch.zeros(ANGLE_BINS + 3, device="cpu")
        self._seen: int | None = None  # count of steps when they were taken

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Loads weights and forgets statistics, which say nothing about the new ones."""
        super()._load_from_state_dict(*args, **kwargs)
        self._forget()

    def forward(self, cosines: torch.Tensor) -> torch.Tensor:
        scale = self.scale
        return cosines * (scale if scale.dtype == cosines.dtype else scale.to(cosines.dtype))

    @torch.compiler.disable
    @torch.no_grad()
    def observe(
        self,
        logits_BTV: torch.Tensor,
        labels_BT: torch.Tensor,
        usable_BV: torch.Tensor,
        count: int,
    ) -> None:
        """Add one micro-batch of scaled logits to the statistics.

        Args:
            count: of [`StepCounter`]; the micro-batches of one optimiser step see the same.
        """
        if not self.adaptive:
            return
        self._seen = count
        # exp(100), a wrong token at the largest scale, overflows float32. MPS has nothing wider.
        device = logits_BTV.device
        dtype = torch.float32 if device.type == "mps" else torch.float64
        labelled = labels_BT != IGNORE
        labels = labels_BT[labelled]
        logits = logits_BTV[labelled].to(dtype)
        usable = usable_BV[:, None].expand_as(logits_BTV)[labelled]
        target = logits.gather(1, labels[:, None])[:, 0]
        usable = usable.scatter(1, labels[:, None], False)
        angles = (target / self.scale).clamp(-1.0, 1.0).arccos()
        bins = (angles * (ANGLE_BINS / MAX_ANGLE)).long().clamp(0, ANGLE_BINS)
        new = torch.zeros(ANGLE_BINS + 3, dtype=dtype, device=device)
        new[: ANGLE_BINS + 1] = torch.bincount(bins, minlength=ANGLE_BINS + 1)
        new[-2], new[-1] = torch.where(usable, logits.exp(), 0.0).sum(), labels.numel()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(new)
        self.statistics = self.statistics.to(new) + new

    @torch.compiler.disable
    @torch.no_grad()
    def advance(self, count: int) -> None:
        """Turn the statistics into the next scale if an optimiser step has been counted since."""
        if self._seen is None or self._seen == count:
            return
        self.scale.copy_(self._next_scale())
        self._forget()

    def _next_scale(self) -> torch.Tensor:
        exp_sum, count = self.statistics[-2:]
        histogram = self.statistics[: ANGLE_BINS + 1].cumsum(0)
        # Lower median, as torch.median has it; the middle of its bin.
        index = torch.searchsorted(histogram, (count / 2).ceil())
        angle = ((index + 0.5) * (MAX_ANGLE / ANGLE_BINS)).clamp(max=MAX_ANGLE)
        others = exp_sum if self.sums else exp_sum / count
        scale = (others.log() / angle.cos()).clamp(max=MAX_SCALE)
        # Hardly any mass on other columns gives no usable scale: keep the last one.
        return torch.where(scale.isfinite() & (scale > 0), scale, self.scale)


def token_loss(
    logits_BTV: torch.Tensor,
    labels_BT: torch.Tensor,
    usable: Callable[[], torch.Tensor],
    smoothing: float = 0.0,
    num_items: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Returns the cross-entropy over labelled positions, smoothed over usable columns only.

    Args:
        usable: makes them, (B, V); asked where there is smoothing.
        num_items: labelled positions of the whole optimiser step; the mean is over them, so that
            micro-batches add up to the loss of the whole batch. By default those of this call.
    """
    log_probs = F.log_softmax(logits_BTV.float(), dim=-1)
    # A number for each position: the sum of `nll_loss` has another order.
    losses = F.nll_loss(log_probs.flatten(0, 1), labels_BT.flatten(), reduction="none")
    if smoothing:
        usable_B1V = usable()[:, None]
        uniform = torch.where(usable_B1V, log_probs, 0.0).sum(-1) / usable_B1V.sum(-1)
        losses = (1.0 - smoothing) * losses.view_as(uniform) - smoothing * uniform
        losses = torch.where(labels_BT != IGNORE, losses, 0.0)
    total = losses.sum()
    if num_items is None:
        num_items = (labels_BT != IGNORE).sum()
    elif isinstance(num_items, torch.Tensor):
        num_items = num_items.to(total.device)
    # Without any label, 0 and not 0 / 0.
    return total / (num_items.clamp(min=1) if isinstance(num_items, torch.Tensor) else num_items)
