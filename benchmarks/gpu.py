"""Everything that wants a GPU, in one command: promises, kernels, time and memory, training.

    python benchmarks/gpu.py --out gpu          # six minutes on one H100 with 16 cores
    python benchmarks/gpu.py --small            # the same at sizes for a CPU

- promises: those of tests/promises.py, on the GPU, in float32 without TF32 and, close, in bfloat16:
  own encoder-decoders and decoders, T5, BART and Llama with a symbol layer, FOLNet, geometric.
- kernels: which attention the GPU runs for each encoding, by the names of its kernels, and which
  of SDPA's backends can do its work at all; compiled: the same with flex and `torch.compile`.
- d 768, d 2048: decoders beside the Llama that is their host, by tokens: prefill, training
  step, greedy decoding; time as a ratio of one round (median), and memory beyond what was held.
- training: `hf-alpha train` beside Transformers' Seq2SeqTrainer with a BART of that size.

Sections run in processes of their own, since an error of CUDA ends a process: what fails is a
result, and the others run. Rows are kept when they are found, results when a section is done.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

import measure
from gpu_sections import DTYPES, ENCODINGS, HOST, ORDER, SECTIONS, WORKS, Row, tried

START = time.monotonic()


# -- processes -------------------------------------------------------------------------------------


def stages(args: argparse.Namespace) -> list[tuple[int, list[tuple[str, str]]]]:
    """Seconds at most, and sections with their parts that run at once."""
    shares = [f"{dtype} {i}" for dtype in DTYPES for i in range(args.shares)]
    together = [*(("promises", share) for share in shares), ("kernels", "")]
    if not args.small:
        together.append(("compiled", ""))
    sizes = [(75, [("decoders", f"{width} {layers}")]) for width, layers in args.widths]
    return [(150, together), *sizes, (45, [("training", "")])]


def run_jobs(args: argparse.Namespace, jobs: list[tuple[str, str]], seconds: float) -> list[Row]:
    """Rows of the sections' parts, each in a process of its own, until the time is over."""
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for number, (section, part) in enumerate(jobs):
            rows, log = Path(folder) / f"{number}.jsonl", Path(folder) / f"{number}.log"
            command = [sys.executable, __file__, *args.given, "--child", section, part, str(rows)]
            with log.open("w") as out:
                process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            started.append((section, part, process, rows, log))
        end, found = time.monotonic() + seconds, []
        for section, part, process, rows, log in started:
            try:
                code = process.wait(max(0.1, end - time.monotonic()))
                error = f"ended with {code}: {log.read_text()[-1500:]}" if code else None
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                error = f"stopped after {seconds:.0f} s"
            lines = rows.read_text().splitlines() if rows.exists() else []
            found += [{"section": section, **json.loads(line)} for line in lines]
            if error:
                found.append({"section": section, "part": part, "error": error})
                say(f"{section} {part}: {error}")
            say(f"{section} {part}: {len(lines)} rows")
    return found


def run_here(args: argparse.Namespace, jobs: list[tuple[str, str]], seconds: float) -> list[Row]:
    """The same in this process, for small sizes."""
    found: list[Row] = []
    for section, part in jobs:
        args.say = lambda row, section=section: found.append({"section": section, **row})
        if isinstance(error := tried(partial(SECTIONS[section], args, part)), str):
            found.append({"section": section, "part": part, "error": error})
    return found


def say(text: str) -> None:
    print(f"{time.monotonic() - START:6.1f} s  {text}", flush=True)


