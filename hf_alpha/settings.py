"""Settings as classes and signatures declare them: checked, described, and as a JSON schema.

A mapping of settings is a [`Keys`], a pydantic model that takes the keys that it has and no others.
[`model_of`] makes one of a dataclass, whose fields hold their meaning in `metadata["help"]` (as
`TrainingArguments` has it) or in the class docstring, or of a function's signature and docstring.
"""

import dataclasses
import difflib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    ForwardRef,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from huggingface_hub.errors import StrictDataclassError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SkipValidation,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
"""Type in a JSON schema -> what people call it."""
PLAIN = {bool, dict, float, int, str, types.NoneType}
"""Kinds of values that are checked where a dataclass or a function declares them."""
ARGUMENTS = re.compile(r"^(\w+(?:, ?\w+)*)(?: ?\(.*?\))?:(?:\s+|$)(.*)", re.DOTALL)
UNKNOWN_KEYS, WRONG_KEYS, WRONG_VALUE = "unknown_keys", "wrong_keys", "wrong_value"
"""Types of faults: of a mapping's keys, and of a value, whose message names its key."""
FINAL = {UNKNOWN_KEYS, WRONG_KEYS, WRONG_VALUE, "value_error"}
"""Types of faults whose messages are for people."""


class RecipeError(ValueError):
    """A recipe that cannot be read or run; the message names the key and the way out."""


class UnknownKeyError(RecipeError):
    """A mapping has keys that are not known.

    Attributes:
        where: which mapping it is.
        keys: all of them.
    """

    def __init__(self, where: str, keys: list[str], message: str):
        super().__init__(message)
        self.where, self.keys = where, keys


