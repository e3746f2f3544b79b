"""Loading a checkpoint: a model and the tokenizer that belongs to it, both as they were saved."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from hf_alpha.auto import SYMBOL_MODEL_TYPES
from hf_alpha.folders import checkpoint_place, read_json

WEIGHTS = "model.safetensors"
ANSWERING = (AutoModelForSeq2SeqLM, AutoModelForCausalLM)
"""The Auto classes of models that write answers."""


class CheckpointError(ValueError):
    """A checkpoint that is damaged; the message names the file, and the tensor if it is one."""


def load_checkpoint(path: str | Path, answers: bool = True) -> tuple[PreTrainedModel, Any]:
    """Load model and tokenizer from a folder or from the Hub, and check that they are whole.

    The one way in which the tools load a model: configuration, tokenizer and weights are checked,
    so that nothing is ever replaced by random numbers.

    Args:
        path: folder or Hub name.
        answers: only models that answer with text and have symbols will do.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read, or weights are missing, left over, of another shape
            or not finite.
        ValueError: the model is of another kind, or model and tokenizer disagree.
    """
    config, tokenizer = load_parts(path, answers)
    where = str(Path(path).expanduser())
    with _part(where, WEIGHTS):
        model, report = auto_class(config).from_pretrained(
            where, config=config, output_loading_info=True, ignore_mismatched_sizes=True
        )
    _check_weights(model, report, f"{where}/{WEIGHTS}")
    return model, tokenizer


def load_parts(path: str | Path, answers: bool = True) -> tuple[PreTrainedConfig, Any]:
    """Load configuration and tokenizer of a checkpoint, and check that they belong together.

    `load_checkpoint` describes the arguments.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read.
        ValueError: the model is of another kind, or model and tokenizer disagree.
    """
    config = load_config(path)
    where = str(Path(path).expanduser())
    if auto_class(config) not in ANSWERING:
        if answers:
            raise ValueError(
                f"{where!r} holds a {config.architectures[0]}, which does not answer with text: "
                "hf-alpha evaluate takes it if its recipe.yaml lies beside it"
            )
        if not getattr(config, "symbol_classes", None):
            tokenizer = _load_tokenizer(where)
            _check_size(config, tokenizer, where)
            check_segments(config, tokenizer, where)
            return config, tokenizer
    if not hasattr(config, "symbol_classes"):
        way = (
            f"; hf-alpha convert {where} OUT gives it some"
            if config.is_encoder_decoder
            else "; hf-alpha evaluate --few-shot asks it by a prompt"
        )
        raise ValueError(
            f"{where!r} holds a {config.model_type!r} model, not one with symbols (known: "
            f"{', '.join(SYMBOL_MODEL_TYPES)}){way}"
        )
    tokenizer = _load_tokenizer(where)
    # Before there are weights: for a wrong vocabulary there may be no room.
    check_agreement(config, tokenizer, where)
    return config, tokenizer


def load_config(path: str | Path) -> PreTrainedConfig:
    """Load the configuration of any model of Transformers.

    Raises:
        FileNotFoundError: there is no such folder or model, or no `config.json`.
        CheckpointError: it cannot be read.
    """
    where = checkpoint_place(path)
    with _part(where, "config.json"):
        return AutoConfig.from_pretrained(where)


def load_host(path: str | Path, auto: Any = AutoModelForSeq2SeqLM) -> tuple[PreTrainedModel, Any]:
    """Load a model of Transformers without symbols, with its own tokenizer.

    Weights that the model does not use are left out, as Transformers does it.

    Args:
        path: folder or Hub name.
        auto: the Auto class of the model, by default that of encoder-decoders.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read, or weights are missing, of another shape or not
            finite.
    """
    where = str(Path(path).expanduser())
    tokenizer = _load_tokenizer(where)
    with _part(where, WEIGHTS):
        model, report = auto.from_pretrained(
            where, output_loading_info=True, ignore_mismatched_sizes=True
        )
    _check_weights(model, {**report, "unexpected_keys": []}, f"{where}/{WEIGHTS}")
    return model, tokenizer


def _load_tokenizer(where: str) -> Any:
    if (file := Path(where) / "tokenizer_config.json").is_file():
        read_json(file)  # names the file if it is damaged
    with _part(where, "tokenizer"):
        return AutoTokenizer.from_pretrained(where)


def load_for(
    path: str | Path, auto: Any, settings: Mapping[str, Any], wanted: str | None = None
) -> tuple[Any, Any, list]:
    """Load a model to train for something, with a new head where the checkpoint has another.

    A head for other labels is another one, even if there are as many.

    Args:
        path: folder or Hub name.
        auto: the Auto class that the model shall be of.
        settings: fields of its configuration that change, such as its labels (`label2id`).
        wanted: what an error says in place of the name of `auto`.

    Returns:
        The model, its tokenizer, and the names of the weights that are new.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read, or weights of the body are missing, of another
            shape or not finite.
        ValueError: `auto` knows no such model.
    """
    config, where = load_config(path), str(Path(path).expanduser())
    if type(config) not in auto._model_mapping:
        raise ValueError(
            f"{where!r} holds a {config.model_type!r} model, not one of {wanted or auto.__name__}"
        )
    tokenizer = _load_tokenizer(where)
    if getattr(config, "symbol_classes", None):
        check_agreement(config, tokenizer, where)
    _check_size(config, tokenizer, where)
    relabelled = "label2id" in settings and settings["label2id"] != config.label2id
    for name, value in settings.items():
        setattr(config, name, value)
    with _part(where, WEIGHTS):
        model, report = auto.from_pretrained(
            where, config=config, output_loading_info=True, ignore_mismatched_sizes=True
        )
    shapes = [name for name, *_ in report["mismatched_keys"]]
    new = sorted({*report["missing_keys"], *shapes})
    body = f"{model.base_model_prefix}."
    lost = [name for name in new if name.startswith(body) and not name.startswith(f"{body}pooler")]
    if lost:
        raise CheckpointError(f"{where}/{WEIGHTS}: tensor {lost[0]!r} is missing{_others(lost)}")
    _check_finite(model, f"{where}/{WEIGHTS}")
    return model, tokenizer, _renew_head(model, new) if relabelled else new


def _renew_head(model: PreTrainedModel, new: list[str]) -> list[str]:
    """Draw all weights outside of the body anew; return the names of those that are new now."""
    weights = model.state_dict()
    head = [name for name in weights if not name.startswith(f"{model.base_model_prefix}.")]
    if not set(head) <= set(new):
        drawn = type(model)(model.config).state_dict()
        for name in head:
            weights[name].copy_(drawn[name])
    return sorted({*new, *head})


def _check_size(config: PreTrainedConfig, tokenizer: Any, where: str) -> None:
    if len(tokenizer) > config.vocab_size:
        raise ValueError(
            f"{where}: model and tokenizer disagree: the tokenizer has {len(tokenizer)} tokens, "
            f"the model {config.vocab_size}; load both from the same folder"
        )


def auto_class(config: PreTrainedConfig) -> Any:
    """The Auto class that loads a model as it was saved; for a new one that of models that answer.

    Models that write answers are those of an encoder-decoder or of a decoder.
    """
    for name in config.architectures or ():
        found = getattr(transformers, f"AutoModelFor{name.partition('For')[2]}", None)
        if found is not None:
            return found
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


@contextmanager
def _part(where: str, name: str) -> Iterator[None]:
    """Say which part of a checkpoint cannot be read, whatever the reader of its format raises."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # what is wrong with the weights is said here, in one line
    try:
        yield
    except OSError as error:
        kind = (
            "no complete checkpoint folder"
            if Path(where).is_dir()
            else "neither a folder here nor a complete model that can be reached on the Hub"
        )
        raise FileNotFoundError(f"{where!r} is {kind}: {_said(error)}") from error
    except Exception as error:
        raise CheckpointError(f"{where}: {name} cannot be read: {_said(error)}") from error
    finally:
        logging.set_verbosity(verbosity)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_weights(model: PreTrainedModel, report: dict[str, Any], file: str) -> None:
    """Check that every tensor came from the file, as the model has it, and is finite.

    Args:
        report: what Transformers says about loading: sets of names, and shapes that differ.
        file: to be named in an error.
    """
    for key, problem in (("missing_keys", "is missing"), ("unexpected_keys", "is left over")):
        if names := sorted(report[key]):
            raise CheckpointError(f"{file}: tensor {names[0]!r} {problem}{_others(names)}")
    if shapes := sorted(report["mismatched_keys"]):
        name, found, wanted = shapes[0]
        raise CheckpointError(
            f"{file}: tensor {name!r} has the shape {tuple(found)}, and {tuple(wanted)} by "
            f"config.json{_others(shapes)}"
        )
    _check_finite(model, file)


