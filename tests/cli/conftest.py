from pathlib import Path

import pytest
from commands import hf_alpha


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "samples"
    arguments = ["--samples", 120, "--sizes", "1-6", "--symbols", 3, "--quiet"]
    done = hf_alpha("generate-data", folder, *arguments)
    assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def vanilla(tmp_path_factory, data) -> Path:
    """A `learned` model of three symbols, trained for two steps."""
    folder = tmp_path_factory.mktemp("vanilla") / "vanilla"
    done = hf_alpha(
        "train",
        "propositional/debug",
        f"data.path={data}",
        "data.generate={}",
        "num_symbols=3",
        "model.symbol_encoding=learned",
        "model.encoder_aggregated_attention=false",
        "model.decoder_aggregated_attention=false",
        "training.max_steps=2",
        "training.eval_strategy=no",
        f"training.output_dir={folder}",
    )
    assert done.code == 0, done.err
    assert f"the trained model is in {folder}" in done.out
    return folder
