"""Configuration of FOLNet, the network of neural logic operators (Chen, ICLR 2023)."""

import copy
from dataclasses import field
from typing import Any, ClassVar, Self

from huggingface_hub.dataclasses import strict

from .choices import check_activation, check_choice, refuse, token_digest
from .configuration_symbols import SymbolModelConfig, special_tokens

AUTO_MAP = {
    "AutoConfig": "configuration_folnet.FolnetConfig",
    "AutoModel": "modeling_folnet.FolnetModel",
    "AutoModelForPreTraining": "modeling_folnet.FolnetForPreTraining",
    "AutoModelForMaskedLM": "modeling_folnet.FolnetForMaskedLM",
    "AutoModelForSequenceClassification": "modeling_folnet.FolnetForSequenceClassification",
    "AutoModelForTokenClassification": "modeling_folnet.FolnetForTokenClassification",
    "AutoModelForMultipleChoice": "modeling_folnet.FolnetForMultipleChoice",
    "AutoModelForQuestionAnswering": "modeling_folnet.FolnetForQuestionAnswering",
    "AutoModelForCausalLM": "modeling_folnet.FolnetForCausalLM",
    "AutoModelForSeq2SeqLM": "modeling_folnet.FolnetForConditionalGeneration",
}
UNARY_OPERATORS = "jmc"
BINARY_OPERATORS = "atp"
POSITION_SCHEMES = ("relative", "absolute", "shaw", "none")
IMPLICATIONS = ("none", "softplus", "relu")
CJOIN_PREMISES = ("heads", "size")
TRANS_CHANNELS = ("heads", "binary")
FORMER = {
    "boolean_form": "mlp",
    "scaled": True,
    "diagonal_link": False,
    "layer_norm_affine": False,
}
"""Fields of earlier versions, and the only form that is left."""
VOCABULARY = 30_522  # of BERT's tokenizer, which fits the parameter counts of Table 3
LARGE = {
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
}


