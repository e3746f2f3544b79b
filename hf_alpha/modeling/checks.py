"""Checks of what goes into a model: ids, lists of symbols, labels.

Most read values back from the device. On a CPU that costs next to nothing; elsewhere it would wait
for the device in every step, so there the checks are on only where the environment variable
`HF_ALPHA_DEBUG` is set. Compiled and exported models have none.

Shapes: B batch, L length, S listed symbols, T target length, V vocabulary.
"""

import os
from typing import Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from .configuration_symbols import SymbolModelConfig

DEBUG = "HF_ALPHA_DEBUG"
IGNORE = -100


def can_look(x: torch.Tensor) -> bool:
    """Whether values of a tensor may be read."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or x.device.type == "meta":
        return False
    return x.device.type == "cpu" or bool(os.environ.get(DEBUG))


def check_ids(config: SymbolModelConfig, ids_BL: torch.Tensor) -> None:
    """Raise a ValueError for an id outside the vocabulary."""
    if not can_look(ids_BL) or not ids_BL.numel():
        return
    smallest, largest = (int(x) for x in ids_BL.aminmax())
    if smallest < 0 or largest >= config.vocab_size:
        raise ValueError(
            f"token id {smallest if smallest < 0 else largest} is outside the model's vocabulary "
            f"of {config.vocab_size}: model and tokenizer must come from the same folder, and "
            "extend_symbols must be called on both"
        )


def check_symbols(
    config: SymbolModelConfig,
    ids_BL: torch.Tensor,
    mask_BL: torch.Tensor | None,
    stream_BL: torch.Tensor,
) -> None:
    """Raise a ValueError if `stream_ids` lack a symbol of the input.

    Args:
        stream_BL: what `own_streams` found: -1 for tokens that are not listed.
    """
    if not can_look(ids_BL):
        return
    lost = config.vocabulary.is_symbol(ids_BL) & (stream_BL < 0)
    if mask_BL is not None:
        lost &= mask_BL > 0
    if lost.any():
        row, position = lost.nonzero()[0].tolist()
        raise ValueError(
            f"stream_ids lack symbol {int(ids_BL[row, position])} at position {position} of row "
            f"{row}: pass the stream_ids that the tokenizer made for these input_ids, or none"
        )


def check_labels(labels_BT: torch.Tensor, usable_BV: torch.Tensor) -> None:
    """Raise a ValueError for a label outside the vocabulary, or one that no output can give.

    Args:
        labels_BT: ids; those of -100 are not looked at.
        usable_BV: columns that each sample can use.
    """
    if not can_look(labels_BT):
        return
    wanted = labels_BT != IGNORE
    outside = wanted & ((labels_BT < 0) | (labels_BT >= usable_BV.shape[1]))
    if outside.any():
        row, position = outside.nonzero()[0].tolist()
        raise ValueError(
            f"label {int(labels_BT[row, position])} at position {position} of row {row} is outside "
            f"the model's vocabulary of {usable_BV.shape[1]}; mark what needs no loss with {IGNORE}"
        )
    lost = wanted & ~usable_BV.gather(1, labels_BT.masked_fill(~wanted, 0))
    if lost.any():
        row, position = lost.nonzero()[0].tolist()
        raise ValueError(
            f"label {int(labels_BT[row, position])} at position {position} of row {row} is a "
            "symbol that the input of that row lacks, and this model can only answer with those "
            "it has: leave the sample out, or correct its target"
        )


def check_label_rows(labels_BT: torch.Tensor | None, samples: int) -> None:
    """Raise a ValueError if there are labels, and not a row for each input."""
    if labels_BT is not None and labels_BT.shape[0] != samples:
        raise ValueError(f"labels has {labels_BT.shape[0]} rows for {samples} inputs")


def check_cache(past_key_values: Cache | None) -> None:
    """Raise a ValueError for a cache without room for the keys of a source."""
    if past_key_values is not None and not isinstance(past_key_values, EncoderDecoderCache):
        raise ValueError(
            f"past_key_values is a {type(past_key_values).__name__}: give an EncoderDecoderCache, "
            "e.g. EncoderDecoderCache(DynamicCache(), DynamicCache())"
        )


def refuse_vectors(kwargs: dict[str, Any]) -> None:
    """Raise a ValueError for inputs that are vectors."""
    for name in ("inputs_embeds", "decoder_inputs_embeds"):
        if kwargs.get(name) is not None:
            raise ValueError(
                f"{name} is not supported: give token ids. A symbol's vector depends on the "
                "stream, so prompt tuning and other methods that put vectors before the input do "
                "not work with this model; LoRA and its kin do"
            )


def check_rows(rows: int, samples: int) -> None:
    """Raise a ValueError if decoder rows cannot be shared out among the inputs."""
    if rows < samples or rows % samples:
        raise ValueError(
            f"decoder_input_ids has {rows} rows for {samples} inputs: give one for each input, or "
            "for each input as many, those of an input side by side"
        )


__all__ = [
    "IGNORE",
    "can_look",
    "check_cache",
    "check_ids",
    "check_label_rows",
    "check_labels",
    "check_rows",
    "check_symbols",
    "refuse_vectors",
]
