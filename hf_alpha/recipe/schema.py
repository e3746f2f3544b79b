"""What a recipe may say: a type for each kind of recipe, and one for each kind of data.

| recipe | data | what is trained |
|---|---|---|
| [`FormulaRecipe`] | [`Generated`] or [`Drawn`] | a model that answers problems of a task |
| [`PairsRecipe`] | [`Pairs`] | a model that answers the user's own texts |
| [`RowsRecipe`] | [`Rows`] | a model that does not answer: another objective, of the user's rows |
"""

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from transformers import CONFIG_MAPPING, PreTrainedConfig, Seq2SeqTrainingArguments

from hf_alpha.auto import SYMBOL_MODEL_TYPES
from hf_alpha.data.drawn import DrawnProblems
from hf_alpha.data.generate import generate
from hf_alpha.objectives import (
    ANSWER,
    OBJECTIVES,
    AnswerPairs,
    AnswerProblems,
    Objective,
    RowsObjective,
    make_objective,
)
from hf_alpha.objectives.formats import FORMATS
from hf_alpha.settings import Keys, KeysOf, RecipeError, model_of
from hf_alpha.tasks import Task, get_task

DEFAULT_MODEL_TYPE = "alpha"
FROM_TOKENIZER = {
    "vocab_size": "num_symbols",
    "num_base_tokens": "num_symbols",
    "symbol_classes": "num_symbols",
    "symbol_ranges": "num_symbols",
    "segment_labels": "transducer",
}
"""Field of a model's configuration -> the key that it follows from."""
FROM_RECIPE = ("task", "out_dir", "num_workers", "progress", "tokenizer", "split")
"""Arguments of what makes data that other keys say."""
SECRETS = tuple(
    key for key in model_of(Seq2SeqTrainingArguments).model_fields if key.endswith("token")
)
"""Settings of training that stand in no file."""
NO_ANSWERS = (
    f"an objective that does not answer: name one of {', '.join(OBJECTIVES)} as 'objective'"
)
OWN_ANSWERS = (
    "your own pairs that are answered: with 'train' in 'data', and with no other 'objective'"
)


class ModelKeys(Keys):
    """What a model's configuration has beside its fields."""

    model_type: str = Field(DEFAULT_MODEL_TYPE, description="type of the model")


class Place(Keys):
    """Where data of the user is."""

    path: str = Field(description="a file, a folder of files, or a dataset on the Hub")
    config: str | None = Field(None, description="config of a dataset on the Hub, with `train`")
    split: str | None = Field(None, description="split of a dataset on the Hub, with `train`")


def model_keys(config_class: Any) -> type[Keys]:
    """Return the settings of a model; its configuration checks their values when it is made."""
    return model_of(config_class, tuple(FROM_TOKENIZER), checks_values=False, base=ModelKeys)


generation_keys = partial(model_of, generate, FROM_RECIPE)
drawing_keys = partial(model_of, DrawnProblems, FROM_RECIPE)
training_keys = partial(model_of, Seq2SeqTrainingArguments, SECRETS, ("output_dir",))


def _check_share(validation: Any) -> Any:
    if isinstance(validation, int | float) and not 0 < validation < 1:
        raise ValueError(f"give a share between 0 and 1, or a file, not {validation}")
    return validation


Generation: TypeAlias = Annotated[dict[str, Any], KeysOf(generation_keys, or_empty=True)]
Where: TypeAlias = Annotated[str | dict[str, Any], KeysOf(lambda: Place)]
Held: TypeAlias = Annotated[
    float | str | dict[str, Any], KeysOf(lambda: Place, or_empty=True), AfterValidator(_check_share)
]


class Data(Keys):
    """What is said of any data."""

    max_train_samples: int | None = Field(
        None, ge=1, description="use only the first so many (the papers' `reduced`: 80,000)"
    )
    max_eval_samples: int = Field(
        2000, ge=1, description="validation samples for the loss during training"
    )
    num_workers: int = Field(1, ge=1, description="processes that generate and tokenise")

    @classmethod
    def kin(cls) -> tuple[type[Keys], ...]:
        return DATA


class Folder(Keys):
    """A dataset in a folder, which is generated if it is not there."""

    is_for: ClassVar[str] = "a dataset in a folder: give one of 'path', 'draw' and 'train'"

    path: str = Field(
        description="folder of a dataset; made by `generate` when absent (or else say `draw`, or "
        "`train`)"
    )
    generate: Generation = Field({}, description="how the dataset is generated")


