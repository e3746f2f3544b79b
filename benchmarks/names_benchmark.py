"""The names benchmark on small models: a GPT-2, a Llama and a T5, as they are and converted.

    python benchmarks/names_benchmark.py --out names-benchmark

Each host is trained from scratch on questions of the suites with fixed names, those of the kind
`seen`; a byte-level BPE makes of a name what its subwords make of it. Then it is trained on twice,
for as many steps each: as it is, and converted with `relational` encoding, whose training says in
each row which words are names. All six are asked new questions, with names of all four kinds, by
the tasks of lm-evaluation-harness in `names/`, without examples: the question alone. The suites
are three whose answers take one step; the others take several, and longer training. A run that was
killed goes on where it stopped.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.utils import logging

import measure
from hf_alpha.convert import SymbolConfig, get_symbol_model
from hf_alpha.io.folders import new_folder, write_text
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe.yaml import parse_recipe
from runs import train_once

CHECKOUT = Path(__file__).parents[1]
sys.path.append(str(CHECKOUT))  # for benchmarks.names

from benchmarks.names.questions import Kind, ask, draw_names, marked  # noqa: E402
from benchmarks.names.suites import SUITES  # noqa: E402
from benchmarks.names.tasks import MEASURES  # noqa: E402

Pair = dict[str, Any]  # source, target, names
END, PAD = "</s>", "<pad>"
LONGEST_ANSWER = 40
EMPTY = -100


def make_host(kind: str, width: int, vocabulary: int) -> Any:
    """A small model with random weights."""
    torch.manual_seed(0)
    special = {"pad_token_id": 0, "eos_token_id": 1, "vocab_size": vocabulary}
    if kind == "gpt2":
        sizes = {"n_embd": width, "n_layer": 4, "n_head": 4, "n_positions": 512}
        off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        return GPT2LMHeadModel(GPT2Config(**special, **sizes, **off, bos_token_id=None))
    if kind == "llama":
        sizes = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": 4}
        heads = {"num_attention_heads": 4, "max_position_embeddings": 512, "bos_token_id": None}
        return LlamaForCausalLM(LlamaConfig(**special, **sizes, **heads))
    sizes = {"d_model": width, "d_kv": width // 4, "d_ff": 3 * width, "num_heads": 4}
    layers = {"num_layers": 3, "num_decoder_layers": 2, "dropout_rate": 0.0}
    return T5ForConditionalGeneration(
        T5Config(**special, **sizes, **layers, decoder_start_token_id=0)
    )


HOSTS = ("gpt2", "t5", "llama")
LEARNED = "propositional,sql,people"


# -- data -----------------------------------------------------------------------------------------


def pairs(args: argparse.Namespace) -> Iterator[Pair]:
    """Questions with names seen, as prompts and answers, the suites in turn."""
    rng = random.Random("training")
    names = args.suites.split(",")
    for number in range(args.pairs):
        suite = SUITES[names[number % len(names)]]
        question = suite.draw(rng, args.difficulty)
        drawn = draw_names(suite, question, Kind.SEEN, rng)
        yield {
            "source": str(ask(suite, question, drawn, (), True)),
            "target": str(marked(question.target, drawn, question.classes)),
            "names": drawn,
        }


def make_data(args: argparse.Namespace) -> list[Pair]:
    """The pairs of training, which are written once."""
    file = args.runs / "train.jsonl"
    if not file.is_file():
        args.runs.mkdir(parents=True, exist_ok=True)
        write_text(file, "".join(json.dumps(pair) + "\n" for pair in pairs(args)))
    return [json.loads(line) for line in file.read_text().splitlines()]


def make_tokenizer(rows: Sequence[Pair], size: int, ends: bool) -> PreTrainedTokenizerFast:
    """A byte-level BPE of the pairs; with `ends`, texts end with its end token, as T5's do."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[PAD, END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    texts = [f"{row['source']} {row['target']}" for row in rows[:5000]]
    tokenizer.train_from_iterator(texts, trainer)
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {END}", special_tokens=[(END, 1)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)


# -- training -------------------------------------------------------------------------------------


