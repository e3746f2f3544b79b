"""One model and one thread that does all with it: it answers those that wait, in batches.

A batch has texts of any requests: its rows are drawn, ended and sent one by one. A decoder stops
where others can join its rows, or where many are done, and goes on from what it keeps of the rest:
so nobody waits for the longest one. Where a cache cannot be cut and joined, these are read again,
with what they have of their answers. What rows are answers to was read before, in other processes.
"""

import asyncio
import copy
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, cast

import torch
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from hf_alpha import generation
from hf_alpha.answer.models import too_many_names
from hf_alpha.serve import Limits, caches
from hf_alpha.serve.decoding import AnswerText
from hf_alpha.serve.http import log_fault
from hf_alpha.serve.logprobs import Logprobs
from hf_alpha.serve.messages import CallEnd, template_of
from hf_alpha.serve.reading import Read, ReadingProcess
from hf_alpha.serve.requests import Refusal, Request

COLDEST = 1e-6
"""Least temperature: scores are divided by it, and greedy long before."""
READERS = 2
"""Processes that read texts: a slow one leaves the other."""
PATIENCE = 8
"""Tokens after which a batch takes in whoever waits: to stop and go on costs about one."""
BY_TOKEN = {"input_ids": list, "attention_mask": lambda ids: [1] * len(ids)}
"""What a row's inputs have for each token that is added to its text, by the ids."""
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
        read: what the model goes on from.
        limit: tokens of an answer.
        grown: symbols were added for its names.
        matcher: holds answers to their form, if they have one; each needs its own.
    """

    def __init__(self, request: Request, seconds: float):
        self.request, self._seconds = request, seconds
        self._deadline = time.monotonic() + seconds
        self._loop, self._items = asyncio.get_running_loop(), asyncio.Queue[Any]()
        self.gone, self.read, self.limit, self.grown = False, Read(), 0, False
        self.matcher: Any = None

    @property
    def tokens(self) -> int:
        """How many its text has."""
        return len(self.read.encoding["input_ids"])

    def give(self, item: Part | Refusal | None) -> None:
        """Send something, from any thread; a refusal is the last."""
        self.gone = self.gone or isinstance(item, Refusal)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    @property
    def size(self) -> tuple[int, int]:
        """Tokens that are read, and how many may follow; none where its names lack symbols."""
        return (0, 0) if self.read.encoding is None else (self.tokens, self.limit)

    def is_over(self) -> bool:
        """Whether nothing more is to be done for it."""
        self.gone = self.gone or time.monotonic() > self._deadline
        return self.gone

    async def next(self) -> Any:
        """Wait for what comes next, as long as there is time.

        Raises:
            Refusal: there is no more.
        """
        try:
            async with asyncio.timeout(max(self._deadline - time.monotonic(), 0)):
                item = await self._items.get()
        except TimeoutError:
            self.gone = True
            told = f"this took more than {self._seconds:g} seconds, with the time it waited"
            told += ": ask for less, or serve with a longer --timeout"
            raise Refusal(504, told) from None
        if isinstance(item, Refusal):
            raise item
        return item


@dataclass(eq=False)
class AnswerRow:
    """An answer that is being written; `draw` gives a token by scores (V,), if it is drawn."""

    ask: Ask
    index: int
    draw: Callable[[torch.Tensor], int] | None
    text: AnswerText
    ids: list[int] = field(default_factory=list)
    logprobs: Logprobs | None = None
    matcher: Any = None
    call: CallEnd | None = None
    done: bool = False

    @property
    def encoding(self) -> Any:
        """What it is an answer to."""
        return self.ask.read.encoding

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of the text so far, and how many may follow."""
        return self.ask.tokens + len(self.ids), self.ask.limit - len(self.ids)

    def end(self) -> int | None:
        """Return where the answer ends in what is open of its text, by a string or a call."""
        found = [place for end in self.ask.request.stop if (place := self.text.open.find(end)) >= 0]
        called = None if self.call is None else self.call.find(self.text.open)
        found += [] if called is None else [called]
        return min(found, default=None)

    def so_far(self) -> dict[str, Any]:
        """Return what the model reads: the text, and what there is of its answer."""
        more = {name: of(self.ids) for name, of in BY_TOKEN.items()}
        return {name: [*x, *more[name]] if name in more else x for name, x in self.encoding.items()}


