"""Recipes: YAML files that say what is trained, on which data, and how.

This module reads, checks, compares and writes them; `hf_alpha.train` runs them.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from transformers import CONFIG_MAPPING, PreTrainedConfig, Seq2SeqTrainingArguments
from transformers.utils.hub import cached_file

from hf_alpha.auto import MODEL_TYPES, SYMBOL_MODEL_TYPES
from hf_alpha.data.drawn import DrawnProblems
from hf_alpha.data.generate import generate
from hf_alpha.folders import replacing
from hf_alpha.loading import load_config, load_parts
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives import ANSWER, OBJECTIVES, Objective, objective_of, objective_settings
from hf_alpha.objectives.formats import FORMATS
from hf_alpha.own_code import own_object
from hf_alpha.resources import recipe_file
from hf_alpha.settings import (
    RecipeError,
    Setting,
    UnknownKeyError,
    check_keys,
    check_settings,
    meaning,
    object_schema,
    settings_of,
)
from hf_alpha.tasks import Task, get_task
from hf_alpha.tasks.registry import built_in_tasks, task_names
from hf_alpha.trust import UntrustedCodeError, is_trusted, refused_code

RECIPE_FILE = "recipe.yaml"
DEFAULT_MODEL_TYPE = "alpha"
REQUIRED_KEYS = ("task", "data", "training")
# What a recipe may not say because it follows from something else.
FROM_TOKENIZER = {
    "vocab_size": "num_symbols",
    "num_base_tokens": "num_symbols",
    "symbol_classes": "num_symbols",
    "symbol_ranges": "num_symbols",
    "segment_labels": "transducer",
}
"""Field of a model's configuration -> the key that it follows from."""
SECRETS = tuple(key for key in settings_of(Seq2SeqTrainingArguments) if key.endswith("token"))
"""Settings of training that stand in no file."""
HUB_TOKEN = re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}")
"""What a token of the Hub looks like, wherever it stands."""
FROM_RECIPE = ("task", "out_dir", "num_workers", "tokenizer", "split")
ANSWER_KEYS = {"drop_bad", "streaming", "max_answer_samples"}
"""What is said of pairs that are answered only."""
ROW_KEYS = {"pair", "format", "where"}
"""What is said of rows that are not answered only."""
OWN_KEYS = {"source", "target", "test", "encoding", *ANSWER_KEYS, *ROW_KEYS}
TEXT_KEYS = ("symbols", "tokenizer", "transducer", "check", "measures", "ignore_whitespace")
"""What is said of the user's own pairs only."""
PLACES = {
    name: Setting(name, str | None, None, f"{name} of a dataset on the Hub, with `train`")
    for name in ("config", "split")
}
AIM = Setting("name", str, ANSWER, "of the objective")
EXTENDS = Setting(
    "extends",
    str,
    None,
    "the recipe that this one starts from: a name in the same folder (learned), task/name, or a "
    "path. Mappings are merged key by key, null removes a key, training.output_dir is not taken "
    "over.",
)


