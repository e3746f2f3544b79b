"""When the numbers of a training are no longer finite: how long that is borne, and since when."""

import math
from dataclasses import dataclass

import torch

PATIENCE = 3
"""Training stops after so many steps in a row whose loss or norm of gradients is not finite.

Each of them is left out: one bad batch changes no weight.
"""


class NotFiniteError(ValueError):
    """The numbers of a training are not finite; the message says from where it may go on."""


@dataclass
class FiniteSteps:
    """Which steps of a run had a finite loss and finite gradients.

    Attributes:
        in_a_row: how many of the last steps had not.
        proved: the last step behind which weights are known to be good, since the next step went
            well with them; -1 for none.
        losses: how many have had a finite loss since the last log.
    """

    in_a_row: int = 0
    proved: int = -1
    losses: int = 0

    def add(self, step: int, loss: float, gradient_norm: float | None) -> bool:
        """Note a step, counted from 1, and return whether it was finite.

        A loss that is NaN beside finite gradients is the mean over nothing: of a batch in which no
        token is masked, say. That is no fault of the weights.

        Args:
            step: its number.
            loss: of all its batches.
            gradient_norm: None where it is not known; then the loss alone says it.
        """
        self.losses += math.isfinite(loss)
        if gradient_norm is None:
            finite = math.isfinite(loss)
        else:
            finite = math.isfinite(gradient_norm) and not math.isinf(loss)
        if finite:
            self.in_a_row, self.proved = 0, step - 1
        else:
            self.in_a_row += 1
        return not self.in_a_row


def is_finite(model: torch.nn.Module) -> bool:
    """Return whether all weights of a model, or of this process's part, are finite."""
    return all(bool(torch.isfinite(weight).all()) for weight in model.parameters())


__all__ = ["PATIENCE", "FiniteSteps", "NotFiniteError", "is_finite"]