def _check_finite(model: PreTrainedModel, file: str) -> None:
    tensors = model.state_dict().items()
    if names := [name for name, tensor in tensors if not torch.isfinite(tensor).all()]:
        raise CheckpointError(
            f"{file}: tensor {names[0]!r} holds numbers that are not finite{_others(names)}"
        )


def _others(found: list) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""


def check_agreement(config: PreTrainedConfig, tokenizer: Any, where: str = "checkpoint") -> None:
    """Check that a model and a tokenizer have the same base tokens, padding and symbols.

    Args:
        config: the model's.
        tokenizer: to go with it.
        where: named in an error.

    Raises:
        ValueError: naming the first setting in which they differ.
    """
    if not hasattr(tokenizer, "symbol_ranges"):
        raise ValueError(f"{where}: the tokenizer, a {type(tokenizer).__name__}, has no symbols")
    for name in ("num_base_tokens", "pad_token_id", "symbol_classes", "symbol_ranges"):
        ours, theirs = getattr(config, name), getattr(tokenizer, name)
        if _comparable(ours) != _comparable(theirs):
            raise ValueError(
                f"{where}: model and tokenizer disagree: {name} is {ours} in the model and "
                f"{theirs} in the tokenizer; load both from the same folder, or call "
                "extend_symbols on the one that lags behind"
            )


