"""Transformers' `ModelTesterMixin` and `ConfigTester` on decoders alone of this package."""

import unittest
from typing import Any, ClassVar

import pytest
import torch
from families.test_alpha_decoder import SMALL
from switched_off import ModelTester, SwitchedOff
from transformers_tests.generation.test_utils import GenerationTesterMixin
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin

from hf_alpha import AlphaConfig, AlphaForCausalLM

pytestmark = pytest.mark.conformance

SYMBOLS = 3  # distinct symbols in each row: all, so that random labels can be answered
SIZES = {**SMALL, "num_base_tokens": 12, "symbol_classes": {"proposition": SYMBOLS}}


class DecoderTester(ModelTester):
    """Small configurations and inputs, in the form that the shared tests ask for."""

    def __init__(self, settings: dict[str, Any]):
        super().__init__(settings)
        streams = SYMBOLS if self.get_config().encoding.opens_streams else 1
        # What comes out has the streams side by side.
        self.hidden_size = SIZES["d_model"] * streams
        self.num_attention_heads = SIZES["decoder_attention_heads"] * streams

    def get_config(self) -> AlphaConfig:
        return AlphaConfig(**{**SIZES, **self.settings})

    def prepare_config_and_inputs_for_common(self) -> tuple[AlphaConfig, dict[str, torch.Tensor]]:
        config, shape = self.get_config(), (self.batch_size, self.seq_length)
        ids = torch.randint(3, config.num_base_tokens, shape)
        # As many streams in every row, whatever part of a batch is looked at.
        ids[:, 1 : 1 + SYMBOLS] = config.num_base_tokens + torch.arange(SYMBOLS)
        inputs = {"input_ids": ids, "attention_mask": torch.ones(shape, dtype=torch.long)}
        if config.needs_stream_ids:
            inputs["stream_ids"] = ids[:, 1 : 1 + SYMBOLS].clone()
        return config, inputs


class DecoderConformance(SwitchedOff, ModelTesterMixin, GenerationTesterMixin):
    """The shared tests; each one that is switched off has its reason beside it."""

    settings: ClassVar[dict[str, Any]]
    model_type = "alpha"
    tables: ClassVar = {"MODEL_FOR_CAUSAL_LM_MAPPING_NAMES": "AlphaForCausalLM"}
    all_model_classes = (AlphaForCausalLM,)
    is_encoder_decoder = False
    # Ids of symbols never move: `extend_symbols` takes the place of `resize_token_embeddings`.
    test_resize_embeddings = False

    def setUp(self):
        super().setUp()
        self.model_tester = DecoderTester(self.settings)

    def test_config(self):
        tester = ConfigTester(self, AlphaConfig, is_encoder_decoder=False, d_model=24)
        tester.run_common_tests()


class TestRelational(DecoderConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "relational"}


class TestNewSymbols(DecoderConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "relational", "new_symbols": True}


class TestStreams(DecoderConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "streams"}


@pytest.mark.slow
class TestLearned(DecoderConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "learned"}
