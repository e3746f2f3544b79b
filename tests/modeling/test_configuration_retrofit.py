"""Settings of a symbol layer around an encoder-decoder of Transformers."""

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
    for kind in ("gpt2", "bert", "whisper"):
        with pytest.raises(ValueError, match=f"{kind!r} model, which is no encoder-decoder"):
            make(tokenizer, backbone_config={"model_type": kind})