class Formulas(Data):
    """Problems of a task."""

    validation: Folder | None = Field(
        None,
        description=(
            "`path`, and `generate` or not, of another dataset whose validation problems give the "
            "loss during training: with more names than training has, say, to choose a checkpoint "
            "by (`training.load_best_model_at_end`)."
        ),
    )

    @field_validator("validation", mode="before")
    @classmethod
    def _none_if_empty(cls, validation: Any) -> Any:
        return None if validation == {} else validation


class Generated(Formulas, Folder):
    """A dataset in a folder, which is generated if it is not there."""

    more: list[Folder] | None = Field(
        None,
        description=(
            "`path`, and `generate` or not, of further datasets whose training problems are added"
        ),
    )


class Drawn(Formulas):
    """Problems that are drawn when they are needed."""

    is_for: ClassVar[str] = "problems that are drawn: give one of 'path', 'draw' and 'train'"

    draw: Annotated[dict[str, Any], KeysOf(drawing_keys)] = Field(
        description=(
            "in place of a folder: problems are drawn when they are needed, those for validation "
            "from other seeds"
        )
    )


class Own(Data):
    """The user's own data."""

    is_for: ClassVar[str] = "your own pairs: the key 'train' is missing"

    train: Where = Field(
        description=(
            "your own pairs of texts: a file (jsonl, csv, tsv, parquet), a folder of such files, a "
            "dataset on the Hub (owner/name), or a mapping with `path`, and `config` and `split`"
        )
    )
    source: str = Field("source", description="column of what is asked, with `train`")
    target: str = Field(
        "target",
        description="column of the right answer, of the class or of the tags, with `train`",
    )
    test: Where | None = Field(
        None, description="what `hf-alpha evaluate` takes by default, with `train`"
    )
    encoding: str | None = Field(None, description="of your files, where it is not UTF-8")
    validation: Held = Field({}, description="With `train`: a share of it, or pairs as there")


class Pairs(Own):
    """The user's own pairs, which are answered."""

    is_for: ClassVar[str] = OWN_ANSWERS

    drop_bad: bool = Field(
        False,
        description="leave out pairs that cannot be learned, and count them, with `train`",
    )
    streaming: bool = Field(
        False, description="read `train` while training, for what does not fit on the disk"
    )
    max_answer_samples: int = Field(
        64,
        ge=0,
        description=(
            "validation samples that are answered, with `train`, whenever there is a validation "
            "loss; the share of right answers is `eval_correct`"
        ),
    )


class Rows(Own):
    """The user's own rows, which are not answered."""

    is_for: ClassVar[str] = NO_ANSWERS

    pair: str | None = Field(None, description="class: column of the second text, if there is one")
    format: str | None = Field(
        None,
        description=(
            f"how files are written, where they have no such columns: {', '.join(FORMATS)}, or "
            "package.module:function of your own, from a path to rows"
        ),
    )
    where: dict[str, Any] = Field(
        {},
        description=(
            "column -> value, or list of values: other rows are left out; of objectives that do "
            "not answer"
        ),
    )


DATA = (Generated, Drawn, Pairs, Rows)


