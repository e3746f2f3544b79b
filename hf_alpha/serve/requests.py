"""What OpenAI's clients ask, checked: what cannot be done is refused, and nothing is ignored."""

import reprlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator
from starlette.exceptions import HTTPException

from hf_alpha.io.records import parse_json

NEUTRAL: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "top_logprobs"), (0,)),
    **dict.fromkeys(("repetition_penalty", "length_penalty", "best_of"), (1,)),
    **dict.fromkeys(("min_p", "min_tokens"), (0,)),
    **dict.fromkeys(("echo", "ignore_eos"), (False,)),
    **{"suffix": ("",), "logit_bias": ({},), "top_k": (-1, 0), "modalities": (["text"],)},
    **{"parallel_tool_calls": (True,), "response_format": ({"type": "text"},)},
    **{"function_call": ("auto", "none"), "functions": ([],), "include_reasoning": (True,)},
}
"""Fields that are taken where they ask for what is done anyway."""
WITHOUT_EFFECT = {
    *("user", "metadata", "store", "safety_identifier", "prompt_cache_key", "service_tier"),
}
"""Fields that say who asks, or how soon, and change no answer."""
KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool")
"""Of messages; developer is another name of system."""
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Listed = str | Annotated[list[str], Field(min_length=1)]
"""A name, or the spellings of one."""


class Refusal(HTTPException):
    """What a client is told in place of an answer: a status, a message and OpenAI's code for it."""

    def __init__(self, status: int, told: str, code: str | None = None):
        super().__init__(status, told)
        self.code = code


def shown(value: Any) -> str:
    """Return what a message shows of a value of anybody: not all, if it is long."""
    return reprlib.repr(value)


