"""Does a small decoder call tools that it has never heard of? Plain and converted, at equal steps.

    python benchmarks/chats.py --seeds 0 --steps 1200 --out chats

A Llama of random weights learns to answer a question by a call of one of 2 or 3 tools, whose names
and parameters are drawn for each chat: what a tool is for is said by its description. Names are
those of training (one token each), or others, and there are as many tools or more. Models are
trained alike:

- plain: as it is.
- canonical: names written as words of the host by first occurrence, and back.
- relational: converted by `hf_alpha.get_symbol_model`.

The rule of both is {rule: tools}. A call is right if each of its tokens is the likeliest behind
those before it, so if greedy search writes it. What is measured is kept in `--runs`.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import hf_alpha
import measure

ACTIONS = {
    "the weather in": "How is the weather in {}?",
    "the price of": "What does {} cost?",
    "the age of": "How old is {}?",
    "the owner of": "Who owns {}?",
    "the way to": "How do I get to {}?",
    "the number of people in": "How many people are in {}?",
    "the news about": "What is new about {}?",
    "the opening hours of": "When does {} open?",
    "a song about": "Sing a song about {}.",
    "the meaning of": "What does {} mean?",
    "a picture of": "Show me {}.",
    "the weight of": "How heavy is {}?",
}
"""What a tool tells -> how people ask for it."""
VALUES = [
    "Paris",
    "Rome",
    "Oslo",
    "Lima",
    "Kyoto",
    "Cairo",
    "Quito",
    "Delhi",
    "milk",
    "bread",
    "tea",
    "salt",
    "Anna",
    "Bert",
    "Carl",
    "Dora",
]
SEEN = [
    f"{verb}{noun}"
    for verb in ("get", "find", "lookup", "fetch", "read", "ask")
    for noun in ("data", "info", "item", "value", "record", "entry", "page", "list")
]
SEEN_PARAMETERS = [
    "name",
    "place",
    "what",
    "key",
    "query",
    "text",
    "word",
    "topic",
    "title",
    "subject",
    "term",
    "target",
]
UNSEEN = [
    f"{noun}{joint}{verb}"
    for noun in ("crm", "vault", "ledger", "sensor", "zeta", "fleet", "kiosk", "orchid")
    for verb, joint in (("Lookup", ""), ("probe", "."), ("v2", "_"), ("dispatch", "__"))
]
UNSEEN_PARAMETERS = [
    "q",
    "ident",
    "slug",
    "handle",
    "sku",
    "zone",
    "ref_no",
    "arg0",
    "payload",
    "fqdn",
]
KINDS = {
    "names of training": (2, 3, SEEN, SEEN_PARAMETERS),
    "other names": (2, 3, UNSEEN, UNSEEN_PARAMETERS),
    "5 or 6 tools": (5, 6, SEEN, SEEN_PARAMETERS),
    "5 or 6 tools, other names": (5, 6, UNSEEN, UNSEEN_PARAMETERS),
}
"""Tests: fewest and most tools, and the names of tools and parameters."""
RULES = {"tool": {"rule": "tools", "count": 16}}
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SIZES = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128,
    "max_position_embeddings": 1024,
}  # fmt: skip
BATCH = 16

Row = dict[str, Any]


# -- chats ----------------------------------------------------------------------------------------


def chat(rng: random.Random, kind: str = "names of training") -> Row:
    """Draw a chat: `tools`, and `messages` of a question and the call that answers it."""
    fewest, most, names, parameters = KINDS[kind]
    actions = rng.sample([*ACTIONS], rng.randint(fewest, most))
    tools = [
        tool(name, rng.choice(parameters), action)
        for name, action in zip(rng.sample(names, len(actions)), actions, strict=True)
    ]
    asked, value = rng.randrange(len(tools)), rng.choice(VALUES)
    function = tools[asked]["function"]
    arguments = dict.fromkeys(function["parameters"]["properties"], value)
    call = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    question = {"role": "user", "content": ACTIONS[actions[asked]].format(value)}
    return {"tools": tools, "messages": [question, {"role": "assistant", "tool_calls": [call]}]}


def tool(name: str, parameter: str, action: str) -> Row:
    """Return the schema of a tool."""
    properties = {parameter: {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    described = {"name": name, "description": f"Tells {action} it.", "parameters": parameters}
    return {"type": "function", "function": described}


def host_tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer of chats as those of training, written by a template."""
    beneath = Tokenizer(models.BPE())
    beneath.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    beneath.decoder = decoders.ByteLevel()
    special = ["<pad>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    own = {"pad_token": "<pad>", "eos_token": "<|im_end|>", "chat_template": template}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=beneath, **own)
    rng = random.Random(0)
    texts = [written(tokenizer, chat(rng), tokenize=False)[1] for _ in range(500)]
    beneath.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=beneath, **own)


