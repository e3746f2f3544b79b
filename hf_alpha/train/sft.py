"""TRL's trainer for models with symbols: `pip install trl`."""

from collections.abc import Callable
from typing import Any

from transformers import Trainer
from trl import SFTConfig, SFTTrainer, is_conversational

from hf_alpha.data.collate import one_sequence


class AlphaSFTTrainer(SFTTrainer):
    """TRL's `SFTTrainer` for a decoder with symbols.

    TRL computes the loss from the last states and the matrix of the head, and would pass by what
    symbols add to it: here the loss is the model's own. There are no columns `entropy` and
    `mean_token_accuracy` in the logs.

    Rows of `prompt` and `completion` are encoded as everywhere in this package: the prompt as
    `generate` is given it, the completion with its end token, and its names those of its prompt.
    Conversations are written by the tokenizer's chat template, and a name is one symbol
    in all messages of a row.

    Args:
        *args: of `SFTTrainer`.
        **kwargs: of `SFTTrainer`; `processing_class` is a `TextTokenizer`.
    """

    def _prepare_dataset(
        self,
        dataset: Any,
        processing_class: Any,
        args: SFTConfig,
        packing: bool,
        formatting_func: Callable[[dict[str, Any]], str] | None,
        dataset_name: str,
    ) -> Any:
        """Prepare a dataset as the base class does; pairs are encoded here.

        Raises:
            ValueError: a completion has a name that its prompt lacks, which no answer can have.
        """
        first = next(iter(dataset))
        if {"prompt", "completion"} <= first.keys() and not is_conversational(first):
            labels = "labels" if self.completion_only_loss else "input_ids"
            dataset = dataset.map(
                _encode_pairs,
                batched=True,
                with_indices=True,
                remove_columns=list(first),
                fn_kwargs={"tokenizer": processing_class, "labels": labels},
            )
        return super()._prepare_dataset(
            dataset, processing_class, args, packing, formatting_func, dataset_name
        )

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the model's own loss."""
        return Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)


def _encode_pairs(
    batch: dict[str, list[Any]], rows: list[int], tokenizer: Any, labels: str
) -> dict[str, list[list[int]]]:
    """Return pairs as one sequence each; `labels` is which of its columns the loss is of."""
    pairs = tokenizer.encode_pairs(batch["prompt"], batch["completion"], first_row=rows[0])
    sequences = [one_sequence(pair) for pair in pairs]
    return {
        "input_ids": [sequence["input_ids"] for sequence in sequences],
        "labels": [sequence[labels] for sequence in sequences],
    }


__all__ = ["AlphaSFTTrainer"]
