"""FOLNet: two branches of atoms, deduced from each other by neural logic operators.

The source is Chen, "Learning Language Representations with Logical Inductive Bias" (ICLR 2023). Its
three forms are here: an encoder, a decoder, and an encoder with a decoder (Appendix A.5).

This file has the model and all its heads. They stand on the stacks of `folnet_stacks.py`, these on
the operators of `logic_operators.py`. Saved models name their classes by this file.

Shapes: B batch, S streams (1 unless the encoding opens streams), L source length, T target length,
M positions that a row of binary atoms relates to, D1 and D2 widths of unary and binary atoms, V
vocabulary. Unary atoms are (B, L, S * D1) and binary ones (B, L, M, S * D2).
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin
from transformers.utils import ModelOutput, can_return_tuple

from .causal_head import next_tokens
from .checks import (
    IGNORE,
    can_look,
    check_by_token,
    check_dimensions,
    refuse_unknown,
    refuse_vectors,
)
from .configuration_folnet import FolnetConfig
from .encoder_heads import (
    EncoderHead,
    Pooler,
    SequenceClassification,
    TokenClassification,
    check_classes,
    check_label_shape,
    class_loss,
    head_dropout,
    place_loss,
)
from .folnet_stacks import (
    FolnetDecoder,
    FolnetEncoder,
    FolnetOutput,
    FolnetPreTrainedModel,
    layer_norm,
    refuse_positions,
)
from .logit_scale import LogitScale
from .masks import split_prefix, with_prompt_as_prefix
from .streams import Streams
from .symbol_layer import SymbolDraws, SymbolLayer
from .symbol_model import SymbolHead, shift_right
from .symbols import unpack_streams


class FolnetModel(FolnetPreTrainedModel):
    """Deduces the atoms of a text, or of a source and a target.

    Args:
        config: its form says whether there is an encoder, a decoder, or both.
        remembers: keep what the encoder finds about each symbol, where the encoding asks for that;
            a head that gives no tokens has no use for it.
        pools: give a vector of the whole input, in an encoder.
    """

    _input_embed_layer = "shared"

    def __init__(self, config: FolnetConfig, remembers: bool = True, pools: bool = True):
        super().__init__(config)
        self.shared: nn.Module = nn.Embedding(*config.encoding(config).shape)
        self.symbol_draws = SymbolDraws.of(config)
        self.symbol_memory = None
        if remembers and config.memory is not None:
            self.symbol_memory = config.memory(config, config.num_attention_heads)
        self.symbols = SymbolLayer(config, self.symbol_draws, self)
        self.encoder = None if config.is_decoder else FolnetEncoder(config, self.symbols)
        decodes = config.is_decoder or config.is_encoder_decoder
        self.decoder = FolnetDecoder(config, self.symbols) if decodes else None
        self.pooler = Pooler(config) if pools and not decodes else None
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        prefix_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_binary_states: bool = True,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Encodes, decodes, or both; arguments are as in [`FolnetEncoder`] and [`FolnetDecoder`].

        Raises:
            ValueError: an input is missing, or does not fit the form of the model; a decoder alone
                gets one that it does not know.
        """
        refuse_vectors(kwargs)
        refuse_positions(kwargs)
        returned = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
            "return_dict": True,
        }
        if self.encoder is None:
            assert self.decoder is not None
            of_others = {
                "token_type_ids": token_type_ids, "stream_ids": stream_ids,
                "decoder_input_ids": decoder_input_ids,
                "decoder_attention_mask": decoder_attention_mask,
                "encoder_outputs": encoder_outputs,
            }  # fmt: skip
            refuse_unknown({**of_others, **kwargs}, "a FOLNet that is a decoder alone", ignored=())
            return self.decoder(
                input_ids, None, attention_mask, None, past_key_values, use_cache, prefix_mask,
                output_binary_states=output_binary_states, **returned,
            )  # fmt: skip
        if prefix_mask is not None:
            raise ValueError(
                "prefix_mask is for a decoder alone (is_decoder=True): an encoder sees its input "
                "in both directions, and the decoder beside it has no prefix. Leave it out"
            )
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids, attention_mask, token_type_ids, stream_ids,
                output_binary_states=output_binary_states or self.decoder is not None, **returned,
            )  # fmt: skip
        if self.decoder is None:
            encoded: Any = encoder_outputs
            if self.pooler is None:
                return encoded
            pooled = self.pooler(self.view(encoded), attention_mask)
            return encoded.completed(pooler_output=pooled)
        if decoder_input_ids is None:
            raise ValueError(
                "decoder_input_ids are missing (or give labels to the model with a head)"
            )
        source = self._complete(encoder_outputs, stream_ids, input_ids, attention_mask)
        decoded = self.decoder(
            decoder_input_ids, source, decoder_attention_mask, attention_mask, past_key_values,
            use_cache, output_binary_states=output_binary_states, **returned,
        )  # fmt: skip
        return decoded.behind(source)

    def _complete(
        self,
        outputs: ModelOutput | tuple,
        stream_ids: torch.Tensor | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
    ) -> FolnetOutput:
        """Accepts what other code makes of the encoder's output, if no atoms are lost."""
        if isinstance(outputs, (tuple, list)):
            binary = outputs[1] if len(outputs) > 1 else None
        else:
            binary = getattr(outputs, "binary_hidden_state", None)
        if binary is None or binary.dim() != 4:
            raise ValueError(
                "encoder_outputs lack binary_hidden_state: pass the output of model.get_encoder() "
                "as it is"
            )
        fields = self.complete_encoder_output(outputs, stream_ids, input_ids, attention_mask)
        return FolnetOutput(**{**fields, "binary_hidden_state": binary})

    def view(self, outputs: FolnetOutput) -> torch.Tensor:
        """Returns one vector for each position of an encoder's input: (B, L, D1).

        At a symbol it is that of its own stream, elsewhere the mean over the streams.
        """
        hidden = outputs.last_hidden_state
        if not self.config.encoding.opens_streams:
            return hidden
        hidden_BSLD = unpack_streams(hidden, self.config.hidden_size)
        return Streams.of(outputs, hidden.dtype).aggregate(hidden_BSLD)[:, 0]


