"""Loading a checkpoint: a model and the tokenizer that belongs to it, both as they were saved."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_flash_attention_utils import FLASH_ATTENTION_COMPATIBILITY_MATRIX
from transformers.tokenization_utils_base import TOKENIZER_CONFIG_FILE
from transformers.utils import logging

from hf_alpha import wings
from hf_alpha.auto import DEFAULT_MODEL_TYPE, SYMBOL_MODEL_TYPES
from hf_alpha.checkpoints.imported_code import import_functions
from hf_alpha.checkpoints.named_files import WEIGHTS, check_code, check_files
from hf_alpha.checkpoints.places import base_of, checkpoint_place, file_of
from hf_alpha.checkpoints.timed_patterns import PLAIN, SlowPatternError, check_patterns
from hf_alpha.io.inside import OutsideError
from hf_alpha.io.records import entries_in, read_json, texts_in
from hf_alpha.modeling.chat_templates import limit_templates
from hf_alpha.modeling.choices import has_tokens
from hf_alpha.modeling.relations import PREFIX
from hf_alpha.trust import UntrustedCodeError, is_trusted, refused_code, trusting

ANSWERING = (AutoModelForSeq2SeqLM, AutoModelForCausalLM)
"""The Auto classes of models that write answers."""
IMPLEMENTATIONS = {
    "attn_implementation": ("eager", "sdpa", "flex_attention"),
    "experts_implementation": ("eager", "batched_mm", "grouped_mm"),
}
"""What a configuration may choose: code that is installed with PyTorch and Transformers."""
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
Check = Callable[[PreTrainedModel, dict[str, Any], str], None]
"""Of a model, what Transformers reports of loading it, and the file for errors."""


class CheckpointError(ValueError):
    """A checkpoint that is damaged; the message names the file, and the tensor if it is one."""


def load_checkpoint(
    path: str | Path, answers: bool = True, trust_remote_code: bool = False
) -> tuple[Any, Any]:
    """Load model and tokenizer from a folder or from the Hub, and check that they are whole.

    Of which classes they are, the folder says, as with Auto classes.

    The one way in which the tools load a model: configuration, tokenizer and weights are checked,
    so that nothing is ever replaced by random numbers. An adapter (PEFT) is merged into the model
    that it names; the tokenizer is the adapter's, or else that model's.

    Args:
        path: folder or Hub name, of a model or an adapter.
        answers: only models that answer with text and have symbols will do.
        trust_remote_code: obey the code that the folder or repository names, and of an adapter the
            model's.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read, or weights are missing, left over, of another shape
            or not finite.
        UntrustedCodeError: it needs code of its own, which is not trusted.
        ValueError: the model is of another kind, or model and tokenizer disagree.

    Examples:
        >>> model, tokenizer = load_checkpoint("model_cards/propositional-relational")
        >>> model.config.model_type
        'alpha'
    """
    with trusting(*[path] * trust_remote_code):
        config, tokenizer = load_parts(path, answers)
        place = str(Path(path).expanduser())
        model, _ = _load_weights(auto_class(config), place, config, _check_weights)
    return model, tokenizer


def load_parts(path: str | Path, answers: bool = True) -> tuple[PreTrainedConfig, Any]:
    """Load configuration and tokenizer of a checkpoint, and check that they belong together.

    `load_checkpoint` describes arguments and errors.
    """
    config = load_config(path)
    place = str(Path(path).expanduser())
    if answers and auto_class(config) not in ANSWERING:
        raise ValueError(
            f"{place!r} holds a {config.architectures[0]}, which does not answer with text: "
            "hf-alpha evaluate takes it if its recipe.yaml lies beside it"
        )
    if not answers and not getattr(config, "symbol_classes", None):
        tokenizer = load_tokenizer(place)
        _check_size(config, tokenizer, place)
        check_segments(config, tokenizer, place)
        return config, tokenizer
    if spells_names(place):
        return config, load_tokenizer(place)
    if not hasattr(config, "symbol_classes"):
        raise ValueError(
            f"{place!r} holds a {config.model_type!r} model, not one with symbols (known: "
            f"{', '.join(SYMBOL_MODEL_TYPES)}); hf-alpha convert {place} OUT gives it some (--to "
            "relational, streams, dual_part or learned), or leaves it as it is and has its "
            "tokenizer write names as words (--to canonical)"
        )
    tokenizer = load_tokenizer(place)
    # Before there are weights: for a wrong vocabulary there may be no room.
    check_agreement(config, tokenizer, place)
    return config, tokenizer


def load_answering(path: str | Path) -> tuple[Any, Any]:
    """Load model and tokenizer of any model that answers with text: with symbols, or plain.

    Errors are those of `load_checkpoint`; a plain model gets a `PlainTokenizer`.
    """
    if not is_plain(path):
        return load_checkpoint(path)
    host, tokenizer = load_host(path, auto_class(load_config(path)))
    return host, wings.wing("plain tokenizer").of(tokenizer)


def answering_parts(path: str | Path) -> tuple[PreTrainedConfig, Any]:
    """Load configuration and tokenizer, as `load_answering` does with the weights."""
    if not is_plain(path):
        return load_parts(path)
    tokenizer = load_tokenizer(str(Path(path).expanduser()))
    return load_config(path), wings.wing("plain tokenizer").of(tokenizer)


def is_plain(path: str | Path) -> bool:
    """Return whether a model that answers with text is one of Transformers as it is."""
    config = load_config(path)
    has_names = hasattr(config, "symbol_classes") or spells_names(str(Path(path).expanduser()))
    return auto_class(config) in ANSWERING and not has_names


def load_config(path: str | Path) -> PreTrainedConfig:
    """Load the configuration of any model of Transformers.

    Raises:
        FileNotFoundError: there is no such folder or model, or no `config.json`.
        CheckpointError: it cannot be read.
        UntrustedCodeError: it chooses code that is not installed, and not trusted.
        ValueError: the folder links to files elsewhere.
    """
    place = checkpoint_place(path)
    is_here = Path(place).is_dir()
    place = (base_of(place) if is_here else None) or place
    try:
        config = _from_pretrained(AutoConfig, place, "config.json")
    except CheckpointError:  # of a repository without one, too; without a network, ask once
        if is_here or (base := base_of(place)) is None:
            raise
        place, config = base, _from_pretrained(AutoConfig, base, "config.json")
    chosen = {f"config.json, {key}": name for key, name in _implementations(config)}
    if chosen and not is_trusted(place):
        raise UntrustedCodeError(place, chosen)
    return config


def spells_names(place: str | Path) -> bool:
    """Return whether a folder's tokenizer spells names canonically; its model has no symbols."""
    settings = _read_json_of(tokenizer_place(place), TOKENIZER_CONFIG_FILE)
    return settings.get("tokenizer_class") == "CanonicalTokenizer"


