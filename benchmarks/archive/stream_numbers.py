"""Fewer streams than names, and more: top-K gating, and a pool of streams for fresh names.

    python benchmarks/archive/stream_numbers.py --only 'copy*,repeated*' --out sparse-streams
    python benchmarks/archive/stream_numbers.py --only 'fresh*' --steps 2000 \\
        --runs runs/fresh-2000 --out fresh-streams

A model with `streams` computes a stream for each name of its input. 2601.23169 (Section 6) names two
extensions that nobody has tried.

**Sparsification** that keeps K streams, chosen by what is the same for a renamed input ("Top-K
stream gating", "positional frequency"). Here all streams go through the first layer of encoder and
decoder, K go on. The others keep the state that they have, so their names can still be in answers.
Entries: `all` streams; the K most `frequent` names, of equals the first ones; `gated`: the K largest
gates, which a linear layer reads off each stream's state at its name. The mean over the streams that
go on is weighted by the gates' softmax, by which they are trained. In `repeated`, the answer is the
two names that occur twice, among up to 8 in training; in `copy` it is the input, up to 5 names.

**A reserved pool of fresh-symbol streams**, for answers with names that the input lacks. The pool
has the first names of the vocabulary that an input lacks; of those that no answer has yet, the first
one can be written. In `fresh` each pair gets a new name: `x0 x1 x2` is answered by `n1 x0 x1 n2 n1
x2`, with 2 to 4 new names in training. Entries: `pool`; `base`: new names are base tokens, each
with a trained row; `relational` with `new_symbols`, the package's own way.

Inputs are made as they are needed. An answer is right if it is equal to the expected one. Models
have width 32 and 2 + 2 layers, and the same steps and batches. Finished runs are not run again.
Cells are means over the seeds; +- is half the distance between the largest and the smallest.
`seconds` are the processor's for greedy answers to the last test, divided by those of the first
entry.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F
from transformers import LogitsProcessor, LogitsProcessorList

from hf_alpha.cli.options import integers
from hf_alpha.modeling import modeling_alpha
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.new_symbols import UNUSABLE
from hf_alpha.modeling.relations import match_rows
from hf_alpha.modeling.streams import Streams
from hf_alpha.modeling.symbols import first_occurrence, pack_streams

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure

PAD, START, END = range(3)
BASE = 12  # tokens before the names: three special ones, and names of the entry `base`
NAMES = 32
SIZES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "dropout": 0.0,
}  # fmt: skip


# -- fewer streams --------------------------------------------------------------------------------


class Sparse:
    """A stack whose layers behind the first see K streams.

    Attributes:
        kept: how many streams, K.
        scores: of the streams of the last input, -inf for those that are dropped: (B, S).
    """

    kept: int
    scores: torch.Tensor | None = None

    def score(self, hidden_BSLD: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns the scores of all streams, of which the largest are kept: (B, S)."""
        raise NotImplementedError

    def weigh(self, score_BK: torch.Tensor) -> torch.Tensor:
        """Returns weights of the mean over the streams that are kept: (B, K)."""
        raise NotImplementedError

    def _through_layers(
        self: Any, hidden: torch.Tensor, context: tuple[Any, ...], *returned: Any, **more: Any
    ) -> tuple[torch.Tensor, None, dict[str, torch.Tensor]]:
        first, *others = self.layers
        hidden, *_ = first(hidden, *context, **more)
        streams, *shared = context
        scores = streams.memory  # the encoder's choice, in its decoder
        if self.side == "encoder":
            scores = self.scores = self._choose(hidden, streams)
        number = min(self.kept, hidden.shape[1])
        index_NK = ranked(scores)[:, :number].sort(dim=1).values
        index_BK = match_rows(index_NK, hidden.shape[0])
        weights_BK = self.weigh(match_rows(scores, hidden.shape[0]).gather(1, index_BK))
        narrowed = narrow(streams, index_BK, weights_BK)
        # Behind mask and rotations stand the states of the source.
        shared = [take(x, index_NK) if n == 2 else x for n, x in enumerate(shared)]
        inner = take(hidden, index_BK)
        for layer in others:
            inner, *_ = layer(inner, narrowed, *shared, **more)
        hidden = hidden.scatter(1, index_BK[..., None, None].expand_as(inner), inner)
        return hidden, None, {"last_hidden_state": pack_streams(hidden)}

    def _choose(self, hidden_BSLD: torch.Tensor, streams: Streams) -> torch.Tensor:
        score_BS = self.score(hidden_BSLD, streams).masked_fill(streams.weights == 0, -torch.inf)
        return score_BS.scatter(1, ranked(score_BS)[:, self.kept :], -torch.inf)


