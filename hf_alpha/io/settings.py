"""Settings: mappings with known keys, checked by pydantic, and the first fault said in one line.

They are written out as a [`Keys`], or [`model_of`] makes one of a dataclass, whose fields have
their meaning in `metadata["help"]` (as in `TrainingArguments`) or in the class docstring, or of a
function.
"""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints, is_typeddict

from huggingface_hub.errors import StrictDataclassError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    SkipValidation,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

PLAIN = {bool, dict, float, int, str, NoneType}
"""Kinds of values that are checked where a dataclass or a function declares them."""
MISSING = (dataclasses.MISSING, inspect.Parameter.empty)
"""In place of a default."""
NAMES_FOR_CHECKERS = {"torch": SimpleNamespace(dtype=Any)}
"""In annotations of Transformers, but imported for type checkers only."""
ARGUMENT = re.compile(r"^(\w+(?:, ?\w+)*)(?: ?\(.*?\))?:(?:\s+|$)(.*)", re.DOTALL)


class RecipeError(ValueError):
    """A recipe that cannot be read or run; the message names the key and the way out.

    Args:
        where: the keys that lead to it, and before them perhaps the file.
        unknown: the keys there that are not known.
    """

    def __init__(self, message: str, where: tuple[str, ...] = (), unknown: tuple[str, ...] = ()):
        super().__init__(": ".join([*where, message]))
        self.message, self.where, self.unknown = message, where, unknown


def placed(error: Exception, *where: object) -> RecipeError:
    """Return an error as a recipe's, with the keys that lead to the place of its own keys."""
    place = tuple(map(str, where))
    if isinstance(error, RecipeError):
        return RecipeError(error.message, (*place, *error.where), error.unknown)
    return RecipeError(str(error), place)


@contextmanager
def section(name: str) -> Iterator[None]:
    """Say in which section of a recipe a setting stands that is refused.

    Raises:
        RecipeError: in place of the error of whoever refuses it.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError, StrictDataclassError) as error:
        raise placed(error, name) from error


class Keys(BaseModel):
    """A mapping with these keys and no others."""

    model_config = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, protected_namespaces=()
    )

    @classmethod
    def read(cls, content: Any, *where: str) -> Self:
        """Check a mapping.

        Args:
            where: the file and the keys that lead to it, for errors.

        Raises:
            RecipeError: a key is not known, and which one is near, or missing, or a value is wrong.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise placed(_first_fault(error, content), *where) from None

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        """Name unknown keys with what is near, and missing ones with what they are for."""
        if isinstance(content, dict):
            if unknown := [str(key) for key in content if key not in cls.model_fields]:
                hint = _hint(unknown[0], cls.model_fields)
                raise RecipeError(f"unknown key {unknown[0]!r}; {hint}", unknown=tuple(unknown))
            for key, field in cls.model_fields.items():
                if field.is_required() and key not in content:
                    raise cls.missing(key)
        return content

    @classmethod
    def missing(cls, key: str) -> RecipeError:
        """Return the error of a mapping that lacks a key."""
        description = " ".join((cls.model_fields[key].description or "").split())
        return RecipeError(f"the key {key!r} is missing: {description}".removesuffix(": "))


def _first_fault(error: ValidationError, content: Any) -> RecipeError:
    """Return the first fault that a validator here has found, or else the innermost, as it is."""
    faults = [(one, _keys_of(one["loc"], content)) for one in error.errors(include_url=False)]
    for fault, place in faults:
        if "error" in fault.get("ctx", {}):
            return placed(fault["ctx"]["error"], *place)
    fault, place = max(faults, key=lambda one: len(one[1]))
    words = dict.fromkeys(one["msg"] for one, its_place in faults if its_place == place)
    # Of a union, each alternative has its own fault.
    expected = " or ".join(word.partition(" or instance of")[0] for word in words)
    expected = expected.replace(" or Input should be", " or")
    return RecipeError(f"{expected}; it is {fault['input']!r}", place)