class Engine:
    """Answers requests.

    Args:
        model: that writes answers, on the device on which to work.
    """

    def __init__(self, model: Any, tokenizer: Any, limits: Limits):
        self.model, self.tokenizer, self.limits = model, tokenizer, limits
        self._is_decoder = not model.config.is_encoder_decoder
        # A prompt that sees itself in both directions is another one with an answer behind it.
        self._goes_on = self._is_decoder and not getattr(model.config, "prefix_lm", False)
        self._goes_on &= {"stream_ids", *BY_TOKEN} >= {*tokenizer.model_input_names}
        self._end, _ = generation.end_and_pad(model, tokenizer, {})
        self._usual = min(generation.configured_limit(model), limits.max_tokens)
        self._unread, self._waiting = deque[Ask](), deque[Ask]()
        self._rows, self._batch, self._steps = deque[AnswerRow](), list[AnswerRow](), 0
        self._held, self._cache = list[AnswerRow](), cast(Any, None)  # of these rows, in order
        self._added: list[dict[str, int]] = []  # symbols, for names
        self._changed, self.closing = threading.Condition(), False
        self.template, self._matchers = template_of(model, tokenizer), cast(Any, None)
        adds = getattr(model.config, "new_symbols", True) or model.config.learns_names
        how = (copy.deepcopy(tokenizer), limits.max_input, self.template, adds)
        self._readers = [ReadingProcess(*how) for _ in range(READERS)]
        self._threads = [threading.Thread(target=self._run, name="engine", daemon=True)]
        for reader in self._readers:
            self._threads.append(threading.Thread(target=self._read, args=(reader,), daemon=True))

    def start(self) -> None:
        """Start what reads and what answers."""
        for reader in self._readers:
            reader.start()
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the end, behind `closing`."""
        for thread in self._threads:
            thread.join()

    def ask(self, ask: Ask) -> None:
        """Take a request.

        Raises:
            Refusal: too many wait already, or the server is stopping.
        """
        if self.closing:
            raise Refusal(503, STOPPING)
        with self._changed:
            waiting = sum(not one.gone for one in (*self._unread, *self._waiting))
            if waiting >= self.limits.waiting:
                told = f"{self.limits.waiting} requests wait already: ask again later"
                raise Refusal(429, told, "rate_limit_exceeded")
            self._unread.append(ask)
            self._changed.notify_all()

    def _run(self) -> None:
        with generation.evaluation_mode(self.model):
            while self._next_batch():
                with self._failing_alone(*(row.ask for row in self._batch)):
                    self._answer()
                for row in reversed(self._batch):  # those that gave way go on first
                    row.done = row.done or not self._goes_on or self._is_over(row.ask)
                    if not row.done:
                        self._rows.appendleft(row)
                if not self._rows:  # nobody goes on from it
                    self._held, self._cache = [], None

    @contextmanager
    def _failing_alone(self, *asks: Ask) -> Iterator[None]:
        """Tell these requests where the model fails: the others and the server go on."""
        try:
            yield
        except Exception as error:
            log_fault("the model failed", error)
            for ask in asks:
                ask.give(Refusal(500, f"the model failed: {type(error).__name__}: {error}"))

    def _next_batch(self) -> bool:
        """Take in requests until there are rows for a batch; False where the server is to end."""
        with self._changed:
            while not (self._waiting or self._rows or self.closing):
                self._changed.wait(0.2)  # a signal's handler, which closes, can take no lock
        while self._waiting and (self.closing or len(self._rows) < self.limits.batch):
            ask = self._waiting.popleft()
            if not self._is_over(ask):
                with self._failing_alone(ask):
                    self._take_in(ask)
        self._batch = []
        first = [row.size for row in islice(self._rows, self.limits.batch)]
        for _ in range(self._how_many([], first)):
            self._batch.append(self._rows.popleft())
        return bool(self._batch or not self.closing)

    def _is_over(self, ask: Ask) -> bool:
        """Whether nothing more is to be done for a request; it is told where the server stops."""
        if self.closing and not ask.gone:
            ask.give(Refusal(503, STOPPING))
        return ask.is_over()

    def _take_in(self, ask: Ask) -> None:
        """Put a row for each answer in the queue, or add symbols for its names first."""
        if ask.read.needed is None:
            ask.give(None)
            for index in range(ask.request.n):
                self._rows.append(self._row(ask, index))
            return
        before = self.tokenizer.symbol_classes
        generation.extend_vocabulary(self.model, self.tokenizer, ask.read.needed)
        now = self.tokenizer.symbol_classes
        ask.grown = True
        with self._changed:
            self._added.append({name: now[name] - before[name] for name in now})
            self._unread.appendleft(ask)
            self._changed.notify_all()

    def _row(self, ask: Ask, index: int) -> AnswerRow:
        request, draw = ask.request, self._sampler(ask.request, index)
        how = (self.tokenizer, ask.read.encoding, self._is_decoder)
        row = AnswerRow(ask, index, draw, AnswerText(*how, request.stop))
        if request.rated is not None:
            row.logprobs = Logprobs(*how, request.rated)
        if request.ends_with_call:
            row.call = CallEnd.of(self.template)
        row.matcher = ask.matcher and ask.matcher.again()
        return row

    def _how_many(self, sizes: list[tuple[int, int]], more: Sequence[tuple[int, int]]) -> int:
        """Return how many more rows a batch has room for; all get the length of the longest.

        Args:
            sizes: of its rows.
            more: sizes of others, in their order.
        """
        room = None
        if more and self._is_decoder:
            room = generation.answer_room(self.model.config, 0, None)
        for count, size in enumerate(more):
            sizes = [*sizes, size]
            width = max(length for length, _ in sizes) + max(left for _, left in sizes)
            most = min(generation.BATCH_TOKENS // len(sizes), room or width)
            if len(sizes) > 1 and (len(sizes) > self.limits.batch or width > most):
                return count
        return len(more)

    def _answer(self) -> None:
        if all([self._is_over(row.ask) for row in self._batch]):
            return
        held = [row for row in self._batch if row in self._held]
        new = [row for row in self._batch if row not in self._held]
        cache = self._take_held(held)
        if held and new:
            self._batch = new
            self._go_on(None, 1)
            new = [row for row in new if not row.done]
            more = self._take_held(new)
            if more is not None:
                caches.join(cache, more)
            self._batch = held + new
            cache = cache if more is not None or not new else None
        self._go_on(cache, max(row.size[1] for row in self._batch))

    def _take_held(self, rows: Sequence[AnswerRow]) -> Any:
        """Return what the model keeps of rows, of all tokens but the last; None of none."""
        held, cache, self._held, self._cache = self._held, self._cache, [], None
        if not rows or cache is None:
            return None
        length = max(row.size[0] for row in rows) - 1
        caches.cut(cache, [held.index(row) for row in rows], length)
        return cache

    def _go_on(self, cache: Any, most: int) -> None:
        """Write at most so many tokens of the batch's answers, and hold what the model keeps.

        Args:
            cache: of all tokens but the last of each row; None to read the rows.
        """
        side = "left" if self._is_decoder else None
        self._steps, rows = 0, [row.so_far() for row in self._batch]
        inputs = self.tokenizer.pad(rows, padding_side=side, return_tensors="pt")
        settings = {
            "max_new_tokens": most,
            "logits_processor": [self],
            "stopping_criteria": [self._take],
            "past_key_values": cache,
            "return_dict_in_generate": True,
            **{"do_sample": False, "num_beams": 1, "num_return_sequences": 1},
            **dict.fromkeys(("temperature", "top_p", "top_k")),
        }
        output = generation.generate_output(self.model, inputs, settings)
        length = output.sequences.shape[1] - 1
        if self._goes_on and caches.is_by_token(output.past_key_values, len(rows), length):
            self._held, self._cache = [*self._batch], output.past_key_values

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Leave to the greedy search the token that is drawn, in rows (R, V) that are.

        It is a logits processor: Transformers looks at its signature for each token, which takes a
        hundred times as long for a bound method.
        """
        finite, changed = scores.amax(-1).isfinite().tolist(), scores
        for place, row in enumerate(self._batch):
            plain = row.draw is None and row.logprobs is None and row.matcher is None
            if row.done or (finite[place] and plain):
                continue
            changed = scores.clone() if changed is scores else changed
            with self._failing_alone(row.ask):
                self._draw(row, changed[place], finite[place])
        return changed

    def _draw(self, row: AnswerRow, scores: torch.Tensor, are_finite: bool) -> None:
        """Rate the scores (V,) of an answer's next token, and leave those that may come."""
        if not are_finite:
            raise ArithmeticError("it gives scores that are no numbers")
        if row.logprobs is not None:
            row.logprobs.rate(scores)
        if row.matcher is not None and not row.matcher.forbid(scores):
            told = "the model can write nothing of what response_format or tool_choice ask"
            row.ask.give(Refusal(400, told))
        elif row.draw is not None:
            token = row.draw(scores)
            scores.fill_(float("-inf"))[token] = 0

    def _take(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Take the next token of each row; say which rows are done: (R,)."""
        for row, token in zip(self._batch, input_ids[:, -1].tolist(), strict=True):
            row.done = row.done or self._is_over(row.ask)
            if not row.done:
                with self._failing_alone(row.ask):
                    self._add(row, token)
        done = [row.done for row in self._batch]
        self._steps += 1
        if self._gives_way():
            done = [True] * len(done)
        return torch.tensor(done, device=input_ids.device)

    def _gives_way(self) -> bool:
        """Return whether what is left of a batch is to go on alone or with others.

        That costs about as much as a token of each row: it pays where half of them are done, or as
        many join; alone, where a quarter is left. So it happens a few times for an answer.
        """
        left = [row.size for row in self._batch if not row.done]
        if not (self._goes_on and left):
            return False
        with self._changed:
            asked: Iterator[AnswerRow | Ask] = chain(self._rows, self._waiting)
            waiting = [one.size for one in islice(asked, self.limits.batch)]
        joining = self._how_many(left, waiting)
        if not joining:
            return len(self._batch) > 3 and 4 * len(left) <= len(self._batch)
        few = 2 * len(left) <= len(self._batch)
        return few or joining >= len(left) or self._steps >= PATIENCE

    def _add(self, row: AnswerRow, token: int) -> None:
        """Add a token to an answer, and send what is sure by now."""
        finish, request = "stop" if token in self._end else None, row.ask.request
        if finish is None:
            row.ids.append(token)
            row.text.add(token)
            if row.logprobs is not None:
                row.logprobs.add(token)
            finish = "length" if len(row.ids) == row.ask.limit else None
            if row.matcher is not None and row.matcher.take(token):
                finish = "stop"
        if not (finish or request.stream or request.stop or row.call):
            return
        text, end = row.text, None
        if finish is None:
            text.look()
            end = row.end()
        if finish or end is not None:
            if not text.end():
                row.done, told = True, "the names of this answer depend on more than a word: ask"
                row.ask.give(Refusal(500, f"{told} without stream"))
                return
            end = row.end()
            finish = finish if end is None else "stop"
        row.done = finish is not None
        new = text.settle(text.sure if end is None else end)
        if row.call is not None:
            row.call.take(new)
        if row.done or (new and request.stream):
            place = text.begun if end is not None or not row.done else sys.maxsize
            rated = row.logprobs.take(place, row.done) if row.logprobs is not None else None
            new = new if request.stream else text.settled
            row.ask.give(Part(row.index, new, finish, len(row.ids), rated))

    # -- reading

    def _read(self, reader: ReadingProcess) -> None:
        """Have a process read what has not been read, until the server is to end."""
        while True:
            with self._changed:
                while not (self._unread or self.closing):
                    self._changed.wait(0.2)
                if not self._unread:
                    break
                ask = self._unread.popleft()
                added = [*self._added]
            if not self._is_over(ask):
                with self._failing_alone(ask):
                    self._read_one(reader, ask, added)
        reader.stop()

    def _read_one(self, reader: ReadingProcess, ask: Ask, added: list[dict[str, int]]) -> None:
        try:
            read = reader.read(ask.request, added, not ask.grown, lambda: self._is_over(ask))
            if read is None:
                return
            if read.needed is not None and self.model.config.encoding.no_extension:
                raise ValueError(too_many_names(self.model, self.tokenizer))
            ask.read = read
            ask.limit = 0 if read.encoding is None else self._limit(ask)
            ask.matcher = read.form and self._matcher(read.form)
        except (Refusal, ValueError) as error:
            ask.give(error if isinstance(error, Refusal) else Refusal(400, str(error)))
            return
        with self._changed:
            self._waiting.append(ask)
            self._changed.notify_all()

    def _matcher(self, form: Any) -> Any:
        try:
            from hf_alpha.serve.matching import Matchers
        except ImportError as error:
            raise ValueError(f"response_format, tool_choice: {error}") from None
        with self._changed:
            self._matchers = self._matchers or Matchers(self.tokenizer, self._end)
        return self._matchers.matcher(form)

    def _limit(self, ask: Ask) -> int:
        """Return how many tokens an answer has at most."""
        config, wanted = self.model.config, ask.request.max_tokens
        room = generation.answer_room(config, ask.tokens, self.limits.max_tokens, "the text")
        assert room is not None
        if (wanted or 0) > room:
            told = f"max_tokens = {wanted:,}, and this text gets {room:,} at most"
            raise ValueError(f"{told}: by the model's positions, or by --max-tokens of the server")
        return wanted or min(room, self._usual)

    def _sampler(self, request: Request, index: int) -> Callable[[torch.Tensor], int] | None:
        """Return what draws an answer; None for a greedy one, where no request says otherwise."""
        temperature, share = request.temperature, request.top_p
        if temperature == 0 or (temperature is None and share is None):
            return None
        warm = TemperatureLogitsWarper(1.0 if temperature is None else max(temperature, COLDEST))
        cut, numbers = TopPLogitsWarper(share or 1.0), torch.Generator()
        numbers.seed() if request.seed is None else numbers.manual_seed(request.seed + index)

        def draw(scores: torch.Tensor) -> int:  # on the CPU: a seed means the same anywhere
            scores = scores[None].float().cpu()
            scores = cut(None, warm(None, scores - scores.max()))
            return int(torch.multinomial(scores.softmax(-1), 1, generator=numbers))

        return draw
