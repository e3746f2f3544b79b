"""Evaluation of whoever answers; long runs continue where they were stopped."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha.answer.base import Answerer, Reply, Search
from hf_alpha.answer.models import Model, digest
from hf_alpha.data.formats import Row
from hf_alpha.data.rows import described
from hf_alpha.evaluation.report import (
    OUTSIDE,
    RECORDS_FILE,
    REPORT_FILE,
    Record,
    Report,
)
from hf_alpha.io.folders import check_own, write_text
from hf_alpha.io.records import Records, check_settings, read_json
from hf_alpha.processes import gather, process_state, split
from hf_alpha.tasks import Task, Verdict, get_task, name_of
from hf_alpha.tasks.checking import check_answer

PROGRESS_FILE = "progress.json"
PROGRESS_PARTS = "progress-*.jsonl"


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task | str,
    dataset: Iterable[Row],
    *,
    name: str = "model",
    folder: str | os.PathLike[str] | None = None,
    solver: str = "auto",
    timeout: float = 10.0,
    progress: bool = True,
    **search: Any,
) -> Report:
    """Evaluate a model: it answers problems, and its answers are checked.

    Args:
        task, dataset, folder, solver, timeout, progress: as `run` has them.
        search: attributes of `hf_alpha.answer.base.Search`, such as `num_beams`, `top_n`,
            `max_new_tokens` and `batch_size`.

    Raises:
        FormulaError: a problem cannot be read; the message has its index.
        ValueError: as `run`.

    Examples:
        >>> pairs = [{"source": "a & !b", "target": "a 1 b 0"}]
        >>> report = evaluate(model, tokenizer, "propositional", pairs, progress=False)
        >>> report.overall.correct
        1.0
    """
    answerer = Model(name, model, tokenizer, Search(**search))
    return run(answerer, task, dataset, folder, solver=solver, timeout=timeout, progress=progress)


def run(
    answerer: Answerer,
    task: Task | str,
    rows: Iterable[Row],
    folder: str | os.PathLike[str] | None = None,
    *,
    solver: str = "auto",
    timeout: float = 10.0,
    progress: bool = True,
) -> Report:
    """Have problems answered, and check the answers.

    In several processes (accelerate) each answers a share, and all of them return the whole report.
    A problem without an answer counts as malformed, and its record says why there is none.

    Args:
        answerer: a model, or `Random` or `Solver` beside it.
        task: a task or its name.
        rows: with `problem` (or `source`) and, if there is a target, `answer` (or `target`); a
            `datasets.Dataset` is one. `num_symbols` and `size` are used if they are there.
        folder: where the report is saved. A run that was stopped there continues, and a finished
            one is loaded.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver (the papers: 30).

    Raises:
        FormulaError: a problem cannot be read; the message has its index.
        ValueError: a row has no problem, or `folder` holds a run with other settings.
    """
    task = get_task(task) if isinstance(task, str) else task
    name, rows = name_of(task), described(task, rows)
    pairs = [(row["problem"], row["answer"]) for row in rows]
    answerer = answerer.ready(task, pairs)
    settings = {
        "task": name,
        **task.settings,
        "model": answerer.name,
        "data": digest(pairs),
        "num_samples": len(rows),
        "solver": solver,
        "timeout": timeout,
        **answerer.settings(task),
    }
    files = _RunFiles(folder, settings)
    if files.finished is not None:
        return files.finished
    todo = split([index for index in range(len(rows)) if index not in files.done], files.state)
    problems = {index: rows[index]["problem"] for index in todo}
    new: list[Record] = []
    with (
        files.writing() as written,
        closing(answerer.answer(task, problems)) as answered,
        tqdm(total=len(todo), desc=f"evaluating {answerer.name}", disable=not progress) as bar,
    ):
        for replies in answered:
            made = [
                _record(task, index, rows[index], reply, solver, timeout)
                for index, reply in replies.items()
            ]
            new += made
            if written is not None:
                written.add(*map(asdict, made))
            bar.update(len(replies))
    records = files.done | {record.index: record for record in gather(new, files.state)}
    ordered = [records[index] for index in range(len(rows))]
    return files.finish(Report(answerer.name, settings, ordered))


def _record(
    task: Task, index: int, row: Mapping[str, Any], reply: Reply, solver: str, timeout: float
) -> Record:
    """Check the answers of a reply, and return the record of all of it."""
    problem, target = row["problem"], row["answer"]
    verdicts = tuple(
        check_answer(task, problem, answer, target, solver=solver, timeout=timeout).value
        for answer in reply.answers
    )
    answers = None if reply.outside else reply.answers
    reason = "proved to have no answer" if reply.unsatisfiable else reply.reason
    return Record(
        index=index,
        problem=problem,
        target=target,
        num_symbols=row["num_symbols"],
        size=row["size"],
        facts={name: row[name] for name in task.facts},
        answers=answers,
        verdicts=verdicts or (OUTSIDE if reply.outside else Verdict.malformed.value,),
        distance=task.distance(problem, answers[0] if answers else None, target),
        reason=None if reply.outside else reason,
    )


class _RunFiles:
    """The files of a run: settings, records as they come, and the report at the end.

    Attributes:
        finished: the report, if the folder holds one already.
        done: index -> record, of earlier starts.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, settings: dict[str, Any]):
        self.state = process_state()
        self.finished: Report | None = None
        self.done: dict[int, Record] = {}
        self._rank = 0 if self.state is None else self.state.process_index
        self._folder = None if folder is None else Path(folder)
        self._is_main = self.state is None or self.state.is_main_process
        self._settings = settings
        if self._folder is not None:
            self._read(self._folder)

    def _read(self, folder: Path) -> None:
        # A report that came without its records, from a repository say, is made again.
        if (folder / REPORT_FILE).is_file() and (folder / RECORDS_FILE).is_file():
            self.finished = Report.load(folder)
            check_settings(folder, self.finished.settings, self._settings)
            return
        if (folder / REPORT_FILE).is_file():
            read_json(folder / REPORT_FILE, "model", "settings")
        check_own(folder, (RECORDS_FILE,), PROGRESS_FILE)
        if (folder / PROGRESS_FILE).is_file():
            check_settings(folder, read_json(folder / PROGRESS_FILE), self._settings)
            parts = sorted(folder.glob(PROGRESS_PARTS))
            records = [Record.from_dict(row) for path in parts for row in Records(path)]
            self.done = {record.index: record for record in records}
        elif foreign := next(folder.glob(PROGRESS_PARTS), None):
            raise ValueError(
                f"{foreign} belongs to no evaluation, for which {PROGRESS_FILE} would be there: "
                "choose another folder"
            )

    @contextmanager
    def writing(self) -> Iterator[Records | None]:
        """Give the file for the records of this process; None without a folder."""
        if self._folder is None:
            yield None
            return
        if self.state is not None:
            self.state.wait_for_everyone()  # all have read what is there
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._is_main:
            write_text(self._folder / PROGRESS_FILE, json.dumps(self._settings))
        with Records(self._folder / PROGRESS_PARTS.replace("*", str(self._rank))) as records:
            records.mend()
            yield records

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
