"""One model and one thread that does all with it: it answers those that wait, in batches.

A batch has texts of any requests: its rows are drawn, ended and sent one by one.
"""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import TemperatureLogitsWarper, TopPLogitsWarper
from transformers.utils import logging

from hf_alpha import generation
from hf_alpha.answer.models import too_many_names
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer
from hf_alpha.serve import Limits
from hf_alpha.serve.logprobs import BESIDE, Logprobs
from hf_alpha.serve.requests import Chat, Refusal, Request

STOPPING = "the server is stopping: ask again later"


@dataclass(frozen=True)
class Part:
    """More of an answer; `finish` says why it ends, if it does, and `tokens` how many it has.

    `logprobs` has what is asked of these, see `Logprobs.take`.
    """

    index: int
    text: str
    finish: str | None
    tokens: int
    logprobs: list[dict[str, Any]] | None


class Ask:
    """A request on its way, and what it gets: None once it is read, and parts of its answers.

    Attributes:
        gone: nobody waits for more.
    """

    def __init__(self, request: Request, seconds: float):
        self.request, self.deadline = request, time.monotonic() + seconds
        self._loop, self._items = asyncio.get_running_loop(), asyncio.Queue[Any]()
        self.gone, self.tokens, self.prefix = False, 0, ""

    def give(self, item: Part | Refusal | None) -> None:
        """Send something, from any thread; a refusal is the last."""
        self.gone = self.gone or isinstance(item, Refusal)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def next(self) -> Any:
        """Wait for what comes next.

        Raises:
            Refusal: there is no more.
        """
        item = await self._items.get()
        if isinstance(item, Refusal):
            raise item
        return item


@dataclass(eq=False)
class AnswerRow:
    """An answer that is being written; `draw` gives a token by scores (V,), if it is drawn."""

    ask: Ask
    index: int
    encoding: Any
    limit: int
    draw: Callable[[torch.Tensor], int] | None
    ids: list[int] = field(default_factory=list)
    logprobs: Logprobs | None = None
    sent: str = ""
    done: bool = False


