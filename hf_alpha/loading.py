"""Loading a checkpoint: a model and the tokenizer that belongs to it."""

from pathlib import Path
from typing import Any

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer


def load_checkpoint(path: str | Path) -> tuple[AlphaForConditionalGeneration, AlphaTokenizer]:
    """Load model and tokenizer from a folder or from the Hub, and check that they fit.

    Raises:
        FileNotFoundError: a path on this machine that does not exist.
        ValueError: the model is of another kind, or model and tokenizer disagree.
    """
    text = str(path)
    if (text.startswith((".", "/", "~")) or text.count("/") > 1) and not Path(text).is_dir():
        raise FileNotFoundError(f"no checkpoint folder {text!r}")
    model = AutoModelForSeq2SeqLM.from_pretrained(path)
    if model.config.model_type != "alpha":
        raise ValueError(f"{text!r} holds a {model.config.model_type!r} model, not an 'alpha' one")
    tokenizer = AutoTokenizer.from_pretrained(path)
    check_agreement(model, tokenizer, text)
    return model, tokenizer


def check_agreement(
    model: AlphaForConditionalGeneration, tokenizer: AlphaTokenizer, where: str = "checkpoint"
) -> None:
    """Check that a model and a tokenizer have the same base tokens and the same symbols.

    Raises:
        ValueError: naming the first setting in which they differ.
    """
    for name in ("num_base_tokens", "symbol_classes", "symbol_ranges"):
        ours, theirs = getattr(model.config, name), getattr(tokenizer, name)
        if _plain(ours) != _plain(theirs):
            raise ValueError(
                f"{where}: model and tokenizer disagree: {name} is {ours} in the model and "
                f"{theirs} in the tokenizer; load both from the same folder, or call "
                "extend_symbols on the one that lags behind"
            )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


__all__ = ["check_agreement", "load_checkpoint"]