# Heads that score the ids of the vocabulary


class FolnetPredictions(nn.Module):
    """What masked prediction does before and behind the tied projection, as in BERT."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        self.transform = nn.Sequential()
        self.transform.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.transform.activation = ACT2FN[config.hidden_act]
        self.transform.norm = layer_norm(config, config.hidden_size)
        self.vocabulary_of = config
        self.bias = nn.Parameter(torch.zeros(config.num_base_tokens))

    def resize(self) -> None:
        """Cuts the bias, or adds zeros to it, where the vocabulary has another size."""
        added = self.vocabulary_of.num_base_tokens - len(self.bias)
        self.bias = nn.Parameter(F.pad(self.bias.detach(), (0, added)), self.bias.requires_grad)

    def forward(self, logits_BTV: torch.Tensor) -> torch.Tensor:
        """Returns logits with the bias of base tokens; symbols have none, as they have no names."""
        vocabulary = self.vocabulary_of.vocabulary
        symbols = self.bias.new_zeros(vocabulary.num_symbols)
        return logits_BTV + vocabulary.join(self.bias, symbols, dim=0)


class FolnetPreTrainingHeads(nn.Module):
    """Masked prediction, and whether two sentences belong together or stand in order."""

    def __init__(self, config: FolnetConfig, pairs: bool):
        super().__init__()
        self.predictions = FolnetPredictions(config)
        if pairs:
            self.seq_relationship = nn.Linear(config.hidden_size, 2)


class FolnetLMHead(FolnetPreTrainedModel, SymbolHead):
    """A FOLNet whose output is a score for each id; the base of such heads.

    Attributes:
        form: the form that the configuration has to have, one of `FORMS`.
        pairs: whether the head also scores pairs of sentences.
    """

    form: str
    pairs = False

    def __init__(self, config: FolnetConfig):
        check_form(config, type(self).__name__, self.form)
        super().__init__(config)
        self.folnet = FolnetModel(config, pools=self.pairs)
        self.logit_scale = LogitScale(config.initial_logit_scale, config.adacos)

    def _predict(
        self,
        outputs: FolnetOutput,
        labels_BT: torch.Tensor | None,
        num_items: torch.Tensor | int | None,
        scored: Any = slice(None),
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns logits (B, T, V) and, with labels, the loss.

        Args:
            labels_BT: ids, -100 where no loss is wanted.
            scored: index of the positions that are scored; labels are of these.

        Raises:
            ValueError: labels that no output can give.
        """
        assert outputs.last_hidden_state is not None
        hidden_BSTD = unpack_streams(outputs.last_hidden_state, self.config.hidden_size)
        streams = Streams.of(outputs, hidden_BSTD.dtype)
        return self.predict(hidden_BSTD[:, :, scored], streams, labels_BT, num_items)


