"""Training step and generation of `streams`, against three peers measured in the same run.

    python benchmarks/streams.py                    # d 64, 8 layers, 4 heads, FFN 1024 (LTL's)
    python benchmarks/streams.py --small --threads 2 --out streams-small
    python benchmarks/streams.py --device cuda

For 1 to 10 symbols, on satisfiable propositional formulas of one size with exactly that many
symbols and their real answers. All weights are random: they do not change the time.

- BART: `BartForConditionalGeneration` of the same width, layers, heads, FFN and vocabulary.
- `learned`: this package's vanilla model, likewise.
- reference: the loop-by-loop transcription of the paper in tests/reference. It takes one sample at
  a time, so it runs a few samples of a much smaller model, stated in the output; its ratio is that
  of times per sample, to a `streams` model of that smaller size which runs a whole batch.

A training step is forward, backward and AdamW; beside the reference it is forward and backward.
Generation is beam search with 3 beams and a fixed number of new tokens; beside the reference it is
greedy, and the reference encodes once and then decodes every prefix anew. Sides take turns; a
ratio is the median over the rounds of the two times in one round. Times are printed as minimum /
median / maximum.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedModel

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, AlphaTokenizer
from hf_alpha.cli.options import integers
from hf_alpha.data.collate import AlphaCollator
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from measure import add_out, finish, in_turns, ratios, three
from measure import table as write

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from reference.streams import ReferenceModel

TRAINING, GENERATION = "training step", "generation"
STREAMS, BART, LEARNED, SMALL, REFERENCE = (
    "streams",
    "BART",
    "learned",
    "small streams",
    "reference",
)
Batch = dict[str, torch.Tensor]
Step = Callable[[], object]


@dataclass
class Sizes:
    """Width of a model and of its work."""

    d_model: int
    layers: int
    heads: int
    ffn: int
    formula: int
    new_tokens: int
    batch: int


@dataclass
class Row:
    """One side's times, in seconds, for one number of symbols; one entry for each round."""

    work: str
    symbols: int
    side: str
    samples: int
    seconds: list[float]

    @property
    def per_sample(self) -> float:
        """Median seconds for one sample."""
        return statistics.median(self.seconds) / self.samples


# -- data and models ------------------------------------------------------------------------------


def draw_batch(tokenizer: AlphaTokenizer, symbols: int, size: int, count: int, seed: int) -> Batch:
    """Satisfiable formulas with exactly `symbols` symbols and `size` tokens, and their answers."""
    task, rng = PropositionalTask(), random.Random(f"{seed} {symbols}")
    names = task.default_symbols(symbols)
    rows: list[dict[str, list[int]]] = []
    while len(rows) < count:
        tokens = task.draw(rng, size, names, exactly=True)
        answer = task.target_of(tokens)
        if answer is not None:
            rows.append(tokenizer.encode_pair(" ".join(tokens), answer))
    return AlphaCollator(tokenizer)(rows)


def alpha_model(sizes: Sizes, tokenizer: AlphaTokenizer, **settings: Any) -> PreTrainedModel:
    """A model of this package with random weights."""
    config = AlphaConfig.for_tokenizer(
        tokenizer,
        d_model=sizes.d_model,
        **_both_sides(sizes),
        **settings,
    )
    return AlphaForConditionalGeneration(config)


def bart_model(sizes: Sizes, tokenizer: AlphaTokenizer) -> PreTrainedModel:
    """A BART of the same sizes."""
    config = BartConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=sizes.d_model,
        **_both_sides(sizes),
        max_position_embeddings=max(sizes.formula, sizes.new_tokens, 64) + 8,
        dropout=0.1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    return BartForConditionalGeneration(config)


def _both_sides(sizes: Sizes) -> dict[str, int]:
    values = {"layers": sizes.layers, "attention_heads": sizes.heads, "ffn_dim": sizes.ffn}
    return {f"{side}_{k}": value for side in ("encoder", "decoder") for k, value in values.items()}


# -- the work -------------------------------------------------------------------------------------


