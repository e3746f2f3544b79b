"""Objectives of rows of data: what models that do not answer with text are trained for."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
import transformers
from datasets import Dataset, Features, List, Value
from torch import nn
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedConfig,
    PreTrainedModel,
)

from hf_alpha.data.formats import Row
from hf_alpha.data.keys import canonical_text
from hf_alpha.data.pairs import hold_out_keys
from hf_alpha.data.rows import batches, path_of
from hf_alpha.io.settings import section
from hf_alpha.loading import check_segments, load_for, load_parts
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.wings import wing

from .names import encoded, find_names, finder_of, marked, name_columns
from .objective import Collator, Examples, Objective, Say, setting
from .rows import DataSource, Where, check_validation, first, read_rows
from .tokenizers import check_tokenizer, make_tokenizer

IDS = List(Value("int64"))
OF_TOKENS = ("input_ids", "token_type_ids", "stream_ids")
"""What models get of tokens, if the tokenizer gives it; masks follow from padding."""
SEGMENTS = ("segment_ids", "segment_starts", "segment_ends")
"""What tokenizers with a transducer give of the segments that it finds."""
FOR_METRICS = ("words", "offsets", "row")
"""Columns of features that no model gets."""

Finder = NameFinder | None
Record = dict[str, Any]


class Predictions(NamedTuple):
    """What a model says of rows, in their order.

    Attributes:
        outputs: of the model, as `RowsObjective.reduce` leaves them.
        features: what the model got of the data.
        data: what says which columns the rows have.
        config: of the model.
    """

    outputs: Any
    labels: Any
    rows: Dataset
    features: Dataset
    data: DataSource
    config: PreTrainedConfig


@dataclass
class Batch:
    """Some rows of the data.

    Attributes:
        texts: the texts of each row, their names marked.
    """

    rows: Sequence[Row]
    places: list[int]
    texts: list[list[str]]
    tokenizer: Any
    data: DataSource

    def encoded(self, **options: Any) -> Any:
        """Encode the texts, or pairs of texts; `options` are the tokenizer's."""
        return encoded(
            self.tokenizer, *map(list, zip(*self.texts, strict=True)), place=self.name, **options
        )

    @property
    def name(self) -> str:
        """Where the rows are, for errors."""
        return f"rows from {self.places[0]} on"


