"""What OpenAI's clients ask, checked: what cannot be done is refused, and nothing is ignored."""

import json
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException as Refusal

NEUTRAL: dict[str, Any] = {
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "top_logprobs"), 0),
    **{"echo": False, "best_of": 1, "suffix": "", "logit_bias": {}},
    **{"parallel_tool_calls": True, "response_format": {"type": "text"}, "service_tier": "auto"},
}
"""Fields that are taken where they ask for what is done anyway."""
WITHOUT_EFFECT = {"user", "metadata", "store", "safety_identifier", "prompt_cache_key"}
"""Fields that say who asks, and change no answer."""


class Request(BaseModel, extra="allow"):
    """What both kinds of requests have; `names` is this server's own."""

    model: str
    n: int = Field(1, ge=1, le=16)
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: list[str] = []
    stream: bool = False
    stream_options: dict[Literal["include_usage"], bool] = {}
    names: list[str] | dict[str, list[str]] | None = None

    @property
    def rated(self) -> int | None:
        """How many likely tokens are told beside each one; None where nothing is."""
        return None

    @model_validator(mode="before")
    @classmethod
    def _only_what_can_be_done(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("give a JSON object")
        fields = {key: value for key, value in given.items() if value is not None}
        for key in fields.keys() - cls.model_fields.keys() - WITHOUT_EFFECT:
            if key not in NEUTRAL or fields[key] != NEUTRAL[key]:
                raise ValueError(f"{key} = {fields[key]!r} is not supported here: leave it out")
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
    tool_choice: Literal["auto", "none"] = "auto"
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=20)

    @property
    def rated(self) -> int | None:
        return self.top_logprobs if self.logprobs else None

    @model_validator(mode="after")
    def _as_templates_read_it(self) -> "Chat":
        self.max_tokens = self.max_completion_tokens or self.max_tokens
        self.tools = self.tools if self.tool_choice == "auto" else []
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: give logprobs = true with it")
        for message in self.messages:
            try:
                if not isinstance(message.get("content") or "", str):
                    message["content"] = "\n".join(part["text"] for part in message["content"])
                for call in message.get("tool_calls") or ():
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    "a message has a `content` of text, and `tool_calls` with a `function` whose "
                    f"`arguments` are JSON: {error!r}"
                ) from None
        return self


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