def ranked(score_BS: torch.Tensor) -> torch.Tensor:
    """Returns the places of the scores, the largest first; of equals, that of the first name."""
    return score_BS.sort(dim=1, descending=True, stable=True).indices


def take(x_BSLD: torch.Tensor, index_BK: torch.Tensor) -> torch.Tensor:
    """Returns the chosen streams of a state."""
    return x_BSLD.gather(1, index_BK[..., None, None].expand(-1, -1, *x_BSLD.shape[2:]))


def narrow(streams: Streams, index_BK: torch.Tensor, weights_BK: torch.Tensor) -> Streams:
    """Returns the chosen streams; other names have none."""
    chosen = torch.arange(index_BK.shape[1], device=index_BK.device).expand_as(index_BK)
    place_BS = torch.full_like(streams.ids, -1).scatter(1, index_BK, chosen)
    own_BL = torch.where(streams.own < 0, -1, place_BS.gather(1, streams.own.clamp(min=0)))
    return replace(streams, ids=streams.ids.gather(1, index_BK), own=own_BL, weights=weights_BK)


def places(streams: Streams, like: torch.Tensor) -> torch.Tensor:
    """Returns 1 where the name of each stream stands, else 0: (B, S, L)."""
    index_S1 = torch.arange(streams.ids.shape[1], device=like.device)[:, None]
    return (streams.own[:, None] == index_S1).to(like.dtype)


class Frequent(Sparse):
    """Keeps the names that occur most often."""

    def score(self, hidden_BSLD: torch.Tensor, streams: Streams) -> torch.Tensor:
        return places(streams, hidden_BSLD).sum(-1)

    def weigh(self, score_BK: torch.Tensor) -> torch.Tensor:
        kept_BK = score_BK.isfinite().to(score_BK.dtype)
        return kept_BK / kept_BK.sum(1, keepdim=True)


class Gated(Sparse):
    """Keeps the streams of the largest gates."""

    gate: nn.Linear

    def score(self, hidden_BSLD: torch.Tensor, streams: Streams) -> torch.Tensor:
        place_BSL = places(streams, hidden_BSLD)
        share_BSL = place_BSL / place_BSL.sum(-1, keepdim=True).clamp(min=1)
        return self.gate(torch.einsum("bsl,bsld->bsd", share_BSL, hidden_BSLD))[..., 0]

    def weigh(self, score_BK: torch.Tensor) -> torch.Tensor:
        return score_BK.softmax(1)


@contextmanager
def sparse(kind: type[Sparse] | None, number: int) -> Iterator[None]:
    """Models that are made meanwhile keep so many streams."""
    if kind is None:
        yield
        return

    class Encoder(kind, modeling_alpha.AlphaEncoder):  # type: ignore[valid-type, misc]
        kept = number

        def __init__(self, config: AlphaConfig, *args: Any):
            super().__init__(config, *args)
            if kind is Gated:
                self.gate = nn.Linear(config.d_model, 1)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            outputs = super().forward(*args, **{**kwargs, "return_dict": True})
            outputs.symbol_memory = self.scores
            return outputs

    class Decoder(kind, modeling_alpha.AlphaDecoder):  # type: ignore[valid-type, misc]
        kept = number

    with patch.multiple(modeling_alpha, AlphaEncoder=Encoder, AlphaDecoder=Decoder):
        yield


# -- tasks ----------------------------------------------------------------------------------------

Sample = tuple[list[int], list[int], list[int]]
"""Ids of a problem, those of its answer, and the names that the answer may add, in order."""


def copied(rng: random.Random, number: int) -> Sample:
    """A string of at most 12 names, so many of them different, and the same string."""
    names = drawn(rng, number)
    text = names + [rng.choice(names) for _ in range(rng.randint(2, 12 - number))]
    rng.shuffle(text)
    return text, text, []


def repeated(rng: random.Random, number: int) -> Sample:
    """A string with so many names, two of them twice; the answer has these two in order."""
    names = drawn(rng, number)
    text = names + rng.sample(names, 2)
    rng.shuffle(text)
    return text, [name for name in dict.fromkeys(text) if text.count(name) > 1], []


