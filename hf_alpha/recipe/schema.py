"""What a recipe may say: one class for recipes, one for their data.

What is trained follows from it, see [`Recipe.kind`], and some keys are for some kinds only.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import Field, GetPydanticSchema, ValidationInfo, field_validator, model_validator
from transformers import CONFIG_MAPPING, PreTrainedConfig, Seq2SeqTrainingArguments

from hf_alpha import wings
from hf_alpha.auto import DEFAULT_MODEL_TYPE, SYMBOL_MODEL_TYPES
from hf_alpha.data.formats import FORMATS
from hf_alpha.io.settings import (
    Keys,
    RecipeError,
    checked_by,
    json_schema,
    model_of,
    section,
)
from hf_alpha.modeling.name_rules import NameRule
from hf_alpha.objectives import (
    ANSWER,
    OBJECTIVES,
    AnswerPairs,
    AnswerProblems,
    Objective,
    make_objective,
)
from hf_alpha.tasks import DrawnTask, Task, get_task

FROM_TOKENIZER = {
    "vocab_size": "num_symbols",
    "num_base_tokens": "num_symbols",
    "symbol_classes": "num_symbols",
    "symbol_ranges": "num_symbols",
    "segment_labels": "transducer",
}
"""Field of a model's configuration -> the key that it follows from."""
FROM_RECIPE = ("task", "tokenizer", "split")
"""Arguments of what draws problems that other keys say."""


class Kind:
    """A kind of recipes: `keys` are for it and those below it, and `use` says what for."""

    keys: ClassVar[str]
    use: ClassVar[str]
    needs: ClassVar[str] = "path"
    """the key of the data without which there is none"""


class OfTask(Kind):
    """A model that answers problems of a task."""

    use = "problems of a task: how many names your own pairs have, a 'count' in 'symbols' says"
    keys = "num_symbols"


class Generated(OfTask):
    """Those of a dataset, which is made if it is not there."""

    use = (
        "a dataset in a folder: give one of 'path', 'draw' and 'train' ('train' for objectives "
        "that do not answer)"
    )
    keys = "path generate more"


class Drawn(OfTask):
    """Those drawn when they are needed."""

    use = "problems that are drawn: give one of 'path', 'draw' and 'train'"
    keys = "draw"


class Own(Kind):
    """A model of data of the user's own."""

    use = "your own pairs: 'data' has no 'train'"
    keys = "symbols tokenizer train source target test encoding format"
    needs = "train"


class OwnPairs(Own):
    """One that answers texts."""

    use = "your own pairs that are answered: with 'train' in 'data', and with no other 'objective'"
    keys = "check measures ignore_whitespace drop_bad max_length streaming max_answer_samples"


class OwnRows(Own):
    """One that does not answer: another objective."""

    use = f"an objective that does not answer: name one of {', '.join(OBJECTIVES)} as 'objective'"
    keys = "transducer pair where"


KINDS = (OfTask, Generated, Drawn, Own, OwnPairs, OwnRows)


def kind_of(objective: Any, data: Mapping[str, Any]) -> type[Kind]:
    """Return what kind of recipe has such an objective and such data."""
    name = objective.get("name") if isinstance(objective, dict) else objective
    if (name or ANSWER) != ANSWER:
        return OwnRows
    if data.get("train") is not None:
        return OwnPairs
    return Drawn if data.get("draw") else Generated


def foreign(kind: type[Kind]) -> dict[str, str]:
    """Return the keys that are not for a kind of recipes -> what they are for."""
    others = (o for o in KINDS if not issubclass(kind, o))
    return {key: other.use for other in others for key in other.keys.split()}


class ModelKeys(Keys, use_attribute_docstrings=True):
    """What a model's configuration has beside its fields."""

    model_type: str = DEFAULT_MODEL_TYPE
    """type of the model"""


def model_keys(config_class: Any) -> type[Keys]:
    """Return the settings of a model; its configuration checks their values when it is made."""
    return model_of(config_class, tuple(FROM_TOKENIZER), checks_values=False, base=ModelKeys)