@dataclass
class DataSettings:
    """Where the data lies, and how it is generated if it is not there yet; or how it is drawn.

    Of the user's own data (`train`) nothing is generated.
    """

    path: str | None = field(
        default=None, metadata=meaning("folder of a dataset; made by `generate` when absent")
    )
    generate: dict[str, Any] = field(
        default_factory=dict, metadata=meaning("how the dataset is generated")
    )
    draw: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "in place of a folder: problems are drawn when they are needed, those for validation "
            "from other seeds"
        ),
    )
    train: str | dict[str, Any] | None = field(
        default=None,
        metadata=meaning(
            "your own pairs of texts: a file (jsonl, csv, tsv, parquet), a folder of such files, a "
            "dataset on the Hub (owner/name), or a mapping with `path`, and `config` and `split`"
        ),
    )
    source: str = field(default="source", metadata=meaning("column of what is asked, with `train`"))
    target: str = field(
        default="target",
        metadata=meaning("column of the right answer, of the class or of the tags, with `train`"),
    )
    pair: str | None = field(
        default=None, metadata=meaning("class: column of the second text, if there is one")
    )
    format: str | None = field(
        default=None,
        metadata=meaning(
            f"how files are written, where they have no such columns: {', '.join(FORMATS)}, or "
            "package.module:function of your own, from a path to rows"
        ),
    )
    where: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "column -> value, or list of values: other rows are left out; of objectives that do "
            "not answer"
        ),
    )
    test: str | dict[str, Any] | None = field(
        default=None, metadata=meaning("what `hf-alpha evaluate` takes by default, with `train`")
    )
    encoding: str | None = field(
        default=None, metadata=meaning("of your files, where it is not UTF-8")
    )
    drop_bad: bool = field(
        default=False,
        metadata=meaning("leave out pairs that cannot be learned, and count them, with `train`"),
    )
    streaming: bool = field(
        default=False,
        metadata=meaning("read `train` while training, for what does not fit on the disk"),
    )
    validation: float | str | dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "`path`, and `generate` or not, of another dataset whose validation problems give the "
            "loss during training: with more names than training has, say, to choose a checkpoint "
            "by (`training.load_best_model_at_end`). With `train`: a share of it, or pairs as there"
        ),
    )
    max_train_samples: int | None = field(
        default=None,
        metadata=meaning("use only the first so many (the papers' `reduced`: 80,000)", least=1),
    )
    max_eval_samples: int = field(
        default=2000, metadata=meaning("validation samples for the loss during training", least=1)
    )
    max_answer_samples: int = field(
        default=64,
        metadata=meaning(
            "validation samples that are answered, with `train`, whenever there is a validation "
            "loss; the share of right answers is `eval_correct`",
            least=0,
        ),
    )
    num_workers: int = field(
        default=1, metadata=meaning("processes that generate and tokenise", least=1)
    )


@dataclass
class Recipe:
    """One trained model."""

    @property
    def solved(self) -> Task:
        """The task, with what the recipe says of it.

        Raises:
            RecipeError: there is no such task, or it has no such settings.
        """
        own: dict[str, Any] = {
            "symbols": self.symbols,
            "check": self.check,
            "measures": self.measures,
            "ignore_whitespace": self.ignore_whitespace,
        }
        try:
            return get_task(self.task).configured(**{k: v for k, v in own.items() if v})
        except ValueError as error:
            raise RecipeError(f"{error}") from error

    @property
    def aim(self) -> Objective | None:
        """The objective; None where the model answers with text.

        Raises:
            RecipeError: there is no such objective, or it has no such settings.
        """
        return objective_of(self.objective)

    task: str = field(metadata=meaning("name of the task"))
    data: DataSettings = field(metadata=meaning("where the data comes from"))
    training: dict[str, Any] = field(
        metadata=meaning("fields of `Seq2SeqTrainingArguments`; `output_dir` is required")
    )
    objective: str | dict[str, Any] = field(
        default=ANSWER,
        metadata=meaning(
            f"what the model is trained for: {ANSWER}, or without answers in text "
            f"{', '.join(OBJECTIVES)}; or a mapping with `name` and settings of that objective"
        ),
    )
    num_symbols: int | None = field(
        default=None,
        metadata=meaning(
            "symbols of each class in the vocabulary; by default the tokenizer's 10", least=1
        ),
    )
    symbols: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "with `data.train`: class -> rule by which names are found in your texts: a regular "
            "expression, a list of names, or a mapping with one of `pattern`, `tokens`, `column` "
            "and `function`, and `count` and `reserved`"
        ),
    )
    tokenizer: str = field(
        default="words",
        metadata=meaning(
            "with `data.train`: words, characters, bpe:8000, or the folder or Hub name of any fast "
            "tokenizer; of objectives that do not answer also wordpiece:8000"
        ),
    )
    transducer: str | dict[str, Any] = field(
        default="",
        metadata=meaning(
            "of objectives that do not answer: what finds segments in the texts: the folder of a "
            "saved transducer, or a mapping with `lexicon`, `rules` and other settings of one"
        ),
    )
    check: str | None = field(
        default=None,
        metadata=meaning(
            "package.module:function of your own: from source, answer and target to yes or no, or "
            "a verdict; without it an answer is right if it is the target"
        ),
    )
    measures: dict[str, str] = field(
        default_factory=dict,
        metadata=meaning(
            "name -> package.module:function of your own, from the lists `predictions` and "
            "`references` to a number or a mapping of numbers (or an object with such a `compute`, "
            "as those of the package evaluate), which stand below the table of an evaluation"
        ),
    )
    ignore_whitespace: bool = field(
        default=False, metadata=meaning("answers that differ in whitespace only are the same")
    )
    model: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "`model_type` and fields of its configuration, for a new model; vocabulary fields "
            "come from the tokenizer"
        ),
    )
    optimizer: str | dict[str, Any] = field(
        default="",
        metadata=meaning(
            "in place of `training.optim`, one of the package pytorch_optimizer, such as lamb; or "
            "a mapping with `name` and its arguments. Learning rate, betas and epsilon are those "
            "of `training`"
        ),
    )
    checkpoint: str | None = field(
        default=None,
        metadata=meaning("folder or Hub name of a model to go on from, in place of `model`"),
    )