class Engine:
    """Answers requests.

    Args:
        model: that writes answers, on the device on which to work.
    """

    def __init__(self, model: Any, tokenizer: Any, limits: Limits):
        self.model, self.tokenizer, self.limits = model, tokenizer, limits
        self._is_decoder = not model.config.is_encoder_decoder
        self._end, _ = generation.end_and_pad(model, tokenizer, {})
        self._usual = min(generation.configured_limit(model), limits.max_tokens)
        self._waiting, self._rows = deque[Ask](), deque[AnswerRow]()
        self._batch: list[AnswerRow] = []
        self._changed, self.closing = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.start, self.join = self._thread.start, self._thread.join

    def ask(self, ask: Ask) -> None:
        """Take a request.

        Raises:
            Refusal: too many wait already, or the server is stopping.
        """
        if self.closing:
            raise Refusal(503, STOPPING)
        with self._changed:
            if len(self._waiting) >= self.limits.waiting:
                told = f"{self.limits.waiting} requests wait already: ask again later"
                raise Refusal(429, told)
            self._waiting.append(ask)
            self._changed.notify()

    def _run(self) -> None:
        with generation.evaluation_mode(self.model):
            while self._next_batch():
                try:
                    self._answer()
                except Exception as error:  # a batch must not end the server
                    logging.get_logger(__name__).error("a batch failed", exc_info=True)
                    for row in self._batch:
                        told = f"the model failed: {type(error).__name__}: {error}"
                        row.ask.give(Refusal(500, told))

    def _next_batch(self) -> bool:
        """Read requests until there are rows for a batch; False where the server is to end."""
        with self._changed:
            while not (self._waiting or self._rows or self.closing):
                self._changed.wait(0.2)  # a signal's handler, which closes, can take no lock
        while self._waiting and (self.closing or len(self._rows) < self.limits.batch):
            ask = self._waiting.popleft()
            if not self._is_over(ask):
                self._read(ask)
        self._batch = []
        while self._rows and len(self._batch) < self.limits.batch and self._fits(self._rows[0]):
            self._batch.append(self._rows.popleft())
        return bool(self._batch or not self.closing)

    def _is_over(self, ask: Ask) -> bool:
        """Whether nothing more is to be done for a request; it is told why."""
        if self.closing and not ask.gone:
            ask.give(Refusal(503, STOPPING))
        elif time.monotonic() > ask.deadline and not ask.gone:
            told = f"this took more than {self.limits.timeout:g} seconds, with the time it waited"
            ask.give(Refusal(504, f"{told}: ask for less, or serve with a longer --timeout"))
        return ask.gone

    def _fits(self, row: AnswerRow) -> bool:
        """Whether a batch has room for one more row; all of them get the length of the longest."""
        rows = [*self._batch, row]
        longest = max(len(one.encoding["input_ids"]) for one in rows)
        width = longest + max(one.limit for one in rows)
        room = generation.answer_room(self.model.config, 0, None) if self._is_decoder else None
        return len(rows) == 1 or width <= min(generation.BATCH_TOKENS // len(rows), room or width)

    def _answer(self) -> None:
        if all([self._is_over(row.ask) for row in self._batch]):
            return
        side = "left" if self._is_decoder else None
        rows = [row.encoding for row in self._batch]
        inputs = self.tokenizer.pad(rows, padding_side=side, return_tensors="pt")
        settings = {
            "max_new_tokens": max(row.limit for row in self._batch),
            "logits_processor": [self._draw],
            "stopping_criteria": [self._take],
            **{"do_sample": False, "num_beams": 1, "num_return_sequences": 1},
            **dict.fromkeys(("temperature", "top_p", "top_k")),
        }
        generation.generate_ids(self.model, inputs, settings)

    def _draw(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Leave to the greedy search the token that is drawn, in rows (R, V) that are."""
        scores = scores.clone()
        for place, row in enumerate(self._batch):
            if row.logprobs is not None:
                row.logprobs.rate(scores[place])
            if row.draw is not None and not row.done:
                token = row.draw(scores[place])
                scores[place] = float("-inf")
                scores[place, token] = 0
        return scores

    def _take(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Take the next token of each row; say which rows are done: (R,)."""
        for row, token in zip(self._batch, input_ids[:, -1].tolist(), strict=True):
            row.done = row.done or self._is_over(row.ask)
            if not row.done:
                self._add(row, token)
        return torch.tensor([row.done for row in self._batch], device=input_ids.device)

    def _add(self, row: AnswerRow, token: int) -> None:
        """Add a token to an answer, and send what is sure by now."""
        finish, request = "stop" if token in self._end else None, row.ask.request
        if finish is None:
            row.ids.append(token)
            if row.logprobs is not None:
                row.logprobs.add(token)
            finish = "length" if len(row.ids) == row.limit else None
        if finish is None and not (request.stream or request.stop):
            return
        text = self._text(row)
        found = [place for stop in request.stop if (place := text.find(stop)) >= 0]
        if found:
            text, finish = text[: min(found)], "stop"
        row.done = finish is not None
        sure = text if row.done else text[: self._sure(text, request.stop)]
        if row.done and not sure.startswith(row.sent):
            told = "the names of this answer depend on more than a word: ask without stream"
            row.ask.give(Refusal(500, told))
        elif row.done or (request.stream and len(sure) > len(row.sent)):
            end = len(sure) if found or not row.done else sys.maxsize
            rated = row.logprobs and row.logprobs.take(end, row.done)
            new = sure[len(row.sent) :]
            row.ask.give(Part(row.index, new, finish, len(row.ids), rated))
            row.sent = sure

    def _text(self, row: AnswerRow) -> str:
        """Return an answer so far, in the names of its text."""
        beside = [*row.encoding["input_ids"][-BESIDE:]] if self._is_decoder else []
        names = {"names": row.encoding.names, "new_names": generation.NEW_NAME}
        read, text = self.tokenizer.decode([beside, [*beside, *row.ids]], **names)
        if text.startswith(read):
            return str(text[len(read) :])
        return str(self.tokenizer.decode(row.ids, **names))  # a word of the text goes on in it

    def _sure(self, text: str, stops: list[str]) -> int:
        """Return how many characters of an answer no further token changes."""
        end = len(text.rstrip("\ufffd"))  # bytes of a character that is not whole
        if isinstance(self.tokenizer, CanonicalTokenizer):  # what the last word stands for is open
            end = max((i + 1 for i in range(end) if text[i].isspace()), default=0)
        rests = (i for i in range(end) if any(stop.startswith(text[i:end]) for stop in stops))
        return next(rests, end)

    # -- reading

    def _read(self, ask: Ask) -> None:
        """Encode what a request has, and put a row for each answer in the queue."""
        request = ask.request
        try:
            encoding = self._encoding(request)
            ids = encoding["input_ids"]
            limit, ask.tokens = self._limit(request, len(ids)), len(ids)
            if isinstance(request, Chat):
                ask.prefix = self.tokenizer.decode(ids, False, names=encoding.names)
        except Exception as error:
            fault = not isinstance(error, (ValueError, TypeError, TemplateError))
            logging.get_logger(__name__).info("a request was not read", exc_info=fault)
            ask.give(Refusal(500 if fault else 400, f"{error}".removeprefix("row 0: ")))
            return
        ask.give(None)
        for index in range(request.n):
            row = AnswerRow(ask, index, encoding, limit, self._sampler(request, index))
            if request.rated is not None:
                row.logprobs = Logprobs(self.tokenizer, encoding, self._is_decoder, request.rated)
            self._rows.append(row)

    def _encoding(self, request: Any) -> Any:
        """Return a text or a chat as the model reads it, with its names."""
        if not isinstance(request, Chat):
            text = request.prompt
            self._check_words(text)
            if request.names is not None:
                (text,) = self.tokenizer.mark([text], request.names)
            return self._encoded(text)
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise ValueError("this model has no chat template: send a text to /v1/completions")
        goes_on, tools = request.messages[-1].get("role") == "assistant", request.tools or None

        def write(tools: Any, names: Any) -> str:
            return self.tokenizer.apply_chat_template(
                request.messages, tools, tokenize=False, names=names,
                add_generation_prompt=not goes_on, continue_final_message=goes_on,
            )  # fmt: skip

        text = write(tools, {})
        if tools and text == write(None, {}):
            raise ValueError("the chat template of this model shows no tools: leave them out")
        self._check_words(text)
        return self._encoded(write(tools, request.names), add_special_tokens=False)

    def _encoded(self, text: str, **options: Any) -> Any:
        """Encode a text; symbols are added for its names, where that needs no training."""
        try:
            return self.tokenizer(text, **options)
        except ValueError:
            needed = generation.needed_symbols(self.tokenizer, text)
            if needed is None:
                raise
            if self.model.config.encoding.no_extension:
                raise ValueError(too_many_names(self.model, self.tokenizer)) from None
            generation.extend_vocabulary(self.model, self.tokenizer, needed)
            return self.tokenizer(text, **options)

    def _check_words(self, text: str) -> None:
        """Refuse what is too long before names are looked for, and symbols added for them."""
        self._check_size(len(text.split()), "words")

    def _check_size(self, number: int, what: str) -> None:
        if number > (most := self.limits.max_input):
            told = f"the text has {number:,} {what}, and this server takes {most:,} tokens"
            raise ValueError(f"{told}: shorten it, or serve with more --max-input")

    def _limit(self, request: Request, length: int) -> int:
        """Return how many tokens an answer to a text of so many has at most."""
        self._check_size(length, "tokens")
        room = generation.answer_room(self.model.config, length, self.limits.max_tokens, "the text")
        assert room is not None
        if (request.max_tokens or 0) > room:
            told = f"max_tokens = {request.max_tokens:,}, and this text gets {room:,} at most"
            raise ValueError(f"{told}: by the model's positions, or by --max-tokens of the server")
        return request.max_tokens or min(room, self._usual)

    def _sampler(self, request: Request, index: int) -> Callable[[torch.Tensor], int] | None:
        """Return what draws an answer; None for a greedy one, where no request says otherwise."""
        temperature, share = request.temperature, request.top_p
        if temperature == 0 or (temperature is None and share is None):
            return None
        warm = TemperatureLogitsWarper(1.0 if temperature is None else float(temperature))
        cut, numbers = TopPLogitsWarper(share or 1.0), torch.Generator()
        numbers.seed() if request.seed is None else numbers.manual_seed(request.seed + index)

        def draw(scores: torch.Tensor) -> int:  # on the CPU: a seed means the same anywhere
            scores = scores[None].float().cpu()
            scores = cut(None, warm(None, scores - scores.max()))
            return int(torch.multinomial(scores.softmax(-1), 1, generator=numbers))

        return draw
