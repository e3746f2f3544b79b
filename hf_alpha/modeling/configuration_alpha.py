"""Configuration of the symbol-invariant encoder-decoder."""

import copy
import os
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from huggingface_hub.dataclasses import strict

from .choices import check_activation, check_choice, refuse
from .configuration_symbols import SymbolModelConfig

if TYPE_CHECKING:  # None is only given, never read: `__post_init__` resolves it
    Switch = bool
else:
    Switch = bool | None

AGGREGATED = ("encoder_aggregated_attention", "decoder_aggregated_attention")
CROSS_ATTENTION_MODES = ("per_stream", "aggregated")
ENCODER_POSITIONS = ("tree", "rope", "sinusoidal", "none")
DECODER_POSITIONS = ("rope", "sinusoidal", "log_length", "none")
AGGREGATED_NORMS = ("post", "pre")
CONFIG = {"AutoConfig": "configuration_alpha.AlphaConfig"}
# Saving a model names the class that was saved only: a checkpoint has to load by every Auto class.
AUTO_MAPS = {
    True: {
        **CONFIG,
        "AutoModel": "modeling_alpha.AlphaModel",
        "AutoModelForSeq2SeqLM": "modeling_alpha.AlphaForConditionalGeneration",
    },
    False: {**CONFIG, "AutoModelForCausalLM": "modeling_alpha_decoder.AlphaForCausalLM"},
}
"""Whether there is an encoder -> the classes that a checkpoint names."""


