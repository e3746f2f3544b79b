"""Configuration of encoders with symbolic segments in their input (Roche 2023)."""

from dataclasses import field
from typing import Any, ClassVar, Self

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .choices import (
    check_activation,
    check_choice,
    check_numbers,
    check_unique,
    refuse,
    token_digest,
)

AUTO_MAP = {
    "AutoConfig": "configuration_geometric.GeometricConfig",
    "AutoModel": "modeling_geometric.GeometricModel",
    "AutoModelForMaskedLM": "modeling_geometric.GeometricForMaskedLM",
    "AutoModelForSequenceClassification": ("modeling_geometric.GeometricForSequenceClassification"),
    "AutoModelForTokenClassification": "modeling_geometric.GeometricForTokenClassification",
}
RELATION_ATTENTIONS = ("graph", "two_layer_rotary", "none")


@strict
class GeometricConfig(PreTrainedConfig):
    """Settings of [`GeometricModel`]; what is as in BERT is named as there.

    Args:
        relation_attention: how attention sees where elements, tokens and segments, lie to each
            other: `"graph"`: a vector for each relation (Equation 6); `"two_layer_rotary"`:
            rotations by start and by end (Section 2.3); `"none"`: segments are ignored, and the
            model is BERT.
        segment_labels: labels of segments; that of number i has `segment_ids` i + 1.
        max_distance: where the distances of `"graph"` are clipped.
        share_relations: one table of relation vectors for all layers, in place of one for each.
        rope_theta: base of the rotations.
        absolute_positions: learned vectors of positions are added to the embeddings, as in BERT; a
            segment gets that of its start. By default only where nothing else tells positions.
        gated: each head mixes its output with that of plain attention to tokens alone. The share
            is learned and begins with 0, so that a converted model begins as the model it comes
            from.
        embedding_size: width of the embeddings where it differs from `hidden_size`, as in ELECTRA.
        pooler_act: activation of the first token's summary.
        hidden_dropout_prob, attention_probs_dropout_prob, classifier_dropout: in [0, 1); by default
            the last one is the first.
        token_digest: what tells the tokens that the model was made for from others (see
            `token_digest` in choices.py); None where that is not known.

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.

    Examples:
        >>> from transformers import AutoModel
        >>> config = GeometricConfig(
        ...     vocab_size=20,
        ...     segment_labels=["DATE"],
        ...     hidden_size=24,
        ...     num_hidden_layers=1,
        ...     intermediate_size=24,
        ... )
        >>> outputs = AutoModel.from_config(config)(input_ids=torch.tensor([[2, 5, 7]]))
        >>> outputs.last_hidden_state.shape
        torch.Size([1, 3, 24])
    """

    model_type = "geometric"
    smallest: ClassVar[dict[str, int]] = {
        "vocab_size": 1,
        "hidden_size": 1,
        "num_hidden_layers": 0,
        "num_attention_heads": 1,
        "intermediate_size": 1,
        "max_position_embeddings": 1,
        "type_vocab_size": 1,
        "max_distance": 1,
        "embedding_size": 1,
    }

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    classifier_dropout: float | int | None = None
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    token_digest: str | None = None
    embedding_size: int | None = None
    pooler_act: str = "tanh"

    relation_attention: str = "graph"
    segment_labels: list[str] = field(default_factory=list)
    max_distance: int = 16
    share_relations: bool = False
    rope_theta: float | int = 10_000.0
    absolute_positions: bool | None = None
    gated: bool = False

    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("auto_map", dict(AUTO_MAP))
        if self.absolute_positions is None:
            self.absolute_positions = self.relation_attention == "none"
        # Checked here as well as by @strict, so that plain construction never skips it.
        self.validate_architecture()
        super().__post_init__(**kwargs)

    @classmethod
    def for_tokenizer(cls, tokenizer: Any, **settings: Any) -> Self:
        """Returns the configuration of a new model for a tokenizer.

        Args:
            tokenizer: any of Transformers; a `GeometricTokenizer` gives the labels of segments too.
        """
        names = ("pad_token_id", "bos_token_id", "eos_token_id")
        special = {name: getattr(tokenizer, name) for name in names}
        labels = list(getattr(tokenizer, "segment_labels", []))
        return cls(
            **{**special, "segment_labels": labels, **settings},
            vocab_size=len(tokenizer),
            token_digest=token_digest(tokenizer),
        )

    def validate_architecture(self) -> None:
        """Checks that settings fit each other, as part of `@strict` validation."""
        check_choice("relation_attention", self.relation_attention, RELATION_ATTENTIONS)
        check_numbers(
            self,
            self.smallest,
            ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
            ("layer_norm_eps", "initializer_range", "rope_theta"),
        )
        check_activation("hidden_act", self.hidden_act)
        check_activation("pooler_act", self.pooler_act)
        check_unique("segment_labels", self.segment_labels)
        refuse(
            self.hidden_size % self.num_attention_heads,
            f"hidden_size {self.hidden_size} is no multiple of num_attention_heads "
            f"{self.num_attention_heads}",
        )
        refuse(
            self.relation_attention == "two_layer_rotary" and self.head_size % 2,
            f"rotations need an even width of heads, not {self.head_size}",
        )
        refuse(
            self.gated and self.relation_attention == "none",
            'gated mixes two attentions, and relation_attention "none" has one',
        )

    @property
    def reads_segments(self) -> bool:
        """Whether the model reads segments: attention knows relations, and there are labels."""
        return self.relation_attention != "none" and bool(self.segment_labels)

    @property
    def head_size(self) -> int:
        """The width of an attention head, K."""
        return self.hidden_size // self.num_attention_heads

    @property
    def size_text(self) -> str:
        """The sizes that a model card gives."""
        count = len(self.segment_labels)
        return (
            f"width {self.hidden_size}, {self.num_hidden_layers} layers, "
            f"{self.num_attention_heads} heads, feed-forward {self.intermediate_size}, "
            f"{self.relation_attention} over {count} kind{'s' * (count != 1)} of segments"
        )
