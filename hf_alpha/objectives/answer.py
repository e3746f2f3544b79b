"""To answer with text: problems of a task, or the user's own pairs of texts."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow.compute as pc
from datasets import Dataset, IterableDataset, concatenate_datasets
from transformers import PreTrainedModel

from hf_alpha import wings
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.pairs import UserPairs, evaluation_rows
from hf_alpha.data.rows import load
from hf_alpha.generation import AnyTokenizer, PairRoom, fit_tokenizer, raise_limit, room_for
from hf_alpha.io.settings import section
from hf_alpha.loading import is_plain, load_answering, load_parts
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import NUM_SYMBOLS, build_tokenizer

from .objective import Objective, Say
from .rows import check_validation, first

Problems: TypeAlias = Any
"""A `Dataset`, or problems that are drawn when they are needed."""
LABEL_SMOOTHING = (
    "label_smoothing_factor spreads over columns that a sample cannot use; "
    "set label_smoothing in the model's configuration instead"
)
SHUFFLED = 10_000
"""Rows of a stream that are shuffled at a time."""
FIRST = 3
"""Pairs that an error names."""
SHORTER = (
    "leave such pairs out by data.drop_bad=true, or take a model with more positions, or relative "
    "ones"
)
TRIED = 5
"""Targets about which a check of the user's own is asked before training."""


class AnswerObjective(Objective):
    """The objective of models that answer with text."""

    name: ClassVar[str] = "answer"
    answers: ClassVar[bool] = True

    def check_training(self, training: Mapping[str, Any]) -> None:
        if training.get("label_smoothing_factor"):
            raise ValueError(LABEL_SMOOTHING)

    def load(self, recipe: Any, examples: Any, say: Say) -> tuple[PreTrainedModel, Any]:
        if is_plain(place := str(recipe.checkpoint)):
            say(
                f"names stay as they are: {place} is a plain model; hf-alpha convert makes others "
                "of it, --to relational or canonical"
            )
        return load_answering(place)

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        fit_tokenizer(tokenizer, model)

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> AlphaCollator:
        return AlphaCollator(
            tokenizer,
            allow_absent_symbols=getattr(model.config, "new_symbols", False),
            for_decoder=not model.config.is_encoder_decoder,
        )


class AnswerProblems(AnswerObjective):
    """The objective of models that answer a task's problems, which are generated or drawn."""

    def new_tokenizer(self, recipe: Any, examples: Any, start: Path | None) -> AnyTokenizer:
        return build_tokenizer(recipe.task, recipe.num_symbols or NUM_SYMBOLS)

    def datasets(
        self, recipe: Any, examples: Any, model: PreTrainedModel, tokenizer: Any, say: Say
    ) -> dict[str, Any]:
        train, validation = prepare_data(recipe, tokenizer)
        return {"train_dataset": train, "eval_dataset": validation}

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        super().fit(recipe, model, tokenizer, say)
        raise_limit(model)
        get_task(recipe.task).prepare(tokenizer)


