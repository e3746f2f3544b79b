import json

import pytest
import torch
from strategies import make_model
from transformers import BartConfig, BartForConditionalGeneration

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.loading import check_agreement, load_checkpoint


def save(folder, model_symbols=5, tokenizer_symbols=5):
    model = make_model(symbol_classes={"proposition": model_symbols})
    tokenizer = build_tokenizer("propositional", tokenizer_symbols)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def test_round_trip(tmp_path, monkeypatch):
    model, tokenizer = save(tmp_path / "model")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "model", str(tmp_path / "model"), "~/model", "./model", "model"):
        loaded, loaded_tokenizer = load_checkpoint(place)
        assert loaded_tokenizer.get_vocab() == tokenizer.get_vocab()
        assert all(map(torch.equal, loaded.state_dict().values(), model.state_dict().values()))
        assert not loaded.training


def test_extension_in_one_or_several_steps_is_the_same(tmp_path):
    model, tokenizer = save(tmp_path / "wide", 10, 30)
    with pytest.raises(
        ValueError, match=r"proposition': 10} in the model and .*: 30} in the token"
    ):
        load_checkpoint(tmp_path / "wide")
    model.extend_symbols({"proposition": 15})
    model.extend_symbols({"proposition": 5})
    assert model.config.symbol_ranges != tokenizer.symbol_ranges
    check_agreement(model, tokenizer)
    model.save_pretrained(tmp_path / "wide")
    loaded, _ = load_checkpoint(tmp_path / "wide")
    assert loaded.config.symbol_ranges == {"proposition": [[10, 20], [20, 35], [35, 40]]}


def test_disagreement_is_named(tmp_path):
    model, tokenizer = save(tmp_path)
    tokenizer.extend_symbols({"proposition": 1})
    with pytest.raises(ValueError, match=r"checkpoint: .*symbol_classes.*extend_symbols"):
        check_agreement(model, tokenizer)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}: model and tokenizer disagree"):
        load_checkpoint(tmp_path)
    for settings in ({"num_base_tokens": 9}, {"symbol_classes": {"variable": 5}}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            check_agreement(make_model(**settings), build_tokenizer("propositional", 5))
    two = make_model(symbol_classes={"x": 2, "y": 2})
    crossed = make_model(
        symbol_classes={"x": 2, "y": 2}, symbol_ranges={"x": [[12, 14]], "y": [[10, 12]]}
    )
    crossed.num_base_tokens = 10
    with pytest.raises(ValueError, match="symbol_ranges"):
        check_agreement(two, crossed.config)


def test_missing_and_incomplete_folders(tmp_path, monkeypatch, hub):
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "no", "~/no/model", "./no/such/model", "no", "runs/a/b"):
        with pytest.raises(FileNotFoundError, match="no checkpoint folder"):
            load_checkpoint(place)
    with pytest.raises(FileNotFoundError, match="'runs/no' is no complete folder here or model on"):
        load_checkpoint("runs/no")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="is no checkpoint folder: it has no config"):
        load_checkpoint(tmp_path / "empty")
    save(tmp_path / "cut")
    (tmp_path / "cut" / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"no complete checkpoint folder: .*safetensors"):
        load_checkpoint(tmp_path / "cut")


def test_another_kind_of_model(tmp_path):
    config = BartConfig(
        vocab_size=9, d_model=4, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=4,
        decoder_ffn_dim=4, encoder_attention_heads=1, decoder_attention_heads=1,
    )  # fmt: skip
    BartForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a 'bart' model, not an 'alpha' one"):
        load_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 9}))
    with pytest.raises(ValueError, match="Unrecognized model"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "vocab.json"])
def test_a_damaged_tokenizer_is_named(tmp_path, name):
    save(tmp_path)
    whole = (tmp_path / name).read_text()
    (tmp_path / name).write_text(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"{tmp_path / name} is damaged, it is no JSON"):
        load_checkpoint(tmp_path)