SECRETS = [key for key in model_of(Seq2SeqTrainingArguments).model_fields if key.endswith("token")]
"""Settings of training that stand in no file."""
TRAINING = model_of(Seq2SeqTrainingArguments, tuple(SECRETS), ("output_dir",))


Generation: TypeAlias = Annotated[
    dict[str, Any], checked_by(lambda: model_of(wings.wing("generation").Samples))
]
Drawing: TypeAlias = Annotated[
    dict[str, Any], checked_by(lambda: model_of(wings.wing("drawn problems"), FROM_RECIPE))
]


class Folder(Keys, use_attribute_docstrings=True):
    """A dataset in a folder, which is generated if it is not there."""

    path: str
    """folder of a dataset"""
    generate: Generation = Field(default={})
    """how the dataset is generated"""


class UserData(Keys, use_attribute_docstrings=True):
    """Where data of the user is."""

    path: str
    """a file, a folder of files, or a dataset on the Hub"""
    config: str | None = None
    """config of a dataset on the Hub, with `train`"""
    split: str | None = None
    """split of a dataset on the Hub, with `train`"""


Where: TypeAlias = Annotated[str | dict[str, Any] | None, checked_by(lambda: UserData)]
Held: TypeAlias = Annotated[
    float | str | dict[str, Any] | None,
    GetPydanticSchema(
        lambda kind, handler: handler(kind),
        lambda _, handler: {
            "anyOf": [{"type": "number"}, {"type": "string"}, *map(json_schema, (Folder, UserData))]
        },
    ),
]


class Data(Keys, use_attribute_docstrings=True):
    """Where the data comes from: a folder, or problems that are drawn, or the user's own rows."""

    path: str = ""
    """folder of a dataset; made by `generate` when absent (or else say `draw`, or `train`)"""
    generate: Generation = Field(default={})
    """how the dataset is generated"""
    more: list[Folder] | None = None
    """`path`, and `generate` or not, of further datasets whose training problems are added"""
    draw: Drawing = Field(default={})
    """in place of a folder: problems are drawn when they are needed, those for validation from
    other seeds"""
    train: Where = None
    """your own pairs of texts: a file (jsonl, csv, tsv, parquet), a folder of such files, a dataset
    on the Hub (owner/name), or a mapping with `path`, and `config` and `split`"""
    source: str = "source"
    """column of what is asked, with `train`"""
    target: str = "target"
    """column of the right answer, of the class or of the tags, with `train`"""
    validation: Held = None
    """`path`, and `generate` or not, of another dataset whose validation problems give the loss
    during training: with more names than training has, say, to choose a checkpoint by
    (`training.load_best_model_at_end`). With `train`: a share of it, or pairs as there"""
    test: Where = None
    """what `hf-alpha evaluate` takes by default, with `train`"""
    encoding: str | None = None
    """of your files, where it is not UTF-8"""
    drop_bad: bool = False
    """leave out pairs that cannot be learned, are longer than the model or lack a text, and count
    them, with `train`"""
    max_length: int | None = Field(default=None, ge=1)
    """longest source and longest target in tokens (of a decoder, both together), where that is less
    than the model has positions for, with `train`"""
    streaming: bool = False
    """read `train` while training, for what does not fit on the disk"""
    max_answer_samples: int = Field(default=64, ge=0)
    """validation samples that are answered, with `train`, whenever there is a validation loss; the
    share of right answers is `eval_correct`"""
    pair: str | None = None
    """class: column of the second text, if there is one"""
    format: str | None = Field(
        default=None,
        description=(
            f"how files are written, where they have no such columns: {', '.join(FORMATS)}, or "
            "package.module:function of your own, from a path to rows"
        ),
    )
    where: dict[str, Any] = Field(default={})
    """column -> value, or list of values: other rows are left out; of objectives that do not
    answer"""
    max_train_samples: int | None = Field(default=None, ge=1)
    """use only the first so many (the papers' `reduced`: 80,000)"""
    max_eval_samples: int = Field(default=2000, ge=1)
    """validation samples for the loss during training"""
    num_workers: int = Field(default=1, ge=1)
    """processes that generate and tokenise"""


