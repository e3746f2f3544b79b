"""`symbol_encoding="learned"`, the vanilla model; and with names renamed by first occurrence."""

from promises import Batching, Caching, DecoderPrompts, NoExtension, Renaming, RoundTrip, Training
from strategies import RENAMED_AT_RANDOM, TWO_CLASSES, AlphaFamily


class TestLearned(AlphaFamily, NoExtension, Batching, DecoderPrompts, Caching, RoundTrip, Training):
    encoding = "learned"
    saved = (TWO_CLASSES, {"symbol_renaming": "first_occurrence"}, {"symbol_renaming": "random"})
    trained = (*AlphaFamily.trained, *RENAMED_AT_RANDOM)


class TestLearnedByFirstOccurrence(AlphaFamily, Renaming, NoExtension, Batching, Caching, Training):
    encoding, renaming_at_the_door = "learned", "first_occurrence"