@dataclass
class RowsObjective(Objective):
    """From rows of data to a model's features, and from its outputs to metrics.

    The fields of a subclass are its settings in a recipe. `data` is what the recipe says of data,
    `config` the configuration of the model, everywhere.

    Attributes:
        pipeline: what the Hub calls it.
        auto_model: the Auto class of Transformers whose models are trained.
        has_record_per_row: whether `records` are of rows; else they are of sequences.
        takes_segments: whether texts may have segments (`transducer` in a recipe).
    """

    pipeline: ClassVar[str]
    auto_model: ClassVar[str]
    has_record_per_row: ClassVar[bool] = True
    takes_segments: ClassVar[bool] = True

    max_length: int = setting(128, "tokens in a sequence; longer ones are cut", least=1)

    @property
    def auto_name(self) -> str:
        """The name of the Auto class whose models are trained with these settings."""
        return self.auto_model

    @property
    def trains(self) -> str:
        """The models that can be trained, as messages name them."""
        return self.auto_name

    @property
    def auto(self) -> Any:
        """The class of Transformers that `auto_name` names."""
        return getattr(transformers, self.auto_name)

    # -- what a run calls -------------------------------------------------------------------------

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
        rows = first(train, recipe.data.max_train_samples)
        texts = Texts(self, rows, recipe.data, finder)
        parts = [rows for rows in (train, validation) if rows is not None]
        with section("data"):
            settings = self.config_settings(parts, recipe.data)
        forms = partial(self.keys, rows, recipe.data, finder)
        return Examples(train, validation, finder, texts, settings, forms)

    def new_tokenizer(self, recipe: Any, examples: Any, start: Path | None) -> Any:
        with section("tokenizer"):
            if start is not None:  # a WordPiece made again of the same texts may have other ids
                return load_parts(start, answers=False)[1]
            tokenizer = make_tokenizer(recipe.tokenizer, examples.texts, recipe.symbols)
        return _transducing(tokenizer, recipe)

    def load(self, recipe: Any, examples: Any, say: Say) -> tuple[PreTrainedModel, Any]:
        place = str(recipe.checkpoint)
        with section("checkpoint"):
            model, tokenizer, new = load_for(place, self.auto, examples.model_settings, self.trains)
            _use_rules(tokenizer, recipe)
        tokenizer = _transducing(tokenizer, recipe)
        with section("checkpoint"):
            check_segments(model.config, tokenizer, place)
        if new:
            say(f"{place}: {len(new)} weights are new: {', '.join(new[:4])}")
        return model, tokenizer

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        with section("objective"):
            _check_positions(model, self.max_length)
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
            given = output.predictions, output.label_ids
            made = Predictions(*given, eval_rows, features, data, config)
            return self.score(self.records(made), config)

        return {
            "train_dataset": train, "eval_dataset": features, "compute_metrics": metrics,
            "preprocess_logits_for_metrics": self.reduce,
        }  # fmt: skip

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        pad = self.padding(tokenizer)

        def collate(rows: Sequence[Row]) -> dict[str, torch.Tensor]:
            names = [name for name in rows[0] if name not in FOR_METRICS]
            of_texts = [name for name in names if isinstance(rows[0][name], list)]
            batch = dict(pad([{name: row[name] for name in of_texts} for row in rows]))
            for name in set(names) - set(of_texts):  # a tokenizer would pad labels
                batch[name] = torch.tensor([row[name] for row in rows])
            return accepted(batch, model)

        return collate

    def padding(self, tokenizer: Any) -> Any:
        """Return Transformers' collator of the features."""
        return DataCollatorWithPadding(tokenizer)

    # -- rows and their texts ---------------------------------------------------------------------

    @abstractmethod
    def columns(self, data: DataSource) -> list[str]:
        """Return the columns that the data must have."""

    @abstractmethod
    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        """Return the texts of a row, the number of which is `place`.

        Raises:
            ValueError: there is none in a column; the message names it and the row.
        """

    def texts_of(self, row: Row, place: int, data: DataSource, finder: Finder) -> list[str]:
        """Return the texts of a row, their names marked; see `names.marked`."""
        return marked(self.plain_texts(row, place, data), row, place, finder)

    def has_pairs(self, data: DataSource) -> bool:
        """Whether a model is given two texts."""
        return False

    def check_rows(self, rows: Dataset, data: DataSource) -> None:
        """Refuse rows that cannot be learned, naming the first."""
        for place, row in enumerate(rows_in(rows, self.columns(data))):
            self.plain_texts(row, place, data)

    def read(
        self,
        data: DataSource,
        where: Where,
        preferred: str,
        split: str | None = None,
        extra: Sequence[str] = (),
    ) -> Dataset:
        """Read and check rows; `rows.read_rows` describes arguments and errors."""
        rows = read_rows(data, where, [*self.columns(data), *extra], preferred, split)
        try:
            self.check_rows(rows, data)
        except ValueError as error:
            raise ValueError(f"{path_of(where)}, {error}") from error
        return rows

    def read_both(
        self, data: DataSource, seed: int, finder: Finder
    ) -> tuple[Dataset, Dataset | None]:
        """Read training and validation rows; the second are None where there are none."""
        extra = name_columns(finder)
        train = self.read(data, data.train, "train", extra=extra)
        share = data.validation
        if isinstance(share, int | float):
            return hold_out_keys(train, share, seed, self.keys(train, data, finder))
        if not share:
            return train, None
        return train, self.read(data, share, "validation", extra=extra)

    def texts_from(self, texts: Iterable[list[str]]) -> Iterator[str]:
        """Yield the texts that a new tokenizer is made from, from the texts of each row."""
        return chain.from_iterable(texts)

    def key(self, texts: list[str], finder: Finder) -> str:
        """Return what a row counts as when some are held out, of its texts: as its renamings."""
        if finder is not None:
            texts = [canonical_text(text, finder) for text in texts]
        return "\x1f".join(texts)

    def keys(self, rows: Dataset, data: DataSource, finder: Finder) -> Iterable[str]:
        """Return what each row counts as when some are held out: those of one key stay together."""
        return (self.key(texts, finder) for texts in Texts(self, rows, data, finder).by_row())

    # -- what a model gets ------------------------------------------------------------------------

    def config_settings(self, parts: Sequence[Dataset], data: DataSource) -> dict[str, Any]:
        """Return the fields of a model's configuration that follow from data.

        Args:
            parts: the rows of training, and those of validation if there are some.
        """
        return {}

    def features(
        self,
        rows: Dataset,
        data: DataSource,
        tokenizer: Any,
        config: PreTrainedConfig,
        *,
        seed: int = 0,
        training: bool = True,
    ) -> Dataset:
        """Return what the model gets; without `training` there may be what is for metrics only."""
        check_tokenizer(tokenizer, config, self.max_length, pairs=self.has_pairs(data))
        finder, kinds = finder_of(tokenizer), self.kinds(tokenizer, training)
        label = self.labeller(rows, data, config, training)

        def encode(columns: Mapping[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
            members = list(rows_of(columns))
            texts = [
                self.texts_of(row, place, data, finder)
                for row, place in zip(members, places, strict=True)
            ]
            made = self.encode(Batch(members, places, texts, tokenizer, data), label)
            return {name: made[name] for name in kinds}

        return rows.map(
            encode, batched=True, with_indices=True, remove_columns=rows.column_names,
            features=Features(kinds), load_from_cache_file=False, desc="tokenizing",
        )  # fmt: skip

    def kinds(self, tokenizer: Any, training: bool) -> dict[str, Any]:
        """Return column -> type of the features.

        Of the tokenizer's columns these are all that it gives: a batch in which no row has a
        segment does not say what segments are.
        """
        names = (*OF_TOKENS, *SEGMENTS) if self.takes_segments else OF_TOKENS
        return {name: IDS for name in names if name in tokenizer.model_input_names}

    def labeller(
        self, rows: Dataset, data: DataSource, config: PreTrainedConfig, training: bool
    ) -> Callable[[Row], Any]:
        """Return a function from a row to its labels."""
        return lambda row: None

    def encode(self, batch: Batch, label: Callable[[Row], Any]) -> Mapping[str, list[Any]]:
        """Return at least the columns of `kinds` for some rows; `label` is from `labeller`.

        An objective whose sequences are of several rows overrides `features` instead.
        """
        return {}

    def summary(self, rows: Dataset, features: Dataset, data: DataSource, finder: Finder) -> str:
        """Return how much training data there is, and how much of it is left out."""
        return f"{len(rows):,} rows, {len(features):,} sequences"

    # -- what a model says ------------------------------------------------------------------------

    def reduce(self, outputs: Any, labels: Any) -> Any:
        """Return what is kept of a batch's outputs until there are records."""
        return outputs[0] if isinstance(outputs, tuple) else outputs

    @abstractmethod
    def records(self, made: Predictions) -> list[Record]:
        """Return a record for each row: what the model says and what is right."""

    @abstractmethod
    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        """Return the metrics of records, each between 0 and 1, or -1 and 1."""


@dataclass
class Texts:
    """The texts of rows, their names marked, for a new tokenizer; can be read several times."""

    objective: RowsObjective
    rows: Dataset
    data: DataSource
    finder: Finder

    def __iter__(self) -> Iterator[str]:
        return self.objective.texts_from(self.by_row())

    def by_row(self) -> Iterator[list[str]]:
        """Yield the texts of each row."""
        columns = [*self.objective.columns(self.data), *name_columns(self.finder)]
        for place, row in enumerate(rows_in(self.rows, columns)):
            yield self.objective.texts_of(row, place, self.data, self.finder)


def _transducing(tokenizer: Any, recipe: Any) -> Any:
    """Return a tokenizer with the recipe's transducer, if it names one."""
    if not recipe.transducer:
        return tokenizer
    with section("transducer"):
        return wing("segments").with_transducer(tokenizer, recipe.transducer)


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


def rows_in(rows: Dataset, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield rows with these columns; what takes long shows a bar, on a terminal."""
    parts = batches(rows.select_columns(list(dict.fromkeys(columns))), "texts")
    return chain.from_iterable(map(rows_of, parts))


def rows_of(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch of columns."""
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def accepted(batch: Mapping[str, Any], model: PreTrainedModel) -> dict[str, Any]:
    """Leave out what a model's forward does not take: token types, say, or symbols."""
    inputs = {*inspect.signature(model.forward).parameters, *SEGMENTS * reads_segments(model)}
    return {name: value for name, value in batch.items() if name in inputs}


def reads_segments(model: PreTrainedModel) -> bool:
    """Whether symbolic segments may stand beside a model's tokens."""
    return hasattr(model.config, "segment_labels")


def _check_positions(model: PreTrainedModel, max_length: int) -> None:
    """Refuse sequences that are longer than a model's table of positions."""
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
