"""Models by their names, ready to be measured by `compare`."""

from typing import Any

import torch

from hf_alpha.evaluation.compare import EvaluatedModel
from hf_alpha.evaluation.hosts import HostModel
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


def answering_model(name: str, model: str, device: torch.device) -> EvaluatedModel | HostModel:
    """Load a model that answers texts: one with symbols, or one of Transformers as it is.

    `trained_model` describes the arguments.

    Raises:
        ValueError: it does not write answers, or cannot be read.
    """
    if has_symbols(model):
        return trained_model(name, model, device)
    host, tokenizer = load_host(model, _answering(model))
    return HostModel(name, host.to(device), tokenizer)


def has_symbols(model: str) -> bool:
    """Whether a model, in a folder or on the Hub, has symbols."""
    return hasattr(load_config(model), "symbol_classes")


def _answering(model: str) -> Any:
    """Return the Auto class of a model that writes answers.

    Raises:
        ValueError: it does not.
    """
    kind = auto_class(load_config(model))
    if kind not in ANSWERING:
        raise ValueError(f"{model} does not write answers: hf-alpha evaluate measures such models")
    return kind


__all__ = ["answering_model", "has_symbols", "trained_model"]
