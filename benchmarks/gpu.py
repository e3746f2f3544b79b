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
import gc
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import Phase, settings
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import BartConfig, BartForConditionalGeneration, LlamaConfig, Seq2SeqTrainer

import measure
import retrofit
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.text.swapping import swapping_pairs
from hf_alpha.train import train
from streams import Batch, Step, generation, training_step

TESTS = measure.ROOT / "tests"
sys.path.append(str(TESTS))
import promises  # type: ignore[import-not-found]  # noqa: E402

Row = dict[str, Any]
START = time.monotonic()
LOOSE = 0.1
"""Absolute and relative: what is close in bfloat16."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ENCODINGS = ("learned", "dual_part", "streams", "relational")
retrofit.SIDES["learned"] = {"symbol_encoding": "learned"}
NAMES = 4
WORKS = ("prefill", "training", "decoding")
BACKBONES = {
    "own encoder-decoder": "test_alpha_(?!decoder)",
    "own decoder": "test_alpha_decoder",
    "T5": "test_retrofit.py::TestT5(?!v|G)",
    "BART": "test_retrofit.py::TestBart",
    "Llama": "test_retrofit.py::TestLlama",
    "FOLNet": "test_folnet",
    "geometric": "test_modeling_geometric.py::test_(padding|the_order|no_segments)",
}
"""Backbone -> which tests are its promises."""
ORDER = ("Renaming", "Extension", "ExactExtension", "NoExtension", "Batching", "DecoderPrompts",
         "Caching", "Conversion", "RoundTrip", "Training")  # fmt: skip
NOT_THERE = re.compile("many_times|without_the_package")  # hours; a process on the CPU


# -- promises --------------------------------------------------------------------------------------


class Noted:
    """A plugin of pytest that runs a share of the promises and notes how far each was missed."""

    def __init__(self, args: argparse.Namespace, dtype: str, share: int):
        self.args, self.dtype, self.share = args, dtype, share
        self.close, self.rows, self.difference = torch.testing.assert_close, [], 0.0
        self.exceeded: list[str] = []

    def assert_close(self, one: Any, two: Any, **options: Any) -> None:
        """Note the largest difference; what is not close fails a test when it is at its end."""
        if isinstance(one, torch.Tensor) and one.shape == two.shape and one.is_floating_point():
            usable = (two > promises.UNUSABLE) & (two < -promises.UNUSABLE)
            difference = (one - two)[usable].abs().double()
            self.difference = max([self.difference, *difference.max()[None].tolist()]
                                  if difference.numel() else [self.difference])  # fmt: skip
        loose = {"atol": LOOSE, "rtol": LOOSE} if self.dtype == "bfloat16" else {}
        try:
            self.close(one, two, **{**options, **loose})
        except AssertionError as error:
            self.exceeded.append(str(error))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = [
            item for item in items if backbone_of(item.nodeid) and not NOT_THERE.search(item.name)
        ]
        if self.dtype == "bfloat16":
            found = [item for item in found if promise_of(item) != "Training"]
        found.sort(key=lambda item: ORDER.index(promise_of(item)))
        items[:] = found[self.share :: self.args.shares]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        report = yield
        if call.when == "call" or report.failed:
            said = self.exceeded[:1] or ([str(call.excinfo.value)] if call.excinfo else [])
            self.args.say(
                {"test": item.nodeid, "promise": promise_of(item), "dtype": self.dtype,
                 "backbone": backbone_of(item.nodeid), "held": report.passed and not self.exceeded,
                 "difference": self.difference, "seconds": round(call.duration, 2),
                 "said": " ".join(" ".join(said).split())[:300]}
            )  # fmt: skip
            self.exceeded, self.difference = [], 0.0
        return report


def backbone_of(test: str) -> str | None:
    return next((name for name, part in BACKBONES.items() if re.search(part, test)), None)


def promise_of(item: Any) -> str:
    """The class that states it; `Training` also of a test outside of promises.py."""
    stated = item.function.__qualname__.split(".")[0]
    return stated if stated in ORDER else "Batching" if "geometric" in item.nodeid else "Training"


def check_promises(args: argparse.Namespace, part: str) -> None:
    """Run the tests of a share of the promises, in one dtype."""
    dtype, share = part.split()
    noted = Noted(args, dtype, int(share))
    before, tie, double = dict(promises.PLACE), promises.TIE, promises.Family.in_double
    promises.PLACE.update(device=args.device, dtype=DTYPES[dtype])
    if dtype == "bfloat16":
        promises.TIE, promises.Family.in_double = LOOSE, False
    settings.register_profile("gpu", deadline=None, phases=[Phase.generate], database=None)
    profile = settings.get_current_profile_name()
    settings.load_profile("gpu")
    torch.testing.assert_close = noted.assert_close
    files = [str(TESTS / "families"), str(TESTS / "modeling" / "test_modeling_geometric.py")]
    files = args.tests.split(",") if args.tests else files
    options = f"-s --noconftest -c /dev/null --rootdir={TESTS} --import-mode=importlib"
    quiet = "-p no:cacheprovider -p no:terminal -p no:warnings --continue-on-collection-errors"
    try:
        code = pytest.main([*options.split(), *quiet.split(), *files], plugins=[noted])
    finally:
        torch.testing.assert_close = noted.close
        settings.load_profile(profile)
        promises.TIE, promises.Family.in_double = tie, double
        promises.PLACE.clear()
        promises.PLACE.update(before)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}")


# -- models ----------------------------------------------------------------------------------------


def make_decoder(args: argparse.Namespace, width: int, layers: int, side: str) -> Any:
    """A Llama, or one with a symbol layer."""
    head = 128 if width > 1024 else min(64, width // 2)
    retrofit.HOSTS["llama"] = LlamaConfig(
        **{**retrofit.SMALL, "vocab_size": args.vocabulary}, hidden_size=width,
        intermediate_size=8 * width // 3 // 64 * 64 or width, num_hidden_layers=layers,
        num_attention_heads=width // head, max_position_embeddings=1 << 15,
    )  # fmt: skip
    with torch.device(args.device):
        return retrofit.make_model(SimpleNamespace(host="llama", names=[NAMES]), side)


def make_pair(args: argparse.Namespace, width: int, layers: int, side: str) -> Any:
    """An encoder-decoder of this package."""
    sizes = {"layers": layers, "attention_heads": max(2, width // 64), "ffn_dim": 4 * width}
    both = {f"{part}_{k}": v for part in ("encoder", "decoder") for k, v in sizes.items()}
    config = AlphaConfig(
        num_base_tokens=args.vocabulary - NAMES, symbol_classes={"name": NAMES}, d_model=width,
        dropout=0.0, symbol_encoding=side, **both,
    )  # fmt: skip
    return AlphaForConditionalGeneration(config).to(args.device)


def draw_batch(args: argparse.Namespace, pair: bool, rows: int, tokens: int) -> Batch:
    """Texts in which half of the tokens are names; a decoder learns all but the first ones."""
    retrofit.HOSTS["llama"] = LlamaConfig(**{**retrofit.SMALL, "vocab_size": args.vocabulary})
    asked = SimpleNamespace(host="llama", names=[NAMES], batch=rows, length=tokens, target=8)
    batch = {name: x.to(args.device) for name, x in retrofit.draw_batch(asked, NAMES).items()}
    del batch["stream_ids"]
    if not pair:
        batch["labels"] = batch["input_ids"].clone()
        batch["labels"][:, :NAMES] = -100
    return batch


def prepare(model: Any, batch: Batch, work: str, new_tokens: int) -> Step:
    """One step of a kind of work."""
    if work == "training":
        return training_step(model, {name: batch[name] for name in ("input_ids", "labels")})
    if work == "decoding":
        inputs = {name: x for name, x in batch.items() if name != "labels"}
        return generation(model, inputs, 1, new_tokens)
    pair = model.config.is_encoder_decoder
    more = {"decoder_input_ids": batch["labels"]} if pair else {"logits_to_keep": 1}

    def prefill() -> Any:
        model.eval()
        with torch.inference_mode():
            return model(input_ids=batch["input_ids"], use_cache=not pair, **more).logits

    return prefill


def tried(step: Callable[[], Any]) -> Any:
    """What a step gives, or its error as text; nothing of it stays on the GPU."""
    try:
        return step()
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        said = f"{type(error).__name__}: {lines[0][:200]}"
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return "out of memory" if "OutOfMemory" in said else said


# -- kernels ---------------------------------------------------------------------------------------

ATTENTION = re.compile("flash|fmha|sdpa|mha|efficient_attention|softmax|flex|triton_tem", re.I)


def attention_kernels(step: Step, device: str) -> list[str]:
    """Names of the kernels of attention that a step runs; on a CPU, of operators."""
    step()
    cuda = device.startswith("cuda")
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if cuda else []
    with torch.profiler.profile(activities=kinds) as seen:
        step()
        measure.synchronise(device)
    names = {e.name for e in seen.events() if (e.device_type.name == "CUDA") == cuda}
    return sorted({short(name) for name in names if ATTENTION.search(name) and "Log" not in name})


def short(kernel: str) -> str:
    """A kernel's name without its types and arguments."""
    bare = kernel.replace("(anonymous namespace)::", "")
    found = re.search(r"[\w.]+(?=[<(]|$)", bare)
    return (found[0] if found else bare)[:70]