def encode(rows: Sequence[Pair], tokenizer: Any, decoder_alone: bool) -> list[tuple[Any, Any]]:
    """Inputs and labels: of a decoder alone, the answer goes on from the question."""
    encoded = []
    for row in rows:
        source = tokenizer(row["source"])["input_ids"]
        target = tokenizer(f" {row['target']}")["input_ids"]
        if decoder_alone:
            target.append(tokenizer.eos_token_id)
            encoded.append((source + target, [EMPTY] * len(source) + target))
        else:
            encoded.append((source, target))
    return [(torch.tensor(ids), torch.tensor(labels)) for ids, labels in encoded]


def batches(rows: Sequence[Any], size: int, steps: int, seed: int) -> Iterator[list[Any]]:
    """Batches of rows that are about as long as one another, for so many steps."""
    rng, made = random.Random(seed), 0
    while True:
        order = rng.sample(rows, len(rows))
        for start in range(0, len(order), 16 * size):
            pool = sorted(order[start : start + 16 * size], key=lambda row: len(row[0]))
            cut = [pool[i : i + size] for i in range(0, len(pool), size)]
            for batch in rng.sample(cut, len(cut)):
                if made == steps:
                    return
                made += 1
                yield batch


def train(model: Any, rows: Sequence[Any], args: argparse.Namespace, steps: int, seed: int) -> None:
    """Train a model of Transformers on encoded pairs, with a cosine schedule."""
    optimizer = torch.optim.AdamW(
        model.parameters(), args.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    warmup = min(100, steps // 4)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=warmup),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps - warmup),
        ],
        [warmup],
    )
    model.train()
    for step, batch in enumerate(batches(rows, args.batch, steps, seed), 1):
        ids = pad_sequence([ids for ids, _ in batch], True)
        mask = pad_sequence([torch.ones_like(ids) for ids, _ in batch], True)
        labels = pad_sequence([labels for _, labels in batch], True, EMPTY)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"  step {step}/{steps}  loss {loss.item():.3f}", flush=True)


def train_host(
    kind: str, start: Path | None, out: Path, rows: Sequence[Pair], args: argparse.Namespace
) -> Path:
    """Train a host from scratch, or on from where it is, once."""
    if out.is_dir():
        return out
    tokenizer = make_tokenizer(rows, args.tokens, kind == "t5")
    if start is None:
        model, steps = make_host(kind, args.width, len(tokenizer)), args.steps
    else:
        model, steps = load_host_model(kind, start), args.tuning_steps
    began = time.process_time()
    train(model, encode(rows, tokenizer, kind != "t5"), args, steps, seed=start is not None)
    with new_folder(out) as folder:
        for saved in (model, tokenizer):
            saved.save_pretrained(folder)
    print(
        f"{out.name}: {steps} steps, {time.process_time() - began:.0f} processor seconds",
        flush=True,
    )
    return out


