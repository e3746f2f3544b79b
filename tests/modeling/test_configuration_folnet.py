"""What FOLNet's configuration accepts, derives and refuses."""

import pytest

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.recipe import read_recipe


def test_the_vocabulary_without_symbols_is_all_base_tokens():
    assert FolnetConfig(vocab_size=100).num_base_tokens == 100
    config = FolnetConfig(vocab_size=100, symbol_classes={"person": 8}, symbol_encoding="streams")
    assert (config.num_base_tokens, config.symbol_ranges) == (92, {"person": [[92, 100]]})
    again = FolnetConfig.from_dict(config.to_dict())
    assert again.to_dict() == config.to_dict()


def test_large_is_that_of_table_8():
    config = FolnetConfig.large(vocab_size=50)
    assert (config.num_hidden_layers, config.hidden_size, config.unary_size) == (24, 1024, 1024)
    assert config.vocab_size == 50
    recipe = read_recipe("folnet/pretrain-large")
    assert FolnetConfig(**recipe.model).to_dict() == FolnetConfig.large().to_dict()


def test_layers_of_a_decoder():
    beside = FolnetConfig(is_encoder_decoder=True, num_hidden_layers=4, decoder_layers=2)
    assert beside.num_decoder_layers == beside.get_text_config(decoder=True).num_hidden_layers == 2
    assert FolnetConfig(is_decoder=True, num_hidden_layers=4).num_decoder_layers == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unary_operators": "jx"}, "unary_operators is 'jx': give letters of 'jmc'"),
        ({"binary_operators": "aa"}, "binary_operators is 'aa'"),
        ({"position_scheme": "rope"}, "position_scheme must be one of relative"),
        ({"position_scheme": "shaw", "unary_operators": "m"}, "use both operators"),
        ({"is_decoder": True, "is_encoder_decoder": True}, "set one of them"),
        ({"is_decoder": True, "decoder_layers": 2}, "a stack alone has num_hidden_layers"),
        ({"decoder_layers": 2}, "a stack alone has num_hidden_layers"),
        ({"is_encoder_decoder": True, "num_decoder_layers": 2}, "set decoder_layers"),
        ({"prefix_lm": True}, "prefix_lm is for a decoder alone: set is_decoder=True"),
        ({"prefix_lm": True, "is_encoder_decoder": True}, "prefix_lm is for a decoder alone"),
        ({"is_decoder": True, "cjoin_premise": "size"}, 'set "heads"'),
        ({"diagonal_link": True}, "diagonal_link is True: FOLNet has only False since 1.0"),
        ({"boolean_form": "reglu"}, "boolean_form is 'reglu': FOLNet has only 'mlp'"),
        ({"is_decoder": True, "symbol_encoding": "streams"}, "a decoder alone has no input"),
        ({"segment_labels": ["date"]}, "FOLNet reads no segments"),
        ({"hidden_act": "nothing"}, "hidden_act 'nothing' is unknown"),
        ({"head_size": 0}, "head_size must be at least 1"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob must lie in"),
    ],
)
def test_contradictions_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FolnetConfig(**settings)