def _implementations(settings: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a configuration and its parts choose that is not installed: key, name."""
    entries = vars(settings) if isinstance(settings, PreTrainedConfig) else settings
    if isinstance(entries, list | tuple):
        entries = dict(enumerate(entries))
    for key, entry in entries.items() if isinstance(entries, dict) else ():
        name = f"{key}".removeprefix("_").removesuffix("_internal")
        if name not in IMPLEMENTATIONS:
            yield from _implementations(entry, f"{prefix}{key}.")
            continue
        choices = entry.values() if isinstance(entry, dict) else [entry]
        for choice in filter(None, choices):
            if not _is_installed(name, f"{choice}".removeprefix(PREFIX)):
                yield f"{prefix}{name}", f"{choice}"


def _is_installed(key: str, choice: str) -> bool:
    """Whether Transformers takes no compiled code from the Hub for it, as for flash attention."""
    return choice in IMPLEMENTATIONS[key] or any(
        choice == f"flash_attention_{version}" and library["general_availability_check"]()
        for version, library in FLASH_ATTENTION_COMPATIBILITY_MATRIX.items()
    )


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
    config, place = load_config(path), str(Path(path).expanduser())

    def check(model: PreTrainedModel, report: dict[str, Any], file: str) -> None:
        _check_weights(model, {**report, "unexpected_keys": []}, file)

    return _load_weights(auto, place, config, check)[0], load_tokenizer(place)


def tokenizer_place(place: str | Path) -> str:
    """Return where the tokenizer of a model is: an adapter may have none beside it."""
    place = str(Path(place).expanduser())
    if (base := base_of(place)) is not None and file_of(place, TOKENIZER_CONFIG_FILE) is None:
        return base
    return place


def load_tokenizer(place: str) -> Any:
    """Load a tokenizer from a folder or from the Hub.

    Functions by which it finds names are imported where they are trusted; elsewhere the tokenizer
    refuses texts that need them. Templates of chats have limits of time and size.

    Raises:
        FileNotFoundError: there is no such folder or tokenizer.
        CheckpointError: a file cannot be read.
        UntrustedCodeError: it needs code of its own, which is not trusted.
    """
    place = tokenizer_place(place)
    limit_templates()
    tokenizer = _from_pretrained(AutoTokenizer, place, "tokenizer")
    rules = getattr(getattr(tokenizer, "finder", None), "rules", {})
    functions = {name: rule.function for name, rule in rules.items() if rule.function is not None}
    if functions and not refused_code(place, functions):
        import_functions(tokenizer.finder, here=not is_trusted(place))
    return tokenizer


def _from_pretrained(auto: Any, place: str, part: str, **arguments: Any) -> Any:
    """Load a part of a checkpoint; code of its own only where that is trusted.

    Classes of Transformers and of this package go before those in a folder. No question is asked.

    Raises:
        FileNotFoundError: the folder or file is missing.
        CheckpointError: it cannot be read.
        UntrustedCodeError: it needs code of its own, which is not trusted.
        OutsideError: a file is a link to somewhere else, or names a file or code there.
    """
    with reading(place, part):
        check_files(place, part)
        try:
            result = auto.from_pretrained(place, trust_remote_code=False, **arguments)
        except ValueError as error:
            if "trust_remote_code" not in str(error):
                raise
            result = None
        custom_classes = _custom_classes(place, auto, result)
        if result is not None and not custom_classes:
            return result
        if not is_trusted(place):
            raise UntrustedCodeError(place, custom_classes)
        check_code(place)
        return auto.from_pretrained(place, trust_remote_code=True, **arguments)


def _read_json_of(place: str, name: str) -> dict[str, Any]:
    """Read a JSON file of a folder or repository; empty where there is none."""
    file = file_of(place, name)
    return {} if file is None else read_json(file)


def _custom_classes(place: str, auto: Any, result: Any) -> dict[str, str]:
    """Return the classes that a folder or repository names as its own for a part: key -> name.

    Args:
        result: the part without that code. A tokenizer of an unknown class is loaded as a general
            one; if it is of the class that is named, there is no need for code.
    """
    if result is not None and auto is not AutoTokenizer:
        return {}
    classes = {}
    for name in ("config.json", "tokenizer_config.json"):
        for key, value in _read_json_of(place, name).get("auto_map", {}).items():
            names = [value] if isinstance(value, str) else list(filter(None, value))
            is_loaded = any(n.rpartition(".")[2] == type(result).__name__ for n in names)
            if result is None or (key == auto.__name__ and not is_loaded):
                classes[f"{name}, {key}"] = " or ".join(names)
    return classes


def _load_weights(
    auto: Any, place: str, config: PreTrainedConfig, check: Check
) -> tuple[PreTrainedModel, dict]:
    """Load a model, with its adapter if it is one, and what Transformers reports of its weights.

    Args:
        config: by `load_config`, which has checked it.
        check: of the weights, before an adapter changes them.
    """
    base = base_of(place)
    whole = base or place
    _check_quantization(auto, config, whole)
    model, report = _from_pretrained(
        auto, whole, WEIGHTS, config=config, output_loading_info=True, ignore_mismatched_sizes=True
    )
    check(model, report, f"{whole}/{WEIGHTS}")
    # Marian would leave out its positions, sinusoids if nobody has trained others.
    model._keys_to_ignore_on_save = set()
    return model if base is None else wings.wing("adapters")(model, place, base), report


def _check_quantization(auto: Any, config: PreTrainedConfig, place: str) -> None:
    """Refuse slow patterns for the modules that a quantized model leaves as they are."""
    settings = getattr(config, "quantization_config", None)
    patterns = {
        f"quantization_config.{key}": [
            rf"(?:{text.removeprefix('re:')})(?:(?<=\.)|(?=\.|$))"
            for text in [*texts_in(value), key]
            if not PLAIN.fullmatch(text)
        ]
        for key, value in entries_in(settings if isinstance(settings, dict) else {})
    }
    if any(patterns.values()):
        with torch.device("meta"):
            model = auto.from_config(config)
        refuse_slow(f"{place}/config.json", patterns, model)


def refuse_slow(file: str, patterns: Mapping[str, list[str]], model: PreTrainedModel) -> None:
    """Refuse a file whose patterns take long to match the names of a model's modules."""
    try:
        check_patterns(patterns, [name for name, _ in model.named_modules()])
    except SlowPatternError as error:
        raise CheckpointError(f"{file}: {error}") from None


def load_for(
    path: str | Path, auto: Any, settings: Mapping[str, Any], purpose: str | None = None
) -> tuple[Any, Any, list]:
    """Load a model to train for something, with a new head where the checkpoint has another.

    A head for other labels is another one, even if there are as many.

    Args:
        path: folder or Hub name.
        auto: the Auto class that the model shall be of.
        settings: fields of its configuration that change, such as its labels (`label2id`).
        purpose: what an error says in place of the name of `auto`.

    Returns:
        The model, its tokenizer, and the names of the weights that are new.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        CheckpointError: a file cannot be read, or weights of the body are missing, of another
            shape or not finite.
        ValueError: `auto` knows no such model.
    """
    config, place = load_config(path), str(Path(path).expanduser())
    if type(config) not in auto._model_mapping:
        raise ValueError(
            f"{place!r} holds a {config.model_type!r} model, not one of {purpose or auto.__name__}"
        )
    tokenizer = load_tokenizer(place)
    if getattr(config, "symbol_classes", None):
        check_agreement(config, tokenizer, place)
    _check_size(config, tokenizer, place)
    relabelled = "label2id" in settings and settings["label2id"] != config.label2id
    for name, value in settings.items():
        setattr(config, name, value)
    model, report = _load_weights(auto, place, config, _check_body)
    new = _new_weights(report)
    return model, tokenizer, _renew_head(model, new) if relabelled else new


def _new_weights(report: dict[str, Any]) -> list[str]:
    """Return the names of weights that a checkpoint lacks, or has in another shape."""
    return sorted({*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])})


