import copy
import dataclasses
import json
from types import UnionType
from typing import get_args, get_origin

import pytest
from huggingface_hub.errors import StrictDataclassError
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig

from hf_alpha import AlphaConfig

names = st.text("abcxyzXYZ_", min_size=1, max_size=6)
NEW_SYMBOLS = {"new_symbols": True, "symbol_encoding": "relational"}
class_counts = st.dictionaries(names, st.integers(1, 9), min_size=1, max_size=4)


def ids(config: AlphaConfig, name: str) -> list[int]:
    return [i for start, stop in config.symbol_ranges[name] for i in range(start, stop)]


@given(class_counts, st.integers(3, 20))
def test_classes_follow_each_other_behind_the_base_tokens(classes, base):
    config = AlphaConfig(num_base_tokens=base, symbol_classes=classes)
    assert config.vocab_size == base + sum(classes.values())
    assert config.num_symbols == sum(classes.values())
    start = base
    for name, count in classes.items():
        assert config.symbol_ranges[name] == [[start, start + count]]
        start += count


@given(class_counts, st.data())
def test_extension_moves_no_id(classes, data):
    config = AlphaConfig(symbol_classes=dict(classes))
    for _ in range(data.draw(st.integers(0, 3))):
        before = {name: ids(config, name) for name in config.symbol_ranges}
        size = config.vocab_size
        counts = data.draw(st.dictionaries(st.sampled_from(sorted(classes)), st.integers(0, 5)))
        config.extend_symbols(counts)
        assert config.vocab_size == size + sum(counts.values())
        for name, old in before.items():
            new = ids(config, name)
            assert new[: len(old)] == old and len(new) == len(old) + counts.get(name, 0)
            assert all(size <= i < config.vocab_size for i in new[len(old) :])
            assert config.symbol_classes[name] == len(new)
        config.validate_architecture()
    # JSON sorts its keys: the order of the classes has to survive, embedding rows hang on it.
    loaded = AlphaConfig.from_dict(json.loads(config.to_json_string(use_diff=False)))
    assert list(loaded.symbol_ranges.items()) == list(config.symbol_ranges.items())
    assert loaded.symbol_classes == config.symbol_classes
    assert loaded.vocab_size == config.vocab_size


def test_files_keep_the_order_of_classes(tmp_path):
    config = AlphaConfig(symbol_classes={"z": 2, "a": 3}, d_model=48)
    config.extend_symbols({"z": 1})
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert list(loaded.symbol_ranges.items()) == [("z", [[10, 12], [15, 16]]), ("a", [[12, 15]])]
    assert {**loaded.to_dict(), "_name_or_path": ""} == config.to_dict()
    assert set(loaded.auto_map) == {"AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM"}


SWITCHES = ("encoder_aggregated_attention", "decoder_aggregated_attention")


def switches(config: AlphaConfig) -> list[bool]:
    return [getattr(config, name) for name in SWITCHES]


@pytest.mark.parametrize("encoding", ["learned", "dual_part", "streams", "relational"])
def test_aggregated_attention_is_on_where_there_are_streams(encoding, tmp_path):
    config = AlphaConfig(symbol_encoding=encoding)
    assert switches(config) == [encoding == "streams"] * 2
    assert switches(copy.deepcopy(config)) == switches(config)
    assert AlphaConfig(**config.to_dict()).to_dict() == config.to_dict()
    for use_diff in (True, False):
        assert set(SWITCHES) <= json.loads(config.to_json_string(use_diff=use_diff)).keys()
    config.save_pretrained(tmp_path)
    assert switches(AutoConfig.from_pretrained(tmp_path)) == switches(config)
    for chosen in ([True, False], [False, True]):
        settings = dict(zip(SWITCHES, chosen, strict=True))
        assert switches(AlphaConfig(symbol_encoding=encoding, **settings)) == chosen


@pytest.mark.parametrize("encoding", ["learned", "dual_part", "streams", "relational"])
def test_a_file_that_does_not_say_it_has_aggregated_attention(encoding, tmp_path):
    """As all models had by default when such a file could be written."""
    file = tmp_path / "config.json"
    content = json.loads(AlphaConfig(symbol_encoding=encoding).to_json_string())
    file.write_text(json.dumps({k: v for k, v in content.items() if k not in SWITCHES}))
    assert switches(AutoConfig.from_pretrained(tmp_path)) == [True, True]
    assert switches(AlphaConfig.from_json_file(file)) == [True, True]
    chosen = AutoConfig.from_pretrained(tmp_path, decoder_aggregated_attention=False)
    assert switches(chosen) == [True, False]
    chosen.save_pretrained(tmp_path)
    assert switches(AutoConfig.from_pretrained(tmp_path)) == [True, False]