@strict
class FolnetConfig(SymbolModelConfig):
    r"""Settings of [`FolnetModel`]; what is as in BERT is named as there.

    The defaults are the base model of Table 8 with all operators; `FolnetConfig.large()` is the
    large one. Those of symbols are described in [`SymbolModelConfig`]; by default there are none,
    and `vocab_size` says how many base tokens there are.

    Three forms (Appendix A.5): an encoder; a decoder (`is_decoder`); an encoder and a decoder
    (`is_encoder_decoder`).

    Args:
        hidden_size, binary_hidden_size: widths D1 of unary and D2 of binary atoms.
        num_hidden_layers, decoder_layers: L; a decoder beside an encoder has as many by default,
            and only such a one has `decoder_layers`.
        num_attention_heads, head_size: H and S; unary kernels and premises are H * S wide.
        intermediate_size, binary_intermediate_size: of the Boolean operators of both branches.
        unary_operators: letters of Table 2, in any order: `j` join, `m` mu, `c` cjoin.
        binary_operators: likewise: `a` assoc, `t` trans, `p` prod.
        position_scheme: `"relative"`: binary base atoms for clipped distances (Appendix A.4), which
            work for longer sequences than those of training; `"absolute"`: learned positions;
            `"shaw"`: vectors for the same distances in join and assoc (Shaw et al. 2018), RPE* in
            Table 3; `"none"`.
        max_distance: where distances are clipped, Delta.
        max_position_embeddings: longest sequence, for `"absolute"` only.
        cls_atoms: the first token that is not padding is [CLS], with distances of its own; in
            encoders only.
        type_vocab_size: kinds of `token_type_ids`.
        prefix_lm: in a decoder alone, the prompt of `generate` sees itself in both directions.
        hidden_act: of the Boolean operators.
        boolean_cascade: the Boolean operators follow the others; otherwise they run beside them
            (Appendix A.3).
        transposed_boolean: the binary Boolean operator of an encoder sees u(y, x) too, and has a
            linear skip of it: so does the original code, the paper does not say.
        implication: what the operators' outputs pass before they are written (Appendix D):
            `"none"`, as where an implication is an equivalence; `"softplus"`, ln(1 + 2 e^z);
            `"relu"`, ReLU(z + ln 2), its lower bound.
        cjoin_premise: `"heads"`: v_h(x, a), as in Table 2; `"size"`: v_s(a, x) with S channels, as
            in the original code; in encoders only.
        trans_channels: `"heads"`: H, as in Table 2; `"binary"`: D2, as in the original code.
        hidden_dropout_prob, attention_probs_dropout_prob, classifier_dropout: in [0, 1); by default
            the last one is the first.

    Raises:
        ValueError: a setting is out of its range or two settings contradict each other.

    Examples:
        >>> from transformers import AutoModelForMaskedLM
        >>> config = FolnetConfig(
        ...     vocab_size=20, hidden_size=16, binary_hidden_size=8, num_hidden_layers=1
        ... )
        >>> folnet = AutoModelForMaskedLM.from_config(config)
        >>> folnet(input_ids=torch.tensor([[2, 5, 7]])).logits.shape
        torch.Size([1, 3, 20])
    """

    model_type = "folnet"
    keys_to_ignore_at_inference = [  # noqa: RUF012
        "past_key_values",
        "encoder_last_hidden_state",
        "encoder_binary_hidden_state",
        "binary_hidden_state",
        "stream_ids",
    ]
    smallest: ClassVar[dict[str, int]] = {
        **SymbolModelConfig.smallest,
        "hidden_size": 1,
        "binary_hidden_size": 1,
        "num_hidden_layers": 0,
        "decoder_layers": 0,
        "num_attention_heads": 1,
        "head_size": 1,
        "intermediate_size": 1,
        "binary_intermediate_size": 1,
        "max_distance": 1,
        "max_position_embeddings": 1,
        "type_vocab_size": 1,
    }
    shares: ClassVar[tuple[str, ...]] = (
        *SymbolModelConfig.shares,
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
    )
    positive: ClassVar[tuple[str, ...]] = (
        *SymbolModelConfig.positive,
        "layer_norm_eps",
        "initializer_range",
    )
    takes_relations: ClassVar[bool] = True

    hidden_size: int = 768
    binary_hidden_size: int = 64
    num_hidden_layers: int = 12
    decoder_layers: int | None = None
    num_attention_heads: int = 12
    head_size: int = 64
    intermediate_size: int = 3072
    binary_intermediate_size: int = 256
    unary_operators: str = UNARY_OPERATORS
    binary_operators: str = BINARY_OPERATORS
    position_scheme: str = "relative"
    max_distance: int = 64
    max_position_embeddings: int = 512
    cls_atoms: bool = True
    type_vocab_size: int = 2
    prefix_lm: bool = False

    hidden_act: str = "gelu"
    boolean_cascade: bool = True
    transposed_boolean: bool = True
    implication: str = "none"
    cjoin_premise: str = "heads"
    trans_channels: str = "heads"
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02

    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    classifier_dropout: float | int | None = None

    num_base_tokens: int = 0
    symbol_classes: dict[str, int] = field(default_factory=dict)
    symbol_encoding: str = "learned"
    normalize_embeddings: bool = False
    normalize_features: bool = False
    adacos: bool | str = False

    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    decoder_start_token_id: int | None = None

    is_decoder: bool = False
    is_encoder_decoder: bool = False
    use_cache: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("auto_map", dict(AUTO_MAP))
        if "num_decoder_layers" in kwargs:
            raise ValueError("num_decoder_layers follows from the others: set decoder_layers")
        # Models of earlier versions have these fields, which say nothing as they usually were.
        refuse(kwargs.pop("segment_labels", None), "FOLNet reads no segments; GeometricModel does")
        for name, form in FORMER.items():
            value = kwargs.pop(name, form)
            refuse(value != form, f"{name} is {value!r}: FOLNet has only {form!r} since 1.0")
        if not self.num_base_tokens:
            total = self.vocab_size or VOCABULARY
            self.num_base_tokens = total - sum(self.symbol_classes.values())
        super().__post_init__(**kwargs)

    @classmethod
    def large(cls, **settings: Any) -> Self:
        """Returns the large model of Table 8, with these settings in place of its own."""
        return cls(**{**LARGE, **settings})

    @classmethod
    def for_tokenizer(cls, tokenizer: Any, **settings: Any) -> Self:
        """Returns the configuration of a new model for a tokenizer, with or without symbols.

        Args:
            tokenizer: of Transformers; where it has no [CLS], nor have the distances.
        """
        settings = {"cls_atoms": tokenizer.cls_token_id is not None, **settings}
        if hasattr(tokenizer, "num_base_tokens"):
            return super().for_tokenizer(tokenizer, **settings)
        return cls(
            **{**special_tokens(tokenizer), **settings},
            vocab_size=len(tokenizer),
            token_digest=token_digest(tokenizer),
        )

    def validate_architecture(self) -> None:
        super().validate_architecture()
        for name, choices in (
            ("position_scheme", POSITION_SCHEMES),
            ("implication", IMPLICATIONS),
            ("cjoin_premise", CJOIN_PREMISES),
            ("trans_channels", TRANS_CHANNELS),
        ):
            check_choice(name, getattr(self, name), choices)
        check_activation("hidden_act", self.hidden_act)
        self._check_operators()
        self._check_form()

    def _check_operators(self) -> None:
        for name, alphabet in (
            ("unary_operators", UNARY_OPERATORS),
            ("binary_operators", BINARY_OPERATORS),
        ):
            letters = getattr(self, name)
            refuse(
                set(letters) - set(alphabet) or len(set(letters)) != len(letters),
                f"{name} is {letters!r}: give letters of {alphabet!r}, each at most once "
                "(j join, m mu, c cjoin; a assoc, t trans, p prod)",
            )
        lacking = {"j", "a"} - {*self.unary_operators, *self.binary_operators}
        refuse(
            self.position_scheme == "shaw" and lacking,
            'position_scheme "shaw" adds to join and assoc: use both operators',
        )

    def _check_form(self) -> None:
        decodes = self.is_decoder or self.is_encoder_decoder
        refuse(
            self.is_decoder and self.is_encoder_decoder,
            "is_decoder is a decoder alone, is_encoder_decoder an encoder with a decoder: set "
            "one of them",
        )
        refuse(
            self.decoder_layers is not None and not self.is_encoder_decoder,
            "decoder_layers are those of a decoder beside an encoder (is_encoder_decoder=True):"
            " a stack alone has num_hidden_layers, so leave decoder_layers out",
        )
        refuse(
            self.prefix_lm and not self.is_decoder,
            "prefix_lm is for a decoder alone: set is_decoder=True, or leave it out, since an "
            "encoder sees its whole input in both directions anyway",
        )
        refuse(
            decodes and self.cjoin_premise == "size" and "c" in self.unary_operators,
            'cjoin_premise "size" reads atoms v(a, x) with a before x, which a decoder has '
            'not: set "heads"',
        )
        refuse(
            self.is_decoder and self.needs_stream_ids,
            f"symbol_encoding {self.symbol_encoding!r} with symbol_renaming "
            f"{self.symbol_renaming!r} needs the input's symbols before it begins, and a "
            'decoder alone has no input: set is_encoder_decoder, or choose "learned" or '
            '"dual_part" without "first_occurrence"',
        )

    @property
    def num_decoder_layers(self) -> int:
        """How many layers the decoder has, in the forms with one."""
        return self.num_hidden_layers if self.decoder_layers is None else self.decoder_layers

    @property
    def tells_texts_apart(self) -> bool:
        """Whether the token types of two texts have to differ: cross-segment atoms are of them."""
        return self.type_vocab_size > 1

    @property
    def num_distances(self) -> int:
        """How many relative distances have a vector (Appendix A.4)."""
        return 2 * self.max_distance + 2

    @property
    def unary_size(self) -> int:
        """The width of unary kernels and premises, H * S."""
        return self.num_attention_heads * self.head_size

    @property
    def size_text(self) -> str:
        decoder = f" + {self.num_decoder_layers}" if self.is_encoder_decoder else ""
        return (
            f"D1 {self.hidden_size}, D2 {self.binary_hidden_size}, "
            f"{self.num_hidden_layers}{decoder} layers of "
            f"{self.unary_operators}.{self.binary_operators}, {self.num_attention_heads} heads of "
            f"{self.head_size}, Boolean {self.intermediate_size} and "
            f"{self.binary_intermediate_size}"
        )

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> "FolnetConfig":
        """Returns the configuration of one side: the decoder has its own number of layers."""
        if bool(decoder) == bool(encoder) or encoder or self.decoder_layers is None:
            return self
        side = copy.deepcopy(self)
        side.num_hidden_layers = self.num_decoder_layers
        return side
