"""A symbol layer around any decoder of Transformers, which stays as Transformers made it.

A sample is one sequence: the problem as its tokenizer writes it, then the answer and an end token.

Transformers tells the texts of a packed row apart by positions that start again; its attention then
shows no text to another. Names start anew with each text too: what is called `x` in one is nothing
to the next. So texts get rows of their own, and what is found about their tokens goes back.

Shapes: B batch, T length, M length with what a cache holds, S listed symbols, V vocabulary, N texts
of packed rows, L length of the longest one.
"""

import inspect
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM
from transformers.cache_utils import Cache
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import can_return_tuple

from .causal_head import CausalHead, CausalOutput, next_tokens
from .checks import (
    IGNORE,
    can_look,
    check_by_token,
    check_dimensions,
    check_positions,
    refuse_vectors,
)
from .configuration_retrofit import RetrofitConfig
from .host_encoding import HeadCall, HostOutput
from .label_scores import LabelScores
from .masks import full_mask, is_by_token
from .modeling_retrofit import (
    RetrofitModel,
    check_arguments,
    repeat_rows,
    side_by_side,
    taken_arguments,
)
from .positions import decoder_positions
from .relations import MadeOnce


class RetrofitForCausalLM(CausalHead, RetrofitModel):
    """A decoder with a symbol layer around it; arguments as of [`RetrofitModel`].

    Raises:
        ValueError: the backbone is an encoder-decoder, or keeps no keys and values of the tokens
            before.
    """

    config: RetrofitConfig
    auto = AutoModelForCausalLM
    sides = ("decoder",)

    def __init__(self, config: RetrofitConfig, backbone: PreTrainedModel | None = None):
        if config.is_encoder_decoder:
            raise ValueError(
                f"the backbone, a {config.host_config.model_type!r} model, is an encoder-decoder: "
                "take RetrofitForConditionalGeneration"
            )
        super().__init__(config, backbone)
        check_keeps_keys(self.backbone)
        self.taken = taken_arguments(self.backbone.forward) | {"shift_labels"}
        self.takes_positions = "position_ids" in inspect.signature(self.backbone.forward).parameters
        # Relative positions have no limit.
        self.num_positions = getattr(config.decoder_config, "max_position_embeddings", None)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: Any = None,
        position_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        logits_to_keep: int = 0,
        fused_lm_head: bool = False,
        kept: MadeOnce | None = None,
        **kwargs: Any,
    ) -> CausalOutput | LabelScores:
        """Returns scores of the next token at each position, and the loss where labels are given.

        Args:
            input_ids: (B, T); without the tokens that `past_key_values` holds.
            attention_mask: 1 for tokens, 0 for padding on either side: (B, M).
            position_ids: (B, T); by default counted from the first token that is not padding. Where
                they start again, without a mask, a row holds several texts, each with its names.
            stream_ids: the problems' symbols by first occurrence, -1 padded: (B, S); looked at
                where `config.needs_stream_ids`. Derived from `input_ids` when absent.
            labels: the same ids, -100 where no loss is wanted, as in the problem: (B, T). The model
                compares each with the prediction of the position before. Random renamings, if
                there are some, are for training with labels.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.
            logits_to_keep: how many of the last positions get logits; 0 for all.
            fused_lm_head: return the [`LabelScores`] that TRL's trainers ask for; of all labels but
                the first, which follows nothing, or of all `shift_labels`.
            kept: what a generation keeps, from `generate`.
            **kwargs: for the backbone, which has to take them; and `shift_labels`, in place of
                `labels`: the token that follows each one, (B, T). Where a text is cut into parts,
                the last token of a part needs it.

        Returns:
            `logits` (B, T, V), or of the last positions; where `config.needs_stream_ids`, columns
            of symbols that are not in a sample's problem hold -1e4.

        Raises:
            ValueError: an input is missing or does not fit the others.
            TypeError: the backbone does not take an argument.
        """
        chosen = kept is not None and kept.goes_on  # by the model itself, in a generation
        if not chosen:
            self._check(input_ids, attention_mask, position_ids, past_key_values, kwargs)
        assert input_ids is not None  # as was checked
        texts = None
        # Where names are no matter, the backbone itself tells the texts of a row apart.
        names_matter = input_ids.shape[1] > 1 and (
            self.config.needs_stream_ids or self.config.new_symbols
        )
        if position_ids is not None and names_matter:
            texts = packed_texts(input_ids, attention_mask, position_ids, past_key_values)
        if texts is not None:
            given = {"labels": labels, "position_ids": position_ids}
            kwargs |= {"num_items_in_batch": num_items_in_batch, "fused_lm_head": fused_lm_head}
            return self._forward_apart(texts, input_ids, stream_ids, given, kwargs)
        next_BT = next_tokens(input_ids, labels, kwargs, logits_to_keep)
        learns = next_BT is not None
        past_key_values = self._with_cache(use_cache, past_key_values, learns)
        streams = self._open(input_ids, attention_mask, stream_ids, past_key_values, learns, kept)
        number = self.host.number(streams)
        positions = {}
        if self.takes_positions:  # the padding before a text has none
            if position_ids is None:
                position_ids = decoder_positions(
                    input_ids, full_mask(attention_mask), past_key_values
                )
            longest, length = self.num_positions, input_ids.shape[1]
            if longest is not None and not (chosen and has_room(past_key_values, length, longest)):
                check_positions(position_ids, longest)
            one = len(position_ids) == 1  # row, which is for all
            positions["position_ids"] = position_ids if one else repeat_rows(position_ids, number)
        head = HeadCall(streams, logits_to_keep, cache=past_key_values)
        outputs = self._call(
            self.backbone,
            "decoder",
            input_ids,
            streams,
            {"head": head},
            attention_mask=self.host_masks(attention_mask, number),
            past_key_values=past_key_values,
            use_cache=past_key_values is not None,
            **positions,
            **kwargs,
        )
        output = HostOutput(outputs.logits, head)
        loss_of = self._loss_of(fused_lm_head, input_ids, next_BT)
        logits, loss = self.predict(output, streams, next_BT, num_items_in_batch, loss_of)
        if isinstance(loss, LabelScores):
            return loss if labels is None else loss.each(lambda x: x[:, :-1])
        return CausalOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.get("past_key_values"),
            **side_by_side(outputs, number, "hidden_states", "attentions"),
        )

    def _check(
        self,
        ids_BT: torch.Tensor | None,
        mask: Any,
        position_ids: torch.Tensor | None,
        cache: Cache | None,
        kwargs: dict[str, Any],
    ) -> None:
        """Raise an error for arguments that are missing, do not fit, or that nothing takes."""
        refuse_vectors(kwargs)
        check_dimensions(ids_BT, 2)
        assert ids_BT is not None
        rows, length = ids_BT.shape
        check_arguments(kwargs, self.taken)
        check_by_token(rows, length, position_ids=position_ids)
        cached = 0 if cache is None else cache.get_seq_length()
        # Static caches count on the device.
        if is_by_token(mask) and (isinstance(cached, int) or can_look(cached)):
            check_by_token(rows, int(cached) + length, attention_mask=mask)
        if position_ids is None and kwargs.get("cu_seq_lens_q") is not None:
            raise ValueError(
                "cu_seq_lens_q says that rows hold several texts, and position_ids are missing: "
                "give those that start again with each text"
            )

    def _forward_apart(
        self,
        texts: "PackedTexts",
        ids_BT: torch.Tensor,
        stream_ids: torch.Tensor | None,
        given: dict[str, torch.Tensor | None],
        kwargs: dict[str, Any],
    ) -> CausalOutput | LabelScores:
        """Returns what `forward` does for packed rows: with a row for each text.

        Args:
            stream_ids: which cannot be given.
            given: `labels` and `position_ids`, of the packed rows.
            kwargs: for `forward`; `shift_labels`, if there are some, are of the packed rows too.
        """
        if stream_ids is not None:
            raise ValueError(
                "stream_ids list the names of a row, and these rows hold several texts: leave them "
                "out, and the names of each text are found"
            )
        given["shift_labels"] = kwargs.pop("shift_labels", None)
        rows: dict[str, torch.Tensor | None] = {
            name: texts.apart(x, IGNORE if "labels" in name else 0)
            for name, x in given.items()
            if x is not None
        }
        kwargs = {name: value for name, value in kwargs.items() if name not in LENGTHS}
        ids_NL, settings = texts.apart(ids_BT, 0), {"use_cache": False, "return_dict": True}
        rows["shift_labels"] = next_tokens(ids_NL, rows.pop("labels", None), rows)
        outputs = self.forward(ids_NL, texts.mask, **rows, **{**kwargs, **settings})
        if isinstance(outputs, LabelScores):
            scores = outputs.each(texts.together)
            return scores if given["labels"] is None else scores.each(lambda x: x[:, :-1])
        if outputs.attentions is not None:
            raise ValueError(
                "output_attentions of rows with several texts: give each text a row of its own"
            )
        hidden = outputs.hidden_states
        return CausalOutput(
            loss=outputs.loss,
            logits=texts.together(outputs.logits),
            hidden_states=hidden and tuple(texts.together(state) for state in hidden),
        )