def find_kernels(args: argparse.Namespace, part: str) -> None:
    """Of small models of both kinds, of each encoding and dtype."""
    for name, dtype in DTYPES.items():
        for side in (retrofit.BACKBONE, *ENCODINGS):
            for make in (make_decoder, make_pair):
                if make is make_decoder or side != retrofit.BACKBONE:
                    row = {"model": f"{make.__name__[5:]}, {side}", "dtype": name}
                    args.say({**row, **kernels_of(args, make, side, dtype)})


def kernels_of(
    args: argparse.Namespace, make: Callable[..., Any], side: str, dtype: torch.dtype
) -> Row:
    """Kernels of each kind of work, and the backends that can do a prefill."""
    model = tried(lambda: make(args, args.kernel_width, 2, side).to(dtype))
    if isinstance(model, str):
        return dict.fromkeys(WORKS, model)
    batch = draw_batch(args, make is make_pair, 2, args.kernel_tokens)
    row: Row = {}
    for work in WORKS:
        step = prepare(model, batch, work, 2)
        row[work] = tried(lambda step=step: attention_kernels(step, args.device))
    step, backends = prepare(model, batch, "prefill", 0), []
    for backend in SDPBackend.__members__.values():
        if backend.name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
            with sdpa_kernel([backend]):
                if not isinstance(tried(step), str):
                    backends.append(backend.name)
    return {**row, "backends": backends}