NUMBERS = [
    field.name
    for field in dataclasses.fields(AlphaConfig)
    if get_origin(field.type) in (None, UnionType)
    and {int, float} & {field.type, *get_args(field.type)}
    and field.name != "symbol_seed"  # any will do
]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_a_range(name):
    kind = float if isinstance(getattr(AlphaConfig(), name), float) or "scale" in name else int
    for value in [kind(-1), kind(-(10**12)), *map(kind, ["nan", "inf"] if kind is float else [])]:
        with pytest.raises(ValueError, match=str(value)):
            AlphaConfig(**{name: value})


def test_large_vocabularies_cost_nothing():
    config = AlphaConfig(symbol_classes={"x": 2**23, "y": 2**23 - 10})
    assert config.vocab_size == 2**24
    with pytest.raises(ValueError, match=f"{2**24 + 1} ids is larger than {2**24}"):
        config.extend_symbols({"x": 1})


@pytest.mark.parametrize("counts", [{"q": 1}, {"proposition": -1}, {"proposition": 1.5}])
def test_refused_extensions_change_nothing(counts):
    config = AlphaConfig()
    before = config.to_dict()
    with pytest.raises(ValueError, match=r"no symbol class 'q'|cannot add"):
        config.extend_symbols({"proposition": 2, **counts})
    assert config.to_dict() == before


def test_configurations_share_nothing():
    first, second = AlphaConfig(), AlphaConfig()
    first.extend_symbols({"proposition": 3})
    first.cross_attention.append("aggregated")
    assert second.vocab_size == 15 and second.cross_attention == ["per_stream"]
    classes = {"x": 2}
    AlphaConfig(symbol_classes=classes).extend_symbols({"x": 1})
    assert classes == {"x": 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"symbol_encoding": "vectors"}, "symbol_encoding must be one of learned, dual_part"),
        ({"encoder_position": "trees"}, "encoder_position must be one of tree"),
        ({"decoder_position": "tree"}, "decoder_position must be one of rope"),
        ({"decoder_position": "log_length"}, "'log_length' is for a decoder alone"),
        ({"aggregated_attention_norm": "none"}, "aggregated_attention_norm must be one of post"),
        ({"normalize_embeddings": False, "adacos": False}, "normalize_features needs"),
        ({"normalize_features": False, "adacos": True}, "adacos scales cosines"),
        ({"normalize_features": False, "adacos": "sum"}, "adacos scales cosines"),
        ({"adacos": "median"}, "adacos must be one of mean, sum; not 'median'"),
        ({"prefix_lm": True}, "prefix_lm is for a decoder alone"),
        ({"new_symbols": True, "symbol_encoding": "streams"}, "needs one stream"),
        ({**NEW_SYMBOLS, "adacos": True}, "adacos"),
        ({**NEW_SYMBOLS, "label_smoothing": 0.1}, "label_smoothing"),
        ({"label_smoothing": 1.0}, "label_smoothing must lie in"),
        ({"vocab_size": 20}, "vocab_size is 20, but 10 base tokens and 5 symbols make 15"),
        ({"symbol_classes": {"x": 0}}, "symbol class 'x' has no symbols"),
        ({"symbol_classes": {"x": 2}, "symbol_ranges": {"y": [[10, 12]]}}, "has classes .*'y'"),
        ({"symbol_classes": {"x": 2}, "symbol_ranges": {"x": [[10, 13]]}}, "holds 3 ids"),
        ({"symbol_classes": {"x": 2}, "symbol_ranges": {"x": [[11, 13]]}}, "leave the 12 ids"),
        (
            {"symbol_classes": {"x": 1, "y": 1}, "symbol_ranges": {c: [[10, 11]] for c in "xy"}},
            "overlap at id 10",
        ),
        ({"d_model": 97}, "d_model 97 is not a multiple of 6 encoder heads"),
        ({"decoder_attention_heads": 5}, "not a multiple of 5 decoder heads"),
        ({"d_model": 18}, "RoPE needs an even head width, not 18 / 6 in the encoder"),
        (
            {"encoder_per_stream_attention": False, "encoder_aggregated_attention": False},
            "the encoder has no self-attention: set encoder_per_stream_attention or",
        ),
        (
            {"decoder_per_stream_attention": False, "decoder_aggregated_attention": False},
            "the decoder has no self-attention",
        ),
        ({"cross_attention": []}, "cross_attention must list one or both"),
        ({"cross_attention": ["per_stream", "per_stream"]}, "cross_attention must list"),
        ({"cross_attention": ["both"]}, "cross_attention must list"),
        ({"symbol_ranges": {"proposition": [[10, 15, 3]]}}, r"must list \[start, stop\]"),
        ({"symbol_ranges": {"proposition": [[15, 10]]}}, "with 0 <= start < stop"),
        ({"activation_function": "rleu"}, "activation_function 'rleu' is unknown"),
        ({"encoder_layers": -3}, "encoder_layers must be at least 0, not -3"),
        ({"decoder_attention_heads": 0}, "decoder_attention_heads must be at least 1, not 0"),
        ({"layer_norm_eps": -1.0}, "layer_norm_eps must be finite and above 0, not -1.0"),
        ({"rope_theta": 0.0}, "rope_theta must be finite and above 0"),
        ({"symbol_renaming": "sorted"}, "symbol_renaming must be one of none, random, random_per"),
        ({"random_method": "uniform"}, "random_method must be one of normal, neighboring_points"),
        ({"symbol_encoding": "dual_part", "random_dim": 96}, "must lie between 1 and 95"),
        ({"num_base_tokens": 2}, "special token 2 is no base token"),
        ({"symbol_classes": {"x": 10**12}}, "a vocabulary of 1000000000010 ids is larger than"),
    ],
)  # fmt: skip
def test_contradictions_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        AlphaConfig(**settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d_model", "96"),
        ("encoder_layers", 2.5),
        ("dropout", "0.1"),
        ("adacos", 1),
        ("symbol_encoding", None),
        ("cross_attention", "per_stream"),
        ("symbol_classes", [5]),
    ],
)
def test_wrong_types_are_named(name, value):
    with pytest.raises((StrictDataclassError, TypeError, ValueError), match=name):
        AlphaConfig(**{name: value})


