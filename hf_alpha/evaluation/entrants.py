"""Models by their names, ready to be measured by `compare`."""

from collections.abc import Mapping
from typing import Any

import torch

from hf_alpha.evaluation.compare import EvaluatedModel
from hf_alpha.evaluation.instructed import AskedModel, LocalModel
from hf_alpha.loading import ANSWERING, auto_class, load_checkpoint, load_config, load_host


def trained_model(name: str, model: str, device: torch.device) -> EvaluatedModel:
    """Load a model with symbols.

    Args:
        name: what its row is called.
        model: folder or Hub name.
        device: where it runs.

    Raises:
        ValueError: it has no symbols, or cannot be read.
    """
    pretrained, tokenizer = load_checkpoint(model)
    return EvaluatedModel(name, pretrained.to(device), tokenizer)


def asked_model(
    name: str, model: str, device: torch.device, generation: Mapping[str, Any], seed: int = 0
) -> AskedModel:
    """Load a model of Transformers, to ask it by a prompt.

    Args:
        name: what its row is called.
        model: folder or Hub name.
        device: where it runs.
        generation: arguments of `generate`.
        seed: of replies that are drawn.

    Raises:
        ValueError: it does not write answers, or cannot be read.
    """
    kind = auto_class(load_config(model))
    if kind not in ANSWERING:
        raise ValueError(f"{model} does not write answers: hf-alpha evaluate measures such models")
    host, tokenizer = load_host(model, kind)
    return AskedModel(name, LocalModel(host.to(device), tokenizer, generation, seed))


__all__ = ["asked_model", "trained_model"]