class Recipe(Keys, use_attribute_docstrings=True):
    """One trained model: its data, what it is trained for, and how."""

    task: str
    """name of the task"""
    objective: str | dict[str, Any] = Field(
        default=ANSWER,
        description=(
            f"what the model is trained for: {ANSWER}, or without answers in text "
            f"{', '.join(OBJECTIVES)}; or a mapping with `name` and settings of that objective"
        ),
    )
    data: Data
    """where the data comes from"""
    training: Annotated[dict[str, Any], checked_by(lambda: TRAINING, empty=False)]
    """fields of `Seq2SeqTrainingArguments`; `output_dir` is required"""
    num_symbols: int | None = Field(default=None, ge=1)
    """symbols of each class in the vocabulary; by default the tokenizer's 10"""
    symbols: dict[str, Any] = Field(default={})
    """with `data.train`: class -> rule by which names are found in your texts: a regular
    expression, a list of names, or a mapping with one of `pattern`, `tokens`, `column`,
    `function` and `rule`, and `count`, `reserved`, `words` and `keep`; without one, no word is a
    name"""
    tokenizer: str = "words"
    """with `data.train`: words, characters, bpe:8000, or the folder or Hub name of any fast
    tokenizer; of objectives that do not answer also wordpiece:8000"""
    check: str | None = None
    """package.module:function of your own: from source, answer and target to yes or no, or a
    verdict; without it an answer is right if it is the target"""
    measures: dict[str, str] = Field(default={})
    """name -> package.module:function of your own, from the lists `predictions` and `references` to
    a number or a mapping of numbers (or an object with such a `compute`, as those of the package
    evaluate), which stand below the table of an evaluation"""
    ignore_whitespace: bool = False
    """answers that differ in whitespace only are the same"""
    transducer: str | dict[str, Any] = ""
    """of objectives that do not answer: what finds segments in the texts: the folder of a saved
    transducer, or a mapping with `lexicon`, `rules` and other settings of one"""
    checkpoint: str | None = None
    """folder or Hub name of a model to go on from, in place of `model`"""
    model: dict[str, Any] = Field(default={}, validate_default=True)
    """`model_type` and fields of its configuration, for a new model; vocabulary fields come from
    the tokenizer"""
    optimizer: str | dict[str, Any] = ""
    """in place of `training.optim`, fused_lamb or fused_adam (as Apex has them), or one of the
    package pytorch_optimizer; or a mapping with `name` and its arguments. Learning rate, betas and
    epsilon are those of `training`"""

    @property
    def kind(self) -> str:
        """What is trained, and on what: generated, drawn, pairs or rows; see [`Kind`]."""
        return self._kind.__name__.removeprefix("Own").lower()

    @property
    def _kind(self) -> type[Kind]:
        return kind_of(self.objective, vars(self.data))

    @property
    def has_user_data(self) -> bool:
        """Whether the data is the user's own, not problems of a task."""
        return issubclass(self._kind, Own)

    @property
    def has_pairs(self) -> bool:
        """Whether it has pairs of the user's own, and no task that draws its problems."""
        return self.has_user_data and not isinstance(self.configured_task, DrawnTask)

    @property
    def aim(self) -> Objective:
        """The objective, with its settings."""
        if self._kind is OwnRows:
            return make_objective(self.objective)
        return AnswerPairs() if self._kind is OwnPairs else AnswerProblems()

    @property
    def configured_task(self) -> Task:
        """The task, with what the recipe says of it.

        Raises:
            RecipeError: there is no such task, or it has no such settings.
        """
        keys = ("symbols", "check", "measures", "ignore_whitespace")
        settings = {key: getattr(self, key) for key in keys if getattr(self, key)}
        try:
            task: Task = get_task(self.task).configured(**settings)
        except ValueError as error:
            raise RecipeError(f"{error}") from error
        if self._kind is OwnPairs and not hasattr(task, "finder"):
            raise RecipeError(
                f"task {self.task!r} draws its problems and reads no pairs of yours: leave out "
                "'data.train', or write task: text"
            )
        return task

    @property
    def seed(self) -> int:
        """The seed of training."""
        return self.training.get("seed", 42)

    def sources(self) -> list[str | None]:
        """Return the folders and Hub names whose files are loaded for training."""
        return [self.checkpoint, self.tokenizer]

    def settings(self) -> dict[str, Any]:
        """Return the keys that recipes of this kind have, and their values."""
        others = dict.fromkeys(foreign(self._kind), True)
        return self.model_dump(exclude={**others, "data": {*others}}, warnings=False)

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, content: Any) -> Any:
        """Refuse keys of another kind that say something, and leave out those that do not."""
        data = content.get("data") if isinstance(content, dict) else None
        if not isinstance(data, dict):
            return content
        others = foreign(kind_of(content.get("objective"), data))
        content = _without(content, others)
        with section("data"):
            return {**content, "data": _without(data, others)}

    @field_validator("objective")
    @classmethod
    def _check_objective(cls, objective: str | dict[str, Any]) -> str | dict[str, Any]:
        if objective in (ANSWER, {"name": ANSWER}):
            return ANSWER
        if not isinstance(objective, str) and objective.get("name") == ANSWER:
            raise ValueError(f"{ANSWER!r} has no settings")
        make_objective(objective)
        return objective

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Data, info: ValidationInfo) -> Data:
        """Check that there is some, and that data for validation is named as that for training."""
        kind, held = kind_of(info.data.get("objective"), vars(data)), data.validation
        from_user = issubclass(kind, Own)
        if not (data.draw or getattr(data, kind.needs)):
            raise Data.missing(kind.needs)
        if held and isinstance(held, dict):
            (UserData if from_user else Folder).read(held, "validation")
        elif held not in (None, {}) and not from_user:
            raise ValueError(f"validation: write a mapping with 'path', not {held!r}")
        elif isinstance(held, float | int) and not 0 < held < 1:
            raise ValueError(f"validation: give a share between 0 and 1, or a file, not {held}")
        return data

    @field_validator("symbols")
    @classmethod
    def _name_functions(cls, symbols: dict[str, Any]) -> dict[str, Any]:
        """Have functions, which Python gives as they are, named as in files."""
        for name, rule in symbols.items():
            if callable(rule) or (isinstance(rule, dict) and callable(rule.get("function"))):
                symbols = {**symbols, name: NameRule.of(name, rule).to_dict()}
        return symbols

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        for key, cause in FROM_TOKENIZER.items():
            if key in model:
                raise ValueError(f"{key!r} follows from the key {cause!r}; drop it")
        if "objective" not in info.data:
            return model  # the objective is wrong, which is said already
        if info.data.get("checkpoint") is None:
            model_type = model.get("model_type", DEFAULT_MODEL_TYPE)
            model_keys(_trained_config(model_type, info.data["objective"])).read(model)
        elif model:
            raise ValueError("give either 'checkpoint' or 'model', not both")
        return model

    @model_validator(mode="after")
    def _check_transducer(self) -> Self:
        aim = self.aim
        if self.transducer and not getattr(aim, "takes_segments", False):
            raise ValueError(f"the objective {aim.name!r} does not take a 'transducer'")
        if self.transducer and self.symbols:
            raise ValueError("give either 'symbols' or a 'transducer', not both")
        return self


def _without(content: dict[str, Any], others: dict[str, str]) -> dict[str, Any]:
    for key in filter(content.get, others):
        raise RecipeError(f"{key!r} is for {others[key]}")
    return {key: value for key, value in content.items() if key not in others}


def _trained_config(model_type: Any, objective: str | dict[str, Any]) -> type[PreTrainedConfig]:
    """Return the configuration of a type of model that an objective trains."""
    is_known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    config_class: Any = CONFIG_MAPPING[model_type] if is_known else None
    if objective == ANSWER:
        if config_class and "symbol_classes" in model_of(config_class).model_fields:
            return config_class
        raise ValueError(
            f"no model with symbols is of 'model_type' {model_type!r}; known: "
            f"{', '.join(SYMBOL_MODEL_TYPES)}"
        )
    aim = make_objective(objective)
    if config_class in aim.auto._model_mapping:
        return config_class
    raise ValueError(
        f"no 'model_type' {model_type!r} is trained by the objective {aim.name!r}: "
        f"name one that {aim.trains} knows"
    )
