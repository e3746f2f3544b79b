"""What a model is: its encoding, sizes, vocabulary and origin, without loading its weights."""

import textwrap
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import get_local_safetensors_metadata, get_safetensors_metadata
from huggingface_hub.errors import NotASafetensorsRepoError, SafetensorsParsingError
from transformers import PreTrainedConfig

from hf_alpha.checkpoints.named_files import WEIGHTS, check_files
from hf_alpha.checkpoints.places import ADAPTER, base_of, file_of
from hf_alpha.hub.card import RENAMINGS, backbone_type
from hf_alpha.hub.release import LOG_FILE, read_log
from hf_alpha.io.plain_text import counted, printable
from hf_alpha.io.records import read_json
from hf_alpha.loading import (
    ANSWERING,
    CheckpointError,
    auto_class,
    load_config,
    load_parts,
    load_tokenizer,
    spells_names,
    tokenizer_place,
)
from hf_alpha.names.given_names import classes_by_row
from hf_alpha.recipe import recipe_beside, writes_answers
from hf_alpha.train import TRAINER_STATE

PROMISES = {
    "renaming": "renaming the input moves the logits' columns and changes nothing else, to the bit",
    "extension": "a larger vocabulary changes no logit of the old columns, to the bit",
    "close extension": "a larger vocabulary changes logits of the old columns by rounding only",
}
"""What each of `SymbolEncoding.promises` means."""
SHOWN_TOKENS = 24
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def describe_model(place: str) -> str:
    """Describe a model, a line for each of its properties.

    Args:
        place: folder or Hub name. Of a model on the Hub, the weights are not downloaded.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        ValueError: a file is damaged, the model is of another kind, or model and tokenizer
            disagree.
    """
    answers = writes_answers(place)
    config = load_config(place)
    is_host = answers and not hasattr(config, "symbol_classes")
    spells = is_host and spells_names(place)
    if is_host:
        tokenizer = load_tokenizer(str(Path(place).expanduser()))
    else:
        config, tokenizer = load_parts(place, answers)
    has_symbols = hasattr(config, "encoding") and bool(config.symbol_classes)
    segments = ", ".join(getattr(config, "segment_labels", []))
    lines = {
        "model type": f"{config.model_type}, {_kind(config)}"
        + " of Transformers, without symbols" * is_host,
        **_adapter(place),
        **(_encoding(config) if has_symbols else {}),
        "sizes": getattr(config, "size_text", f"width {config.hidden_size}"),
        "parameters": _parameters(config),
        "weights": _weights(base_of(place) or place),
        **(_symbols(config, tokenizer) if has_symbols else {"tokens": f"{len(tokenizer):,}"}),
        **({"names": "written as its own words, by its tokenizer"} if spells else {}),
        **({"segments": segments} if segments else {}),
        **({"conversion": _conversion(place)} if is_host else {}),
        **_origin(place),
    }
    load = [_loaded_by_transformers(place, config, spells)]
    if spells or not is_host:
        call = f"load_checkpoint({place!r}{'' if answers else ', answers=False'})"
        load.append(f"import hf_alpha; model, tokenizer = hf_alpha.{call}")
    text = [place, *(_line(name, value) for name, value in lines.items())]
    text += [f"  {name:<13} {code}" for name, code in zip(("load", "or"), load, strict=False)]
    return "\n".join(text)


def _loaded_by_transformers(place: str, config: PreTrainedConfig, spells: bool) -> str:
    """Return the code with which Transformers loads a model, which needs no hf_alpha.

    Args:
        spells: whether the tokenizer spells names canonically, by code that lies beside it.
    """
    base, auto = base_of(place), auto_class(config).__name__
    trust = ", trust_remote_code=True" if hasattr(config, "auto_map") else ""
    loader = "from_pretrained"
    trusts = trust or ", trust_remote_code=True" * spells
    tokenizer = f"AutoTokenizer.{loader}({tokenizer_place(place)!r}{trusts})"
    model = f"{auto}.{loader}({base or place!r}{trust})"
    if base is not None:
        model = f"PeftModel.{loader}({model}, {place!r})"
    peft = "from peft import PeftModel; " if base is not None else ""
    return (
        f"{peft}from transformers import {auto}, AutoTokenizer; tokenizer = {tokenizer}; "
        f"model = {model}"
    )


def _adapter(place: str) -> dict[str, str]:
    """Return what an adapter is, and of which model; nothing for a whole model."""
    file = file_of(place, ADAPTER)
    if file is None:
        return {}
    settings = read_json(file)
    rank = f" of rank {settings['r']}" if settings.get("r") else ""
    kind = f"{settings.get('peft_type')}{rank} (PEFT)"
    return {"adapter": f"{kind} for {base_of(place)}, whose weights and sizes follow"}