def _check_body(model: PreTrainedModel, report: dict[str, Any], file: str) -> None:
    """Check that every tensor but a head's came from the file; for the arguments see `Check`."""
    body = f"{model.base_model_prefix}."
    of_body = [name for name in _new_weights(report) if name.startswith(body)]
    missing_names = [name for name in of_body if not name.startswith(f"{body}pooler")]
    refuse_tensors(file, missing_names, "is missing")
    check_finite(model.state_dict(), file)


def _renew_head(model: PreTrainedModel, new: list[str]) -> list[str]:
    """Draw all weights outside of the body anew; return the names of those that are new now."""
    weights = model.state_dict()
    head = [name for name in weights if not name.startswith(f"{model.base_model_prefix}.")]
    if not set(head) <= set(new):
        new_weights = type(model)(model.config).state_dict()
        for name in head:
            weights[name].copy_(new_weights[name])
    return sorted({*new, *head})


def _check_size(config: PreTrainedConfig, tokenizer: Any, place: str) -> None:
    if len(tokenizer) > config.vocab_size:
        raise _disagreement(
            place, f"the tokenizer has {len(tokenizer)} tokens, the model {config.vocab_size}"
        )
    _check_tokens(config, tokenizer, place)


def _check_tokens(config: PreTrainedConfig, tokenizer: Any, place: str) -> None:
    """Raise a ValueError for other tokens than those that a model says it was made for."""
    digest = getattr(config, "token_digest", None)
    if digest is not None and not has_tokens(tokenizer, digest):
        raise _disagreement(
            place, "the tokenizer has other tokens than the model was made for, or in another order"
        )


