"""Vanilla to symbol-invariant (2601.23169, Section 5.8).

A `learned` model becomes a `streams` model with the same weights: the vector of one of its symbols
turns into the actual row, that of another into the placeholder row, and all the other symbols'
vectors are dropped. What the two then have in common is checked on every conversion (promise 5 of
docs/promises.md). Aggregated attention can be added as blocks that do nothing at first.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.convert.shared import (
    EMBEDDING,
    ConversionError,
    check_gap,
    check_sides,
    convert_folder,
    converted_config,
    converted_model,
    for_proof,
    ids_of_tokens,
    one_per_class,
    probe,
)
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer

NEW_BLOCK = ".aggregated_attn"  # also matches its LayerNorm


def to_streams(
    vanilla: PreTrainedModel,
    actual: int | Sequence[int],
    placeholder: int | Sequence[int],
    add_aggregated_attention: Sequence[str] = (),
) -> PreTrainedModel:
    """Convert a `learned` model, and prove the result.

    Args:
        vanilla: model with `symbol_encoding="learned"`; left as it is.
        actual: id of the symbol whose vector becomes the actual row; one for each symbol class.
        placeholder: id of the symbol whose vector becomes the placeholder row; likewise.
        add_aggregated_attention: `"encoder"`, `"decoder"` or both: blocks with the norm inside the
            branch and a zero output projection, an exact identity until they are trained.

    Raises:
        ConversionError: the model is not `learned`, a token does not fit, or the proof failed.
    """
    added = _added_blocks(vanilla.config, add_aggregated_attention)
    config = converted_config(vanilla.config, symbol_encoding="streams", **added)
    actual = one_per_class(vanilla.config, actual, "actual")
    placeholder = one_per_class(vanilla.config, placeholder, "placeholder")
    for first, second in zip(actual, placeholder, strict=True):
        if first == second:
            raise ConversionError(f"actual and placeholder are the same symbol, id {first}")
    weights = convert_weights(vanilla.state_dict(), config, actual, placeholder)
    converted, new = converted_model(vanilla, config, weights, [NEW_BLOCK])
    _silence_new_blocks(converted, new)
    prove(vanilla, converted, actual, placeholder)
    return converted


def convert_weights(
    state: dict[str, Tensor], config: AlphaConfig, actual: list[int], placeholder: list[int]
) -> dict[str, Tensor]:
    """Return the table of names: tensors keep names and values, but for the embedding.

    | converted | from the vanilla model |
    |---|---|
    | `model.shared.weight`, first rows | the base tokens' rows, in the order of their ids |
    | two rows for each class | the row of `actual`, the row of `placeholder` |
    | every other name | the same name |
    | `*.aggregated_attn*`, when added | new; output projection zero |
    """
    table = state[EMBEDDING]
    pairs = [row for pair in zip(actual, placeholder, strict=True) for row in pair]
    rows = table[[*config.vocabulary.base_ids, *pairs]]
    return {name: rows if name == EMBEDDING else value for name, value in state.items()}


def prove(
    vanilla: PreTrainedModel,
    converted: PreTrainedModel,
    actual: list[int],
    placeholder: list[int],
) -> None:
    """Check what both models must agree on, on random inputs, class by class.

    1. Without symbols in the input: the base columns are identical.
    2. With the actual symbol only: base columns and the symbol's column are identical.
    3. With actual and placeholder: the actual symbol's encoder stream is the vanilla encoder's
       output up to rounding (the converted model is without aggregated attention, or it is silent).

    Raises:
        ConversionError: with the check that failed and the largest difference.
    """
    models = [for_proof(model) for model in (vanilla, converted)]
    base = vanilla.config.vocabulary.base_ids
    _compare("no symbol", models, probe(vanilla.config, []), base)
    for first, second in zip(actual, placeholder, strict=True):
        _compare(f"only symbol {first}", models, probe(vanilla.config, [first]), [*base, first])
        if not vanilla.config.encoder_aggregated_attention:
            _compare_encoders(models, probe(vanilla.config, [first, second]))


@torch.no_grad()
def _compare(case: str, models: list, batch: dict[str, Tensor], columns: list[int]) -> None:
    one, two = (model(**batch).logits[..., columns] for model in models)
    if not torch.equal(one, two):
        gap = float((one - two).abs().max())
        raise ConversionError(f"proof failed with {case}: logits differ by up to {gap:.2e}")


@torch.no_grad()
def _compare_encoders(models: list, batch: dict[str, Tensor]) -> None:
    del batch["decoder_input_ids"]
    one, two = (model.get_encoder()(**batch).last_hidden_state for model in models)
    # The probe's first symbol is the actual one, so its stream comes first.
    gap = float((one - two[..., : one.shape[-1]]).abs().max())
    check_gap("with actual and placeholder, encoder states differ", gap, 1e-4)


def _added_blocks(config: AlphaConfig, add: Sequence[str]) -> dict[str, Any]:
    """Return the settings of aggregated attention that is added on these sides."""
    check_sides(add)
    for side in add:
        if getattr(config, f"{side}_aggregated_attention"):
            raise ConversionError(f"the {side} has aggregated attention already")
    if not add:
        return {}
    if config.encoder_aggregated_attention or config.decoder_aggregated_attention:
        raise ConversionError(
            "this model has aggregated attention in the form of Algorithm 3 on one side; the "
            "other side cannot get silent blocks, which have their norm elsewhere"
        )
    sides = {f"{side}_aggregated_attention": True for side in add}
    return {"aggregated_attention_norm": "pre", **sides}


@torch.no_grad()
def _silence_new_blocks(model: PreTrainedModel, new: Sequence[str]) -> None:
    for name in new:
        if ".out_proj." in name:
            model.get_parameter(name).zero_()


def convert_checkpoint(
    source: str | Path,
    out: str | Path,
    actual: str,
    placeholder: str,
    add_aggregated_attention: Sequence[str] = (),
) -> PreTrainedModel:
    """Convert a checkpoint folder; model, tokenizer and code are written to `out`.

    Args:
        actual: token of the symbol whose vector becomes the actual row; with several symbol
            classes one for each, separated by commas. `placeholder` likewise.

    Raises:
        ConversionError: as `to_streams`, or a token is not in the vocabulary; nothing is written.
        FileExistsError: `out` exists; it stays as it is.
    """

    def convert(vanilla: PreTrainedModel, tokenizer: AlphaTokenizer) -> PreTrainedModel:
        first = ids_of_tokens(tokenizer, actual, "actual")
        second = ids_of_tokens(tokenizer, placeholder, "placeholder")
        return to_streams(vanilla, first, second, add_aggregated_attention)

    return convert_folder(source, out, convert)


__all__ = ["convert_checkpoint", "convert_weights", "prove", "to_streams"]