class AnswerPairs(AnswerObjective):
    """The objective of models that answer the user's own texts."""

    def examples(self, recipe: Any, say: Say) -> UserPairs:
        task = recipe.configured_task
        with section("data"):
            pairs = UserPairs(
                recipe.data,
                task.finder,
                recipe.seed,
                say,
                same=task.same,
                has_check=task.has_check,
                new_names=_writes_new_names(recipe),
            )
        check_validation(recipe, pairs.validation)
        with section("check"):
            _try_check(task, pairs, say)
        with section("measures"):
            _try_measures(task, pairs)
        return pairs

    def new_tokenizer(self, recipe: Any, examples: Any, start: Path | None) -> TextTokenizer:
        with section("tokenizer"):
            return examples.new_tokenizer(recipe.tokenizer)

    def load(self, recipe: Any, examples: Any, say: Say) -> tuple[PreTrainedModel, Any]:
        model, tokenizer = super().load(recipe, examples, say)
        if isinstance(tokenizer, TextTokenizer):
            with section("symbols"):
                _fit_symbols(model, tokenizer, examples, say)
        return model, tokenizer

    def datasets(
        self, recipe: Any, examples: Any, model: PreTrainedModel, tokenizer: Any, say: Say
    ) -> dict[str, Any]:
        data, task, rows = recipe.data, recipe.configured_task, examples.train
        new_names = getattr(model.config, "new_symbols", False)
        with section("data"):
            examples.look(tokenizer)
            if isinstance(rows, IterableDataset):
                rows = rows.shuffle(seed=recipe.seed, buffer_size=SHUFFLED)
            fit = partial(_fitting, model=model, data=data, say=say)
            made = partial(
                tokenize, tokenizer=tokenizer, num_workers=data.num_workers, new_names=new_names
            )
            train = fit(made(first(rows, data.max_train_samples)), "training")
            raise_limit(model, room_for(_longest_answer(train)))
            if examples.validation is None:
                return {"train_dataset": train}
            valid = fit(made(first(examples.validation, data.max_eval_samples)), "validation")
        answered = evaluation_rows(examples.validation, task, data.max_answer_samples)
        return {"train_dataset": train, "eval_dataset": valid, "answered": (task, answered)}


def prepare_data(recipe: Any, tokenizer: AnyTokenizer) -> tuple[Problems, Problems]:
    """Return a task's tokenised training and validation problems, generated first if need be.

    Args:
        recipe: for problems of a task.

    Raises:
        RecipeError: the data cannot be made or read as the recipe says.
    """
    data, drawn = recipe.data, partial(_drawn, recipe, tokenizer)
    made = partial(tokenize, tokenizer=tokenizer, num_workers=data.num_workers)
    most, most_held = data.max_train_samples, data.max_eval_samples
    if data.draw:
        train = drawn(data.draw)
        train.keys = train.keys[:most]
    else:  # both splits
        with section("data"):
            folders = [(folder.path, folder.generate) for folder in (data, *(data.more or ()))]
            parts = [_generated(recipe, *folder, "train") for folder in folders]
            train = made(first(concatenate_datasets(parts) if data.more else parts[0], most))
    if data.validation:
        place, generation = data.validation["path"], data.validation.get("generate", {})
        with section("data: validation"):
            rows = _generated(recipe, place, generation, "validation")
            return train, made(first(rows, most_held))
    if data.draw:
        return train, drawn({**data.draw, "num_samples": most_held}, split="validation")
    with section("data"):
        return train, made(first(load(data.path, "validation"), most_held))


def _drawn(recipe: Any, tokenizer: AnyTokenizer, settings: Any, split: str = "train") -> Problems:
    """Return problems that are drawn when they are needed."""
    with section("data: draw"):
        return wings.wing("drawn problems")(recipe.task, tokenizer, split=split, **settings)


def _generated(recipe: Any, path: str, generation: dict[str, Any], split: str) -> Dataset:
    """Return a split of a dataset, which is generated first if the recipe says how.

    That returns at once where the same data has been made, and refuses where other data has.
    """
    if generation:
        generate = wings.wing("generation").generate
        generate(recipe.task, path, num_workers=recipe.data.num_workers, **generation)
    return load(path, split)


def _writes_new_names(recipe: Any) -> bool:
    """Return whether the recipe's model, a new one or a checkpoint's, has new symbols."""
    if recipe.checkpoint is None:
        return bool(recipe.model.get("new_symbols"))
    if is_plain(recipe.checkpoint):
        return True
    config, _ = load_parts(recipe.checkpoint, answers=True)
    return getattr(config, "new_symbols", False)


