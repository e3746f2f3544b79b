"""Conversions of `learned` models into other encodings, each with a proof by logits.

| to | the vectors of symbols |
|---|---|
| `streams` (2601.23169, Section 5.8) | that of one symbol turns into the actual row, that of another into the placeholder row |
| `relational` | turn into one for a class: names are told apart by where they stand |
| `dual_part` (2410.17161 begins from scratch) | turn into one for a class, and the last dimensions of all rows make room for random parts |

All other weights keep names and values. New parts do nothing until they are trained, but for random
parts, with which a model has to be trained on. What the two models have in common is checked on
every conversion (docs/promises.md).
"""  # noqa: E501

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from hf_alpha.convert.shared import (
    ConversionError,
    changed_config,
    check_fit,
    check_gap,
    check_learned,
    check_sides,
    class_members,
    for_proof,
    new_model,
    probe,
    reject,
)
from hf_alpha.generation import AnyTokenizer, configured_limit, fit_tokenizer, raise_limit
from hf_alpha.io.folders import new_folder
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.choices import check_choice
from hf_alpha.modeling.configuration_alpha import AlphaConfig

EMBEDDING = "model.shared.weight"
DRAWS = "symbol_draws"  # buffers, not weights: never taken over
NEW_BLOCK = ".aggregated_attn"  # also matches its LayerNorm
RELATIONS = (".gates.", "symbol_memory.")
ROUNDING = 1e-4  # of products that have other shapes in the two models


# -- streams ---------------------------------------------------------------------------------------


def to_streams(
    vanilla: PreTrainedModel,
    actual: int | Sequence[int],
    placeholder: int | Sequence[int],
    add_aggregated_attention: Sequence[str] = (),
) -> PreTrainedModel:
    """Convert a `learned` model into a `streams` model, and prove the result.

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
    config = _converted_config(vanilla.config, symbol_encoding="streams", **added)
    actual = _one_per_class(vanilla.config, actual, "actual")
    placeholder = _one_per_class(vanilla.config, placeholder, "placeholder")
    pairs = list(zip(actual, placeholder, strict=True))
    for first, second in pairs:
        reject(first == second, f"actual and placeholder are the same symbol, id {first}")
    table = vanilla.state_dict()[EMBEDDING]
    rows = table[[*config.vocabulary.base_ids, *(symbol for pair in pairs for symbol in pair)]]
    converted = _converted_model(
        vanilla, config, rows, [NEW_BLOCK], is_silent=lambda name: ".out_proj." in name
    )
    prove_streams(vanilla, converted, actual, placeholder)
    return converted


@torch.no_grad()
def prove_streams(
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
    one, two = (for_proof(model) for model in (vanilla, converted))
    config = vanilla.config
    for case, symbols in [("no symbol", []), *((f"only symbol {i}", [i]) for i in actual)]:
        batch, columns = probe(config, symbols), [*config.vocabulary.base_ids, *symbols]
        old, new = (model(**batch).logits[..., columns] for model in (one, two))
        _check_same(f"{case}: logits", old, new)
    if config.encoder_aggregated_attention:
        return
    for pair in zip(actual, placeholder, strict=True):
        batch = probe(config, list(pair))
        del batch["decoder_input_ids"]
        old, new = (model.get_encoder()(**batch).last_hidden_state for model in (one, two))
        # The probe's first symbol is the actual one, so its stream comes first.
        new = new[..., : old.shape[-1]]
        _check_same("actual and placeholder: encoder states", old, new, ROUNDING)


def _added_blocks(config: AlphaConfig, add: Sequence[str]) -> dict[str, Any]:
    """Return the settings of aggregated attention that is added on these sides."""
    check_sides(add)
    for side in add:
        has_blocks = getattr(config, f"{side}_aggregated_attention")
        reject(has_blocks, f"the {side} has aggregated attention already")
    if not add:
        return {}
    reject(
        config.encoder_aggregated_attention or config.decoder_aggregated_attention,
        "this model has aggregated attention in the form of Algorithm 3 on one side; the other "
        "side cannot get silent blocks, which have their norm elsewhere",
    )
    sides = {f"{side}_aggregated_attention": True for side in add}
    return {"aggregated_attention_norm": "pre", **sides}


# -- relational ------------------------------------------------------------------------------------


def to_relational(
    vanilla: PreTrainedModel, actual: int | Sequence[int] | None = None
) -> PreTrainedModel:
    """Convert a `learned` model into a `relational` model, and prove the result.

    Args:
        vanilla: model with `symbol_encoding="learned"`; left as it is.
        actual: id of the symbol whose vector becomes that of its class; one for each class. Without
            it, a class gets the mean of its symbols' vectors.

    Raises:
        ConversionError: the model is not `learned`, its attention takes no relations, a token does
            not fit, or the proof failed.
    """
    config = _converted_config(vanilla.config, symbol_encoding="relational")
    sources = _sources(vanilla.config, actual)
    table = vanilla.state_dict()[EMBEDDING]
    shared = [class_row(table[ids], config.normalize_embeddings) for ids in sources]
    rows = torch.cat((table[config.vocabulary.base_ids], torch.stack(shared)))
    # Behind projections is a norm whose weights are 0: with both at 0, neither would ever get a
    # gradient.
    converted = _converted_model(
        vanilla, config, rows, RELATIONS, is_silent=lambda name: not name.endswith("_proj.weight")
    )
    prove_relational(vanilla, converted, sources)
    return converted


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
def prove_relational(
    vanilla: PreTrainedModel, converted: PreTrainedModel, sources: list[list[int]]
) -> None:
    """Check what both models must agree on, on random inputs.

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
    _check_same(
        f"{case}: encoder states", old.encoder_last_hidden_state, new.encoder_last_hidden_state
    )
    _check_same(
        f"{case}: decoder states", old.decoder_hidden_states[-1], new.decoder_hidden_states[-1]
    )
    columns = [*one.config.vocabulary.base_ids, *symbols]
    old_logits, new_logits = old.logits[..., columns], new.logits[..., columns]
    tolerance = ROUNDING * max(1.0, float(old_logits.abs().max()))
    _check_same(f"{case}: logits", old_logits, new_logits, tolerance)


