"""Loading a checkpoint: a model and the tokenizer that belongs to it."""

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModelForSeq2SeqLM

from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer


def load_checkpoint(path: str | Path) -> tuple[AlphaForConditionalGeneration, AlphaTokenizer]:
    """Load model and tokenizer from a folder or from the Hub, and check that they fit.

    Raises:
        FileNotFoundError: there is no such folder or model, or a file of it is missing.
        ValueError: the model is of another kind, or model and tokenizer disagree.
    """
    folder = Path(path).expanduser()
    where = str(folder)
    if (folder.is_absolute() or where.count("/") != 1) and not folder.is_dir():
        raise FileNotFoundError(f"no checkpoint folder {where!r}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{where!r} is no checkpoint folder: it has no config.json")
    try:
        config = AutoConfig.from_pretrained(where)
        if config.model_type != "alpha":
            raise ValueError(f"{where!r} holds a {config.model_type!r} model, not an 'alpha' one")
        model = AutoModelForSeq2SeqLM.from_pretrained(where)
        tokenizer = AlphaTokenizer.from_pretrained(where)  # it names a file that is damaged
    except OSError as error:
        kind = "checkpoint folder" if folder.is_dir() else "folder here or model on the Hub"
        raise FileNotFoundError(f"{where!r} is no complete {kind}: {error}") from error
    check_agreement(model, tokenizer, where)
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
        if _comparable(ours) != _comparable(theirs):
            raise ValueError(
                f"{where}: model and tokenizer disagree: {name} is {ours} in the model and "
                f"{theirs} in the tokenizer; load both from the same folder, or call "
                "extend_symbols on the one that lags behind"
            )


def _comparable(value: Any) -> Any:
    """The same for equal vocabularies: in how many steps a class grew makes no difference."""
    if isinstance(value, dict):
        return {name: _comparable(entry) for name, entry in value.items()}
    return {i for pair in value for i in range(*pair)} if isinstance(value, list) else value


__all__ = ["check_agreement", "load_checkpoint"]
