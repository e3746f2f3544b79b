"""The model of a recipe and its tokenizer: new ones, or a checkpoint's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import (
    CONFIG_MAPPING,
    PreTrainedConfig,
    PreTrainedModel,
)

from hf_alpha.build_tokenizer import NUM_SYMBOLS, build_tokenizer
from hf_alpha.data.own import OwnPairs
from hf_alpha.generation import fit_tokenizer
from hf_alpha.loading import (
    auto_class,
    check_segments,
    load_checkpoint,
    load_for,
    load_parts,
)
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives.base import reads_segments
from hf_alpha.objectives.tokenizers import make_tokenizer, with_transducer
from hf_alpha.recipe import (
    DEFAULT_MODEL_TYPE,
    FormulaRecipe,
    OwnRecipe,
    PairsRecipe,
    Recipe,
    RecipeError,
    RowsRecipe,
    rules_of,
)
from hf_alpha.settings import model_of

from .arguments import section

SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")


def prepare_model(
    recipe: Recipe, own: OwnPairs | None = None, say: Callable[[str], object] = print
) -> tuple[PreTrainedModel, AnyTokenizer]:
    """The model to train and its tokenizer: new ones, or the checkpoint's.

    Args:
        recipe: the recipe.
        own: the user's own pairs, from which a new tokenizer is made; that of a checkpoint finds
            names as the recipe says, and gets as many symbols as they need.
        say: is told how many symbols a checkpoint gets.

    Raises:
        RecipeError: a setting of the model has a wrong kind or value, or the checkpoint's symbols
            do not fit the recipe's.
    """
    if recipe.checkpoint is not None:
        model, loaded = load_checkpoint(recipe.checkpoint)
        fit_tokenizer(loaded, model)
        if own is not None and isinstance(loaded, TextTokenizer):
            with section("symbols"):
                _fit_symbols(model, loaded, own, say)
        return model, loaded
    if isinstance(recipe, FormulaRecipe):
        tokenizer: AnyTokenizer = build_tokenizer(recipe.task, recipe.num_symbols or NUM_SYMBOLS)
    else:
        assert isinstance(recipe, PairsRecipe) and own is not None
        with section("tokenizer"):
            tokenizer = TextTokenizer.from_texts(own.texts, own.finder.rules, recipe.tokenizer)
            tokenizer.extend_symbols(own.lacking(tokenizer.symbol_classes))
    with section("model"):
        config = config_for(
            tokenizer, {"symbol_seed": recipe.training.get("seed", 42), **recipe.model}
        )
    if own is not None and config.learns_names:
        tokenizer.name_symbols(own.texts)
    model = auto_class(config).from_config(config)
    fit_tokenizer(tokenizer, model)
    return model, tokenizer


def _fit_symbols(
    model: PreTrainedModel, tokenizer: TextTokenizer, own: OwnPairs, say: Callable[[str], object]
) -> None:
    """Have a checkpoint find names by the recipe's rules, with symbols for all of a row.

    Raises:
        ValueError: classes or symbols do not fit, or there are too few, and none can be added.
    """
    if tokenizer.symbols_are_words:
        own.check_symbols(tokenizer)
        return
    tokenizer.use_rules(own.finder.rules)
    if model.config.learns_names:
        tokenizer.name_symbols(own.texts)
    lacking = own.lacking(tokenizer.symbol_classes, training=True)
    more = {name: count for name, count in lacking.items() if count}
    if not more:
        return
    said = ", ".join(
        f"{name} has {count}, and {more[name]} more are needed"
        for name, count in tokenizer.symbol_classes.items()
        if name in more
    )
    if reason := model.config.encoding.no_extension:
        raise ValueError(
            f"too few symbols in the checkpoint: {said}; {reason}, or one of Transformers again "
            "with more --symbols"
        )
    model.extend_symbols(more)
    tokenizer.extend_symbols(more)
    say(f"symbols of the checkpoint: {said}; they are added")


def complete_rules(recipe: Recipe, say: Callable[[str], object]) -> Recipe:
    """A recipe for own pairs, with what its checkpoint says of names.

    Those are the rules, where the recipe has none; or what the only class is called.
    """
    if not isinstance(recipe, OwnRecipe) or len(recipe.symbols) > 1 or recipe.checkpoint is None:
        return recipe
    answers = isinstance(recipe, PairsRecipe)
    _, tokenizer = load_parts(recipe.checkpoint, answers=answers)
    if recipe.symbols:
        return _with_class_of(tokenizer, recipe, say)
    if not answers and not isinstance(tokenizer, TextTokenizer):
        return recipe
    texts = isinstance(tokenizer, TextTokenizer)
    rules = rules_of(tokenizer, recipe.checkpoint) if texts else {}
    rules = {name: {k: v for k, v in rule.items() if k != "count"} for name, rule in rules.items()}
    if not rules or not all(rules.values()):
        raise RecipeError(
            f"the key 'symbols' is missing: say which words are names; {recipe.checkpoint} does "
            "not say it either"
        )
    return recipe.model_copy(update={"symbols": rules})


def _with_class_of(tokenizer: Any, recipe: OwnRecipe, say: Callable[[str], object]) -> Recipe:
    """A recipe with one class, called as the only one of a tokenizer: both are all names."""
    classes = list(tokenizer.finder.rules) if isinstance(tokenizer, TextTokenizer) else []
    ((ours, rule),) = recipe.symbols.items()
    if len(classes) != 1 or classes == [ours]:
        return recipe
    say(f"symbols: {ours!r} is the class {classes[0]!r} of {recipe.checkpoint}")
    return recipe.model_copy(update={"symbols": {classes[0]: rule}})


def config_for(tokenizer: Any, settings: Mapping[str, Any]) -> PreTrainedConfig:
    """The configuration of a new model for a tokenizer.

    Args:
        tokenizer: the vocabulary comes from it; see the configuration's `for_tokenizer`. Models of
            Transformers itself get its size and special tokens.
        settings: fields of the configuration, and its `model_type`.

    Raises:
        ValueError: a setting has a wrong kind or value.
    """
    chosen = dict(settings)
    config_class = CONFIG_MAPPING[chosen.pop("model_type", DEFAULT_MODEL_TYPE)]
    if hasattr(config_class, "for_tokenizer"):
        return config_class.for_tokenizer(tokenizer, **chosen)
    special = {name: getattr(tokenizer, name) for name in SPECIAL_IDS}
    return config_class(vocab_size=len(tokenizer), **{**special, **chosen})


def objective_model(
    recipe: RowsRecipe,
    rows: Dataset,
    labels: dict[str, Any],
    finder: Any,
    start: Path | None,
    say: Callable[[str], object],
) -> tuple[PreTrainedModel, Any]:
    """A new model with its tokenizer, or a checkpoint's, with a head for the objective."""
    aim = recipe.aim
    if recipe.checkpoint is not None:
        with section("checkpoint"):
            model, tokenizer, new = load_for(
                recipe.checkpoint, aim.auto, {**recipe.model, **labels}, aim.trains
            )
            _use_rules(tokenizer, recipe)
        tokenizer = _transducing(tokenizer, recipe)
        with section("checkpoint"):
            check_segments(model.config, tokenizer, recipe.checkpoint)
        if new:
            say(f"{recipe.checkpoint}: {len(new)} weights are new: {', '.join(new[:4])}")
        return model, tokenizer
    with section("tokenizer"):
        if start is not None:  # a WordPiece made again of the same texts may have other ids
            _, tokenizer = load_parts(start, answers=False)
        else:
            texts = aim.texts(rows, recipe.data, finder)
            tokenizer = make_tokenizer(recipe.tokenizer, texts, recipe.symbols)
    if start is None:
        tokenizer = _transducing(tokenizer, recipe)
    with section("model"):
        settings = {**recipe.model, **labels}
        config_class = CONFIG_MAPPING[settings["model_type"]]
        if recipe.symbols and "symbol_seed" in model_of(config_class).model_fields:
            settings = {"symbol_seed": recipe.training.get("seed", 42), **settings}
        config = config_for(tokenizer, settings)
    if start is None and recipe.symbols and getattr(config, "learns_names", True):
        tokenizer.name_symbols(texts)
    return aim.auto.from_config(config), tokenizer