class Recipe(Keys):
    """One trained model: what all kinds of recipes say."""

    task: str = Field(description="name of the task")
    data: Generated | Drawn | Pairs | Rows = Field(description="where the data comes from")
    training: Annotated[dict[str, Any], KeysOf(training_keys)] = Field(
        description="fields of `Seq2SeqTrainingArguments`; `output_dir` is required"
    )
    objective: str | dict[str, Any] = Field(
        ANSWER,
        description=(
            f"what the model is trained for: {ANSWER}, or without answers in text "
            f"{', '.join(OBJECTIVES)}; or a mapping with `name` and settings of that objective"
        ),
    )
    checkpoint: str | None = Field(
        None, description="folder or Hub name of a model to go on from, in place of `model`"
    )
    model: dict[str, Any] = Field(
        {},
        validate_default=True,
        description=(
            "`model_type` and fields of its configuration, for a new model; vocabulary fields "
            "come from the tokenizer"
        ),
    )
    optimizer: str | dict[str, Any] = Field(
        "",
        description=(
            "in place of `training.optim`, fused_lamb or fused_adam (as Apex has them), or one of "
            "the package pytorch_optimizer; or a mapping with `name` and its arguments. Learning "
            "rate, betas and epsilon are those of `training`"
        ),
    )

    @classmethod
    def kin(cls) -> tuple[type[Keys], ...]:
        return RECIPES

    @property
    def solved(self) -> Task:
        """The task, with what the recipe says of it.

        Raises:
            RecipeError: there is no such task, or it has no such settings.
        """
        settings = {key: value for key, value in self._of_task().items() if value}
        try:
            return get_task(self.task).configured(**settings)
        except ValueError as error:
            raise RecipeError(f"{error}") from error

    @property
    @abstractmethod
    def aim(self) -> Objective:
        """The objective, with its settings."""

    @property
    def seed(self) -> int:
        """The seed of training."""
        seed: int = self.training.get("seed", 42)
        return seed

    def code(self) -> dict[str, Any]:
        """Return key -> what may name code there, as `module:name`."""
        return {"task": self.task}

    def sources(self) -> list[str | None]:
        """Return the folders and Hub names whose files are loaded for training."""
        return [self.checkpoint]

    def _of_task(self) -> dict[str, Any]:
        """Return what the recipe says of its task."""
        return {}

    @field_validator("objective")
    @classmethod
    def _check_objective(cls, objective: str | dict[str, Any]) -> str | dict[str, Any]:
        if objective not in (ANSWER, {"name": ANSWER}):
            raise ValueError(f"{ANSWER!r} has no settings")
        return ANSWER

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        for key, cause in FROM_TOKENIZER.items():
            if key in model:
                raise ValueError(f"{key!r} follows from the key {cause!r}; drop it")
        if "objective" not in info.data:
            return model  # the objective is wrong, which is said already
        if info.data.get("checkpoint") is None:
            config_class = cls._config_class(model.get("model_type", DEFAULT_MODEL_TYPE), info.data)
            model_keys(config_class).model_validate(model)
        elif model:
            raise ValueError("give either 'checkpoint' or 'model', not both")
        return model

    @classmethod
    def _config_class(cls, model_type: Any, values: dict[str, Any]) -> type[PreTrainedConfig]:
        """Return the configuration class of a type of model that can be trained.

        Args:
            model_type: the type.
            values: by the recipe: key -> value.
        """
        config_class: Any = config_class_of(model_type)
        if config_class is None or "symbol_classes" not in model_of(config_class).model_fields:
            raise ValueError(
                f"no model with symbols is of 'model_type' {model_type!r}; known: "
                f"{', '.join(SYMBOL_MODEL_TYPES)}"
            )
        return config_class


def config_class_of(model_type: Any) -> type[PreTrainedConfig] | None:
    """Return the configuration of a type of model; None if there is no such type."""
    is_known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    return CONFIG_MAPPING[model_type] if is_known else None


class FormulaRecipe(Recipe):
    """A model that answers problems of a task, which are generated or drawn."""

    is_for: ClassVar[str] = (
        "problems of a task: how many names your own pairs have, a 'count' in 'symbols' says"
    )

    data: Generated | Drawn = Field(description="where the data comes from")
    num_symbols: int | None = Field(
        None,
        ge=1,
        description="symbols of each class in the vocabulary; by default the tokenizer's 10",
    )

    @property
    def aim(self) -> AnswerProblems:
        return AnswerProblems()

    @field_validator("data", mode="before")
    @classmethod
    def _choose(cls, data: Any) -> Any:
        """Validate the one kind that `draw` selects: a union would report the faults of both."""
        if not isinstance(data, dict):
            return data
        return (Drawn if data.get("draw") else Generated).model_validate(data)


class OwnRecipe(Recipe):
    """A model of the user's own data."""

    is_for: ClassVar[str] = "your own pairs: 'data' has no 'train'"

    data: Pairs | Rows = Field(description="where the data comes from")
    symbols: dict[str, Any] = Field(
        {},
        description=(
            "with `data.train`: class -> rule by which names are found in your texts: a regular "
            "expression, a list of names, or a mapping with one of `pattern`, `tokens`, `column` "
            "and `function`, and `count` and `reserved`; without one, no word is a name"
        ),
    )
    tokenizer: str = Field(
        "words",
        description=(
            "with `data.train`: words, characters, bpe:8000, or the folder or Hub name of any fast "
            "tokenizer; of objectives that do not answer also wordpiece:8000"
        ),
    )

    def code(self) -> dict[str, Any]:
        functions = {
            f"symbols.{name}.function": rule.get("function")
            for name, rule in self.symbols.items()
            if isinstance(rule, dict)
        }
        return super().code() | functions

    def sources(self) -> list[str | None]:
        return [*super().sources(), self.tokenizer]

    def _of_task(self) -> dict[str, Any]:
        return {"symbols": self.symbols}


