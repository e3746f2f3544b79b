import json
import socket

import pytest
import torch
from commands import hf_alpha
from folnets import SMALL as FOLNET
from geometrics import SMALL as GEOMETRIC
from hosts import make_host
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from small_tokenizers import unigram, word_level
from strategies import make_model
from toy_backbone import ToyConfig, ToyForConditionalGeneration
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
)

from hf_alpha import SymbolConfig, get_symbol_model
from hf_alpha.loading import check_agreement, load_answering, load_checkpoint, load_host
from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.modeling_folnet import FolnetForMaskedLM
from hf_alpha.modeling.modeling_geometric import GeometricForMaskedLM
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.resources import resource_path
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE, prepare_model


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


def test_a_host_that_is_saved_again_is_the_same(tmp_path):
    """Marian saves no positions, which are sinusoids; a host may have others, as ANNalog."""
    tokenizer = unigram(end=True)
    host = make_host("marian", vocab_size=len(tokenizer))
    for stack in (host.get_encoder(), host.get_decoder()):
        stack.embed_positions.weight.data.normal_()
    weights = {name: value.clone() for name, value in host.state_dict().items()}
    for part in (host, tokenizer):
        part.save_pretrained(tmp_path / "host")
    save_file(weights, tmp_path / "host" / "model.safetensors", metadata={"format": "pt"})
    place = tmp_path / "host"
    for load in (load_host, load_answering):
        load(place)[0].save_pretrained(tmp_path / load.__name__)
        place = tmp_path / load.__name__
        tokenizer.save_pretrained(place)
        again = type(host).from_pretrained(place).state_dict()
        assert all(torch.equal(again[name], weights[name]) for name in weights)


def test_extension_in_one_or_several_steps_is_the_same(tmp_path):
    model, tokenizer = save(tmp_path / "wide", 10, 30)
    with pytest.raises(
        ValueError, match=r"proposition': 10} in the model and .*: 30} in the token"
    ):
        load_checkpoint(tmp_path / "wide")
    model.extend_symbols({"proposition": 15})
    model.extend_symbols({"proposition": 5})
    assert model.config.symbol_ranges != tokenizer.symbol_ranges
    check_agreement(model.config, tokenizer)
    model.save_pretrained(tmp_path / "wide")
    loaded, _ = load_checkpoint(tmp_path / "wide")
    assert loaded.config.symbol_ranges == {"proposition": [[10, 20], [20, 35], [35, 40]]}


def test_disagreement_is_named(tmp_path):
    model, tokenizer = save(tmp_path)
    tokenizer.extend_symbols({"proposition": 1})
    with pytest.raises(ValueError, match=r"checkpoint: .*symbol_classes.*extend_symbols"):
        check_agreement(model.config, tokenizer)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}: model and tokenizer disagree"):
        load_checkpoint(tmp_path)
    for settings in (
        {"num_base_tokens": 9},
        {"pad_token_id": 3},
        {"symbol_classes": {"variable": 5}},
    ):
        with pytest.raises(ValueError, match=next(iter(settings))):
            check_agreement(make_model(**settings).config, tokenizer)
    two = make_model(symbol_classes={"x": 2, "y": 2})
    crossed = make_model(
        symbol_classes={"x": 2, "y": 2}, symbol_ranges={"x": [[12, 14]], "y": [[10, 12]]}
    )
    crossed.num_base_tokens = 10
    with pytest.raises(ValueError, match="symbol_ranges"):
        check_agreement(two.config, crossed.config)


class ToyDecoderConfig(ToyConfig):
    model_type = "toy_decoder"

    is_encoder_decoder: bool = False


class ToyDecoder(ToyForConditionalGeneration):
    config: ToyDecoderConfig


AutoConfig.register("toy_decoder", ToyDecoderConfig)
AutoModelForCausalLM.register(ToyDecoderConfig, ToyDecoder)
AutoTokenizer.register(ToyDecoderConfig, slow_tokenizer_class=AlphaTokenizer)


