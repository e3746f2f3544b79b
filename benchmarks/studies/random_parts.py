"""Random parts of a `dual_part` model: which draw to use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional as F
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from hf_alpha.data.collate import AlphaCollator
from hf_alpha.generation import AnyTokenizer, evaluation_mode
from hf_alpha.modeling.choices import refuse

TEN = tuple(range(10))
Row = Mapping[str, Any]


def _batches(
    model: PreTrainedModel, tokenizer: AnyTokenizer, rows: Iterable[Row], batch_size: int
) -> list[dict[str, torch.Tensor]]:
    encoded = [
        tokenizer.encode_pair(row["problem"], row["answer"])
        for row in rows
        if row.get("answer") is not None
    ]
    if not encoded:
        raise ValueError("the loss needs labels: no row has an answer")
    encoded.sort(key=lambda features: (len(features["stream_ids"]), len(features["input_ids"])))
    collate = AlphaCollator(tokenizer, for_decoder=not model.config.is_encoder_decoder)
    return [
        collate(encoded[start : start + batch_size]) for start in range(0, len(encoded), batch_size)
    ]


def _loss(model: PreTrainedModel, batches: Sequence[dict[str, torch.Tensor]]) -> float:
    total, count = 0.0, 0
    for batch in batches:
        batch = {name: value.to(model.device) for name, value in batch.items()}
        logits, labels = model(**batch).logits.float(), batch["labels"]
        if not model.config.is_encoder_decoder:  # its labels are those of the next position
            logits, labels = logits[:, :-1], labels[:, 1:]
        total += float(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum"))
        count += int((labels != -100).sum())
    return total / count


def median_seed(losses: Mapping[int, float]) -> int:
    """Return the seed of median loss (2410.17161, Section 5.1.3); of two the larger loss's."""
    return sorted(losses, key=lambda seed: (losses[seed], seed))[len(losses) // 2]


def draw_losses(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    rows: Iterable[Row],
    *,
    seeds: Sequence[int] = TEN,
    batch_size: int = 64,
    progress: bool = True,
) -> dict[int, float]:
    """Return the loss of each draw; the model keeps its own.

    A loss is the mean cross-entropy of the answers' tokens, each counted once. Rows without an
    answer are passed over.

    Args:
        rows: validation data, with `problem` and `answer`: not what is tested on.
        seeds: of the draws; the paper takes ten.

    Raises:
        ValueError: the model has no random parts, no row has an answer, or seeds do not differ.
    """
    differ = len(set(seeds)) == len(seeds) > 0
    refuse(not differ, f"seeds of draws must be given and differ, not {list(seeds)}")
    losses = {}
    with other_draws(model), evaluation_mode(model), torch.inference_mode():
        batches = _batches(model, tokenizer, rows, batch_size)
        for seed in tqdm(seeds, desc="draws", disable=not progress):
            model.redraw_symbols(seed)
            losses[seed] = _loss(model, batches)
    return losses


@contextmanager
def other_draws(model: PreTrainedModel) -> Iterator[None]:
    """Let a model be redrawn meanwhile, and give it its own random parts back.

    Raises:
        ValueError: the model has no random parts.
    """
    seed = model.config.symbol_seed
    draws = model.symbol_layer.draws
    if draws is None or not draws.has_parts:
        model.redraw_symbols(seed)  # says what is wrong
        raise AssertionError
    parts = draws.random_parts
    try:
        yield
    finally:
        model.redraw_symbols(seed)
        draws.random_parts = parts
