"""Models of Transformers without symbols, on the user's own pairs beside models that have some.

A text goes in as its tokenizer reads it, and what the model writes is the answer: what such a model
was before it was converted. A decoder goes on behind the text, as it is trained by
`objective: causal` with `pairs`, and as a converted decoder does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel

from hf_alpha.evaluation.covariance import AlphaCovariance, Generating, covariance_of
from hf_alpha.evaluation.evaluate import Exam, Row, digest, evaluate_answers, fingerprint
from hf_alpha.evaluation.names import Words
from hf_alpha.evaluation.report import Report
from hf_alpha.generation import (
    InputTooLong,
    answer_room,
    generate_rows,
    room_for,
    search_settings,
    warn_of_unknown,
)
from hf_alpha.tasks import DrawnTask, Task
from hf_alpha.tasks.checking import Answer, Given, NoAnswer

SAMPLE = "swap x_1 Y : ( a + b ) → Zoë's 42"
"""How it is encoded stands for a tokenizer."""
TOO_LONG = NoAnswer("longer than the model's positions")


@dataclass(frozen=True)
class _Writer:
    """A model that writes an answer to a text; what `evaluate_answers` needs.

    Attributes:
        module: the model.
        tokenizer: the one that belongs to it.
        search: arguments of `generate`.
    """

    module: PreTrainedModel
    tokenizer: Any
    search: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "weights": fingerprint(self.module),
            "encoded": digest(self._encode(SAMPLE)),
            **self.search,
        }

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer(text, verbose=False)["input_ids"]

    def read(self, problems: Sequence[str]) -> list[list[int]]:
        rows = [self._encode(str(problem)) for problem in problems]
        warn_of_unknown(self.tokenizer, problems, rows)
        return rows

    def plan(self, inputs: Sequence[list[int] | None], batch_size: int) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for index, ids in enumerate(inputs):
            if ids is not None:
                groups.setdefault(len(ids), []).append(index)
        ordered = [groups[length] for length in sorted(groups, reverse=True)]
        return [row[i : i + batch_size] for row in ordered for i in range(0, len(row), batch_size)]

    def answer(self, inputs: Sequence[list[int]]) -> list[Given]:
        """Answer texts of one length, which need no padding."""
        limit = self.search["max_new_tokens"]
        try:
            room = answer_room(self.module.config, len(inputs[0]), limit, "the text")
        except InputTooLong:
            return [TOO_LONG] * len(inputs)
        rows = [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in inputs]
        search = {**self.search, "max_new_tokens": room}
        written = generate_rows(self.module, self.tokenizer, rows, search)
        count = self.search["num_return_sequences"]
        answers = [
            Answer(
                self.tokenizer.decode(ids, skip_special_tokens=True).strip(),
                ended=room is None or len(ids) < room,
            )
            for ids in written
        ]
        return [answers[i : i + count] for i in range(0, len(answers), count)]


@dataclass
class HostModel:
    """A model without symbols to be measured, and what its row is called; for `compare`."""

    name: str
    model: PreTrainedModel
    tokenizer: Any
    _unmeasured: str | None = field(default=None, init=False)

    def settings(
        self, task: Task, rows: Sequence[Row], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of an evaluation, with a limit for answers in its own tokens.

        Raises:
            ValueError: the problems are none of the user's own pairs.
        """
        if isinstance(task, DrawnTask):
            raise ValueError(
                f"{self.name} has no symbols, and answers your own pairs only, no problems of task "
                f"{task.name!r}: docs/names-benchmark.md asks language models by prompts"
            )
        targets = [str(row["answer"]) for row in rows if row.get("answer") is not None]
        lengths = [len(self.tokenizer(target, verbose=False)["input_ids"]) for target in targets]
        limit = settings["max_new_tokens"] or room_for(max(lengths, default=0))
        return {**settings, "max_new_tokens": limit}

    def evaluate(self, exam: Exam) -> Report:
        """Answer the texts, and check the answers; a stopped run continues."""
        own = {"num_beams", "max_new_tokens", "top_n"}
        rest = {key: value for key, value in exam.settings.items() if key not in own}
        return evaluate_answers(
            self._writer(exam), exam.task, exam.rows, name=self.name, folder=exam.folder, **rest
        )

    def covariance(
        self,
        exam: Exam,
        problems: Sequence[str],
        max_renamings: int | None = 24,
        seed: int = 0,
    ) -> AlphaCovariance | None:
        """Measure alpha-covariance over renamings of the words that are names in these texts.

        None where the tokenizer does not keep such a word; `notes` says which.
        """
        finder: Any = getattr(exam.task, "finder", None)
        classes: dict[str, dict[str, None]] = {}
        for text in problems:
            for start, stop, kind in finder.find(text) if finder is not None else ():
                classes.setdefault(kind, {})[text[start:stop]] = None
        search = {name: exam.settings[name] for name in ("num_beams", "max_new_tokens")}
        try:
            names = Words(self.tokenizer, {k: list(v) for k, v in classes.items()})
            answerer = Generating(self.model, self.tokenizer, names, {"do_sample": False, **search})
            texts = [str(problem) for problem in problems]
            return covariance_of(
                answerer, texts, max_renamings, seed, batch_size=exam.settings["batch_size"],
                progress=exam.settings["progress"],
            )  # fmt: skip
        except ValueError as error:
            self._unmeasured = f"{self.name}: alpha-covariance was not measured: {error}"
            return None

    def notes(self, exam: Exam, draws: int) -> list[str]:
        """Say why alpha-covariance was not measured, if so."""
        return [] if self._unmeasured is None else [self._unmeasured]

    def _writer(self, exam: Exam) -> _Writer:
        settings = exam.settings
        beams = max(settings["num_beams"], settings["top_n"])
        search = search_settings(beams, 1.0, settings["max_new_tokens"], settings["top_n"])
        return _Writer(self.model, self.tokenizer, search)


__all__ = ["HostModel"]
