"""Models that answer: those with symbols, and those of Transformers as they are."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from hf_alpha.answer.base import DEFAULT_SEARCH, Answerer, Replies, Reply, Search
from hf_alpha.generation import (
    MAX_NEW_TOKENS,
    AnyTokenizer,
    InputTooLong,
    MaskedTokens,
    answer_batches,
    answer_room,
    beam_search,
    configured_limit,
    encode_problem,
    encode_problems,
    extend_vocabulary,
    plan_batches,
    room_for,
    scored_rows,
    search_settings,
)
from hf_alpha.loading import load_answering
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaEncoding
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.unknown_words import listed, unknown_words
from hf_alpha.tasks import DrawnTask, Task
from hf_alpha.tasks.base import warn_once

Pairs = Sequence[tuple[str, str | None]]
ORIGIN = {
    *("transformers_version", "_name_or_path", "architectures", "auto_map", "dtype"),
    *("max_length", "max_new_tokens", "_from_model_config"),
}
"""Keys of configurations on which answers do not depend."""
TOO_LONG = "longer than the model's positions"


@dataclass(frozen=True)
class Model(Answerer):
    """A model that answers: one with symbols, or one of Transformers as it is.

    Such a one, with a `PlainTokenizer`, takes and writes texts as its own tokenizer does: what it
    was before it was converted. A decoder goes on behind the text, as it is trained by `objective:
    causal` with `pairs`, and as a converted decoder does.

    Attributes:
        training: `TrainingFacts` that notes compare a problem with.
    """

    name: str
    model: PreTrainedModel
    tokenizer: AnyTokenizer
    search: Search = DEFAULT_SEARCH
    training: Any = None

    def extend(self, task: Task, problems: Sequence[str]) -> None:
        """Find names as the task does, and add symbols for those of problems, untrained."""
        task.prepare(self.tokenizer)
        extend_vocabulary(self.model, self.tokenizer, task.needed_symbols(problems))

    def ready(self, task: Task, pairs: Pairs) -> "Model":
        """Warn of what the tokenizer does not know, and limit answers by the longest target.

        Raises:
            FormulaError: a problem cannot be read; the message has its index.
            ValueError: a model of Transformers as it is, and no pairs of the user's own.
        """
        plain = self.tokenizer.spells_names and not self.tokenizer.finder.rules
        if plain and isinstance(task, DrawnTask):
            raise ValueError(
                f"{self.name} has no symbols, and answers your own pairs only, no problems of task "
                f"{task.name!r}: docs/names-benchmark.md asks language models by prompts"
            )
        task.prepare(self.tokenizer)
        encodings = encode_problems(self.tokenizer, [problem for problem, _ in pairs])
        _warn_of_rare_names(self.tokenizer, encodings)
        if self.search.max_new_tokens is not None:
            return self
        limit = answer_limit(task, self.tokenizer, pairs)
        return replace(self, search=replace(self.search, max_new_tokens=limit))

    def settings(self, task: Task) -> dict[str, Any]:
        return {
            "weights": fingerprint(self.model),
            "configuration": digest(_plain_settings(self.model.config)),
            "generation": digest(_plain_settings(self.model.generation_config)),
            "vocabulary": self.tokenizer.vocab_size,
            "tokenizer": digest(self.tokenizer.settings()),
            **self.search_arguments(task),
        }

    def search_arguments(self, task: Task) -> dict[str, Any]:
        """Return arguments of `generate`; answers have the model's limit where none is given."""
        search = self.search
        beams = max(search.num_beams or task.num_beams, search.top_n)
        limit = search.max_new_tokens or configured_limit(self.model)
        return search_settings(beams, search.length_penalty, limit, search.top_n)

    def notes(self, task: Task, problem: str) -> list[str]:
        """Return words that the model does not know, and names beyond those of training."""
        notes = []
        if self.training is not None:
            notes += self.training.notes(problem, task.finder)  # type: ignore[attr-defined]
        (words,) = unknown_words(self.tokenizer, [problem])
        if words:
            notes.append(f"unknown to the model, and no name by its rules: {listed(words)}")
        return notes

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Answer in batches of problems of like length; first say which ones it cannot take."""
        model, tokenizer = self.model, self.tokenizer
        search = self.search_arguments(task)
        if self.search.grammar:
            search["logits_processor"] = [self._by_grammar(task)]
        refused: dict[int, Reply] = {}
        encodings: dict[int, AlphaEncoding] = {}
        for index, problem in problems.items():
            try:
                encoding = encode_problem(tokenizer, problem)
                if encoding is None:
                    reason = too_many_names(model, tokenizer)
                    refused[index] = Reply(outside=True, reason=reason)
                    continue
                length = len(encoding["input_ids"])
                answer_room(model.config, length, search["max_new_tokens"], "the problem")
                encodings[index] = encoding
            except FormulaError as error:
                refused[index] = Reply(reason=str(error))
            except InputTooLong as error:
                refused[index] = Reply(reason=TOO_LONG, detail=str(error))
        if refused:
            yield refused
        indices, rows = list(encodings), list(encodings.values())
        most = scored_rows(model, search) if self.search.scores else self.search.batch_size
        batches = plan_batches(rows, min(self.search.batch_size, most))
        answer = beam_search(model, tokenizer, rows, search, self.search.scores)
        with closing(answer_batches(model, batches, answer, "", progress=False)) as answered:
            for batch, answers in answered:
                yield {
                    indices[place]: Reply(tuple(candidates), by=self.name)
                    for place, candidates in zip(batch, answers, strict=True)
                }

    def _by_grammar(self, task: Task) -> MaskedTokens:
        """Return what keeps a model to the grammar of answers."""
        mask = task.answer_mask(self.tokenizer)
        if mask is None or not self.model.config.is_encoder_decoder:
            what = "this task" if mask is None else "answers of a decoder alone"
            raise ValueError(f"there is no grammar of answers for {what}: leave out `grammar`")
        return MaskedTokens(mask)


def load_answerer(
    name: str, place: str, device: torch.device, search: Search = DEFAULT_SEARCH
) -> Model:
    """Load a model that answers texts: one with symbols, or one of Transformers as it is.

    Args:
        place: folder or Hub name.

    Raises:
        ValueError: it does not write answers, or cannot be read.
    """
    model, tokenizer = load_answering(place)
    return Model(name, model.to(device), tokenizer, search)


def answer_limit(task: Task, tokenizer: AnyTokenizer, pairs: Iterable[tuple[str, Any]]) -> int:
    """Return how many tokens an answer may have, by pairs of problem and target.

    Of the user's own pairs, half as many again as the longest target, and some; else 128.
    """
    if isinstance(task, DrawnTask):
        return MAX_NEW_TOKENS
    longest = 0
    for problem, target in pairs:
        if target is not None:
            with suppress(ValueError):  # more names than there are symbols
                encoded = tokenizer.encode_pair(problem, target, allow_absent_symbols=True)
                longest = max(longest, len(encoded["labels"]))
    return room_for(longest)


def _warn_of_rare_names(tokenizer: AnyTokenizer, encodings: Sequence[AlphaEncoding | None]) -> None:
    """Warn of each rule that finds no name in most problems: its answers can hardly be right."""
    if not isinstance(tokenizer, TextTokenizer) or not tokenizer.symbol_ranges:
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


def too_many_names(model: Any, tokenizer: Any) -> str:
    """Say that a text has more names than a model has symbols, and what to do."""
    num_symbols = sum(tokenizer.symbol_classes.values())
    if reason := model.config.encoding.no_extension:
        return f"more names than the {num_symbols} symbols that this model was trained on: {reason}"
    return (
        f"more names than {num_symbols} symbols: call extend_symbols on the model and the tokenizer"
    )


def fingerprint(model: torch.nn.Module) -> str:
    """Return a hash of a model's weights."""
    weights = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        weights.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        weights.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return weights.hexdigest()[:16]


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