def find_compiled(args: argparse.Namespace, part: str) -> None:
    """Decoders compiled, and with flex: kernels, and how far logits are from the usual way."""
    for way in ("torch.compile", "flex_attention"):
        for side in ("relational", retrofit.BACKBONE, "learned", "streams"):
            row = {"model": f"decoder, {side}", "way": way}
            found = tried(lambda side=side, way=way: compiled(args, side, way))
            args.say({**row, **(found if isinstance(found, dict) else {"kernels": found})})


def compiled(args: argparse.Namespace, side: str, way: str) -> Row:
    torch._dynamo.reset()
    model = make_decoder(args, args.kernel_width, 2, side).to(torch.bfloat16)
    batch = draw_batch(args, False, 2, args.kernel_tokens)
    step = prepare(model, batch, "prefill", 0)
    before = step()
    if way == "torch.compile":
        model.forward = torch.compile(model.forward)
    else:
        model.set_attn_implementation(way)
    start = time.monotonic()
    difference = (step() - before).abs()[before.abs() < -promises.UNUSABLE].max()
    seconds = round(time.monotonic() - start, 1)
    kernels = attention_kernels(step, args.device)
    return {"kernels": kernels, "difference": float(difference), "seconds": seconds}


# -- time and memory -------------------------------------------------------------------------------


