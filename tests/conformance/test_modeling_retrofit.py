"""Transformers' `ModelTesterMixin` and `ConfigTester` on T5, BART and GPT-2 with a symbol layer."""

import json
import unittest
from typing import Any, ClassVar

import pytest
import torch
from hosts import make_host
from retrofits import make_retrofit, ordinary_tokens
from switched_off import ModelTester, SwitchedOff
from transformers_tests.generation.test_utils import GenerationTesterMixin
from transformers_tests.test_modeling_common import ModelTesterMixin

from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM

pytestmark = pytest.mark.conformance

AROUND = (
    "the backbone's configuration names our function around the one that is set (relational_eager "
    "for eager); tests/modeling/test_host_attention.py sets it, and asks for weights"
)
NAMES = [10, 11, 12]  # of each row: all that there are, so that random labels can be answered
CONFIGURATIONS: dict[str, str] = {}


class RetrofitModelTester(ModelTester):
    """Small configurations and inputs, in the form that the shared tests ask for."""

    def __init__(self, host: str, settings: dict[str, Any]):
        super().__init__(settings)
        self.host = host
        streams = len(NAMES) if self.get_config().encoding.opens_streams else 1
        # What comes out has the streams side by side.
        self.hidden_size, self.num_attention_heads = 16 * streams, 2 * streams

    def get_config(self) -> RetrofitConfig:
        return RetrofitConfig.from_dict(saved_config(self.host, **self.settings))

    def prepare_config_and_inputs_for_common(self) -> tuple[RetrofitConfig, dict[str, Any]]:
        config, shape = self.get_config(), (self.batch_size, self.seq_length)
        tokens = ordinary_tokens(config)
        ids, answers = (tokens[torch.randint(len(tokens), shape)] for _ in range(2))
        # As many streams in every row, whatever part of a batch is looked at.
        ids[:, 1 : 1 + len(NAMES)] = torch.tensor(NAMES)
        ones = torch.ones(shape, dtype=torch.long)
        inputs = {"input_ids": ids, "attention_mask": ones}
        if config.is_encoder_decoder:
            answers[:, 0], answers[:, 2] = config.decoder_start_token_id, NAMES[0]
            inputs |= {"decoder_input_ids": answers, "decoder_attention_mask": ones.clone()}
        if config.needs_stream_ids:
            inputs["stream_ids"] = ids[:, 1 : 1 + len(NAMES)].clone()
        return config, inputs


def saved_config(host: str, **settings: Any) -> dict[str, Any]:
    """A configuration as it is saved, a new copy each time: a model is made for the first one."""
    key = json.dumps([host, settings])
    if key not in CONFIGURATIONS:
        made = make_retrofit(make_host(host), place={"name": [[10, 13]]}, **settings)
        CONFIGURATIONS[key] = json.dumps(made.config.to_dict())
    return json.loads(CONFIGURATIONS[key])


class RetrofitConformance(SwitchedOff, ModelTesterMixin, GenerationTesterMixin):
    """The shared tests; each one that is switched off has its reason beside it."""

    host: ClassVar[str]
    settings: ClassVar[dict[str, Any]]
    all_model_classes = (RetrofitForConditionalGeneration,)
    is_encoder_decoder = True
    model_type = "alpha-retrofit"
    tables: ClassVar = {
        "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES": "RetrofitForConditionalGeneration"
    }
    # Ids of symbols never move: `extend_symbols` takes the place of `resize_token_embeddings`.
    test_resize_embeddings = False
    switched_off: ClassVar = {
        "test_model_base_model_prefix": "no model without a head lies inside: it is the backbone's"
    }

    def setUp(self):
        super().setUp()
        self.model_tester = RetrofitModelTester(self.host, self.settings)


class Streams(RetrofitConformance):
    switched_off: ClassVar = {
        **RetrofitConformance.switched_off,
        "test_retain_grad": "asks for tensors that the backbone goes on with; streams come packed",
    }


class TestT5Streams(Streams, unittest.TestCase):
    host = "t5"
    settings: ClassVar = {"aggregated_attention": ["encoder", "decoder"]}


@pytest.mark.slow
class TestT5DualPart(RetrofitConformance, unittest.TestCase):
    host = "t5"
    settings: ClassVar = {"symbol_encoding": "dual_part"}


@pytest.mark.slow
class TestBartStreams(Streams, unittest.TestCase):
    host = "bart"
    settings: ClassVar = {"aggregated_attention": ["encoder", "decoder"]}


class TestBartDualPart(RetrofitConformance, unittest.TestCase):
    host = "bart"
    settings: ClassVar = {"symbol_encoding": "dual_part"}


class TestT5Relational(RetrofitConformance, unittest.TestCase):
    host = "t5"
    settings: ClassVar = {"symbol_encoding": "relational"}
    switched_off: ClassVar = {
        **RetrofitConformance.switched_off,
        "test_training_gradient_checkpointing_use_reentrant_true": "refused: layers share gates "
        "that are trained",
        "test_attention_outputs": AROUND,
        "test_can_set_attention_dynamically": AROUND,
    }


class DecoderConformance(RetrofitConformance):
    all_model_classes = (RetrofitForCausalLM,)
    is_encoder_decoder = False
    tables: ClassVar = {"MODEL_FOR_CAUSAL_LM_MAPPING_NAMES": "RetrofitForCausalLM"}


class TestGpt2(DecoderConformance, unittest.TestCase):
    host = "gpt2"
    settings: ClassVar = {"symbol_encoding": "learned"}
    switched_off: ClassVar = {
        **RetrofitConformance.switched_off,
        "test_model_forward_default_config_values": "GPT-2's end token by default, 50256, is too "
        "large for a small vocabulary",
    }


class TestLlamaCanonical(DecoderConformance, unittest.TestCase):
    host = "llama"
    settings: ClassVar = {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"}
    switched_off: ClassVar = {
        **RetrofitConformance.switched_off,
        "test_tied_weights_keys": "ties tables by our configuration; the backbone's own says it",
    }


class TestLlamaRelational(DecoderConformance, unittest.TestCase):
    host = "llama"
    settings: ClassVar = {"symbol_encoding": "relational"}
    switched_off: ClassVar = {
        **TestLlamaCanonical.switched_off,
        "test_training_gradient_checkpointing_use_reentrant_true": "refused for `relational`",
        "test_attention_outputs": AROUND,
        "test_can_set_attention_dynamically": AROUND,
    }