def _transducing(tokenizer: Any, recipe: RowsRecipe) -> Any:
    """A tokenizer with the recipe's transducer, if it names one."""
    with section("transducer"):
        return with_transducer(tokenizer, recipe.transducer) if recipe.transducer else tokenizer


def say_segments(model: PreTrainedModel, tokenizer: Any, say: Callable[[str], object]) -> None:
    """Say what becomes of the segments that a tokenizer finds."""
    if not hasattr(tokenizer, "segment_labels"):
        return
    labels, kind = tokenizer.segment_labels, model.config.model_type
    if not reads_segments(model):
        say(f"segments: a {kind!r} model takes none: those of the transducer are left out")
        return
    shown = ", ".join(labels[:5]) + ", ..." * (len(labels) > 5)
    say(f"segments: {len(labels):,} labels: {shown}")


def _use_rules(tokenizer: Any, recipe: RowsRecipe) -> None:
    """Have a checkpoint's tokenizer find names by the recipe's rules."""
    if recipe.symbols and not isinstance(tokenizer, TextTokenizer):
        raise ValueError(f"{recipe.checkpoint} has no symbols: leave out the key 'symbols'")
    if isinstance(tokenizer, TextTokenizer) and not tokenizer.symbols_are_words:
        tokenizer.use_rules(recipe.symbols)


__all__ = [
    "SPECIAL_IDS",
    "complete_rules",
    "config_for",
    "objective_model",
    "prepare_model",
    "say_segments",
]
