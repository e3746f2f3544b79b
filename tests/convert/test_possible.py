"""What can be converted is what the conversion of a small random model says."""

import pytest
from small_tokenizers import byte_level
from transformers import (
    BertConfig,
    GPT2Config,
    LEDConfig,
)

from hf_alpha.convert.possible import possible_conversions
from hf_alpha.convert.shared import ConversionError
from hf_alpha.modeling.symbol_encodings import encoding_names

TOKENIZER = byte_level()
SIZE = {"vocab_size": len(TOKENIZER)}


def test_a_refused_encoding_is_told_with_the_reason():
    sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("layers", 3), ("attention_heads", 2), ("ffn_dim", 16))
    }
    config = LEDConfig(**SIZE, **sides, d_model=16, attention_window=[4, 4, 4])
    found = possible_conversions(config, TOKENIZER)
    assert found.keys() == set(encoding_names())
    assert [name for name, reason in found.items() if reason] == ["relational"]
    assert "relations do not reach its encoder attention" in found["relational"]
    assert config.encoder_layers == 3, "it is a copy that gets fewer layers"


def test_large_models_are_judged_by_their_configuration():
    """Two layers of this one would have 12 billion parameters."""
    large = GPT2Config(**SIZE, n_embd=2**14, n_layer=2, n_head=128)
    assert possible_conversions(large, TOKENIZER) == dict.fromkeys(encoding_names(), "")
    with pytest.raises(ConversionError, match="is an encoder alone, and writes no answers"):
        possible_conversions(BertConfig(**SIZE), TOKENIZER)
