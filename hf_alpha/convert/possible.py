"""Whether a model of Transformers can be converted, and into what, without its weights."""

import copy
import logging
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.convert.retrofit import SymbolConfig, check_host, get_symbol_model
from hf_alpha.convert.shared import ConversionError
from hf_alpha.loading import auto_class
from hf_alpha.modeling.symbol_encodings import encoding_names

TRIED = 300_000_000
"""Parameters of a stand-in up to which a conversion is tried."""
LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "num_decoder_layers",
    "encoder_layers",
    "decoder_layers",
)
RULE = {"name": {"pattern": "[a-z]", "count": 4}}


def possible_conversions(config: PreTrainedConfig, tokenizer: Any) -> dict[str, str]:
    """Return what becomes of a model of Transformers with each encoding: "" or why it is refused.

    A stand-in of the same configuration, with two layers and random weights, is converted, with all
    proofs. Where even that is large, only what the configuration says is looked at.

    Args:
        config: of an encoder-decoder or a decoder.
        tokenizer: the one that belongs to it.

    Raises:
        ConversionError: the model does not write text, or has no vocabulary that can grow.
    """
    with torch.device("meta"):  # shapes without numbers
        skeleton: PreTrainedModel = auto_class(config).from_config(config)
    check_host(skeleton)
    small = _two_layers(config)
    with torch.device("meta"):
        count = auto_class(small).from_config(small).num_parameters()
    encodings = encoding_names()[::-1]  # the plainest one last
    if count > TRIED:
        return dict.fromkeys(encodings, "")
    logging.disable(logging.WARNING)  # of what is random here
    try:
        return {encoding: _refusal(small, tokenizer, encoding) for encoding in encodings}
    finally:
        logging.disable(logging.NOTSET)


def _refusal(config: PreTrainedConfig, tokenizer: Any, encoding: str) -> str:
    """Return why a model is not converted; "" if it is."""
    host = auto_class(config).from_config(config).eval()
    try:
        get_symbol_model(host, tokenizer, SymbolConfig(encoding, RULE))
    except ConversionError as error:
        return str(error)
    return ""


def _two_layers(config: PreTrainedConfig) -> PreTrainedConfig:
    """Return a configuration with two layers at most; the same one where that cannot be said."""
    small = copy.deepcopy(config)
    try:
        for name in LAYERS:
            if isinstance(number := getattr(small, name, None), int) and number > 2:
                if isinstance(kinds := getattr(small, "layer_types", None), list):
                    small.layer_types = kinds[:2]
                setattr(small, name, 2)
        with torch.device("meta"):
            auto_class(small).from_config(small)
    except Exception:  # each configuration has checks of its own
        return config
    return small
