"""Models that follow instructions, asked by few-shot prompts (2601.23169, Section 5.6).

Whoever is asked gives replies: a model of Transformers here (`LocalModel`), or one behind an
address (`service.Service`). A task's `prompt` writes what is asked and finds answers in replies,
the task checks them, and alpha-covariance is measured over renamings of the formula; the examples
in the prompt stay as they are.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel

from hf_alpha.evaluation.covariance import AlphaCovariance, Group, covariance_of
from hf_alpha.evaluation.evaluate import Exam, Given, Row, digest, evaluate_answers, fingerprint
from hf_alpha.evaluation.names import Items, Table, rename
from hf_alpha.evaluation.report import Report
from hf_alpha.generation import answer_room, generate_rows
from hf_alpha.modeling.grammar import words
from hf_alpha.processes import process_state
from hf_alpha.tasks import Task
from hf_alpha.tasks.prompts import NoAnswer, Prompt

DEFAULT_GENERATION: dict[str, Any] = {"do_sample": False, "num_beams": 1, "max_new_tokens": 256}
SAMPLE = 'Formula: !a U b & (c or d)\nTrace: `!a;b;cycle{1}`\n\n{"a": true, "b": 0}\nAnswer:'
"""A prompt; how it is encoded stands for the tokenizer and its chat template."""
REPLIES_FILES = "replies-*.jsonl"
CUT_OFF = NoAnswer("cut off at the limit of tokens")
NO_ANSWER: Items = ("no answer",)
"""What alpha-covariance compares where there is no answer, whatever the reason: no names."""


@dataclass(frozen=True)
class Reply:
    """The reply to a prompt.

    Attributes:
        text: the reply.
        ended: False if it was cut off at a limit of tokens: it has no answer then.
        prompt_tokens: tokens of the prompt; None if that is not known.
        reply_tokens: tokens of the reply, thoughts included; None likewise.
    """

    text: str
    ended: bool = True
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


Keep = Callable[[str, Reply], None]


class Asked(Protocol):
    """What replies to prompts: a model here, or a service elsewhere."""

    @property
    def module(self) -> torch.nn.Module | None:
        """The model; None if it is elsewhere."""

    @property
    def plain(self) -> bool:
        """Whether it only continues a text, and follows no instructions."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that replies depend on, for JSON."""

    @property
    def sampled(self) -> bool:
        """Whether replies are drawn at random."""

    def length(self, prompt: str) -> Any:
        """Return a prompt's length: prompts of one length may be asked together."""

    def ask(self, prompts: Sequence[str], keep: Keep) -> None:
        """Ask different prompts of one length; each reply goes to `keep` as soon as it is there."""


