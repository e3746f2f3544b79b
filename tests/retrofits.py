"""Small models of Transformers with a symbol layer around them, and batches for them."""

import copy
from typing import Any

import torch
from hosts import VOCABULARY, make_host
from hypothesis import strategies as st
from promises import Batch, Family, Sizes, TextFamily, symbol_ids
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration, RetrofitModel
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM
from hf_alpha.modeling.symbol_encodings import encoding_class

Ranges = dict[str, list[list[int]]]

# Where symbols lie: among the tokens of the host, or behind them.
PLACES: dict[str, Ranges] = {
    "middle": {"name": [[10, 13], [20, 22]]},
    "middle, two classes": {"name": [[10, 13], [20, 22]], "function": [[15, 18]]},
    "end": {"name": [[VOCABULARY, VOCABULARY + 5]]},
}
MADE: dict[str, RetrofitModel] = {}
BOTH_SIDES = {"aggregated_attention": ["encoder", "decoder"]}


def make_retrofit(
    host: str | PreTrainedModel,
    seed: int = 0,
    place: str | Ranges = "middle",
    host_settings: dict[str, Any] | None = None,
    **settings: Any,
) -> RetrofitModel:
    """A host with a symbol layer, in evaluation mode; of a family, a copy of the first one made.

    What a new layer has as zeros or ones is random here, so that blocks do something.

    Args:
        host: name of a family, or a model with a row for each token.
        place: one of `PLACES`, or the ranges of each class.
    """
    if not isinstance(host, str):
        return _around(host, seed, place, settings)
    key = repr((host, seed, place, host_settings, settings))
    if key not in MADE:
        rows = {"vocab_size": VOCABULARY + 5}
        made = make_host(host, seed, **rows, **(host_settings or {}))
        MADE[key] = _around(made, seed, place, settings)
    return copy.deepcopy(MADE[key])


def _around(
    host: PreTrainedModel, seed: int, place: str | Ranges, settings: dict[str, Any]
) -> RetrofitModel:
    """The model around a host."""
    ranges = copy.deepcopy(PLACES[place] if isinstance(place, str) else place)
    classes = {name: sum(stop - start for start, stop in pairs) for name, pairs in ranges.items()}
    last = max(stop for pairs in ranges.values() for _, stop in pairs)
    size = max(last, VOCABULARY)
    encoding = encoding_class(settings.get("symbol_encoding", "streams"))
    wanted = 2 if encoding.rows_in_turn else encoding.rows_per_class  # of any number
    first = {name: pairs[0][0] for name, pairs in ranges.items()}
    rows = {name: list(range(i, i + wanted)) for name, i in first.items()} if wanted else {}
    scale = {"random_scale": [1.5, 0.7]} if encoding.rows_per_class == 1 else {}
    start = host.generation_config.decoder_start_token_id
    config = RetrofitConfig(
        backbone_config=host.config,
        # Some hosts leave it to the user: it is the language that is wanted.
        decoder_start_token_id=host.config.eos_token_id if start is None else start,
        vocab_size=size,
        num_base_tokens=size - sum(classes.values()),
        symbol_classes=classes,
        symbol_ranges=ranges,
        class_rows=rows,
        **scale,
        **settings,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        pair = config.is_encoder_decoder
        kind = RetrofitForConditionalGeneration if pair else RetrofitForCausalLM
        model = kind(config, host)
        model.generation_config = copy.deepcopy(host.generation_config)
        for name, weight in model.named_parameters():
            if "aggregated" in name or name.startswith("relations."):
                weight.add_(0.3 * torch.randn_like(weight))
    return model.eval()


def ordinary_tokens(config: RetrofitConfig) -> torch.Tensor:
    """Base tokens without a task of their own."""
    return torch.tensor([i for i in config.vocabulary.base_ids if 3 <= i < VOCABULARY - 1])


def random_batch(
    seed: int, config: RetrofitConfig, sizes: Sizes, target_length: int = 4, side: str = "right"
) -> Batch:
    """A padded batch of samples with (length, at most so many symbols)."""
    generator = torch.Generator().manual_seed(seed)
    width = max(length for length, _ in sizes)
    tokens, symbols = ordinary_tokens(config), torch.tensor(sorted(symbol_ids(config)))
    ids = torch.full((len(sizes), width), config.pad_token_id)
    mask = torch.zeros_like(ids)
    answers = torch.zeros(len(sizes), target_length, dtype=torch.long)

    def mixed(length: int, names: torch.Tensor) -> torch.Tensor:
        row = tokens[torch.randint(len(tokens), (length,), generator=generator)]
        if not len(names):
            return row
        chosen = names[torch.randint(len(names), (length,), generator=generator)]
        return torch.where(torch.rand(length, generator=generator) < 0.5, chosen, row)

    for row, (length, k) in enumerate(sizes):
        names = symbols[torch.randperm(len(symbols), generator=generator)[:k]]
        place = slice(0, length) if side == "right" else slice(width - length, width)
        ids[row, place] = mixed(length, names)
        mask[row, place] = 1
        present = names[torch.isin(names, ids[row])]
        answers[row] = mixed(target_length, present)
    answers[:, 0] = config.decoder_start_token_id
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": answers}


class Seen(TorchDispatchMode):
    """Notes the shapes of tensors of a type that operations give."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.shapes: set[torch.Size] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for x in tree_leaves(found):
            if isinstance(x, torch.Tensor) and x.dtype == self.dtype:
                self.shapes.add(x.shape)
        return found


class RetrofitFamily(Family):
    """A host with a symbol layer; a subclass says which, and how names become vectors."""

    host: str
    settings: dict[str, Any]
    variants = st.sampled_from([{"place": place} for place in PLACES])
    saved = ({"place": "middle, two classes"},)
    trained = ({},)

    def make_model(self, seed: int = 0, **settings: Any) -> PreTrainedModel:
        return make_retrofit(self.host, seed, **{**self.settings, **settings})

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "right"
    ) -> Batch:
        return random_batch(seed, config, sizes, side=side)


class DecoderFamily(TextFamily, RetrofitFamily):
    """A decoder with a symbol layer."""

    answers_are_names_of_the_input = False

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "left"
    ) -> Batch:
        batch = super().make_batch(seed, config, sizes, side)
        del batch["decoder_input_ids"]
        return batch
