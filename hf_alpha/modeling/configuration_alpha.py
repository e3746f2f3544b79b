"""Configuration of the symbol-invariant encoder-decoder."""

import copy
import math
from dataclasses import field
from typing import Any

from huggingface_hub.dataclasses import strict
from transformers.activations import ACT2FN
from transformers.configuration_utils import PreTrainedConfig

from .draws import RANDOM_METHODS, capacity
from .saving import SavesCode

SYMBOL_ENCODINGS = ("learned", "dual_part", "streams")
SYMBOL_RENAMINGS = ("none", "random", "random_per_batch", "first_occurrence")
CROSS_ATTENTION_MODES = ("per_stream", "aggregated")
ENCODER_POSITIONS = ("tree", "rope", "sinusoidal", "none")
DECODER_POSITIONS = ("rope", "sinusoidal", "none")
AGGREGATED_NORMS = ("post", "pre")
# Smallest value of every whole number; `vocab_size` follows from others.
SMALLEST = {
    "num_base_tokens": 1,
    "random_dim": 0,
    "d_model": 1,
    "encoder_layers": 0,
    "encoder_attention_heads": 1,
    "encoder_ffn_dim": 1,
    "decoder_layers": 0,
    "decoder_attention_heads": 1,
    "decoder_ffn_dim": 1,
    "stream_chunk": 1,
}
SHARES = ("dropout", "attention_dropout", "label_smoothing")
POSITIVE = ("rope_theta", "layer_norm_eps", "logit_scale")
# Each id has a logit: nothing holds a batch of longer rows, and a slip of the pen is found early.
MAX_VOCABULARY = 2**24
# Saving a model names the class that was saved only: a checkpoint has to load by every Auto class.
AUTO_MAP = {
    "AutoConfig": "configuration_alpha.AlphaConfig",
    "AutoModel": "modeling_alpha.AlphaModel",
    "AutoModelForSeq2SeqLM": "modeling_alpha.AlphaForConditionalGeneration",
}