@contextmanager
def section(name: str) -> Iterator[None]:
    """Say in which section of a recipe a setting stands that is refused.

    Raises:
        RecipeError: in place of the error of whoever refuses it.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError, StrictDataclassError) as error:
        raise RecipeError(f"{name}: {error}") from error


class Keys(BaseModel):
    """A mapping with these keys and no others; what is wrong with it is said in plain words.

    Attributes:
        is_for: what the keys of this class are for, where its kin have others.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, protected_namespaces=()
    )
    is_for: ClassVar[str] = ""

    @classmethod
    def kin(cls) -> "tuple[type[Keys], ...]":
        """Return the classes of which one stands in the same place, this one among them."""
        return (cls,)

    @classmethod
    def read(cls, content: Any, source: str) -> Self:
        """Check a mapping.

        Args:
            content: the mapping.
            source: the file or the key that it stands in, for errors.

        Raises:
            UnknownKeyError: some keys are not known; the message has the nearest one of the first.
            RecipeError: a key is missing or is for something else, or a value is wrong.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
        kind, path = fault["type"], [source, *map(str, fault["loc"])]
        place = ": ".join(path[:-1] if kind == WRONG_VALUE else path)
        message = f"{place}: {fault['msg'].removeprefix('Value error, ')}"
        if kind == UNKNOWN_KEYS:
            raise UnknownKeyError(place, fault["ctx"]["keys"], message)
        raise RecipeError(message)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        """Name the first key that is unknown, or missing, or one of kin's that says something."""
        if not isinstance(content, dict):
            return content
        owners = {key: kind for kind in reversed(cls.kin()) for key in kind.model_fields}
        if unknown := [key for key in content if key not in owners]:
            raise _fault(
                UNKNOWN_KEYS, f"unknown key {unknown[0]!r}; {_hint(unknown[0], owners)}", unknown
            )
        for key, field in cls.model_fields.items():
            if field.is_required() and key not in content:
                description = f": {field.description}" if field.description else ""
                raise _fault(WRONG_KEYS, f"the key {key!r} is missing{description}")
        foreign = [key for key in content if key not in cls.model_fields]
        for key in filter(content.get, foreign):
            raise _fault(WRONG_KEYS, f"{key!r} is for {_declaring(owners[key], key).is_for}")
        return {key: value for key, value in content.items() if key not in foreign}

    @field_validator("*", mode="wrap")
    @classmethod
    def _check_value(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        """Say what a value has to be."""
        try:
            return validate(value)
        except ValidationError as error:
            faults = error.errors(include_url=False)
            if any(fault["type"] in FINAL for fault in faults):
                raise
        key = str(info.field_name)
        expected = in_words(json_schema(cls)["properties"][key])
        if faults[0]["type"] == "greater_than_equal":
            expected = f"at least {faults[0]['ctx']['ge']}"
        raise _fault(WRONG_VALUE, f"{key!r} must be {expected}, not {value!r}")


@dataclass(frozen=True)
class KeysOf:
    """Annotation of a mapping that is checked, and kept as it is written.

    Attributes:
        model: returns its keys; it is called when a mapping is checked.
        or_empty: an empty mapping says nothing, and is not checked.
    """

    model: Callable[[], type[Keys]]
    or_empty: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        own_schema = handler(schema)
        kinds = [
            json_schema(self.model()) if kind.get("type") == "object" else kind
            for kind in own_schema.get("anyOf", [own_schema])
        ]
        return {"anyOf": kinds} if len(kinds) > 1 else kinds[0]

    def _checked(self, value: Any) -> Any:
        if isinstance(value, dict) and (value or not self.or_empty):
            self.model().model_validate(value)
        return value


def meaning(text: str, least: int | None = None) -> dict[str, Any]:
    """Return the metadata of a dataclass field: what it is for, and its smallest value."""
    return {"help": text, "least": least}


@cache  # TrainingArguments have hundreds, and each recipe is checked against them
def model_of(
    declared: Any,
    without: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    checks_values: bool = True,
    base: type[Keys] = Keys,
) -> type[Keys]:
    """Return the settings that a dataclass or a function declares.

    Args:
        declared: the dataclass or function.
        without: settings that are left out.
        required: settings that have to be given, whatever their default is.
        checks_values: of kinds in `PLAIN`, and tuples; else no values are checked.
        base: has more settings.
    """
    settings: dict[str, Any] = {}
    for name, hint, field in _declared(declared):
        if name not in without:
            field_info = Field(description=field.description) if name in required else field
            settings[name] = (_kind(hint, checks_values), field_info)
    return create_model(declared.__name__, __base__=base, **settings)


def check_settings(
    settings: Mapping[str, Any],
    declared: Callable[..., Any],
    place: str,
) -> None:
    """Check settings against those that a dataclass or a function declares.

    Raises:
        RecipeError: see [`Keys.read`].
    """
    model_of(declared).read(settings, place)


def json_schema(model: type[Keys]) -> dict[str, Any]:
    """Return a JSON schema without references and titles."""
    schema = model.model_json_schema(schema_generator=_Schemas)
    return _inlined(schema, schema.get("$defs", {}))


class _Schemas(GenerateJsonSchema):
    """Takes anything where a kind or a default has no JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inlined = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "title")}
    inlined = {
        key: {name: _inlined(part, definitions) for name, part in value.items()}
        if key == "properties"
        else _inlined(value, definitions)
        for key, value in inlined.items()
    }
    if "$ref" in schema:
        inlined = _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions) | inlined
    return inlined


def in_words(schema: Mapping[str, Any]) -> str:
    """Return what a value has to be, in the words of people."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "prefixItems" in schema:
        parts = {in_words(part).removeprefix("a ") for part in schema["prefixItems"]}
        return f"a list of {len(schema['prefixItems'])} {' or '.join(parts)}s"
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    kinds = {option.get("type") for option in options}
    is_of_enum = any("enum" in option for option in options)
    words = [
        in_words(option)
        for option in options
        if not (option.get("type") == "integer" and "number" in kinds)
        and not (option == {"type": "string"} and is_of_enum)  # the name of a member
    ]
    return " or ".join(dict.fromkeys(words)) or WORDS.get(schema.get("type", ""), "any value")


def _fault(kind: str, message: str, keys: list[str] | None = None) -> PydanticCustomError:
    return PydanticCustomError(kind, "{message}", {"message": message, "keys": keys})


def _hint(key: Any, keys: Iterable[str]) -> str:
    names = sorted(keys)
    near = difflib.get_close_matches(str(key), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def _declaring(model: type[Keys], key: str) -> type[Keys]:
    """Return the class that declares a key which a model has."""
    kinds = (kind for kind in reversed(model.__mro__) if issubclass(kind, Keys))
    return next(kind for kind in kinds if key in kind.model_fields)


def _kind(hint: Any, checks_values: bool) -> Any:
    """Return what pydantic makes of an annotation: plain kinds are checked, others described."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    parts = tuple(
        dict if dataclasses.is_dataclass(part) or is_typeddict(part) else part for part in parts
    )
    kinds = tuple(get_origin(part) or part for part in parts)
    if checks_values and set(kinds) <= PLAIN:
        return Union[kinds]  # noqa: UP007
    if checks_values and set(kinds) <= {*PLAIN, tuple}:
        return Annotated[hint, BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)]
    return Annotated[Union[parts], SkipValidation()]  # noqa: UP007


def _declared(declared: Callable[..., Any]) -> Iterator[tuple[str, Any, FieldInfo]]:
    """Yield name, annotation and field of each setting."""
    if dataclasses.is_dataclass(declared):
        return _of_fields(declared)
    return _of_arguments(declared)


def _of_fields(declared: Any) -> Iterator[tuple[str, Any, FieldInfo]]:
    hints = _hints(declared)
    meanings: dict[str, str] = {}
    for kind in reversed(declared.__mro__):  # a subclass describes what it adds
        meanings |= _meanings(kind.__doc__)
    for entry in filter(lambda entry: entry.init, dataclasses.fields(declared)):
        is_made = entry.default_factory is not dataclasses.MISSING
        default = entry.default_factory() if is_made else entry.default  # type: ignore[operator]
        text = entry.metadata.get("help") or meanings.get(entry.name, "")
        least = entry.metadata.get("least")
        yield entry.name, hints.get(entry.name, Any), _field(default, text, least)


def _of_arguments(declared: Callable[..., Any]) -> Iterator[tuple[str, Any, FieldInfo]]:
    function = declared.__init__ if isinstance(declared, type) else declared  # type: ignore[misc]
    hints, meanings = _hints(function), _meanings(declared.__doc__)
    for name, parameter in inspect.signature(declared).parameters.items():
        is_required = parameter.default is parameter.empty
        default = dataclasses.MISSING if is_required else parameter.default
        yield name, hints.get(name, Any), _field(default, meanings.get(name, ""))


def _field(default: Any, description: str, least: int | None = None) -> Any:
    arguments = {} if default is dataclasses.MISSING else {"default": default}
    return Field(description=description or None, ge=least, **arguments)


def _hints(declared: Any) -> dict[str, Any]:
    try:
        return get_type_hints(declared)
    except NameError:  # a name that is imported for type checkers only
        entries = dataclasses.fields(declared) if dataclasses.is_dataclass(declared) else ()
        return {entry.name: entry.type for entry in entries if _is_whole(entry.type)}


def _is_whole(hint: Any) -> bool:
    """Return whether an annotation holds no name that is not looked up yet."""
    if get_origin(hint) is Literal:
        return True
    return not isinstance(hint, str | ForwardRef) and all(map(_is_whole, get_args(hint)))


def _meanings(docstring: str | None) -> dict[str, str]:
    """Read the section `Args:` of a docstring; several names may share a meaning."""
    _, _, arguments = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    entries = re.split(r"\n\S", arguments)[0]
    meanings: dict[str, str] = {}
    for block in re.split(r"\n(?=    \S)", entries):
        if match := ARGUMENTS.match(" ".join(block.split())):
            meanings |= dict.fromkeys(re.split(r", ?", match[1]), match[2])
    return meanings


__all__ = [
    "Keys",
    "KeysOf",
    "RecipeError",
    "UnknownKeyError",
    "check_settings",
    "in_words",
    "json_schema",
    "meaning",
    "model_of",
    "section",
]