def test_a_decoder_is_loaded_and_made_by_the_auto_class_of_decoders(tmp_path):
    chosen = ["model={model_type: toy_decoder, hidden_size: 8}"]
    model, tokenizer = prepare_model(read_recipe("propositional/debug", chosen))
    assert type(model) is ToyDecoder
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, _ = load_checkpoint(tmp_path)
    assert type(loaded) is ToyDecoder
    assert all(map(torch.equal, loaded.state_dict().values(), model.state_dict().values()))


def test_without_a_network_a_name_is_asked_for_once(monkeypatch):
    with socket.socket() as port:  # nobody listens there once it is closed
        port.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{port.getsockname()[1]}/{{repo_id}}/{{revision}}/{{filename}}"
    waits: list[float] = []
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", nowhere)
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(FileNotFoundError, match="'me/no' is neither a folder here nor a"):
        load_checkpoint("me/no")
    assert waits == [1, 2, 4, 8, 8], "the client's own patience, once"


def test_missing_and_incomplete_folders(tmp_path, monkeypatch, hub):
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "no", "~/no/model", "./no/such/model", "no", "runs/a/b"):
        with pytest.raises(FileNotFoundError, match="no checkpoint folder"):
            load_checkpoint(place)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "file").write_text("{}")
    with pytest.raises(FileNotFoundError, match="no checkpoint folder 'runs/file'"):
        load_checkpoint("runs/file")
    (tmp_path / "runs" / "small").mkdir()
    for place in ("runs/smal", "./rnus/small", "rnus/model.safetensors"):
        with pytest.raises(FileNotFoundError, match=r"no checkpoint .*mean runs(/small)?\?"):
            load_checkpoint(place)
    with pytest.raises(FileNotFoundError, match="'me/no' is neither a folder here nor a"):
        load_checkpoint("me/no")
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
    with pytest.raises(ValueError, match="holds a 'bart' model, not one with symbols"):
        load_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 9}))
    with pytest.raises(ValueError, match="Unrecognized model"):
        load_checkpoint(tmp_path)


TENSOR = "model.decoder.layers.0.fc1.weight"


def with_weights(change):
    def damage(folder):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return damage


def with_settings(**changes):
    def damage(folder):
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(settings | changes))

    return damage


def with_file(name, content):
    def damage(folder):
        (folder / name).write_bytes(content(folder) if callable(content) else content)

    return damage


def half(folder):
    content = (folder / "model.safetensors").read_bytes()
    return content[: len(content) // 2]


NAN = torch.tensor(float("nan"))
DAMAGES = {
    "missing": (
        with_weights(lambda t: t.pop(TENSOR)),
        f"model.safetensors: tensor '{TENSOR}' is m",
    ),
    "more": (with_weights(lambda t: t.update(other=NAN)), "tensor 'other' is left over"),
    "nan": (
        with_weights(lambda t: t[TENSOR][3, 2].copy_(NAN)),
        f"model.safetensors: tensor '{TENSOR}' holds numbers that are not finite",
    ),
    "shape": (
        with_weights(lambda t: t.update({TENSOR: t[TENSOR][:3].contiguous()})),
        r"has the shape \(3, 16\), and \(24, 16\) by config.json",
    ),
    "layers": (with_settings(encoder_layers=3), "layers.2.* is missing, and 25 more"),
    "fewer layers": (with_settings(encoder_layers=1), "layers.1.* is left over, and "),
    "truncated": (with_file("model.safetensors", half), "model.safetensors cannot be read: "),
    "empty": (with_file("model.safetensors", b""), "model.safetensors cannot be read: "),
    "pointer": (
        with_file("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:1"),
        r"model.safetensors \(a pointer: git lfs pull fetches it\) cannot be read: ",
    ),
    "negative": (with_settings(encoder_layers=-3), "config.json cannot be read: encoder_layers"),
    "wrong kind": (with_settings(d_model="wide"), "config.json cannot be read: .*'d_model'"),
    "no setting": (with_file("config.json", b"[]"), "config.json cannot be read: "),
    "tokenizer": (with_file("tokenizer_config.json", b"[]"), "tokenizer_config.json is damaged: "),
    "vocabulary": (with_file("vocab.json", b"}{"), "tokenizer cannot be read: "),
    "huge": (
        with_settings(
            vocab_size=10**6 + 10,
            symbol_classes={"proposition": 10**6},
            symbol_ranges={"proposition": [[10, 10**6 + 10]]},
            symbol_encoding="learned",
            d_model=2**20,
        ),
        "model and tokenizer disagree: symbol_classes",
    ),
}


def test_which_of_several_files_is_damaged(tmp_path):
    model, _ = save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    second = sorted(tmp_path.glob("*.safetensors"))[1]
    second.write_bytes(second.read_bytes()[:50])
    with pytest.raises(ValueError, match=f"{second.name} cannot be read: "):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_refused(tmp_path, name):
    damage, message = DAMAGES[name]
    save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}.*{message}") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def folnet(folder, tokenizer):
    config = FolnetConfig.for_tokenizer(
        tokenizer, **{key: value for key, value in FOLNET.items() if "token" not in key}
    )
    FolnetForMaskedLM(config).save_pretrained(folder)