class FolnetForMaskedLM(FolnetLMHead):
    """FOLNet that predicts masked tokens (MLM)."""

    form = "encoder"

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.cls = FolnetPreTrainingHeads(config, self.pairs)
        self.post_init()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        embedding = super().resize_token_embeddings(*args, **kwargs)
        self.cls.predictions.resize()
        return embedding

    def _logits(self, hidden_BSTD: Any, streams: Streams) -> torch.Tensor:
        predictions = self.cls.predictions
        logits = super()._logits(predictions.transform(hidden_BSTD), streams)
        return predictions(logits)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns scores of each id at each position, and the loss where labels are given.

        Args:
            labels: (B, L), -100 where no loss is wanted. The others are as in [`FolnetEncoder`].
            num_items_in_batch: labelled tokens of the whole optimiser step.
        """
        outputs = self._encode(input_ids, attention_mask, token_type_ids, stream_ids, **kwargs)
        return self._masked(outputs, labels, num_items_in_batch)

    def _masked(
        self,
        outputs: FolnetOutput,
        labels_BL: torch.Tensor | None,
        num_items: torch.Tensor | int | None,
    ) -> FolnetOutput:
        """Returns the scores of an encoder's positions, and the loss where labels are given."""
        check_by_token(*outputs.last_hidden_state.shape[:2], labels=labels_BL)
        logits, loss = self._predict(outputs, labels_BL, num_items)
        return outputs.scored(loss=loss, logits=logits)


class FolnetForPreTraining(FolnetForMaskedLM):
    """FOLNet that predicts masked tokens, and how two sentences belong together (NSP or SOP)."""

    pairs = True

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        next_sentence_label: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns what [`FolnetForMaskedLM`] does, and scores of the pair.

        Args:
            next_sentence_label: (B,); by convention 0 where the second sentence follows the first
                (NSP) or both are in order (SOP), else 1. The loss is the sum of both; with
                `num_items_in_batch`, that of the pairs counts by the share of labelled tokens.

        Raises:
            ValueError: there are such labels, and no `token_type_ids` that tell sentences apart.
        """
        if next_sentence_label is not None:
            check_dimensions(input_ids, 2)
            assert input_ids is not None
            check_label_shape(next_sentence_label, len(input_ids), name="next_sentence_label")
            next_sentence_label = next_sentence_label.flatten()
            check_told_apart(token_type_ids, next_sentence_label)
        outputs = self._encode(input_ids, attention_mask, token_type_ids, stream_ids, **kwargs)
        predicted = self._masked(outputs, labels, num_items_in_batch)
        pairs, total = self.cls.seq_relationship(outputs.pooler_output), predicted.loss
        if next_sentence_label is not None:
            loss = _pair_loss(pairs, next_sentence_label, labels, num_items_in_batch)
            total = loss if total is None else total + loss
        return predicted.completed(loss=total, seq_relationship_logits=pairs)


def _pair_loss(
    logits_BC: torch.Tensor,
    pairs_B: torch.Tensor,
    labels: torch.Tensor | None,
    num_items: torch.Tensor | int | None,
) -> torch.Tensor:
    """Returns the loss of sentence pairs, by the share of the step's labelled tokens if known."""
    check_classes(pairs_B, 2, "next_sentence_label")
    loss = class_loss(logits_BC, pairs_B)
    if labels is None or num_items is None:
        return loss
    items = torch.as_tensor(num_items, device=loss.device).clamp(min=1)
    return loss * (labels != IGNORE).sum().to(loss.device) / items


