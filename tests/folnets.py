"""Small FOLNets of all forms, and batches for them."""

from typing import Any

import torch
import transformers
from hypothesis import strategies as st
from promises import Batch, Family, Sizes, TextFamily
from strategies import BASE, TWO_CLASSES, random_batch
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.modeling.configuration_folnet import FolnetConfig

SMALL: dict[str, Any] = {
    "num_base_tokens": BASE,
    "hidden_size": 16,
    "binary_hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "head_size": 4,
    "intermediate_size": 24,
    "binary_intermediate_size": 12,
    "max_distance": 3,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "decoder_start_token_id": 1,
    "eos_token_id": 2,
}
OPERATORS = [
    {},
    {"unary_operators": "j", "binary_operators": "a"},
    {"unary_operators": "mc", "binary_operators": "tp"},
    {"unary_operators": "cj", "binary_operators": "t"},
    {"unary_operators": "m", "binary_operators": ""},
]
POSITIONS = [
    {},
    {"position_scheme": "absolute"},
    {"position_scheme": "shaw", "unary_operators": "jmc", "binary_operators": "atp"},
    {"position_scheme": "none"},
]
OPTIONS = [
    {},
    {"transposed_boolean": False},
    {"boolean_cascade": False, "implication": "softplus"},
    {"implication": "relu", "trans_channels": "binary"},
]
ENCODER_OPTIONS = [*OPTIONS, {"cjoin_premise": "size", "cls_atoms": False}]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    "AutoModelForSeq2SeqLM": {"is_encoder_decoder": True},
    "AutoModelForCausalLM": {"is_decoder": True},
}
"""Auto class -> settings of the form that it needs; the others are for encoders."""


def make_folnet(
    auto_class: str = "AutoModelForSeq2SeqLM", seed: int = 0, **settings: Any
) -> PreTrainedModel:
    """A small model of the form of its Auto class, with random weights, in evaluation mode.

    What a new model has as zeros or ones is random here too.
    """
    symbols = {"symbol_classes": {"proposition": 5}}
    config = FolnetConfig(**{**SMALL, **symbols, **FORMS.get(auto_class, {}), **settings})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = getattr(transformers, auto_class).from_config(config)
        for parameter in model.parameters():
            if bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def folnet_batch(
    seed: int, config: PreTrainedConfig, sizes: Sizes, target_length: int = 4, side: str = "right"
) -> Batch:
    """A padded batch of samples with (length, symbols) as given, for a model of any form."""
    batch = random_batch(seed, config, sizes, target_length, side)
    del batch["tree_paths"]
    if not config.is_encoder_decoder:
        del batch["decoder_input_ids"]
    if not config.is_decoder:
        # Of two parts, as far as each is long.
        number = batch["attention_mask"].cumsum(-1)
        batch["token_type_ids"] = (number > 2).long() * batch["attention_mask"]
    return batch


class FolnetFamily(Family):
    """FOLNets with a head; a subclass says which, and how names become vectors."""

    encoding: str
    renaming_at_the_door = "none"
    variants = st.builds(
        lambda *parts: {name: value for part in parts for name, value in part.items()},
        st.sampled_from(OPERATORS),
        st.sampled_from(POSITIONS),
        st.sampled_from(OPTIONS),
        st.sampled_from([{}, TWO_CLASSES]),
    )
    saved = (TWO_CLASSES,)
    trained = (NO_DROPOUT,)
    # Kernels are no attention to which other implementations are known.
    attentions = ("eager",)
    caches = (None,)
    renamings, generated_renamings, extensions, batches, cached = 5, 1, 3, 4, 2

    def make_model(self, seed: int = 0, **settings: Any) -> PreTrainedModel:
        own = {"symbol_encoding": self.encoding, "symbol_renaming": self.renaming_at_the_door}
        return make_folnet(self.auto_class, seed, **{**own, **settings})

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "right"
    ) -> Batch:
        return folnet_batch(seed, config, sizes, side=side)

    def symbols_may_tie(self, config: PreTrainedConfig) -> bool:
        """See the limits in docs/promises.md."""
        return config.position_scheme == "none"


class EncoderFamily(FolnetFamily):
    """Encoders with a head; a subclass says which."""

    writes = False
    variants = st.builds(
        lambda *parts: {name: value for part in parts for name, value in part.items()},
        st.sampled_from(OPERATORS),
        st.sampled_from(POSITIONS),
        st.sampled_from(ENCODER_OPTIONS),
        st.sampled_from([{}, TWO_CLASSES]),
    )

    def positions(self, batch: Batch, row: int) -> Any:
        return batch["attention_mask"][row].bool()


class PooledFamily(EncoderFamily):
    """Encoders with scores of the whole input."""

    scores_are_of_ids = False

    def positions(self, batch: Batch, row: int) -> Any:
        return slice(None)


class DecoderFamily(TextFamily, FolnetFamily):
    """Decoders alone, which go on with a text."""

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "left"
    ) -> Batch:
        return super().make_batch(seed, config, sizes, side)
