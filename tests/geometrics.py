"""Small geometric models and batches with segments, for tests."""

from typing import Any

import torch
from promises import placing
from transformers import PreTrainedModel

from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.modeling_geometric import GeometricForMaskedLM

LABELS = ["compound", "date", "name"]
SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "initializer_range": 0.3,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "max_distance": 4,
    "segment_labels": LABELS,
}
FORMS = {
    "graph": {"relation_attention": "graph"},
    "shared graph": {"relation_attention": "graph", "share_relations": True},
    "rotary": {"relation_attention": "two_layer_rotary"},
    "gated graph": {"relation_attention": "graph", "gated": True, "absolute_positions": True},
    "gated rotary": {
        "relation_attention": "two_layer_rotary", "gated": True, "absolute_positions": True,
    },
}  # fmt: skip


def small_config(**settings: Any) -> GeometricConfig:
    return GeometricConfig(**{**SMALL, **settings})


@placing
def small_model(
    model_class: type[PreTrainedModel] = GeometricForMaskedLM, seed: int = 0, **settings: Any
) -> Any:
    """A model in evaluation mode whose gates, if it has some, are open by different shares."""
    torch.manual_seed(seed)
    model = model_class(small_config(**settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.uniform_(-1.0, 1.5)
    return model


@placing
def batch(rows: int = 3, length: int = 9, segments: int = 4, seed: int = 0) -> dict[str, Any]:
    """Random tokens and segments; the last segment of all rows but the first is padding."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, SMALL["vocab_size"], (rows, length), generator=generator)
    places = torch.randint(length, (2, rows, segments), generator=generator).sort(0).values
    kinds = torch.randint(1, 1 + len(LABELS), (rows, segments), generator=generator)
    found = {"segment_ids": kinds, "segment_starts": places[0], "segment_ends": places[1]}
    for tensor in found.values():
        tensor[1:, -1:] = 0
    types = (torch.arange(length) > length // 2).long().expand(rows, -1)
    return {"input_ids": ids, "token_type_ids": types, **found}