class FolnetGenerator(FolnetLMHead, GenerationMixin):
    """A FOLNet that writes; the base of such heads."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.post_init()
        # Trainer writes the opposite into every configuration that it trains.
        self.generation_config.use_cache = True

    def get_encoder(self, *args: Any, **kwargs: Any) -> Any:
        return self.folnet.encoder

    def get_decoder(self, *args: Any, **kwargs: Any) -> Any:
        return self.folnet.decoder


class FolnetForCausalLM(FolnetGenerator):
    """FOLNet that goes on with a text: a causal or a prefix language model (Appendix A.5)."""

    form = "decoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        prefix_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns scores of the next token at each position, and the loss where labels are given.

        Args:
            prefix_mask: 1 for tokens that see each other in both directions, (B, T) or shorter; by
                default, with `config.prefix_lm` and `labels`, the tokens before the first label.
            labels: the same ids, -100 where no loss is wanted: (B, T). The model compares each with
                the prediction of the position before. The others are as in [`FolnetDecoder`].
            logits_to_keep: how many of the last positions have scores and a loss, 0 for all; or
                which ones, as indices.
            **kwargs: `shift_labels`, in place of `labels`: the token that follows each one, (B, T);
                where a text is cut into parts, the last token of a part needs it.

        Raises:
            ValueError: an input is missing or does not fit the others.
        """
        refuse_vectors(kwargs)
        next_BT = next_tokens(input_ids, labels, kwargs)
        assert input_ids is not None  # as `next_tokens` has looked
        prefix_lm = self.config.prefix_lm
        next_BT, prefix_mask = split_prefix(next_BT, prefix_mask, prefix_lm, input_ids.shape[0])
        outputs = self._encode(
            input_ids, attention_mask, past_key_values=past_key_values,
            use_cache=False if next_BT is not None else use_cache, prefix_mask=prefix_mask,
            **kwargs,
        )  # fmt: skip
        last = isinstance(logits_to_keep, int)
        scored = slice(-logits_to_keep, None) if last else logits_to_keep
        next_BT = None if next_BT is None else next_BT[:, scored]
        logits, loss = self._predict(outputs, next_BT, num_items_in_batch, scored)
        return outputs.scored(loss=loss, logits=logits)

    def generate(self, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Generates as [`FolnetGenerator`] does; with `config.prefix_lm`, the prompt is a prefix.

        Raises:
            ValueError: with `config.prefix_lm`, `past_key_values` holds tokens and there is no
                `prefix_mask`: what is cached has not seen the rest of the prompt.
        """
        prompt = kwargs.get("input_ids") if inputs is None else inputs
        if prompt is not None:
            check_dimensions(prompt, 2)
        if self.config.prefix_lm:
            kwargs = with_prompt_as_prefix(prompt, kwargs)
        return super().generate(inputs, *args, **kwargs)


class FolnetForConditionalGeneration(FolnetGenerator):
    """FOLNet that writes an answer to an input (Appendix A.5)."""

    form = "encoder-decoder"

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: ModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns scores of the next token at each position, and the loss where labels are given.

        Args:
            labels: (B, T), -100 where no loss is wanted; they also give `decoder_input_ids`. The
                others are as in [`FolnetEncoder`] and [`FolnetDecoder`].
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self._encode(
            input_ids, attention_mask, token_type_ids, stream_ids, decoder_input_ids,
            decoder_attention_mask, encoder_outputs, past_key_values, use_cache,
            **kwargs,
        )  # fmt: skip
        rows = outputs.encoder_last_hidden_state.shape[0]
        check_by_token(rows, outputs.last_hidden_state.shape[1], labels=labels)
        logits, loss = self._predict(outputs, labels, num_items_in_batch)
        return outputs.scored(loss=loss, logits=logits)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels shifted right behind the start token, (B, T); -100 becomes padding.

        Raises:
            ValueError: the configuration names no start token or no padding.
        """
        if self.config.decoder_start_token_id is None or self.config.pad_token_id is None:
            raise ValueError(
                "set decoder_start_token_id and pad_token_id in the configuration, or make it by "
                "FolnetConfig.for_tokenizer(tokenizer, is_encoder_decoder=True)"
            )
        return shift_right(labels, self.config)


# Heads that read the view of an encoder's atoms


class FolnetHead(EncoderHead, FolnetPreTrainedModel):
    """A FOLNet with an output of its own on an encoder's atoms; the base of such heads.

    Its loss is a mean over the batch, which Trainer divides by the number of micro-batches.
    """

    accepts_loss_kwargs = False
    pools = True

    def __init__(self, config: FolnetConfig):
        check_form(config, type(self).__name__, "encoder")
        super().__init__(config)
        self.folnet = FolnetModel(config, remembers=False, pools=self.pools)
        self.dropout = head_dropout(config)

    def token_states(self, outputs: FolnetOutput) -> torch.Tensor:
        return self.folnet.view(outputs)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns the scores of the head, and the loss where labels are given.

        Args:
            labels: as the kind of head takes them: [`SequenceClassification`],
                [`TokenClassification`] or [`FolnetForMultipleChoice`]. The others are as in
                [`FolnetEncoder`].

        Raises:
            ValueError: labels are too few or too many, or no such label exists.
        """
        outputs = self._encode(
            input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            stream_ids=stream_ids, **kwargs,
        )  # fmt: skip
        return outputs.scored(**self.answer(outputs, labels))


class FolnetForSequenceClassification(SequenceClassification, FolnetHead):
    """FOLNet that gives a text, or a pair of texts, a class or a number."""


class FolnetForTokenClassification(TokenClassification, FolnetHead):
    """FOLNet that gives each token a class."""


class FolnetForMultipleChoice(FolnetHead):
    """FOLNet that chooses between several texts, or pairs.

    Inputs are (B, choices, L), logits (B, choices), and labels (B,) say which choice is right.
    """

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    def _encode(self, input_ids: torch.Tensor | None, **inputs: Any) -> FolnetOutput:
        """Returns the output for each text as a row; `pooler_output` is (B, choices, D1)."""
        refuse_vectors(inputs)
        refuse_positions(inputs)
        check_dimensions(input_ids, 3)
        assert input_ids is not None
        rows = {
            name: value.flatten(0, 1) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        outputs = super()._encode(input_ids.flatten(0, 1), **rows)
        assert outputs.pooler_output is not None
        pooled_BCD = outputs.pooler_output.unflatten(0, input_ids.shape[:2])
        return outputs.completed(pooler_output=pooled_BCD)

    def logits_of(self, outputs: FolnetOutput) -> torch.Tensor:
        return self.classifier(self.dropout(outputs.pooler_output))[..., 0]

    def loss_of(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        num_items: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        check_label_shape(labels, len(logits))
        check_classes(labels, logits.shape[1])
        return class_loss(logits, labels)


class FolnetForQuestionAnswering(FolnetHead):
    """FOLNet that finds where an answer begins and ends (Equation 5)."""

    def __init__(self, config: FolnetConfig):
        super().__init__(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        stream_ids: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> FolnetOutput:
        """Returns scores of starts and ends, and the loss where both are given.

        Args:
            start_positions, end_positions: tokens at which the answers begin and end, beyond the
                input for no loss: (B,). The others are as in [`FolnetEncoder`].

        Raises:
            ValueError: one of them is missing or negative, or has not B numbers.
        """
        check_span(start_positions, end_positions)
        outputs = self._encode(
            input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            stream_ids=stream_ids, **kwargs,
        )  # fmt: skip
        start, end = self.qa_outputs(self.token_states(outputs)).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            check_label_shape(start_positions, len(start), name="start_positions")
            check_label_shape(end_positions, len(end), name="end_positions")
            loss = (place_loss(start, start_positions) + place_loss(end, end_positions)) / 2
        return outputs.scored(
            loss=loss, start_logits=start.contiguous(), end_logits=end.contiguous()
        )


FORMS = {
    "encoder": "is_decoder=False, is_encoder_decoder=False",
    "decoder": "is_decoder=True",
    "encoder-decoder": "is_encoder_decoder=True",
}
"""The forms of the model (Appendix A.5), and the settings that make them."""


def check_form(config: FolnetConfig, name: str, needed: str) -> None:
    """Raise a ValueError if the model of this name needs a configuration of another form."""
    form = "decoder" if config.is_decoder else "encoder"
    form = "encoder-decoder" if config.is_encoder_decoder else form
    if form != needed:
        raise ValueError(
            f"{name} is a model of the form {needed!r}, and the configuration is of {form!r}: make "
            f"it with FolnetConfig({FORMS[needed]})"
        )


def check_told_apart(types_BL: torch.Tensor | None, labels_B: torch.Tensor) -> None:
    """Raise a ValueError if token types do not tell two sentences apart in a row with a label."""
    if types_BL is None:
        raise ValueError(
            "next_sentence_label without token_type_ids: give both sentences to the tokenizer as "
            "a pair, and pass everything that it returns"
        )
    if not can_look(types_BL):
        return
    one_type = (types_BL == types_BL[:, :1]).all(1) & (labels_B != IGNORE)
    if one_type.any():
        row = int(one_type.long().argmax())
        raise ValueError(
            f"next_sentence_label, but row {row} of token_type_ids has one type only: take a "
            "tokenizer that gives the second sentence another one, as BERT's"
        )


def check_span(start_B: torch.Tensor | None, end_B: torch.Tensor | None) -> None:
    """Raise a ValueError if one end of the spans is missing, or one is negative."""
    ends = {"start_positions": start_B, "end_positions": end_B}
    given_ends = {name: x for name, x in ends.items() if x is not None}
    if len(given_ends) == 1:
        raise ValueError(f"{next(iter(given_ends))} alone: give {' and '.join(ends)}, or none")
    for name, x in given_ends.items():
        if can_look(x) and (x < 0).any():
            raise ValueError(
                f"{name} has {int(x.min())}: a position is at least 0, and one beyond the input "
                "has no loss"
            )