# Rows of several texts ----------------------------------------------------------------------------

LENGTHS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")
"""What collators give beside positions, for kernels that are told where texts end."""


@dataclass(frozen=True)
class PackedTexts:
    """The texts of packed rows.

    Attributes:
        shape: of the rows, (B, T).
        lengths: of the texts, in the order in which they stand.
        mask: 1 for tokens of a text that has a row of its own, 0 for padding: (N, L).
    """

    shape: tuple[int, int]
    lengths: list[int]
    mask: torch.Tensor

    @classmethod
    def of(cls, position_BT: torch.Tensor, rows: int) -> Self | None:
        """Returns the texts; None if each row is one.

        As Transformers has it, a text begins where a position does not follow the one before.

        Args:
            position_BT: of the tokens; one row may be for all.
            rows: B.
        """
        position_BT = position_BT.expand(rows, -1)
        begins_BT = torch.ones_like(position_BT, dtype=torch.bool)
        begins_BT[:, 1:] = position_BT.diff() != 1
        if int(begins_BT.sum()) == rows:
            return None
        begin_N = begins_BT.flatten().nonzero().flatten()
        end = begin_N.new_tensor([begins_BT.numel()])
        lengths = torch.cat((begin_N, end)).diff()
        place_L = torch.arange(int(lengths.max()), device=position_BT.device)
        mask = (place_L < lengths[:, None]).long()
        return cls((rows, position_BT.shape[1]), lengths.tolist(), mask)

    def apart(self, x_BT: torch.Tensor, filler: int) -> torch.Tensor:
        """Returns what belongs to tokens with a row for each text: (N, L)."""
        texts = x_BT.expand(self.shape).flatten().split(self.lengths)
        return pad_sequence(list(texts), batch_first=True, padding_value=filler)

    def together(self, x_NL: torch.Tensor) -> torch.Tensor:
        """Returns what belongs to tokens in the packed rows again: (N, L, ...) -> (B, T, ...)."""
        return x_NL[self.mask.bool()].unflatten(0, self.shape)


