import re
from pathlib import Path

import pytest
from commands import hf_alpha
from geometrics import small_model
from hub_stub import HubStub
from huggingface_hub import upload_folder
from huggingface_hub.constants import HF_HUB_CACHE
from small_tokenizers import word_piece
from strategies import make_model

from hf_alpha.hub.info import describe_model
from hf_alpha.hub.release import LOG_FILE, read_log
from hf_alpha.loading import CheckpointError, load_checkpoint
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.resources import released_models, resource_path
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE
from hf_alpha.transduction import Lexicon, Transducer


def save(folder: Path, **settings: object) -> Path:
    make_model(**settings).save_pretrained(folder)
    build_tokenizer("propositional", 5).save_pretrained(folder)
    return folder


def lines_of(text: str) -> dict[str, str]:
    """Property -> what is said of it, in one line."""
    found = re.findall(r"^  (\S.{12}) (.*(?:\n {16}.*)*)", text, re.MULTILINE)
    return {name.strip(): " ".join(value.split()) for name, value in found}


def test_what_is_said_is_true_of_the_loaded_model():
    folder = str(released_models()["propositional-streams-small"])
    done = hf_alpha("info", folder, released_models()["ltl-learned-small"])
    assert done.code == 0, done.err
    text, vanilla = done.out.split("\n\n")
    said, loaded = lines_of(text), {}
    assert text.startswith(f"{folder}\n")
    transformers = {}
    exec(said["load"], transformers)  # with the code beside the model, and without hf_alpha
    exec(said["or"], loaded)
    model, tokenizer = loaded["model"], loaded["tokenizer"]
    theirs = transformers["model"]
    assert type(theirs).__name__ == type(model).__name__
    assert theirs.num_parameters() == model.num_parameters()
    own = model.get_input_embeddings().weight.numel()
    assert said["parameters"] == f"{model.num_parameters():,}, {own:,} in embeddings"
    assert said["model type"] == "alpha, an encoder-decoder"
    assert said["encoding"] == f"streams: {model.config.encoding.description}"
    assert "renaming the input" in said["promises"] and "larger vocabulary" in said["promises"]
    count, tokens = said["base tokens"].split(": ")
    assert int(count) == len(tokens.split()) and set(tokens.split()) <= set(tokenizer.get_vocab())
    assert said["symbols"] == "3 proposition" and said["more symbols"].startswith("yes: ")
    assert said["weights"] == "float32, 2.1 MB" and said["sizes"] == model.config.size_text
    assert (said["task"], said["trained"]) == ("propositional", "12,000 steps")
    assert lines_of(vanilla)["more symbols"].startswith("no: symbol_encoding 'learned' has one")
    assert lines_of(vanilla)["promises"] == "none beside those of all models"


def test_a_model_on_the_hub_is_described_without_its_weights(hub: HubStub, tmp_path):
    folder = save(tmp_path / "model", symbol_encoding="learned", symbol_renaming="first_occurrence")
    hub.append("model", "me/described", {})
    upload_folder(repo_id="me/described", folder_path=folder)
    here, there = describe_model(str(folder)), describe_model("me/described")
    assert here == there.replace("me/described", str(folder))
    assert "renamed by order of first occurrence" in lines_of(there)["encoding"]
    assert "task" not in lines_of(there) and "trained" not in lines_of(there)
    cached = [path.name for path in Path(HF_HUB_CACHE, "models--me--described").rglob("*")]
    assert "config.json" in cached and "model.safetensors" not in cached


def test_a_log_without_a_line_says_no_steps(tmp_path):
    """That of a checkpoint before the first line; the description failed."""
    folder = save(tmp_path / "model")
    (folder / LOG_FILE).write_text("[]\n")
    assert "trained" not in lines_of(describe_model(str(folder)))


def test_an_odd_log_is_named(tmp_path):
    odd = ['{"a": 1}', '"abc"', "3", "[3]", '[{"a": 1}]', '[{"step": "x"}]', "[" * 100_000, "\xff"]
    for number, log in enumerate(odd):
        (file := tmp_path / f"{number}.json").write_bytes(log.encode("latin-1"))
        with pytest.raises(ValueError, match=file.name):
            read_log(file)
    folder = save(tmp_path / "model")
    for name in (LOG_FILE, TRAINER_STATE):  # of which the second one goes before the first
        (folder / name).write_text('{"a": 1}')
        assert name in hf_alpha("info", folder).error


def test_what_a_folder_says_reaches_no_terminal_as_a_command(tmp_path):
    folder = save(tmp_path / "model")
    recipe = (resource_path("training", "propositional") / "debug.yaml").read_text()
    task = r'"own\e]0;title\a\x9b2J\u202e"'
    (folder / "recipe.yaml").write_text(re.sub("task: .*", lambda _: f"task: {task}", recipe))
    text = hf_alpha("info", folder).out
    assert lines_of(text)["task"] == r"own\x1b]0;title\x07\x9b2J\u202e"
    assert describe_model(str(folder)) == text.rstrip("\n")


def test_what_cannot_be_described(tmp_path):
    assert f"no checkpoint folder '{tmp_path / 'no'}'" in hf_alpha("info", tmp_path / "no").error
    assert "is no checkpoint folder: it has no config" in hf_alpha("info", tmp_path).error
    folder = save(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read"):
        describe_model(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors"):
        describe_model(str(folder))
    with pytest.raises(FileNotFoundError):
        load_checkpoint(folder)


def test_an_encoder_with_segments_is_described(tmp_path):
    """Models that do not answer, and have no symbols, are described too."""
    tokenizer = word_piece()
    lexicon = Lexicon.from_entries([("alice sees", "seen"), ("and bob", "name")])
    transducer = Transducer.compile(lexicon)
    model = small_model(vocab_size=len(tokenizer), segment_labels=transducer.labels)
    model.save_pretrained(tmp_path)
    GeometricTokenizer.from_tokenizer(tokenizer, transducer).save_pretrained(tmp_path)
    said = " ".join(hf_alpha("info", tmp_path).out.split())
    assert "model type geometric, an encoder (GeometricForMaskedLM)" in said
    assert "graph over 2 kinds of segments" in said and "segments name, seen" in said
    assert f"parameters {model.num_parameters():,}" in said and "encoding" not in said
    assert f"load_checkpoint('{tmp_path}', answers=False)" in said
    loaded, _ = load_checkpoint(tmp_path, answers=False)
    assert type(loaded) is type(model)
