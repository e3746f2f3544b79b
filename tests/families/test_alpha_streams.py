"""`symbol_encoding="streams"` makes every promise."""

from hypothesis import strategies as st
from promises import (
    Batching,
    Caching,
    Conversion,
    DecoderPrompts,
    ExactExtension,
    RoundTrip,
    Training,
)
from strategies import BASE, POSITIONS, AlphaFamily, make_model

from hf_alpha.convert import to_streams

PLAIN = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}


class TestStreams(
    AlphaFamily, ExactExtension, Batching, DecoderPrompts, Caching, Conversion, RoundTrip, Training
):
    encoding = "streams"
    renamings, most_renamings = 10, 10_000

    def converted(self, seed, data):
        positions = data.draw(st.sampled_from(POSITIONS), label="positions")
        vanilla = make_model(seed % 5, symbol_encoding="learned", **PLAIN, **positions)
        actual, placeholder = BASE + 1, BASE + 3
        return vanilla, to_streams(vanilla, actual, placeholder), actual
