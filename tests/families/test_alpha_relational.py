"""`symbol_encoding="relational"` makes the promises of `streams`, conversion up to rounding."""

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

from hf_alpha.convert import to_relational


class TestRelational(
    AlphaFamily, ExactExtension, Batching, DecoderPrompts, Caching, Conversion, RoundTrip, Training
):
    encoding = "relational"
    renamings, most_renamings = 10, 10_000
    conversion_atol = 1e-5

    def converted(self, seed, data):
        positions = data.draw(st.sampled_from(POSITIONS), label="positions")
        vanilla = make_model(seed % 5, symbol_encoding="learned", **positions)
        return vanilla, to_relational(vanilla, BASE + 1), BASE + 1
