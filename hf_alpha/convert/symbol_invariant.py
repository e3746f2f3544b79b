"""Vanilla to symbol-invariant (2601.23169, Section 5.8).

A `learned` model becomes a `streams` model with the same weights: the vector of one of its symbols
turns into the actual row, that of another into the placeholder row, and all the other symbols'
vectors are dropped. What the two then have in common is checked on every conversion (promise 5 of
docs/exactness.md). Aggregated attention can be added as blocks that do nothing at first.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.folders import new_folder
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig

EMBEDDING = "model.shared.weight"
NEW_BLOCK = ".aggregated_attn"  # also matches its LayerNorm


class ConversionError(ValueError):
    """A model that cannot be converted as asked, or a conversion that failed its proof."""


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
    config = _converted_config(vanilla.config, add_aggregated_attention)
    actual = _one_per_class(vanilla.config, actual, "actual")
    placeholder = _one_per_class(vanilla.config, placeholder, "placeholder")
    for first, second in zip(actual, placeholder, strict=True):
        if first == second:
            raise ConversionError(f"actual and placeholder are the same symbol, id {first}")
    converted = type(vanilla)(config)
    weights = convert_weights(vanilla.state_dict(), config, actual, placeholder)
    missing, unexpected = converted.load_state_dict(weights, strict=False)
    new = [name for name in missing if NEW_BLOCK not in name]
    if new or unexpected:
        raise ConversionError(f"weights do not fit: missing {new}, left over {unexpected}")
    _silence_new_blocks(converted, set(missing))
    converted.train(vanilla.training)
    prove(vanilla, converted, actual, placeholder)
    return converted


def convert_weights(
    state: dict[str, Tensor], config: AlphaConfig, actual: list[int], placeholder: list[int]
) -> dict[str, Tensor]:
    """The table of names: every tensor keeps its name and value, but for the embedding.

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
    models = [copy.deepcopy(model).eval().float().cpu() for model in (vanilla, converted)]
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
    if gap > 1e-4:
        raise ConversionError(
            f"proof failed with actual and placeholder: encoder states differ by up to {gap:.2e}"
        )


def probe(config: AlphaConfig, symbols: list[int], rows: int = 8, length: int = 12) -> dict:
    """Random inputs that hold exactly these symbols, in this order of first occurrence."""
    generator = torch.Generator().manual_seed(0)

    def draw(choices: list[int], *shape: int) -> Tensor:
        return torch.tensor(choices)[torch.randint(len(choices), shape, generator=generator)]

    special = (config.pad_token_id, config.decoder_start_token_id)
    tokens = [*(i for i in config.vocabulary.base_ids if i not in special), *symbols]
    ids, decoder_ids = draw(tokens, rows, length), draw(tokens, rows, 6)
    ids[:, : len(symbols)] = torch.tensor(symbols, dtype=torch.long)
    decoder_ids[:, 0] = config.decoder_start_token_id
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "tree_paths": torch.randint(0, 1 << 20, ids.shape, generator=generator),
        "decoder_input_ids": decoder_ids,
    }


def _converted_config(config: AlphaConfig, add: Sequence[str]) -> AlphaConfig:
    if config.symbol_encoding != "learned":
        raise ConversionError(
            f"only 'learned' models are converted; this one is {config.symbol_encoding!r} already"
        )
    converted = copy.deepcopy(config)
    converted.symbol_encoding = "streams"
    for side in add:
        if side not in ("encoder", "decoder"):
            raise ConversionError(
                f"aggregated attention is added to encoder or decoder, not {side!r}"
            )
        if getattr(config, f"{side}_aggregated_attention"):
            raise ConversionError(f"the {side} has aggregated attention already")
        setattr(converted, f"{side}_aggregated_attention", True)
    if add:
        if config.encoder_aggregated_attention or config.decoder_aggregated_attention:
            raise ConversionError(
                "this model has aggregated attention in the form of Algorithm 3 on one side; the "
                "other side cannot get silent blocks, which have their norm elsewhere"
            )
        converted.aggregated_attention_norm = "pre"
    return converted


def _one_per_class(config: AlphaConfig, ids: int | Sequence[int], role: str) -> list[int]:
    """Sort the ids by class and check that every class has one."""
    given = [ids] if isinstance(ids, int) else list(ids)
    found: dict[str, int] = {}
    for token in given:
        name = config.vocabulary.class_of(token)
        if name is None:
            raise ConversionError(f"{role}: id {token} is no symbol of this model")
        if name in found:
            raise ConversionError(f"{role}: two symbols for class {name!r}")
        found[name] = token
    if lacking := [name for name in config.symbol_classes if name not in found]:
        raise ConversionError(f"{role}: no symbol given for class {lacking[0]!r}")
    return [found[name] for name in config.symbol_ranges]


@torch.no_grad()
def _silence_new_blocks(model: PreTrainedModel, new: set[str]) -> None:
    for name, parameter in model.named_parameters():
        if name in new and ".out_proj." in name:
            parameter.zero_()


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
    with new_folder(Path(out)) as unfinished:
        return _convert(source, unfinished, actual, placeholder, add_aggregated_attention)


def _convert(
    source: str | Path, out: Path, actual: str, placeholder: str, added: Sequence[str]
) -> PreTrainedModel:
    vanilla, tokenizer = load_checkpoint(source)

    def ids(tokens: str, role: str) -> list[int]:
        for token in tokens.split(","):
            if token not in tokenizer.symbol_tokens:
                known = " ".join(tokenizer.symbol_tokens)
                raise ConversionError(f"{role}: {token!r} is no symbol; this model has {known}")
        return [tokenizer.convert_tokens_to_ids(token) for token in tokens.split(",")]

    converted = to_streams(vanilla, ids(actual, "actual"), ids(placeholder, "placeholder"), added)
    converted.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return converted


__all__ = [
    "ConversionError",
    "convert_checkpoint",
    "convert_weights",
    "probe",
    "prove",
    "to_streams",
]