def written(tokenizer: Any, row: Row, **options: Any) -> tuple[Any, Any]:
    """Return a chat as the model reads it before its answer, and with it: ids, or texts."""
    options = {"tools": row["tools"], "return_dict": False, **options}
    asked = tokenizer.apply_chat_template(
        row["messages"][:1], add_generation_prompt=True, **options
    )
    return asked, tokenizer.apply_chat_template(row["messages"], **options)


def batch(tokenizer: Any, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
    """Return a batch of chats (B, L), with labels for the answers."""
    pairs = [written(tokenizer, row) for row in rows]
    shape = len(rows), max(len(whole) for _, whole in pairs)
    ids_BL = torch.full(shape, tokenizer.pad_token_id)
    mask_BL, labels_BL = torch.zeros_like(ids_BL), torch.full(shape, -100)
    for number, (asked, whole) in enumerate(pairs):
        assert whole[: len(asked)] == asked
        ids_BL[number, : len(whole)] = torch.tensor(whole)
        mask_BL[number, : len(whole)] = 1
        labels_BL[number, len(asked) : len(whole)] = torch.tensor(whole[len(asked) :])
    return {"input_ids": ids_BL, "attention_mask": mask_BL, "labels": labels_BL}


# -- training and tests ---------------------------------------------------------------------------


def made(way: str, seed: int) -> tuple[Any, Any]:
    """Return a model of random weights and its tokenizer."""
    tokenizer = host_tokenizer()
    torch.manual_seed(seed)
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    host = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), bos_token_id=None, **SIZES, **special)
    )
    if way == "plain":
        return host, tokenizer
    if way == "canonical":
        return host, hf_alpha.CanonicalTokenizer.from_tokenizer(tokenizer, RULES)
    return hf_alpha.get_symbol_model(host, tokenizer, hf_alpha.SymbolConfig(way, symbols=RULES))


def train(model: Any, batches: Iterator[Any], steps: int) -> float:
    """Train a model; return the mean loss of the last steps."""
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, (0.9, 0.98), weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * max(0.05, 1 - step / steps)
    )
    mean = 0.0
    for step in range(steps):
        loss = model(**next(batches)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        mean = 0.9 * mean + 0.1 * loss.item() if step else loss.item()
        if step % 100 == 99:
            print(f"{step + 1}: loss {mean:.4f}", file=sys.stderr, flush=True)
    return mean


@torch.no_grad()
def share_right(model: Any, tokenizer: Any, rows: Sequence[Row]) -> float:
    """Return the share of chats whose call is right in all tokens."""
    right = 0
    for start in range(0, len(rows), BATCH):
        inputs = batch(tokenizer, rows[start : start + BATCH])
        labels_BT = inputs.pop("labels")[:, 1:]
        predicted_BT = model(**inputs).logits[:, :-1].argmax(-1)
        right += int(((predicted_BT == labels_BT) | (labels_BT == -100)).all(1).sum())
    return right / len(rows)


def run(way: str, seed: int, steps: int, count: int) -> dict[str, Any]:
    """Train and test one model."""
    model, tokenizer = made(way, seed)
    rng, start = random.Random(seed + 1), time.process_time()
    rows = ([chat(rng) for _ in range(BATCH)] for _ in range(steps))
    loss = train(model, (batch(tokenizer, some) for some in rows), steps)
    minutes = (time.process_time() - start) / 60
    model.eval()
    tests = random.Random(-1)
    drawn = {kind: [chat(tests, kind) for _ in range(count)] for kind in KINDS}
    right = {kind: share_right(model, tokenizer, some) for kind, some in drawn.items()}
    return {"loss": loss, "minutes": minutes, "right": right}


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return right calls in per cent, by model and kind of names."""
    lines = [
        [
            way,
            *(measure.share_and_spread([run["right"][kind] for run in runs]) for kind in KINDS),
            f"{sum(run['minutes'] for run in runs) / len(runs):.1f}",
        ]
        for way, runs in results.items()
    ]
    return measure.table(("model", *KINDS, "minutes"), lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", default="relational,canonical,plain")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--tests", type=int, default=200, help="chats of each kind")
    parser.add_argument("--runs", type=Path, default=Path("runs/chats"), help="what is done")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    args.runs.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[Any]] = {way: [] for way in args.models.split(",")}
    for seed, way in product(args.seeds.split(","), results):
        file = args.runs / f"{way}-{args.steps}-{seed}.json"
        if not file.exists():
            file.write_text(json.dumps(run(way, int(seed), args.steps, args.tests)))
        results[way].append(json.loads(file.read_text()))
    data = {"steps": args.steps, "tests": args.tests, "models": results}
    measure.finish(table(results), data, args.out, argv)


if __name__ == "__main__":
    main()
