"""A decoder alone over hidden states with a stream axis, for each symbol encoding.

The layers are those of [`AlphaDecoder`], without a source. With `relational` encoding, heads are
told which earlier tokens hold the same symbol, and which stand right behind it, so that one layer
finds what followed a name before; the head points at the symbols of the text. With `new_symbols` it
writes symbols, too, that the text lacks (see `new_symbols`).

Shapes: B batch, S streams (1 unless the encoding opens streams), T tokens at hand, M length of the
text so far, D model width, V vocabulary.
"""

from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.utils import can_return_tuple

from .causal_head import NO_LAST_STATE, CausalHead, CausalOutput, next_tokens
from .checks import refuse_unknown, refuse_vectors
from .configuration_alpha import AlphaConfig
from .encoding import TextStates
from .label_scores import LabelScores
from .logit_scale import LogitScale
from .masks import causal_mask, split_prefix, with_prompt_as_prefix
from .modeling_alpha import AlphaPreTrainedModel, AlphaStack
from .positions import decoder_positions, length_scale
from .relations import MadeOnce
from .streams import Streams
from .symbols import unpack_streams


class AlphaTextModel(AlphaStack):
    """Embedding and layers of a decoder alone, without the projection to the vocabulary.

    Attributes:
        start: a row that is added to the first token of a text. Without it, the states of a text
            that begins with several names would be equal there, as averages of equal vectors are.
    """

    side = "decoder"

    def __init__(self, config: AlphaConfig):
        if config.is_encoder_decoder:
            raise ValueError(
                "the configuration is that of an encoder-decoder: take "
                "AlphaForConditionalGeneration, or set is_encoder_decoder=False"
            )
        super().__init__(config)

    def forward(
        self,
        input_ids: torch.Tensor,
        streams: Streams | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        prefix_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPast:
        """Reads on.

        Args:
            input_ids: (B, T), without the tokens that `past_key_values` holds.
            streams: over them, see `CausalHead._open`.
            attention_mask: 1 for tokens, 0 for padding on either side: (B, M); or as generation
                prepares it, (B, 1, T, M).
            position_ids: (B, T); by default counted from the first token that is not padding.
            prefix_mask: 1 for tokens that see each other in both directions: (B, M) or shorter.

        Returns:
            `last_hidden_state` (B, T, S * D).

        Raises:
            TypeError: other code than the head has called, which knows of no streams.
        """
        if streams is None:
            raise TypeError(NO_LAST_STATE)
        positions = position_ids
        if positions is None:
            positions = decoder_positions(input_ids, attention_mask, past_key_values)
        hidden = self.symbols.embed(input_ids, streams) + self._start(positions)
        hidden, rope = self._place(hidden, input_ids, lambda: positions, streams, None)
        scale = None
        if self.config.decoder_position == "log_length":
            scale = length_scale(positions, hidden.dtype)
        mask = causal_mask(input_ids, attention_mask, past_key_values, hidden.dtype, prefix_mask)
        context, returned = (streams, mask, rope), (output_attentions, output_hidden_states)
        _, _, outputs = self._through_layers(
            hidden, context, *returned, past_key_values=past_key_values, query_scale=scale
        )
        return BaseModelOutputWithPast(past_key_values=past_key_values, **outputs)

    def _start(self, positions_BT: torch.Tensor) -> torch.Tensor:
        """Returns what is added to the vectors of tokens: (B or 1, 1, T, D)."""
        row_D = self.start(positions_BT.new_zeros(()))
        if self.config.normalize_embeddings:
            row_D = F.normalize(row_D, dim=0)
        return (positions_BT == 0)[:, None, :, None] * row_D * self.symbols.scale


class AlphaForCausalLM(AlphaPreTrainedModel, CausalHead):
    """[`AlphaTextModel`] with the projection to the vocabulary, tied to the embedding.

    Raises:
        ValueError: the configuration is that of an encoder-decoder.

    Examples:
        >>> config = AlphaConfig(
        ...     symbol_classes={"variable": 5},
        ...     symbol_encoding="relational",
        ...     is_encoder_decoder=False,
        ...     d_model=24,
        ...     decoder_layers=1,
        ... )
        >>> AlphaForCausalLM(config)(input_ids=torch.tensor([[12, 4, 11]])).logits.shape
        torch.Size([1, 3, 15])
    """

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        self.model = AlphaTextModel(config)
        self.num_slots = config.num_slots
        self.logit_scale = LogitScale(config.initial_logit_scale, config.adacos)
        self.post_init()
        self.generation_config.suppress_tokens = [config.pad_token_id]
        # Trainer writes the opposite into every configuration that it trains.
        self.generation_config.use_cache = True

    def get_decoder(self) -> AlphaTextModel:
        return self.model

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        prefix_mask: torch.Tensor | None = None,
        fused_lm_head: bool = False,
        logits_to_keep: int = 0,
        kept: MadeOnce | None = None,
        **kwargs: Any,
    ) -> CausalOutput | LabelScores:
        """Returns scores of the next token at each position, and the loss where labels are given.

        Args:
            input_ids: (B, T); without the tokens that `past_key_values` holds.
            attention_mask: 1 for tokens, 0 for padding on either side: (B, M).
            position_ids: (B, T); by default counted from the first token that is not padding.
            stream_ids: the problems' symbols by first occurrence, -1 padded: (B, S); looked at
                where `config.needs_stream_ids`. Derived from `input_ids` when absent.
            labels: the same ids, -100 where no loss is wanted, as in the problem: (B, T). The model
                compares each with the prediction of the position before. With
                `config.new_symbols`, a symbol where it comes first in its text counts as new,
                whichever it is.
            num_items_in_batch: labelled tokens of the whole optimiser step; the loss is summed and
                divided by it.
            prefix_mask: 1 for tokens that see each other in both directions, (B, T) or shorter; by
                default, with `config.prefix_lm` and labels, the tokens before the first label.
            fused_lm_head: return the [`LabelScores`] that TRL's trainers ask for; of all labels but
                the first, which follows nothing, or of all `shift_labels`.
            logits_to_keep: how many of the last positions get logits; 0 for all.
            kept: what a generation keeps, from `generate`.
            **kwargs: `shift_labels`, in place of `labels`: the token that follows each one, (B, T).

        Returns:
            `logits` (B, T, V), or of the last positions. Where `config.needs_stream_ids`, columns
            of symbols that are not in a sample's problem hold -1e4; with `config.new_symbols`,
            those of symbols that its text lacks, but the first of each class, which has the score
            of a new one.

        Raises:
            ValueError: an input is missing, unknown or does not fit the others.
        """
        refuse_vectors(kwargs)
        next_BT = next_tokens(input_ids, labels, kwargs, logits_to_keep)
        refuse_unknown(kwargs, type(self).__name__)
        assert input_ids is not None  # as `next_tokens` has looked
        prefix_lm = self.config.prefix_lm
        next_BT, prefix_mask = split_prefix(next_BT, prefix_mask, prefix_lm, input_ids.shape[0])
        learns = next_BT is not None
        past_key_values = self._with_cache(use_cache, past_key_values, learns)
        streams = self._open(input_ids, attention_mask, stream_ids, past_key_values, learns, kept)
        outputs = self.model(
            input_ids,
            streams,
            attention_mask,
            position_ids,
            past_key_values,
            prefix_mask,
            output_attentions,
            output_hidden_states,
        )
        features_BSTD = unpack_streams(outputs.last_hidden_state, self.config.d_model)
        states = TextStates(features_BSTD[:, 0], past_key_values, self.num_slots, logits_to_keep)
        streams = self.symbol_layer.point(streams, None, states)
        features_BSTD = features_BSTD[:, :, -logits_to_keep:]
        streams = streams.of_last(features_BSTD.shape[2])
        loss_of = self._loss_of(fused_lm_head, input_ids, next_BT)
        logits, loss = self.predict(features_BSTD, streams, next_BT, num_items_in_batch, loss_of)
        if isinstance(loss, LabelScores):
            return loss if labels is None else loss.each(lambda x: x[:, :-1])
        return CausalOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def _number_of_streams(self, keys: torch.Tensor) -> int:
        return keys.shape[0] * keys.shape[1] // self.config.decoder_attention_heads

    def generate(self, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Generates as [`CausalHead`] does; with `config.prefix_lm`, the prompt is a prefix.

        Raises:
            ValueError: with `config.prefix_lm`, `past_key_values` holds tokens and there is no
                `prefix_mask`.
        """
        if self.config.prefix_lm:
            prompt = kwargs.get("input_ids") if inputs is None else inputs
            kwargs = with_prompt_as_prefix(prompt, kwargs)
        return super().generate(inputs, *args, **kwargs)