# -- tables ----------------------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> str:
    """What was found, as Markdown."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found["errors" if set(row) == {"section", "part", "error"} else row["section"]].append(row)
    parts = []
    for section, write in {"promises": promise_tables, "kernels": kernel_table,
                           "compiled": compiled_table, "decoders": decoder_table,
                           "training": training_table}.items():  # fmt: skip
        if found[section]:
            parts.append(f"## {section}\n\n{write(found[section])}")
    errors = [f"- {row['section']} {row['part']}: {row['error']}" for row in found["errors"]]
    return "\n\n".join([*parts, *(["## errors\n\n" + "\n".join(errors)] if errors else [])])


def promise_tables(rows: Sequence[Row]) -> str:
    """Held of all, with the largest difference; then each that does not hold."""
    cells: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["dtype"], row["backbone"]][row["promise"]].append(row)
    used = [name for name in ORDER if any(name in by for by in cells.values())]

    def cell(tests: list[Row]) -> str:
        if not tests:
            return "-"
        held, most = sum(test["held"] for test in tests), max(test["difference"] for test in tests)
        return f"{held} of {len(tests)}, {most:.1e}"

    lines = [[*key, *(cell(by[name]) for name in used)] for key, by in sorted(cells.items())]
    broken = [
        f"- {row['dtype']}, {row['test']}: {row['difference']:.1e}; {row['said']}"
        for row in rows if not row["held"]
    ]  # fmt: skip
    text = measure.table(("dtype", "backbone", *used), lines, ["backbone"])
    return f"{text}\n\nNot held: {len(broken)} of {len(rows)}\n\n" + "\n".join(broken)


def joined(kernels: Any) -> str:
    return kernels if isinstance(kernels, str) else ", ".join(kernels) or "-"


def kernel_table(rows: Sequence[Row]) -> str:
    columns = ("model", "dtype", *WORKS, "backends")
    lines = [[joined(row.get(name, "-")) for name in columns] for row in rows]
    return measure.table(columns, lines, columns)


def compiled_table(rows: Sequence[Row]) -> str:
    lines = [
        [row["model"], row["way"], joined(row["kernels"]), f"{row.get('difference', 0):.1e}",
         str(row.get("seconds", "-"))] for row in rows
    ]  # fmt: skip
    return measure.table(("model", "way", "kernels", "difference", "s"), lines, ["way", "kernels"])


def decoder_table(rows: Sequence[Row]) -> str:
    """Milliseconds and megabytes of the host; of the sides, both as ratios."""
    host, lines = HOST, []
    sides = [side for side in ENCODINGS if side != "dual_part"]
    for row in rows:
        if "error" in row:
            lines.append([str(row["width"]), "-", row["side"], row["error"], *["-"] * len(sides)])
            continue
        times, most = row["seconds"], row["megabytes"]
        cells = []
        for side in (host, *sides):
            if not times.get(side) or side in row["errors"] or not times.get(host):
                cells.append(row["errors"].get(side, "-"))
            elif side == host:
                cells.append(f"{1e3 * statistics.median(times[host]):.1f}; {most[host]:,.0f}")
            else:
                pairs = zip(times[side], times[host], strict=False)
                quotient = statistics.median(one / two for one, two in pairs)
                cells.append(f"{quotient:.2f}; {most[side] / max(1.0, most[host]):.2f}")
        size = f"{row['width']}, {row['layers']} layers"
        lines.append([size, f"{row['texts']} x {row['tokens']:,}", row["work"], *cells])
    columns = ("d", "tokens", "work", f"{host}: ms; MB", *(f"{s}: time; memory" for s in sides))
    return measure.table(columns, lines, ["work"])


def training_table(rows: Sequence[Row]) -> str:
    lines = [
        [row["side"], *(f"{row[name]:,.0f}" for name in ("samples", "tokens"))]
        if "samples" in row else [row["side"], row["error"], "-"] for row in rows
    ]  # fmt: skip
    return measure.table(("side", "samples a second", "tokens a second"), lines)


# -- the command -----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = measure.parser_of(__doc__)
    add = parser.add_argument
    add("--small", action="store_true", help="sizes for a CPU, in one process")
    add("--device", help="cuda, with --small cpu")
    add("--budget", type=float, default=360, help="seconds, after which no section begins (360)")
    add("--shares", type=int, default=7, help="processes for the promises of each dtype (7)")
    add("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    add("--tests", help="files of promises, or tests of them, with commas (all)")
    add("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.device = args.device or ("cpu" if args.small else "cuda")
    args.given = list(sys.argv[1:] if argv is None else argv)
    sizes: Row = {"tokens": (1024, 4096, 16384), "widths": ((768, 12), (2048, 6)), "rounds": 3,
                  "long": 4.0, "new_tokens": 64, "vocabulary": 32_000, "kernel_width": 256,
                  "kernel_tokens": 512, "steps": 300, "dtypes": list(DTYPES)}  # fmt: skip
    if args.small:
        sizes = {"tokens": (16,), "widths": ((32, 1),), "rounds": 1, "long": 1.0, "new_tokens": 2,
                 "vocabulary": 1100, "kernel_width": 32, "kernel_tokens": 16,
                 "steps": 2, "dtypes": ["float32"]}  # fmt: skip
    vars(args).update(sizes)
    return args


def be_child(args: argparse.Namespace) -> None:
    """Run a part of a section; each row is written when it is found."""
    section, part, path = args.child
    with Path(path).open("a", encoding="utf-8") as file:

        def write(row: Row) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        args.say = write
        SECTIONS[section](args, part)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; results are kept after every stage."""
    args = parse(argv)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    if args.child:
        torch.set_num_threads(1)
        return be_child(args)
    rows: list[Row] = []
    options = {key: value for key, value in vars(args).items() if key not in ("child", "say")}
    for limit, jobs in stages(args):
        asked = [job for job in jobs if job[0] in args.only]
        left = args.budget - (time.monotonic() - START)
        if asked and left < 10:
            rows += [{"section": a, "part": b, "error": "no time was left"} for a, b in asked]
        elif asked:
            say(f"begins: {', '.join(dict.fromkeys(' '.join(job) for job in asked))}")
            rows += (run_here if args.small else run_jobs)(args, asked, min(limit, left))
        measure.keep(tables(rows), {"settings": options, "rows": rows}, args.out, argv, args.device)
    print(tables(rows))


if __name__ == "__main__":
    measure.run(main)
