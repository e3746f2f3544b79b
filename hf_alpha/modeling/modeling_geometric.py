"""Encoders whose input holds symbolic segments beside the tokens.

The source is Roche, "Transformer/Symbolic Hybridization with Finite-State Transducers" (2023). A
transducer finds segments of a text: compounds, names, dates. The model reads the tokens, then the
segments, x' of Section 2.2, and attention knows how any two of them lie to each other. All but
that is BERT, names of weights included; the output is that of the tokens. What heads have in common
with those of FOLNet is in `encoder_heads.py`.

Shapes: B batch, T tokens, S segments, N = T + S elements, R relations, D width, H heads, K head
width, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    MaskedLMOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel
from transformers.models.bert.modeling_bert import eager_attention_forward
from transformers.utils import ModelOutput, can_return_tuple
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .checks import check_by_token, check_ids, check_positions
from .configuration_geometric import GeometricConfig
from .cpu import suit_cpu
from .encoder_heads import (
    EncoderHead,
    Pooler,
    SequenceClassification,
    TokenClassification,
    TokenLabels,
    check_types,
    head_dropout,
)
from .masks import additive
from .positions import rotary, rotate, token_positions
from .saving import SavesCode
from .segment_relations import RelationVectors, Segments, relation_ids

CosSin = tuple[torch.Tensor, torch.Tensor]


@dataclass
class GeometricOutput(ModelOutput):
    """The states of a text's tokens and segments.

    Attributes:
        last_hidden_state: last states of the tokens: (B, T, D).
        segment_hidden_state: last states of the segments: (B, S, D); None without any.
        pooler_output: the summary of the text, read off its first token: (B, D).
        hidden_states: states of all layers; those before the last hold the segments behind the
            tokens: (B, N, D).
        attentions: weights of all layers, where they are written out
            (`attn_implementation="eager"`): (B, H, N, N).
    """

    last_hidden_state: torch.Tensor | None = None
    segment_hidden_state: torch.Tensor | None = None
    pooler_output: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class Elements(NamedTuple):
    """Where tokens and segments lie, and which of them are no padding.

    Attributes:
        mask: additive, hides padding: (B, 1, 1, N), or None.
        token_mask: additive, hides padding and segments, for gated attention: (B, 1, 1, N), or
            None.
        relations: numbers of the relations (B or 1, N, N), for `"graph"`.
        starts, ends: rotations, each a pair of (B or 1, 1, N, 1, K), for `"two_layer_rotary"`.
    """

    mask: torch.Tensor | None = None
    token_mask: torch.Tensor | None = None
    relations: torch.Tensor | None = None
    starts: CosSin | None = None
    ends: CosSin | None = None


class GeometricEmbeddings(nn.Module):
    """Vectors of tokens, and behind them those of segments: (B, N, D)."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        width = config.embedding_size or config.hidden_size
        padding = config.pad_token_id
        self.max_positions = config.max_position_embeddings
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=padding)
        self.position_embeddings = (
            nn.Embedding(config.max_position_embeddings, width)
            if config.absolute_positions
            else None
        )
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.segment_embeddings = (
            nn.Embedding(len(config.segment_labels) + 1, width, padding_idx=0)
            if config.reads_segments
            else None
        )
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.projection = (
            nn.Linear(width, config.hidden_size) if width != config.hidden_size else None
        )

    def forward(
        self,
        words_BTD: torch.Tensor,
        types_BT: torch.Tensor,
        positions: torch.Tensor,
        segments: Segments | None,
    ) -> torch.Tensor:
        """Returns the vectors of tokens, and behind them those of segments: (B, N, D).

        A segment has the type, and the position, of its first token.

        Args:
            types_BT: to which sequence each token belongs.
            positions: (B or 1, T).

        Raises:
            ValueError: a position has no vector.
        """
        vectors = words_BTD
        if segments is not None and self.segment_embeddings is not None:
            vectors = torch.cat((vectors, self.segment_embeddings(segments.ids)), dim=1)
            types_BT, positions = (segments.starting(x) for x in (types_BT, positions))
        vectors = vectors + self.token_type_embeddings(types_BT)
        if self.position_embeddings is not None:
            check_positions(positions, self.max_positions)
            vectors = vectors + self.position_embeddings(positions)
        vectors = self.dropout(self.LayerNorm(vectors))
        return vectors if self.projection is None else self.projection(vectors)