def check_segments(config: PreTrainedConfig, tokenizer: Any, where: str = "checkpoint") -> None:
    """Check that a model that takes segments knows those that a tokenizer finds, and no others.

    Args:
        config: the model's.
        tokenizer: to go with it.
        where: named in an error.

    Raises:
        ValueError: naming the labels in which they differ.
    """
    if not hasattr(config, "segment_labels"):
        return
    ours, theirs = list(config.segment_labels), list(getattr(tokenizer, "segment_labels", []))
    if ours == theirs:
        return
    sides = [("model", ours, theirs), ("tokenizer", theirs, ours)]
    found = [
        f"only the {side} has {', '.join(map(repr, more))}"
        for side, some, others in sides
        if (more := [label for label in some if label not in others])
    ]
    said = "; ".join(found) or f"the order is {ours} in the model and {theirs} in the tokenizer"
    raise ValueError(
        f"{where}: model and tokenizer have other labels of segments: {said}. Take the transducer "
        "that the model was trained with"
    )


def _comparable(value: Any) -> Any:
    """The same for equal vocabularies: in how many steps a class grew makes no difference."""
    if isinstance(value, dict):
        return {name: _comparable(entry) for name, entry in value.items()}
    return _joined(value) if isinstance(value, list) else value


def _joined(ranges: list[list[int]]) -> list[tuple[int, int]]:
    """Ranges in order, with those in one that follow each other."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


__all__ = [
    "CheckpointError",
    "auto_class",
    "check_agreement",
    "check_segments",
    "load_checkpoint",
    "load_config",
    "load_for",
    "load_host",
    "load_parts",
]
