"""Finite-state transducers: from a text to labelled segments, by lexicons and rules."""

from hf_alpha.transduction.gamma import GammaSpace as GammaSpace
from hf_alpha.transduction.gamma import Segment as Segment
from hf_alpha.transduction.lexicon import Lexicon
from hf_alpha.transduction.rules import Rule
from hf_alpha.transduction.rules import read_rules as read_rules
from hf_alpha.transduction.transducer import Transducer

__all__ = ["Lexicon", "Rule", "Transducer"]
"""What is promised; GammaSpace, Segment and read_rules are for the package itself."""
