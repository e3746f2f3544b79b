"""What is installed here: versions for a bug report, and how to install what is missing."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = {
    **{name: (name, "train") for name in ("datasets", "accelerate", "matplotlib", "rapidfuzz")},
    **dict.fromkeys(("pyarrow", "pandas"), ("datasets", "train")),
    "aiger": ("py-aiger", "logic"),
    "aiger_sat": ("py-aiger-sat", "logic"),
    "pysat": ("python-sat", "logic"),
    "spot": ("spottl", "ltl"),
    "rdkit": ("rdkit", "chemistry"),
    "gradio": ("gradio", "demo"),
    **{name: (name, "serve") for name in ("starlette", "uvicorn", "llguidance")},
    "lm_eval": ("lm-eval", "lm-eval"),
    "pytorch_optimizer": ("pytorch_optimizer", "optimizers"),
    "sqlglot": ("sqlglot", "sql"),
    **{
        f"tree_sitter{grammar}": (f"tree-sitter{grammar}".replace("_", "-"), "languages")
        for grammar in ("", "_javascript", "_typescript", "_go", "_java", "_c")
    },
    "ahocorasick": ("pyahocorasick", "transduction"),
    "pynini": ("pynini", "transduction"),
}
"""Module that hf_alpha can do without -> its package, and the extra that brings it."""
CORE = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
"""What `hf_alpha` itself brings, if it was not installed for names before a model alone."""
ONLY = {"ltl": " (only for Linux on x86-64, with Python before 3.14)"}
"""Extra -> where its packages can be installed, if not everywhere."""
PACKAGES = {
    **dict.fromkeys((*CORE[1:4], "huggingface_hub")),
    **dict(LIBRARIES.values()),
    "peft": None,
}
"""Package that a bug report names -> the extra that brings it, if one does."""
NOT_CONNECTED = (
    "several processes were asked for, but this one does not know of any other: on CPUs start them "
    "with `torchrun --nproc-per-node N` (`accelerate launch --cpu` starts one only), on several "
    "GPUs with `accelerate launch` or torchrun"
)


def several_asked_for() -> bool:
    """Return whether this process was started as one of several."""
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return True
    # What `accelerate launch` leaves where it starts one process although more were asked for.
    return {"ACCELERATE_USE_CPU", "MASTER_ADDR"} <= os.environ.keys()


def is_left_alone() -> bool:
    """Return whether it was, but has not been told which one it is."""
    return several_asked_for() and not {"RANK", "LOCAL_RANK"} <= os.environ.keys()


def own_share() -> tuple[int, int]:
    """Return which of several processes this is, from 1 on, and how many there are."""
    count = int(os.environ.get("WORLD_SIZE") or 1)
    # A rank may be left over of something else, where there is but one process.
    return (int(os.environ.get("RANK") or 0) + 1 if count > 1 else 1), count


def is_first() -> bool:
    """Return whether this is the first of several processes, or the only one."""
    return own_share()[0] == 1


def how_to_install(module: str | None) -> str | None:
    """Return which extra brings a library, with the command; None for what no extra brings.

    Args:
        module: that cannot be imported, such as `pysat.solvers`, or a part of the package itself
            that is not there.
    """
    if f"{module}".startswith("hf_alpha."):
        return f"{module} is not in this copy of hf_alpha: install all of it"
    library = f"{module}".partition(".")[0]
    if library in CORE:
        return f"{library} is not installed: pip install hf_alpha, with all that it needs"
    package, extra = LIBRARIES.get(library, ("", ""))
    where = ONLY.get(extra, "")
    return f"{package} is not installed: {_command(extra)}{where}" if package else None


def missing_library(error: BaseException | None) -> str | None:
    """Return how to install what an import lacks, or one that led to it; None for other errors."""
    if not isinstance(error, ImportError):
        return None
    return how_to_install(error.name) or missing_library(error.__cause__)


@contextmanager
def optional() -> Iterator[None]:
    """Import within this what hf_alpha can do without.

    Raises:
        ImportError: a library is not installed; the message has the command for that.
    """
    try:
        yield
    except ImportError as error:
        message = missing_library(error)
        if message is None:
            raise
        raise ImportError(message, name=error.name) from error


def _command(extra: str | None) -> str:
    return f"pip install 'hf_alpha[{extra}]'"


def describe_environment() -> str:
    """Return versions of what matters for a bug report, a line each; no user's paths or names."""
    lines = {
        "hf_alpha": version("hf_alpha"),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "processor": f"{processor()}, {os.cpu_count()} cores",
        **_describe_torch(),
        **{package: _version(package, extra) for package, extra in PACKAGES.items()},
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def _describe_torch() -> dict[str, str]:
    try:
        import torch
    except ModuleNotFoundError as error:
        return {"torch": f"{missing_library(error)}"}
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    devices = ["cpu"] + [str(accelerator)] * torch.accelerator.device_count()
    threads = f"{torch.__version__}, {torch.get_num_threads()} threads"
    return {"torch": threads, "devices": ", ".join(devices)}


def _version(package: str, extra: str | None) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"not installed ({_command(extra) if extra else f'pip install {package}'})"


def processor() -> str:
    """Return the name of the processor."""
    with suppress(OSError):  # where there is no such file
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if match is not None:
            return match[1]
    return platform.machine()
