"""Transformers' `ModelTesterMixin` and `ConfigTester` on geometric encoders and their heads."""

import unittest
from typing import Any, ClassVar

import pytest
import torch
from geometrics import FORMS, LABELS, SMALL, small_config
from switched_off import ModelTester, SwitchedOff
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin

from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.modeling_geometric import (
    GeometricForMaskedLM,
    GeometricForSequenceClassification,
    GeometricForTokenClassification,
    GeometricModel,
)

pytestmark = pytest.mark.conformance

TABLES = {
    "MODEL_MAPPING_NAMES": "GeometricModel",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES": "GeometricForMaskedLM",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES": "GeometricForSequenceClassification",
    "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES": "GeometricForTokenClassification",
}


class GeometricModelTester(ModelTester):
    """Small configurations and inputs, in the form that the shared tests ask for."""

    hidden_size = SMALL["hidden_size"]
    num_attention_heads = SMALL["num_attention_heads"]

    def get_config(self) -> GeometricConfig:
        return small_config(**{"initializer_range": 0.02, **self.settings})

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, torch.Tensor]]:
        shape = (self.batch_size, self.seq_length)
        inputs = {
            "input_ids": torch.randint(3, SMALL["vocab_size"], shape),
            "attention_mask": torch.ones(shape, dtype=torch.long),
            "token_type_ids": (torch.arange(shape[1]) > 3).long().repeat(shape[0], 1),
        }
        return self.get_config(), inputs


class GeometricConformance(SwitchedOff, ModelTesterMixin):
    """The shared tests, on texts without segments."""

    settings: ClassVar[dict[str, Any]]
    model_type, tables = "geometric", TABLES
    # Vectors of segments' labels have none without segments.
    test_all_params_have_gradient = False
    all_model_classes = (
        GeometricModel,
        GeometricForMaskedLM,
        GeometricForSequenceClassification,
        GeometricForTokenClassification,
    )

    def setUp(self):
        super().setUp()
        self.model_tester = GeometricModelTester(self.settings)

    def test_config(self):
        ConfigTester(self, config_class=GeometricConfig, hidden_size=24).run_common_tests()


class TestGraph(GeometricConformance, unittest.TestCase):
    settings: ClassVar = FORMS["graph"]


@pytest.mark.slow
class TestSharedGraph(GeometricConformance, unittest.TestCase):
    settings: ClassVar = FORMS["shared graph"]


@pytest.mark.slow
class TestRotary(GeometricConformance, unittest.TestCase):
    settings: ClassVar = FORMS["rotary"]


class TestGatedRotary(GeometricConformance, unittest.TestCase):
    settings: ClassVar = FORMS["gated rotary"]


class TestPlain(GeometricConformance, unittest.TestCase):
    settings: ClassVar = {"relation_attention": "none"}


class SegmentsModelTester(GeometricModelTester):
    """The same with segments, two in each row: keys and queries are then more than tokens."""

    key_length = encoder_seq_length = GeometricModelTester.seq_length + 2

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, torch.Tensor]]:
        config, inputs = super().prepare_config_and_inputs_for_common()
        rows = self.batch_size
        inputs["segment_ids"] = torch.tensor([[1, len(LABELS)]]).repeat(rows, 1)
        inputs["segment_starts"] = torch.tensor([[0, 2]]).repeat(rows, 1)
        inputs["segment_ends"] = torch.tensor([[3, 4]]).repeat(rows, 1)
        return config, inputs


class TestSegments(GeometricConformance, unittest.TestCase):
    settings: ClassVar = FORMS["graph"]
    test_all_params_have_gradient = True

    def setUp(self):
        super().setUp()
        self.model_tester = SegmentsModelTester(self.settings)