@strict
class AlphaConfig(SymbolModelConfig):
    r"""Settings of [`AlphaModel`]; sizes are named as in BART's configuration.

    With `is_encoder_decoder=False` they are those of [`AlphaForCausalLM`], a decoder alone, which
    uses what is called after the decoder.

    Those of symbols and the head are described in [`SymbolModelConfig`].

    Args:
        d_model, encoder_layers, encoder_attention_heads, encoder_ffn_dim, decoder_layers,
            decoder_attention_heads, decoder_ffn_dim: sizes, at least 1; layers at least 0.
        encoder_per_stream_attention, encoder_aggregated_attention, decoder_per_stream_attention,
            decoder_aggregated_attention, cross_attention: the six switches EP, EA, DP, DA, CP, CA
            of Table 6; `cross_attention` lists `"per_stream"` and `"aggregated"` in order. By
            default EA and DA are on where the encoding opens streams, which have something to
            aggregate, and off for one stream; in a file that lacks them they are on, as they were
            for every encoding when such files were written.
        aggregated_attention_norm: `"post"`, as Algorithm 3 has it, or `"pre"`: the norm sits
            inside the branch, so that a zero output projection makes the block an exact identity.
        encoder_position: `"rope"`, `"tree"` (Shiv & Quirk 2019; needs `tree_paths`, which a
            tokenizer with a grammar returns), `"sinusoidal"` or `"none"`; `decoder_position`: the
            same without `"tree"`, and in a decoder alone `"log_length"`: no positions, but scores
            that grow with the logarithm of the number of tokens so far, so that attention to a few
            of them stays as sharp in longer texts than those of training (Chiang & Cholak 2022).
        cross_attention_rope: rotate queries and encoder keys in cross-attention too, when the
            decoder uses RoPE.
        prefix_lm: in a decoder alone, the prompt of `generate` sees itself in both directions, and
            so do, in training, the tokens before the first label.
        rope_theta, layer_norm_eps: finite and above 0.
        dropout, attention_dropout: in [0, 1).

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.

    Examples:
        >>> AlphaConfig(num_base_tokens=10, symbol_classes={"variable": 5}, d_model=24).vocab_size
        15
    """

    model_type = "alpha"
    keys_to_ignore_at_inference = ["past_key_values", "encoder_last_hidden_state", "stream_ids"]  # noqa: RUF012
    attribute_map = {  # noqa: RUF012
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    smallest: ClassVar[dict[str, int]] = {
        **SymbolModelConfig.smallest,
        "d_model": 1,
        "encoder_layers": 0,
        "encoder_attention_heads": 1,
        "encoder_ffn_dim": 1,
        "decoder_layers": 0,
        "decoder_attention_heads": 1,
        "decoder_ffn_dim": 1,
    }
    shares: ClassVar[tuple[str, ...]] = (*SymbolModelConfig.shares, "dropout", "attention_dropout")
    positive: ClassVar[tuple[str, ...]] = (
        *SymbolModelConfig.positive,
        "rope_theta",
        "layer_norm_eps",
    )
    takes_relations: ClassVar[bool] = True
    takes_new_symbols: ClassVar[bool] = True

    d_model: int = 96
    encoder_layers: int = 6
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 768
    decoder_layers: int = 6
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 768

    encoder_per_stream_attention: bool = True
    encoder_aggregated_attention: Switch = None  # type: ignore[assignment]
    decoder_per_stream_attention: bool = True
    decoder_aggregated_attention: Switch = None  # type: ignore[assignment]
    cross_attention: list[str] = field(default_factory=lambda: ["per_stream"])
    aggregated_attention_norm: str = "post"

    encoder_position: str = "rope"
    decoder_position: str = "rope"
    cross_attention_rope: bool = True
    rope_theta: float = 10000.0
    prefix_lm: bool = False

    activation_function: str = "relu"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    layer_norm_eps: float = 1e-6

    pad_token_id: int = 0
    bos_token_id: int | None = 1
    decoder_start_token_id: int = 1

    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("auto_map", dict(AUTO_MAPS[self.is_encoder_decoder]))
        for switch in AGGREGATED:
            if getattr(self, switch) is None:
                setattr(self, switch, self.encoding.opens_streams)
        super().__post_init__(**kwargs)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Self:
        """Returns the configuration that a file holds; see [`PreTrainedConfig.from_dict`]."""
        return super().from_dict({**dict.fromkeys(AGGREGATED, True), **config_dict}, **kwargs)

    @classmethod
    def from_json_file(cls, json_file: str | os.PathLike[str]) -> Self:
        """Returns the configuration that a file holds, as `from_pretrained` would."""
        return cls.from_dict(cls._dict_from_json_file(json_file))

    @classmethod
    def for_tokenizer(cls, tokenizer: Any, **settings: Any) -> Self:
        """Returns a new model's configuration; for a grammar, it has tree positions by default.

        Args:
            tokenizer: an `AlphaTokenizer`; with a grammar it returns `tree_paths`.
        """
        encodes = settings.get("is_encoder_decoder", True)
        has_grammar = getattr(tokenizer, "grammar", None) is not None
        positions = {"encoder_position": "tree"} if has_grammar and encodes else {}
        return super().for_tokenizer(tokenizer, **{**positions, **settings})

    def validate_architecture(self) -> None:
        super().validate_architecture()
        check_choice("encoder_position", self.encoder_position, ENCODER_POSITIONS)
        check_choice("decoder_position", self.decoder_position, DECODER_POSITIONS)
        check_choice("aggregated_attention_norm", self.aggregated_attention_norm, AGGREGATED_NORMS)
        check_activation("activation_function", self.activation_function)
        self._check_attention()
        refuse(
            self.decoder_position == "log_length" and not self.decodes_alone,
            "decoder_position 'log_length' is for a decoder alone: set "
            "is_encoder_decoder=False, or choose rope, sinusoidal or none",
        )
        refuse(
            self.prefix_lm and not self.decodes_alone,
            "prefix_lm is for a decoder alone: set is_encoder_decoder=False, or leave it out, "
            "since an encoder sees its input in both directions",
        )

    def _check_attention(self) -> None:
        for part in ("encoder", "decoder") if self.is_encoder_decoder else ("decoder",):
            heads = getattr(self, f"{part}_attention_heads")
            rotated = "rope" in (self.encoder_position, self.decoder_position)
            kinds = (f"{part}_per_stream_attention", f"{part}_aggregated_attention")
            refuse(
                self.d_model % heads,
                f"d_model {self.d_model} is not a multiple of {heads} {part} heads",
            )
            refuse(
                rotated and (self.d_model // heads) % 2,
                f"RoPE needs an even head width, not {self.d_model} / {heads} in the {part}",
            )
            refuse(
                not any(getattr(self, kind) for kind in kinds),
                f"the {part} has no self-attention: set {' or '.join(kinds)}",
            )
        modes = self.cross_attention
        refuse(
            sorted(set(modes) & set(CROSS_ATTENTION_MODES)) != sorted(modes) or not modes,
            f"cross_attention must list one or both of {CROSS_ATTENTION_MODES}, not {modes}",
        )

    @property
    def size_text(self) -> str:
        if not self.is_encoder_decoder:
            heads, ffn = self.decoder_attention_heads, self.decoder_ffn_dim
            return f"d {self.d_model}, {self.decoder_layers} layers, {heads} heads, FFN {ffn}"
        return (
            f"d {self.d_model}, {self.encoder_layers} + {self.decoder_layers} layers, "
            f"{self.encoder_attention_heads} heads, FFN {self.encoder_ffn_dim}"
        )

    @property
    def decodes_alone(self) -> bool:
        return not self.is_encoder_decoder

    @property
    def num_slots(self) -> int:
        """Slots of the decoder's cache that are its layers'."""
        return 2 * self.decoder_layers

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> "AlphaConfig":
        """Returns the configuration as one side sees it.

        A decoder layer owns two self-attention cache slots (per-stream and aggregated), and
        relations need some that tell which symbols were written, so the decoder's side reports
        these slots as `num_hidden_layers`; `decoder_layers` stays.
        """
        if bool(decoder) == bool(encoder):
            return self
        side = copy.deepcopy(self)
        if decoder:
            side.num_hidden_layers = self.num_slots + self.num_histories
            side.num_attention_heads = self.decoder_attention_heads
        return side