def training_step(model: PreTrainedModel, batch: Batch) -> Step:
    """Forward, backward and update."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        model.train()
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()

    return step


def gradient_step(model: PreTrainedModel, batch: Batch) -> Step:
    """Forward and backward only, without dropout: what the reference does."""

    def step() -> None:
        model.eval()
        model.zero_grad()
        model(**batch).loss.backward()

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


def without_streams(batch: Batch) -> Batch:
    """What a BART takes."""
    return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}


# -- the reference --------------------------------------------------------------------------------


class Reference:
    """The paper's loops on a few samples of a batch, with the weights of a `streams` model."""

    def __init__(self, model: PreTrainedModel, batch: Batch, samples: int, new_tokens: int):
        self.state = {
            name: value.detach().clone().requires_grad_(value.is_floating_point())
            for name, value in model.state_dict().items()
        }
        self.model = ReferenceModel(self.state, model.config)
        self.device, self.new_tokens = model.device, new_tokens
        self.rows = [_unpadded(batch, row) for row in range(samples)]

    def train(self) -> torch.Tensor:
        """Forward and backward of the mean loss; returns it."""
        for value in self.state.values():
            value.grad = None
        with torch.device(self.device):
            losses = [self._loss(*row) for row in self.rows]
            total = torch.cat(losses).mean()
            total.backward()
        return total.detach()

    def _loss(self, ids: list[int], paths: list[int], labels: list[int]) -> torch.Tensor:
        logits = self.model(ids, paths, [self.model.config.decoder_start_token_id, *labels[:-1]])
        usable = torch.where(logits.isnan(), -1e4, logits)
        return F.cross_entropy(usable, torch.tensor(labels), reduction="none")

    def generate(self) -> None:
        """Greedy, without a cache: every prefix is decoded from its start."""
        with torch.no_grad(), torch.device(self.device):
            for ids, paths, _ in self.rows:
                self._answer(ids, paths)

    def _answer(self, ids: list[int], paths: list[int]) -> list[int]:
        model, config = self.model, self.model.config
        first = config.num_base_tokens
        symbols: list[int | None] = list(dict.fromkeys(i for i in ids if i >= first)) or [None]
        encoded, masks = model.encode(ids, paths, symbols)
        answer = [config.decoder_start_token_id]
        for _ in range(self.new_tokens):
            logits = model.project(model.decode(answer, symbols, encoded, masks), symbols)[-1]
            logits[config.eos_token_id] = float("nan")
            answer.append(int(torch.where(logits.isnan(), -1e9, logits).argmax()))
        return answer


def _unpadded(batch: Batch, row: int) -> tuple[list[int], list[int], list[int]]:
    real = batch["attention_mask"][row].bool()
    labels = batch["labels"][row]
    return (
        batch["input_ids"][row][real].tolist(),
        batch["tree_paths"][row][real].tolist(),
        labels[labels >= 0].tolist(),
    )


def check_reference(model: PreTrainedModel, batch: Batch, samples: int, loss: torch.Tensor) -> None:
    """Both have to compute the same, or the ratio of their times says nothing."""
    model.eval()
    with torch.no_grad():
        ours = model(**{name: value[:samples] for name, value in batch.items()}).loss
    torch.testing.assert_close(ours, loss, rtol=1e-3, atol=1e-3)


# -- measuring ------------------------------------------------------------------------------------


def measure(
    work: str, symbols: int, sides: dict[str, tuple[Step, int]], rounds: int, device: torch.device
) -> list[Row]:
    """Time all sides in turns; each is (what to run, how many samples that is)."""
    steps = {side: step for side, (step, _) in sides.items()}
    seconds = in_turns(steps, rounds, str(device))
    return [Row(work, symbols, side, sides[side][1], seconds[side]) for side in sides]


def measure_models(
    models: dict[str, PreTrainedModel], batch: Batch, symbols: int, sizes: Sizes, rounds: int
) -> list[Row]:
    """`streams`, BART and `learned`."""
    device = next(iter(models.values())).device
    inputs = {side: without_streams(batch) if side == BART else batch for side in models}
    train = {
        side: (training_step(model, inputs[side]), sizes.batch) for side, model in models.items()
    }
    search = {
        side: (generation(model, inputs[side], 3, sizes.new_tokens), sizes.batch)
        for side, model in models.items()
    }
    return [
        *measure(TRAINING, symbols, train, rounds, device),
        *measure(GENERATION, symbols, search, rounds, device),
    ]


def measure_reference(
    model: PreTrainedModel, batch: Batch, symbols: int, sizes: Sizes, samples: int, rounds: int
) -> list[Row]:
    """The paper's loops and a `streams` model of the same small size."""
    reference = Reference(model, batch, samples, sizes.new_tokens)
    check_reference(model, batch, samples, reference.train())
    train = {
        SMALL: (gradient_step(model, batch), sizes.batch),
        REFERENCE: (reference.train, samples),
    }
    search = {
        SMALL: (generation(model, batch, 1, sizes.new_tokens), sizes.batch),
        REFERENCE: (reference.generate, samples),
    }
    return [
        *measure(TRAINING, symbols, train, rounds, model.device),
        *measure(GENERATION, symbols, search, rounds, model.device),
    ]


def run(args: argparse.Namespace) -> tuple[str, list[Row]]:
    """What is measured and all measurements; each number of symbols is printed when it is done."""
    device = torch.device(args.device)
    numbers = integers(args.symbols)
    tokenizer = build_tokenizer("propositional", max(numbers))
    sizes, small = model_sizes(args), reference_sizes(args)
    torch.manual_seed(args.seed)
    vanilla = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
    models = {
        STREAMS: alpha_model(sizes, tokenizer),
        BART: bart_model(sizes, tokenizer),
        LEARNED: alpha_model(sizes, tokenizer, symbol_encoding="learned", **vanilla),
    }
    models = {side: model.to(device) for side, model in models.items()}
    plain = alpha_model(small, tokenizer, adacos=False, logit_scale=10.0).to(device)
    rows: list[Row] = []
    for k in numbers:
        batches = [
            {name: value.to(device) for name, value in drawn.items()}
            for drawn in (
                draw_batch(tokenizer, k, max(work.formula, 2 * k - 1), work.batch, args.seed)
                for work in (sizes, small)
            )
        ]
        rows += measure_models(models, batches[0], k, sizes, args.repeats)
        rows += measure_reference(
            plain, batches[1], k, small, args.reference_samples, args.reference_repeats
        )
        print(f"{k} symbols: done", file=sys.stderr, flush=True)
    return describe(args, sizes, small, models), rows


