"""Checks of what goes into a model: ids, lists of symbols, labels.

Most read values back from the device. On a CPU that costs next to nothing; elsewhere it would wait
for the device in every step, so there the checks are on only where the environment variable
`HF_ALPHA_DEBUG` is set. Compiled and exported models have none.

Shapes: B batch, L length, S listed symbols, T target length, V vocabulary.
"""

import os
from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, EncoderDecoderCache

from .choices import refuse

DEBUG = "HF_ALPHA_DEBUG"
IGNORE = -100


def is_recorded(x: torch.Tensor) -> bool:
    """Returns whether what is done to a tensor is written down only, so that it has no values."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or x.device.type == "meta"


is_transformed: Callable[[], bool] = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: False
)


def can_look(x: torch.Tensor) -> bool:
    """Returns whether a check may read the values of a tensor."""
    if is_recorded(x):
        return False
    return x.device.type == "cpu" or bool(os.environ.get(DEBUG))


def check_dimensions(ids: torch.Tensor | None, dimensions: int, name: str = "input_ids") -> None:
    """Raise a ValueError if there are no ids, or not with so many dimensions, 2 or 3."""
    shape, text = () if ids is None else tuple(ids.shape), "(samples, length)"
    text = text if dimensions == 2 else "(samples, choices, length)"
    refuse(ids is None, f"{name} are missing")
    refuse(len(shape) != dimensions, f"{name} are {shape}: give {text}")
    refuse(0 in shape, f"{name} are {shape}, without a token: give {text}, 1 or more of each")


def refuse_places(outside: torch.Tensor, fault: Callable[[tuple[int, ...]], str]) -> None:
    """Raise a ValueError about the first place of a tensor that is True, if there is one.

    Args:
        fault: what is wrong, by the place.
    """
    if outside.any():
        raise ValueError(fault(tuple(outside.nonzero()[0].tolist())))


def check_ids(config: PreTrainedConfig, ids_BL: torch.Tensor, name: str = "input_ids") -> None:
    """Raise a ValueError for an id outside the vocabulary, and for no ids."""
    check_dimensions(ids_BL, 2, name)
    if not can_look(ids_BL):
        return
    smallest, largest = (int(x) for x in ids_BL.aminmax())
    if smallest < 0 or largest >= config.vocab_size:
        raise ValueError(
            f"token id {smallest if smallest < 0 else largest} is outside the model's vocabulary "
            f"of {config.vocab_size}: model and tokenizer must come from the same folder, and "
            "extend_symbols must be called on both"
        )


def check_symbols(
    config: Any,
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
    unlisted_BL = config.vocabulary.is_symbol(ids_BL) & (stream_BL < 0)
    if mask_BL is not None:
        unlisted_BL &= mask_BL > 0
    refuse_places(
        unlisted_BL,
        lambda place: (
            f"stream_ids lack symbol {int(ids_BL[place])} at position {place[1]} of row "
            f"{place[0]}: pass the stream_ids that the tokenizer made for these input_ids, or none"
        ),
    )


def check_labels(
    labels_BT: torch.Tensor,
    logits_BTV: torch.Tensor,
    usable: Callable[[], torch.Tensor],
    unusable: float,
) -> None:
    """Raise a ValueError for a label outside the vocabulary, or one that no output can give.

    Args:
        labels_BT: ids; those of -100 are not looked at.
        logits_BTV: scores of the labels.
        usable: makes the columns that each sample can use, (B, V).
        unusable: score of the others.
    """
    if not can_look(labels_BT) or not labels_BT.numel():
        return
    size, known_BT = logits_BTV.shape[-1], labels_BT.masked_fill(labels_BT == IGNORE, 0)
    smallest, largest = known_BT.aminmax()
    if smallest < 0 or largest >= size:
        refuse_places(
            (known_BT < 0) | (known_BT >= size),
            lambda place: (
                f"label {int(labels_BT[place])} at position {place[1]} of row {place[0]} is "
                f"outside the model's vocabulary of {size}; mark what needs no loss with {IGNORE}"
            ),
        )
    if not (logits_BTV.detach().gather(-1, known_BT[..., None]) <= unusable / 2).any():
        return  # which costs less than the columns
    refuse_places(
        (labels_BT != IGNORE) & ~usable().gather(1, known_BT),
        lambda place: (
            f"label {int(labels_BT[place])} at position {place[1]} of row {place[0]} is a symbol "
            "that the input of that row lacks, and this model can only answer with those it has: "
            "leave the sample out, correct its target, or make a model with new_symbols=True"
        ),
    )


def check_rows(rows: int, samples: int, labels: torch.Tensor | None = None) -> None:
    """Raise a ValueError if a decoder's rows cannot be shared out among the inputs.

    Args:
        samples: inputs, of which each has as many rows.
        labels: if there are some, they have a row for each input.
    """
    if labels is not None:
        given = labels.shape[0] if labels.dim() else 0
        refuse(given != samples, f"labels has {given} rows for {samples} inputs")
    refuse(
        rows < samples or rows % samples,
        f"decoder_input_ids has {rows} rows for {samples} inputs: give one for each input, or for "
        "each input as many, those of an input side by side",
    )


BY_TOKEN = {
    "attention_mask": "1 for each token and 0 for padding",
    "labels": f"a label for each token, {IGNORE} where no loss is wanted",
    "position_ids": "one for each token, or leave them out",
    "token_type_ids": "those that the tokenizer made for these input_ids",
}


def check_by_token(rows: int, length: int, **inputs: torch.Tensor | None) -> None:
    """Raise a ValueError for an input, one of `BY_TOKEN`, without a number for each token.

    One row of positions may be for all.
    """
    for name, x in inputs.items():
        shapes = [(rows, length), *[(1, length)] * (name == "position_ids")]
        if x is not None and x.shape not in shapes:
            raise ValueError(
                f"{name} {'are' if name.endswith('_ids') else 'is'} {tuple(x.shape)}, and there "
                f"are {rows} rows of {length} tokens: give {BY_TOKEN[name]}"
            )


def check_cache(past_key_values: Cache | None) -> None:
    """Raise a ValueError for a cache without room for the keys of a source."""
    if past_key_values is not None and not isinstance(past_key_values, EncoderDecoderCache):
        raise ValueError(
            f"past_key_values is a {type(past_key_values).__name__}: give an EncoderDecoderCache, "
            "e.g. EncoderDecoderCache(DynamicCache(), DynamicCache())"
        )


def refuse_vectors(kwargs: dict[str, Any]) -> None:
    """Raise a ValueError for inputs that are vectors, and for a cache that would be ignored."""
    if kwargs.get("cache") is not None:
        raise ValueError(
            "this version of Transformers calls past_key_values cache, which the model does not "
            "know: pip install 'transformers<5.24'"
        )
    for name in ("inputs_embeds", "decoder_inputs_embeds"):
        if kwargs.get(name) is not None:
            raise ValueError(
                f"{name} is not supported: give token ids. A symbol's vector depends on the "
                "stream, so prompt tuning and other methods that put vectors before the input do "
                "not work with this model; LoRA and its kin do"
            )


def refuse_unknown(
    kwargs: dict[str, Any], model: str, ignored: tuple[str, ...] = ("token_type_ids",)
) -> None:
    """Raise a ValueError for arguments that a model's forward does not know; None is accepted.

    Args:
        ignored: names that tokenizers give and of which nothing is made.
    """
    known = ("return_dict", "cache_position", *ignored)
    unknown = [name for name, x in kwargs.items() if x is not None and name not in known]
    if unknown:
        raise ValueError(
            f"{model} takes no {', '.join(unknown)}: look at the spelling, or leave it out"
        )


def check_positions(positions: torch.Tensor, longest: int) -> None:
    """Raise a ValueError for a position that has no vector."""
    if can_look(positions) and positions.numel() and int(positions.max()) >= longest:
        raise ValueError(
            f"a sequence of {int(positions.max()) + 1} tokens is longer than "
            f"max_position_embeddings ({longest}): shorten it, or train a model with relative "
            "positions, which have no such limit"
        )
