"""Rows of samples, and of their beams."""

import torch

from hf_alpha.modeling.streams import match_rows


def test_rows_are_repeated_for_beams_or_kept_once_for_each_sample():
    """Beams of a sample lie side by side."""
    samples = torch.tensor([[1, 2], [3, 4], [5, 6]])
    beams = torch.tensor([[1, 2], [1, 2], [3, 4], [3, 4], [5, 6], [5, 6]])
    assert match_rows(samples, 6).equal(beams)
    assert match_rows(beams, 3).equal(samples)
    assert match_rows(samples, 3) is samples
    assert match_rows(None, 6) is None
