"""Heads on an encoder and their losses, each said once for FOLNet and for geometric models.

They follow the generic heads of Transformers (`modeling_layers.py`). A family's base class puts its
encoder under the head, and its `forward` takes the family's inputs. A kind of head says what is
read off the encoder's output, and which loss it has. A model joins both:

    class FolnetForTokenClassification(TokenClassification, FolnetHead):
        pass

Shapes: B batch, L length, D model width, C classes.
"""

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers.activations import ACT2FN
from transformers.modeling_utils import PreTrainedModel

from .checks import IGNORE, can_look, check_by_token, refuse_places
from .masks import first_states

OTHER_KINDS = (
    ", or set config.problem_type: single_label_classification, multi_label_classification or "
    "regression"
)


class EncoderHead(PreTrainedModel):
    """A model with a head on an encoder; the base of a family's base class, and of all kinds.

    A family sets `dropout` by `head_dropout`, and says in `token_states` what the encoder gives for
    each token.

    Attributes:
        pools: whether the encoder gives a vector of the whole input, `pooler_output`.
    """

    pools: ClassVar[bool] = False
    dropout: nn.Module

    def token_states(self, outputs: Any) -> torch.Tensor:
        """Returns a vector for each token, from the encoder's output: (B, L, D)."""
        return outputs.last_hidden_state

    def logits_of(self, outputs: Any) -> torch.Tensor:
        """Returns the scores of the head, from the encoder's output: (B, C) or (B, L, C)."""
        raise NotImplementedError

    def loss_of(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        num_items: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        """Returns the loss, a number.

        Args:
            labels: their shape is a matter of the kind of head.
            num_items: labels of the whole optimiser step, by which a sum over tokens is divided.

        Raises:
            ValueError: labels are too few or too many, or no such label exists.
        """
        raise NotImplementedError

    def answer(
        self,
        outputs: Any,
        labels: torch.Tensor | None,
        num_items: torch.Tensor | int | None = None,
    ) -> dict[str, Any]:
        """Returns `logits` and `loss`, the first fields of any head's output.

        Args:
            labels, num_items: as in `loss_of`; without labels the loss is None.
        """
        logits = self.logits_of(outputs)
        loss = None if labels is None else self.loss_of(logits, labels, num_items)
        return {"loss": loss, "logits": logits}


class TokenLabels(EncoderHead):
    """A head with a class for each token; labels are (B, L), -100 where no loss is wanted."""

    def loss_of(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        num_items: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        check_by_token(*logits.shape[:2], labels=labels)
        check_classes(labels, logits.shape[-1])
        return class_loss(logits, labels, num_items)


class TokenClassification(TokenLabels):
    """A linear layer gives each token one of `config.num_labels` classes."""

    pools = False

    def __init__(self, config: Any):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def logits_of(self, outputs: Any) -> torch.Tensor:
        return self.classifier(self.dropout(self.token_states(outputs)))


class SequenceClassification(EncoderHead):
    """A linear layer gives a text, or a pair of texts, a class, several classes or numbers.

    Labels are (B,): classes, or numbers where `config.num_labels` is 1. They are (B, num_labels)
    where `config.problem_type` says that there are several, each from 0 to 1 in
    `"multi_label_classification"`.

    The loss is a mean over the batch, which Trainer divides by the number of micro-batches. It is
    found by Transformers, by the name of the model's class: that ends in
    `ForSequenceClassification`.
    """

    accepts_loss_kwargs = False
    pools = True

    def __init__(self, config: Any):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def logits_of(self, outputs: Any) -> torch.Tensor:
        return self.classifier(self.dropout(outputs.pooler_output))

    def loss_of(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        num_items: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        loss_labels = labels_for_loss(labels, logits, self.config)
        return self.loss_function(loss_labels, logits.float(), self.config)


class Pooler(nn.Module):
    """Makes a vector of the whole input from its first token (Chen 2023, Appendix A.4)."""

    def __init__(self, config: Any, activation: str = "tanh"):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACT2FN[activation]

    def forward(self, hidden_BLD: torch.Tensor, mask_BL: torch.Tensor | None) -> torch.Tensor:
        """Returns the vectors of the inputs, (B, D); the mask is 0 for padding on either side."""
        return self.activation(self.dense(first_states(hidden_BLD, mask_BL)))


def head_dropout(config: Any) -> nn.Dropout:
    """Returns the dropout before a head: `classifier_dropout`, by default that of the encoder."""
    share = config.classifier_dropout
    return nn.Dropout(config.hidden_dropout_prob if share is None else share)


def class_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Returns the mean cross-entropy of classes, 0 where every label is -100.

    Args:
        logits: (..., C).
        labels: (...); -100 where no loss is wanted.
        num_items_in_batch: labels that are wanted in all micro-batches of a step, which the sum is
            divided by; by default those here.
    """
    rows, classes = logits.float().flatten(0, -2), labels.to(logits.device).long().flatten()
    total = F.cross_entropy(rows, classes, reduction="sum", ignore_index=IGNORE)
    count = (classes != IGNORE).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(count, device=total.device).clamp(min=1)


def place_loss(logits_BL: torch.Tensor, place_B: torch.Tensor) -> torch.Tensor:
    """Returns the mean cross-entropy of places in sequences; those beyond a sequence have none."""
    return class_loss(logits_BL, place_B.masked_fill(place_B >= logits_BL.shape[1], IGNORE))


def labels_for_loss(
    labels: torch.Tensor, logits_BC: torch.Tensor, config: PreTrainedConfig
) -> torch.Tensor:
    """Returns labels as Transformers' loss for texts takes them, by `config.problem_type`.

    Args:
        labels: (B,) for classes, and for numbers where `config.num_labels` is 1; else
            (B, num_labels).
        config: of the model; without a `problem_type`, whole labels are classes.

    Raises:
        ValueError: labels are too few or too many, or no such label exists.
    """
    kind, (samples, classes) = config.problem_type, logits_BC.shape
    whole = classes > 1 and not labels.is_floating_point()
    if kind == "single_label_classification" or (kind is None and whole):
        check_label_shape(labels, samples, way_out=OTHER_KINDS)
        check_classes(labels, classes)
        return labels.long()
    check_label_shape(labels, samples, classes, way_out=OTHER_KINDS)
    if kind == "multi_label_classification" or (kind is None and classes > 1):
        check_multi_labels(labels)
    return labels.float().reshape(logits_BC.shape)  # half precision would round large numbers


def check_label_shape(
    labels: torch.Tensor, samples: int, numbers: int = 1, name: str = "labels", way_out: str = ""
) -> None:
    """Raise a ValueError unless each sample has so many labels: (B, numbers), or (B,) for one.

    Args:
        labels: what is given; `name` in the error.
        samples: B.
        numbers: of each sample.
        way_out: another one, behind the error.
    """
    shapes = [*[(samples,)] * (numbers == 1), (samples, numbers)]
    if labels.shape not in shapes:
        raise ValueError(
            f"{name} is {tuple(labels.shape)}, and there are {samples} inputs with {numbers} "
            f"label{'s' * (numbers > 1)} each: give {shapes[0]}{way_out}"
        )


def check_classes(labels: torch.Tensor, num_labels: int, name: str = "labels") -> None:
    """Raise a ValueError for a class outside of the model's; -100 is no class."""
    if not can_look(labels):
        return
    refuse_places(
        (labels != IGNORE) & ((labels < 0) | (labels >= num_labels)),
        lambda place: (
            f"{name}{[*place]} is {labels[place].item()}, but the model has {num_labels} classes, "
            f"0 to {num_labels - 1}"
        ),
    )


def check_multi_labels(labels: torch.Tensor) -> None:
    """Raise a ValueError for a label of one of several classes that does not lie in [0, 1]."""
    if not can_look(labels):
        return
    refuse_places(
        ~((labels >= 0) & (labels <= 1)),
        lambda place: (
            f"labels{[*place]} is {labels[place].item()}: in multi_label_classification, give 1 "
            "for each class that a sample has and 0 for the others"
        ),
    )


def check_types(types_BL: torch.Tensor | None, type_vocab_size: int) -> None:
    """Raise a ValueError for token types that have no vector."""
    if types_BL is None or not can_look(types_BL):
        return
    if ((types_BL < 0) | (types_BL >= type_vocab_size)).any():
        raise ValueError(
            f"token_type_ids go up to {int(types_BL.max())}, but type_vocab_size is "
            f"{type_vocab_size}"
        )