class PairsRecipe(OwnRecipe):
    """A model that answers the user's own texts."""

    is_for: ClassVar[str] = OWN_ANSWERS

    data: Pairs = Field(description="where the data comes from")
    check: str | None = Field(
        None,
        description=(
            "package.module:function of your own: from source, answer and target to yes or no, or "
            "a verdict; without it an answer is right if it is the target"
        ),
    )
    measures: dict[str, str] = Field(
        {},
        description=(
            "name -> package.module:function of your own, from the lists `predictions` and "
            "`references` to a number or a mapping of numbers (or an object with such a `compute`, "
            "as those of the package evaluate), which stand below the table of an evaluation"
        ),
    )
    ignore_whitespace: bool = Field(
        False, description="answers that differ in whitespace only are the same"
    )

    @property
    def aim(self) -> AnswerPairs:
        return AnswerPairs()

    @property
    def solved(self) -> Task:
        task = super().solved
        if not hasattr(task, "finder"):
            raise RecipeError(
                f"task {self.task!r} draws its problems and reads no pairs of yours: leave out "
                "'data.train', or write task: text"
            )
        return task

    def code(self) -> dict[str, Any]:
        measures = {f"measures.{name}": path for name, path in self.measures.items()}
        return super().code() | {"check": self.check} | measures

    def _of_task(self) -> dict[str, Any]:
        text_settings = {
            key: getattr(self, key) for key in ("check", "measures", "ignore_whitespace")
        }
        return super()._of_task() | text_settings


class RowsRecipe(OwnRecipe):
    """A model that does not answer with text: another objective."""

    is_for: ClassVar[str] = NO_ANSWERS

    data: Rows = Field(description="where the data comes from")
    transducer: str | dict[str, Any] = Field(
        "",
        description=(
            "of objectives that do not answer: what finds segments in the texts: the folder of a "
            "saved transducer, or a mapping with `lexicon`, `rules` and other settings of one"
        ),
    )

    @property
    def aim(self) -> RowsObjective:
        return make_objective(self.objective)

    def code(self) -> dict[str, Any]:
        return super().code() | {"data.format": self.data.format}

    @field_validator("objective")
    @classmethod
    def _check_objective(cls, objective: str | dict[str, Any]) -> str | dict[str, Any]:
        make_objective(objective)
        return objective

    @classmethod
    def _config_class(cls, model_type: Any, values: dict[str, Any]) -> type[PreTrainedConfig]:
        config_class, objective = config_class_of(model_type), make_objective(values["objective"])
        if config_class is None or config_class not in objective.auto._model_mapping:
            raise ValueError(
                f"no 'model_type' {model_type!r} is trained by the objective {objective.name!r}: "
                f"name one that {objective.trains} knows"
            )
        return config_class

    @model_validator(mode="after")
    def _check_transducer(self) -> Self:
        if self.transducer and not self.aim.takes_segments:
            raise ValueError(f"the objective {self.aim.name!r} does not take a 'transducer'")
        if self.transducer and self.symbols:
            raise ValueError("give either 'symbols' or a 'transducer', not both")
        return self


RECIPES = (FormulaRecipe, PairsRecipe, RowsRecipe)


def kind_of(content: dict[str, Any]) -> type[Recipe]:
    """Return the kind of recipe that a file's content is."""
    objective, data = content.get("objective") or ANSWER, content.get("data")
    name = objective.get("name") if isinstance(objective, dict) else objective
    if name != ANSWER:
        return RowsRecipe
    return PairsRecipe if isinstance(data, dict) and data.get("train") else FormulaRecipe


__all__ = [
    "DATA",
    "DEFAULT_MODEL_TYPE",
    "RECIPES",
    "SECRETS",
    "Drawn",
    "Folder",
    "FormulaRecipe",
    "Formulas",
    "Generated",
    "Own",
    "OwnRecipe",
    "Pairs",
    "PairsRecipe",
    "Recipe",
    "Rows",
    "RowsRecipe",
    "drawing_keys",
    "generation_keys",
    "kind_of",
    "model_keys",
    "training_keys",
]
