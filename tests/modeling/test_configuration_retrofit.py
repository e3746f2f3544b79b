"""Settings of a symbol layer around a model of Transformers."""

import functools

import pytest
from retrofits import make_retrofit
from small_tokenizers import word_level

from hf_alpha import TextTokenizer


def settings_of(**changed):
    """Symbols 10 to 12 and 20 and 21 of class `name`, 15 to 17 of `function`, of 40 ids."""
    settings = make_retrofit("t5", place="middle, two classes").config.to_dict()
    return {**settings, **changed}


def of(**changed):
    return type(make_retrofit("t5").config)(**settings_of(**changed))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"name": [10, 11], "function": [11, 15]}, "row 11 is of two classes"),
        ({"name": [10, 9], "function": [15, 16]}, "row 9 is that of a base token; .* from 40 on"),
        ({"name": [-1, 10], "function": [15, 16]}, "row -1 is that of a base token"),
    ],
)
def test_rows_of_classes_are_theirs_alone(rows, message):
    with pytest.raises(ValueError, match=message):
        of(class_rows=rows)
    kept = {"name": [16, 44], "function": [20, 40]}  # any row that no base token has
    assert of(class_rows=kept).class_rows == kept


def test_a_new_backbone_has_a_row_for_each_token_and_writes_answers():
    tokenizer = TextTokenizer.from_tokenizer(word_level(end=True), {"name": 3})
    make = type(make_retrofit("t5").config).for_tokenizer
    sizes = {"d_model": 8, "num_heads": 2, "d_kv": 4, "num_layers": 1, "d_ff": 8}
    least = len(tokenizer) + 2  # an actual and a placeholder row
    for given in ({}, {"vocab_size": least}, {"vocab_size": least + 9}):
        config = make(tokenizer, backbone_config={"model_type": "t5", **sizes, **given})
        assert config.host_config.vocab_size == given.get("vocab_size", least)
    with pytest.raises(ValueError, match=f"vocab_size {least - 1}, .* need {least} rows: leave"):
        make(tokenizer, backbone_config={"model_type": "t5", **sizes, "vocab_size": least - 1})
    for kind in ("bert", "whisper"):
        with pytest.raises(ValueError, match=f"{kind!r} model, which does not go from text to"):
            make(tokenizer, backbone_config={"model_type": kind})


def test_the_configuration_of_a_decoder_alone():
    tokenizer = TextTokenizer.from_tokenizer(word_level(end=True), {"name": 3})
    gpt2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2}
    make = functools.partial(type(make_retrofit("t5").config).for_tokenizer, tokenizer)
    made = make(backbone_config=gpt2, symbol_encoding="learned", is_encoder_decoder=True)
    assert not made.is_encoder_decoder and made.host_config.vocab_size == len(tokenizer)
    special = ("pad_token_id", "bos_token_id", "eos_token_id")
    assert all(getattr(made, name) == getattr(tokenizer, name) for name in special)
    assert set(made.auto_map) == {"AutoConfig", "AutoModelForCausalLM"}
    relational = make(backbone_config=gpt2, symbol_encoding="relational")
    # A slot of the cache for each layer, one for what stands where, one for what the head keeps.
    assert relational.get_text_config(decoder=True).num_hidden_layers == 3
    with pytest.raises(ValueError, match="aggregated_attention joins streams"):
        make(backbone_config=gpt2, symbol_encoding="learned", aggregated_attention=["decoder"])
    bert = {"model_type": "bert", "is_decoder": True}
    assert not make(backbone_config=bert, symbol_encoding="learned").is_encoder_decoder
