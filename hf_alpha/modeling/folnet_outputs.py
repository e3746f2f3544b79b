"""What FOLNet's stacks and models return.

Shapes: B batch, S streams (1 unless the encoding opens streams), N = B * S, L source length, T
target length, M positions that a row of binary atoms relates to, D1 and D2 widths of unary and
binary atoms, H heads, V vocabulary.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from transformers.cache_utils import Cache
from transformers.utils import ModelOutput


@dataclass
class FolnetOutput(ModelOutput):
    """The atoms that an encoder or a decoder has deduced.

    Attributes:
        last_hidden_state: unary atoms u_L(x): (B, L, S * D1).
        pooler_output: the vector of the whole input, read off [CLS], in an encoder: (B, D1).
        binary_hidden_state: binary atoms u_L(x, y): (B, L, M, S * D2); in a decoder, 0 where y is
            hidden from x.
        past_key_values: premises of a decoder's past.
        hidden_states: unary atoms of all layers, each (B, L, S * D1).
        attentions: kernels of the join operators, each (N, H, L, M).
        stream_ids, own_streams, renaming, symbol_memory: as in [`SymbolEncoderOutput`].
        symbol_pointer: what the head adds to the scores of symbols: (B, T, S); see [`Streams`].
    """

    # Optional only because every field of a ModelOutput is.
    last_hidden_state: torch.Tensor = None  # type: ignore[assignment]
    pooler_output: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    stream_ids: torch.Tensor = None  # type: ignore[assignment]
    own_streams: torch.Tensor = None  # type: ignore[assignment]
    renaming: torch.Tensor | None = None
    symbol_memory: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None


@dataclass
class FolnetSeq2SeqOutput(ModelOutput):
    """The atoms of a decoder and of the encoder before it.

    Attributes:
        last_hidden_state: unary atoms of the decoder: (B, T, S * D1).
        binary_hidden_state: its binary atoms, first those that relate to the source: (B, T, L + T,
            S * D2); with a cache, of the present positions only.
        encoder_binary_hidden_state: (B, L, L, S * D2). The other fields are as in Transformers, and
            in [`FolnetOutput`].
    """

    last_hidden_state: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    decoder_attentions: tuple[torch.Tensor, ...] | None = None
    cross_attentions: None = None  # a decoder has one kernel over source and target
    encoder_last_hidden_state: torch.Tensor | None = None
    encoder_binary_hidden_state: torch.Tensor | None = None
    encoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    encoder_attentions: tuple[torch.Tensor, ...] | None = None
    stream_ids: torch.Tensor | None = None
    own_streams: torch.Tensor | None = None
    renaming: torch.Tensor | None = None
    symbol_memory: torch.Tensor | None = None
    symbol_pointer: torch.Tensor | None = None


@dataclass
class FolnetLMOutput(ModelOutput):
    """Scores of the vocabulary by a model of any form, with the atoms that they were made from.

    Attributes:
        logits: a score for each id at each position: (B, T, V).
        seq_relationship_logits: scores of sentence pairs, by [`FolnetForPreTraining`]: (B, 2). The
            other fields are as in [`FolnetOutput`] and [`FolnetSeq2SeqOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    seq_relationship_logits: torch.Tensor | None = None
    past_key_values: Cache | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    decoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    decoder_attentions: tuple[torch.Tensor, ...] | None = None
    cross_attentions: None = None  # a decoder has one kernel over source and target
    encoder_last_hidden_state: torch.Tensor | None = None
    encoder_binary_hidden_state: torch.Tensor | None = None
    encoder_hidden_states: tuple[torch.Tensor, ...] | None = None
    encoder_attentions: tuple[torch.Tensor, ...] | None = None


@dataclass
class FolnetClassOutput(ModelOutput):
    """Scores of classes or choices.

    Attributes:
        logits: scores of texts (B, classes), of choices (B, choices) or of tokens
            (B, L, classes). The other fields are as in [`FolnetOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


@dataclass
class FolnetSpanOutput(ModelOutput):
    """Scores of where answers begin and end.

    Attributes:
        start_logits, end_logits: (B, L). The other fields are as in [`FolnetOutput`].
    """

    loss: torch.Tensor | None = None
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None
    binary_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


def completed(outputs: Any, **fields: Any) -> Any:
    """Returns a copy of an output with further fields, in the order of its class.

    A field that is set on the output itself comes last, which Trainer would take for another one.
    """
    return type(outputs)(**{**outputs, **fields})


def states_of(outputs: FolnetOutput) -> dict[str, Any]:
    """Returns the fields of a stack's output that the output of every head on it has too."""
    return {
        "binary_hidden_state": outputs.binary_hidden_state,
        "hidden_states": outputs.hidden_states,
        "attentions": outputs.attentions,
    }


def joint_output(decoded: FolnetOutput, source: FolnetOutput) -> FolnetSeq2SeqOutput:
    """Returns a decoder's output and that of the encoder before it as one."""
    return FolnetSeq2SeqOutput(
        last_hidden_state=decoded.last_hidden_state,
        binary_hidden_state=decoded.binary_hidden_state,
        past_key_values=decoded.past_key_values,
        decoder_hidden_states=decoded.hidden_states,
        decoder_attentions=decoded.attentions,
        encoder_last_hidden_state=source.last_hidden_state,
        encoder_binary_hidden_state=source.binary_hidden_state,
        encoder_hidden_states=source.hidden_states,
        encoder_attentions=source.attentions,
        stream_ids=decoded.stream_ids,
        own_streams=decoded.own_streams,
        renaming=decoded.renaming,
        symbol_memory=decoded.symbol_memory,
        symbol_pointer=decoded.symbol_pointer,
    )


SCORED = tuple(field.name for field in fields(FolnetLMOutput))


def joint_states_of(outputs: FolnetSeq2SeqOutput) -> dict[str, Any]:
    """Returns the fields that the output of a head on encoder and decoder has too."""
    return {name: value for name, value in outputs.items() if name in SCORED}


__all__ = [
    "FolnetClassOutput",
    "FolnetLMOutput",
    "FolnetOutput",
    "FolnetSeq2SeqOutput",
    "FolnetSpanOutput",
    "completed",
    "joint_output",
    "joint_states_of",
    "states_of",
]