def test_an_odd_head_width_without_rope():
    assert AlphaConfig(d_model=18, encoder_position="none", decoder_position="none").d_model == 18


def test_sides():
    """The decoder's side counts two cache slots a layer; the whole stays honest."""
    config = AlphaConfig(
        encoder_layers=3, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=8
    )
    decoder = config.get_text_config(decoder=True)
    assert (decoder.num_hidden_layers, decoder.num_attention_heads) == (4, 8)
    assert decoder.decoder_layers == 2
    assert (config.num_hidden_layers, config.num_attention_heads) == (3, 4)
    assert config.get_text_config() is config is config.get_text_config(encoder=True, decoder=True)
    assert config.get_text_config(encoder=True).num_hidden_layers == 3
    assert config.hidden_size == config.d_model


DUAL = {"symbol_encoding": "dual_part"}


@pytest.mark.parametrize(("d_model", "random_dim"), [(16, 8), (48, 24), (64, 32), (512, 32)])
def test_default_width_of_the_random_part(d_model, random_dim):
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = AlphaConfig(d_model=d_model, **heads, **DUAL)
    assert config.random_dim == random_dim
    assert config.encoding(config).shape[1] == d_model - random_dim
    assert AlphaConfig.from_dict(config.to_dict()).random_dim == random_dim


@pytest.mark.parametrize(
    ("method", "random_dim", "vectors"),
    [
        ("hypercube_vertices", 3, 8),
        ("neighboring_points", 2, 8),
        ("neighboring_points", 1, 2),
        ("hypercube_vertices", 1, 2),
    ],
)
def test_too_few_random_parts_are_an_error(method, random_dim, vectors):
    settings = {"random_method": method, "random_dim": random_dim, **DUAL}
    config = AlphaConfig(symbol_classes={"x": vectors - 1}, **settings)
    config.extend_symbols({"x": 1})
    before = config.to_dict()
    with pytest.raises(ValueError, match=rf"{vectors + 1} symbols need .* only {vectors} {method}"):
        config.extend_symbols({"x": 1})
    assert config.to_dict() == before
    with pytest.raises(ValueError, match=f"only {vectors} {method}"):
        AlphaConfig(symbol_classes={"x": vectors, "y": 1}, **settings)
    AlphaConfig(symbol_classes={"x": 10**6}, **{**settings, "random_method": "normal"})
    AlphaConfig(symbol_classes={"x": 10**6}, **{**settings, "random_dim": 33})