@strict
class AlphaConfig(SavesCode, PreTrainedConfig):
    r"""Settings of [`AlphaModel`]; sizes are named as in BART's configuration.

    The vocabulary holds the base tokens first and then the symbols of each class. `vocab_size` is
    always `num_base_tokens` plus the number of symbols and need not be given.

    Args:
        num_base_tokens: tokens whose identity matters, special tokens included.
        symbol_classes: class name -> number of symbols that may be renamed among themselves.
        symbol_ranges: class name -> list of half-open id ranges `[start, stop]`. Left out, the
            classes follow each other after the base tokens; `extend_symbols` appends ranges.
        symbol_encoding: `"streams"` (one stream per symbol, 2601.23169), `"dual_part"` (a learned
            part shared by a class and a random part of each symbol, 2410.17161) or `"learned"` (one
            trained vector per symbol, the vanilla model).
        symbol_renaming: what happens to symbols inside the model; ids and logits keep the caller's
            names. `"none"`; `"random"`: in training, each sample is renamed at random over the
            whole vocabulary, anew in every optimiser step; `"random_per_batch"`: likewise, one
            renaming for all samples of a step; `"first_occurrence"`: always, by order of first
            occurrence in the input. A `streams` model does not see names and skips it.
        random_method: how `dual_part` draws random parts (2410.17161, Section 4.2): `"normal"`,
            `"neighboring_points"` (-1, 0, 1, not all 0) or `"hypercube_vertices"` (-1, 1).
        random_dim: width of the random part; by default half of `d_model`, at most 32.
        normalize_parts: divide learned and random parts by their norms (f_bn).
        symbol_seed: seed of random parts and random renamings, any whole number.
        d_model, encoder_layers, encoder_attention_heads, encoder_ffn_dim, decoder_layers,
            decoder_attention_heads, decoder_ffn_dim: sizes, at least 1; layers at least 0.
        encoder_per_stream_attention, encoder_aggregated_attention, decoder_per_stream_attention,
            decoder_aggregated_attention, cross_attention: the six switches EP, EA, DP, DA, CP, CA
            of Table 6; `cross_attention` lists `"per_stream"` and `"aggregated"` in order.
        aggregated_attention_norm: `"post"`, as Algorithm 3 has it, or `"pre"`: the norm sits
            inside the branch, so that a zero output projection makes the block an exact identity.
        encoder_position: `"tree"` (Shiv & Quirk 2019; needs `tree_paths`), `"rope"`,
            `"sinusoidal"` or `"none"`; `decoder_position`: the same without `"tree"`.
        cross_attention_rope: rotate queries and encoder keys in cross-attention too, when the
            decoder uses RoPE.
        rope_theta, layer_norm_eps: finite and above 0.
        dropout, attention_dropout: in [0, 1).
        normalize_embeddings: divide every embedding row by its norm (f_fn on rows).
        normalize_features: divide the feature vectors by their norm too, so that logits are scaled
            cosines. Needs `normalize_embeddings`.
        adacos: adapt the scale of cosines in training (Zhang et al. 2019); otherwise it is fixed.
        logit_scale: the (starting) scale, finite and above 0; by default sqrt(2) ln(C - 1) for
            cosines and 1 otherwise.
        label_smoothing: mass spread over the columns that a sample can use, in [0, 1).
        stream_chunk: streams that a layer works on at a time; by default all. Fewer need less
            memory and more time, and give the same. May be set on a loaded model's `config`. What
            is cached in generation is not affected.

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.
    """

    model_type = "alpha"
    keys_to_ignore_at_inference = ["past_key_values", "encoder_last_hidden_state", "stream_ids"]  # noqa: RUF012
    attribute_map = {  # noqa: RUF012
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }

    num_base_tokens: int = 10
    symbol_classes: dict[str, int] = field(default_factory=lambda: {"proposition": 5})
    symbol_ranges: dict[str, list[list[int]]] = field(default_factory=dict)
    vocab_size: int = 0
    symbol_encoding: str = "streams"
    symbol_renaming: str = "none"
    random_method: str = "hypercube_vertices"
    random_dim: int = 0
    normalize_parts: bool = True
    symbol_seed: int = 0

    d_model: int = 96
    encoder_layers: int = 6
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 768
    decoder_layers: int = 6
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 768

    encoder_per_stream_attention: bool = True
    encoder_aggregated_attention: bool = True
    decoder_per_stream_attention: bool = True
    decoder_aggregated_attention: bool = True
    cross_attention: list[str] = field(default_factory=lambda: ["per_stream"])
    aggregated_attention_norm: str = "post"

    encoder_position: str = "tree"
    decoder_position: str = "rope"
    cross_attention_rope: bool = True
    rope_theta: float = 10000.0

    activation_function: str = "relu"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    layer_norm_eps: float = 1e-6
    scale_embedding: bool = False

    normalize_embeddings: bool = True
    normalize_features: bool = True
    adacos: bool = True
    logit_scale: float | int | None = None
    label_smoothing: float | int = 0.0
    stream_chunk: int | None = None

    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    pad_token_id: int = 0
    bos_token_id: int = 1
    decoder_start_token_id: int = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        self._fill_ranges()
        if not self.vocab_size:
            self.vocab_size = self.num_base_tokens + sum(self.symbol_classes.values())
        if self.symbol_encoding == "dual_part" and not self.random_dim:
            self.random_dim = max(1, min(32, self.d_model // 2))
        kwargs.setdefault("auto_map", dict(AUTO_MAP))
        # Checked here as well as by @strict, so that plain construction never skips it.
        self.validate_architecture()
        super().__post_init__(**kwargs)

    def _fill_ranges(self) -> None:
        if not self.symbol_ranges:
            start = self.num_base_tokens
            for name, count in self.symbol_classes.items():
                self.symbol_ranges[name] = [[start, start + count]]
                start += count
        # Classes own embedding rows in the order of their ids: JSON sorts keys, any other is lost.
        order = sorted(self.symbol_ranges, key=lambda name: self.symbol_ranges[name][:1])
        self.symbol_ranges = {name: self.symbol_ranges[name] for name in order}

    def validate_architecture(self) -> None:
        """Part of `@strict` validation: cross-field checks."""
        _check_choice("symbol_encoding", self.symbol_encoding, SYMBOL_ENCODINGS)
        _check_choice("symbol_renaming", self.symbol_renaming, SYMBOL_RENAMINGS)
        _check_choice("random_method", self.random_method, RANDOM_METHODS)
        _check_choice("encoder_position", self.encoder_position, ENCODER_POSITIONS)
        _check_choice("decoder_position", self.decoder_position, DECODER_POSITIONS)
        _check_choice("aggregated_attention_norm", self.aggregated_attention_norm, AGGREGATED_NORMS)
        if self.activation_function not in ACT2FN:
            raise ValueError(f"activation_function {self.activation_function!r} is unknown")
        self._check_numbers()
        self._check_vocabulary()
        self._check_attention()
        self._check_random_parts(self.num_symbols)
        if self.normalize_features and not self.normalize_embeddings:
            raise ValueError("normalize_features needs normalize_embeddings: logits are cosines")
        if self.adacos and not self.normalize_features:
            raise ValueError("adacos scales cosines: set normalize_features or turn adacos off")

    def _check_numbers(self) -> None:
        """Every number has a range; what is None has a default elsewhere."""
        for name, smallest in SMALLEST.items():
            if (value := getattr(self, name)) is not None and value < smallest:
                raise ValueError(f"{name} must be at least {smallest}, not {value}")
        for name in SHARES:
            if not 0.0 <= (value := getattr(self, name)) < 1.0:
                raise ValueError(f"{name} must lie in [0, 1), not {value}")
        for name in POSITIVE:
            if (value := getattr(self, name)) is not None and not 0.0 < value < math.inf:
                raise ValueError(f"{name} must be finite and above 0, not {value}")

    def _check_vocabulary(self) -> None:
        ends = self.eos_token_id if isinstance(self.eos_token_id, list) else [self.eos_token_id]
        starts = (self.bos_token_id, self.decoder_start_token_id)
        for token in (self.pad_token_id, *starts, *ends):
            if token is not None and not 0 <= token < self.num_base_tokens:
                raise ValueError(
                    f"special token {token} is no base token: num_base_tokens is "
                    f"{self.num_base_tokens}"
                )
        if set(self.symbol_ranges) != set(self.symbol_classes):
            raise ValueError(
                f"symbol_ranges has classes {sorted(self.symbol_ranges)}, "
                f"symbol_classes has {sorted(self.symbol_classes)}"
            )
        for name, ranges in self.symbol_ranges.items():
            self._check_class(name, ranges)
        total = _check_cover(self.num_base_tokens, self.symbol_ranges)
        if self.vocab_size != total:
            raise ValueError(
                f"vocab_size is {self.vocab_size}, but {self.num_base_tokens} base tokens and "
                f"{total - self.num_base_tokens} symbols make {total}; leave it out"
            )
        _check_size(total)

    def _check_class(self, name: str, ranges: list[list[int]]) -> None:
        if self.symbol_classes[name] < 1:
            raise ValueError(f"symbol class {name!r} has no symbols")
        if any(len(pair) != 2 or pair[0] >= pair[1] for pair in ranges):
            raise ValueError(
                f"symbol_ranges[{name!r}] = {ranges} must list [start, stop] with start < stop"
            )
        members = sum(stop - start for start, stop in ranges)
        if members != self.symbol_classes[name]:
            raise ValueError(
                f"symbol_ranges[{name!r}] = {ranges} holds {members} ids, "
                f"symbol_classes says {self.symbol_classes[name]}"
            )

    def _check_attention(self) -> None:
        for part in ("encoder", "decoder"):
            heads = getattr(self, f"{part}_attention_heads")
            if self.d_model % heads:
                raise ValueError(
                    f"d_model {self.d_model} is not a multiple of {heads} {part} heads"
                )
            rotated = "rope" in (self.encoder_position, self.decoder_position)
            if rotated and (self.d_model // heads) % 2:
                raise ValueError(
                    f"RoPE needs an even head width, not {self.d_model} / {heads} in the {part}"
                )
            kinds = (f"{part}_per_stream_attention", f"{part}_aggregated_attention")
            if not any(getattr(self, kind) for kind in kinds):
                raise ValueError(f"the {part} has no self-attention: set {' or '.join(kinds)}")
        modes = self.cross_attention
        if not modes or len(set(modes)) != len(modes) or set(modes) - set(CROSS_ATTENTION_MODES):
            raise ValueError(
                f"cross_attention must list one or both of {CROSS_ATTENTION_MODES}, not {modes}"
            )

    def _check_random_parts(self, num_symbols: int) -> None:
        if self.symbol_encoding != "dual_part":
            return
        if not 0 < self.random_dim < self.d_model:
            raise ValueError(
                f"random_dim must lie between 1 and d_model - 1 = {self.d_model - 1}, "
                f"not {self.random_dim}"
            )
        vectors = capacity(self.random_method, self.random_dim)
        if vectors is not None and num_symbols > vectors:
            raise ValueError(
                f"{num_symbols} symbols need as many random parts, but there are only {vectors} "
                f"{self.random_method} with random_dim {self.random_dim}: choose a larger "
                'random_dim, or random_method "normal"'
            )

    @property
    def embedding_dim(self) -> int:
        """Trained width of an embedding row."""
        return self.d_model - (self.random_dim if self.symbol_encoding == "dual_part" else 0)

    @property
    def num_embedding_rows(self) -> int:
        """Trained rows of the embedding."""
        per_class = {"streams": 2, "dual_part": 1}.get(self.symbol_encoding)
        symbols = per_class * len(self.symbol_classes) if per_class else self.num_symbols
        return self.num_base_tokens + symbols

    @property
    def renames(self) -> bool:
        """Whether the model looks at names at all and may have to rename them."""
        return self.symbol_encoding != "streams" and self.symbol_renaming != "none"

    @property
    def draws_symbols(self) -> bool:
        """Whether anything about symbols is drawn at random."""
        random = self.symbol_renaming.startswith("random")
        return self.symbol_encoding == "dual_part" or (self.renames and random)

    @property
    def lists_symbols(self) -> bool:
        """Whether the model works with the list of the input's symbols, and answers with them."""
        return self.symbol_encoding == "streams" or self.symbol_renaming == "first_occurrence"

    @property
    def num_symbols(self) -> int:
        """Number of symbols of all classes."""
        return self.vocab_size - self.num_base_tokens

    @property
    def initial_logit_scale(self) -> float:
        """Scale of the logits before training (AdaCos: sqrt(2) ln(C - 1) for C columns)."""
        if self.logit_scale is not None:
            return float(self.logit_scale)
        if not self.normalize_features:
            return 1.0
        return math.sqrt(2.0) * math.log(max(self.vocab_size - 1, 2))

    def extend_symbols(self, counts: dict[str, int]) -> None:
        """Add ids at the end of the vocabulary: class name -> how many. Old ids never move.

        Raises:
            ValueError: unknown class, a negative count, too large a vocabulary, or more symbols
                than random parts; nothing is changed then.
        """
        for name, count in counts.items():
            if name not in self.symbol_classes:
                raise ValueError(
                    f"no symbol class {name!r}; this model has {sorted(self.symbol_classes)}"
                )
            if not isinstance(count, int) or count < 0:
                raise ValueError(f"cannot add {count!r} symbols to class {name!r}")
        _check_size(self.vocab_size + sum(counts.values()))
        self._check_random_parts(self.num_symbols + sum(counts.values()))
        classes, ranges = dict(self.symbol_classes), copy.deepcopy(self.symbol_ranges)
        total = self.vocab_size
        for name, count in counts.items():
            if count:
                classes[name] += count
                ranges[name].append([total, total + count])
                total += count
        self.symbol_classes, self.symbol_ranges, self.vocab_size = classes, ranges, total

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> "AlphaConfig":
        """The configuration as one side sees it.

        A decoder layer owns two self-attention cache slots (per-stream and aggregated), so the
        decoder's side reports twice its layers as `num_hidden_layers`; `decoder_layers` stays.
        """
        if bool(decoder) == bool(encoder):
            return self
        side = copy.deepcopy(self)
        if decoder:
            side.num_hidden_layers = 2 * self.decoder_layers
            side.num_attention_heads = self.decoder_attention_heads
        return side


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def _check_size(vocab_size: int) -> None:
    if vocab_size > MAX_VOCABULARY:
        raise ValueError(f"a vocabulary of {vocab_size} ids is larger than {MAX_VOCABULARY}")


def _check_cover(start: int, symbol_ranges: dict[str, list[list[int]]]) -> int:
    """Check that ranges follow each other from `start` on, in any order; returns where they end."""
    end = start
    for first, last in sorted(pair for ranges in symbol_ranges.values() for pair in ranges):
        if first != end:
            raise ValueError(
                f"symbol_ranges {symbol_ranges} must cover the ids from num_base_tokens = {start} "
                "on once each, without gaps"
            )
        end = last
    return end


__all__ = ["AlphaConfig"]
