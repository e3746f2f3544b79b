"""Masked tokens and pairs of sentences, as BERT and ALBERT are pretrained."""

import inspect
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc
import torch
from datasets import Dataset, Features, List, Value
from datasets.exceptions import DatasetGenerationError
from datasets.fingerprint import Hasher
from torch import nn
from transformers import DataCollatorForLanguageModeling, PreTrainedConfig, PreTrainedModel

from hf_alpha.data.keys import key_of
from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.choices import check_choice, check_numbers
from hf_alpha.modeling.symbols import first_occurrence

from .base import SEGMENTS, Finder, Predictions, Record, Row, RowsObjective, Texts, accepted
from .names import finder_of
from .objective import Collator, setting
from .rows import DataSource, check_cell
from .sequences import Document, Frame, Pairs, segment_keys, sentences_of, tokens_of
from .tokenizers import check_tokenizer

SENTENCES = ("nsp", "sop", "none")
COVERED = ("drop", "keep")
DOCUMENTS = ("rows", "blank_lines")
DOCUMENTS_AT_ONCE = 1000
"""Documents that sequences are built of at a time; other ones of pairs come from among them."""

PART = 100_000
"""Rows that one worker makes sequences of; no document goes beyond them."""


@dataclass
class Masked(RowsObjective):
    """`data.source` is a document, or a line of one; tokens are masked, and pairs may be false.

    With symbols, each sequence numbers its own names, those of both parts alike: a name is the same
    where its spelling is, also in the second part that `nsp` takes from another document. A masked
    name is to be found if the sequence still shows it elsewhere: nothing else says which it was.
    """

    name: ClassVar[str] = "masked"
    pipeline: ClassVar[str] = "fill-mask"
    auto_model: ClassVar[str] = "AutoModelForPreTraining"
    has_record_per_row: ClassVar[bool] = False

    sentences: str = setting(
        "nsp",
        "masked: what is said about a pair of parts beside the masked tokens: nsp (half of the "
        "second ones are from another document), sop (half of the pairs are in the wrong "
        "order), or none (one text fills the sequence)",
    )
    documents: str = setting(
        "rows",
        "masked: a document is a row (rows), or all rows up to one without text (blank_lines)",
    )
    masked_share: float = setting(0.15, "masked: share of the tokens that are to be found")
    covered_segments: str = setting(
        "drop",
        "masked: what becomes of a segment over a masked token, which tells something about "
        "it: drop or keep",
    )
    short_share: float = setting(0.1, "masked: share of the pairs that do not fill the sequence")

    def __post_init__(self) -> None:
        check_choice("sentences", self.sentences, SENTENCES)
        check_choice("documents", self.documents, DOCUMENTS)
        check_choice("covered_segments", self.covered_segments, COVERED)
        check_numbers(self, {}, ("masked_share", "short_share"), ("masked_share",))

    @property
    def paired(self) -> bool:
        """Whether something is said about two parts of a sequence."""
        return self.sentences != "none"

    @property
    def auto_name(self) -> str:
        return self.auto_model if self.paired else "AutoModelForMaskedLM"

    @property
    def trains(self) -> str:
        return self.auto_name + " (with sentences: none, AutoModelForMaskedLM)" * self.paired

    def check_training(self, training: Mapping[str, Any]) -> None:
        super().check_training(training)
        if training.get("dataloader_persistent_workers"):
            raise ValueError(
                "dataloader_persistent_workers: such workers would draw the masks of the first "
                "epoch in all of them: leave it out"
            )

    def columns(self, data: DataSource) -> list[str]:
        return [data.source]

    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        text = row[data.source]
        check_cell(isinstance(text, str | None), place, data.source, text, "a text")
        return [text or ""]

    def texts_from(self, texts: Iterable[list[str]]) -> Iterator[str]:
        """Yield the sentences of all texts."""
        for (text,) in texts:
            yield from sentences_of(text)

    def keys(self, rows: Dataset, data: DataSource, finder: Finder) -> Iterable[str]:
        """Return each line's document as its key; lines without text count with the one before."""
        if self.documents == "rows":
            return super().keys(rows, data, finder)
        lines = [key if sentences_of(key) else "" for key in super().keys(rows, data, finder)]
        begins = [bool(line) and not before for before, line in pairwise(["", *lines])]
        numbers = np.cumsum(begins).tolist()
        documents: dict[int, list[str]] = {}
        for number, line in zip(numbers, lines, strict=True):
            documents.setdefault(number, []).append(line)
        texts = {number: "\n".join(filter(None, some)) for number, some in documents.items()}
        return [texts[number] for number in numbers]

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
        check_tokenizer(tokenizer, config, self.max_length, pairs=self.paired)
        starts = list(range(0, len(rows), PART))
        workers = min(data.num_workers, len(starts))
        arguments = {
            "starts": starts,
            "training": training,
            "rows": rows,
            "data": data,
            "tokenizer": tokenizer,
            "seed": seed,
        }
        if next(self._sequences(**arguments), None) is None:
            raise ValueError(
                f"no sequence can be made with sentences: {self.sentences} (nsp needs two "
                "documents, sop two sentences in one); `documents` says what documents are"
            )
        try:
            return Dataset.from_generator(
                self._sequences,
                features=self._kinds(tokenizer),
                fingerprint=self._fingerprint(rows, data.source, tokenizer, seed, training),
                gen_kwargs=arguments,
                num_proc=workers if workers > 1 else None,
            )
        except DatasetGenerationError as error:
            if isinstance(error.__cause__, ValueError | OSError):
                raise error.__cause__ from None
            raise

    def _kinds(self, tokenizer: Any) -> Features:
        """Return column -> type of the features."""
        names = ["input_ids", "token_type_ids", "special_tokens_mask", *segment_keys(tokenizer)]
        kinds: dict[str, Any] = dict.fromkeys(names, List(Value("int32")))
        if self.paired:
            kinds |= {"sentence_label": Value("int64"), "sentences": Value("int64")}
        return Features({**kinds, "place": Value("int64")})

    def _fingerprint(
        self, rows: Dataset, column: str, tokenizer: Any, seed: int, training: bool
    ) -> str:
        """Return the name of the sequences in the cache of `datasets`."""
        code = [
            Path(__file__).with_name(f"{name}.py").read_bytes()
            for name in ("masked", "names", "sequences")
        ]
        beneath = [tokenizer.backend_tokenizer.to_str(), getattr(tokenizer, "transducer", None)]
        if (finder := finder_of(tokenizer)) is not None:
            modules = [inspect.getmodule(function) for function in finder.functions.values()]
            beneath += [
                tokenizer.settings(),
                *(inspect.getsource(each) for each in modules if each),
            ]
        return Hasher.hash(
            [rows._fingerprint, column, beneath, [seed, training], asdict(self), code]
        )

    def _sequences(
        self,
        starts: list[int],
        rows: Dataset,
        data: DataSource,
        tokenizer: Any,
        seed: int,
        training: bool,
    ) -> Iterator[dict[str, Any]]:
        """Yield sequences of the rows, a function of rows and seed: workers change nothing."""
        frame = Frame(tokenizer, self.paired)
        room = self.max_length - tokenizer.num_special_tokens_to_add(pair=self.paired)
        pairs = Pairs(self.sentences, room, self.short_share)
        for start in starts:
            rng, place = random.Random(f"{seed}/{start}"), start << 20
            part = rows.select(range(start, min(start + PART, len(rows))))
            for documents in self._documents(part, start, data, tokenizer):
                for pair in pairs.of(documents, rng):
                    try:
                        sequence = frame(pair)
                    except ValueError as error:
                        raise ValueError(f"rows from {start} on, in a sequence: {error}") from error
                    yield {**sequence, "place": place if training else -1 - place}
                    place += 1

    def _documents(
        self, rows: Dataset, start: int, data: DataSource, tokenizer: Any
    ) -> Iterator[list[Document]]:
        """Yield many documents at a time, as sentences of tokens; rows count from `start`."""
        documents: list[Document] = []
        current: Document = []
        finder = finder_of(tokenizer)
        is_spelled = finder is not None and not tokenizer.symbol_ids
        texts = Texts(self, rows, data, finder).by_row()
        for row, (text,) in enumerate(texts, start):
            # Where names become words, a text is spelled as a whole.
            sentences = [text] if text and is_spelled else sentences_of(text)
            current += tokens_of(sentences, tokenizer, row)
            if current and (self.documents == "rows" or not sentences):
                documents.append(current)
                current = []
            if len(documents) >= 2 * DOCUMENTS_AT_ONCE:  # so that the last ones are many too
                yield documents[:DOCUMENTS_AT_ONCE]
                documents = documents[DOCUMENTS_AT_ONCE:]
        documents += [current] if current else []
        if documents:
            yield documents

    def summary(self, rows: Dataset, features: Dataset, data: DataSource, finder: Finder) -> str:
        """Return the summary; with pairs, how many sentences are in no sequence, too."""
        summary = super().summary(rows, features, data, finder)
        if not self.paired:
            return summary
        total = sum(1 for _ in Texts(self, rows, data, finder))
        num_used = pc.sum(features.with_format("arrow")[:]["sentences"]).as_py()
        return f"{summary}; {total - num_used:,} of {total:,} sentences are in none"

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        return MaskingCollator(self, tokenizer, model, seed)

    def reduce(self, outputs: Any, labels: Any) -> Any:
        """Return the likeliest tokens and sentence classes: logits would take too much memory."""
        if isinstance(outputs, tuple):
            return tuple(logits.argmax(-1) for logits in outputs[: 1 + self.paired])
        return outputs.argmax(-1)

    def records(self, made: Predictions) -> list[Record]:
        outputs, labels = made.outputs, made.labels
        predicted, targets = (x[0] if isinstance(x, tuple | list) else x for x in (outputs, labels))
        has_target = targets != IGNORE
        right = (predicted == targets) & has_target
        records: list[Record] = [
            {"masked": int(n), "found": int(m)}
            for n, m in zip(has_target.sum(1), right.sum(1), strict=True)
        ]
        if self.paired:
            for record, one, two in zip(records, outputs[1], labels[1], strict=True):
                record |= {"prediction": int(one), "target": int(two)}
        return records

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        masked = sum(record["masked"] for record in records)
        scores = {"masked_accuracy": sum(r["found"] for r in records) / max(masked, 1)}
        if self.paired:
            right = [record["prediction"] == record["target"] for record in records]
            scores[f"{self.sentences}_accuracy"] = float(np.mean(right))
        return scores