def _check_promises(model: PreTrainedModel, symbols: list[int]) -> None:
    """Extend the vocabulary, then rename every symbol; `model` is changed."""
    batch = probe(model.config, symbols)
    before, old = model(**batch).logits, model.config.vocab_size
    model.extend_symbols(dict.fromkeys(model.config.symbol_classes, 1))
    extended = model(**batch).logits
    same = torch.equal(extended[..., :old], before)
    reject(not same, "proof failed: logits change with the size of the vocabulary")
    names = torch.arange(model.config.vocab_size)
    for ids in class_members(model.config):
        names[ids] = names[ids].roll(1)
    renamed = {key: names[batch[key]] for key in ("input_ids", "decoder_input_ids")}
    same = torch.equal(model(**batch | renamed).logits[..., names], extended)
    reject(not same, "proof failed: renaming does more than move columns")


def _sources(config: AlphaConfig, actual: int | Sequence[int] | None) -> list[list[int]]:
    """Return the symbols that each class's row comes from: all, or the actual one."""
    members = class_members(config)
    if actual is None:
        return members
    actual_symbols = _one_per_class(config, actual, "actual")
    for symbol, ids in zip(actual_symbols, members, strict=True):
        reject(
            config.symbol_renaming == "first_occurrence" and symbol != min(ids),
            f"actual: this model calls the first symbol of every input {min(ids)} "
            f"(symbol_renaming 'first_occurrence'): choose that one, not {symbol}",
        )
    return [[symbol] for symbol in actual_symbols]


# -- dual part -------------------------------------------------------------------------------------


def to_dual_part(
    vanilla: PreTrainedModel,
    random_dim: int = 0,
    random_method: str = "hypercube_vertices",
    seed: int = 0,
) -> PreTrainedModel:
    """Convert a `learned` model into a `dual_part` model, and prove that what can arrive has.

    Args:
        vanilla: model with `symbol_encoding="learned"`; left as it is.
        random_dim: width of the random part; by default as in [`AlphaConfig`].
        random_method: how random parts are drawn; `seed`: from what.

    Raises:
        ConversionError: the model is not `learned`, a setting does not fit, or the proof failed.
    """
    config = _converted_config(
        vanilla.config,
        symbol_encoding="dual_part",
        random_dim=random_dim,
        random_method=random_method,
        symbol_seed=seed,
        # Without f_fn lengths mean something, and f_bn would lose them.
        normalize_parts=vanilla.config.normalize_embeddings,
    )
    table = vanilla.state_dict()[EMBEDDING].float()
    if config.normalize_embeddings:
        table = F.normalize(table, dim=-1)
    shared = [table[ids].mean(0, keepdim=True) for ids in class_members(config)]
    width = config.encoding(config).shape[1]
    rows = torch.cat((table[config.vocabulary.base_ids], *shared))[:, :width]
    converted = _converted_model(vanilla, config, rows.to(vanilla.dtype, copy=True))
    prove_dual_part(vanilla, converted)
    return converted


@torch.no_grad()
def prove_dual_part(vanilla: PreTrainedModel, converted: PreTrainedModel) -> None:
    """Check what both models must agree on, on random inputs.

    1. Rows of base tokens point where they did, in the dimensions that are left, and have nothing
       in those of the random part.
    2. With the vanilla model's table in place of its own, the converted model's logits are
       identical: every weight but the embedding has arrived.

    Raises:
        ConversionError: with the check that failed and the largest difference.
    """
    one, two = (for_proof(model) for model in (vanilla, converted))
    config = two.config
    old, new = one.model.embedding_table(), two.model.embedding_table()
    base, width = config.vocabulary.base_ids, config.encoding(config).shape[1]
    before, after = (F.normalize(table[base, :width], dim=-1) for table in (old, new))
    _check_same("rows of base tokens", before, after, max(1e-5, torch.finfo(vanilla.dtype).eps))
    _check_same("random parts of base tokens and 0", new[base, width:], new.new_zeros(()))
    two.symbol_layer.table = lambda *_: old
    batch = probe(config, [i for i in range(config.vocab_size) if i not in set(base)][:4])
    _check_same("with the same embeddings, logits", one(**batch).logits, two(**batch).logits)


