import platform
import sys
from importlib import metadata
from pathlib import Path

import torch
from commands import hf_alpha


def test_versions_for_a_bug_report():
    done = hf_alpha("info")
    assert done.code == 0, done.err
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert lines["Python"].startswith(f"{platform.python_version()} ")
    assert lines["torch"].startswith(f"{torch.__version__}, ") and "cpu" in lines["devices"]
    extras = {"spottl": "'hf_alpha[ltl]'", "peft": "peft"}
    for package in ("hf_alpha", "transformers", "datasets", "huggingface_hub", *extras):
        try:
            assert lines[package] == metadata.version(package)
        except metadata.PackageNotFoundError:
            assert lines[package] == f"not installed (pip install {extras[package]})"
    for private in (str(Path.home()), sys.prefix, platform.node()):
        assert private not in done.out
