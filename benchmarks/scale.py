"""How time and memory grow with tokens, names, vocabulary and rows of data.

    python benchmarks/scale.py --out scale
    python benchmarks/scale.py --by rows --rows 10000 100000 1000000 --out scale-rows
    python benchmarks/scale.py --by tokens --tokens 1024 4096 16384 --fixed-names 4 \
        --kinds "own decoder" "own encoder-decoder" --train --out scale-training

Each figure is from a process of its own. Models (`relational`, random weights) read a text and
write its first token, or take a training step, those with a source with the text as its own answer;
the tokenizer (`words`) reads such a text 20 times; of rows, each step that training takes before
its first batch. The factor is what twice as much costs: 2 is linear, 4
quadratic, 1 constant. Memory is what the work holds at most beyond what was held before; of rows,
what no file stands behind. Seconds are the processor's.
"""

import math
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import pairs
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_alpha_decoder import AlphaForCausalLM
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM
from hf_alpha.modeling.tokenization_text import TextTokenizer
from measure import finish, in_own_process, parser_of, table
from retrofit import HOSTS, SIDES
from steps import most_held

RULES = {"name": {"pattern": "n[0-9]+", "count": 10}}


def own(cls: Any, vocabulary: int, names: int) -> Any:
    """A model of the package's own."""
    sides = {f"{side}_{k}": v for side in ("encoder", "decoder")
             for k, v in {"layers": 4, "attention_heads": 4, "ffn_dim": 1024}.items()}  # fmt: skip
    config = AlphaConfig(
        num_base_tokens=vocabulary,
        symbol_classes={"name": names},
        symbol_encoding="relational",
        d_model=256,
        is_encoder_decoder=cls is AlphaForConditionalGeneration,
        **sides,
    )
    return cls(config)


def over_llama(vocabulary: int, names: int) -> Any:
    """A small Llama with names."""
    host = HOSTS["llama"].__class__(**{**HOSTS["llama"].to_dict(), "vocab_size": vocabulary + 8})
    rows = {"name": list(range(vocabulary, vocabulary + 8))}
    config = RetrofitConfig(
        backbone_config=host,
        num_base_tokens=vocabulary,
        symbol_classes={"name": names},
        class_rows=rows,
        **SIDES["relational"],
    )
    return RetrofitForCausalLM(config)


MODELS: dict[str, Callable[[int, int], Any]] = {
    "own decoder": lambda *sizes: own(AlphaForCausalLM, *sizes),
    "decoder over a Llama": over_llama,
    "own encoder-decoder": lambda *sizes: own(AlphaForConditionalGeneration, *sizes),
}
KINDS = (*MODELS, "tokenizer")


