"""`symbol_encoding="dual_part"`; and with names renamed by first occurrence."""

from promises import Batching, Caching, DecoderPrompts, Extension, Renaming, RoundTrip, Training
from strategies import RENAMED_AT_RANDOM, TWO_CLASSES, AlphaFamily


class TestDualPart(AlphaFamily, Extension, Batching, DecoderPrompts, Caching, RoundTrip, Training):
    encoding = "dual_part"
    answers_are_names_of_the_input = False
    saved = (TWO_CLASSES, {"symbol_renaming": "first_occurrence"}, {"symbol_renaming": "random"})
    trained = (*AlphaFamily.trained, *RENAMED_AT_RANDOM)


class TestDualPartByFirstOccurrence(AlphaFamily, Renaming, Extension, Batching, Caching, Training):
    encoding, renaming_at_the_door = "dual_part", "first_occurrence"
