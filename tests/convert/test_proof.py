"""The proof of a conversion: what counts as the same logits, and what does not."""

import pytest
import torch

from hf_alpha.convert import ConversionError
from hf_alpha.convert.proof import prove_growth


def test_rows_that_are_added_may_change_the_rounding_of_old_logits_and_no_more():
    before = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    more = torch.cat((before, torch.zeros(2, 3, 4)), dim=-1)
    prove_growth(before, more + 4e-7, list(range(5)))
    before[0, 0, 0], before[0, 0, 1] = -1e4, -torch.inf  # a column that is never wanted
    more[..., :5] = before
    for dtype, gap in ((torch.float32, 1e-4), (torch.bfloat16, 0.1)):
        prove_growth(before.to(dtype), more.to(dtype), list(range(5)))
        with pytest.raises(ConversionError, match="rows added"):
            prove_growth(before.to(dtype), (more + gap).to(dtype), list(range(5)))