def by_model(kind: str, train: bool, tokens: int, names: int, vocabulary: int) -> dict[str, float]:
    """Seconds and megabytes of a text and its first token, or of a training step."""
    torch.manual_seed(0)
    model = MODELS[kind](vocabulary, names).eval()
    draw = torch.randint(10, vocabulary, (1, tokens))
    symbols = torch.arange(vocabulary, vocabulary + names)
    places = torch.randperm(tokens)[: max(names, tokens // 2)]
    draw[0, places] = symbols[torch.arange(len(places)) % names]
    once = {"max_new_tokens": 1, "min_new_tokens": 1, "do_sample": False}

    def do(ids: torch.Tensor) -> None:
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if train:
            model.train()(**inputs, labels=ids).loss.backward()
            return
        with torch.inference_mode():
            model.generate(**inputs, **once)

    do(draw[:, :128])  # what libraries load
    megabytes = most_held(lambda: do(draw))
    start = time.process_time()
    do(draw)
    return {"seconds": time.process_time() - start, "MB": megabytes}


def by_tokenizer(tokens: int, names: int, vocabulary: int) -> dict[str, float]:
    """Seconds and megabytes of 20 texts."""
    rng = random.Random(0)
    words = [f"w{number}" for number in range(vocabulary)]
    texts = [
        " ".join(
            f"n{rng.randrange(names)}" if rng.random() < 0.5 else rng.choice(words)
            for _ in range(tokens)
        )
        for _ in range(20)
    ]
    rules = {"name": {**RULES["name"], "count": names}}
    tokenizer = TextTokenizer.from_texts([" ".join(words), "n0"], rules)
    tokenizer.encode_pairs(texts[:1])
    start = time.process_time()
    megabytes = most_held(lambda: tokenizer.encode_pairs(texts))
    return {"seconds": time.process_time() - start, "MB": megabytes}


def by_rows(rows: int) -> dict[str, dict[str, float]]:
    """Seconds and megabytes of each step on a file of pairs."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        pairs.write_rows(path, rows, 100)
        todo, before = pairs.steps(path, 0.05), pairs.memory()[1]
        for name in ("load", "look", "hold_out", "TextTokenizer.from_texts", "tokenize"):
            start = time.process_time()
            todo[name]()
            seconds = time.process_time() - start
            results[name] = {"seconds": seconds, "MB": pairs.memory()[1] - before}
    return results


def work(by: str, kind: str, size: int, fixed: Mapping[str, int], train: bool) -> Any:
    """Measure in this process."""
    torch.set_num_threads(1)
    if by == "rows":
        return by_rows(size)
    sizes = {**fixed, by: size}
    return by_tokenizer(**sizes) if kind == "tokenizer" else by_model(kind, train, **sizes)


def factors(sizes: Sequence[int], values: Sequence[float]) -> str:
    """What twice as much costs, between neighbours."""
    steps = zip(sizes, sizes[1:], values, values[1:], strict=False)
    return " ".join(
        f"{(after / before) ** (1 / math.log2(more / less)):.1f}" if min(before, after) > 0 else "-"
        for less, more, before, after in steps
    )


def lines(kinds: Mapping[str, Sequence[Mapping[str, float]]], sizes: Sequence[int]) -> list[Any]:
    """A line for each kind and quantity."""
    return [
        [kind, quantity, *(f"{figure[key]:,.3g}" if figure[key] < 1000 else f"{figure[key]:,.0f}"
         for figure in found), factors(sizes, [figure[key] for figure in found])]
        for kind, found in kinds.items()
        for key, quantity in (("seconds", "seconds"), ("MB", "memory, MB"))
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    grids = {
        "tokens": [100, 1024, 4096, 16384],
        "names": [1, 10, 100, 1000],
        "vocabulary": [1000, 8000, 32000, 128000],
        "rows": [10_000, 100_000, 1_000_000],
    }
    parser.add_argument("--by", nargs="+", choices=grids, default=list(grids))
    for name, default in grids.items():
        parser.add_argument(f"--{name}", type=int, nargs="+", default=default)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--fixed-names", type=int, default=10, help="where others grow (10)")
    parser.add_argument("--train", action="store_true", help="a training step of models")
    args = parser.parse_args(argv)
    same = {"tokens": 1024, "names": args.fixed_names, "vocabulary": 8000}
    data: dict[str, Any] = {}
    texts = []
    for by in args.by:
        sizes, kinds = getattr(args, by), ["rows"] if by == "rows" else args.kinds
        found = {
            kind: [in_own_process(work, by, kind, size, same, args.train) for size in sizes]
            for kind in kinds
        }
        if by == "rows":
            found = {step: [each[step] for each in found["rows"]] for step in found["rows"][0]}
        data[by] = {"sizes": sizes, "found": found}
        columns = [by, "", *(f"{size:,}" for size in sizes), "factor of twice as much"]
        fixed = ", ".join(f"{n:,} {name}" for name, n in same.items() if name != by)
        head = "a file of pairs" if by == "rows" else fixed
        texts.append(f"By {by} ({head}):\n\n" + table(columns, lines(found, sizes)))
    finish("\n\n".join(texts), data, args.out, argv)


if __name__ == "__main__":
    main()
