"""Objectives of rows of data: what models that do not answer with text are trained for."""

import inspect
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import transformers
from datasets import Dataset, List, Value
from torch import nn
from transformers import EvalPrediction, PreTrainedConfig, PreTrainedModel

from hf_alpha.data.pairs import hold_out_keys
from hf_alpha.data.rows import batches, path_of
from hf_alpha.loading import check_segments, load_for, load_parts
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_geometric import SEGMENTS
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.settings import meaning, section

from .names import find_names, key_of_texts, name_columns
from .objective import Examples, Objective, Say
from .rows import DataSource, Where, check_validation, first, read_rows
from .tokenizers import make_tokenizer, with_transducer

INPUTS = ("input_ids", "token_type_ids", "stream_ids", *SEGMENTS)
"""What models get of a text, if the tokenizer gives it; masks follow from padding."""

Record = dict[str, Any]


@dataclass
class RowsObjective(Objective):
    """From rows of data to a model's features, and from its outputs to metrics.

    The fields of a subclass are its settings in a recipe.

    Attributes:
        pipeline: what the Hub calls it.
        has_record_per_row: whether `records` are of rows; else they are of sequences.
        takes_segments: whether texts may have segments (`transducer` in a recipe).
    """

    pipeline: ClassVar[str]
    has_record_per_row: ClassVar[bool] = True
    takes_segments: ClassVar[bool] = True

    max_length: int = field(
        default=128, metadata=meaning("tokens in a sequence; longer ones are cut", least=1)
    )

    @property
    @abstractmethod
    def auto_name(self) -> str:
        """The Auto class of Transformers whose models are trained."""

    @property
    def trains(self) -> str:
        """The models that can be trained, as messages name them."""
        return self.auto_name

    @property
    def auto(self) -> Any:
        """The class of Transformers that `auto_name` names."""
        return getattr(transformers, self.auto_name)

    def auto_of(self, config: PreTrainedConfig) -> Any:
        return self.auto

    def check_training(self, training: Mapping[str, Any]) -> None:
        if training.get("label_smoothing_factor"):
            raise ValueError(
                f"label_smoothing_factor is for classes, not for the objective {self.name!r}: "
                "leave it out"
            )

    def examples(self, recipe: Any, say: Say) -> Examples:
        finder = find_names(recipe.symbols)
        with section("data"):
            train, validation = self.read_both(recipe.data, recipe.seed, finder)
        check_validation(recipe, validation)
        texts = self.texts(first(train, recipe.data.max_train_samples), recipe.data, finder)
        return Examples(train, validation, finder, texts)

    def model_settings(self, recipe: Any, examples: Any) -> dict[str, Any]:
        parts = [rows for rows in (examples.train, examples.validation) if rows is not None]
        with section("data"):
            return self.config_settings(parts, recipe.data)

    def new_tokenizer(self, recipe: Any, examples: Any, start: Path | None) -> Any:
        with section("tokenizer"):
            if start is not None:  # a WordPiece made again of the same texts may have other ids
                return load_parts(start, answers=False)[1]
            tokenizer = make_tokenizer(recipe.tokenizer, examples.texts, recipe.symbols)
        return _transducing(tokenizer, recipe)

    def load(
        self, recipe: Any, examples: Any, settings: Mapping[str, Any], say: Say
    ) -> tuple[PreTrainedModel, Any]:
        place = str(recipe.checkpoint)
        with section("checkpoint"):
            model, tokenizer, new = load_for(place, self.auto, settings, self.trains)
            _use_rules(tokenizer, recipe)
        tokenizer = _transducing(tokenizer, recipe)
        with section("checkpoint"):
            check_segments(model.config, tokenizer, place)
        if new:
            say(f"{place}: {len(new)} weights are new: {', '.join(new[:4])}")
        return model, tokenizer

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        with section("objective"):
            check_positions(model, self.max_length)
        _say_segments(model, tokenizer, say)

    def datasets(
        self, recipe: Any, examples: Any, model: PreTrainedModel, tokenizer: Any, say: Say
    ) -> dict[str, Any]:
        data, seed, config = recipe.data, recipe.seed, model.config
        rows = first(examples.train, data.max_train_samples)
        with section("data"):
            train = self.features(rows, data, tokenizer, config, seed=seed)
            say(f"training: {self.summary(rows, train, data, examples.finder)}")
            if examples.validation is None:
                return {"train_dataset": train}
            eval_rows = first(examples.validation, data.max_eval_samples)
            features = self.features(eval_rows, data, tokenizer, config, seed=seed, training=False)

        def metrics(output: EvalPrediction) -> dict[str, float]:
            outputs, labels = output.predictions, output.label_ids
            records = self.records(outputs, labels, eval_rows, features, data, config)
            return self.score(records, config)

        return {
            "train_dataset": train, "eval_dataset": features, "compute_metrics": metrics,
            "preprocess_logits_for_metrics": self.reduce,
        }  # fmt: skip

    @abstractmethod
    def columns(self, settings: DataSource) -> list[str]:
        """Return the columns that the data must have."""

    @abstractmethod
    def check_rows(self, rows: Dataset, settings: DataSource) -> None:
        """Refuse rows that cannot be learned, naming the first."""

    @abstractmethod
    def texts_of(
        self, row: Mapping[str, Any], place: int, settings: DataSource, finder: NameFinder | None
    ) -> list[str]:
        """Return the texts of a row, their names marked; see `names.marked`."""

    def texts(
        self, rows: Dataset, settings: DataSource, finder: NameFinder | None
    ) -> Iterable[str]:
        """Return the texts that a new tokenizer is made from; they can be read several times."""
        return Texts(self, rows, settings, finder)

    def texts_from(self, texts: Iterable[list[str]]) -> Iterator[str]:
        """Yield what `texts` has, from the texts of each row."""
        return chain.from_iterable(texts)

    @abstractmethod
    def config_settings(self, parts: Sequence[Dataset], settings: DataSource) -> dict[str, Any]:
        """Return the fields of a model's configuration that follow from data.

        Args:
            parts: the rows of training, and those of validation if there are some.
            settings: the recipe's.
        """

    @abstractmethod
    def features(
        self,
        rows: Dataset,
        settings: DataSource,
        tokenizer: Any,
        config: PreTrainedConfig,
        *,
        seed: int = 0,
        training: bool = True,
    ) -> Dataset:
        """Return what the model gets; without `training` there may be what is for metrics only."""

    def summary(
        self,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        finder: NameFinder | None,
    ) -> str:
        """Return how much training data there is, and how much of it is left out."""
        return f"{len(rows):,} rows, {len(features):,} sequences"

    def reduce(self, outputs: Any, labels: Any) -> Any:
        """Return what is kept of a batch's outputs until there are records."""
        return outputs[0] if isinstance(outputs, tuple) else outputs

    @abstractmethod
    def records(
        self,
        outputs: Any,
        labels: Any,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        config: PreTrainedConfig,
    ) -> list[Record]:
        """Return a record for each row: what the model says and what is right."""

    @abstractmethod
    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        """Return the metrics of records, each between 0 and 1, or -1 and 1."""

    def key(self, texts: list[str], finder: NameFinder | None) -> str:
        """Return what a row counts as when some are held out: as much as its renamings.

        Args:
            texts: of the row, by `texts_of`.
        """
        return key_of_texts(texts, finder)

    def keys(self, rows: Dataset, settings: DataSource, finder: NameFinder | None) -> Iterable[str]:
        """Return what each row counts as when some are held out: those of one key stay together."""
        return (self.key(texts, finder) for texts in Texts(self, rows, settings, finder).by_row())

    def read(
        self,
        settings: DataSource,
        where: Where,
        preferred: str,
        split: str | None = None,
        extra: Sequence[str] = (),
    ) -> Dataset:
        """Read and check rows; `rows.read_rows` describes arguments and errors."""
        columns = [*self.columns(settings), *extra]
        rows = read_rows(settings, where, columns, preferred, split)
        try:
            self.check_rows(rows, settings)
        except ValueError as error:
            raise ValueError(f"{path_of(where)}, {error}") from error
        return rows

    def read_both(
        self, settings: DataSource, seed: int, finder: NameFinder | None
    ) -> tuple[Dataset, Dataset | None]:
        """Read training and validation rows; the second are None where there are none."""
        extra = name_columns(finder)
        train = self.read(settings, settings.train, "train", extra=extra)
        share = settings.validation
        if isinstance(share, int | float):
            return hold_out_keys(train, share, seed, self.keys(train, settings, finder))
        if not share:
            return train, None
        return train, self.read(settings, share, "validation", extra=extra)


