"""What adapters of PEFT have to train and save beside their own weights: what symbols add."""

from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha.modeling.modeling_retrofit import RetrofitModel
from hf_alpha.modeling.text_pieces import JOIN


def adapter_settings(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None
) -> dict[str, Any]:
    """Return settings with which an adapter trains and saves what symbols add to a model.

        LoraConfig(task_type="CAUSAL_LM", target_modules=[...], **adapter_settings(model))

    These are gates, pointer and memory of relations, blocks of aggregated attention, and the rows
    that symbols have in the tables of tokens. All else is up to the adapter.

    Args:
        tokenizer: of the model; with it, the row of the token between a name and what it touches is
            trained too, which a conversion adds.

    Returns:
        `modules_to_save` and `trainable_token_indices`, each left out if it is empty.

    Raises:
        ValueError: some tables of tokens are one and others are not, so that PEFT would train rows
            of one table apart from each other.

    Examples:
        >>> list(adapter_settings(model))  # LoraConfig(..., **adapter_settings(model))
        ['modules_to_save', 'trainable_token_indices']
    """
    parts: list[str] = []
    for name, module in model.named_modules():
        own = getattr(module, "of_symbols", False)
        if own and not any(name.startswith(f"{part}.") for part in parts):
            parts.append(name)
    rows = _symbol_rows(model, tokenizer)
    settings = {
        "modules_to_save": parts,
        "trainable_token_indices": {table: rows for table in _tables(model) if rows},
    }
    return {name: value for name, value in settings.items() if value}


def _symbol_rows(model: PreTrainedModel, tokenizer: Any) -> list[int]:
    """Return the rows of symbols in the tables of tokens, and that of `<join>`."""
    config = model.config
    per_class, vocabulary = config.encoding.rows_per_class, config.vocabulary
    ids = vocabulary.symbol_ids(torch.arange(vocabulary.num_symbols))
    if tokenizer is not None and JOIN in tokenizer.get_vocab():
        ids = torch.cat((ids, torch.tensor([tokenizer.convert_tokens_to_ids(JOIN)])))
    if per_class is None:
        return ids.tolist()
    if vocabulary.class_rows is not None:
        shared = torch.tensor([row for rows in vocabulary.class_rows.values() for row in rows])
        return torch.cat((shared, ids[vocabulary.num_symbols :])).unique().tolist()
    rows = [vocabulary.rows(ids, per_class, nth) for nth in range(per_class)]
    return torch.cat(rows).unique().tolist()


def _tables(model: PreTrainedModel) -> list[str]:
    """Return the names of the tables whose rows are trained; PEFT finds those that are the same."""
    stacks = [model.stack(side) for side in model.sides] if isinstance(model, RetrofitModel) else []
    parts = [part.get_input_embeddings() for part in (model, *stacks)]
    tables = dict.fromkeys(part for part in (*parts, model.get_output_embeddings()) if part)
    names = {module: name for name, module in model.named_modules()}
    num_weights = len({id(table.weight) for table in tables})
    if num_weights == 1:
        return [names[parts[0]]]
    if num_weights == len(tables):
        return [names[table] for table in tables]
    listed = ", ".join(names[table] for table in tables)
    raise ValueError(
        f"of the tables of tokens {listed}, some are one and others are not, and PEFT would train "
        "rows of one table apart from each other: train whole tables, modules_to_save"
    )