class MaskingCollator:
    """Masks sequences: a function of seed, epoch and place, so that resumed runs see the same.

    Attributes:
        epoch: set by the trainer. Sequences of validation (places below 0) do not depend on it.
    """

    def __init__(self, objective: Masked, tokenizer: Any, model: PreTrainedModel, seed: int):
        self.model, self.seed, self.epoch = model, seed, 0
        self._keeps_covered = objective.covered_segments == "keep"
        self._is_symbol_V = torch.zeros(len(tokenizer), dtype=torch.bool)
        self._is_symbol_V[getattr(tokenizer, "symbol_ids", [])] = True
        self._has_symbols = bool(self._is_symbol_V.any())
        self._mask = DataCollatorForLanguageModeling(
            tokenizer,
            mlm_probability=objective.masked_share,
            random_replace_prob=0.0 if self._has_symbols else 0.1,  # `with_shown_symbols` does it
        )

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        copies = [dict(row) for row in rows]
        places = [row.pop("place") for row in copies]
        classes = [row.pop("sentence_label", None) for row in copies]
        epoch = self.epoch if places[0] >= 0 else 0
        digest = key_of(f"{self.seed} {epoch} {places}")
        self._mask.generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        batch = dict(self._mask(copies))
        if self._has_symbols:
            mask_id, generator = self._mask.tokenizer.mask_token_id, self._mask.generator
            batch |= with_shown_symbols(batch, self._is_symbol_V, mask_id, generator)
        if "segment_ids" in batch and not self._keeps_covered:
            batch |= without_covered(batch, batch["labels"] != IGNORE)
        if classes[0] is not None:
            batch[_label_name(self.model)] = torch.tensor(classes)
        return accepted(batch, self.model)


