"""Vanilla to relational: names are told apart by where they stand, not by their vectors.

A `learned` model becomes a `relational` model with the same weights. The vectors of a class's
symbols turn into one, and all that is new has no effect until it is trained. What the two models
then have in common is checked on every conversion.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from hf_alpha.convert.shared import (
    EMBEDDING,
    ConversionError,
    check_gap,
    class_members,
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

NEW_PARTS = (".gates.", "symbol_memory.")
ROUNDING = 1e-4  # of logits, whose products have other shapes in the two models


def to_relational(
    vanilla: PreTrainedModel, actual: int | Sequence[int] | None = None
) -> PreTrainedModel:
    """Convert a `learned` model, and prove the result.

    Args:
        vanilla: model with `symbol_encoding="learned"`; left as it is.
        actual: id of the symbol whose vector becomes that of its class; one for each class. Without
            it, a class gets the mean of its symbols' vectors.

    Raises:
        ConversionError: the model is not `learned`, its attention takes no relations, a token does
            not fit, or the proof failed.
    """
    config = converted_config(vanilla.config, symbol_encoding="relational")
    sources = _sources(vanilla.config, actual)
    weights = convert_weights(vanilla.state_dict(), config, sources)
    converted, new = converted_model(vanilla, config, weights, NEW_PARTS)
    _silence(converted, new)
    prove(vanilla, converted, sources)
    return converted


def convert_weights(
    state: dict[str, Tensor], config: AlphaConfig, sources: list[list[int]]
) -> dict[str, Tensor]:
    """Return the table of names: tensors keep names and values, but for the embedding.

    | converted | from the vanilla model |
    |---|---|
    | `model.shared.weight`, first rows | the base tokens' rows, in the order of their ids |
    | one row for each class | from the rows of its `sources`, see `class_row` |
    | every other name | the same name |
    | `*.gates.*`, `model.symbol_memory.*` | new; 0 but for projections before norms of 0 |
    """
    table = state[EMBEDDING]
    shared = [class_row(table[ids], config.normalize_embeddings) for ids in sources]
    rows = torch.cat((table[config.vocabulary.base_ids], torch.stack(shared)))
    return state | {EMBEDDING: rows}


def class_row(rows_ND: Tensor, normalized: bool) -> Tensor:
    """Return one row for several, (D,): their mean as they are used; a single one stays.

    Args:
        normalized: rows are divided by their norms where they are used. The mean of such rows is
            short; it gets the rows' mean length back, which has no effect but that training turns
            it no faster than other rows.
    """
    if len(rows_ND) == 1 or not normalized:
        return rows_ND.mean(0)
    rows = rows_ND.float()
    row = F.normalize(F.normalize(rows, dim=-1).mean(0), dim=-1) * rows.norm(dim=-1).mean()
    return row.to(rows_ND.dtype)


@torch.no_grad()
def _silence(model: PreTrainedModel, new: Sequence[str]) -> None:
    """Set what is new to 0, but for projections: behind them is a norm whose weights are 0.

    With both at 0, neither would ever get a gradient.
    """
    for name in new:
        if not name.endswith("_proj.weight"):
            model.get_parameter(name).zero_()


@torch.no_grad()
def prove(vanilla: PreTrainedModel, converted: PreTrainedModel, sources: list[list[int]]) -> None:
    """Check what both models must agree on, on random inputs, and what the new one promises.

    1. Without symbols in the input.
    2. With a single symbol, for each class whose row is that of one symbol.
    3. With several symbols, once the vanilla model has the class's row for each symbol: what is new
       has no effect.
    4. More symbols in the vocabulary change no logit, and renaming moves columns only: identical.

    In 1 to 3, the last states of encoder and decoder are identical, and so are the logits of base
    tokens and of the input's symbols up to rounding: they are products with other numbers of rows,
    and symbols' rows are normalised a second time.

    Args:
        sources: the symbols that each class's row comes from.

    Raises:
        ConversionError: with the check that failed and the largest difference.
    """
    one, two = (for_proof(model) for model in (vanilla, converted))
    for model in (one, two):
        model.set_attn_implementation("eager")  # others add masks in an order of their own
    _compare("no symbol", one, two, [])
    for ids in sources:
        if len(ids) == 1:
            _compare(f"only symbol {ids[0]}", one, two, ids)
    several = [token for ids in class_members(vanilla.config) for token in ids[:2]][:8]
    new_rows = two.model.shared.weight[vanilla.config.vocabulary.num_base_tokens :]
    for ids, row in zip(class_members(vanilla.config), new_rows, strict=True):
        one.model.shared.weight[ids] = row
    _compare("the same row for all symbols", one, two, several)
    _check_promises(two, several)


def _compare(case: str, one: PreTrainedModel, two: PreTrainedModel, symbols: list[int]) -> None:
    batch = probe(one.config, symbols)
    old, new = (model(**batch, output_hidden_states=True) for model in (one, two))
    columns = [*one.config.vocabulary.base_ids, *symbols]
    for part, x, y, tolerance in (
        ("encoder states", old.encoder_last_hidden_state, new.encoder_last_hidden_state, 0.0),
        ("decoder states", old.decoder_hidden_states[-1], new.decoder_hidden_states[-1], 0.0),
        ("logits", old.logits[..., columns], new.logits[..., columns], ROUNDING),
    ):
        gap, largest = float((x - y).abs().max()), float(x.abs().max())
        check_gap(f"{case}: {part} differ", gap, tolerance * max(1.0, largest))


def _check_promises(model: PreTrainedModel, symbols: list[int]) -> None:
    """Extend the vocabulary, then rename every symbol; `model` is changed."""
    batch = probe(model.config, symbols)
    before, old = model(**batch).logits, model.config.vocab_size
    model.extend_symbols(dict.fromkeys(model.config.symbol_classes, 1))
    extended = model(**batch).logits
    if not torch.equal(extended[..., :old], before):
        raise ConversionError("proof failed: logits change with the size of the vocabulary")
    names = torch.arange(model.config.vocab_size)
    for ids in class_members(model.config):
        names[ids] = names[ids].roll(1)
    renamed = {key: names[batch[key]] for key in ("input_ids", "decoder_input_ids")}
    if not torch.equal(model(**batch | renamed).logits[..., names], extended):
        raise ConversionError("proof failed: renaming does more than move columns")


def _sources(config: AlphaConfig, actual: int | Sequence[int] | None) -> list[list[int]]:
    """Return the symbols that each class's row comes from: all, or the actual one."""
    members = class_members(config)
    if actual is None:
        return members
    actual_symbols = one_per_class(config, actual, "actual")
    for symbol, ids in zip(actual_symbols, members, strict=True):
        if config.symbol_renaming == "first_occurrence" and symbol != min(ids):
            raise ConversionError(
                f"actual: this model calls the first symbol of every input {min(ids)} "
                f"(symbol_renaming 'first_occurrence'): choose that one, not {symbol}"
            )
    return [[symbol] for symbol in actual_symbols]


def convert_checkpoint_to_relational(
    source: str | Path, out: str | Path, actual: str | None = None
) -> PreTrainedModel:
    """Convert a checkpoint folder; model, tokenizer and code are written to `out`.

    Args:
        actual: token of the symbol whose vector becomes that of its class; with several symbol
            classes one for each, separated by commas. Without it, the mean of the class.

    Raises:
        ConversionError: as `to_relational`, or a token is not in the vocabulary; nothing is
            written.
        FileExistsError: `out` exists; it stays as it is.
    """

    def convert(vanilla: PreTrainedModel, tokenizer: AlphaTokenizer) -> PreTrainedModel:
        ids = None if actual is None else ids_of_tokens(tokenizer, actual, "actual")
        return to_relational(vanilla, ids)

    return convert_folder(source, out, convert)


__all__ = [
    "class_row",
    "convert_checkpoint_to_relational",
    "convert_weights",
    "prove",
    "to_relational",
]