def read_recipe(path: str | Path, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe, with those that it extends, and apply overrides: `training.max_steps=10`.

    `path` is a file, or the name of a shipped recipe such as `propositional/debug`.

    Raises:
        RecipeError: no such recipe, an unknown key, or a value of the wrong kind; or recipes that
            extend each other in a circle.
    """
    file = _find(path)
    content, origins = _flattened(file, ())
    changes: dict[str, Any] = {}
    for override in overrides or []:
        _override(content, override)
        _override(changes, override)
    _replace_model(content, changes)
    try:
        return parse_recipe(content, str(file))
    except UnknownKeyError as error:
        raise _with_origin(error, file, origins) from error


def named_code(recipe: Recipe) -> dict[str, str]:
    """Return all code that a recipe names: key -> `module:name`."""
    rules = {f"symbols.{name}": rule for name, rule in recipe.symbols.items()}
    names = {
        "task": recipe.task,
        "check": recipe.check,
        "data.format": recipe.data.format,
        **{f"measures.{name}": path for name, path in recipe.measures.items()},
        **{f"{key}.function": r.get("function") for key, r in rules.items() if isinstance(r, dict)},
    }
    return {key: name for key, name in names.items() if isinstance(name, str) and ":" in name}


def recipe_of(model: str) -> Recipe | None:
    """The recipe beside a model, in a folder or on the Hub; None if there is none.

    Raises:
        RecipeError: it cannot be read.
        UntrustedCodeError: it names code, which is not trusted: see `hf_alpha.trust`.
    """
    file = Path(model) / RECIPE_FILE
    if not Path(model).is_dir():
        found = cached_file(
            model, RECIPE_FILE, _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_gated_repo=False, _raise_exceptions_for_connection_errors=False,
        )  # fmt: skip
        file = Path(found) if found is not None else file
    if not file.is_file():
        return None
    recipe = read_recipe(file)
    _check_code(named_code(recipe), model, file)
    return recipe


def _check_code(names: Mapping[str, str], model: str, file: str | Path) -> None:
    """Refuse code that a model's folder names, unless it is trusted; then find it.

    Args:
        names: of the code: key -> `module:name`.
        model: the folder or Hub name.
        file: what names the code, for errors.
    """
    if refused := refused_code(model, names):
        raise UntrustedCodeError(file, refused)
    if is_trusted(model):
        for key, name in names.items():
            own_object(name, key, "package.module:name", here=False)


def recipe_for(model: str, task: str | None = None) -> Recipe:
    """The recipe beside a model; of one without, what its tokenizer says of its task and names.

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
    load_config(model)
    recipe = recipe_of(model) or _recipe_by_tokenizer(model, task)
    if task in (None, recipe.task):
        return recipe
    solved, grammar = get_task(str(task)), recipe.solved.grammar
    if grammar != solved.grammar:
        raise RecipeError(
            f"{model} is for the task {recipe.task!r}, not for {task!r}: leave out --task, or name "
            "another model"
        )
    own = dataclasses.replace(recipe, task=str(task))
    return own if solved.own_data else Recipe(str(task), DataSettings(), {})


def _recipe_by_tokenizer(model: str, task: str | None) -> Recipe:
    """What a recipe would say of a model that has none."""
    _, tokenizer = load_parts(model)
    if isinstance(tokenizer, TextTokenizer):
        own = next(name for name in built_in_tasks() if get_task(name).own_data)
        return Recipe(own, DataSettings(), {}, symbols=rules_of(tokenizer, model))
    if tokenizer.grammar is not None:
        known = ((name, get_task(name)) for name in built_in_tasks())
        fitting = (
            name for name, one in known if tokenizer.grammar in (one.model_grammar, one.grammar)
        )
        task = next(fitting, task)
    if task is None:
        raise RecipeError(
            f"{model} has no {RECIPE_FILE}, and its tokenizer does not say which task it is for: "
            f"name it by --task: {', '.join(task_names())}"
        )
    return Recipe(task, DataSettings(), {})


def rules_of(tokenizer: TextTokenizer, model: str) -> dict[str, Any]:
    """Class -> rule by which a tokenizer finds names; where symbols are words, those words.

    Args:
        tokenizer: of the model.
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


def _find(path: str | Path) -> Path:
    try:
        return recipe_file(path)
    except FileNotFoundError as error:
        raise RecipeError(f"{error}") from error


def _with_origin(error: UnknownKeyError, file: Path, origins: Mapping[str, Path]) -> RecipeError:
    """The error; of a key that an extended recipe brought, one that says where it stands."""
    section = [part for part in error.where.removeprefix(str(file)).split(": ") if part]
    places = {key: origins.get(".".join([*section, str(key)]), file) for key in error.keys}
    key, place = next(iter(places.items()))
    if place == file:
        return error
    nulls = ", ".join(f"{key}: null" for key, place in places.items() if place != file)
    model = ", or name a 'checkpoint' in place of the model" if section == ["model"] else ""
    return RecipeError(
        f"{error.where}: unknown key {key!r}, taken over from {place}: leave out what does not fit "
        f"by {{{nulls}}}{model}"
    )


def _flattened(file: Path, children: tuple[Path, ...]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return a recipe's content with everything that it takes over from others.

    Args:
        file: of the recipe.
        children: the recipes that extend it, the first one first.

    Returns:
        The content, and dotted key -> the file in which it stands, the last one to say it.
    """
    chain = (*children, file.resolve())
    if chain[-1] in children:
        raise RecipeError(f"recipes extend each other in a circle: {_shown(chain)}")
    content = _read(file)
    parent = content.pop("extends", None)
    origins = dict.fromkeys(_dotted(content), file)
    if parent is None:
        return content, origins
    if not isinstance(parent, str):
        raise RecipeError(f"{_shown(chain)}: 'extends' must be the name of one recipe")
    try:
        parent_file = _find_parent(parent, file.parent)
    except RecipeError as error:
        raise RecipeError(f"{_shown(chain)} -> {parent!r}: {error}") from error
    base, before = _flattened(parent_file, chain)
    if isinstance(base.get("training"), dict):
        base["training"].pop("output_dir", None)  # two runs do not share a folder
    _replace_model(base, content)
    return _merged(base, content), before | origins


def _replace_model(content: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Remove the model where changes name a checkpoint, which brings its own."""
    if changes.get("checkpoint") is not None and "model" not in changes:
        content.pop("model", None)


def _shown(chain: Iterable[Path]) -> str:
    return " -> ".join(map(str, chain))


def _find_parent(name: str, folder: Path) -> Path:
    """Return the file of a recipe that one in `folder` extends."""
    for candidate in (folder / f"{name}.yaml", folder / name):
        if candidate.is_file():
            return candidate
    return _find(name)


def _dotted(content: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all values and mappings."""
    for key, value in content.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key; what is null in `changes` is left out, lists are replaced."""
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _read(file: Path) -> dict[str, Any]:
    try:
        content = _parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise RecipeError(f"{file}: no UTF-8 text: {error}") from error
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    return content


def parse_recipe(content: dict[str, Any], where: str = "recipe") -> Recipe:
    """Check a recipe's keys and kinds of values; see [`read_recipe`]."""
    check_keys(content, settings_of(Recipe), where)
    for key in REQUIRED_KEYS:
        if key not in content:
            raise RecipeError(f"{where}: the key {key!r} is missing")
    _check_private(content, where)
    check_settings(content, settings_of(Recipe), where)
    data, training = content["data"], content["training"]
    check_settings(data, settings_of(DataSettings), f"{where}: data")
    aim = objective_of(content.get("objective", ANSWER), where)
    _check_source(data, f"{where}: data")
    check_settings(training, _training_settings(), f"{where}: training")
    if "output_dir" not in training:
        raise RecipeError(f"{where}: training: the key 'output_dir' is missing")
    _check_model(content, aim, where)
    _check_texts(content, aim, where)
    return Recipe(**{**content, "data": DataSettings(**data)})


def check_shareable(file: Path) -> None:
    """Check that a recipe's file may be shared.

    Raises:
        RecipeError: there is a secret in it, or it is no recipe.
    """
    _check_private(_read(file), str(file))


def _check_private(content: Mapping[str, Any], where: str) -> None:
    """Check that nothing is in a recipe, and nothing uploaded by it, that is for nobody else.

    It comes before all checks that quote values, and once more before a recipe is written.
    """
    for key, value in leaves(content):
        section, _, name = key.partition(".")
        if (section == "training" and name.endswith("token")) or HUB_TOKEN.search(value):
            raise RecipeError(
                f"{where}: {key!r} is a secret, and recipes are shared: leave it out, and log in "
                "with hf auth login, or set HF_TOKEN in the environment"
            )
        if key == "training.push_to_hub" and value == "true":
            raise RecipeError(
                f"{where}: {key!r} would upload all that lies in the output folder: leave it out, "
                "and share the trained model with hf-alpha push"
            )


def _check_source(data: dict[str, Any], where: str) -> None:
    """Check that data comes from one place, and the arguments of what makes it."""
    if data.get("train") is not None:
        _check_own(data, where)
        return
    if own := sorted(data.keys() & OWN_KEYS):
        raise RecipeError(f"{where}: {own[0]!r} is for your own pairs: the key 'train' is missing")
    if data.get("path") is None and not data.get("draw"):
        raise RecipeError(f"{where}: the key 'path' is missing, or 'draw' in its place")
    if data.get("draw") and (data.get("path") is not None or data.get("generate")):
        raise RecipeError(f"{where}: give either 'draw' or 'path' with 'generate', not both")
    _check_generation(data.get("generate", {}), f"{where}: generate")
    check_keys(data.get("draw", {}), _drawing_settings(), f"{where}: draw")
    if validation := data.get("validation"):
        if not isinstance(validation, dict):
            raise RecipeError(f"{where}: 'validation' must be a mapping, not {validation!r}")
        place = f"{where}: validation"
        check_settings(validation, _validation_settings(), place)
        if validation.get("path") is None:
            raise RecipeError(f"{place}: the key 'path' is missing")
        _check_generation(validation.get("generate", {}), f"{place}: generate")


def _check_own(data: dict[str, Any], where: str) -> None:
    """Check the keys of the user's own pairs."""
    for key in ("path", "generate", "draw"):
        if data.get(key):
            raise RecipeError(f"{where}: give either 'train' or {key!r}, not both")
    for key in ("train", "validation", "test"):
        if isinstance(part := data.get(key), dict) and part:
            check_keys(part, ("path", "config", "split"), f"{where}: {key}")
            if part.get("path") is None:
                raise RecipeError(f"{where}: {key}: the key 'path' is missing")
    share = data.get("validation")
    if isinstance(share, int | float) and not 0 < share < 1:
        raise RecipeError(
            f"{where}: 'validation' is {share}: give a share between 0 and 1, or a file"
        )


def _check_generation(generate: dict[str, Any], where: str) -> None:
    check_settings(generate, _generation_settings(), where)
    sizes = generate.get("sizes", [1, 1])
    if not isinstance(sizes, list) or [type(size) for size in sizes] != [int, int]:
        raise RecipeError(f"{where}: 'sizes' must be [smallest, largest], not {sizes!r}")


def _check_texts(content: dict[str, Any], aim: Objective | None, where: str) -> None:
    """Check that what is said of texts is said of the user's own pairs, and that names are."""
    own = content["data"].get("train") is not None
    for key in TEXT_KEYS:
        if content.get(key) and not own:
            raise RecipeError(f"{where}: {key!r} is for your own pairs: 'data' has no 'train'")
    if aim is not None:
        _check_aim(content, aim, where)
        return
    said = [f"data: {key!r}" for key in sorted(content["data"].keys() & ROW_KEYS)]
    if said := said + ["'transducer'"] * bool(content.get("transducer")):
        raise RecipeError(
            f"{where}: {said[0]} is for an objective that does not answer: name one of "
            f"{', '.join(OBJECTIVES)} as 'objective'"
        )
    if own and not content.get("symbols") and content.get("checkpoint") is None:
        raise RecipeError(
            f"{where}: the key 'symbols' is missing: say which words are names, such as "
            "symbols: {variable: {pattern: '[a-z][0-9]*', count: 10}}"
        )


def _check_aim(content: dict[str, Any], aim: Objective, where: str) -> None:
    """Check what goes with an objective that does not answer."""
    if content["data"].get("train") is None:
        raise RecipeError(f"{where}: data: the key 'train' is missing, with the rows to train on")
    said = [key for key in ("check", "measures", "ignore_whitespace") if content.get(key)]
    said += [f"data.{key}" for key in sorted(content["data"].keys() & ANSWER_KEYS)]
    if said:
        raise RecipeError(f"{where}: {said[0]!r} is for answers, which {aim.name!r} does not give")
    if content.get("transducer") and not aim.takes_segments:
        raise RecipeError(f"{where}: the objective {aim.name!r} does not take a 'transducer'")
    if content.get("transducer") and content.get("symbols"):
        raise RecipeError(f"{where}: give either 'symbols' or a 'transducer', not both")


def _check_model(content: dict[str, Any], aim: Objective | None, where: str) -> None:
    """Check the keys of the model's configuration; the class itself checks the values."""
    model = content.get("model", {})
    for key, said in FROM_TOKENIZER.items():
        if key in model:
            raise RecipeError(f"{where}: model: {key!r} follows from the key {said!r}; drop it")
    model_type = model.get("model_type", DEFAULT_MODEL_TYPE)
    if aim is None or content.get("checkpoint") is None:
        check_keys(model, _model_settings(model_type, where, aim), f"{where}: model")
    if model and content.get("checkpoint") is not None:
        raise RecipeError(f"{where}: give either 'checkpoint' or 'model', not both")


def _generation_settings() -> dict[str, Setting]:
    return settings_of(generate, without=FROM_RECIPE)


def _training_settings() -> dict[str, Setting]:
    return settings_of(Seq2SeqTrainingArguments, without=SECRETS)


def _validation_settings() -> dict[str, Setting]:
    return {name: settings_of(DataSettings)[name] for name in ("path", "generate")}


def _drawing_settings() -> dict[str, Setting]:
    return settings_of(DrawnProblems, without=FROM_RECIPE)


def _model_settings(
    model_type: str, where: str = "recipe", aim: Objective | None = None
) -> dict[str, Setting]:
    """Return the settings of a type of model, those left out that come from the tokenizer."""
    return _settings_of_config(_config_class(model_type, where, aim))


def _settings_of_config(config_class: type[PreTrainedConfig]) -> dict[str, Setting]:
    kind = Setting("model_type", str, DEFAULT_MODEL_TYPE, "type of the model")
    return {"model_type": kind, **settings_of(config_class, without=FROM_TOKENIZER)}


def _all_model_settings() -> dict[str, Setting]:
    """Return the settings of all types of models; where they share one, that of the first type."""
    found: dict[str, Setting] = {}
    for model_type in MODEL_TYPES:
        found = {**_settings_of_config(CONFIG_MAPPING[model_type]), **found}
    return found


def _config_class(
    model_type: str, where: str, aim: Objective | None = None
) -> type[PreTrainedConfig]:
    if aim is not None:
        return _config_class_for(aim, model_type, where)
    if not _is_type(model_type) or "symbol_classes" not in settings_of(CONFIG_MAPPING[model_type]):
        raise RecipeError(
            f"{where}: model: no model with symbols is of 'model_type' {model_type!r}; known: "
            f"{', '.join(SYMBOL_MODEL_TYPES)}"
        )
    return CONFIG_MAPPING[model_type]


def _is_type(model_type: Any) -> bool:
    return isinstance(model_type, str) and model_type in CONFIG_MAPPING


def _config_class_for(aim: Objective, model_type: str, where: str) -> type[PreTrainedConfig]:
    """Return the configuration of a type of model that an objective can train."""
    found = CONFIG_MAPPING[model_type] if _is_type(model_type) else None
    if found is None or found not in aim.auto._model_mapping:
        raise RecipeError(
            f"{where}: model: no 'model_type' {model_type!r} is trained by the objective "
            f"{aim.name!r}: name one that {aim.trains} knows, such as bert"
        )
    return found


def describe_settings() -> str:
    """Return a text with every key of a recipe: its type, default and meaning."""
    sections = {
        "": _recipe_settings(),
        "data": settings_of(DataSettings).values(),
        "data.generate": _generation_settings().values(),
        "data.draw": _drawing_settings().values(),
        "objective": objective_settings().values(),
        "model": _all_model_settings().values(),
        "training": _training_settings().values(),
    }
    parts = []
    for name, settings in sections.items():
        title, prefix = (name, f"{name}.") if name else ("A recipe is a YAML file", "")
        entries = [prefix + entry.describe() for entry in settings]
        parts.append("\n".join([title, "=" * len(title), *entries]))
    return "\n\n".join(parts)


def recipe_schema() -> dict[str, Any]:
    """Return the JSON schema of a recipe's file, before those that it extends are merged in."""
    needed = [{"required": ["extends"]}, {"required": list(REQUIRED_KEYS)}]
    schema = object_schema(_recipe_settings(), anyOf=needed)
    sections = schema["properties"]
    data = sections["data"]["properties"]
    aims = object_schema([AIM, *objective_settings().values()])
    sections["objective"] = {"anyOf": [{"type": "string"}, aims, {"type": "null"}]} | {
        key: sections["objective"][key] for key in ("description", "default")
    }
    known = object_schema(_all_model_settings().values())
    sections["model"] |= {"properties": known["properties"], "anyOf": _model_schemas(known)}
    for section, settings in (
        (sections["training"], _training_settings()),
        (data["generate"], _generation_settings()),
        (data["draw"], _drawing_settings()),
        (data["validation"], {**_validation_settings(), **PLACES}),
    ):
        keys = object_schema(settings.values())
        section |= {name: keys[name] for name in ("properties", "additionalProperties")}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _model_schemas(known: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas of a model: one with symbols, or one of another type, whose keys it knows."""
    names = {"properties": {key: {} for key in known["properties"]}, "additionalProperties": False}
    other = {"type": "string", "not": {"enum": list(MODEL_TYPES)}}
    another = {"properties": {"model_type": other}, "required": ["model_type"]}
    return [{"type": "null"}, {"type": "object", **names}, {"type": "object", **another}]


def _recipe_settings() -> list[Setting]:
    return [EXTENDS, *settings_of(Recipe).values()]


def _override(content: dict[str, Any], override: str) -> None:
    """Apply one `a.b=value`; the value is read as YAML."""
    path, sign, text = override.partition("=")
    keys = path.removeprefix("--").split(".")
    if not sign or not all(keys):
        raise RecipeError(
            f"override {override!r}: write it as key=value, e.g. training.max_steps=10"
        )
    for parent in keys[:-1]:
        content = content.setdefault(parent, {})
        if not isinstance(content, dict):
            raise RecipeError(f"override {override!r}: {parent!r} is not a mapping")
    value = _parse_yaml(text, f"override {override!r}")
    if value is None:
        content.pop(keys[-1], None)
    else:
        content[keys[-1]] = value


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number and `no` as text, as YAML 1.2 has it and everybody means it."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|false|False)$"), list("tTfF")
)


class _Dumper(yaml.SafeDumper):
    """Puts a text such as 1e3, which `_Loader` would read as a number, in quotes."""


_POWER_OF_TEN = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _POWER_OF_TEN, list("-+0123456789"))


def _parse_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise RecipeError(f"{where}: not valid YAML: {error}") from error


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[str, str]]:
    """Settings that are not the same: key, as in an override -> both values, `null` if not set.

    A different output folder is not reported.
    """
    before, after = (dict(leaves(dataclasses.asdict(recipe))) for recipe in (old, new))
    return {
        key: (before.get(key, "null"), after.get(key, "null"))
        for key in {**before, **after}
        if key != "training.output_dir" and before.get(key, "null") != after.get(key, "null")
    }


def leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and their values as text."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


def write_recipe(recipe: Recipe, path: Path, notes: Iterable[str] = ()) -> None:
    """Write a recipe, complete and with overrides, so that `hf-alpha train` can read it again.

    Args:
        recipe: what to write.
        path: of the file; its folder is made.
        notes: comments for its first lines.

    Raises:
        RecipeError: there is a secret in it; nothing is written.
    """
    _check_private(dataclasses.asdict(recipe), "recipe")
    content = _said(recipe)
    content["data"] = _said(recipe.data)
    if recipe.data.train is None or recipe.checkpoint is not None:
        content.pop("tokenizer", None)
    unsaid = OWN_KEYS if recipe.data.train is None else set()  # only the user's own pairs have it
    if recipe.aim is not None:
        unsaid |= ANSWER_KEYS
    content["data"] = {k: v for k, v in content["data"].items() if k not in unsaid}
    content = {key: value for key, value in content.items() if value not in (ANSWER, "")}
    lines = "".join(f"{note}\n" for note in notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_text(
            lines + yaml.dump(content, Dumper=_Dumper, sort_keys=False), encoding="utf-8"
        )


def _said(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass that say something."""
    fields = dataclasses.asdict(settings).items()
    silent = (type(None), bool, dict)  # a number says something, 0 too
    return {key: value for key, value in fields if value or not isinstance(value, silent)}


__all__ = [
    "RECIPE_FILE",
    "DataSettings",
    "Recipe",
    "RecipeError",
    "check_shareable",
    "describe_settings",
    "differences",
    "leaves",
    "named_code",
    "parse_recipe",
    "read_recipe",
    "recipe_for",
    "recipe_of",
    "recipe_schema",
    "rules_of",
    "write_recipe",
]
