"""Rows that hold several texts, one behind the other, and the same texts in rows of their own.

Transformers tells the texts of a packed row apart by positions that start again; its attention then
shows no text to another. Names start anew with each text too: what is called `x` in one is nothing
to the next. So texts get rows of their own, and what is found about their tokens goes back.

Shapes: B packed rows, T their length, N texts, L length of the longest one.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import Cache

from .checks import can_look
from .masks import is_by_token

LENGTHS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")
"""What collators give beside positions, for kernels that are told where texts end."""


@dataclass(frozen=True)
class PackedTexts:
    """The texts of packed rows.

    Attributes:
        shape: of the rows, (B, T).
        lengths: of the texts, in the order in which they stand.
        mask: 1 for tokens of a text that has a row of its own, 0 for padding: (N, L).
    """

    shape: tuple[int, int]
    lengths: list[int]
    mask: torch.Tensor

    @classmethod
    def of(cls, position_BT: torch.Tensor, rows: int) -> Self | None:
        """Returns the texts; None if each row is one.

        As Transformers has it, a text begins where a position does not follow the one before.

        Args:
            position_BT: of the tokens; one row may be for all.
            rows: B.
        """
        position_BT = position_BT.expand(rows, -1)
        begins_BT = torch.ones_like(position_BT, dtype=torch.bool)
        begins_BT[:, 1:] = position_BT.diff() != 1
        if int(begins_BT.sum()) == rows:
            return None
        begin_N = begins_BT.flatten().nonzero().flatten()
        end = begin_N.new_tensor([begins_BT.numel()])
        lengths = torch.cat((begin_N, end)).diff()
        place_L = torch.arange(int(lengths.max()), device=position_BT.device)
        mask = (place_L < lengths[:, None]).long()
        return cls((rows, position_BT.shape[1]), lengths.tolist(), mask)

    def apart(self, x_BT: torch.Tensor, filler: int) -> torch.Tensor:
        """Returns what belongs to tokens with a row for each text: (N, L)."""
        texts = x_BT.expand(self.shape).flatten().split(self.lengths)
        return pad_sequence(list(texts), batch_first=True, padding_value=filler)

    def together(self, x_NL: torch.Tensor) -> torch.Tensor:
        """Returns what belongs to tokens in the packed rows again: (N, L, ...) -> (B, T, ...)."""
        return x_NL[self.mask.bool()].unflatten(0, self.shape)


# Rows of another shape are another program.
@torch.compiler.disable
def packed_texts(
    ids_BT: torch.Tensor, mask: Any, position_BT: torch.Tensor, cache: Cache | None
) -> PackedTexts | None:
    """Returns the texts of packed rows; None if each row is one text.

    Args:
        ids_BT: tokens.
        mask: of attention, if one is given.
        position_BT: of the tokens.
        cache: of earlier ones.

    Raises:
        ValueError: positions start again beside a mask or a cache, where texts would see one
            another.
    """
    if mask is None and (cache is None or not cache.get_seq_length()):
        return PackedTexts.of(position_BT, ids_BT.shape[0])
    # Masks that are prepared for attention come from `generate`, whose rows are one text each.
    if not can_look(position_BT) or not (mask is None or is_by_token(mask)):
        return None
    back_BT = position_BT.diff() <= 0
    if mask is not None:
        shown_BT = mask[:, -ids_BT.shape[1] :] > 0
        back_BT = back_BT & shown_BT[:, 1:] & shown_BT[:, :-1]
    if bool(back_BT.any()):
        raise ValueError(
            "position_ids start again within a row, as those of several texts in one row do, and "
            "there is an attention_mask or a cache, with which the texts would see one another: "
            "give packed rows without either, or each text a row of its own"
        )
    return None


__all__ = ["LENGTHS", "PackedTexts", "packed_texts"]
