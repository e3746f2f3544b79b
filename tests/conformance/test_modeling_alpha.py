"""Transformers' `ModelTesterMixin` and `ConfigTester` on every encoding and kind of positions."""

import unittest
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
import torch
from strategies import SMALL
from switched_off import ModelTester, SwitchedOff
from transformers_tests.generation.test_utils import GenerationTesterMixin
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.modeling_alpha import AlphaModel

pytestmark = pytest.mark.conformance

SIZES = {**SMALL, "num_base_tokens": 12, "symbol_classes": {"proposition": 3}}
SYMBOLS = 3  # distinct symbols in each row: all, so that random labels can be answered


class AlphaModelTester(ModelTester):
    """Small configurations and inputs, in the form that the shared tests ask for."""

    def __init__(self, settings: dict[str, Any]):
        super().__init__(settings)
        self.streams = SYMBOLS if self.get_config().symbol_encoding == "streams" else 1
        # What comes out has the streams side by side.
        self.hidden_size = SIZES["d_model"] * self.streams
        self.num_attention_heads = SIZES["encoder_attention_heads"] * self.streams

    def get_config(self) -> AlphaConfig:
        return AlphaConfig(**{**SIZES, **self.settings})

    def prepare_config_and_inputs_for_common(self) -> tuple[AlphaConfig, dict[str, torch.Tensor]]:
        config = self.get_config()
        base, shape = config.num_base_tokens, (self.batch_size, self.seq_length)
        ids = torch.randint(3, base, shape)
        # As many streams in every row, whatever part of a batch is looked at.
        ids[:, 1 : 1 + SYMBOLS] = base + torch.arange(SYMBOLS)
        answers = torch.randint(3, base, shape)
        answers[:, 0] = config.decoder_start_token_id
        answers[:, 2] = base
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones(shape, dtype=torch.long),
            "decoder_input_ids": answers,
            "decoder_attention_mask": torch.ones(shape, dtype=torch.long),
        }
        if config.needs_stream_ids:
            inputs["stream_ids"] = ids[:, 1 : 1 + SYMBOLS].clone()
        if config.encoder_position == "tree":
            inputs["tree_paths"] = torch.randint(1, 60, shape)
        return config, inputs


class AlphaConformance(SwitchedOff, ModelTesterMixin, GenerationTesterMixin):
    """The shared tests; each one that is switched off has its reason beside it."""

    settings: ClassVar[dict[str, Any]]
    model_type = "alpha"
    tables: ClassVar = {
        "MODEL_MAPPING_NAMES": "AlphaModel",
        "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES": "AlphaForConditionalGeneration",
    }
    all_model_classes = (AlphaModel, AlphaForConditionalGeneration)
    is_encoder_decoder = True
    # Ids of symbols never move: `extend_symbols` takes the place of `resize_token_embeddings`.
    test_resize_embeddings = False

    def setUp(self):
        super().setUp()
        self.model_tester = AlphaModelTester(self.settings)

    def test_attention_outputs(self):
        # It counts outputs, and AlphaModel has one more than others: the table of streams.
        with patch.object(type(self), "all_model_classes", (AlphaForConditionalGeneration,)):
            super().test_attention_outputs()

    def test_config(self):
        ConfigTester(self, config_class=AlphaConfig, d_model=24).run_common_tests()


class TestStreams(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "streams", "encoder_position": "rope"}


class TreePositions(AlphaConformance):
    switched_off: ClassVar = {
        "test_eager_matches_sdpa_inference": "gives input_ids alone, without tree_paths"
    }


class TestStreamsTree(TreePositions, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "streams", "encoder_position": "tree"}


@pytest.mark.slow
class TestStreamsWithoutAggregation(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {
        "symbol_encoding": "streams",
        "encoder_aggregated_attention": False,
        "decoder_aggregated_attention": False,
        "encoder_position": "sinusoidal",
        "decoder_position": "sinusoidal",
    }


class TestRelational(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "relational", "encoder_position": "rope"}


@pytest.mark.slow
class TestRelationalTree(TreePositions, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "relational", "encoder_position": "tree"}


class TestLearned(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "learned", "encoder_position": "rope"}


@pytest.mark.slow
class TestLearnedTree(TreePositions, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "learned", "encoder_position": "tree"}


class TestCanonical(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {
        "symbol_encoding": "learned",
        "symbol_renaming": "first_occurrence",
        "encoder_position": "sinusoidal",
        "decoder_position": "sinusoidal",
    }


class TestDualPart(AlphaConformance, unittest.TestCase):
    settings: ClassVar = {"symbol_encoding": "dual_part", "encoder_position": "rope"}
