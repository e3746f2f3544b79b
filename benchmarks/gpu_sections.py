"""The sections of gpu.py: each writes its rows with `args.say`."""

import argparse
import gc
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import Phase, settings
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import LlamaConfig

import measure
import retrofit
import trainings
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.recipe import Recipe
from hf_alpha.train import train
from steps import Batch, Step, generation, training_step

TESTS = measure.ROOT / "tests"
sys.path.append(str(TESTS))
import promises  # type: ignore[import-not-found]  # noqa: E402

Row = dict[str, Any]
LOOSE = 0.1
"""Absolute and relative: what is close in bfloat16."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ENCODINGS = ("learned", "dual_part", "streams", "relational")
retrofit.SIDES["learned"] = {"symbol_encoding": "learned"}
HOST, NAMES = retrofit.BACKBONE, 4
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
            said = self.exceeded[:1] or (
                [str(call.excinfo.value), str(call.excinfo.traceback[-1].statement)]
                if call.excinfo
                else []
            )
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
        with pytest.MonkeyPatch.context() as patch:
            # Such as -n 2 would run tests in processes that know nothing of all this.
            patch.delenv("PYTEST_ADDOPTS", raising=False)
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
    asked = SimpleNamespace(host="llama", names=[NAMES])
    with torch.device(args.device):  # where random weights take no time
        model = tried(lambda: retrofit.make_model(asked, side))
    return (retrofit.make_model(asked, side) if isinstance(model, str) else model).to(args.device)


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

ATTENTION = re.compile(
    "^(?!.*log_?softmax).*(flash|fmha|sdpa|mha|efficient_attention|softmax|flex|triton_tem)", re.I
)


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
    return sorted(
        {short(name) for name in names if ATTENTION.search(name) and "log" not in name.lower()}
    )


def short(kernel: str) -> str:
    """A kernel's name without its types and arguments."""
    bare = kernel.replace("(anonymous namespace)::", "")
    found = re.search(r"[\w.]+(?=[<(]|$)", bare)
    return (found[0] if found else bare)[:70]


def find_kernels(args: argparse.Namespace, part: str) -> None:
    """Of small models of both kinds, of each encoding and dtype."""
    for name in args.dtypes:
        for side in (HOST, *ENCODINGS):
            for make in (make_decoder, make_pair):
                if make is make_decoder or side != HOST:
                    row = {"model": f"{make.__name__[5:]}, {side}", "dtype": name}
                    args.say({**row, **kernels_of(args, make, side, DTYPES[name])})


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
        for side in ("relational", HOST, "learned", "streams"):
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
    sides = (HOST, *(side for side in ENCODINGS if side != "dual_part"))
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
        # All of it: cuDNN searches for a plan for each new length of keys.
        found = tried(lambda step=steps[side]: most_allocated(step, args.device))
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
        for turn in range(2):
            for side, kind in trainings.SIDES.items():
                recipe = trainings.swap(Path(folder), f"{side} {turn}", args.steps, args.device)
                found = tried(lambda kind=kind, recipe=recipe: train_once(recipe, kind))
                row = {"side": side, "turn": turn}
                args.say({**row, **(found if isinstance(found, dict) else {"error": found})})


def train_once(recipe: Recipe, kind: Callable[..., Any]) -> Row:
    """Samples and tokens a second of a training."""
    trainer = train(recipe, say=lambda _: None, make_trainer=kind)
    ended = next(log for log in reversed(trainer.state.log_history) if "train_runtime" in log)
    row = trainer.train_dataset[:256]
    tokens = sum(len(x) for name in ("input_ids", "labels") for x in row[name]) / len(row["labels"])
    samples = ended["train_samples_per_second"]
    return {"samples": samples, "tokens": samples * tokens, "seconds": ended["train_runtime"]}


SECTIONS: dict[str, Callable[[argparse.Namespace, str], None]] = {
    "promises": check_promises,
    "kernels": find_kernels,
    "compiled": find_compiled,
    "decoders": measure_decoders,
    "training": measure_training,
}