def fresh(rng: random.Random, number: int) -> Sample:
    """A string that takes so many new names to be written as pairs."""
    names = drawn(rng, 4)
    text = [rng.choice(names) for _ in range(number + 1)]
    pool = [name for name in range(BASE, BASE + NAMES) if name not in text][:number]
    answer, left = [], text[0]
    for new, right in zip(pool, text[1:], strict=True):
        answer += [new, left, right]
        left = new
    return [*text, END], answer, pool


def drawn(rng: random.Random, number: int) -> list[int]:
    """So many names."""
    return rng.sample(range(BASE, BASE + NAMES), number)


@dataclass(frozen=True)
class Task:
    """What is learned.

    Attributes:
        draw: makes a sample of a size.
        sizes: of training.
        tests: sizes of each test.
        pool: most new names of any test.
    """

    draw: Callable[[random.Random, int], Sample]
    sizes: tuple[int, ...]
    tests: tuple[int, ...]
    pool: int = 0


TASKS = {
    "copy": Task(copied, (3, 4, 5), (5, 7, 9)),
    "repeated": Task(repeated, (4, 6, 8), (8, 16, 24)),
    "fresh": Task(fresh, (2, 3, 4), (4, 6, 8), pool=8),
}
ENTRIES: dict[str, dict[str, Any]] = {
    "copy: all": {},
    "copy: frequent": {"kind": Frequent},
    "copy: gated": {"kind": Gated},
    "repeated: all": {},
    "repeated: frequent": {"kind": Frequent},
    "repeated: gated": {"kind": Gated},
    "fresh: pool": {},
    "fresh: base": {"base": True},
    "fresh: relational": {"symbol_encoding": "relational", "new_symbols": True},
}


def inputs(samples: Sequence[Sample], entry: str, pool: int) -> dict[str, torch.Tensor]:
    """Tensors of some samples; answers end, and are padded by -100."""
    texts, answers, pools = zip(*samples, strict=True)
    if ENTRIES[entry].get("base"):
        rows = zip(answers, pools, strict=True)
        answers = tuple([3 + p.index(t) if t in p else t for t in a] for a, p in rows)
    ids = padded(texts, PAD)
    listed = first_occurrence(ids, ids >= BASE)
    if entry == "fresh: pool":  # as many as any answer may need, whatever this one does
        unused = [[n for n in range(BASE, BASE + NAMES) if n not in t][:pool] for t in texts]
        rows = [[n for n in s if n >= 0] + u for s, u in zip(listed.tolist(), unused, strict=True)]
        listed = padded(rows, -1)
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "stream_ids": listed,
        "labels": padded([[*answer, END] for answer in answers], -100),
    }


def padded(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    """Rows of one length."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


class NextOfPool(LogitsProcessor):
    """Leaves, of the streams that no text has yet, the first one.

    Args:
        ids: problems, (B, L).
        streams: names of all streams, (B, S).
    """

    def __init__(self, ids: torch.Tensor, streams: torch.Tensor):
        in_text = (streams[..., None] == ids[:, None]).any(-1)
        self.pool = streams.masked_fill(in_text, -1)

    def hidden(self, written_BT: torch.Tensor) -> torch.Tensor:
        """Returns which streams cannot be written next: (B, S)."""
        unwritten = (self.pool >= 0) & ~(self.pool[..., None] == written_BT[:, None]).any(-1)
        return unwritten & (unwritten.cumsum(-1) > 1)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        columns = torch.where(self.hidden(input_ids), self.pool, scores.shape[-1])
        wider = F.pad(scores, (0, 1)).scatter(1, columns, UNUSABLE)
        return wider[:, :-1]


# -- runs -----------------------------------------------------------------------------------------


def make_model(entry: str, kept: int) -> AlphaForConditionalGeneration:
    """A new model."""
    own = dict(ENTRIES[entry])
    kind, _ = own.pop("kind", None), own.pop("base", None)
    with sparse(kind, kept):
        return AlphaForConditionalGeneration(
            AlphaConfig(
                num_base_tokens=BASE, symbol_classes={"name": NAMES}, logit_scale=10.0,
                **{**SIZES, **own},
            )
        )  # fmt: skip


def loss_of(model: AlphaForConditionalGeneration, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of the answers; of a pool, only the next stream competes."""
    labels = batch["labels"]
    given = {name: x for name, x in batch.items() if name != "labels"}
    decoder_ids = model.prepare_decoder_input_ids_from_labels(labels)
    logits = model(**given, decoder_input_ids=decoder_ids, use_cache=False).logits
    if model.config.symbol_encoding == "streams":
        rule = NextOfPool(batch["input_ids"], batch["stream_ids"])
        steps = range(labels.shape[1])
        logits = torch.stack([rule(decoder_ids[:, : t + 1], logits[:, t]) for t in steps], 1)
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)