class LocalModel:
    """A model of Transformers on this machine.

    With a chat template its prompts are messages of a user. Without one it continues the prompt,
    and the first paragraph of what it says is the reply.

    Args:
        model: on the device on which to work.
        tokenizer: the one that belongs to it.
        generation: arguments of `model.generate`, over those of DEFAULT_GENERATION.
        seed: of what is drawn with `do_sample`: a batch of prompts always gets the same replies.

    Raises:
        ValueError: `generation` has max_length, or asks for several replies.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        generation: Mapping[str, Any] | None = None,
        seed: int = 0,
    ):
        self.module, self.tokenizer, self.seed = model, tokenizer, seed
        self.generation = {**DEFAULT_GENERATION, **(generation or {})}
        if "max_length" in self.generation:
            raise ValueError("give max_new_tokens, which counts the answer alone, no max_length")
        if self.generation.get("num_return_sequences", 1) != 1:
            raise ValueError("a prompt gets one reply: leave out num_return_sequences")
        self.plain = getattr(tokenizer, "chat_template", None) is None
        drawing = {"seed": seed} if self.sampled else {}
        self.settings = {
            "weights": fingerprint(model),
            "encoded": digest(self._encode(SAMPLE)["input_ids"]),
            "generation": self.generation,
            **drawing,
        }

    @property
    def sampled(self) -> bool:
        """Whether replies are drawn at random."""
        return bool(self.generation["do_sample"])

    def length(self, prompt: str) -> int:
        """Return the tokens of a prompt: prompts of one length need no padding."""
        return len(self._encode(prompt)["input_ids"])

    def ask(self, prompts: Sequence[str], keep: Keep) -> None:
        """Generate replies.

        Raises:
            ValueError: the prompts are longer than the model's positions.
        """
        rows = [self._encode(prompt) for prompt in prompts]
        size, limit = len(rows[0]["input_ids"]), self.generation["max_new_tokens"]
        room = answer_room(self.module.config, size, limit, "the prompt")
        settings = {**self.generation, "max_new_tokens": room}
        prompts_hash = hashlib.sha256(json.dumps([self.seed, *prompts]).encode()).digest()
        with torch.random.fork_rng(enabled=self.sampled):
            if self.sampled:
                torch.manual_seed(int.from_bytes(prompts_hash[:4], "big"))
            replies = generate_rows(self.module, self.tokenizer, rows, settings)
        for prompt, ids in zip(prompts, replies, strict=True):
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            ended = room is None or len(ids) < room
            if self.plain:
                text, paragraph_end, _ = text.lstrip().partition("\n\n")
                ended = ended or bool(paragraph_end)
            keep(prompt, Reply(text.strip(), ended, size, len(ids)))

    def _encode(self, prompt: str) -> dict[str, list[int]]:
        if self.plain:
            encoding = self.tokenizer(prompt, verbose=False)
        else:
            encoding = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=True
            )
        ids = list(encoding["input_ids"])
        return {"input_ids": ids, "attention_mask": [1] * len(ids)}


class KeptReplies:
    """Replies of whoever is asked, kept in a folder as they come: no prompt is asked twice.

    Args:
        asked: whoever is asked.
        folder: where `replies-*.jsonl` are, one of each process; None to keep none.
    """

    def __init__(self, model: Asked, folder: Path | None):
        self.asked = model
        self.replies: dict[str, Reply] = {}
        self._by = digest(model.settings)
        self._lock = Lock()
        self._file: Path | None = None
        if folder is not None:
            state = process_state()
            rank = 0 if state is None else state.process_index
            self._file = folder / REPLIES_FILES.replace("*", str(rank))
            for path in sorted(folder.glob(REPLIES_FILES)):
                self._read(path)

    def ask(self, prompts: Sequence[str]) -> list[Reply]:
        """Return the reply to each prompt; all prompts are of one length."""
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self.replies]
        if missing:
            self.asked.ask(missing, self._keep)
        return [self.replies[prompt] for prompt in prompts]

    def _keep(self, prompt: str, reply: Reply) -> None:
        with self._lock:  # replies of a service come in threads
            self.replies[prompt] = reply
            if self._file is None:
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"by": self._by, "prompt": prompt, **asdict(reply)})
            # A killed run may have left half a line: each begins with a line's end.
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}")

    def _read(self, path: Path) -> None:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
                by, prompt = record.pop("by"), record.pop("prompt")
                reply = Reply(**record)
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
            if by == self._by:
                self.replies[prompt] = reply


@dataclass(frozen=True)
class _Problems:
    """Problems as prompts, replies as answers; what `evaluate_answers` needs."""

    replies: KeptReplies
    task: Task
    prompt: Prompt

    @property
    def module(self) -> torch.nn.Module | None:
        return self.replies.asked.module

    @property
    def settings(self) -> dict[str, Any]:
        return {"prompt": digest(self.ask(self.task.example)), **self.replies.asked.settings}

    def ask(self, problem: str) -> str:
        return self.prompt.ask(self.task.parse(problem), self.replies.asked.plain)

    def read(self, problems: Sequence[str]) -> list[str]:
        return [self.ask(problem) for problem in problems]

    def plan(self, inputs: Sequence[str | None], batch_size: int) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for index, prompt in enumerate(inputs):
            if prompt is not None:
                groups.setdefault(self.replies.asked.length(prompt), []).append(index)
        ordered = [groups[length] for length in sorted(groups, reverse=True)]
        return [row[i : i + batch_size] for row in ordered for i in range(0, len(row), batch_size)]

    def answer(self, inputs: Sequence[str]) -> list[Given]:
        return [self.given(reply) for reply in self.replies.ask(inputs)]

    def given(self, reply: Reply) -> Given:
        if not reply.ended:  # an answer that it has may be one that it only tries
            return CUT_OFF
        answer = self.prompt.read(reply.text)
        return answer if isinstance(answer, NoAnswer) else [answer]


class Formulas:
    """Names as tokens of formulas: all that occur in some problems, filled up with others.

    Args:
        task: a task with one class of symbols.
        problems: formulas in any notation.

    Attributes:
        classes: the names of the problems, and behind them those of the task's own names that are
            needed to have as many as the task's vocabulary starts with.
        names: all of them.
    """

    def __init__(self, task: Task, problems: Iterable[str]):
        self._task = task
        own_names = list(dict.fromkeys(name for text in problems for name in task.symbols_of(text)))
        count = max(len(own_names), sum(task.symbol_classes.values()))
        free_names = (
            name for name in task.default_symbols(len(own_names) + count) if name not in own_names
        )
        self.classes = [[*own_names, *islice(free_names, count - len(own_names))]]
        self.names = set(self.classes[0])

    def read(self, problem: str) -> Items:
        """Return the canonical tokens of a problem."""
        return tuple(self._task.parse(problem))

    def items(self, source: Items) -> Items:
        """Return a problem's items, as `read` found them."""
        return source


