"""What is installed here: versions for a bug report."""

import os
import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hf_alpha.wings import CORE, LIBRARIES, install_command, missing_library

PACKAGES = {
    **dict.fromkeys((*CORE[1:4], "huggingface_hub")),
    **dict(LIBRARIES.values()),
    "peft": None,
}
"""Package that a bug report names -> the extra that brings it, if one does."""


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
        return f"not installed ({install_command(extra) if extra else f'pip install {package}'})"


def processor() -> str:
    """Return the name of the processor."""
    with suppress(OSError):  # where there is no such file
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if match is not None:
            return match[1]
    return platform.machine()