def _disagreement(place: str, fault: str) -> ValueError:
    return ValueError(
        f"{place}: model and tokenizer disagree: {fault}; load both from the same folder"
    )


def auto_class(config: PreTrainedConfig) -> Any:
    """Return the Auto class that loads a model as it was saved, or one that answers for a new one.

    Models that write answers are those of an encoder-decoder or of a decoder.
    """
    for name in config.architectures or ():
        auto = getattr(transformers, f"AutoModelFor{name.partition('For')[2]}", None)
        if auto is not None:
            return auto
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def config_for(tokenizer: Any, settings: Mapping[str, Any]) -> PreTrainedConfig:
    """Return the configuration of a new model for a tokenizer.

    Args:
        tokenizer: the vocabulary comes from it; see the configuration's `for_tokenizer`. Models of
            Transformers itself get its size and special tokens.
        settings: fields of the configuration, and its `model_type`.

    Raises:
        ValueError: a setting has a wrong kind or value.
    """
    values = dict(settings)
    config_class = CONFIG_MAPPING[values.pop("model_type", DEFAULT_MODEL_TYPE)]
    if hasattr(config_class, "for_tokenizer"):
        return config_class.for_tokenizer(tokenizer, **values)
    special = {name: getattr(tokenizer, name) for name in SPECIAL_IDS}
    return config_class(vocab_size=len(tokenizer), **{**special, **values})


