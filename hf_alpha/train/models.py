"""The model of a recipe and its tokenizer: new ones, or a checkpoint's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedModel

from hf_alpha.io.settings import model_of, section
from hf_alpha.loading import (
    answering_parts,
    auto_class,
    config_for,
    load_answering,
    load_checkpoint,
    load_parts,
)
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives import Examples
from hf_alpha.recipe import DEFAULT_MODEL_TYPE, Recipe, RecipeError, rules_of


def prepare_model(
    recipe: Recipe,
    examples: Examples | None = None,
    start: Path | None = None,
    finished: Path | None = None,
    say: Callable[[str], object] = print,
) -> tuple[PreTrainedModel, Any]:
    """Return the model to train and its tokenizer: new ones, or the checkpoint's.

    Args:
        examples: its data, from which a new tokenizer is made, if it has been read.
        start: the run's last checkpoint, if it goes on there.
        finished: the model of a finished run, which is taken as it is.
        say: is told what is new in a checkpoint's model.

    Raises:
        RecipeError: a setting of the model has a wrong kind or value, or the checkpoint's symbols
            do not fit the recipe's.
    """
    objective = recipe.aim
    examples = objective.examples(recipe, say) if examples is None else examples
    if finished is not None:
        model, tokenizer = load_trained(finished, objective.answers)
    elif recipe.checkpoint is not None:
        model, tokenizer = objective.load(recipe, examples, say)
    else:
        model, tokenizer = _new_model(recipe, examples, start)
    if examples.finder is not None and isinstance(tokenizer, TextTokenizer):
        tokenizer.finder.take_functions(examples.finder)
    objective.fit(recipe, model, tokenizer, say)
    return model, tokenizer


def load_trained(place: Path, answers: bool) -> tuple[PreTrainedModel, Any]:
    """Load what a run has saved."""
    return load_answering(place) if answers else load_checkpoint(place, answers=False)


def _new_model(
    recipe: Recipe, examples: Examples, start: Path | None
) -> tuple[PreTrainedModel, Any]:
    """Return a new model and its tokenizer."""
    tokenizer = recipe.aim.new_tokenizer(recipe, examples, start)
    settings = {"model_type": DEFAULT_MODEL_TYPE, **recipe.model, **examples.model_settings}
    with section("model"):
        fields = model_of(CONFIG_MAPPING[settings["model_type"]]).model_fields
        if "symbol_seed" in fields and getattr(tokenizer, "symbol_classes", None):
            settings = {"symbol_seed": recipe.seed, **settings}
        config = config_for(tokenizer, settings)
        model = (recipe.aim.auto or auto_class(config)).from_config(config)
    if isinstance(tokenizer, TextTokenizer) and getattr(config, "learns_names", True):
        tokenizer.name_symbols(examples.texts)
    return model, tokenizer


def complete_rules(recipe: Recipe, say: Callable[[str], object]) -> Recipe:
    """Return a recipe with a checkpoint, for own pairs with what that says of names.

    Those are the rules, where the recipe has none; or what the only class is called.
    """
    if not recipe.has_user_data or len(recipe.symbols) > 1:
        return recipe
    answers, checkpoint = recipe.aim.answers, str(recipe.checkpoint)
    _, tokenizer = answering_parts(checkpoint) if answers else load_parts(checkpoint, answers=False)
    if recipe.symbols:
        return _with_class_of(tokenizer, recipe, say)
    reads_texts = isinstance(tokenizer, TextTokenizer)
    if not answers and not reads_texts:
        return recipe
    rules = rules_of(tokenizer, checkpoint) if reads_texts else {}
    rules = {name: {k: v for k, v in rule.items() if k != "count"} for name, rule in rules.items()}
    if not reads_texts or not all(rules.values()):
        raise RecipeError(
            f"the key 'symbols' is missing: say which words are names; {recipe.checkpoint} does "
            "not say it either"
        )
    return recipe.model_copy(update={"symbols": rules})


def _with_class_of(tokenizer: Any, recipe: Recipe, say: Callable[[str], object]) -> Recipe:
    """Return a recipe whose one class is called as the only one of a tokenizer: all names."""
    classes = list(tokenizer.finder.rules) if isinstance(tokenizer, TextTokenizer) else []
    ((recipe_class, rule),) = recipe.symbols.items()
    if len(classes) != 1 or classes == [recipe_class]:
        return recipe
    say(f"symbols: {recipe_class!r} is the class {classes[0]!r} of {recipe.checkpoint}")
    return recipe.model_copy(update={"symbols": {classes[0]: rule}})
