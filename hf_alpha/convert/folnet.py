"""Checkpoints of FOLNet's original code (tencent-ailab/FOLNet) into models of this package.

The original saves two files, settings (.cfg, JSON) and weights (.pt). Every conversion is proved:
the converted model computes what the original does on random inputs without padding. With padding
they differ on purpose: the original has no mask.
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha.convert.folnet_original import OriginalFolnet
from hf_alpha.convert.shared import (
    ConversionError,
    check_fit,
    check_gap,
    for_proof,
    reject,
)
from hf_alpha.io.folders import new_folder
from hf_alpha.io.records import read_json
from hf_alpha.loading import load_tokenizer
from hf_alpha.modeling import modeling_folnet
from hf_alpha.modeling.choices import token_digest
from hf_alpha.modeling.configuration_folnet import FolnetConfig

LETTERS = {
    1: {"join": "j", "mu": "m", "cjoin": "c"},
    2: {"assoc": "a", "trans": "t", "prod": "p"},
}
NEEDED = {
    "hidden_act", "hidden_dropout_prob", "layer_norm_eps", "initializer_range", "vocab_size",
    "max_position_offset", "type_vocab_size", "num_layers", "mixer_ops", "predicate_dims",
    "intermediate_dims", "num_heads", "head_size",
}  # fmt: skip
CHOICES: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("gelu", "relu"),
    "boolean_type": ("mlp",),
    "diag_link": (False,),
}
KNOWN = NEEDED | {
    "absolute_position", "relative_position", "diag_link", "boolean_type", "hidden_size",
    "pretrain_loss", "num_classes",
}  # fmt: skip
UNUSED = {"max_span", "span_dim", "aux_length", "glob_size", "span_size", "unit_size"}
"""Settings that the original writes and no part of its models reads (without a global branch)."""

# Ours: the original's, with the same meaning.
SETTINGS = {
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "head_size": "head_size",
    "max_distance": "max_position_offset",
    "type_vocab_size": "type_vocab_size",
    "hidden_act": "hidden_act",
    "hidden_dropout_prob": "hidden_dropout_prob",
    "attention_probs_dropout_prob": "hidden_dropout_prob",
    "layer_norm_eps": "layer_norm_eps",
}
CODE_FORM: dict[str, Any] = {
    "cjoin_premise": "size",
    "trans_channels": "binary",
    "transposed_boolean": True,
    "boolean_cascade": True,
    "implication": "none",
    "cls_atoms": True,
}

OLD_WORDS = "folnet.encoder.word_embd.weight"
TIED = "cls.heads.predictions.decoder.weight"
GLOBAL = "the global branch (mixer_ops[0])"
ABSENT = {
    "sch.": "the head of the sequence-contrastive loss (SCL)",
    "folnet.glob_link.": GLOBAL,
    "folnet.encoder.glob_embd.": GLOBAL,
}
SPECIAL = ("pad", "bos", "eos")
ALL = slice(None)
ROUNDING = 1e-4  # of what is computed in another order, by the largest number

Sources = dict[str, list[tuple[str, slice]]]
"""Module of ours -> modules of the original and the rows that it has of each, from the top down."""


# -- what the two files say -----------------------------------------------------------------------


def read_settings(path: Path) -> dict[str, Any]:
    """Return the original's settings, with branches of operators by number.

    Raises:
        ConversionError: the file is none of the original's, or asks for what there is not here.
    """
    try:
        content = read_json(path)
    except ValueError as error:
        raise ConversionError(f"{path} is no .cfg file of FOLNet: {error}") from error
    missing, unknown = sorted(NEEDED - content.keys()), sorted(content.keys() - KNOWN - UNUSED)
    reject(missing, f"{path} lacks settings: {', '.join(missing)}")
    reject(unknown, f"{path} has settings that FOLNet has not: {', '.join(unknown)}")
    settings = {"absolute_position": False, "relative_position": True, "diag_link": False,
                "boolean_type": "mlp", **content}  # fmt: skip
    settings["mixer_ops"] = {int(arity): ops for arity, ops in content["mixer_ops"].items()}
    _check_settings(path, settings)
    return settings


def _check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    operators = settings["mixer_ops"]
    branch = operators.get(0)
    reject(branch, f"{path}: mixer_ops[0] is {branch}: {GLOBAL} is not here")
    for arity, letters in LETTERS.items():
        listed = operators.get(arity) or []
        reject(
            not listed or len(set(listed)) < len(listed) or not set(listed) <= letters.keys(),
            f"{path}: mixer_ops[{arity}] is {listed}; it has one or more of {', '.join(letters)}, "
            "each once",
        )
    for name, choices in CHOICES.items():
        value = settings[name]
        reject(value not in choices, f"{path}: {name} is {value!r}, not one of {choices}")
    for name in ("predicate_dims", "intermediate_dims"):
        count = len(settings[name])
        reject(count != 3, f"{path}: {name} has {count} numbers, not 3")
    both = settings["absolute_position"] and settings["relative_position"]
    reject(both, f"{path}: absolute_position and relative_position cannot both be on")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the original's tensors in float32, without a prefix of parallel training.

    Raises:
        ConversionError: the file is no dict of tensors, or has parts that no model here has.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ConversionError(
            f"{path} cannot be read as weights; more than tensors is not loaded: {error}"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(x, Tensor) for x in state.values()):
        raise ConversionError(f"{path} holds no dict of tensors: give the .pt file of a model")
    state = {name.removeprefix("module."): value.float() for name, value in state.items()}
    for name in state:
        for prefix, part in ABSENT.items():
            message = f"{path}: {name} belongs to {part}, which is not here"
            reject(name.startswith(prefix), message)
    reject(OLD_WORDS not in state, f"{path} is no FOLNet: it lacks {OLD_WORDS}")
    return state


def class_of(state: Mapping[str, Tensor], settings: Mapping[str, Any]) -> str:
    """Return the name of our class with the head that the weights have.

    Raises:
        ConversionError: they have none of the original's heads.
    """
    if "classifier.weight" in state:
        several = settings.get("num_classes", 1) > 1 and len(state["classifier.weight"]) == 1
        return f"FolnetFor{'MultipleChoice' if several else 'SequenceClassification'}"
    if "classifier.start_logits.dense.weight" in state:
        return "FolnetForQuestionAnswering"
    if "cls.heads.predictions.bias" in state:
        return "FolnetForPreTraining"
    raise ConversionError("the weights have no head of FOLNet's: cls.heads.* or classifier.*")


# -- settings and weights -------------------------------------------------------------------------


def convert_settings(
    settings: Mapping[str, Any], state: Mapping[str, Tensor], **further: Any
) -> FolnetConfig:
    """Return our configuration, with the code's form of all that the paper has otherwise.

    Args:
        further: settings that the original's files do not have, such as the ids of special tokens.

    Raises:
        ConversionError: a setting does not fit.
    """
    operators = {
        arity: "".join(letters[name] for name in settings["mixer_ops"][arity])
        for arity, letters in LETTERS.items()
    }
    scheme = "relative" if settings["relative_position"] else "none"
    values = {
        **{ours: settings[theirs] for ours, theirs in SETTINGS.items()},
        **CODE_FORM,
        "vocab_size": _vocabulary(settings, state),
        "unary_operators": operators[1],
        "binary_operators": operators[2],
        "position_scheme": "absolute" if settings["absolute_position"] else scheme,
        # Below 0, the original has one for each matrix, by its size; only new weights need it.
        "initializer_range": max(settings["initializer_range"], 0) or 0.02,
        **further,
    }
    for ours, theirs in (("hidden", "predicate"), ("intermediate", "intermediate")):
        _, unary, binary = settings[f"{theirs}_dims"]
        values |= {f"{ours}_size": unary, f"binary_{ours}_size": binary}
    if "classifier.weight" in state:
        values["num_labels"] = len(state["classifier.weight"])
    try:
        return FolnetConfig(**values)
    except ValueError as error:
        raise ConversionError(f"the settings do not fit: {error}") from error


def _vocabulary(settings: Mapping[str, Any], state: Mapping[str, Tensor]) -> int:
    """Return the rows of the embedding; settings may have them before the original's padding."""
    rows, stated_size = len(state[OLD_WORDS]), settings["vocab_size"]
    reject(
        rows not in (stated_size, (stated_size // 8 + 1) * 8),
        f"{OLD_WORDS} has {rows} rows, the settings say vocab_size {stated_size}: are the two "
        "files of one model?",
    )
    return rows


def sources(settings: Mapping[str, Any]) -> Sources:
    """Return the table of names: each module of ours, and where in the original its weights are."""
    table: Sources = {
        new: [(old, ALL)]
        for new, old in {
            "folnet.shared": "folnet.encoder.word_embd",
            "folnet.encoder.embeddings.token_type_embeddings": "folnet.encoder.type_embd",
            "folnet.encoder.embeddings.position_embeddings": "folnet.encoder.abs_pos_embd",
            "folnet.encoder.embeddings.distance_embeddings": "folnet.encoder.rel_pos_embd",
            "folnet.pooler.dense": "folnet.dense",
            "cls.predictions": "cls.heads.predictions",
            "cls.predictions.transform.dense": "cls.heads.predictions.transform.dense",
            "cls.seq_relationship": "cls.heads.seq_relationship",
            "classifier": "classifier",
        }.items()
    }
    table["qa_outputs"] = [(f"classifier.{side}_logits.dense", ALL) for side in ("start", "end")]
    for number in range(settings["num_layers"]):
        table |= _layer_sources(number, settings)
    return table


def _layer_sources(number: int, settings: Mapping[str, Any]) -> Sources:
    new, old = f"folnet.encoder.layers.{number}", f"folnet.reasoner.layers.{number}.deducers"
    table: Sources = {}
    for arity in LETTERS:
        for place, operator in enumerate(settings["mixer_ops"][arity]):
            for part, (module, rows) in _operator_sources(operator, settings).items():
                old_name = f"{old}.0.operators.{arity}.{place}.{module}"
                table[f"{new}.{operator}.{part}"] = [(old_name, rows)]
    for arity, name in ((1, "unary_bool"), (2, "binary_bool")):
        boolean = f"{old}.1.operators.{arity}.0"
        table[f"{new}.{name}.fc1"] = [(f"{boolean}.clause_in", ALL)]
        table[f"{new}.{name}.fc2"] = [(f"{boolean}.clause_out", ALL)]
    table[f"{new}.binary_bool.skip"] = [(f"{old}.1.operators.2.0.clause_skip", ALL)]
    return table


def _operator_sources(operator: str, settings: Mapping[str, Any]) -> dict[str, tuple[str, slice]]:
    """Return an operator's kernel, premise and output; the original has one matrix for two."""
    heads = settings["num_heads"]
    if operator == "cjoin":
        return {part: (part, ALL) for part in ("kernel", "premise", "output")}
    first = {
        "mu": ("reader.2", heads),
        "assoc": ("reader.1", heads * settings["head_size"]),
        "trans": ("reader.2", settings["predicate_dims"][2]),
    }
    if operator in first:
        module, rows = first[operator]
        parts = {"kernel": (module, slice(rows)), "premise": (module, slice(rows, None))}
    else:
        kernel, premise = (2, 1) if operator == "join" else (1, 2)
        parts = {"kernel": (f"reader.{kernel}", ALL), "premise": (f"reader.{premise}", ALL)}
    return {**parts, "output": ("writer", ALL)}


def convert_weights(
    state: Mapping[str, Tensor], table: Sources, parameters: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the original's tensors under our names.

    Raises:
        ConversionError: the original's names and shapes of what is missing, left over or wrong.
    """
    weights, used_names, missing = {}, {TIED}, []
    for name, parameter in parameters.items():
        module, _, kind = name.rpartition(".")
        parts = [(f"{old}.{kind}", rows) for old, rows in table[module]]
        if missing_names := [old for old, _ in parts if old not in state]:
            missing += missing_names
            continue
        weights[name] = torch.cat([state[old][rows] for old, rows in parts])
        used_names |= {old for old, _ in parts}
        reject(
            weights[name].shape != parameter.shape,
            f"{' and '.join(old for old, _ in parts)}: {tuple(weights[name].shape)} for {name}, "
            f"the settings say {tuple(parameter.shape)}",
        )
    check_fit(missing, sorted(state.keys() - used_names))
    is_untied = TIED in state and not torch.equal(state[TIED], state[OLD_WORDS])
    reject(is_untied, f"{TIED} is not {OLD_WORDS}: a projection of its own is not here")
    return weights


# -- proof -----------------------------------------------------------------------------------------


@torch.no_grad()
def prove(
    state: Mapping[str, Tensor], settings: Mapping[str, Any], model: PreTrainedModel
) -> float:
    """Check that a model computes what the original's weights do; the largest difference.

    Compared are the final unary and binary atoms, the pooled state and all logits, on random pairs
    of texts without padding.

    Raises:
        ConversionError: what differs, and by how much.
    """
    converted = for_proof(model)
    ids, types = _probe(model.config)
    expected = OriginalFolnet(state, settings).outputs(ids, types)
    batch = {"input_ids": ids, "token_type_ids": types}
    outputs = dict(converted.base_model(**batch))
    if type(model).__name__.endswith("MultipleChoice"):  # each row is a question with one choice
        batch = {name: value[:, None] for name, value in batch.items()}
    outputs |= converted(**batch)
    largest = 0.0
    for name, right in expected.items():
        gap = float((outputs[name] - right).abs().max())
        check_gap(f"{name} differs", gap, ROUNDING * max(1.0, float(right.abs().max())))
        largest = max(largest, gap)
    return largest


def _probe(config: FolnetConfig) -> tuple[Tensor, Tensor]:
    """Return random ids, and types of two texts whose border is another in each row."""
    rows, length, generator = 4, 24, torch.Generator().manual_seed(0)
    ids = torch.randint(config.vocab_size, (rows, length), generator=generator)
    border = torch.randint(1, length, (rows, 1), generator=generator)
    types = (torch.arange(length) >= border).long()
    return ids, types % config.type_vocab_size


# -- folders ---------------------------------------------------------------------------------------


def convert_state(
    state: Mapping[str, Tensor], settings: Mapping[str, Any], **further: Any
) -> PreTrainedModel:
    """Return a model of ours with the original's weights, proved.

    Args:
        state, settings: as of `read_weights` and `read_settings`.

    Raises:
        ConversionError: something does not fit, or the proof failed.
    """
    name = class_of(state, settings)
    config = convert_settings(settings, state, **further)
    with torch.random.fork_rng(devices=[]):
        model = getattr(modeling_folnet, name)(config)
    parameters = dict(model.named_parameters())
    weights = convert_weights(state, sources(settings), parameters)
    with torch.no_grad():
        for key, value in weights.items():
            parameters[key].copy_(value)
    prove(state, settings, model.eval())
    return model


def convert_folnet(
    settings: str | Path, weights: str | Path, out: str | Path, tokenizer: str | Path | None = None
) -> PreTrainedModel:
    """Convert a checkpoint of the original code; model, code and tokenizer are written to `out`.

    Args:
        settings, weights: the original's .cfg and .pt files.
        tokenizer: folder or Hub name of the tokenizer that the model was trained with; the original
            has none of its own in a checkpoint. Its special tokens become those of the model.

    Raises:
        ConversionError: as `convert_state`; nothing is written.
        FileExistsError: `out` exists; it stays as it is.
    """
    with new_folder(Path(out)) as unfinished:
        original_settings = read_settings(Path(settings))
        state = read_weights(Path(weights))
        if tokenizer is None:
            model = convert_state(state, original_settings)
        else:
            words = load_tokenizer(str(tokenizer))
            model = convert_state(state, original_settings, **special_ids(words, state))
            model.config.token_digest = token_digest(words)
            words.save_pretrained(unfinished)
        model.save_pretrained(unfinished)
    return model


def special_ids(tokenizer: PreTrainedTokenizerBase, state: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the ids of padding and of both ends of texts, where the tokenizer has them.

    Raises:
        ConversionError: the tokenizer has more tokens than the model.
    """
    rows = len(state[OLD_WORDS])
    reject(
        len(tokenizer) > rows,
        f"the tokenizer has {len(tokenizer)} tokens, the model {rows}: give the tokenizer that it "
        "was trained with",
    )
    ids = {f"{kind}_token_id": getattr(tokenizer, f"{kind}_token_id") for kind in SPECIAL}
    return {name: number for name, number in ids.items() if number is not None}