def load_host_model(kind: str, folder: Path) -> Any:
    """A host that was trained."""
    classes = {"gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM, "t5": T5ForConditionalGeneration}
    return classes[kind].from_pretrained(folder)


def train_converted(kind: str, host: Path, rows: Sequence[Pair], args: argparse.Namespace) -> Path:
    """Convert a trained host, and train it on, once."""
    start, out = args.runs / f"{kind}-start", args.runs / f"{kind}-relational"
    if not start.is_dir():
        rule = {"name": {"column": "names", "count": args.names}}
        tokenizer = make_tokenizer(rows, args.tokens, kind == "t5")
        config = SymbolConfig("relational", symbols=rule)
        model, tokenizer = get_symbol_model(load_host_model(kind, host), tokenizer, config)
        with new_folder(start) as folder:
            for saved in (model, tokenizer):
                saved.save_pretrained(folder)
    training = {
        "output_dir": str(out), "max_steps": args.tuning_steps, "report_to": "none",
        "per_device_train_batch_size": args.batch, "learning_rate": args.learning_rate,
        "lr_scheduler_type": "cosine", "warmup_steps": min(100, args.tuning_steps // 4),
        "adam_beta2": 0.98, "save_strategy": "no", "logging_steps": 200, "disable_tqdm": True,
    }  # fmt: skip
    recipe = parse_recipe(
        {
            "task": "text",
            "data": {"train": str(args.runs / "train.jsonl")},
            "checkpoint": str(start),
            "symbols": {"name": {"column": "names", "count": args.names}},
            "training": training,
        }
    )
    return train_once(recipe, out)


# -- the command ----------------------------------------------------------------------------------


def asked(kind: str, folder: Path, converted: bool) -> tuple[Any, int]:
    """A trained model, as the harness asks it, and its number of parameters."""
    from lm_eval.models.huggingface import HFLM

    from benchmarks.names.model import SymbolModel

    if converted:
        lm = SymbolModel(*load_checkpoint(folder), LONGEST_ANSWER)
    else:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        backend = "seq2seq" if kind == "t5" else "causal"
        model = load_host_model(kind, folder).eval()
        lm = HFLM(model, backend=backend, tokenizer=tokenizer, device="cpu", batch_size=32)
    return lm, sum(p.numel() for p in lm.model.parameters())


def measured(lm: Any, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Each measure of a model, by suite and over all of them."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    metadata = {
        "questions": args.questions, "difficulty": args.difficulty, "namings": args.namings,
        "examples": 0,
    }  # fmt: skip
    found = simple_evaluate(
        lm,
        tasks=[f"names_{suite}" for suite in args.suites.split(",")],
        task_manager=TaskManager(
            include_path=str(CHECKOUT / "benchmarks" / "names"),
            include_defaults=False,
            metadata=metadata,
        ),
        gen_kwargs={"max_gen_toks": LONGEST_ANSWER, "until": ["\n"]},
        bootstrap_iters=0,
    )["results"]
    by_suite = {
        task.removeprefix("names_"): {name: row[f"{name},none"] for name in MEASURES}
        for task, row in found.items()
    }
    rows = list(by_suite.values())
    by_suite["all"] = {name: sum(row[name] for row in rows) / len(rows) for name in MEASURES}
    return by_suite


def make_table(scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Right answers by kind of names, and what renaming changes, in per cent."""
    shown = [*map(str, Kind), "changed", "right_to_wrong", "always", "alpha_covariance"]
    lines = [
        [f"`{model}`", suite, *(f"{100 * one[name]:.1f}" for name in shown)]
        for model, suites in scores.items()
        for suite, one in suites.items()
    ]
    heads = [name.replace("_", " ") for name in shown]
    return measure.table(["model", "suite", *heads], lines, ("suite",))


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", default=",".join(HOSTS), help=f"({','.join(HOSTS)})")
    add("--suites", default=LEARNED, help=f"of training and test ({LEARNED})")
    add("--difficulty", type=int, default=1, help="of training and test (1)")
    add("--pairs", type=int, default=30_000, help="of training (30,000)")
    add("--tokens", type=int, default=700, help="of the tokenizer (700)")
    add("--names", type=int, default=24, help="symbols of a converted model (24)")
    add("--width", type=int, default=96, help="of the models (96)")
    add("--batch", type=int, default=32, help="pairs in a batch (32)")
    add("--learning-rate", type=float, default=0.002, help="(0.002)")
    add("--steps", type=int, default=3000, help="of a host's training (3000)")
    add("--tuning-steps", type=int, default=700, help="of each model's training behind that (700)")
    add("--questions", type=int, default=30, help="of each suite in the test (30)")
    add("--namings", type=int, default=2, help="of each question with each kind of names (2)")
    add("--runs", type=Path, default=Path("runs/names-benchmark"), help="where models are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, ask and print."""
    args = parse(argv)
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    rows, scores, sizes = make_data(args), dict[str, Any](), dict[str, int]()
    for kind in args.hosts.split(","):
        host = train_host(kind, None, args.runs / kind, rows, args)
        plain = train_host(kind, host, args.runs / f"{kind}-on", rows, args)
        converted = train_converted(kind, host, rows, args)
        for name, folder in ((kind, plain), (f"{kind}-relational", converted)):
            lm, sizes[name] = asked(kind, folder, folder is converted)
            scores[name] = measured(lm, args)
    measure.finish(make_table(scores), {"scores": scores, "parameters": sizes}, args.out, argv)


if __name__ == "__main__":
    main()