@dataclass(frozen=True)
class _Renamed:
    """Renamed problems as prompts; what `covariance_of` needs."""

    problems: _Problems
    names: Formulas

    @property
    def module(self) -> torch.nn.Module | None:
        return self.problems.module

    def _ask(self, source: Items, table: Table) -> str:
        tokens = [str(token) for token in rename(source, table)]
        return self.problems.prompt.ask(tokens, self.problems.replies.asked.plain)

    def groups(self, source: Items, tables: Iterable[Table]) -> list[Group]:
        length = self.problems.replies.asked.length
        return [(length(self._ask(source, table)),) for table in tables]

    def answer(self, rows: Sequence[tuple[Items, Table]], group: Group) -> list[Items]:
        answers = self.problems.answer([self._ask(source, table) for source, table in rows])
        return [NO_ANSWER if isinstance(x, NoAnswer) else _tokens(x[0]) for x in answers]


@dataclass
class AskedModel:
    """A model that is asked by a prompt, and what its row is called; for `compare`."""

    name: str
    asked: Asked

    def settings(
        self, task: Task, rows: Sequence[Row], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of an evaluation that are for this kind of model.

        Raises:
            ValueError: several answers to a problem are wanted.
        """
        if settings["top_n"] > 1:
            raise ValueError(f"{self.name} gives one answer to a prompt: leave out top_n")
        names = ("batch_size", "solver", "timeout", "num_workers", "progress")
        return {name: settings[name] for name in names}

    def evaluate(self, exam: Exam) -> Report:
        """Answer the problems, and check the answers; a stopped run continues.

        Raises:
            ValueError: the task has no prompt, or the folder holds a run with other settings.
            ServiceError: a service does not answer.
        """
        return evaluate_answers(
            self._problems(exam),
            exam.task,
            exam.rows,
            name=self.name,
            folder=exam.folder,
            **exam.settings,
        )

    def check_covariance(self) -> None:
        """Refuse to measure alpha-covariance of answers that are drawn.

        Raises:
            ValueError: they are.
        """
        if self.asked.sampled:
            raise ValueError(
                f"alpha-covariance compares single deterministic answers, and those of {self.name} "
                "are drawn: measure none (--covariance 0), or ask without sampling"
            )

    def covariance(
        self,
        exam: Exam,
        problems: Sequence[str],
        max_renamings: int | None = 24,
        seed: int = 0,
    ) -> AlphaCovariance:
        """Measure alpha-covariance over renamings of formulas; replies are kept as for `evaluate`.

        Answers are compared as they are found in the replies. A reply without an answer counts as
        an answer without names.

        Raises:
            ValueError: answers are drawn at random.
        """
        self.check_covariance()
        return covariance_of(
            _Renamed(self._problems(exam), Formulas(exam.task, problems)),
            problems,
            max_renamings,
            seed,
            batch_size=exam.settings["batch_size"],
            progress=exam.settings["progress"],
        )

    def notes(self, exam: Exam, draws: int) -> list[str]:
        """Say how many prompts were asked, and how many tokens that were."""
        replies = list(KeptReplies(self.asked, exam.folder).replies.values())
        tokens_in = sum(reply.prompt_tokens or 0 for reply in replies)
        tokens_out = sum(reply.reply_tokens or 0 for reply in replies)
        tokens = f": {tokens_in:,} tokens in, {tokens_out:,} out" if tokens_in or tokens_out else ""
        return [f"{self.name}: {len(replies):,} prompts asked{tokens}"]

    def _problems(self, exam: Exam) -> _Problems:
        task = exam.task
        if task.prompt is None:
            raise ValueError(f"task {task.name!r} has no prompt for models that are asked")
        return _Problems(KeptReplies(self.asked, exam.folder), task, task.prompt)


def _tokens(answer: str) -> Items:
    """Split an answer as tasks write it, compact or with spaces, into its tokens."""
    return tuple(word for word, _ in words(answer)) if " " in answer else tuple(answer)


__all__ = ["AskedModel", "Formulas", "KeptReplies", "LocalModel", "Reply"]
