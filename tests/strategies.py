"""What the model's tests share: small configurations, random models, random samples."""

from typing import Any

import torch
from hypothesis import strategies as st
from promises import Batch, Family, Sizes, batch_sizes, seeds
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.relations import SlotRelations

BASE = 10
SMALL = {
    "num_base_tokens": BASE,
    "encoder_position": "tree",
    "encoder_aggregated_attention": True,  # for all encodings: what holds, holds with it too
    "decoder_aggregated_attention": True,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}
SWITCHES = [
    {},
    {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False},
    {"encoder_per_stream_attention": False, "cross_attention": ["aggregated", "per_stream"]},
    {"decoder_per_stream_attention": False, "cross_attention": ["per_stream", "aggregated"]},
    {"decoder_aggregated_attention": False, "cross_attention": ["aggregated"]},
    {"aggregated_attention_norm": "pre"},
]
POSITIONS = [
    {},
    {"encoder_position": "rope"},
    {"encoder_position": "sinusoidal", "decoder_position": "sinusoidal"},
    {"encoder_position": "none", "cross_attention_rope": False},
]
RENAMED_AT_RANDOM = (
    {"dropout": 0.0, "symbol_renaming": "random"},
    {"dropout": 0.0, "symbol_renaming": "random_per_batch"},
)
TWO_CLASSES = {"symbol_classes": {"proposition": 3, "function": 2}}
# For each id the number of its class, 0 for a base token; classes are those that occur.
layouts = st.lists(st.integers(0, 3), min_size=1, max_size=20)


def ranges_of(layout: list[int]) -> dict[str, list[list[int]]]:
    """The ranges of a layout's symbols, as `symbol_ranges` has them."""
    return {
        f"class {number}": [[i, i + 1] for i, other in enumerate(layout) if other == number]
        for number in dict.fromkeys(n for n in layout if n)
    }


def make_model(seed: int = 0, **settings) -> AlphaForConditionalGeneration:
    """A model with random weights, norms and biases included, and AdaCos, in evaluation mode."""
    usual = {**SMALL, "symbol_classes": {"proposition": 5}, "adacos": True}
    config = AlphaConfig(**{**usual, **settings})
    torch.manual_seed(seed)
    model = AlphaForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Among these are all that begin with zeros.
            if "norm" in name or name.endswith("bias") or "gates" in name or "pointer" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def random_sample(generator: torch.Generator, config, length: int, target_length: int, k: int):
    """Token ids, tree paths and decoder ids of one sample with at most k symbols."""

    def randint(high, size):
        return torch.randint(high, size, generator=generator)

    symbols = torch.randperm(config.num_symbols, generator=generator)[:k] + config.num_base_tokens
    ids = 3 + randint(config.num_base_tokens - 3, (length,))
    decoder_ids = 3 + randint(config.num_base_tokens - 3, (target_length,))
    if k:
        where = torch.rand(length, generator=generator) < 0.5
        ids = torch.where(where, symbols[randint(k, (length,))], ids)
        present = ids[ids >= config.num_base_tokens]
        if len(present):
            where = torch.rand(target_length, generator=generator) < 0.5
            chosen = present[randint(len(present), (target_length,))]
            decoder_ids = torch.where(where, chosen, decoder_ids)
    decoder_ids[0] = config.decoder_start_token_id
    paths = 1 + randint(60, (length,))
    paths[-1] = 0
    return ids, paths, decoder_ids


def random_batch(
    seed: int, config, sizes: list[tuple[int, int]], target_length: int = 4, side="right"
):
    """A padded batch of samples with (length, symbols) as given."""
    generator = torch.Generator().manual_seed(seed)
    width = max(length for length, _ in sizes)
    columns: dict[str, list[torch.Tensor]] = {
        "input_ids": [],
        "attention_mask": [],
        "tree_paths": [],
        "decoder_input_ids": [],
    }
    for length, k in sizes:
        ids, paths, decoder_ids = random_sample(generator, config, length, target_length, k)
        pad = torch.zeros(width - length, dtype=torch.long)
        mask = torch.ones(length, dtype=torch.long)
        for name, value in (("input_ids", ids), ("attention_mask", mask), ("tree_paths", paths)):
            columns[name].append(torch.cat((pad, value) if side == "left" else (value, pad)))
        columns["decoder_input_ids"].append(decoder_ids)
    return {name: torch.stack(values) for name, values in columns.items()}


class AlphaFamily(Family):
    """Encoder-decoders of this package; a subclass says how names become vectors."""

    encoding: str
    renaming_at_the_door = "none"
    variants = st.builds(
        lambda *parts: {name: value for part in parts for name, value in part.items()},
        st.sampled_from(SWITCHES),
        st.sampled_from(POSITIONS),
        st.sampled_from([{}, TWO_CLASSES]),
    )
    saved = (TWO_CLASSES,)
    trained = ({"dropout": 0.0}, {"dropout": 0.0, "label_smoothing": 0.1})

    def make_model(self, seed: int = 0, **settings: Any) -> PreTrainedModel:
        own = {"symbol_encoding": self.encoding, "symbol_renaming": self.renaming_at_the_door}
        if self.encoding == "dual_part":
            own["random_dim"] = 8
        return make_model(seed, **{**own, **settings})

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "right"
    ) -> Batch:
        return random_batch(seed, config, sizes, side=side)

    def symbols_may_tie(self, config: PreTrainedConfig) -> bool:
        """See the limits in docs/promises.md."""
        return config.encoder_position == "none" or "per_stream" not in config.cross_attention


def random_renaming(seed: int, config: PreTrainedConfig) -> torch.Tensor:
    """A renaming as a table id -> id: base tokens stay, each class is permuted within itself."""
    return AlphaFamily().renaming(seed, config)


def rename_batch(batch: Batch, tables: list[torch.Tensor]) -> Batch:
    """Rename row i of a batch by table i."""
    return AlphaFamily().renamed(batch, tables)


def slot_relations(queries: tuple[torch.Tensor, ...], own_BM: torch.Tensor) -> SlotRelations:
    """Relations to keys that hold these symbols, -1 for none."""
    return SlotRelations(queries, own_BM)


__all__ = [
    "BASE",
    "POSITIONS",
    "RENAMED_AT_RANDOM",
    "SMALL",
    "SWITCHES",
    "TWO_CLASSES",
    "AlphaFamily",
    "batch_sizes",
    "layouts",
    "make_model",
    "random_batch",
    "random_renaming",
    "ranges_of",
    "rename_batch",
    "seeds",
    "slot_relations",
]
