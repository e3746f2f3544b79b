"""What conversions share: the error, checks of settings and weights, the inputs of proofs."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.modeling.configuration_alpha import AlphaConfig


class ConversionError(ValueError):
    """A model that cannot be converted as asked, or a conversion that failed its proof."""


def reject(fault: object, message: str) -> None:
    """Raise a ConversionError with this message if there is a fault."""
    if fault:
        raise ConversionError(message)


# -- settings and weights -------------------------------------------------------------------------


def check_learned(config: Any) -> None:
    """Raise a ConversionError for a model that is converted already."""
    encoding = config.symbol_encoding
    message = f"only 'learned' models are converted; this one is {encoding!r} already"
    reject(encoding != "learned", message)


def check_sides(sides: Iterable[str]) -> None:
    """Raise a ConversionError for a side that cannot get aggregated attention."""
    for side in sides:
        message = f"aggregated attention is added to encoder or decoder, not {side!r}"
        reject(side not in ("encoder", "decoder"), message)


def check_fit(missing_names: Sequence[str], unused_names: Sequence[str]) -> None:
    """Raise a ConversionError unless all weights are there and all are used."""
    message = f"weights do not fit: missing {missing_names}, left over {unused_names}"
    reject(missing_names or unused_names, message)


def changed_config(config: AlphaConfig, **changes: Any) -> AlphaConfig:
    """Return a configuration with changes.

    Raises:
        ConversionError: a setting does not fit.
    """
    settings = config.to_dict() | {"attn_implementation": config._attn_implementation} | changes
    try:
        return type(config)(**settings)
    except ValueError as error:
        raise ConversionError(str(error)) from error


def new_model(model: PreTrainedModel, config: AlphaConfig) -> PreTrainedModel:
    """Return a model of the same kind and precision, initialised by a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return type(model)(config).to(model.dtype)


def class_members(config: AlphaConfig) -> list[list[int]]:
    """Return the ids of each class's symbols, classes in the order of their rows."""
    return [
        [token for start, stop in ranges for token in range(start, stop)]
        for ranges in config.symbol_ranges.values()
    ]


# -- proofs ---------------------------------------------------------------------------------------


def for_proof(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy in evaluation mode, in float32 on the CPU."""
    return copy.deepcopy(model).eval().float().cpu()


def probe(config: AlphaConfig, symbols: list[int]) -> dict:
    """Return random inputs that hold exactly these symbols, in this order of occurrence."""
    generator = torch.Generator().manual_seed(0)

    def draw(choices: list[int], *shape: int) -> Tensor:
        return torch.tensor(choices)[torch.randint(len(choices), shape, generator=generator)]

    special = (config.pad_token_id, config.decoder_start_token_id)
    tokens = [*(i for i in config.vocabulary.base_ids if i not in special), *symbols]
    ids, decoder_ids = draw(tokens, 8, 12), draw(tokens, 8, 6)
    ids[:, : len(symbols)] = torch.tensor(symbols, dtype=torch.long)
    decoder_ids[:, 0] = config.decoder_start_token_id
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "tree_paths": torch.randint(0, 1 << 20, ids.shape, generator=generator),
        "decoder_input_ids": decoder_ids,
    }


def check_gap(what: str, gap: float, tolerance: float = 0.0) -> None:
    """Raise a ConversionError for a gap beyond the tolerance; `what` differs says where."""
    agrees = gap <= tolerance  # NaN does not
    reject(not agrees, f"proof failed: {what} by up to {gap:.2e}")
