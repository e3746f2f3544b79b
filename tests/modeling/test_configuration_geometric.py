"""What the configuration of geometric encoders accepts, derives and refuses."""

import pytest
from small_tokenizers import word_level
from transformers import BertConfig

from hf_alpha.modeling.configuration_geometric import GeometricConfig


def test_defaults_are_berts():
    ours, bert = GeometricConfig().to_dict(), BertConfig().to_dict()
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "hidden_act",
             "num_attention_heads", "max_position_embeddings", "layer_norm_eps")  # fmt: skip
    assert {name: ours[name] for name in names} == {name: bert[name] for name in names}
    assert GeometricConfig.from_dict(ours).to_dict() == ours


def test_positions_are_learned_only_where_nothing_else_tells_them():
    assert GeometricConfig(relation_attention="none").absolute_positions
    assert not GeometricConfig(relation_attention="two_layer_rotary").absolute_positions
    assert GeometricConfig(absolute_positions=True).absolute_positions


def test_any_tokenizer_gives_its_vocabulary():
    tokenizer = word_level()
    config = GeometricConfig.for_tokenizer(tokenizer, hidden_size=24, num_attention_heads=2)
    assert (config.vocab_size, config.segment_labels) == (len(tokenizer), [])
    assert config.pad_token_id == tokenizer.pad_token_id


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relation_attention": "rope"}, "relation_attention must be one of graph"),
        ({"hidden_size": 10, "num_attention_heads": 3}, "no multiple of num_attention_heads 3"),
        ({"relation_attention": "two_layer_rotary", "hidden_size": 9, "num_attention_heads": 3},
         "even width of heads, not 3"),
        ({"segment_labels": ["a", "b", "a"]}, "one is given twice"),
        ({"relation_attention": "none", "gated": True}, "gated mixes two attentions"),
        ({"max_distance": 0}, "max_distance must be at least 1"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob must lie in"),
        ({"hidden_act": "nothing"}, "hidden_act 'nothing' is unknown"),
        ({"rope_theta": 0.0}, "rope_theta must be finite"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GeometricConfig(**settings)