def train(entry: str, seed: int, args: argparse.Namespace) -> AlphaForConditionalGeneration:
    """Train a model."""
    task, rng = TASKS[entry.split(":")[0]], random.Random(seed)
    torch.manual_seed(seed)
    model = make_model(entry, args.kept).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, args.steps + 1, pct_start=0.1)
    for _ in range(args.steps):
        size = rng.choice(task.sizes)
        samples = [task.draw(rng, size) for _ in range(args.batch)]
        loss = loss_of(model, inputs(samples, entry, max(task.sizes)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def right(
    model: AlphaForConditionalGeneration, entry: str, size: int, args: argparse.Namespace
) -> float:
    """Share of right greedy answers to new problems of a size."""
    task, rng = TASKS[entry.split(":")[0]], random.Random(f"test {size}")
    batch = inputs([task.draw(rng, size) for _ in range(args.tests)], entry, task.pool)
    labels = batch.pop("labels")
    rules = LogitsProcessorList()
    if model.config.symbol_encoding == "streams":
        rules.append(NextOfPool(batch["input_ids"], batch["stream_ids"]))
    said = model.generate(
        **batch, num_beams=1, do_sample=False, max_length=labels.shape[1] + 1,
        logits_processor=rules,
    )[:, 1:]  # fmt: skip
    said = F.pad(said, (0, labels.shape[1] - said.shape[1]), value=PAD)
    return ((said == labels) | (labels == -100)).all(1).float().mean().item()


def run(entry: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train and test a model, unless that is done."""
    name = entry.replace(": ", "-")
    done = args.runs / f"{name}-{args.kept}-{args.steps}x{args.batch}-{seed}.json"
    if done.is_file():
        return json.loads(done.read_text(encoding="utf-8"))
    start = time.process_time()
    model = train(entry, seed, args)
    trained = time.process_time() - start
    task, found = TASKS[entry.split(":")[0]], {}
    for size in task.tests:
        start = time.process_time()
        found[str(size)] = right(model, entry, size, args)
        seconds = time.process_time() - start
    result = {
        "right": found, "seconds": seconds, "training seconds": round(trained, 1),
        "parameters": model.num_parameters(),
    }  # fmt: skip
    print(entry, seed, result, file=sys.stderr, flush=True)
    done.parent.mkdir(parents=True, exist_ok=True)
    done.write_text(json.dumps(result), encoding="utf-8")
    return result


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """A table for each task."""
    parts = []
    for task in dict.fromkeys(entry.split(":")[0] for entry in found):
        sizes = [str(size) for size in TASKS[task].tests]
        what = "new names" if TASKS[task].pool else "names"
        head = f"{task}: right answers, %; {what}:"
        lines, first = [], None
        for entry, seeds in found.items():
            if entry.split(":")[0] == task:
                runs = list(seeds.values())
                cells = [measure.share_and_spread([r["right"][n] for r in runs]) for n in sizes]
                seconds = sum(r["seconds"] for r in runs) / len(runs)
                first = first or seconds
                parameters = f"{runs[0]['parameters']:,}"
                cells += [f"{seconds / first:.2f}", parameters, str(len(runs))]
                lines.append([entry.split(": ")[1], *cells])
        columns = [head, *sizes, "seconds", "parameters", "seeds"]
        parts.append(measure.table(columns, lines))
    return "\n\n".join(parts)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default="*", help="entries, or patterns such as 'copy*', with commas")
    add("--seeds", type=integers, default=[0, 1, 2], help="of weights and batches (0,1,2)")
    add("--kept", type=int, default=2, help="streams that go on (2)")
    add("--steps", type=int, default=400, help="of each model (400)")
    add("--batch", type=int, default=32, help="samples of a step (32)")
    add("--tests", type=int, default=200, help="problems of each test (200)")
    add("--runs", type=Path, default=Path("runs/stream-numbers"), help="where runs are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print; a seed of all entries before the next seed."""
    args = parse(argv)
    patterns = args.only.split(",")
    entries = [e for e in ENTRIES if any(fnmatch(e, pattern) for pattern in patterns)]
    found: dict[str, dict[str, dict[str, Any]]] = {entry: {} for entry in entries}
    for seed in args.seeds:
        for entry in entries:
            found[entry][str(seed)] = run(entry, seed, args)
    measure.finish(table(found), found, args.out, argv)


if __name__ == "__main__":
    main()
