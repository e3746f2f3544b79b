"""What is installed here: versions for a bug report, and how to install what is missing."""

import os
import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

REQUIRED = (
    "transformers",
    "tokenizers",
    "datasets",
    "accelerate",
    "safetensors",
    "huggingface_hub",
    "matplotlib",
    "py-aiger",
    "python-sat",
)
EXTRAS = {
    "spottl": "ltl",
    "pytorch_optimizer": "optimizers",
    "pyahocorasick": "transduction",
    "pynini": "transduction",
    "sqlglot": "sql",
    **{name: name for name in ("tensorboard", "wandb", "trackio")},
}
"""Optional package -> the extra that brings it."""
OPTIONAL = (*EXTRAS, "peft")
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


def install_command(package: str) -> str:
    """Return the command that installs a package which hf_alpha can do without."""
    extra = EXTRAS.get(package)
    return f"pip install 'hf_alpha[{extra}]'" if extra else f"pip install {package}"


def describe_environment() -> str:
    """Return versions of what matters for a bug report, a line each; no user's paths or names."""
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    devices = ["cpu"] + [str(accelerator)] * torch.accelerator.device_count()
    lines = {
        "hf_alpha": version("hf_alpha"),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads",
        "devices": ", ".join(devices),
        **{package: _version(package) for package in (*REQUIRED, *OPTIONAL)},
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"not installed ({install_command(package)})"


def processor() -> str:
    """Return the name of the processor."""
    with suppress(OSError):  # where there is no such file
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if match is not None:
            return match[1]
    return platform.machine()


__all__ = ["describe_environment", "install_command", "processor"]