class Request(BaseModel, extra="allow", allow_inf_nan=False):
    """What both kinds of requests have; `names` is this server's own."""

    model: str
    n: int = Field(1, ge=1, le=16)
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: list[Stop] = Field([], max_length=4)  # each is looked for after each token
    stream: bool = False
    stream_options: dict[Literal["include_usage"], bool] = {}
    names: list[Listed] | dict[str, list[Listed]] | None = None

    @property
    def rated(self) -> int | None:
        """How many likely tokens are told beside each one; None where nothing is."""
        return None

    @property
    def has_form(self) -> bool:
        """Whether an answer has to be something: JSON, or a call."""
        return False

    @property
    def ends_with_call(self) -> bool:
        """Whether an answer ends with its first call."""
        return False

    @model_validator(mode="before")
    @classmethod
    def _only_what_can_be_done(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("give a JSON object")
        fields = {key: value for key, value in given.items() if value is not None}
        for key in fields.keys() - cls.model_fields.keys() - WITHOUT_EFFECT:
            if fields[key] not in NEUTRAL.get(key, ()):
                told = f"{key} = {shown(fields[key])} is not supported here"
                raise ValueError(f"{told}: leave it out")
        if isinstance(fields.get("stop"), str):
            fields["stop"] = [fields["stop"]]
        return fields


class Completion(Request):
    """A text, which gets answers."""

    prompt: str
    logprobs: int | None = Field(None, ge=0, le=5, strict=True)

    @property
    def rated(self) -> int | None:
        return self.logprobs


class Chat(Request):
    """A chat, which gets messages."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[dict[str, Any]] = []
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    response_format: dict[str, Any] = {"type": "text"}
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=20)

    @property
    def rated(self) -> int | None:
        return self.top_logprobs if self.logprobs else None

    @property
    def has_form(self) -> bool:
        return self.is_forced or self.schema_of_answer is not None

    @property
    def ends_with_call(self) -> bool:
        return bool(self.tools) and not self.parallel_tool_calls

    @property
    def is_forced(self) -> bool:
        """Whether an answer is a call."""
        return self.tool_choice not in ("auto", "none")

    @property
    def may_call_twice(self) -> bool:
        """Whether an answer may be several calls."""
        return self.parallel_tool_calls and not isinstance(self.tool_choice, dict)

    @property
    def schema_of_answer(self) -> dict[str, Any] | None:
        """The schema of an answer that is JSON."""
        if self.response_format["type"] == "text":
            return None
        schema = (self.response_format.get("json_schema") or {}).get("schema")
        return {"type": "object"} if schema is None else schema

    @property
    def callable(self) -> list[dict[str, Any]]:
        """The functions that may be called."""
        functions = [tool["function"] for tool in self.tools]
        if isinstance(self.tool_choice, dict):
            name = self.tool_choice["function"]["name"]
            functions = [function for function in functions if function["name"] == name]
        return functions

    def _check_form(self) -> None:
        kind, told = self.response_format.get("type"), self.response_format.get("json_schema")
        is_schema = isinstance(told, dict) and isinstance(told.get("schema"), dict)
        if kind not in ("text", "json_object") and not (kind == "json_schema" and is_schema):
            raise ValueError(
                'response_format: give {"type": "json_object"}, or {"type": "json_schema", '
                '"json_schema": {"name": ..., "schema": {...}}}'
            )
        try:
            if self.is_forced and not self.callable:
                raise ValueError(f"tool_choice = {shown(self.tool_choice)}: there is no such tool")
            assert all(isinstance(one["name"], str) for one in self.callable) or not self.has_form
        except (KeyError, TypeError, AssertionError):
            raise ValueError(
                'tools, tool_choice: give {"type": "function", "function": {"name": ...}}'
            ) from None

    @model_validator(mode="after")
    def _as_templates_read_it(self) -> "Chat":
        self.max_tokens = self.max_completion_tokens or self.max_tokens
        self.tools = [] if self.tool_choice == "none" else self.tools
        self._check_form()
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: give logprobs = true with it")
        for place, message in enumerate(self.messages):
            try:
                _check_message(message)
            except ValueError as error:
                raise ValueError(f"messages[{place}]{error}") from None
        return self


def _check_message(message: dict[str, Any]) -> None:
    """Make a message one that templates read.

    Raises:
        ValueError: it is none; the error says which of its fields, behind the message's name.
    """
    role, calls = message.get("role"), message.get("tool_calls") or []
    if not isinstance(role, str):
        raise ValueError(f".role: {shown(role)}: known are {', '.join(KNOWN_ROLES)}")
    if message.get("function_call"):
        raise ValueError(".function_call: give it as one of tool_calls")
    if role == "developer":
        message["role"] = "system"
    if not isinstance(calls, list):
        raise ValueError(f".tool_calls: {shown(calls)} is no list")
    for call in calls:
        _check_call(call)
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = "\n".join(map(_text_of, content))
    elif content is None and not calls:
        if role != "assistant":
            raise ValueError(".content: there is none")
        message["content"] = ""
    elif not isinstance(content, str | None):
        raise ValueError(f".content: {shown(content)} is no text")


def _text_of(part: Any) -> str:
    """Return the text of a part of a content."""
    kind = part.get("type", "text") if isinstance(part, dict) else part
    if kind != "text":
        raise ValueError(f".content has a part of type {shown(kind)}: this server reads text alone")
    if not isinstance(text := part.get("text"), str):
        raise ValueError(f".content has a part whose text is {shown(text)}")
    return text


def _check_call(call: Any) -> None:
    """Read the arguments of a call of a tool; some servers write nothing where there are none."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(".tool_calls: each has a `function` with a `name` and `arguments`")
    arguments = function.get("arguments")
    arguments = "{}" if arguments in ("", None) else arguments
    if isinstance(arguments, str):
        arguments = parse_json(arguments, ".tool_calls: `arguments`")
    if not isinstance(arguments, dict):
        raise ValueError(f".tool_calls: `arguments` are no object: {shown(arguments)}")
    function["arguments"] = arguments


def read_request(kind: type[Request], body: bytes) -> Any:
    """Read and check a request.

    Raises:
        Refusal: it is no JSON, a field is wrong, or what it asks for cannot be done.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise Refusal(400, place + first["msg"].removeprefix("Value error, ")) from None