# -- what they share -------------------------------------------------------------------------------


def _converted_config(config: AlphaConfig, **changes: Any) -> AlphaConfig:
    """Return the vanilla model's configuration with changes."""
    check_learned(config)
    return changed_config(config, **changes)


def _converted_model(
    vanilla: PreTrainedModel,
    config: AlphaConfig,
    rows: Tensor,
    new_parts: Sequence[str] = (),
    is_silent: Callable[[str], bool] = lambda name: False,
) -> PreTrainedModel:
    """Return a model with the same weights, but for the rows of its embedding.

    What is new keeps its initialisation, by a fixed seed: the same conversion gives the same model.

    Args:
        rows: those of base tokens, in the order of their ids, then those of each class.
        new_parts: parts of names, of which every tensor that is new has one.
        is_silent: tells by its name which new tensor is set to 0.

    Raises:
        ConversionError: weights are left over, or others than the new ones are missing.
    """
    converted = new_model(vanilla, config)
    weights = vanilla.state_dict() | {EMBEDDING: rows}
    weights = {name: value for name, value in weights.items() if DRAWS not in name}
    missing, unused_names = converted.load_state_dict(weights, strict=False)
    expected = (DRAWS, *new_parts)
    check_fit([n for n in missing if not any(part in n for part in expected)], unused_names)
    with torch.no_grad():
        for name in missing:
            if DRAWS not in name and is_silent(name):
                converted.get_parameter(name).zero_()
    raise_limit(converted, configured_limit(vanilla))
    return converted.train(vanilla.training)


def _check_same(what: str, one: Tensor, two: Tensor, tolerance: float = 0.0) -> None:
    check_gap(f"{what} differ", float((one - two).abs().max()), tolerance)


def _one_per_class(config: AlphaConfig, ids: int | Sequence[int], role: str) -> list[int]:
    """Sort the ids by class and check that every class has one."""
    token_of: dict[str, int] = {}
    for token in [ids] if isinstance(ids, int) else ids:
        name = config.vocabulary.class_of(token)
        if name is None:
            raise ConversionError(f"{role}: id {token} is no symbol of this model")
        reject(name in token_of, f"{role}: two symbols for class {name!r}")
        token_of[name] = token
    for name in config.symbol_classes:
        reject(name not in token_of, f"{role}: no symbol given for class {name!r}")
    return [token_of[name] for name in config.symbol_ranges]


# -- folders ---------------------------------------------------------------------------------------

CONVERSIONS: dict[str, Callable[..., PreTrainedModel]] = {
    "streams": to_streams,
    "relational": to_relational,
    "dual_part": to_dual_part,
}


def convert_checkpoint(
    source: str | Path, out: str | Path, encoding: str = "streams", **settings: Any
) -> PreTrainedModel:
    """Convert a checkpoint folder; model, tokenizer and code are written to `out`.

    Args:
        encoding: one of `CONVERSIONS`.
        settings: of `to_streams`, `to_relational` or `to_dual_part`. Symbols are given as tokens or
            by their names, with several symbol classes one for each, separated by commas.

    Raises:
        ConversionError: as the conversion, or a symbol is not in the vocabulary; nothing is
            written.
        FileExistsError: `out` exists; it stays as it is.
    """
    check_choice("encoding", encoding, tuple(CONVERSIONS))
    with new_folder(Path(out)) as unfinished:
        vanilla, tokenizer = load_checkpoint(source)
        message = "holds a model of Transformers with symbols: convert it by convert_host"
        reject(hasattr(vanilla.config, "backbone_config"), f"{source} {message}")
        check_learned(vanilla.config)
        for role in ("actual", "placeholder"):
            if (tokens := settings.get(role)) is not None:
                settings[role] = _ids_of(tokenizer, tokens, role)
        converted = CONVERSIONS[encoding](vanilla, **settings)
        fit_tokenizer(tokenizer, converted)
        converted.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    return converted


def _ids_of(tokenizer: AnyTokenizer, symbols: str, role: str) -> list[int]:
    """Return the ids of symbols given as tokens or by their names, separated by commas."""
    ranges = tokenizer.symbol_ranges.values()
    ids = [i for pairs in ranges for pair in pairs for i in range(*pair)]
    by_token = dict(zip(tokenizer.convert_ids_to_tokens(ids), ids, strict=True))
    names = getattr(tokenizer, "symbol_names", {})
    by_name = {names.get(token, token): index for token, index in by_token.items()}
    every = {**by_token, **by_name}
    for symbol in symbols.split(","):
        message = f"{symbol!r} is no symbol; this model has {' '.join(map(str, by_name))}"
        reject(symbol not in every, f"{role}: {message}")
    return [every[symbol] for symbol in symbols.split(",")]
