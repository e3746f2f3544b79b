"""The recipe beside a trained model, and whose code it may name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_alpha.checkpoints.imported_code import import_object
from hf_alpha.checkpoints.places import file_of
from hf_alpha.io.inside import OutsideError, inside
from hf_alpha.io.settings import RecipeError
from hf_alpha.loading import ANSWERING, auto_class, load_config, load_parts
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks import DrawnTask, get_task
from hf_alpha.tasks.registry import built_in_tasks, task_names
from hf_alpha.trust import UntrustedCodeError, is_trusted, refused_code, was_trained_here

from .schema import Data, Recipe
from .yaml import RECIPE_FILE, read_recipe

SOMEWHERE = ""
"""In place of `data.train`: the data is the user's own, but nothing says where it is."""


def named_code(recipe: Recipe) -> dict[str, str]:
    """Return all code that a recipe names: key -> `module:name`."""
    rules = [(name, rule) for name, rule in recipe.symbols.items() if isinstance(rule, dict)]
    names = {
        "task": recipe.task,
        **{f"symbols.{name}.function": rule.get("function") for name, rule in rules},
        "check": recipe.check,
        **{f"measures.{name}": path for name, path in recipe.measures.items()},
        "data.format": recipe.data.format,
    }
    return {key: name for key, name in names.items() if isinstance(name, str) and ":" in name}


def recipe_of(model: str) -> Recipe | None:
    """Return the recipe beside a model, in a folder or on the Hub; None if there is none.

    Raises:
        RecipeError: it cannot be read.
        OutsideError: it extends one outside of its folder.
        UntrustedCodeError: it names code, which is not trusted: see `hf_alpha.trust`.
    """
    recipe = recipe_beside(model)
    if recipe is not None:
        _check_code(named_code(recipe), model, f"{model}/{RECIPE_FILE}")
    return recipe


def recipe_beside(model: str) -> Recipe | None:
    """Return the recipe beside a model as `recipe_of`, whatever code it names.

    Others may have written it: then it has no places of data but those in its folder.
    """
    file = file_of(model, RECIPE_FILE, reachable=False)
    if file is None:
        return None
    by_others = not was_trained_here(file.parent)
    recipe = read_recipe(file, within=file.parent)
    return _confined(recipe, file.parent.absolute()) if by_others else recipe


def _confined(recipe: Recipe, folder: Path) -> Recipe:
    """Leave out what a recipe takes from elsewhere: a dataset of the Hub too, by anybody's token.

    Args:
        recipe: by others.
        folder: where it lies, in full: then nothing in it is a name on the Hub.
    """
    keys = ("path", "train", "validation", "test")
    places = {key: _within(folder, getattr(recipe.data, key)) for key in keys}
    places["more"] = recipe.data.more and [
        each.model_copy(update={"path": _within(folder, each.path)}) for each in recipe.data.more
    ]
    if recipe.has_user_data and places["train"] is None:
        places["train"] = SOMEWHERE
    return recipe.model_copy(
        update={"checkpoint": None, "data": recipe.data.model_copy(update=places)}
    )


def _within(folder: Path, place: Any) -> Any:
    """Return a place of data, if it is in a folder, else None."""
    try:
        if isinstance(place, dict):
            return {**place, "path": f"{inside(folder, place['path'])}"}
        return f"{inside(folder, place)}" if isinstance(place, str) else None
    except (OutsideError, KeyError):
        return None


def writes_answers(model: str) -> bool:
    """Whether a model answers problems: it can, and was not trained for another objective.

    Args:
        model: folder or Hub name.
    """
    if auto_class(load_config(model)) not in ANSWERING:
        return False
    recipe = recipe_beside(model)
    return recipe is None or recipe.aim.answers


def _check_code(names: Mapping[str, str], model: str, file: str | Path) -> None:
    """Refuse code that a model's folder names, unless it is trusted; then find it.

    Args:
        names: of the code: key -> `module:name`.
        model: the folder or Hub name.
    """
    if not names:
        return
    if untrusted := refused_code(model, names):
        raise UntrustedCodeError(file, untrusted)
    if is_trusted(model):
        for key, name in names.items():
            import_object(name, key, "package.module:name", here=False)


def recipe_for(model: str, task: str | None = None) -> Recipe:
    """Return the recipe beside a model; without one, its tokenizer says task and names.

    Args:
        model: folder or Hub name.
        task: what the model is used for, if that is said; it has to read what the model reads.

    Raises:
        FileNotFoundError: there is no such model.
        RecipeError: the recipe cannot be read, nothing says what the task is, or the model is for
            another one.
        UntrustedCodeError: recipe or tokenizer name code, which is not trusted.
        ValueError: the model has no symbols, or there is no such task.
    """
    recipe = recipe_of(model) or _recipe_by_tokenizer(model, task)
    if task in (None, recipe.task):
        return recipe
    named_task, grammar = get_task(str(task)), recipe.configured_task.grammar
    if grammar != named_task.grammar:
        raise RecipeError(
            f"{model} is for the task {recipe.task!r}, not for {task!r}: leave out --task, or name "
            "another model"
        )
    if isinstance(named_task, DrawnTask):
        return Recipe.model_construct(task=str(task), data=Data())
    return recipe.model_copy(update={"task": str(task)})


def _recipe_by_tokenizer(model: str, task: str | None) -> Recipe:
    """Return a recipe for a model without one; it does not say where training data is."""
    _, tokenizer = load_parts(model)
    if isinstance(tokenizer, TextTokenizer):
        pairs_task = next(n for n in built_in_tasks() if not isinstance(get_task(n), DrawnTask))
        data = Data.model_construct(train=SOMEWHERE)
        return Recipe.model_construct(
            task=pairs_task, data=data, symbols=rules_of(tokenizer, model)
        )
    if tokenizer.grammar is not None:
        tasks = ((name, get_task(name)) for name in built_in_tasks())
        fitting = (
            name for name, one in tasks if tokenizer.grammar in (one.model_grammar, one.grammar)
        )
        task = next(fitting, task)
    if task is None:
        raise RecipeError(
            f"{model} has no {RECIPE_FILE}, and its tokenizer does not say which task it is for: "
            f"name it by --task: {', '.join(task_names())}"
        )
    return Recipe.model_construct(task=task, data=Data())


def rules_of(tokenizer: TextTokenizer, model: str) -> dict[str, Any]:
    """Return class -> the rule for names of a tokenizer, or the words that are its symbols.

    Args:
        model: folder or Hub name.

    Raises:
        UntrustedCodeError: a rule names a function, which is not trusted.
    """
    if tokenizer.symbols_are_words:
        return {name: {"tokens": words} for name, words in tokenizer.symbol_words().items()}
    rules = tokenizer.finder.rules.items()
    functions = {f"symbols.{name}.function": rule.function for name, rule in rules if rule.function}
    _check_code(functions, model, f"{model}/tokenizer_config.json")
    return tokenizer.finder.to_dict()