# Rows of another shape are another program.
@torch.compiler.disable
def packed_texts(
    ids_BT: torch.Tensor, mask: Any, position_BT: torch.Tensor, cache: Cache | None
) -> PackedTexts | None:
    """Returns the texts of packed rows; None if each row is one text.

    Raises:
        ValueError: positions start again beside a mask or a cache, where texts would see one
            another.
    """
    if mask is None and (cache is None or not cache.get_seq_length()):
        return PackedTexts.of(position_BT, ids_BT.shape[0])
    # Masks that are prepared for attention come from `generate`, whose rows are one text each.
    if not can_look(position_BT) or not (mask is None or is_by_token(mask)):
        return None
    back_BT = position_BT.diff() <= 0
    if mask is not None:
        shown_BT = mask[:, -ids_BT.shape[1] :] > 0
        back_BT = back_BT & shown_BT[:, 1:] & shown_BT[:, :-1]
    if bool(back_BT.any()):
        raise ValueError(
            "position_ids start again within a row, as those of several texts in one row do, and "
            "there is an attention_mask or a cache, with which the texts would see one another: "
            "give packed rows without either, or each text a row of its own"
        )
    return None


def has_room(cache: Cache | None, length: int, longest: int) -> bool:
    """Returns whether so many tokens behind a prompt, placed by `generate`, are within a limit."""
    past = 0 if cache is None else cache.get_seq_length()
    return isinstance(past, int) and 0 < past <= longest - length


def check_keeps_keys(backbone: PreTrainedModel) -> None:
    """Raise a ValueError for a decoder that keeps no keys and values of earlier tokens."""
    if "past_key_values" not in inspect.signature(backbone.forward).parameters:
        raise ValueError(
            f"a {backbone.config.model_type!r} model has no past_key_values, keys and values of "
            "earlier tokens: take a decoder such as gpt2 or llama"
        )
