"""A user's file of pairs: reading it, the first look, dropping, holding out; rows/s and memory.

    python benchmarks/pairs.py --out pairs
    python benchmarks/pairs.py --rows 200000

The rows are such as `swap x y : ( x + y ) * x` and its answer, with two of 100 names, four places
for them and three operators: 1,024 problems up to renaming. Each step is timed
once, in the order in which training takes them. Memory is the largest that the process had
resident so far, without what it had before; files that are mapped into memory count, though the
system takes them back when it needs to.
"""

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from datasets import disable_progress_bars

import measure
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.keys import problem_keys, rows_seen
from hf_alpha.data.pairs import PairTexts, drop_bad, hold_out
from hf_alpha.data.rows import batches, load, problems, problems_in
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.first_look import FirstLook
from hf_alpha.train.trainers import BucketSampler, bucket_keys

RULES = {"variable": {"pattern": "[a-z][0-9]+", "count": 100}}
COLUMNS = ["step", "seconds", "rows/s", "peak memory, MB", "of it anonymous, MB"]


def write_rows(path: Path, rows: int, names: int, seed: int = 0) -> None:
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            x, y = (f"x{i}" for i in rng.sample(range(names), 2))
            places = [rng.random() < 0.5 for _ in range(4)]
            one, *two = (rng.choice("+-*/") for _ in range(3))
            sides = []
            for swapped in (False, True):
                a, b, c, d = (x if place != swapped else y for place in places)
                sides.append(f"( {a} {one} {b} ) {two[0]} {c} {two[1]} {d}")
            row = {"source": f"swap {x} {y} : {sides[0]}", "target": sides[1]}
            file.write(json.dumps(row) + "\n")


def memory() -> tuple[float, float]:
    """Megabytes of this process: the most resident so far, and what no file stands behind now."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    peak, anonymous = (
        int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("VmHWM", "RssAnon")
    )
    return peak / 1024, anonymous / 1024


def steps(path: Path, share: float) -> dict[str, Callable[[], Any]]:
    """What is done with a file, one after the other."""
    finder = NameFinder(RULES)
    results: dict[str, Any] = {}

    def read() -> None:
        results["data"] = load(path, source="source", target="target", finder=finder)

    def look() -> None:
        found = FirstLook(finder)
        for batch in batches(results["data"], "first look"):
            found.add(zip(problems(batch), batch["answer"], strict=True))
        found.check()

    def hold() -> None:
        results["sides"] = hold_out(results["data"], share, finder)

    def overlap() -> None:
        train, validation = results["sides"]
        keys = problem_keys(problems_in(train, "keys"), finder)
        rows_seen(problems_in(validation, "validation"), finder, keys)

    def vocabulary() -> None:
        texts = PairTexts(results["data"], finder)
        results["tokenizer"] = TextTokenizer.from_texts(texts, RULES)

    def encode() -> None:
        results["encoded"] = tokenize(results["sides"][0], results["tokenizer"])

    def first_batch() -> None:
        rows = results["encoded"]
        first = next(iter(BucketSampler(bucket_keys(rows), 64)))
        AlphaCollator(results["tokenizer"])([rows[first]])

    return {
        "find the names of the sources, nothing else": lambda: [
            finder.find(text)
            for batch in results["data"].iter(batch_size=1000)
            for text in batch["problem"]
        ],
        "load, again": read,
        "look": look,
        "drop_bad": lambda: drop_bad(results["data"], finder),
        "hold_out": hold,
        "renamings": overlap,
        "TextTokenizer.from_texts": vocabulary,
        "tokenize": encode,
        "order of batches, first batch": first_batch,
        "load": read,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = measure.parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--names", type=int, default=100, help="different ones (100)")
    parser.add_argument("--share", type=float, default=0.05, help="that is held out (0.05)")
    options = parser.parse_args(arguments)
    disable_progress_bars()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        write_rows(path, options.rows, options.names)
        before = memory()
        todo = steps(path, options.share)
        for name in ["load", *list(todo)[:-1]]:
            seconds = measure.timed(todo[name])
            peak, anonymous = (now - then for now, then in zip(memory(), before, strict=True))
            results[name] = {"seconds": seconds, "peak": peak, "anonymous": anonymous}
    lines = [
        [name, f"{f['seconds']:.1f}", f"{options.rows / f['seconds']:,.0f}", f"{f['peak']:.0f}",
         f"{f['anonymous']:.0f}"]
        for name, f in results.items()
    ]  # fmt: skip
    head = f"{options.rows:,} rows, {options.names} names\n\n"
    data = {"rows": options.rows, "steps": results}
    measure.finish(head + measure.table(COLUMNS, lines), data, options.out, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
