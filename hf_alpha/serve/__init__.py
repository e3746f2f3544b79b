"""An address that OpenAI's clients talk to: one model, which answers in the names of each text."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typer import Option


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes: options of `hf-alpha serve`."""

    PANEL: ClassVar[str] = "Limits"
    batch: Annotated[int, Option(min=1, help="Answers written at the same time.")] = 16
    waiting: Annotated[int, Option(min=1, help="Requests that wait; others are refused.")] = 256
    timeout: Annotated[float, Option(help="Seconds for a request, also while it waits.")] = 120
    max_input: Annotated[int, Option(min=1, help="Tokens of a text or a chat.")] = 4096
    max_tokens: Annotated[int, Option(min=1, help="Tokens of an answer.")] = 1024