def _conversion(place: str) -> str:
    """Return the commands by which a model of Transformers gets symbols."""
    is_adapter = base_of(place) is not None
    merge, host = (f"hf-alpha convert {place} MERGED; ", "MERGED") if is_adapter else ("", place)
    return f"{merge}hf-alpha convert {host} OUT gives it symbols, or says why it cannot"


def _kind(config: PreTrainedConfig) -> str:
    if auto_class(config) not in ANSWERING:
        return f"an encoder ({config.architectures[0]})"
    kind = "an encoder-decoder" if config.is_encoder_decoder else "a decoder"
    backbone = backbone_type(config)
    return f"{kind} around a {backbone!r} of Transformers" if backbone else kind


def _encoding(config: PreTrainedConfig) -> dict[str, str]:
    """Return how the model knows names."""
    description = config.encoding.description + RENAMINGS[config.symbol_renaming]
    promises = [PROMISES.get(name, name) for name in sorted(config.encoding.promises)]
    return {
        "encoding": f"{config.symbol_encoding}: {description}",
        "promises": "; ".join(promises) or "none beside those of all models",
    }


def _symbols(config: PreTrainedConfig, tokenizer: Any) -> dict[str, str]:
    """Return the vocabulary, and whether it can grow."""
    return {
        "base tokens": _base_tokens(config, tokenizer),
        "symbols": ", ".join(f"{count:,} {name}" for name, count in config.symbol_classes.items()),
        "more symbols": _extension(config),
        **_rules(tokenizer),
    }


def _rules(tokenizer: Any) -> dict[str, str]:
    """Return how names are found in texts, and what that asks of a user."""
    finder = getattr(tokenizer, "finder", None)
    if finder is None or not finder.rules:
        return {}
    listed = (f"{name} {rule.to_dict()}" for name, rule in finder.rules.items())
    by_row = classes_by_row(tokenizer)
    given = f"; the names of {', '.join(by_row)} are given with each text: hf-alpha solve --names"
    return {"names": "; ".join(listed) + given * bool(by_row)}


def _line(name: str, value: str) -> str:
    return textwrap.fill(
        f"  {name:<13} {printable(value)}", 100, subsequent_indent=" " * 16, break_on_hyphens=False
    )


def _parameters(config: PreTrainedConfig) -> str:
    with torch.device("meta"):  # shapes without numbers
        model = auto_class(config).from_config(config)
    count = model.num_parameters()
    return f"{count:,}, {count - model.num_parameters(exclude_embeddings=True):,} in embeddings"


def _weights(place: str) -> str:
    """Return the kinds of numbers and the size of weights, from the beginnings of their files."""
    check_files(place, WEIGHTS)
    folder = Path(place).expanduser()
    try:
        metadata = (
            get_local_safetensors_metadata(folder)
            if folder.is_dir()
            else get_safetensors_metadata(place)
        )
    except NotASafetensorsRepoError:
        raise FileNotFoundError(f"{place!r} has no {WEIGHTS}") from None
    except SafetensorsParsingError as error:
        raise CheckpointError(f"{place}/{WEIGHTS} cannot be read: {error}") from error
    tensors = [
        tensor for file in metadata.files_metadata.values() for tensor in file.tensors.values()
    ]
    size = sum(tensor.data_offsets[1] - tensor.data_offsets[0] for tensor in tensors)
    kinds = dict.fromkeys(DTYPES.get(tensor.dtype, tensor.dtype) for tensor in tensors)
    return f"{', '.join(kinds)}, {size / 1e6:,.1f} MB"


def _base_tokens(config: PreTrainedConfig, tokenizer: Any) -> str:
    ids = config.vocabulary.base_ids
    excerpt = " ".join(tokenizer.convert_ids_to_tokens(ids[:SHOWN_TOKENS]))
    return f"{len(ids):,}: {excerpt}" + " ..." * (len(ids) > SHOWN_TOKENS)


def _extension(config: PreTrainedConfig) -> str:
    """Return whether symbols can be added without training, by the encoding's own word."""
    if config.encoding.no_extension:
        return f"no: {config.encoding.no_extension}"
    name = next(iter(config.symbol_classes))
    return f"yes: extend_symbols({{{name!r}: 10}}) of the model and of the tokenizer"


def _origin(place: str) -> dict[str, str]:
    """Return the task and the steps of training, from the files that a training run leaves."""
    facts = {}
    if recipe := recipe_beside(place):
        facts["task"] = recipe.task
    if state := file_of(place, TRAINER_STATE):
        step = read_json(state, "global_step")["global_step"]
        facts["trained"] = counted(step, "step") if isinstance(step, int) else f"{step!r} steps"
    elif (log := file_of(place, LOG_FILE)) and (rows := read_log(log)):
        facts["trained"] = counted(rows[-1]["step"], "step")
    return facts