@contextmanager
def reading(place: str, name: str) -> Iterator[None]:
    """Say which part of a checkpoint cannot be read, whatever the reader of its format raises."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # what is wrong with the weights is said here, in one line
    try:
        yield
    except (UntrustedCodeError, OutsideError):
        raise
    except OSError as error:
        kind = (
            "no complete checkpoint folder"
            if Path(place).is_dir()
            else "neither a folder here nor a complete model that can be reached on the Hub"
        )
        raise FileNotFoundError(f"{place!r} is {kind}: {on_one_line(error)}") from error
    except Exception as error:
        file = damaged_file(place) if name == WEIGHTS else name
        raise CheckpointError(f"{place}: {file} cannot be read: {on_one_line(error)}") from error
    finally:
        logging.set_verbosity(verbosity)


def damaged_file(place: str) -> str:
    """Return the first file of weights that is damaged; that of a whole model if none is."""
    for file in sorted(Path(place).glob("*.safetensors")):
        try:
            with safe_open(file, "pt"):
                continue
        except SafetensorError:
            with file.open("rb") as start:
                pointer = start.read(12) == b"version http"
            return f"{file.name} (a pointer: git lfs pull fetches it)" if pointer else file.name
    return WEIGHTS


def on_one_line(error: Exception) -> str:
    """Return what an error says, on one line."""
    return " ".join(str(error).split())


def _check_weights(model: PreTrainedModel, report: dict[str, Any], file: str) -> None:
    """Check that every tensor came from the file, as the model has it, and is finite.

    Args:
        report: what Transformers says about loading: sets of names, and shapes that differ.
    """
    for key, problem in (("missing_keys", "is missing"), ("unexpected_keys", "is left over")):
        refuse_tensors(file, sorted(report[key]), problem)
    shapes = {name: shapes for name, *shapes in sorted(report["mismatched_keys"])}
    for in_file, in_model in list(shapes.values())[:1]:
        problem = f"has the shape {tuple(in_file)}, and {tuple(in_model)} by config.json"
        refuse_tensors(file, list(shapes), problem)
    check_finite(model.state_dict(), file)


def check_finite(tensors: Mapping[str, torch.Tensor], file: str) -> None:
    """Refuse a file with numbers that are not finite."""
    names = [name for name, tensor in tensors.items() if not _is_finite(tensor)]
    refuse_tensors(file, names, "holds numbers that are not finite")


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether all numbers are finite; of the usual kinds without a copy of the tensor."""
    usual = tensor.is_floating_point() and tensor.element_size() > 1
    if usual and tensor.numel() and type(tensor) is torch.Tensor:
        tensor = torch.stack(tensor.aminmax())
    return bool(torch.isfinite(tensor).all())


def refuse_tensors(file: str, names: list[str], problem: str) -> None:
    """Refuse a file with bad tensors; the first is named."""
    if names:
        others = f", and {len(names) - 1} more" if len(names) > 1 else ""
        raise CheckpointError(f"{file}: tensor {names[0]!r} {problem}{others}")


def check_agreement(config: PreTrainedConfig, tokenizer: Any, place: str = "checkpoint") -> None:
    """Check that a model and a tokenizer have the same base tokens, padding and symbols.

    Raises:
        ValueError: naming the first setting in which they differ.
    """
    if not hasattr(tokenizer, "symbol_ranges"):
        raise ValueError(f"{place}: the tokenizer, a {type(tokenizer).__name__}, has no symbols")
    for name in ("num_base_tokens", "pad_token_id", "symbol_classes", "symbol_ranges"):
        model_value, tokenizer_value = getattr(config, name), getattr(tokenizer, name)
        if _ids_of(model_value) != _ids_of(tokenizer_value):
            raise _disagreement(
                place,
                f"{name} is {model_value} in the model and {tokenizer_value} in the tokenizer: "
                "call extend_symbols on the one that lags behind",
            )
    _check_tokens(config, tokenizer, place)


def check_segments(config: PreTrainedConfig, tokenizer: Any, place: str = "checkpoint") -> None:
    """Check that a model that takes segments knows those that a tokenizer finds, and no others.

    Raises:
        ValueError: naming the labels of both.
    """
    of_model, of_tokenizer = (getattr(part, "segment_labels", []) for part in (config, tokenizer))
    if hasattr(config, "segment_labels") and list(of_model) != list(of_tokenizer):
        raise _disagreement(
            place,
            f"the labels of segments are {', '.join(of_model)} in the model, in the tokenizer "
            f"{', '.join(of_tokenizer) or 'none'}",
        )


def _ids_of(value: Any) -> Any:
    """Return ids in place of their ranges, which tell in how many steps a class grew."""
    if isinstance(value, dict):
        return {name: _ids_of(entry) for name, entry in value.items()}
    return {i for pair in value for i in range(*pair)} if isinstance(value, list) else value
