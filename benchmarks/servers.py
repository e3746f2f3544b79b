"""`hf-alpha serve` beside `transformers serve`: tokens a second, and the time to the first one.

    python benchmarks/servers.py --out serving

A converted Llama (`relational`, d 256, 6 layers, random weights) is served by the one, the Llama by
the other, each in processes of its own. So many clients ask one after the other, with streams;
texts have 40 words (or `--words`), answers all 16 tokens, or 8 and one of eight 96. Sides take
turns. Seconds are those of the processor, of all processes of a server; waits are scaled to them:
what a client would wait on a machine that does nothing else.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from gateway import process, used_by
from hf_alpha import SymbolConfig, get_symbol_model
from measure import finish, parser_of, table

WORDS = ["gave", "took", "sees", "to", "and", "the", "a", "book", "box", "key", "day", "red"]
NAMES = [f"{letter}{number}" for letter in "xyz" for number in range(9)]
OURS, PEER = "hf-alpha serve", "transformers serve"
SHORT, LONG, EVERY = 8, 96, 8
"""Tokens of an answer; of so many, one is long."""
SIZE = 8000
"""Of the vocabulary. Its last token ends an answer: with these weights none does so."""


def save_models(folder: Path) -> dict[str, Path]:
    """The Llama and its conversion, each with its tokenizer; no token ends an answer."""
    marks = ["<pad>", "<s>", "</s>", "<unk>"]
    words = [*marks, *WORDS, *NAMES]
    words += [f"w{number}" for number in range(len(words), SIZE)]
    vocabulary = {word: i for i, word in enumerate(words)}
    beneath = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    beneath.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=beneath, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        unk_token="<unk>",
    )  # fmt: skip
    torch.manual_seed(0)
    host = LlamaForCausalLM(LlamaConfig(
        vocab_size=SIZE, hidden_size=256, intermediate_size=704, num_hidden_layers=6,
        num_attention_heads=4, max_position_embeddings=2048, pad_token_id=0, bos_token_id=1,
        eos_token_id=None,
    ))  # fmt: skip
    host.generation_config.eos_token_id = SIZE - 1
    folders = {side: folder / side.split("-")[0].split()[0] for side in (OURS, PEER)}
    host.save_pretrained(folders[PEER])
    tokenizer.save_pretrained(folders[PEER])
    rules = {"name": {"pattern": "[xyz][0-9]", "count": len(NAMES)}}
    model, spelled = get_symbol_model(host, tokenizer, SymbolConfig("relational", symbols=rules))
    model.save_pretrained(folders[OURS])
    spelled.save_pretrained(folders[OURS])
    return folders


@contextmanager
def serving(side: str, folder: Path) -> Iterator[tuple[str, int]]:
    """The address of a server that answers, and its process."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = str(found.getsockname()[1])
    command = str(Path(sys.executable).with_name(side.split()[0]))
    told = ["--port", port]
    if side == PEER:
        told += ["--device", "cpu", "--dtype", "float32"]
    with process(command, "serve", str(folder), *told) as made:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                if httpx2.get(f"{url}/health", timeout=1).is_success:
                    break
            except httpx2.HTTPError:
                time.sleep(0.5)
        yield f"{url}/v1", made.pid


async def ask(
    client: httpx2.AsyncClient, model: str, number: int, tokens: int, words: int
) -> tuple[float, int]:
    """Seconds to the first token of an answer of at most so many, and how many it has."""
    draw = random.Random(number)
    names = draw.sample(NAMES, 5)
    prompt = " ".join(draw.choice(names if draw.random() < 0.4 else WORDS) for _ in range(words))
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "stream": True,
            "temperature": 0, "stream_options": {"include_usage": True}}  # fmt: skip
    began, first, usage = time.perf_counter(), None, ""
    async with client.stream("POST", "/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                first = first or time.perf_counter() - began
                usage = line if '"completion_tokens"' in line else usage
    assert first is not None and usage, f"{answer}: no answer"
    written = json.loads(usage[6:])["usage"]["completion_tokens"]
    assert written == tokens, f"{written} tokens in place of {tokens}"
    return first, written


def measure(
    url: str, pid: int, model: str, clients: int, lengths: Sequence[int], words: int
) -> dict[str, Any]:
    """Processor seconds, tokens and times to the first one, of so many clients at once."""

    async def run() -> list[tuple[float, int]]:
        waiting, found = iter(enumerate(lengths)), list[tuple[float, int]]()
        async with httpx2.AsyncClient(base_url=url, timeout=httpx2.Timeout(600)) as client:

            async def one_client() -> None:
                for number, tokens in waiting:
                    found.append(await ask(client, model, number, tokens, words))

            await asyncio.gather(*[one_client() for _ in range(clients)])
        return found

    before, began = used_by(pid), time.perf_counter()
    firsts, tokens = zip(*asyncio.run(run()), strict=True)
    used, wall = used_by(pid) - before, time.perf_counter() - began
    return {"processor": used, "wall": wall, "tokens": sum(tokens), "first": firsts}


def lengths_of(clients: int, mixed: bool) -> list[int]:
    """Tokens of each answer."""
    count = max(2 * clients, 8)
    return [LONG if n % EVERY == 0 else SHORT for n in range(count)] if mixed else [16] * count


def write(rows: Sequence[dict[str, Any]]) -> str:
    """The table: a line for each number of clients, kind of lengths and side."""
    lines = []
    kinds = [tuple(row[key] for key in ("words", "clients", "lengths", "side")) for row in rows]
    for key in dict.fromkeys(kinds):
        of_key = [row for row, kind in zip(rows, kinds, strict=True) if kind == key]
        rates = [row["tokens"] / row["processor"] for row in of_key]
        firsts = [statistics.median(row["first"]) * row["processor"] / row["wall"]
                  for row in of_key]  # fmt: skip
        lines.append([*map(str, key), f"{statistics.median(rates):.0f}",
                      f"{1e3 * statistics.median(firsts):.0f}"])  # fmt: skip
    columns = ("words", "clients", "answers", "side", "tokens a second", "first token: ms")
    return table(columns, lines, ("answers", "side"))


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--clients", type=int, nargs="+", default=[1, 8, 32], help="(1 8 32)")
    add("--words", type=int, nargs="+", default=[40], help="of a text (40)")
    add("--sides", nargs="+", choices=(OURS, PEER), default=[OURS, PEER], help="(both)")
    add("--rounds", type=int, default=2, help="(2)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args, rows = parse(argv), []
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        folders = save_models(Path(folder))
        for _ in range(args.rounds):
            for side in args.sides:
                model = folders[side].name if side == OURS else str(folders[side])
                with serving(side, folders[side]) as (url, pid):
                    measure(url, pid, model, 1, [SHORT], 40)
                    for words, clients, mixed in product(args.words, args.clients, (False, True)):
                        lengths, kind = lengths_of(clients, mixed), f"{SHORT} or {LONG}"
                        row = {"words": words, "clients": clients, "side": side}
                        row["lengths"] = kind if mixed else "16"
                        rows.append(row | measure(url, pid, model, clients, lengths, words))
                        print(row, file=sys.stderr, flush=True)
    finish(write(rows), {"settings": vars(args), "rows": rows}, args.out, argv)


if __name__ == "__main__":
    main()