def _fitting(rows: Any, split: str, *, model: Any, data: Any, say: Say) -> Any:
    """Leave out pairs that are longer than the model; without `data.drop_bad`, refuse them.

    Raises:
        ValueError: naming the first ones; of a stream, when it is read.
    """
    room = PairRoom.of(model.config, data.max_length)
    if not isinstance(rows, Dataset):
        return rows.filter(partial(_fits, room=room, drop=data.drop_bad))
    lengths = [*zip(_lengths(rows, "input_ids"), _lengths(rows, "labels"), strict=True)]
    long = [row for row, pair in enumerate(lengths) if not room.holds(*pair)]
    if not long:
        return rows
    counted = f"{split}: {len(long):,} of {len(rows):,} pairs"
    if not data.drop_bad or len(long) == len(rows):
        first = ", ".join(
            f"{row} ({' and '.join(map(str, lengths[row]))} tokens: {rows[row]['problem'][:40]!r})"
            for row in long[:FIRST]
        )
        raise ValueError(f"{counted} are too long ({room}): {first}; {SHORTER}")
    say(f"{counted} dropped: too long ({room})")
    return rows.select(np.setdiff1d(range(len(rows)), long))


def _fits(row: Mapping[str, Any], room: PairRoom, drop: bool) -> bool:
    """Whether a pair of a stream is not too long for a model.

    Raises:
        ValueError: it is, and is not to be dropped.
    """
    source, target = len(row["input_ids"]), len(row["labels"])
    if (fits := room.holds(source, target)) or drop:
        return fits
    raise ValueError(f"a pair of {source} and {target} tokens is too long ({room}): {SHORTER}")


def _lengths(dataset: Dataset, column: str) -> list[int]:
    """Return how many tokens a column has in each row."""
    return pc.list_value_length(dataset.with_format("arrow")[:][column]).to_pylist()


def _longest_answer(dataset: Any) -> int:
    """Return the tokens of the longest answer; 0 where that is not known, as of a stream."""
    return max(_lengths(dataset, "labels"), default=0) if isinstance(dataset, Dataset) else 0


def _try_check(task: Any, pairs: UserPairs, say: Say) -> None:
    """Ask the user's own check, if there is one, about targets: before hours of training."""
    if not task.has_check:
        return
    task.forget_checks()
    for row, pair in enumerate(evaluation_rows(pairs.train, task, TRIED)):
        place = f"{task.check_path}, training pair {row} with its target as the answer"
        try:
            verdict, _ = task.ask(pair["problem"], pair["answer"], pair["answer"])
        except (TimeoutError, RuntimeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from error
        if not verdict.is_correct:
            say(f"check: {place}: {verdict}")


def _try_measures(task: Any, pairs: UserPairs) -> None:
    """Ask the user's own measures, if there are some, about targets: before hours of training."""
    if not task.measure_paths:
        return
    targets = [pair["answer"] for pair in evaluation_rows(pairs.train, task, TRIED)]
    task.measured(targets, targets)


def _fit_symbols(model: Any, tokenizer: TextTokenizer, pairs: UserPairs, say: Say) -> None:
    """Have a checkpoint find names by the recipe's rules, with symbols for all of a row."""
    if tokenizer.symbols_are_words:
        pairs.check_symbols(tokenizer)
        return
    tokenizer.use_rules(pairs.finder.rules)
    if not tokenizer.symbol_ranges:  # it spells names, and has no symbols for them
        return
    if model.config.learns_names:
        tokenizer.name_symbols(pairs.texts)
    lacking = pairs.lacking(tokenizer.symbol_classes, training=True)
    missing_counts = {name: count for name, count in lacking.items() if count}
    if not missing_counts:
        return
    counts = ", ".join(
        f"{name} has {count}, and {missing_counts[name]} more are needed"
        for name, count in tokenizer.symbol_classes.items()
        if name in missing_counts
    )
    if reason := model.config.encoding.no_extension:
        raise ValueError(
            f"too few symbols in the checkpoint: {counts}; {reason}, or one of Transformers again "
            "with more --symbols"
        )
    model.extend_symbols(missing_counts)
    tokenizer.extend_symbols(missing_counts)
    say(f"symbols of the checkpoint: {counts}; they are added")
