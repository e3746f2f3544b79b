"""Which tokens may come next in a partial assignment, as a function of those so far.

Legend: R answers, T tokens so far, V vocabulary.
"""

from typing import Any

import torch


class AssignmentMask:
    """Symbols, each followed by its value, and none twice.

    Args:
        tokenizer: of the model that writes answers.
    """

    def __init__(self, tokenizer: Any):
        vocabulary = tokenizer.get_vocab()
        self._symbols_V, self._values_V = torch.zeros(2, len(tokenizer), dtype=torch.bool)
        self._symbols_V[tokenizer.symbol_ids] = True
        self._values_V[[vocabulary["0"], vocabulary["1"]]] = True
        self._end = tokenizer.eos_token_id

    def __call__(self, ids_RT: torch.Tensor) -> torch.Tensor:
        """Return which tokens may come next: (R, V)."""
        rows, length = ids_RT.shape
        if length % 2:
            return self._values_V.to(ids_RT.device).repeat(rows, 1)
        allowed_RV = self._symbols_V.to(ids_RT.device).repeat(rows, 1)
        allowed_RV.scatter_(1, ids_RT, False)
        allowed_RV[:, self._end] = True
        return allowed_RV


__all__ = ["AssignmentMask"]
