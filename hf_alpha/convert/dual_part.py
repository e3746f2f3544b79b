"""Vanilla to dual-part embeddings: a start for fine-tuning (2410.17161 begins from scratch).

A `learned` model becomes a `dual_part` model with the same weights but for its embedding: the last
dimensions of every row make room for the random parts. That changes what the model computes, so it
has to be trained on; what has to be right before is checked on every conversion.
"""

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
    probe,
)
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer


def to_dual_part(
    vanilla: PreTrainedModel,
    random_dim: int = 0,
    random_method: str = "hypercube_vertices",
    seed: int = 0,
) -> PreTrainedModel:
    """Convert a `learned` model, and prove that all that can arrive has arrived.

    Args:
        vanilla: model with `symbol_encoding="learned"`; left as it is.
        random_dim: width of the random part; by default as in [`AlphaConfig`].
        random_method: how random parts are drawn; `seed`: from what.

    Raises:
        ConversionError: the model is not `learned`, a setting does not fit, or the proof failed.
    """
    config = converted_config(
        vanilla.config,
        symbol_encoding="dual_part",
        random_dim=random_dim,
        random_method=random_method,
        symbol_seed=seed,
        # Without f_fn lengths mean something, and f_bn would lose them.
        normalize_parts=vanilla.config.normalize_embeddings,
    )
    weights = convert_weights(vanilla.state_dict(), config)
    converted, _ = converted_model(vanilla, config, weights, [])
    prove_start(vanilla, converted)
    return converted


def convert_weights(state: dict[str, Tensor], config: AlphaConfig) -> dict[str, Tensor]:
    """Return the table of names: tensors keep names and values, but for the embedding.

    | converted | from the vanilla model |
    |---|---|
    | `model.shared.weight`, first rows | the base tokens' rows without their last dimensions |
    | one row for each class | the mean of the class's rows, likewise; each of norm 1 before if rows are normalised |
    | `model.symbol_draws.*` | drawn; those of a vanilla model's own renaming are dropped |
    | every other name | the same name |
    """  # noqa: E501
    table = state[EMBEDDING]
    dtype, table = table.dtype, table.float()
    if config.normalize_embeddings:
        table = F.normalize(table, dim=-1)
    shared = [table[ids].mean(0, keepdim=True) for ids in class_members(config)]
    width = config.encoding(config).row_dim
    rows = torch.cat((table[config.vocabulary.base_ids], *shared))[:, :width]
    return state | {EMBEDDING: rows.to(dtype, copy=True)}


@torch.no_grad()
def prove_start(vanilla: PreTrainedModel, converted: PreTrainedModel) -> None:
    """Check what both models must agree on, on random inputs.

    1. With the vanilla model's table in place of its own, the converted model's logits are
       identical: every weight but the embedding has arrived.
    2. Rows of base tokens point where they did, in the dimensions that are left, and have nothing
       in those of the random part.

    Raises:
        ConversionError: with the check that failed and the largest difference.
    """
    one, two = (for_proof(model) for model in (vanilla, converted))
    config = two.config
    old, new = one.model.embedding_table(), two.model.embedding_table()
    base, width = config.vocabulary.base_ids, config.encoding(config).row_dim
    gap = float((_directions(old[base, :width]) - _directions(new[base, :width])).abs().max())
    rounding = max(1e-5, torch.finfo(vanilla.dtype).eps)
    if not gap <= rounding or new[base, width:].any():
        raise ConversionError(f"proof failed: rows of base tokens differ by up to {gap:.2e}")
    two.symbol_layer.table = lambda *_: old
    symbols = [i for i in range(config.vocab_size) if i not in set(base)]
    batch = probe(config, symbols[:4])
    gap = float((one(**batch).logits - two(**batch).logits).abs().max())
    check_gap("with the same embeddings, logits differ", gap)


def _directions(rows: Tensor) -> Tensor:
    return F.normalize(rows, dim=-1)


def convert_checkpoint_to_dual_part(
    source: str | Path,
    out: str | Path,
    random_dim: int = 0,
    random_method: str = "hypercube_vertices",
    seed: int = 0,
) -> PreTrainedModel:
    """Convert a checkpoint folder; model, tokenizer and code are written to `out`.

    Raises:
        ConversionError: as `to_dual_part`; nothing is written.
        FileExistsError: `out` exists; it stays as it is.
    """

    def convert(vanilla: PreTrainedModel, _: AlphaTokenizer) -> PreTrainedModel:
        return to_dual_part(vanilla, random_dim, random_method, seed)

    return convert_folder(source, out, convert)


__all__ = ["convert_checkpoint_to_dual_part", "convert_weights", "prove_start", "to_dual_part"]
