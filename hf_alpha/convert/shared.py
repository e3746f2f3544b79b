"""What all conversions of a `learned` model share: settings, weights, inputs of proofs, folders."""

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.folders import new_folder
from hf_alpha.generation import fit_tokenizer, own_limit, raise_limit
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer

EMBEDDING = "model.shared.weight"
DRAWS = "symbol_draws"  # buffers, not weights: never taken over


class ConversionError(ValueError):
    """A model that cannot be converted as asked, or a conversion that failed its proof."""


# -- settings and weights -------------------------------------------------------------------------


def check_learned(config: Any) -> None:
    """Raise a ConversionError for a model that is converted already."""
    if config.symbol_encoding != "learned":
        raise ConversionError(
            f"only 'learned' models are converted; this one is {config.symbol_encoding!r} already"
        )


def check_sides(sides: Iterable[str]) -> None:
    """Raise a ConversionError for a side that cannot get aggregated attention."""
    for side in sides:
        if side not in ("encoder", "decoder"):
            raise ConversionError(
                f"aggregated attention is added to encoder or decoder, not {side!r}"
            )


def check_fit(missing_names: Sequence[str], unused_names: Sequence[str]) -> None:
    """Raise a ConversionError unless all weights are there and all are used."""
    if missing_names or unused_names:
        raise ConversionError(
            f"weights do not fit: missing {missing_names}, left over {unused_names}"
        )


def converted_config(config: AlphaConfig, **changes: Any) -> AlphaConfig:
    """Return the vanilla model's configuration with changes.

    Raises:
        ConversionError: the model is not `learned`, or a setting does not fit.
    """
    check_learned(config)
    return changed_config(config, **changes)


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


def converted_model(
    vanilla: PreTrainedModel, config: AlphaConfig, weights: dict[str, Tensor], new: Sequence[str]
) -> tuple[PreTrainedModel, list[str]]:
    """Return a model with these weights, and the names of the tensors that they lack.

    Those keep their initialisation, by a fixed seed: the same conversion gives the same model.

    Args:
        new: parts of the names of which every lacking tensor has one.

    Raises:
        ConversionError: weights are left over, or others than the new ones are missing.
    """
    converted = new_model(vanilla, config)
    weights = {name: value for name, value in weights.items() if DRAWS not in name}
    missing, unused_names = converted.load_state_dict(weights, strict=False)
    missing_names = [name for name in missing if not any(part in name for part in (DRAWS, *new))]
    check_fit(missing_names, unused_names)
    raise_limit(converted, own_limit(vanilla))
    return converted.train(vanilla.training), missing


# -- symbols --------------------------------------------------------------------------------------


def class_members(config: AlphaConfig) -> list[list[int]]:
    """Return the ids of each class's symbols, classes in the order of their rows."""
    return [
        [token for start, stop in ranges for token in range(start, stop)]
        for ranges in config.symbol_ranges.values()
    ]


def one_per_class(config: AlphaConfig, ids: int | Sequence[int], role: str) -> list[int]:
    """Sort the ids by class and check that every class has one."""
    tokens = [ids] if isinstance(ids, int) else list(ids)
    token_of: dict[str, int] = {}
    for token in tokens:
        name = config.vocabulary.class_of(token)
        if name is None:
            raise ConversionError(f"{role}: id {token} is no symbol of this model")
        if name in token_of:
            raise ConversionError(f"{role}: two symbols for class {name!r}")
        token_of[name] = token
    if missing_classes := [name for name in config.symbol_classes if name not in token_of]:
        raise ConversionError(f"{role}: no symbol given for class {missing_classes[0]!r}")
    return [token_of[name] for name in config.symbol_ranges]


def ids_of_tokens(tokenizer: AnyTokenizer, tokens: str, role: str) -> list[int]:
    """Return the ids of symbols given as tokens or by their names, separated by commas."""
    symbols = [
        i for pairs in tokenizer.symbol_ranges.values() for pair in pairs for i in range(*pair)
    ]
    ids = dict(zip(tokenizer.convert_ids_to_tokens(symbols), symbols, strict=True))
    symbol_names = getattr(tokenizer, "symbol_names", {})
    names = {symbol_names.get(token, token): index for token, index in ids.items()}
    for token in tokens.split(","):
        if token not in names and token not in ids:
            raise ConversionError(
                f"{role}: {token!r} is no symbol; this model has {' '.join(map(str, names))}"
            )
    return [{**ids, **names}[token] for token in tokens.split(",")]


# -- proofs ---------------------------------------------------------------------------------------


def for_proof(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy in evaluation mode, in float32 on the CPU."""
    return copy.deepcopy(model).eval().float().cpu()


def probe(config: AlphaConfig, symbols: list[int], rows: int = 8, length: int = 12) -> dict:
    """Return random inputs that hold exactly these symbols, in this order of occurrence."""
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


def check_gap(what: str, gap: float, tolerance: float = 0.0) -> None:
    """Raise a ConversionError for a gap beyond the tolerance; `what` differs says where."""
    if not gap <= tolerance:  # NaN is no agreement
        raise ConversionError(f"proof failed: {what} by up to {gap:.2e}")


# -- folders --------------------------------------------------------------------------------------


def convert_folder(
    source: str | Path,
    out: str | Path,
    convert: Callable[[PreTrainedModel, AnyTokenizer], PreTrainedModel],
) -> PreTrainedModel:
    """Convert a checkpoint folder; model, tokenizer and code are written to `out`.

    Raises:
        ConversionError: as `convert`; nothing is written.
        FileExistsError: `out` exists; it stays as it is.
    """
    with new_folder(Path(out)) as unfinished:
        vanilla, tokenizer = load_checkpoint(source)
        if hasattr(vanilla.config, "backbone_config"):
            raise ConversionError(
                f"{source} holds a model of Transformers with symbols: convert it by convert_host"
            )
        check_learned(vanilla.config)
        converted = convert(vanilla, tokenizer)
        fit_tokenizer(tokenizer, converted)
        converted.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    return converted


__all__ = [
    "EMBEDDING",
    "ConversionError",
    "changed_config",
    "class_members",
    "convert_folder",
    "converted_config",
    "converted_model",
    "for_proof",
    "ids_of_tokens",
    "new_model",
    "one_per_class",
    "probe",
]
