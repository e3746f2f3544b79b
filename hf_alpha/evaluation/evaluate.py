"""Evaluation of a model on a set of problems; long runs continue where they were stopped."""

import hashlib
import json
import os
import pickle
import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TextIO

import torch
from transformers import PreTrainedModel

from hf_alpha.evaluation.report import (
    OUTSIDE,
    RECORDS_FILE,
    REPORT_FILE,
    Record,
    Report,
    json_lines,
)
from hf_alpha.folders import parse_json, read_json, write_text
from hf_alpha.generation import (
    MAX_NEW_TOKENS,
    answer_batches,
    beam_search,
    encode_problems,
    plan_batches,
    room_for,
    search_settings,
)
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.names_in_text import check_list
from hf_alpha.modeling.tokenization_alpha import AlphaEncoding, AnyTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.processes import gather, process_state, split
from hf_alpha.tasks import DrawnTask, Task, Verdict, get_task, name_of
from hf_alpha.tasks.base import warn_once
from hf_alpha.tasks.checking import Answer, Given, NoAnswer, check_answers, load

PROGRESS_FILE = "progress.json"
PROGRESS_PARTS = "progress-*.jsonl"
ORIGIN = {
    *("transformers_version", "_name_or_path", "architectures", "auto_map", "dtype"),
    *("max_length", "max_new_tokens", "_from_model_config"),
}
"""Keys of configurations on which answers do not depend."""
LATER = {"configuration", "generation", "tokenizer"}
"""Settings that older runs have not written down."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Exam:
    """What one model is measured on.

    Attributes:
        task: that of the problems.
        rows: the problems, with targets if there are any.
        folder: where reports go, and what a stopped run continues from; None to keep none.
        settings: keyword arguments of `evaluate`, or of `evaluate_answers`.
    """

    task: Task
    rows: Sequence[Row]
    folder: Path | None
    settings: Mapping[str, Any]


class Answerer(Protocol):
    """Whoever answers problems: a model with symbols, or one of Transformers as it is."""

    @property
    def module(self) -> torch.nn.Module | None:
        """The model, which is put into evaluation mode meanwhile; None if it is elsewhere."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that answers depend on, for JSON: a run that resumes needs the same."""

    def read(self, problems: Sequence[str]) -> Sequence[Any | None]:
        """Read problems; None for one that is outside the vocabulary."""

    def plan(self, inputs: Sequence[Any | None], batch_size: int) -> list[list[int]]:
        """Group the indices of what was read into batches; None is left out."""

    def answer(self, inputs: Sequence[Any]) -> Sequence[Given]:
        """Answer a batch: candidates, the best first, or why there is none."""


@dataclass(frozen=True)
class _Search:
    """A model with symbols that searches with beams."""

    module: PreTrainedModel
    tokenizer: AnyTokenizer
    search: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "weights": fingerprint(self.module),
            "configuration": digest(_plain_settings(self.module.config)),
            "generation": digest(_plain_settings(self.module.generation_config)),
            "vocabulary": self.tokenizer.vocab_size,
            "tokenizer": digest(self.tokenizer.settings()),
            **self.search,
        }

    def read(self, problems: Sequence[str]) -> list[AlphaEncoding | None]:
        encodings = encode_problems(self.tokenizer, problems)
        _warn_of_rare_names(self.tokenizer, encodings)
        return encodings

    def plan(self, inputs: Sequence[AlphaEncoding | None], batch_size: int) -> list[list[int]]:
        return plan_batches(inputs, batch_size)

    def answer(self, inputs: Sequence[AlphaEncoding]) -> list[list[Answer]]:
        answers_to = beam_search(self.module, self.tokenizer, inputs, self.search)
        return answers_to(list(range(len(inputs))))


