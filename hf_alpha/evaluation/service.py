"""A model behind an address that speaks OpenAI's protocol for chats, as many servers do.

Nothing is sent but to the address that the user names; redirections are not followed, and
proxies that the environment names are not used.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from http.client import HTTPException
from threading import Event
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from hf_alpha.evaluation.instructed import Keep, Reply
from hf_alpha.modeling.choices import refuse

PATH = "/chat/completions"
LONGEST_PAUSE = 60.0
"""Seconds between two attempts, where the service does not ask for more."""
LONGEST_WAIT = 600.0
"""Seconds between two attempts, where the service asks for more."""
SHOWN = 300
LARGEST = 16 * 2**20
"""Bytes of an answer that are read: a hundred times what the longest replies take."""
UNREADABLE = (ValueError, LookupError, TypeError, RecursionError)
"""What reading an answer ends in that is no JSON, or other or far deeper JSON than a reply."""


class ServiceError(ConnectionError):
    """A service that does not answer, or not as it should; the message has its address."""


class _Again(Exception):
    """A request failed that may do better later, after as many seconds as the service asks for."""

    def __init__(self, reason: str, after: float = 0.0):
        super().__init__(reason)
        self.after = after


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow no redirection: the key is for the address that was named."""


class Service:
    """A model of a service.

    What fails for a time (429, 500 and above, no connection, no answer in time) is tried again,
    after a pause that doubles each time, or as long as the service says in `Retry-After`, ten
    minutes at most.

    Args:
        address: where the service is, such as `http://localhost:8000/v1`.
        served: what the service calls the model.
        key: sent as a bearer token; it stands in no file and no message.
        request: more fields of each request, such as `{"max_tokens": 512}`; None leaves a field
            out. By default the temperature is 0.
        parallel: requests at a time.
        timeout: seconds without a sign of the service.
        attempts: for each prompt.
        pause: seconds after the first attempt.

    Raises:
        ValueError: the address is no http address, or has a password; the key is no key.
    """

    module = None
    plain = False

    def __init__(
        self,
        address: str,
        served: str,
        key: str | None = None,
        request: Mapping[str, Any] | None = None,
        parallel: int = 4,
        timeout: float = 600.0,
        attempts: int = 6,
        pause: float = 1.0,
    ):
        parts = urlsplit(address)
        refuse(
            (
                parts.scheme not in ("http", "https") or not parts.hostname,
                f"{address!r} is no address: write http://localhost:8000/v1",
            ),
            (
                parts.username or parts.password or parts.query,
                "an address stands in reports: keep the key out of it",
            ),
            (
                key is not None and key.split() != [key],
                "the service's key has a space or a line's end in it, or is empty",
            ),
        )
        self.url = address.rstrip("/").removesuffix(PATH) + PATH
        fields = {"model": served, "temperature": 0, **(request or {})}
        self.fields = {name: value for name, value in fields.items() if value is not None}
        self.parallel, self.timeout, self.attempts = parallel, timeout, attempts
        self.pause = pause
        self._key = key
        self._open = build_opener(ProxyHandler({}), _NoRedirection).open

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that replies depend on, without the key."""
        return {"address": self.url, "request": self.fields}

    @property
    def sampled(self) -> bool:
        """Whether replies are drawn: with no temperature it is the service's own, usually 1."""
        return bool(self.fields.get("temperature", 1) != 0)

    def length(self, prompt: str) -> int:
        """Return the same for all: each is a request of its own."""
        return 0

    def ask(self, prompts: Sequence[str], keep: Keep) -> None:
        """Ask for replies, several at a time.

        Where one fails for good, those under way still come and are kept; no more are asked for.

        Raises:
            ServiceError: the service refuses a prompt, or does not answer after all attempts.
        """
        stop = Event()
        with ThreadPoolExecutor(self.parallel) as pool:
            jobs = [pool.submit(self._work, prompt, keep, stop) for prompt in prompts]
            try:
                for job in as_completed(jobs):
                    job.result()
            finally:  # of no use after all of them: stops the others where one failed
                stop.set()

    def _work(self, prompt: str, keep: Keep, stop: Event) -> None:
        if stop.is_set():
            return
        try:
            keep(prompt, self._insist(prompt, stop))
        except BaseException:
            stop.set()  # here, before this thread takes the next prompt
            raise

    def _insist(self, prompt: str, stop: Event) -> Reply:
        """Send requests until there is a reply."""
        for attempt in range(1, self.attempts + 1):
            try:
                return self._reply(prompt)
            except _Again as error:
                reason, waiting = str(error), min(self.pause * 2 ** (attempt - 1), LONGEST_PAUSE)
                if attempt == self.attempts or stop.wait(max(waiting, error.after)):
                    break
        raise ServiceError(
            f"{self.url} gave no reply in {attempt} attempts: {reason}. Replies that came are "
            "kept: the same command goes on from there"
        )

    def _reply(self, prompt: str) -> Reply:
        """Send one request.

        Raises:
            ServiceError: it is refused, or what comes back is no reply, or too long.
            _Again: a later request may do better.
        """
        body = {**self.fields, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        request = Request(self.url, json.dumps(body).encode(), headers)
        try:
            with self._open(request, timeout=self.timeout) as answer:
                # Only where nothing limits it, reading says that an answer has ended too early.
                short = answer.length is not None and answer.length <= LARGEST
                received = answer.read() if short else answer.read(LARGEST + 1)
        except HTTPError as error:
            with error:
                reason = self._reason(error)
            if error.code == 429 or error.code >= 500:
                raise _Again(reason, _seconds(error.headers.get("Retry-After"))) from None
            raise ServiceError(f"{self.url} refuses the request: {reason}") from None
        except (OSError, HTTPException) as error:  # no connection, or not in time
            raise _Again(str(getattr(error, "reason", error)) or type(error).__name__) from None
        if len(received) > LARGEST:
            raise ServiceError(
                f"{self.url} answers with more than {LARGEST:,} bytes, which is no reply to a "
                "prompt: the rest is not read"
            )
        return self._read(received)

    def _read(self, body: bytes) -> Reply:
        try:
            answer = json.loads(body)
            choice = answer["choices"][0]
            text = choice["message"]["content"]
        except UNREADABLE:
            excerpt = self._shown(body)
            raise ServiceError(f"{self.url} answers with something else: {excerpt}") from None
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Reply(
            text if isinstance(text, str) else "",
            choice.get("finish_reason") != "length",
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
        )

    def _reason(self, error: HTTPError) -> str:
        """Return the message of an error, in one line."""
        try:
            body = error.read(LARGEST)
            message = json.loads(body)["error"]["message"]
        except (OSError, HTTPException):
            return f"{error.code} {error.reason}"
        except UNREADABLE:
            message = body.decode(errors="replace")
        return f"{error.code} {error.reason} {self._shown(str(message).encode())}".rstrip()

    def _shown(self, body: bytes) -> str:
        text = " ".join(body.decode(errors="replace").split())
        text = text if self._key is None else text.replace(self._key, "…")
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _seconds(text: str | None) -> float:
    """Read `Retry-After` where it is a number, up to a limit."""
    try:
        return min(max(0.0, float(text or 0)), LONGEST_WAIT)
    except ValueError:
        return 0.0


__all__ = ["Service", "ServiceError"]
