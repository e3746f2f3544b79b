"""Transformers' `TokenizerTesterMixin` on a WordPiece with a transducer."""

import unittest
from typing import ClassVar

import pytest
from switched_off import SwitchedOff
from transformers_tests.test_tokenization_common import TokenizerTesterMixin

from hf_alpha.geometric import GeometricTokenizer
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.transduction import Lexicon, Transducer

pytestmark = pytest.mark.conformance

TEXTS = ["This is a test of the new lexicon.", "lower newer, a first sequence and a second one!"]


class TestGeometricTokenizer(SwitchedOff, TokenizerTesterMixin, unittest.TestCase):
    """The shared tests; each one that is switched off has its reason beside it."""

    switched_off: ClassVar = {
        "test_padding_to_multiple_of": "expects it of all keys, but segments have their own width",
        "test_tokenizer_store_full_signature": "the transducer is saved in files of its own",
    }
    tokenizer_class = GeometricTokenizer
    test_tokenizer_from_extractor = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        entries = [("a test", "EVENT"), ("this", "WORD"), ("first sequence", "EVENT")]
        made = make_tokenizer("wordpiece:300", TEXTS)
        transducer = Transducer.compile(Lexicon.from_entries(entries))
        GeometricTokenizer.from_tokenizer(made, transducer).save_pretrained(cls.tmpdirname)

    @classmethod
    def get_tokenizer(cls, pretrained_name=None, **kwargs):
        return GeometricTokenizer.from_pretrained(pretrained_name or cls.tmpdirname, **kwargs)