# -- the table ------------------------------------------------------------------------------------

COLUMNS = (
    "symbols", "streams: ms", "ms/sample", "BART: ms", "streams/BART", "learned: ms",
    "streams/learned", "reference: ms/sample", "reference/streams",
)  # fmt: skip


def ratio(one: Row, two: Row) -> float:
    """Median over the rounds of one side's time per sample against the other's."""
    return statistics.median(ratios(one.seconds, two.seconds)) * two.samples / one.samples


def table(rows: Sequence[Row], work: str) -> list[list[str]]:
    """Cells of one table: a row for each number of symbols."""
    lines = []
    for k in dict.fromkeys(row.symbols for row in rows):
        side = {row.side: row for row in rows if (row.work, row.symbols) == (work, k)}
        streams = side[STREAMS]
        lines.append(
            [
                str(k),
                _milliseconds(streams),
                f"{1e3 * streams.per_sample:.2f}",
                _milliseconds(side[BART]),
                f"{ratio(streams, side[BART]):.2f}x",
                _milliseconds(side[LEARNED]),
                f"{ratio(streams, side[LEARNED]):.2f}x",
                _milliseconds(side[REFERENCE], side[REFERENCE].samples),
                f"{ratio(side[REFERENCE], side[SMALL]):,.0f}x",
            ]
        )
    return lines


def _milliseconds(row: Row, samples: int = 1) -> str:
    """Minimum, median and maximum."""
    return three([1e3 * seconds / samples for seconds in row.seconds], 1)


def describe(
    args: argparse.Namespace, sizes: Sizes, small: Sizes, models: dict[str, PreTrainedModel]
) -> str:
    """What was measured, on what."""
    counts = ", ".join(f"{side} {model.num_parameters():,}" for side, model in models.items())
    return (
        f"{args.device}, float32; {args.repeats} rounds\n"
        f"models: {_write_sizes(sizes)}; beam search with 3 beams\n"
        f"parameters: {counts}\n"
        f"reference beside: {_write_sizes(small)}, greedy; it runs {args.reference_samples} "
        f"samples one by one, {args.reference_repeats} rounds"
    )


def _write_sizes(sizes: Sizes) -> str:
    return (
        f"d {sizes.d_model}, {sizes.layers} + {sizes.layers} layers, {sizes.heads} heads, "
        f"FFN {sizes.ffn}; batch {sizes.batch}, formulas of {sizes.formula} tokens, "
        f"{sizes.new_tokens} new tokens"
    )


# -- the command ----------------------------------------------------------------------------------


def model_sizes(args: argparse.Namespace) -> Sizes:
    """Sizes of the models that are compared with BART and `learned`."""
    preset = (64, 3, 4, 256) if args.small else (64, 8, 4, 1024)
    sizes = (args.d_model, args.layers, args.heads, args.ffn)
    chosen = [own or usual for own, usual in zip(sizes, preset, strict=True)]
    return Sizes(*chosen, formula=args.size, new_tokens=args.new_tokens, batch=args.batch)


def reference_sizes(args: argparse.Namespace) -> Sizes:
    """Sizes of the model that is compared with the reference."""
    return Sizes(16, 1, 2, 32, args.reference_size, args.reference_new_tokens, args.batch)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--symbols", default="1-10", help="numbers of symbols (1-10)")
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, help="CPU threads of torch")
    add("--small", action="store_true", help="d 64, 3 layers, 4 heads, FFN 256")
    for name in ("--d-model", "--layers", "--heads", "--ffn"):
        add(name, type=int, help="instead of the preset's")
    add("--size", type=int, default=35, help="tokens of a formula (35), at least 2k - 1")
    add("--new-tokens", type=int, default=16, help="tokens to generate (16)")
    add("--batch", type=int, default=64, help="samples in a batch (64)")
    add("--repeats", type=int, default=7, help="rounds (7)")
    add("--reference-size", type=int, default=19, help="tokens of a formula there (19)")
    add("--reference-new-tokens", type=int, default=4, help="tokens to generate there (4)")
    add("--reference-samples", type=int, default=1, help="samples of the reference (1)")
    add("--reference-repeats", type=int, default=3, help="rounds of the reference (3)")
    add("--seed", type=int, default=0)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    text, rows = run(args)
    tables = (f"{work.capitalize()}\n\n{write(COLUMNS, table(rows, work))}"
              for work in (TRAINING, GENERATION))  # fmt: skip
    data = {"settings": vars(args), "rows": [asdict(row) for row in rows]}
    finish("\n\n".join((text, *tables)), data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
