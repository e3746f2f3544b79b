"""Models whose linear layers a quantizer replaced say what they said, up to rounding."""

import itertools

import pytest
import torch
from retrofits import make_retrofit, random_batch
from strategies import make_model
from strategies import random_batch as batch_of_alpha
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BitsAndBytesConfig,
    QuantoConfig,
    TorchAoConfig,
)


def of_torchao():
    from torchao.quantization import Int8WeightOnlyConfig

    return TorchAoConfig(Int8WeightOnlyConfig())


LIBRARIES = {
    "optimum.quanto": lambda: QuantoConfig(weights="int8"),
    "bitsandbytes": lambda: BitsAndBytesConfig(load_in_8bit=True),
    "torchao": of_torchao,
}
ENCODINGS = ("relational", "streams", "learned")


def models():
    """A converted decoder for each encoding, and an encoder-decoder that writes new symbols."""
    for encoding in ENCODINGS:
        model = make_retrofit("llama", symbol_encoding=encoding, relation_scale=8.0)
        batch = random_batch(0, model.config, [(9, 3), (5, 2)])
        yield AutoModelForCausalLM, model, {k: batch[k] for k in ("input_ids", "attention_mask")}
    settings = {"new_symbols": True, "normalize_embeddings": True, "adacos": False}
    model = make_model(symbol_encoding="relational", **settings)
    yield AutoModelForSeq2SeqLM, model, batch_of_alpha(0, model.config, [(9, 3), (5, 2)])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore")
def test_quantized_models_are_their_models(library, tmp_path):
    pytest.importorskip(library)
    for number, (auto, model, batch) in enumerate(models()):
        with torch.no_grad():
            for part in model.modules():  # what a lost gate or scale would change
                if "Gates" in type(part).__name__:
                    part.bias.add_(torch.randn(part.bias.shape) / part.scale)
        model.save_pretrained(folder := tmp_path / str(number))
        quantized = auto.from_pretrained(folder, quantization_config=LIBRARIES[library]()).eval()
        with torch.no_grad():
            expected, logits = model.eval()(**batch).logits, quantized(**batch).logits
        near = (logits - expected).abs().max() / expected[expected > -1e3].std()
        assert 0 < near < 0.1


def test_no_layer_of_ours_is_a_linear_layer_that_is_none():
    """Quantizers, adapters and others take what is an `nn.Linear` for one."""
    found = itertools.chain.from_iterable(model.modules() for _, model, _ in models())
    kinds = {type(module) for module in found if isinstance(module, nn.Linear | nn.Embedding)}
    kinds |= {kind for kind in nn.Linear.__subclasses__() if "hf_alpha" in kind.__module__}
    assert {kind.__name__ for kind in kinds} <= {"Linear", "Embedding", "BlockLinear"}