def geometric(folder, tokenizer):
    sizes = {key: GEOMETRIC[key] for key in ("hidden_size", "num_attention_heads")}
    config = GeometricConfig.for_tokenizer(tokenizer, num_hidden_layers=1, **sizes)
    GeometricForMaskedLM(config).save_pretrained(folder)


def retrofit(folder, tokenizer):
    host = make_host("t5", vocab_size=len(tokenizer), decoder_start_token_id=0)
    model, made = get_symbol_model(host, tokenizer, SymbolConfig(symbols=3))
    model.extend_symbols({"name": 2})
    model.save_pretrained(folder)
    made.extend_symbols({"name": 2})
    return made


@pytest.mark.parametrize("make", [folnet, geometric, retrofit])
def test_tokens_of_other_models_are_refused(tmp_path, make):
    """Of all kinds of models; the other tokens are as many."""
    ours, others = word_level(words=("alice", "bob")), word_level(words=("bob", "alice"))
    own = make(tmp_path, ours) or ours
    own.save_pretrained(tmp_path)
    load_checkpoint(tmp_path, answers=False)
    strangers = make(tmp_path / "others", others) or others
    assert len(strangers) == len(own)
    strangers.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="disagree: the tokenizer has other tokens than the model"):
        load_checkpoint(tmp_path, answers=False)


@pytest.mark.parametrize(
    "command",
    [
        ("solve", "a & b", "--model", "BAD"),
        ("evaluate", "BAD", "--out", "OUT"),
        ("convert", "BAD", "OUT"),
        ("release", "BAD", "OUT"),
        ("release", "BAD"),
        ("push", "BAD", "me/model"),
        ("train", "propositional/debug", "model={}", "checkpoint=BAD"),
    ],
    ids=" ".join,
)
def test_no_tool_uses_a_damaged_checkpoint(tmp_path, monkeypatch, hub, command):
    bad = tmp_path / "bad"
    save(bad)
    DAMAGES["missing"][0](bad)
    (bad / TRAINER_STATE).write_text('{"log_history": []}')
    (bad / RECIPE_FILE).write_text(
        "{task: propositional, data: {path: data}, training: {output_dir: bad}}"
    )
    monkeypatch.chdir(tmp_path)
    done = hf_alpha(
        *(str(bad) if word == "BAD" else word.replace("BAD", str(bad)) for word in command)
    )
    assert done.error == f"error: {bad}/model.safetensors: tensor '{TENSOR}' is missing"
    assert not hub.repos and not (tmp_path / "OUT").exists() and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "path", sorted(resource_path("model_cards", "small").iterdir()), ids=lambda path: path.name
)
def test_released_models_are_whole(path):
    load_checkpoint(path)