def with_shown_symbols(
    batch: Mapping[str, torch.Tensor],
    is_symbol_V: torch.Tensor,
    mask_id: int,
    generator: torch.Generator,
) -> dict[str, torch.Tensor]:
    """A masked batch in which names are found, and replaced, by those of their sequence only.

    Half of the tokens that are to be found and are not masked become random ones: base tokens any
    base token, symbols one of those that the sequence still shows where they stood, or the mask
    where it shows none. What the sequence does not show is not to be found. All of that is the same
    whatever the symbols are.

    Args:
        batch: `input_ids`, masked, and `labels`, each (B, T).

    Returns:
        Both anew, and `stream_ids`, the symbols by first occurrence: (B, S).
    """
    ids_BT, labels_BT = batch["input_ids"], batch["labels"]
    target_BT = labels_BT != IGNORE
    before_BT = torch.where(target_BT, labels_BT, ids_BT)
    drawn_BT, which_BT = torch.rand((2, *ids_BT.shape), generator=generator)
    random_BT = target_BT & (ids_BT != mask_id) & (drawn_BT < 0.5)
    symbol_BT = is_symbol_V[before_BT]
    shown_BS = first_occurrence(before_BT, symbol_BT & (ids_BT != mask_id) & ~random_BT)

    base_ids = (~is_symbol_V).nonzero().flatten()
    base_BT = base_ids[(which_BT * len(base_ids)).long()]
    count_B1 = (shown_BS >= 0).sum(1, keepdim=True)
    other_BT = shown_BS.gather(1, (which_BT * count_B1).long())
    other_BT = other_BT.masked_fill(count_B1 == 0, mask_id)
    ids_BT = torch.where(random_BT, torch.where(symbol_BT, other_BT, base_BT), ids_BT)

    is_shown_BT = (before_BT[:, :, None] == shown_BS[:, None]).any(-1)
    labels_BT = labels_BT.masked_fill(symbol_BT & ~is_shown_BT, IGNORE)
    streams_BS = first_occurrence(ids_BT, is_symbol_V[ids_BT])
    return {"input_ids": ids_BT, "labels": labels_BT, "stream_ids": streams_BS}


def without_covered(
    batch: Mapping[str, torch.Tensor], mtarget_BT: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The segments of a batch without those that cover a masked token; the others close up.

    Args:
        batch: `segment_ids`, `segment_starts` and `segment_ends`, each (B, S).
    """
    ids, starts, ends = (batch[key] for key in SEGMENTS)
    before = nn.functional.pad(mtarget_BT.cumsum(1), (1, 0))  # masked tokens before each column
    uncovered = (ids > 0) & (before.gather(1, ends + 1) == before.gather(1, starts))
    width = max(1, int(uncovered.sum(1).max()))
    order = uncovered.int().argsort(dim=1, descending=True, stable=True)[:, :width]
    return {key: (batch[key] * uncovered).gather(1, order) for key in SEGMENTS}


def _label_name(model: PreTrainedModel) -> str:
    """Return the name of a model's argument for labels of pairs: BERT's and ALBERT's differ."""
    parameters = inspect.signature(model.forward).parameters
    return "sentence_order_label" if "sentence_order_label" in parameters else "next_sentence_label"
