"""`symbol_encoding="relational"` makes the promises of `streams`, but for conversion."""

from promises import Batching, Caching, DecoderPrompts, ExactExtension, RoundTrip, Training
from strategies import AlphaFamily


class TestRelational(
    AlphaFamily, ExactExtension, Batching, DecoderPrompts, Caching, RoundTrip, Training
):
    encoding = "relational"
    renamings, generated_renamings, most_renamings = 250, 30, 10_000
    extensions, batches, cached = 30, 40, 20