def measure_decoders(args: argparse.Namespace, part: str) -> None:
    """Of one width, by number of tokens and kind of work."""
    width, layers = map(int, part.split())
    sides = (retrofit.BACKBONE, *(side for side in ENCODINGS if side != "dual_part"))
    models = {
        side: tried(lambda side=side: make_decoder(args, width, layers, side).to(torch.bfloat16))
        for side in sides
    }
    for side, model in models.items():
        if isinstance(model, str):
            args.say({"width": width, "side": side, "error": model})
    models = {side: model for side, model in models.items() if not isinstance(model, str)}
    for tokens in args.tokens:
        for work in WORKS:
            row = {"width": width, "layers": layers, "tokens": tokens, "work": work}
            args.say({**row, **measure_work(args, models, tokens, work)})


def measure_work(args: argparse.Namespace, models: dict[str, Any], tokens: int, work: str) -> Row:
    """Seconds and megabytes of each side; of one that fails, its error."""
    texts = max(1, args.tokens[-1] // tokens) if work == "training" else 1
    batch = draw_batch(args, False, texts, tokens)
    row: Row = {"texts": texts, "seconds": {}, "megabytes": {}, "errors": {}}
    steps = {}
    for side, model in models.items():
        steps[side] = prepare(model, batch, work, args.new_tokens)
        warm = prepare(model, batch, work, 2) if work == "decoding" else steps[side]
        found = tried(lambda warm=warm: most_allocated(warm, args.device))
        row["errors" if isinstance(found, str) else "megabytes"][side] = found
        if isinstance(found, str):
            del steps[side]
        for other in models.values():
            other.zero_grad(set_to_none=True)
    row["seconds"] = {side: [] for side in steps}
    for number in range(args.rounds):
        for side in list(steps) if number % 2 == 0 else list(reversed(steps)):
            seconds = tried(lambda side=side: measure.timed(steps[side], args.device))
            if isinstance(seconds, str):
                row["errors"][side] = seconds
            else:
                row["seconds"][side].append(seconds)
            models[side].zero_grad(set_to_none=True)
        if sum(times[-1] for times in row["seconds"].values() if times) > args.long:
            break
    return row


def most_allocated(step: Step, device: str) -> float:
    """Megabytes beyond what was held before."""
    if not device.startswith("cuda"):
        step()
        return 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


# -- training --------------------------------------------------------------------------------------


def measure_training(args: argparse.Namespace, part: str) -> None:
    """`hf-alpha train` with text/swap's recipe, and a BART of that size with the same batches."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "train.jsonl"
        rows = swapping_pairs(32 * args.steps, variables="abcd", functions="ABCD")
        pairs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for turn in range(2):
            for side, kind in {"hf-alpha train": None, "Seq2SeqTrainer, BART": bart}.items():
                out = Path(folder) / f"{side} {turn}"
                found = tried(lambda kind=kind, out=out: train_once(args, pairs, out, kind))
                row = {"side": side, "turn": turn}
                args.say({**row, **(found if isinstance(found, dict) else {"error": found})})


def train_once(
    args: argparse.Namespace, pairs: Path, out: Path, kind: Callable[..., Any] | None
) -> Row:
    changes = {"data.train": pairs, "data.test": pairs, "training.output_dir": out,
               "training.max_steps": args.steps, "training.eval_strategy": "no",
               "training.save_strategy": "no", "training.disable_tqdm": "true",
               "training.use_cpu": str(args.device == "cpu").lower()}  # fmt: skip
    recipe = read_recipe("text/swap", [f"{key}={value}" for key, value in changes.items()])
    more = {} if kind is None else {"make_trainer": kind}
    trainer = train(recipe, say=lambda _: None, **more)
    ended = next(log for log in reversed(trainer.state.log_history) if "train_runtime" in log)
    row = trainer.train_dataset[:256]
    tokens = sum(len(x) for name in ("input_ids", "labels") for x in row[name]) / len(row["labels"])
    samples = ended["train_samples_per_second"]
    return {"samples": samples, "tokens": samples * tokens, "seconds": ended["train_runtime"]}


def bart(model: Any, data_collator: Callable[..., Batch], **options: Any) -> Seq2SeqTrainer:
    """A trainer of a BART with this model's sizes; it gets the same batches."""
    ours = model.config
    sizes = {
        f"{part}_{name}": getattr(ours, f"{part}_{name}")
        for part in ("encoder", "decoder") for name in ("layers", "attention_heads", "ffn_dim")
    }  # fmt: skip
    config = BartConfig(
        vocab_size=ours.vocab_size, d_model=ours.d_model, dropout=0.0, **sizes, pad_token_id=0,
        max_position_embeddings=512, decoder_start_token_id=1, forced_eos_token_id=None,
    )  # fmt: skip

    def collate(rows: list[Row]) -> Batch:
        batch = data_collator(rows)
        return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}

    trainer = Seq2SeqTrainer(
        model=BartForConditionalGeneration(config), data_collator=collate, **options
    )
    trainer.check_end = lambda: None
    return trainer