class GeometricSelfAttention(nn.Module):
    """Attention of elements to elements that knows their relations.

    Attributes:
        relations: vectors of relations, for `"graph"` without `share_relations`.
        gate: share of this attention in each head's output, (H,); the rest is plain attention to
            the tokens. Only where the configuration says `gated`.
    """

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.config = config
        self.head_size = config.head_size
        self.is_causal = False
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.relations: RelationVectors | None = None
        if config.relation_attention == "graph" and not config.share_relations:
            self.relations = RelationVectors(config.max_distance, config.head_size)
        self.gate: nn.Parameter | None = None
        if config.gated:
            self.gate = nn.Parameter(torch.zeros(config.num_attention_heads))

    def forward(
        self,
        hidden_BND: torch.Tensor,
        elements: Elements,
        shared_relations: RelationVectors | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns what attention gives, (B, N, D), and its weights (B, H, N, N) or None.

        Args:
            hidden_BND: states of tokens and segments.
            shared_relations: vectors of relations that all layers share.
        """
        query, key, value = (
            linear(hidden_BND).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        mask, vectors = elements.mask, self.relations or shared_relations
        if elements.relations is not None and vectors is not None:
            scores = vectors(query, elements.relations) * self.head_size**-0.5
            mask = scores if mask is None else scores + mask
        if elements.starts is not None and elements.ends is not None:
            rotated = [two_layer(x, elements.starts, elements.ends) for x in (query, key)]
            out, weights = self._attend(rotated[0], rotated[1], value, mask, 0.5)
        else:
            out, weights = self._attend(query, key, value, mask)
        if self.gate is not None:
            plain, plain_weights = self._attend(query, key, value, elements.token_mask)
            gate = self.gate.to(out.dtype)
            if weights is None or plain_weights is None:
                out = plain + gate[:, None] * (out - plain)
            else:  # by the weights that are returned, for those who look at their gradients
                weights = plain_weights + gate[:, None, None] * (weights - plain_weights)
                out = (weights @ value).transpose(1, 2)
        return out.flatten(2), weights

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        factor: float = 1.0,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns softmax attention with scores times factor / sqrt(K), and its weights or None.

        The first is (B, N, H, K), the weights are (B, H, N, N).
        """
        # PyTorch's fused kernel for CPUs takes no values that are narrower than keys.
        narrow = query.device.type == "cpu" and key.shape[-1] != value.shape[-1]
        attend = self._function(narrow and self.config._attn_implementation == "sdpa", mask)
        dropout = self.config.attention_probs_dropout_prob if self.training else 0.0
        scaling = factor * self.head_size**-0.5
        return attend(self, query, key, value, mask, scaling=scaling, dropout=dropout)

    def _function(self, eager: bool, mask: torch.Tensor | None) -> Callable[..., Any]:
        """Returns the function that attends: the one that writes the products out, or another."""
        chosen = "eager" if eager else self.config._attn_implementation
        return ALL_ATTENTION_FUNCTIONS.get_interface(chosen, eager_attention_forward)


def two_layer(x_BHNK: torch.Tensor, starts: CosSin, ends: CosSin) -> torch.Tensor:
    """Returns heads rotated by start, beside the same heads rotated by end: (B, H, N, 2 K).

    The product of two such rows is q R(s_j - s_i) k + q R(e_j - e_i) k, the sum of Section 2.3.
    """
    x = x_BHNK.transpose(1, 2)[:, None]
    rotated = [rotate(x, angles)[:, 0].transpose(1, 2) for angles in (starts, ends)]
    return torch.cat(rotated, dim=-1)


class Residual(nn.Module):
    """A linear layer, added to the states before it, then normed: BERT ends half a layer so."""

    def __init__(self, config: GeometricConfig, width: int):
        super().__init__()
        self.dense = nn.Linear(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + before)


class GeometricAttention(nn.Module):
    """The attention half of a layer; its modules are called as in BERT."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.self = GeometricSelfAttention(config)
        self.output = Residual(config, config.hidden_size)

    def forward(self, hidden_BND: torch.Tensor, *args: Any) -> torch.Tensor:
        out, _ = self.self(hidden_BND, *args)
        return self.output(out, hidden_BND)


class Intermediate(nn.Module):
    """The wide linear layer of the feed-forward half, and its activation."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACT2FN[config.hidden_act]

    def forward(self, hidden_BND: torch.Tensor) -> torch.Tensor:
        return self.activation(self.dense(hidden_BND))


class GeometricLayer(GradientCheckpointingLayer):
    """A layer of BERT over tokens and segments."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.attention = GeometricAttention(config)
        self.intermediate = Intermediate(config)
        self.output = Residual(config, config.intermediate_size)

    def forward(self, hidden_BND: torch.Tensor, *args: Any) -> torch.Tensor:
        """Returns the states (B, N, D); other arguments are as in [`GeometricSelfAttention`]."""
        hidden_BND = self.attention(hidden_BND, *args)
        return self.output(self.intermediate(hidden_BND), hidden_BND)


class GeometricEncoder(nn.Module):
    """All layers, and the vectors of relations that they share where `share_relations` is set."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.layer = nn.ModuleList(GeometricLayer(config) for _ in range(config.num_hidden_layers))
        self.relations: RelationVectors | None = None
        if config.relation_attention == "graph" and config.share_relations:
            self.relations = RelationVectors(config.max_distance, config.head_size)

    def forward(self, hidden_BND: torch.Tensor, elements: Elements) -> torch.Tensor:
        for layer in self.layer:
            hidden_BND = layer(hidden_BND, elements, self.relations)
        return hidden_BND


class GeometricPreTrainedModel(SavesCode, PreTrainedModel):
    """The base of all geometric models: what Transformers has to know of them."""

    config: GeometricConfig
    base_model_prefix = "geometric"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _can_compile_fullgraph = True
    _no_split_modules = ["GeometricEmbeddings", "GeometricLayer"]  # noqa: RUF012
    _can_record_outputs = {  # noqa: RUF012
        "hidden_states": GeometricLayer,
        "attentions": OutputRecorder(GeometricSelfAttention, index=1),
    }

    def post_init(self) -> None:
        super().post_init()
        suit_cpu(self)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, GeometricSelfAttention) and module.gate is not None:
            init.zeros_(module.gate)