def _keys_of(loc: Iterable[str | int], content: Any) -> tuple[str, ...]:
    """Leave out of a place what pydantic calls alternatives of a union."""
    keys = []
    for key in loc:
        with suppress(LookupError, TypeError):
            content = content[key]
            keys.append(str(key))
    return tuple(keys or map(str, list(loc)[:1]))  # a default is in no content


def checked_by(settings: Callable[[], type[Keys]], empty: bool = True) -> GetPydanticSchema:
    """Return the annotation of a mapping that is checked, and kept as it is written.

    Args:
        settings: returns what it may say.
        empty: whether an empty mapping is not checked, since it says nothing.
    """

    def check(value: Any) -> Any:
        if isinstance(value, dict) and (value or not empty):
            settings().read(value)
        return value

    def describe(kind: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        described = json_schema(settings())
        kinds = handler(kind).get("anyOf", [])
        kinds = [described if each["type"] == "object" else each for each in kinds]
        return {"anyOf": kinds} if kinds else described

    return GetPydanticSchema(
        lambda kind, handler: core_schema.no_info_after_validator_function(check, handler(kind)),
        describe,
    )


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


def json_schema(model: type[Keys]) -> dict[str, Any]:
    """Return a JSON schema without references."""
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
    referred = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    return {
        key: _inlined(value, definitions)
        for key, value in {**referred, **schema}.items()
        if key not in ("$ref", "$defs")
    }


def _hint(key: Any, keys: Iterable[str]) -> str:
    names = sorted(keys)
    near = difflib.get_close_matches(str(key), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def _kind(hint: Any, checks_values: bool) -> Any:
    """Return what pydantic makes of an annotation: plain kinds are checked, others described."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    parts = tuple(
        dict if dataclasses.is_dataclass(part) or is_typeddict(part) else part for part in parts
    )
    kinds = tuple(get_origin(part) or part for part in parts)
    if checks_values and set(kinds) <= PLAIN:
        return Union[kinds]  # noqa: UP007
    if checks_values and set(kinds) <= {*PLAIN, tuple}:
        return Annotated[hint, BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)]
    return Annotated[Union[parts], SkipValidation()]  # noqa: UP007


def _declared(declared: Any) -> Iterator[tuple[str, Any, FieldInfo]]:
    """Yield name, annotation and field of each setting."""
    entries: list[tuple[str, Any, Mapping[str, Any]]] = []
    if dataclasses.is_dataclass(declared):
        hints = get_type_hints(declared, localns=NAMES_FOR_CHECKERS)
        for field in filter(lambda field: field.init, dataclasses.fields(declared)):
            make = field.default_factory
            entries.append(
                (field.name, field.default if make in MISSING else make(), field.metadata)
            )
    else:
        is_class = isinstance(declared, type)
        hints = get_type_hints(vars(declared)["__init__"] if is_class else declared)
        parameters = inspect.signature(declared).parameters
        entries = [(name, one.default, {}) for name, one in parameters.items()]
    kinds = getattr(declared, "__mro__", (declared,))
    meanings = {k: v for kind in reversed(kinds) for k, v in _meanings(kind.__doc__).items()}
    for name, default, metadata in entries:
        given = {} if default in MISSING else {"default": default}
        text = metadata.get("help") or meanings.get(name)
        yield name, hints.get(name, Any), Field(description=text, ge=metadata.get("least"), **given)


def _meanings(docstring: str | None) -> dict[str, str]:
    """Read the section `Args:` of a docstring; several names may share a meaning."""
    _, _, arguments = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    entries = re.split(r"\n\S", arguments)[0]
    meanings: dict[str, str] = {}
    for block in re.split(r"\n(?=    \S)", entries):
        if match := ARGUMENT.match(" ".join(block.split())):
            meanings |= dict.fromkeys(re.split(r", ?", match[1]), match[2])
    return meanings