# -- processes -------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[argparse.Namespace, str], None]] = {
    "promises": check_promises,
    "kernels": find_kernels,
    "compiled": find_compiled,
    "decoders": measure_decoders,
    "training": measure_training,
}


def stages(args: argparse.Namespace) -> list[tuple[int, list[tuple[str, str]]]]:
    """Seconds at most, and sections with their parts that run at once."""
    shares = [f"{dtype} {i}" for dtype in DTYPES for i in range(args.shares)]
    together = [*(("promises", share) for share in shares), ("kernels", "")]
    if not args.small:
        together.append(("compiled", ""))
    sizes = [(90, [("decoders", f"{width} {layers}")]) for width, layers in args.widths]
    return [(130, together), *sizes, (45, [("training", "")])]


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
        SECTIONS[section](args, part)
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
    host, lines = retrofit.BACKBONE, []
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--small", action="store_true", help="sizes for a CPU, in one process")
    add("--device", help="cuda, with --small cpu")
    add("--budget", type=float, default=360, help="seconds, after which no section begins (360)")
    add("--shares", type=int, default=7, help="processes for the promises of each dtype (7)")
    add("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    add("--tests", help="files of promises, or tests of them, with commas (all)")
    add("--child", nargs=3, help=argparse.SUPPRESS)
    measure.add_out(parser)
    args = parser.parse_args(argv)
    args.device = args.device or ("cpu" if args.small else "cuda")
    args.given = list(sys.argv[1:] if argv is None else argv)
    sizes: Row = {"tokens": (1024, 4096, 16384), "widths": ((768, 12), (2048, 6)), "rounds": 3,
                  "long": 12.0, "new_tokens": 64, "vocabulary": 32_000, "kernel_width": 256,
                  "kernel_tokens": 512, "steps": 300}  # fmt: skip
    if args.small:
        sizes = {"tokens": (16,), "widths": ((32, 1),), "rounds": 1, "long": 1.0, "new_tokens": 2,
                 "vocabulary": 1100, "kernel_width": 32, "kernel_tokens": 16, "steps": 2}  # fmt: skip
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
            rows += (run_here if args.small else run_jobs)(args, asked, min(limit, left))
        measure.keep(tables(rows), {"settings": options, "rows": rows}, args.out, argv, args.device)
    print(tables(rows))


if __name__ == "__main__":
    main()
