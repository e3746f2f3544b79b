"""Checks that conversions share."""

import pytest

from hf_alpha.convert.shared import ConversionError, check_fit, check_gap, check_sides


def test_a_gap_beyond_the_tolerance_fails_a_proof_and_so_does_nan():
    check_gap("logits differ", 0.5, 0.5)
    for gap in (0.51, float("nan")):
        with pytest.raises(ConversionError, match=r"^proof failed: logits differ by up to"):
            check_gap("logits differ", gap, 0.5)


def test_weights_that_are_missing_or_left_over_are_named():
    check_fit([], [])
    for names in ((["a"], []), ([], ["b"])):
        with pytest.raises(ConversionError, match=r"do not fit: missing .*left over"):
            check_fit(*names)


def test_only_encoder_and_decoder_get_aggregated_attention():
    check_sides(["encoder", "decoder"])
    with pytest.raises(ConversionError, match="encoder or decoder, not 'both'"):
        check_sides(["encoder", "both"])