def _warn_of_rare_names(tokenizer: AnyTokenizer, encodings: Sequence[AlphaEncoding | None]) -> None:
    """Warn of each rule that finds no name in most problems: its answers can hardly be right."""
    if not isinstance(tokenizer, TextTokenizer):
        return
    rows = [set(encoding["stream_ids"]) for encoding in encodings if encoding is not None]
    for kind, rule in tokenizer.finder.rules.items():
        symbols = {i for pair in tokenizer.symbol_ranges.get(kind, ()) for i in range(*pair)}
        nameless = sum(symbols.isdisjoint(row) for row in rows)
        if rule.is_sought and 2 * nameless > len(rows):
            warn_once(
                f"the rule of {kind!r}, {rule.to_dict()}, finds no name in {nameless:,} of "
                f"{len(rows):,} problems: do they write names as the training data did? If not, "
                "answers can hardly be right"
            )


def evaluate(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    task: Task | str,
    dataset: Iterable[Row],
    *,
    name: str = "model",
    num_beams: int | None = None,
    length_penalty: float = 1.0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    top_n: int = 1,
    batch_size: int = 64,
    solver: str = "auto",
    timeout: float = 10.0,
    num_workers: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Report:
    """Evaluate a model: it answers problems, and its answers are checked.

    In several processes (accelerate) each answers a share, and all of them return the whole report.

    Args:
        model: on the device on which to work.
        tokenizer: the one that belongs to the model.
        task: a task or its name.
        dataset: rows with `problem` (or `source`) and, if there is a target, `answer` (or
            `target`); a `datasets.Dataset` is one. `num_symbols` and `size` are used if they are
            there.
        name: what the row of a table is called.
        num_beams: number of beams, by default the papers', and at least `top_n`: top-N accuracy is
            that of a search with N beams (2601.23169, Appendix I).
        length_penalty: beams are ranked by log-probability / length ** length_penalty.
        max_new_tokens: limit of an answer's length.
        top_n: candidates that are checked; the first one counts as the answer.
        batch_size: problems in a batch; without influence on the settings of a run.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver (the papers: 30).
        num_workers: processes that check answers; 0 checks them between batches, which is faster
            where a check takes as little as it does by default.
        folder: where the report is saved. A run that was stopped there continues, and a finished
            one is loaded.
        progress: show a progress bar.

    Raises:
        FormulaError: a problem cannot be read; the message has its index.
        ValueError: a row has no problem, `folder` holds a run with other settings, or worker
            processes cannot load the task.
    """
    task = get_task(task) if isinstance(task, str) else task
    task.prepare(tokenizer)
    num_beams = max(num_beams or task.num_beams, top_n)
    search = search_settings(num_beams, length_penalty, max_new_tokens, top_n)
    return evaluate_answers(
        _Search(model, tokenizer, search), task, dataset, name=name, batch_size=batch_size,
        solver=solver, timeout=timeout, num_workers=num_workers, folder=folder, progress=progress,
    )  # fmt: skip


def evaluate_answers(
    answerer: Answerer,
    task: Task,
    dataset: Iterable[Row],
    *,
    name: str = "model",
    batch_size: int = 64,
    solver: str = "auto",
    timeout: float = 10.0,
    num_workers: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Report:
    """Evaluate whoever answers problems; `evaluate` describes arguments and errors.

    A problem without an answer counts as malformed, and its record says why there is none.
    """
    samples = read_samples(task, dataset)
    settings = {
        "task": name_of(task),
        "model": name,
        "data": _hash_samples(samples),
        "num_samples": len(samples),
        "solver": solver,
        "timeout": timeout,
        **task.settings,
        **answerer.settings,
    }
    run = _RunFiles(folder, settings)
    if run.finished is not None:
        return run.finished
    inputs = answerer.read([sample.problem for sample in samples])
    open_inputs = [x if index not in run.done else None for index, x in enumerate(inputs)]
    batches = split(answerer.plan(open_inputs, batch_size), run.state)
    num_done = len(run.done) if run.state is None else 0

    def answer(batch: list[int]) -> Sequence[Given]:
        return answerer.answer([open_inputs[index] for index in batch])

    title = f"evaluating {name}"
    answered = answer_batches(answerer.module, batches, answer, title, progress, num_done)
    with run, _Checker(task, solver, timeout, num_workers) as checker, closing(answered):
        for batch, answers in answered:
            checker.submit([samples[i] for i in batch], answers)
            run.append(checker.ready())
        run.append(checker.ready(wait=True))
    outside_records = _outside(task, samples, inputs)
    new = {record.index: record for record in [*gather(run.new, run.state), *outside_records]}
    records = {**run.done, **new}
    return run.finish(Report(name, settings, [records[i] for i in range(len(samples))]))


def _outside(task: Task, samples: Sequence["Sample"], inputs: Sequence[Any | None]) -> list[Record]:
    """Return records of the problems that are outside the vocabulary."""
    pairs = zip(samples, inputs, strict=True)
    return [sample.record(task, None, (OUTSIDE,)) for sample, features in pairs if features is None]


def answer_limit(task: Task, tokenizer: AnyTokenizer, rows: Iterable[Row]) -> int:
    """Return how many tokens an answer may have.

    Of the user's own pairs, half as many again as the longest target, and some; else 128.
    """
    if isinstance(task, DrawnTask):
        return MAX_NEW_TOKENS
    longest = 0
    for row in rows:
        if row.get("answer") is not None:
            with suppress(ValueError):  # more names than there are symbols
                encoded = tokenizer.encode_pair(
                    row["problem"], row["answer"], allow_absent_symbols=True
                )
                longest = max(longest, len(encoded["labels"]))
    return room_for(longest)


def evaluate_random(
    task: Task | str,
    dataset: Iterable[Row],
    *,
    seed: int = 0,
    name: str | None = None,
    top_n: int = 1,
    solver: str = "auto",
    timeout: float = 10.0,
) -> Report:
    """Evaluate random answers to each problem: what a model has to beat.

    Args:
        task: a task or its name.
        dataset: as of `evaluate`.
        seed: of the answers.
        name: of the row; by default the task's `random_name`.
        top_n: answers to each problem, drawn one after the other; the first one counts as the
            answer.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver.
    """
    task = get_task(task) if isinstance(task, str) else task
    name = task.random_name if name is None else name
    samples = read_samples(task, dataset)
    generators = [random.Random(f"{seed} {sample.index}") for sample in samples]
    answers = [
        [task.random_answer(sample.problem, rng) for _ in range(top_n)]
        for sample, rng in zip(samples, generators, strict=True)
    ]
    verdicts = check_answers(task, solver, timeout, _pairs(samples), answers)
    settings = {
        "task": name_of(task),
        "model": name,
        "data": _hash_samples(samples),
        "num_samples": len(samples),
        "seed": seed,
        "top_n": top_n,
        "solver": solver,
        "timeout": timeout,
    }
    rows = zip(samples, answers, verdicts, strict=True)
    return Report(name, settings, [sample.record(task, a, v) for sample, a, v in rows])


@dataclass(frozen=True)
class Sample:
    """A row of the data; attributes as in `Record`."""

    index: int
    problem: str
    target: str | None
    num_symbols: int
    size: int
    facts: Mapping[str, int | None]

    def record(self, task: Task, reply: Given | None, verdicts: Sequence[str]) -> Record:
        """Return the record of answers, or of the reason why there is none, and verdicts."""
        answers = None if reply is None else () if isinstance(reply, NoAnswer) else tuple(reply)
        distance = task.distance(self.problem, answers[0] if answers else None, self.target)
        return Record(
            **vars(self),
            answers=answers,
            verdicts=tuple(verdicts),
            distance=distance,
            reason=reply.reason if isinstance(reply, NoAnswer) else None,
        )


def read_samples(task: Task, dataset: Iterable[Row]) -> list[Sample]:
    """Read rows of a dataset, finding out what they do not say: symbols, size and facts.

    Raises:
        FormulaError: a problem cannot be read; the message has its row.
        ValueError: a row is none, or has no `problem` and no `source`.
    """
    check_list("dataset", dataset, "rows")
    samples = []
    for index, row in enumerate(dataset):
        if not isinstance(row, Mapping):
            raise ValueError(
                f"row {index} is {row!r}: give rows such as {{'problem': ..., 'answer': ...}}"
            )
        problem, target = (
            row.get("problem", row.get("source")),
            row.get("answer", row.get("target")),
        )
        if problem is None:
            raise ValueError(f"row {index} has no `problem` or `source`: it has {', '.join(row)}")
        num_symbols, size = row.get("num_symbols"), row.get("size")
        facts: Mapping[str, int | None] = {name: row[name] for name in task.facts if name in row}
        if num_symbols is None or size is None or len(facts) < len(task.facts):
            try:
                num_symbols, size, facts = _describe(task, problem)
            except FormulaError as error:
                raise FormulaError(f"problem {index}: {error}", error.position) from None
        samples.append(Sample(index, problem, target, num_symbols, size, facts))
    return samples


@lru_cache(maxsize=2**16)  # compared models meet the same problems, and facts may take a search
def _describe(task: Task, problem: str) -> tuple[int, int, Mapping[str, int | None]]:
    tokens = task.parse(problem)
    return len(task.symbols_in(tokens)), len(tokens), task.facts_of(tokens)


def _pairs(samples: Sequence[Sample]) -> list[tuple[str, str | None]]:
    return [(sample.problem, sample.target) for sample in samples]


class _Checker:
    """Checks answers here, or in worker processes while the model goes on."""

    def __init__(self, task: Task, solver: str, timeout: float, num_workers: int):
        self._arguments = (task, solver, timeout)
        self._num_workers = num_workers
        self._pool: ProcessPoolExecutor | None = None
        self._pending: deque[tuple[list[Sample], list[Given], Future | None]] = deque()

    def __enter__(self) -> "_Checker":
        if self._num_workers:
            self._pool = self._new_pool()
            self._try_workers()
        return self

    def _try_workers(self) -> None:
        """Raise a ValueError if workers cannot load the task: all verdicts would be lost."""
        assert self._pool is not None
        task = self._arguments[0]
        try:
            self._pool.submit(load, task).result()
        except (BrokenProcessPool, pickle.PicklingError, AttributeError) as error:
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise ValueError(
                f"processes that check answers cannot load task {name_of(task)!r}: define it in a "
                "module that they can import, start a script's work under "
                "`if __name__ == '__main__':`, or set num_workers to 0"
            ) from error

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, samples: list[Sample], answers: Sequence[Given]) -> None:
        """Take on a batch of samples with their answers, to be checked."""
        future = self._schedule(samples, list(answers))
        self._pending.append((samples, list(answers), future))

    def ready(self, wait: bool = False) -> list[Record]:
        """Return the records of batches that are done, of all of them with `wait`."""
        records = []
        while self._pending:
            samples, answers, future = self._pending[0]
            if future is not None and not future.done() and not wait:
                break
            self._pending.popleft()
            verdicts = self._verdicts(samples, answers, future)
            rows = zip(samples, answers, verdicts, strict=True)
            task = self._arguments[0]
            records += [sample.record(task, reply, outcomes) for sample, reply, outcomes in rows]
        return records

    def _verdicts(
        self, samples: list[Sample], answers: list[Given], future: Future | None
    ) -> list[tuple[str, ...]]:
        if future is None:
            return check_answers(*self._arguments, _pairs(samples), answers)
        try:
            return future.result()
        except BrokenProcessPool:
            return [self._alone(*row) for row in zip(samples, answers, strict=True)]

    def _alone(self, sample: Sample, answers: Given) -> tuple[str, ...]:
        """Check one sample of a batch whose worker died; the one that kills it is undecided."""
        try:
            future = self._schedule([sample], [answers])
            assert future is not None
            return future.result()[0]
        except BrokenProcessPool:
            return (Verdict.undecided.value,) * (
                1 if isinstance(answers, NoAnswer) else len(answers)
            )

    def _schedule(self, samples: list[Sample], answers: list[Given]) -> Future | None:
        """Give work to the pool, to a new one if it is broken."""
        if self._pool is None:
            return None
        work = partial(check_answers, *self._arguments, _pairs(samples), answers)
        try:
            return self._pool.submit(work)
        except BrokenProcessPool:
            self._pool = self._new_pool()
            return self._pool.submit(work)

    def _new_pool(self) -> ProcessPoolExecutor:
        # Not fork: it copies the locks of the model's threads in whatever state they are.
        return ProcessPoolExecutor(self._num_workers, get_context("spawn"))


class _RunFiles:
    """The files of a run: settings, records as they come, and the report at the end.

    Attributes:
        state: the processes of this run.
        finished: the report, if the folder holds one already.
        done: index -> record, of earlier starts.
        new: records of this process.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, settings: dict[str, Any]):
        self.state = process_state()
        self.finished: Report | None = None
        self.done: dict[int, Record] = {}
        self.new: list[Record] = []
        self._folder = None if folder is None else Path(folder)
        self._is_main = self.state is None or self.state.is_main_process
        self._file: TextIO | None = None
        if self._folder is not None:
            self._open(self._folder, settings)

    def _open(self, folder: Path, settings: dict[str, Any]) -> None:
        # A report that came without its records, from a repository say, is made again.
        if (folder / REPORT_FILE).is_file() and (folder / RECORDS_FILE).is_file():
            self.finished = Report.load(folder)
            _check_settings(folder, self.finished.settings, settings)
            return
        if (folder / PROGRESS_FILE).is_file():
            _check_settings(folder, read_json(folder / PROGRESS_FILE), settings)
            self.done = _read_parts(folder)
        elif foreign := next(folder.glob(PROGRESS_PARTS), None):
            raise ValueError(
                f"{foreign} belongs to no evaluation, for which {PROGRESS_FILE} would be there: "
                "choose another folder"
            )
        if self.state is not None:
            self.state.wait_for_everyone()
        if self._is_main:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / PROGRESS_FILE, json.dumps(settings))

    def __enter__(self) -> "_RunFiles":
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            rank = 0 if self.state is None else self.state.process_index
            path = self._folder / PROGRESS_PARTS.replace("*", str(rank))
            # A killed run may have left half a line.
            torn = path.is_file() and not path.read_bytes().endswith(b"\n")
            self._file = path.open("a", encoding="utf-8")
            self._file.write("\n" if torn else "")
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, records: list[Record]) -> None:
        """Keep finished records, in the file of the run too if it has a folder."""
        self.new += records
        if self._file is not None:
            self._file.write(json_lines(records))
            self._file.flush()

    def finish(self, report: Report) -> Report:
        """Save the report in place of the records that came one by one."""
        if self._folder is not None:
            if self._is_main:
                report.save(self._folder)
                for path in [*self._folder.glob(PROGRESS_PARTS), self._folder / PROGRESS_FILE]:
                    path.unlink(missing_ok=True)
            if self.state is not None:
                self.state.wait_for_everyone()
        return report


def _read_parts(folder: Path) -> dict[int, Record]:
    """Read the records of earlier starts; half a line at the end of a killed one is left out."""
    records = {}
    for path in sorted(folder.glob(PROGRESS_PARTS)):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = Record.from_dict(parse_json(line, path))
            except (ValueError, TypeError, KeyError):
                continue
            records[record.index] = record
    return records


def _check_settings(folder: Path, stored: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    # Through JSON, as the stored ones have been.
    settings = json.loads(json.dumps(settings))
    for key in dict.fromkeys([*stored, *(settings.keys() - (LATER - stored.keys()))]):
        if stored.get(key) != settings.get(key):
            raise ValueError(
                f"{folder} holds an evaluation with {key} = {stored.get(key)!r}, this one has "
                f"{settings.get(key)!r}: choose another folder, or remove that one"
            )


def fingerprint(model: torch.nn.Module) -> str:
    """Return a hash of a model's weights."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def digest(data: Any) -> str:
    """Return a hash of plain data."""
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain_settings(config: Any) -> dict[str, Any]:
    """Return what a configuration changes, without places, versions and a search's own settings."""
    return _without_origin(json.loads(config.to_json_string(use_diff=True)))


def _without_origin(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_origin(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if key not in ORIGIN
    }


def _hash_samples(samples: Sequence[Sample]) -> str:
    return digest([(sample.problem, sample.target) for sample in samples])


__all__ = ["Exam", "answer_limit", "evaluate", "evaluate_answers", "evaluate_random"]
