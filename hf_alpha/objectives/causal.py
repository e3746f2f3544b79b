"""The next token, by a decoder alone: plain texts, or targets that go on from their sources."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from datasets import Dataset, Value
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.generation import answer_room, fit_tokenizer
from hf_alpha.io.settings import section
from hf_alpha.loading import load_tokenizer
from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.modeling.tokenizer_beneath import is_made

from .base import IDS, Batch, Predictions, Record, Row, RowsObjective
from .names import encoded
from .objective import Say, setting
from .rows import DataSource, text_in

PADDING = {"input_ids": 0, "attention_mask": 0, "labels": IGNORE}


@dataclass
class Causal(RowsObjective):
    """`data.source` is a text; with `pairs`, `data.target` goes on from it and has all the loss.

    A text is one sequence and its end token, and goes on in further ones beyond `max_length`. Of a
    pair, the source is what its tokenizer makes of it, as `generate` is given it, and the target
    has an end token: nothing else stands between the two.

    With symbols, a name is one symbol wherever a row has it.
    """

    name: ClassVar[str] = "causal"
    pipeline: ClassVar[str] = "text-generation"
    auto_model: ClassVar[str] = "AutoModelForCausalLM"
    takes_segments: ClassVar[bool] = False

    pairs: bool = setting(
        False,
        "causal: `data.target` goes on from `data.source`, and only the target is learned; "
        "else all of the text in `data.source`",
    )

    def columns(self, data: DataSource) -> list[str]:
        return [data.source, *([data.target] if self.pairs else [])]

    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        """Return source and target, or a text, which may be blank, as lines between texts are."""
        if not self.pairs and not f"{row[data.source] or ''}".strip():
            return [""]
        return [text_in(row[column], column, place) for column in self.columns(data)]

    def new_tokenizer(self, recipe: Any, examples: Any, start: Any) -> Any:
        """Return a tokenizer that writes an end token; one that the recipe names stays as it is."""
        with section("tokenizer"):
            if start is None and (recipe.symbols or is_made(recipe.tokenizer)):
                return TextTokenizer.from_texts(examples.texts, recipe.symbols, recipe.tokenizer)
            return load_tokenizer(str(start or recipe.tokenizer))

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        with section("objective"):
            answer_room(model.config, self.max_length - 1, None, "a sequence of max_length")
        with section("model"):
            if getattr(model.config, "needs_stream_ids", False):
                raise ValueError(
                    "the model lists the names of a text beforehand, which would tell it those "
                    "that are to come: set new_symbols to true, or take symbol_encoding learned "
                    "and symbol_renaming none"
                )
            _check_causal(model)
        fit_tokenizer(tokenizer, model)

    def features(self, rows: Dataset, data: DataSource, *parts: Any, **options: Any) -> Dataset:
        features = super().features(rows, data, *parts, **options)
        if not len(features):
            raise ValueError(f"the column {data.source!r} holds no text")
        return features

    def kinds(self, tokenizer: Any, training: bool) -> dict[str, Any]:
        return {"input_ids": IDS, "labels": IDS, "row": Value("int64")}

    def encode(self, batch: Batch, label: Callable[[Row], Any]) -> Mapping[str, list[Any]]:
        sequences = [
            (*sequence, place)
            for texts, place in zip(batch.texts, batch.places, strict=True)
            for sequence in self._sequences(texts, batch.tokenizer, f"row {place}")
        ]
        names = self.kinds(batch.tokenizer, training=True)
        return {name: [each[i] for each in sequences] for i, name in enumerate(names)}

    def _sequences(
        self, texts: list[str], tokenizer: Any, place: str
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield ids and labels of each sequence of a row; a blank text has none."""
        end = tokenizer.eos_token_id
        if not any(texts):
            return
        if not self.pairs:
            ids = _ended(encoded(tokenizer, *texts, place=place)["input_ids"], end)
            # A sequence begins with the last token of the one before, so that all are predicted.
            for start in range(0, len(ids) - 1, max(self.max_length - 1, 1)):
                part = ids[start : start + self.max_length]
                yield part, part
            return
        source, target = texts
        if isinstance(tokenizer, TextTokenizer):  # names of a target are those of its source
            pair = encoded(
                tokenizer, source, place=place, text_target=target, allow_absent_symbols=True
            )
            problem, answer = pair["input_ids"], pair["labels"]
        else:
            problem = encoded(tokenizer, source, place=place)["input_ids"]
            answer = encoded(tokenizer, target, place=place, add_special_tokens=False)["input_ids"]
        answer = _ended(answer, end)
        if (length := len(problem) + len(answer)) > self.max_length:
            raise ValueError(
                f"{place}: source and target have {length} tokens, more than max_length "
                f"({self.max_length}): raise it, or leave out the row"
            )
        yield [*problem, *answer], [*[IGNORE] * len(problem), *answer]

    def padding(self, tokenizer: Any) -> Any:
        """Return a function that pads rows on the right, where no token looks at the padding."""

        def pad(rows: Sequence[Row]) -> dict[str, torch.Tensor]:
            rows = [{**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows]
            return {
                name: pad_sequence([torch.tensor(row[name]) for row in rows], True, value)
                for name, value in PADDING.items()
            }

        return pad

    def reduce(self, outputs: Any, labels: Any) -> Any:
        """Return, of each sequence, the loss of all its tokens, how many, and how many are wrong.

        A wrong token is one that greedy decoding would not have written there.
        """
        logits, next_BT = super().reduce(outputs, labels)[:, :-1], labels[:, 1:]
        learned_BT = next_BT != IGNORE
        losses_BT = F.cross_entropy(
            logits.float().transpose(1, 2), next_BT, ignore_index=IGNORE, reduction="none"
        )
        wrong_BT = learned_BT & (logits.argmax(-1) != next_BT)
        return torch.stack([losses_BT.sum(1), learned_BT.sum(1), wrong_BT.sum(1)], dim=1)

    def records(self, made: Predictions) -> list[Record]:
        """Return what `reduce` has counted, of all sequences of a row."""
        counts = np.zeros((len(made.rows), 3))
        np.add.at(counts, np.asarray(made.features["row"]), np.asarray(made.outputs))
        return [
            {"loss": loss, "tokens": int(tokens), "wrong": int(wrong)}
            for loss, tokens, wrong in counts.tolist()
        ]

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        """Return the share of exact targets; of texts, loss and perplexity of a token.

        Greedy decoding writes a target to the letter if and only if no token of it is wrong.
        """
        if self.pairs:
            return {"exact": float(np.mean([not record["wrong"] for record in records]))}
        tokens = sum(record["tokens"] for record in records)
        loss = sum(record["loss"] for record in records) / max(tokens, 1)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}


def _ended(ids: list[int], end: int | None) -> list[int]:
    """Return the ids, with an end token behind them if they have none."""
    return list(ids) if end is None or (ids and ids[-1] == end) else [*ids, end]


def _check_causal(model: PreTrainedModel) -> None:
    """Refuse a model that sees the token that it has to find, as BERT does."""
    training = model.training
    ids = torch.tensor([[0, 0], [0, 1]], device=model.device)
    with torch.no_grad():
        one, two = model.eval()(input_ids=ids).logits[:, 0]
    model.train(training)
    if not torch.allclose(one, two, atol=1e-4):
        raise ValueError(
            f"a {model.config.model_type!r} model sees the tokens behind, and would copy them: set "
            "is_decoder, or name a decoder such as gpt2 or llama"
        )
