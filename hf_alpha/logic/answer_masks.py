"""Which tokens may come next in an answer, as a function of those so far.

Legend: R answers, T tokens so far, V vocabulary.
"""

from typing import Any

import torch

LEAF, UNARY, BINARY, SEPARATOR, OPEN, CLOSE, END, OTHER = range(8)
KINDS = {
    "0": LEAF, "1": LEAF, "!": UNARY, "&": BINARY, "|": BINARY,
    ";": SEPARATOR, "{": OPEN, "}": CLOSE,
}  # fmt: skip


class TraceMask:
    """Of a symbolic trace: Boolean formulas as steps, `;` between them, and the loop in braces."""

    def __init__(self, tokenizer: Any):
        vocabulary, symbols = tokenizer.get_vocab(), set(tokenizer.symbol_ids)
        self._kinds_V = torch.full((len(tokenizer),), OTHER)
        for token, index in vocabulary.items():
            self._kinds_V[index] = LEAF if index in symbols else KINDS.get(token, OTHER)
        self._kinds_V[tokenizer.eos_token_id] = END
        self._missing = torch.tensor([-1, 0, 1, 0, 0, 0, 0, 0])

    def __call__(self, ids_RT: torch.Tensor) -> torch.Tensor:
        """Return which tokens may come next: (R, V)."""
        kinds_RT = self._kinds_V.to(ids_RT.device)[ids_RT]
        first_RT = (kinds_RT == SEPARATOR) | (kinds_RT == OPEN)
        ones_R1 = torch.ones(len(ids_RT), 1, dtype=torch.long, device=ids_RT.device)
        # Of the step that is being written: tokens, and operands that are missing.
        step_R = first_RT.cumsum(1)[:, -1:] if ids_RT.shape[1] else 0 * ones_R1
        current_RT = (first_RT.cumsum(1) == step_R) & ~first_RT
        changes_RT = self._missing.to(ids_RT.device)[kinds_RT] * current_RT
        missing_R = 1 + changes_RT.sum(1)
        empty_R = ~current_RT.any(1)
        opened_R, closed_R = ((kinds_RT == kind).any(1) for kind in (OPEN, CLOSE))
        inside_R = (missing_R > 0) & ~closed_R
        whole_R = (missing_R == 0) & ~closed_R
        allowed_RK = torch.stack(
            [
                *[inside_R] * 3,
                whole_R,
                empty_R & ~opened_R,
                whole_R & opened_R,
                closed_R,
                torch.zeros_like(closed_R),
            ],
            dim=1,
        )
        return allowed_RK[:, self._kinds_V.to(ids_RT.device)]


class AssignmentMask:
    """Of a partial assignment: symbols, each followed by its value, and none twice."""

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
