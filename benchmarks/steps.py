"""What is timed of models: a training step, a generation, and the most memory that they hold.

Encoder-decoders of this package and a BART of the same size are made here, and sources and answers
drawn for them. All weights are random, and so is what is said: neither changes the time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedModel

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.symbols import first_occurrence
from measure import held

LEARNED, RELATIONAL, STREAMS, BART = ("learned", "relational", "streams", "BART")
BEAMS = 3
WORKS = {
    "training": "Training step",
    "greedy": "Generation, greedy",
    "beams": f"Generation, {BEAMS} beams",
}
ROOM = 10  # tokens of a source that are not needed for one of each name, at least
Batch = dict[str, torch.Tensor]
Step = Callable[[], object]


@dataclass(frozen=True)
class Size:
    """Sizes of the models and of their work."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    ffn: int
    batch: int
    length: int
    target: int

    def tokens(self, names: int) -> int:
        """Tokens of a source with so many names."""
        return max(self.length, names + ROOM)

    def both_sides(self) -> dict[str, int]:
        """Settings of a configuration, named as BART's."""
        shared = {"attention_heads": self.heads, "ffn_dim": self.ffn}
        return {
            "d_model": self.d_model,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in shared.items()},
        }


# -- data and models ------------------------------------------------------------------------------


def alpha_config(size: Size, encoding: str, names: int) -> AlphaConfig:
    """The configuration of a model of this package with a vocabulary of so many names."""
    parts = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
    return AlphaConfig(
        symbol_encoding=encoding,
        symbol_classes={"proposition": names},
        encoder_position="tree",
        dropout=0.0,
        adacos=False,
        logit_scale=10.0,
        **size.both_sides(),
        **({} if encoding == STREAMS else parts),
    )


def bart_config(size: Size, names: int) -> BartConfig:
    """The configuration of a BART of the same sizes."""
    config = alpha_config(size, LEARNED, names)
    return BartConfig(
        vocab_size=config.vocab_size,
        max_position_embeddings=max(size.tokens(names), size.target) + 8,
        dropout=0.0,
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        forced_eos_token_id=None,
        **size.both_sides(),
    )


def make_model(size: Size, side: str, names: int) -> PreTrainedModel:
    """A side: an encoding, or BART."""
    torch.manual_seed(0)
    if side == BART:
        return BartForConditionalGeneration(bart_config(size, names))
    return AlphaForConditionalGeneration(alpha_config(size, side, names))


def draw_batch(size: Size, names: int) -> Batch:
    """Sources in which every name stands at least once, and answers.

    Of what is drawn beyond that, half is names.
    """
    config = alpha_config(size, LEARNED, names)
    generator = torch.Generator().manual_seed(0)
    first, count = config.num_base_tokens, size.batch
    listed = torch.arange(first, first + names).expand(count, -1)
    more = _draw_tokens(config, count, size.tokens(names) - names, generator)
    order = torch.rand(count, size.tokens(names), generator=generator).argsort(1)
    ids = torch.cat((listed, more), dim=1).gather(1, order)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "stream_ids": first_occurrence(ids, ids >= first),
        "tree_paths": torch.arange(1, ids.shape[1] + 1).repeat(count, 1),
        "labels": _draw_tokens(config, count, size.target, generator),
    }


def _draw_tokens(
    config: AlphaConfig, rows: int, columns: int, generator: torch.Generator
) -> torch.Tensor:
    """Base tokens but for the special ones, and names: (rows, columns)."""

    def draw(start: int, stop: int) -> torch.Tensor:
        return torch.randint(start, stop, (rows, columns), generator=generator)

    base, names = draw(3, config.num_base_tokens), draw(config.num_base_tokens, config.vocab_size)
    return torch.where(draw(0, 2) > 0, names, base)


# -- the work -------------------------------------------------------------------------------------


def prepare(model: PreTrainedModel, side: str, work: str, batch: Batch, new_tokens: int) -> Step:
    """One training step or one generation for a batch."""
    if side == BART:
        batch = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
    if work == "training":
        return training_step(model, batch)
    return generation(model, batch, BEAMS if work == "beams" else 1, new_tokens)


def training_step(model: PreTrainedModel, batch: Batch) -> Step:
    """Forward, backward and update."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        model.train()
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()

    return step


def generation(model: PreTrainedModel, batch: Batch, beams: int, new_tokens: int) -> Step:
    """Search with a fixed number of new tokens, so that every side does the same work."""
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    settings = {"num_beams": beams, "min_new_tokens": new_tokens, "max_new_tokens": new_tokens}
    model.generation_config.max_length = None  # or Transformers warns of two limits

    def step() -> None:
        model.eval()
        with torch.inference_mode():
            out = model.generate(**inputs, **settings, do_sample=False)
        first = 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        assert out.shape[1] == first + new_tokens, out.shape

    return step


def most_held(run: Step, device: str = "cpu") -> float:
    """Megabytes of what is run; on a GPU all that is allocated there."""
    before = held()
    run()
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) / 1e6
    return held("VmHWM") - before
