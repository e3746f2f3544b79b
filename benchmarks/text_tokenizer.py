"""The tokenizer for texts with names against the fast tokenizer beneath it alone.

    python benchmarks/text_tokenizer.py --texts sst2/train.tsv --out text_tokenizer

Rows a second of `encode_pairs`, in batches as `datasets.map` makes them, and of `encode_batch` and
lists of ids of the same tokenizer without names, on the texts as they are: a byte-level BPE, or
words, which the tokenizer beneath finds cut, so that its peer cuts them by the same expression. The
texts are made (`swap x y : ( x + y ) * x`), or the first column of a file, in which the
words with at least nine letters are names. Set TOKENIZERS_PARALLELISM=false for one thread.
"""

import random
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, pre_tokenizers

from hf_alpha.modeling.text_pieces import WORD
from hf_alpha.modeling.tokenization_text import TextTokenizer
from measure import clocked_in_turns, finish, parser_of, ratios, run, table, three

OURS, PEER = "encode_pairs", "the tokenizer beneath"
BATCH = 1000
MADE = ("words", "bpe:300")


def made_texts(count: int) -> list[str]:
    """Texts with two names each."""
    draw = random.Random(0)
    pairs = (draw.sample(string.ascii_lowercase, 2) for _ in range(count))
    return [f"swap {x} {y} : ( {x} + {y} ) * {x}" for x, y in pairs]


def file_texts(path: Path, count: int) -> list[str]:
    """The first column of a file, without its head."""
    lines = path.read_text(encoding="utf-8").splitlines()[1 : count + 1]
    return [line.split("\t")[0].strip() for line in lines]


def measure(
    texts: list[str], symbols: Mapping[str, Any], kind: str, rounds: int
) -> dict[str, list[float]]:
    """The processor's seconds of both sides for all texts."""
    tokenizer = TextTokenizer.from_texts(texts, symbols, kind)
    beneath = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    if kind == "words":
        beneath.pre_tokenizer = pre_tokenizers.Split(Regex(WORD.pattern), "isolated")
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    sides: dict[str, Callable[[], object]] = {
        OURS: lambda: [row for batch in batches for row in tokenizer.encode_pairs(batch)],
        PEER: lambda: [one.ids for batch in batches for one in beneath.encode_batch(batch)],
    }
    return clocked_in_turns(sides, rounds)[1]


def show(data: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for name, result in data.items():
        seconds = result["seconds"]
        speeds = [three([result["rows"] / s for s in seconds[side]], 0) for side in (OURS, PEER)]
        lines.append([name, *speeds, three(ratios(seconds[OURS], seconds[PEER]), 2, "x")])
    return table(["texts", f"{OURS}, rows/s", f"{PEER}, rows/s", "time, ours / peer"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="made texts (50000)")
    parser.add_argument("--texts", type=Path, help="a file of texts, tab-separated, with a head")
    parser.add_argument("--lines", type=int, default=20_000, help="of that file (20000)")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    letters = {"variable": {"pattern": "[a-z]", "count": 26}}
    jobs = {f"made, {kind}": (made_texts(args.rows), letters, kind) for kind in MADE}
    if args.texts:
        words = {"word": {"pattern": "[a-z]{9,}"}}
        jobs[f"{args.texts.name}, bpe:8000"] = (
            file_texts(args.texts, args.lines),
            words,
            "bpe:8000",
        )
    data = {
        name: {"rows": len(job[0]), "seconds": measure(*job, args.rounds)}
        for name, job in jobs.items()
    }
    finish(show(data), data, args.out, argv)


if __name__ == "__main__":
    run(main)
