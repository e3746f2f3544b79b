"""A symbol layer around any decoder of Transformers, which stays as Transformers made it.

A sample is one sequence: the problem as its tokenizer writes it, then the answer and an end token.

Shapes: B batch, T length, M length with what a cache holds, S listed symbols, V vocabulary.
"""

import inspect
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import Cache
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple

from .causal_head import CausalHead, CausalOutput, next_tokens
from .checks import (
    IGNORE,
    can_look,
    check_dimensions,
    check_mask,
    check_position_shape,
    check_positions,
    refuse_vectors,
)
from .configuration_retrofit import RetrofitConfig
from .host_calls import (
    HeadCall,
    by_sample,
    check_arguments,
    each,
    packed,
    repeat_rows,
    taken_arguments,
)
from .host_encodings import HostOutput
from .masks import full_mask, is_by_token
from .modeling_retrofit import RetrofitModel
from .packed_texts import LENGTHS, PackedTexts, packed_texts
from .positions import decoder_positions


class RetrofitForCausalLM(CausalHead, RetrofitModel):
    """A decoder with a symbol layer around it; arguments as of [`RetrofitModel`].

    Raises:
        ValueError: the backbone is an encoder-decoder, or keeps no keys and values of the tokens
            before.
    """

    config: RetrofitConfig
    auto = AutoModelForCausalLM
    sides = ("decoder",)

    @property
    def first_free_slot(self) -> int:
        return self.num_slots

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
        **kwargs: Any,
    ) -> CausalOutput:
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
        self._check(input_ids, attention_mask, position_ids, past_key_values, kwargs)
        assert input_ids is not None  # as was checked
        texts = self._texts(input_ids, attention_mask, position_ids, past_key_values)
        if texts is not None:
            given = {"labels": labels, "position_ids": position_ids}
            kwargs["num_items_in_batch"] = num_items_in_batch
            return self._forward_apart(texts, input_ids, stream_ids, given, kwargs)
        next_BT = next_tokens(input_ids, labels, kwargs)
        learns = next_BT is not None
        if learns and logits_to_keep:
            raise ValueError("logits_to_keep beside labels: leave it out, a loss needs all logits")
        past_key_values = self._with_cache(use_cache, past_key_values, learns)
        positions = self._positions(input_ids, attention_mask, position_ids, past_key_values)
        streams = self._open(input_ids, attention_mask, stream_ids, past_key_values, learns)
        head = HeadCall(streams, logits_to_keep, cache=past_key_values)
        outputs = self._decode(input_ids, attention_mask, positions, head, kwargs)
        output = HostOutput(outputs.logits, head)
        scores = self.predict(output, streams, next_BT, num_items_in_batch)
        return self._scored(outputs, self.host.number(streams), *scores)

    def _scored(
        self, outputs: ModelOutput, number: int, logits: torch.Tensor, loss: torch.Tensor | None
    ) -> CausalOutput:
        """Returns the backbone's output, of `number` streams, with scores."""
        return CausalOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.get("past_key_values"),
            hidden_states=each(packed, outputs.get("hidden_states"), number),
            attentions=each(by_sample, outputs.get("attentions"), number),
        )

    def _decode(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        positions: dict[str, torch.Tensor],
        head: HeadCall,
        kwargs: dict[str, Any],
    ) -> Any:
        """Returns what the backbone gives for the rows of its batch; `head` keeps what passes it.

        Args:
            positions: that the backbone is given, see `_positions`.
            kwargs: for the backbone.
        """
        streams = head.streams
        number = self.host.number(streams)
        rows = self.symbols.rows(ids_BT, streams).flatten(0, 1)
        relations = self.host.relations(self._table("decoder"), rows, streams)
        # One row of positions is for all.
        place = {
            name: x if len(x) == 1 else repeat_rows(x, number) for name, x in positions.items()
        }
        with self._passing(head), self._adding("decoder", ids_BT, streams):
            outputs = self.backbone(
                input_ids=rows,
                attention_mask=repeat_rows(mask, number),
                past_key_values=head.cache,
                use_cache=head.cache is not None,
                return_dict=True,
                **place,
                **kwargs,
                **relations,
            )
        self._check_reached(relations)
        return outputs

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
        check_position_shape(position_ids, rows, length)
        cached = 0 if cache is None else cache.get_seq_length()
        # Static caches count on the device.
        if is_by_token(mask) and (isinstance(cached, int) or can_look(cached)):
            check_mask(mask, rows, int(cached) + length)
        if position_ids is None and kwargs.get("cu_seq_lens_q") is not None:
            raise ValueError(
                "cu_seq_lens_q says that rows hold several texts, and position_ids are missing: "
                "give those that start again with each text"
            )

    # -- several texts in a row --------------------------------------------------------------------

    def _texts(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        position_ids: torch.Tensor | None,
        cache: Cache | None,
    ) -> PackedTexts | None:
        """Returns the texts of packed rows, where names have to start anew with each."""
        # Where names are no matter, the backbone itself tells its texts apart.
        names_matter = self.config.needs_stream_ids or self.config.new_symbols
        if position_ids is None or ids_BT.shape[1] == 1 or not names_matter:
            return None
        return packed_texts(ids_BT, mask, position_ids, cache)

    def _forward_apart(
        self,
        texts: PackedTexts,
        ids_BT: torch.Tensor,
        stream_ids: torch.Tensor | None,
        given: dict[str, torch.Tensor | None],
        kwargs: dict[str, Any],
    ) -> CausalOutput:
        """Returns what `forward` does for packed rows: with a row for each text.

        Args:
            texts: of the rows.
            ids_BT: tokens.
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
        rows = {
            name: texts.apart(x, IGNORE if "labels" in name else 0)
            for name, x in given.items()
            if x is not None
        }
        kwargs = {name: value for name, value in kwargs.items() if name not in LENGTHS}
        ids_NL, settings = texts.apart(ids_BT, 0), {"use_cache": False, "return_dict": True}
        outputs = self.forward(ids_NL, texts.mask, **rows, **{**kwargs, **settings})
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

    def _positions(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        given_BT: torch.Tensor | None,
        cache: Cache | None,
    ) -> dict[str, torch.Tensor]:
        """Returns the positions that the backbone is given: the padding before a text has none."""
        if not self.takes_positions:
            return {}
        if given_BT is None:
            given_BT = decoder_positions(ids_BT, full_mask(mask), cache)
        if self.num_positions is not None:
            check_positions(given_BT, self.num_positions)
        return {"position_ids": given_BT}


def check_keeps_keys(backbone: PreTrainedModel) -> None:
    """Raise a ValueError for a decoder that keeps no keys and values of earlier tokens."""
    if "past_key_values" not in inspect.signature(backbone.forward).parameters:
        raise ValueError(
            f"a {backbone.config.model_type!r} model has no past_key_values, keys and values of "
            "earlier tokens: take a decoder such as gpt2 or llama"
        )


__all__ = ["RetrofitForCausalLM", "check_keeps_keys"]