@dataclass
class Texts:
    """The texts of rows, their names marked; can be read several times."""

    objective: RowsObjective
    rows: Dataset
    settings: DataSource
    finder: NameFinder | None

    def __iter__(self) -> Iterator[str]:
        return self.objective.texts_from(self.by_row())

    def by_row(self) -> Iterator[list[str]]:
        """Yield the texts of each row."""
        columns = [*self.objective.columns(self.settings), *name_columns(self.finder)]
        rows, place = self.rows.select_columns(list(dict.fromkeys(columns))), 0
        for batch in batches(rows, "texts"):
            for row in rows_of(batch):
                yield self.objective.texts_of(row, place, self.settings, self.finder)
                place += 1


def _transducing(tokenizer: Any, recipe: Any) -> Any:
    """Return a tokenizer with the recipe's transducer, if it names one."""
    with section("transducer"):
        return with_transducer(tokenizer, recipe.transducer) if recipe.transducer else tokenizer


def _use_rules(tokenizer: Any, recipe: Any) -> None:
    """Have a checkpoint's tokenizer find names by the recipe's rules."""
    if recipe.symbols and not isinstance(tokenizer, TextTokenizer):
        raise ValueError(f"{recipe.checkpoint} has no symbols: leave out the key 'symbols'")
    if isinstance(tokenizer, TextTokenizer) and not tokenizer.symbols_are_words:
        tokenizer.use_rules(recipe.symbols)


