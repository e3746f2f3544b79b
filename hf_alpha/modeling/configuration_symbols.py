"""What configurations of models with a symbol layer share."""

import copy
import math
from contextlib import suppress
from dataclasses import field
from typing import Any, ClassVar, Self

import torch
from huggingface_hub.dataclasses import strict
from transformers.configuration_utils import PreTrainedConfig

from .choices import check_choice, check_numbers, refuse, token_digest
from .encoding import SymbolEncoding
from .logit_scale import ADACOS
from .random_numbers import RANDOM_METHODS
from .saving import SavesCode
from .symbol_encodings import encoding_class
from .symbol_vocabulary import SymbolVocabulary, check_size, vocabulary_of

FIXED_SCALE = 10.0  # of cosines; AdaCos by the mean gets there with 20,000 columns
SYMBOL_RENAMINGS = ("none", "random", "random_per_batch", "first_occurrence")


@strict
class SymbolModelConfig(SavesCode, PreTrainedConfig):
    r"""Settings of a symbol layer: which ids are symbols, and how they become vectors.

    A subclass adds the sizes of its backbone, and a `hidden_size` among them.

    Args:
        num_base_tokens: tokens whose identity matters, special tokens included.
        symbol_classes: class name -> number of symbols that may be renamed among themselves.
        symbol_ranges: class name -> list of half-open id ranges `[start, stop]`, anywhere in the
            vocabulary. Left out, the classes follow each other after the base tokens;
            `extend_symbols` appends ranges.
        vocab_size: always `num_base_tokens` plus the number of symbols; need not be given.
        symbol_encoding: `"streams"` (one stream per symbol, 2601.23169), `"relational"` (one
            stream; attention is told where the same symbol stands), `"dual_part"` (a learned part
            shared by a class and a random part of each symbol, 2410.17161), `"learned"` (one
            trained vector per symbol, the vanilla model), or one that `register_encoding` added.
        symbol_renaming: what happens to symbols inside the model; ids and logits keep the caller's
            names. `"none"`; `"random"`: in training, each sample is renamed at random over the
            whole vocabulary, anew in every optimiser step (so that with `dual_part` each sample has
            a draw of its own); `"random_per_batch"`: likewise, one renaming for all samples of a
            step; `"first_occurrence"`: always, by order of first
            occurrence in the input. `streams` and `relational` models do not see names and skip it.
        new_symbols: what a decoder writes may have symbols that its text, and its source, lack so
            far: the head has a row for each class, whose probability goes to the first unused
            symbol. Symbols are then listed as they are written; a decoder alone needs no
            `stream_ids`.
        random_method: how `dual_part` draws random parts (2410.17161, Section 4.2): `"normal"`,
            `"neighboring_points"` (-1, 0, 1, not all 0) or `"hypercube_vertices"` (-1, 1).
        random_dim: width of the random part; by default half of the model's width, at most 32.
        normalize_parts: divide learned and random parts by their norms (f_bn).
        symbol_seed: seed of random parts and random renamings, any whole number.
        scale_embedding: multiply embeddings by the square root of the model's width.
        normalize_embeddings: divide every embedding row by its norm (f_fn on rows).
        normalize_features: divide the feature vectors by their norm too, so that logits are scaled
            cosines. Needs `normalize_embeddings`.
        adacos: adapt the scale of cosines in training (Zhang et al. 2019), as the papers do;
            False for a fixed one. `"mean"` or `"sum"` over the positions of a step (see
            [`LogitScale`]). By the mean, which True stands for too, it ends near ln(C - 1) for C
            columns: too little for less than some thousands of them.
        logit_scale: the (starting) scale, finite and above 0; by default 10 for cosines,
            sqrt(2) ln(C - 1) with `adacos`, and 1 for products that are no cosines.
        label_smoothing: mass spread over the columns that a sample can use, in [0, 1).
        token_digest: what tells the tokens that the model was made for from others (see
            `token_digest` in choices.py); None where that is not known.

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.

    Examples:
        >>> config = SymbolModelConfig(num_base_tokens=10, symbol_classes={"person": 3, "place": 2})
        >>> config.symbol_ranges
        {'person': [[10, 13]], 'place': [[13, 15]]}
    """

    # Smallest value of whole numbers; shares lie in [0, 1). Subclasses add theirs.
    smallest: ClassVar[dict[str, int]] = {"num_base_tokens": 1, "random_dim": 0}
    shares: ClassVar[tuple[str, ...]] = ("label_smoothing",)
    positive: ClassVar[tuple[str, ...]] = ("logit_scale",)
    # Whether the backbone's attention takes relations between positions; see `SymbolEncoding`.
    takes_relations: ClassVar[bool] = False
    # Whether a decoder of such models may write symbols that its text lacks.
    takes_new_symbols: ClassVar[bool] = False

    num_base_tokens: int = 10
    symbol_classes: dict[str, int] = field(default_factory=lambda: {"proposition": 5})
    symbol_ranges: dict[str, list[list[int]]] = field(default_factory=dict)
    vocab_size: int = 0
    symbol_encoding: str = "streams"
    symbol_renaming: str = "none"
    new_symbols: bool = False
    random_method: str = "hypercube_vertices"
    random_dim: int = 0
    normalize_parts: bool = True
    symbol_seed: int = 0

    scale_embedding: bool = False
    normalize_embeddings: bool = True
    normalize_features: bool = True
    adacos: bool | str = False
    logit_scale: float | int | None = None
    label_smoothing: float | int = 0.0
    token_digest: str | None = None

    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    decoder_start_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        self._fill_ranges()
        if not self.vocab_size:
            self.vocab_size = self.num_base_tokens + sum(self.symbol_classes.values())
        if self.encoding.random_parts and not self.random_dim:
            self.random_dim = max(1, min(32, self.hidden_size // 2))
        # Checked here as well as by @strict, so that plain construction never skips it.
        self.validate_architecture()
        super().__post_init__(**kwargs)

    def __getattribute__(self, key: str) -> Any:
        # Transformers' way takes ten times as long. A compiler knows it, and it is for settings
        # with another name and for layers that differ.
        if not torch.compiler.is_dynamo_compiling():
            get = object.__getattribute__
            values = get(self, "__dict__")
            if values.get("_heterogeneity_spec") is None:
                if key in values:
                    return values[key]
                if key not in get(self, "attribute_map"):
                    return get(self, key)
        return super().__getattribute__(key)

    # Behind a break of a graph it would be compiled by itself, without end. PyTorch has no public
    # name for this: where it is gone, models load all the same.
    with suppress(AttributeError):
        torch._dynamo.eval_frame.skip_code(__getattribute__.__code__)

    @classmethod
    def for_tokenizer(cls, tokenizer: Any, **settings: Any) -> Self:
        """Returns the configuration of a new model for a tokenizer.

        Args:
            tokenizer: an `AlphaTokenizer` or a `TextTokenizer`; the vocabulary comes from it, and
                so do padding, start and end.
        """
        vocabulary = {
            "num_base_tokens": tokenizer.num_base_tokens,
            "symbol_classes": dict(tokenizer.symbol_classes),
            "symbol_ranges": copy.deepcopy(tokenizer.symbol_ranges),
            "token_digest": token_digest(tokenizer),
        }
        return cls(**{**special_tokens(tokenizer), **settings}, **vocabulary)

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
        """Checks that settings fit each other, as part of `@strict` validation."""
        check_choice("symbol_renaming", self.symbol_renaming, SYMBOL_RENAMINGS)
        check_choice("random_method", self.random_method, RANDOM_METHODS)
        if isinstance(self.adacos, str):
            check_choice("adacos", self.adacos, ADACOS)
        check_numbers(self, self.smallest, self.shares, self.positive)
        self._check_vocabulary()
        self.encoding.validate(self, self.num_symbols)
        refuse(
            self.normalize_features and not self.normalize_embeddings,
            "normalize_features needs normalize_embeddings: logits are cosines",
        )
        refuse(
            self.adacos and not self.normalize_features,
            "adacos scales cosines: set normalize_features or turn adacos off",
        )
        refuse(
            self.new_symbols and not self.takes_new_symbols,
            f"new_symbols is not for {self.model_type!r} models: take an 'alpha' model, or a model "
            "of Transformers that writes text (get_symbol_model)",
        )
        refuse(
            self.new_symbols and self.encoding.opens_streams,
            f"new_symbols needs one stream, and {self.symbol_encoding!r} has one for each "
            "symbol of the input: choose another encoding",
        )
        refuse(
            self.new_symbols and (self.adacos or self.label_smoothing),
            "new_symbols changes which columns can be used from token to token: set adacos to "
            "False and label_smoothing to 0",
        )

    def _check_vocabulary(self) -> None:
        total = self.num_base_tokens + sum(self.symbol_classes.values())
        refuse(
            self.vocab_size != total,
            f"vocab_size is {self.vocab_size}, but {self.num_base_tokens} base tokens and "
            f"{total - self.num_base_tokens} symbols make {total}; leave it out",
        )
        vocabulary = self.vocabulary
        vocabulary.check(self.symbol_classes)
        ends = self.eos_token_id if isinstance(self.eos_token_id, list) else [self.eos_token_id]
        for token in (self.pad_token_id, self.bos_token_id, self.decoder_start_token_id, *ends):
            vocabulary.check_special(token)

    @property
    def vocabulary(self) -> SymbolVocabulary:
        """Which ids are symbols, and of which class."""
        return vocabulary_of(self.vocab_size, self.symbol_ranges)

    @property
    def encoding(self) -> type[SymbolEncoding]:
        """The class that `symbol_encoding` names."""
        return encoding_class(self.symbol_encoding)

    @property
    def max_random_dim(self) -> int:
        """How wide random parts can be: a row keeps one dimension that is learned."""
        return self.hidden_size - 1

    @property
    def size_text(self) -> str:
        """The sizes that a model card gives."""
        return f"width {self.hidden_size}"

    @property
    def renames(self) -> bool:
        """Whether the model looks at names at all and may have to rename them."""
        return self.encoding.sees_names and self.symbol_renaming != "none"

    @property
    def learns_names(self) -> bool:
        """Whether each symbol has a vector that is trained: a name should be one symbol always."""
        return self.encoding.rows_per_class is None and self.symbol_renaming == "none"

    @property
    def draws_symbols(self) -> bool:
        """Whether anything about symbols is drawn at random."""
        random = self.symbol_renaming.startswith("random")
        return self.encoding.random_parts or (self.renames and random)

    @property
    def needs_stream_ids(self) -> bool:
        """Whether forward needs the input's symbols (`stream_ids`)."""
        return self.answers_are_listed or (self.new_symbols and not self.decodes_alone)

    @property
    def answers_are_listed(self) -> bool:
        """Whether answers hold no symbols but those of the input."""
        listed = self.encoding.lists_symbols or self.symbol_renaming == "first_occurrence"
        return listed and not self.new_symbols

    @property
    def num_histories(self) -> int:
        """Slots of a decoder's cache behind those of its layers: symbols, states of the head."""
        related = 0 if self.memory is None else self.memory.num_histories
        return max(related, int(self.new_symbols))

    @property
    def memory(self) -> Any:
        """The class of `symbol_memory`, where the encoding works by relations; else None."""
        if (memories := self.encoding.memories) is None:
            return None
        return memories[1 if self.decodes_alone else 2 * self.new_symbols]

    @property
    def decodes_alone(self) -> bool:
        """Whether the model is a decoder without a source."""
        return False

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
        if not self.adacos:
            return FIXED_SCALE
        return math.sqrt(2.0) * math.log(max(self.vocab_size - 1, 2))

    def extend_symbols(self, counts: dict[str, int]) -> None:
        """Add ids at the end of the vocabulary: class name -> how many. Old ids never move.

        New ids go to the classes in their own order, whatever that of `counts`.

        Raises:
            ValueError: unknown class, a negative count, too large a vocabulary, or more symbols
                than random parts; nothing is changed then.
        """
        for name, count in counts.items():
            known = sorted(self.symbol_classes)
            refuse(name not in known, f"no symbol class {name!r}; this model has {known}")
            refuse(
                not isinstance(count, int) or count < 0,
                f"cannot add {count!r} symbols to class {name!r}",
            )
        check_size(self.vocab_size + sum(counts.values()))
        self.encoding.validate(self, self.num_symbols + sum(counts.values()))
        classes, ranges = dict(self.symbol_classes), copy.deepcopy(self.symbol_ranges)
        total = self.vocab_size
        for name in sorted(counts, key=lambda name: ranges[name]):  # as in the tokenizers
            if count := counts[name]:
                classes[name] += count
                ranges[name].append([total, total + count])
                total += count
        self.symbol_classes, self.symbol_ranges, self.vocab_size = classes, ranges, total


def special_tokens(tokenizer: Any) -> dict[str, int | None]:
    """Returns the ids of padding, start and end of a tokenizer, and with what a decoder starts."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id")
    pad, start, end = (getattr(tokenizer, name) for name in names)
    first = pad if start is None else start  # as in T5, whose tokenizer has no start either
    return {**dict(zip(names, (pad, start, end), strict=True)), "decoder_start_token_id": first}
