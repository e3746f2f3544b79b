"""Transformers' `ModelTesterMixin` and `ConfigTester` on FOLNet's three forms and all its heads."""

import unittest
from typing import Any, ClassVar

import pytest
import torch
from folnets import SMALL
from switched_off import ModelTester, SwitchedOff
from transformers_tests.generation.test_utils import GenerationTesterMixin
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.modeling_folnet import (
    FolnetForCausalLM,
    FolnetForConditionalGeneration,
    FolnetForMaskedLM,
    FolnetForMultipleChoice,
    FolnetForPreTraining,
    FolnetForQuestionAnswering,
    FolnetForSequenceClassification,
    FolnetForTokenClassification,
    FolnetModel,
)

pytestmark = pytest.mark.conformance

SYMBOLS = 3  # distinct symbols in each row: all, so that random labels can be answered
TABLES = {
    "MODEL_MAPPING_NAMES": "FolnetModel",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES": "FolnetForMaskedLM",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES": "FolnetForSequenceClassification",
    "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES": "FolnetForTokenClassification",
    "MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES": "FolnetForMultipleChoice",
    "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES": "FolnetForQuestionAnswering",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES": "FolnetForCausalLM",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES": "FolnetForConditionalGeneration",
}


class FolnetModelTester(ModelTester):
    """Small configurations and inputs, in the form that the shared tests ask for."""

    num_choices = 2

    def __init__(self, settings: dict[str, Any]):
        super().__init__(settings)
        streams = SYMBOLS if self.get_config().encoding.opens_streams else 1
        # What comes out has the streams side by side.
        self.hidden_size = SMALL["hidden_size"] * streams
        self.num_attention_heads = SMALL["num_attention_heads"]

    def get_config(self) -> FolnetConfig:
        sizes = {**SMALL, "num_base_tokens": 30, "initializer_range": 0.02}
        return FolnetConfig(**{**sizes, **self.settings})

    def prepare_config_and_inputs_for_common(self) -> tuple[FolnetConfig, dict[str, torch.Tensor]]:
        config = self.get_config()
        base, shape = config.num_base_tokens, (self.batch_size, self.seq_length)
        ids = torch.randint(3, base, shape)
        symbols = torch.arange(base, config.vocab_size)
        # As many streams in every row, whatever part of a batch is looked at.
        ids[:, 1 : 1 + len(symbols)] = symbols
        inputs = {"input_ids": ids, "attention_mask": torch.ones(shape, dtype=torch.long)}
        if not config.is_decoder:
            inputs["token_type_ids"] = (torch.arange(shape[1]) > 3).long().repeat(shape[0], 1)
        if config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.randint(3, base, shape)
            inputs["decoder_attention_mask"] = torch.ones(shape, dtype=torch.long)
        if config.needs_stream_ids:
            inputs["stream_ids"] = symbols.repeat(shape[0], 1)
        return config, inputs


class FolnetConformance(SwitchedOff, ModelTesterMixin):
    """The shared tests; each one that is switched off has its reason beside it."""

    settings: ClassVar[dict[str, Any]]
    model_type, tables = "folnet", TABLES
    # A head that does not show binary atoms skips their last deduction, and most skip the pooler.
    test_all_params_have_gradient = False

    def setUp(self):
        super().setUp()
        self.model_tester = FolnetModelTester(self.settings)
        # Ids of symbols never move: there `extend_symbols` takes the place of resizing.
        self.test_resize_embeddings = not self.model_tester.get_config().num_symbols

    def _prepare_for_class(self, inputs_dict, model_class, return_labels=False):
        inputs = super()._prepare_for_class(inputs_dict, model_class, return_labels)
        if return_labels and model_class is FolnetForPreTraining:
            inputs["labels"] = torch.zeros_like(inputs["input_ids"])
            inputs["next_sentence_label"] = torch.zeros_like(inputs["input_ids"][:, 0])
        return inputs

    def test_config(self):
        ConfigTester(self, config_class=FolnetConfig, hidden_size=24).run_common_tests()


class Encoder(FolnetConformance):
    all_model_classes = (
        FolnetModel,
        FolnetForPreTraining,
        FolnetForMaskedLM,
        FolnetForSequenceClassification,
        FolnetForTokenClassification,
        FolnetForMultipleChoice,
        FolnetForQuestionAnswering,
    )


class TestEncoder(Encoder, unittest.TestCase):
    settings: ClassVar = {}


class TestEncoderRelational(Encoder, unittest.TestCase):
    all_model_classes = (FolnetModel, FolnetForMaskedLM)
    settings: ClassVar = {"symbol_encoding": "relational", "symbol_classes": {"name": SYMBOLS}}


@pytest.mark.slow
class TestEncoderStreams(Encoder, unittest.TestCase):
    all_model_classes = (FolnetModel, FolnetForMaskedLM, FolnetForTokenClassification)
    switched_off: ClassVar = {
        "test_retain_grad": "asks for tensors that layers go on with; streams come side by side"
    }
    settings: ClassVar = {"symbol_encoding": "streams", "symbol_classes": {"name": SYMBOLS}}


class TestDecoder(FolnetConformance, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (FolnetModel, FolnetForCausalLM)
    settings: ClassVar = {"is_decoder": True}


class EncoderDecoder(FolnetConformance, GenerationTesterMixin):
    all_model_classes = (FolnetModel, FolnetForConditionalGeneration)
    is_encoder_decoder = True
    switched_off: ClassVar = {
        name: "asks for cross_attentions: a kernel of the decoder is one over source and target"
        for name in ("test_attention_outputs", "test_retain_grad")
    }


class TestEncoderDecoder(EncoderDecoder, unittest.TestCase):
    settings: ClassVar = {"is_encoder_decoder": True}


@pytest.mark.slow
class TestEncoderDecoderRelational(EncoderDecoder, unittest.TestCase):
    settings: ClassVar = {**TestEncoderDecoder.settings, **TestEncoderRelational.settings}


class TestEncoderDecoderStreams(EncoderDecoder, unittest.TestCase):
    settings: ClassVar = {**TestEncoderDecoder.settings, **TestEncoderStreams.settings}