def _say_segments(model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
    """Say what becomes of the segments that a tokenizer finds."""
    if not hasattr(tokenizer, "segment_labels"):
        return
    labels, kind = tokenizer.segment_labels, model.config.model_type
    if not reads_segments(model):
        say(f"segments: a {kind!r} model takes none: those of the transducer are left out")
        return
    label_names = ", ".join(labels[:5]) + ", ..." * (len(labels) > 5)
    say(f"segments: {len(labels):,} labels: {label_names}")


def rows_of(batch: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch of columns."""
    for values in zip(*batch.values(), strict=True):
        yield dict(zip(batch, values, strict=True))


def kinds_of(tokenizer: Any) -> dict[str, Any]:
    """Return column -> type, of those of `INPUTS` that a tokenizer gives.

    A batch in which no row has a segment does not say what segments are.
    """
    names = [name for name in INPUTS if name in tokenizer.model_input_names]
    return {name: List(Value("int64")) for name in names}


def accepted(batch: Mapping[str, Any], model: PreTrainedModel) -> dict[str, Any]:
    """Leave out what a model's forward does not take: token types, say, or symbols."""
    inputs = {*inspect.signature(model.forward).parameters, *SEGMENTS * reads_segments(model)}
    return {name: value for name, value in batch.items() if name in inputs}


def reads_segments(model: PreTrainedModel) -> bool:
    """Whether symbolic segments may stand beside a model's tokens."""
    return hasattr(model.config, "segment_labels")


def check_positions(model: PreTrainedModel, max_length: int) -> None:
    """Refuse sequences that are longer than a model's table of positions.

    Raises:
        ValueError: naming both lengths.
    """
    limit = num_positions(model)
    if limit is not None and max_length > limit:
        raise ValueError(
            f"max_length is {max_length}, but the model has {limit} positions: set max_length, or "
            "model.max_position_embeddings of a new model"
        )


def num_positions(model: PreTrainedModel) -> int | None:
    """Return how many positions a model's table has; None if it has no table."""
    sizes = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    return min(sizes, default=None)


__all__ = [
    "INPUTS",
    "Record",
    "RowsObjective",
    "Texts",
    "accepted",
    "check_positions",
    "kinds_of",
    "num_positions",
    "reads_segments",
    "rows_of",
]
