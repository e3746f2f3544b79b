"""Configuration of a model of Transformers with a symbol layer around it."""

import copy
import math
from collections import Counter
from dataclasses import field
from typing import Any, ClassVar, Self

from huggingface_hub.dataclasses import strict
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
)

from .choices import refuse
from .configuration_symbols import SymbolModelConfig, special_tokens
from .symbol_encodings import encoding_class
from .symbol_vocabulary import SymbolVocabulary, vocabulary_of

CONFIG = {"AutoConfig": "configuration_retrofit.RetrofitConfig"}
AUTO_MAPS = {
    True: {
        **CONFIG,
        "AutoModelForSeq2SeqLM": "modeling_retrofit.RetrofitForConditionalGeneration",
    },
    False: {**CONFIG, "AutoModelForCausalLM": "modeling_retrofit_decoder.RetrofitForCausalLM"},
}
"""Whether the backbone is an encoder-decoder -> the classes that a checkpoint names."""
SIDES = ("encoder", "decoder")


@strict
class RetrofitConfig(SymbolModelConfig):
    r"""Settings of a backbone and of its symbols.

    They are those of [`RetrofitForConditionalGeneration`] or, where the backbone is a decoder
    alone, of [`RetrofitForCausalLM`].

    Those of symbols are described in [`SymbolModelConfig`]. The head is the backbone's own: its
    vectors are not normalised, and logits have no scale.

    Args:
        backbone_config: of any model behind `AutoModelForSeq2SeqLM` or `AutoModelForCausalLM`, or
            the same as a dictionary. It decides on `is_encoder_decoder`.
        vocab_size: ids in all. Base tokens have the backbone's rows of the same number; rows of the
            backbone beyond the vocabulary are out of use.
        class_rows: class -> rows of the backbone that its symbols share: the actual and the
            placeholder row (`streams`), one (`dual_part`), or any number, which a sample's symbols
            have in order of first occurrence (`relational`). Empty where each symbol has its own.
        random_dim: width of the random part, which is added to the last dimensions of a class's
            row; by default half of the width, at most 32.
        random_scale: length of random parts in the input and before the head, each finite and above
            0; without `normalize_parts` they are multiplied by it. What `relational` adds is too.
        relation_scale: of numbers that stand alone in `relational`, of a decoder alone, such as the
            bias of a gate: they are stored as parts of it, so that rates for matrices move them.
        aggregated_attention: sides, `"encoder"` or `"decoder"`, behind whose layers streams attend
            to the aggregated view of all of them.
        aggregated_attention_heads: of those blocks; by default as many as the backbone has.
        rope_theta: of the positions in those blocks.
        attention_dropout, dropout: of those blocks, in [0, 1).

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.
    """

    # Transformers looks in two tables first, of other names and of layers. Here both are empty, and
    # each token asks for many settings.
    __getattribute__ = object.__getattribute__

    model_type = "alpha-retrofit"
    sub_configs: ClassVar[dict[str, Any]] = {"backbone_config": AutoConfig}
    has_no_defaults_at_init = True
    keys_to_ignore_at_inference = ["past_key_values", "encoder_last_hidden_state", "stream_ids"]  # noqa: RUF012
    takes_relations: ClassVar[bool] = True
    takes_new_symbols: ClassVar[bool] = True
    shares: ClassVar[tuple[str, ...]] = (*SymbolModelConfig.shares, "dropout", "attention_dropout")
    positive: ClassVar[tuple[str, ...]] = (
        *SymbolModelConfig.positive,
        "rope_theta",
        "relation_scale",
    )

    backbone_config: dict | PreTrainedConfig | None = None
    class_rows: dict[str, list[int]] = field(default_factory=dict)
    random_scale: list[float | int] = field(default_factory=lambda: [1.0, 1.0])
    relation_scale: float | int = 1.0
    aggregated_attention: list[str] = field(default_factory=list)
    aggregated_attention_heads: int | None = None
    rope_theta: float = 10000.0
    dropout: float | int = 0.0
    attention_dropout: float | int = 0.0

    normalize_embeddings: bool = False
    normalize_features: bool = False
    adacos: bool | str = False

    pad_token_id: int | None = None
    bos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = False  # the backbone ties its own; what it has done is written here

    def __post_init__(self, **kwargs: Any) -> None:
        if isinstance(self.backbone_config, dict):
            settings = dict(self.backbone_config)
            self.backbone_config = CONFIG_MAPPING[settings.pop("model_type")](**settings)
        elif self.backbone_config is not None:
            # Of a model that exists: what is set here must not reach it.
            self.backbone_config = copy.deepcopy(self.backbone_config)
        else:
            raise ValueError(
                "backbone_config is missing: the configuration of an encoder-decoder or a decoder"
            )
        self.is_encoder_decoder = self.host_config.is_encoder_decoder
        kwargs.setdefault("auto_map", dict(AUTO_MAPS[self.is_encoder_decoder]))
        for name in ("pad_token_id", "bos_token_id", "decoder_start_token_id", "eos_token_id"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(self.backbone_config, name, None))
        super().__post_init__(**kwargs)

    @classmethod
    def for_tokenizer(cls, tokenizer: Any, **settings: Any) -> Self:
        """Returns the configuration of a new model for a tokenizer, its backbone untrained.

        Args:
            tokenizer: an `AlphaTokenizer` or a `TextTokenizer`; the vocabulary, padding, start and
                end of model and backbone come from it.
            settings: other fields, `backbone_config` among them: `model_type` and sizes.

        Raises:
            ValueError: there is no `backbone_config`, its `model_type` is unknown or that of a
                model that writes no text, or its `vocab_size` is too small.
        """
        backbone = dict(settings.pop("backbone_config", None) or {})
        kind = backbone.get("model_type")
        refuse(
            kind not in CONFIG_MAPPING,
            f"backbone_config is {backbone}: give a model_type of Transformers (t5, gpt2), and "
            "its sizes",
        )
        refuse(
            kind in CONFIG_MAPPING and not _writes_text(CONFIG_MAPPING[kind], backbone),
            f"backbone_config is of a {kind!r} model, which does not go from text to text: "
            "take an encoder-decoder such as t5 or bart, or a decoder such as gpt2 or llama",
        )
        total = tokenizer.num_base_tokens + sum(tokenizer.symbol_classes.values())
        encoding = encoding_class(settings.get("symbol_encoding", cls.symbol_encoding))
        rows, free = dict[str, list[int]](), total
        for name in tokenizer.symbol_ranges if encoding.rows_per_class else ():
            rows[name] = list(range(free, free + (encoding.rows_per_class or 0)))
            free += len(rows[name])
        backbone = {**special_tokens(tokenizer), "vocab_size": free, **backbone}
        refuse(
            backbone["vocab_size"] < free,
            f"backbone_config has vocab_size {backbone['vocab_size']}, but tokens and symbols "
            f"need {free} rows: leave it out",
        )
        return super().for_tokenizer(
            tokenizer, backbone_config=backbone, class_rows=rows, vocab_size=total, **settings
        )

    def validate_architecture(self) -> None:
        """Checks that settings fit each other, as part of `@strict` validation."""
        super().validate_architecture()
        for name in ("normalize_embeddings", "normalize_features", "scale_embedding"):
            own = f"{name} is not for models with a backbone, which has its own way"
            refuse(getattr(self, name), own)
        unknown = [side for side in self.aggregated_attention if side not in SIDES]
        heads = self.num_aggregated_heads if self.aggregated_attention else 1
        refuse(unknown, f"aggregated_attention lists encoder and decoder, not {unknown}")
        refuse(
            len(self.random_scale) != 2 or not all(0 < x < math.inf for x in self.random_scale),
            f"random_scale is {self.random_scale}: give two numbers above 0",
        )
        refuse(
            self.aggregated_attention and self.hidden_size % (2 * heads),
            f"the backbone's width {self.hidden_size} has no {heads} heads of even width: set "
            "aggregated_attention_heads",
        )
        refuse(
            self.aggregated_attention and not self.is_encoder_decoder,
            "aggregated_attention joins streams, which a decoder alone has not",
        )
        self._check_rows()

    def _check_rows(self) -> None:
        rows_per_class = self.encoding.rows_per_class
        if rows_per_class is None:
            return
        for name in self.symbol_classes:
            rows = self.class_rows.get(name, [])
            more = self.encoding.rows_in_turn
            refuse(
                len(set(rows)) != len(rows) or not (rows if more else len(rows) == rows_per_class),
                f"class_rows[{name!r}] is {rows}: symbol_encoding {self.symbol_encoding!r} "
                f"needs {rows_per_class} different rows{' or more' * more} of the backbone for "
                "each class",
            )
        listed = [row for name in self.symbol_classes for row in self.class_rows[name]]
        times = Counter(listed)
        for row in listed:
            refuse(
                times[row] > 1,
                f"class_rows {self.class_rows}: row {row} is of two classes, which could not "
                "be told apart; give each class rows of its own",
            )
            refuse(
                row < 0 or (row < self.vocab_size and self.vocabulary.class_of(row) is None),
                f"class_rows {self.class_rows}: row {row} is that of a base token; give rows "
                f"of symbols, or from {self.vocab_size} on",
            )

    @property
    def host_config(self) -> PreTrainedConfig:
        """The backbone's configuration."""
        assert isinstance(self.backbone_config, PreTrainedConfig)
        return self.backbone_config

    @property
    def decoder_config(self) -> PreTrainedConfig:
        """The backbone's configuration, as its decoder sees it."""
        return self.host_config.get_text_config(decoder=True)

    @property
    def hidden_size(self) -> int:
        """Width of the backbone's decoder."""
        return self.decoder_config.hidden_size

    @property
    def num_aggregated_heads(self) -> int:
        """Heads of the blocks of aggregated attention."""
        return self.aggregated_attention_heads or self.decoder_config.num_attention_heads

    @property
    def max_random_dim(self) -> int:
        """How wide random parts can be: they are added to a row, so all of it."""
        return self.hidden_size

    @property
    def vocabulary(self) -> SymbolVocabulary:
        """Which ids are symbols, of which class, and which rows of the backbone they share."""
        shares_rows = self.encoding.rows_per_class is not None
        class_rows = self.class_rows if shares_rows else None
        return vocabulary_of(self.vocab_size, self.symbol_ranges, class_rows)

    @property
    def size_text(self) -> str:
        """The sizes that a model card gives."""
        config = self.decoder_config
        return f"{self.host_config.model_type}, width {config.hidden_size}"

    @property
    def decodes_alone(self) -> bool:
        return not self.is_encoder_decoder

    @property
    def num_slots(self) -> int:
        """Slots of the decoder's cache that are the backbone's; blocks of ours have those behind.

        Some families name the layers of their decoder in a way of their own.
        """
        layers = getattr(self.host_config, "num_decoder_layers", None) or 0
        return max(layers, self.decoder_config.num_hidden_layers)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> Any:
        """Returns the configuration of one side; the decoder's has a layer for each cache slot."""
        if bool(decoder) == bool(encoder):
            return self
        side = copy.deepcopy(self.host_config.get_text_config(decoder=decoder, encoder=encoder))
        if decoder and side.num_hidden_layers < self.num_slots:  # T5's says how deep the encoder is
            side.num_hidden_layers = self.num_slots
        more = self.num_histories
        if "decoder" in self.aggregated_attention:
            more += self.num_slots
        if decoder and more:
            side.num_hidden_layers = self.num_slots + more
            kinds = getattr(side, "layer_types", None)
            if kinds is None and getattr(side, "sliding_window", None):  # of all layers (Mistral)
                kinds = ["sliding_attention"] * self.num_slots
            if kinds is not None:
                side.layer_types = [*kinds, *["full_attention"] * more]
        return side


def _writes_text(kind: type[PreTrainedConfig], settings: dict[str, Any]) -> bool:
    """Returns whether models of a kind go from text to text: encoder-decoders, and decoders alone.

    Some encoders can be made decoders by a setting.
    """
    if kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        return True
    encodes = kind in MODEL_FOR_MASKED_LM_MAPPING and not settings.get("is_decoder")
    alone = not (encodes or kind.is_encoder_decoder)  # the other half may hear, or see
    return kind in MODEL_FOR_CAUSAL_LM_MAPPING and alone