class GeometricModel(GeometricPreTrainedModel):
    """An encoder over tokens and segments: BERT whose attention knows how any two of them lie.

    Args:
        add_pooling_layer: whether there is a summary of the text.
    """

    _input_embed_layer = "word_embeddings"

    def __init__(self, config: GeometricConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        self.embeddings = GeometricEmbeddings(config)
        self.encoder = GeometricEncoder(config)
        self.pooler = Pooler(config, config.pooler_act) if add_pooling_layer else None
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        segment_ids: torch.Tensor | None = None,
        segment_starts: torch.Tensor | None = None,
        segment_ends: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> GeometricOutput:
        """Returns the states of tokens and segments.

        Args:
            input_ids: (B, T).
            attention_mask: 1 for tokens, 0 for padding on either side: (B, T).
            token_type_ids: to which sequence each token belongs, 0 by default: (B, T).
            segment_ids: numbers of the segments' labels plus 1, 0 for padding: (B, S).
            segment_starts, segment_ends: columns of `input_ids` that a segment begins and ends
                with, both included: (B, S).
            position_ids: (B or 1, T); by default they count from the first token.
            inputs_embeds: vectors of the tokens in place of `input_ids`: (B, T, D), or as wide as
                `embedding_size`.

        Raises:
            ValueError: ids or places are out of range, or shapes do not fit each other.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give one of input_ids and inputs_embeds")
        words = inputs_embeds
        if input_ids is not None:
            check_ids(self.config, input_ids)
            words = self.embeddings.word_embeddings(input_ids)
        assert words is not None
        like = words[..., 0] if input_ids is None else input_ids
        check_by_token(*like.shape, attention_mask=attention_mask, token_type_ids=token_type_ids)
        check_types(token_type_ids, self.config.type_vocab_size)
        types = token_type_ids
        if types is None:
            types = torch.zeros_like(like, dtype=torch.long)
        positions = token_positions(attention_mask, like) if position_ids is None else position_ids
        rows, length = like.shape[:2]
        labels = len(self.config.segment_labels)
        segments = Segments.of(segment_ids, segment_starts, segment_ends, rows, length, labels)
        if not self.config.reads_segments:
            segments = None
        elif segments is None and self.training:
            segments = Segments.nothing(rows, like.device)
        hidden = self.embeddings(words, types, positions, segments)
        elements = self._elements(positions, attention_mask, segments, hidden)
        hidden = self.encoder(hidden, elements)
        last = hidden[:, :length]
        return GeometricOutput(
            last_hidden_state=last,
            segment_hidden_state=None if segments is None else hidden[:, length:],
            pooler_output=None if self.pooler is None else self.pooler(last, attention_mask),
        )

    def _elements(
        self,
        positions: torch.Tensor,
        mask_BT: torch.Tensor | None,
        segments: Segments | None,
        hidden_BND: torch.Tensor,
    ) -> Elements:
        """Returns where tokens and segments lie to each other, and which are no padding."""
        config = self.config
        starts = ends = positions
        shown = shown_tokens = None if mask_BT is None else mask_BT > 0
        if segments is not None:
            starts, ends = segments.starting(positions), segments.ending(positions)
            count = segments.ids.shape[1]
            shown = segments.shown(mask_BT, hidden_BND.shape[1] - count)
            shown_tokens = shown.clone()
            shown_tokens[:, -count:] = False
        mask, token_mask = (
            None if visible is None else additive(visible[:, None, None], hidden_BND.dtype)
            for visible in (shown, shown_tokens)
        )
        elements = Elements(mask, token_mask)
        if config.relation_attention == "graph":
            return elements._replace(relations=relation_ids(starts, ends, config.max_distance))
        if config.relation_attention == "two_layer_rotary":
            theta = float(config.rope_theta)
            turns = [rotary(places, config.head_size, theta) for places in (starts, ends)]
            return elements._replace(starts=turns[0], ends=turns[1])
        return elements


class GeometricHead(EncoderHead, GeometricPreTrainedModel):
    """A model with an output of its own on the states of the tokens; the base of such models.

    Attributes:
        output_class: class of the output; its first fields are the loss and the logits.
    """

    output_class: type[ModelOutput]

    def __init__(self, config: GeometricConfig):
        super().__init__(config)
        self.geometric = GeometricModel(config, self.pools)
        self.dropout = head_dropout(config)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        segment_ids: torch.Tensor | None = None,
        segment_starts: torch.Tensor | None = None,
        segment_ends: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: Any,
    ) -> ModelOutput:
        """Returns the scores of the head, and the loss where labels are given.

        Args:
            labels: as the kind of head takes them: [`TokenLabels`] or [`SequenceClassification`].
            num_items_in_batch: labels of the whole optimiser step, by which the sum of the losses
                of tokens is divided. The others are as in [`GeometricModel`].

        Raises:
            ValueError: inputs or labels do not fit each other, or no such label exists.
        """
        outputs = self.geometric(
            input_ids, attention_mask, token_type_ids, segment_ids, segment_starts, segment_ends,
            position_ids, inputs_embeds, return_dict=True, **kwargs,
        )  # fmt: skip
        return self.output_class(
            **self.answer(outputs, labels, num_items_in_batch),
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class MaskedTokenHead(nn.Module):
    """Scores of the words of the vocabulary, from the states of the tokens."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        width = config.embedding_size or config.hidden_size
        self.dense = nn.Linear(config.hidden_size, width)
        self.activation = ACT2FN[config.hidden_act]
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(width, config.vocab_size)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Returns scores (..., V) of states (..., D)."""
        return self.decoder(self.LayerNorm(self.activation(self.dense(hidden))))


class GeometricForMaskedLM(TokenLabels, GeometricHead):
    """A model that finds masked tokens; labels are their ids."""

    output_class = MaskedLMOutput
    _tied_weights_keys = {  # noqa: RUF012
        "lm_head.decoder.weight": "geometric.embeddings.word_embeddings.weight"
    }

    def __init__(self, config: GeometricConfig):
        super().__init__(config)
        self.lm_head = MaskedTokenHead(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head.decoder

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        self.lm_head.decoder = new_embeddings

    def logits_of(self, outputs: GeometricOutput) -> torch.Tensor:
        return self.lm_head(outputs.last_hidden_state)


class GeometricForTokenClassification(TokenClassification, GeometricHead):
    """A model that gives each token a class."""

    output_class = TokenClassifierOutput


class GeometricForSequenceClassification(SequenceClassification, GeometricHead):
    """A model that gives a text, or a pair of texts, a class or a number."""

    output_class = SequenceClassifierOutput
