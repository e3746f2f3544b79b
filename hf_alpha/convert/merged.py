"""An adapter of PEFT becomes part of the weights of its model."""

import warnings
from dataclasses import fields
from typing import Any

from safetensors.torch import load_file
from transformers import PreTrainedModel

from hf_alpha.checkpoints.named_files import check_files
from hf_alpha.checkpoints.places import ADAPTER, file_of
from hf_alpha.checkpoints.timed_patterns import PLAIN
from hf_alpha.loading import (
    CheckpointError,
    check_finite,
    on_one_line,
    reading,
    refuse_slow,
    refuse_tensors,
)

ADAPTER_WEIGHTS = "adapter_model.safetensors"
MERGED = (
    *("LORA", "ADALORA", "IA3", "LOHA", "LOKR", "OFT", "BOFT", "HRA", "VERA", "LN_TUNING"),
    "TRAINABLE_TOKENS",
)
"""The kinds of adapters that become part of a model's weights."""
NOT_MERGED = {
    "alora_invocation_tokens": "the adapter works behind these tokens only",
    "arrow_config": "several adapters share the work",
}
"""Settings of an adapter that cannot become part of its model's weights, and why."""
_ANYWHERE = r"(^|.*\.){}($|\..*)"
PATTERNS = {
    **dict.fromkeys(("target_modules", "modules_to_save", "exclude_modules"), _ANYWHERE),
    "feedforward_modules": _ANYWHERE,
    **dict.fromkeys(("rank_pattern", "alpha_pattern"), r"(.*\.)?({})$"),
    "layers_pattern": r"(?:^|.*?\.){}\.(?P<idx>\d+)\.",
}
"""Settings with patterns, and what PEFT makes of each in a list; one that is alone is all."""
USUAL = (
    *("base_model_name_or_path", "revision", "peft_type", "task_type", "auto_mapping"),
    *("peft_version", "inference_mode", "target_modules", "r", "lora_alpha", "lora_dropout"),
)
"""Settings that are no reason why an adapter cannot be used."""


def merged(model: PreTrainedModel, place: str, base: str) -> PreTrainedModel:
    """Merge an adapter into its model.

    Args:
        place: folder or Hub name of the adapter.
        base: that of the model, for errors.

    Raises:
        CheckpointError: weights of the adapter are missing, left over, of another shape or not
            finite.
        FileNotFoundError: it has no weights.
        ImportError: PEFT is not installed.
        ValueError: it was made for a model of another class, or does not become part of weights.
    """
    try:
        from peft import PeftConfig, PeftModel, get_peft_model_state_dict
    except ImportError:
        raise ImportError(f"{place} is an adapter, which needs PEFT: pip install peft") from None
    check_files(place, ADAPTER)
    weights = file_of(place, ADAPTER_WEIGHTS)
    if weights is None:
        raise FileNotFoundError(f"{place} is an adapter without {ADAPTER_WEIGHTS}")
    with reading(place, ADAPTER):
        config = PeftConfig.from_pretrained(str(weights.parent))
    with reading(place, ADAPTER_WEIGHTS):
        in_file = load_file(weights)
    of_another = f": it is an adapter for another model than {base}, a {type(model).__name__}"
    _check_adapter(config, type(model).__name__, place, of_another)
    file = f"{place}/{ADAPTER_WEIGHTS}"
    check_finite(in_file, file)
    refuse_slow(f"{place}/{ADAPTER}", _patterns_of(config), model)
    with warnings.catch_warnings(action="ignore"):  # what is missing is said here
        try:
            adapted = PeftModel.from_pretrained(model, weights.parent, config=config)
        except (ValueError, RuntimeError, KeyError) as error:  # no such modules; other shapes
            raise CheckpointError(f"{place}{of_another}: {on_one_line(error)}") from error
        except Exception as error:  # whatever else its settings lead to
            raise _odd(config, place, error) from error
        expected = get_peft_model_state_dict(adapted, save_embedding_layers=False).keys()
        left_over = in_file.keys() - expected - adapted.state_dict().keys()
        refuse_tensors(file, sorted(expected - in_file.keys()), f"is missing{of_another}")
        refuse_tensors(file, sorted(left_over), f"is left over{of_another}")
        try:
            merged: PreTrainedModel = adapted.merge_and_unload()
        except Exception as error:
            raise _odd(config, place, error) from error
    return merged.requires_grad_(True).eval()


def _check_adapter(config: Any, kind: str, place: str, of_another: str) -> None:
    """Refuse an adapter for a model of another class, or of a kind that is not merged."""
    for key, reason in NOT_MERGED.items():
        if getattr(config, key, None) is not None:
            raise CheckpointError(f"{place}/{ADAPTER}: {key}: {reason}: use it by PEFT itself")
    if config.peft_type not in MERGED:
        raise ValueError(
            f"{place} is an adapter of the kind {config.peft_type.value}, which does not become "
            f"part of a model's weights, as {', '.join(MERGED)} do: use it by PEFT itself"
        )
    mapping = config.auto_mapping if isinstance(config.auto_mapping, dict) else {}
    made_for = mapping.get("base_model_class", kind)
    if made_for != kind:
        raise ValueError(f"{place}{of_another}: it was trained on a {made_for}")


def _odd(config: Any, place: str, error: Exception) -> CheckpointError:
    """Return the error for settings that PEFT cannot use: those that few adapters have."""
    unusual = [
        field.name
        for field in fields(config)
        if field.name not in USUAL
        and getattr(config, field.name) not in (field.default, None, {}, [])
    ]
    return CheckpointError(
        f"{place}/{ADAPTER}: these settings cannot be used, or not on this model: "
        f"{', '.join(unusual) or 'none that is unusual'} ({type(error).__name__}: "
        f"{on_one_line(error)})"
    )


def _patterns_of(config: Any) -> dict[str, list[str]]:
    """Return the patterns of an adapter as PEFT puts them together: key -> patterns."""
    patterns = {}
    for key, form in PATTERNS.items():
        listed = getattr(config, key, None)
        if isinstance(listed, str):
            form, listed = form if key == "layers_pattern" else r"(?:{})\Z", [listed]
        each = listed if isinstance(listed, list | set | dict) else []
        patterns[key] = [form.format(x) for x in each if not PLAIN.fullmatch(f"{x}")]
    return patterns
