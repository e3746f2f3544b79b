"""Models that read canonical spelling: asked in the names of a text, and as folders."""

import json
import os
import re

import own_process
import pytest
import torch
from commands import hf_alpha, weights_of
from hosts import make_host
from small_tokenizers import SUBWORD, byte_level, characters, finish, smiles, unigram
from tokenizers import Tokenizer, models
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    ByT5Tokenizer,
    TextStreamer,
    pipeline,
)

from hf_alpha import (
    CanonicalModel,
    CanonicalNames,
    CanonicalTokenizer,
    NamesTextGenerationPipeline,
    load_checkpoint,
)
from hf_alpha.canonical import convert_to_canonical, generating
from hf_alpha.demo.choices import page_choices
from hf_alpha.hub.info import describe_model


def test_a_tokenizer_does_what_it_was_told(tmp_path):
    """Its settings, by which data in a cache is known, say all of it; a saved one does the same."""
    host, rules = characters(), {"variable": "[xyz]", "function": ["b", "sin"]}
    host.add_special_tokens({"additional_special_tokens": ["<|x|>"]})
    ways = [{}, {"words": ["k", "p"]}, {"kept": ["function"]}, {"symbol_renaming": "random"}]
    made = [CanonicalTokenizer.from_tokenizer(host, rules, **way) for way in ways]
    settings = [tokenizer.settings() for tokenizer in made]
    assert all(settings.count(each) == 1 for each in settings)
    text = "sin(x)<|x|>"
    for tokenizer, spelled in zip(made, ["b(c)<|x|>", "k(p)<|x|>", "sin(c)<|x|>"], strict=False):
        assert tokenizer(text)["input_ids"] == host(spelled)["input_ids"]
    assert made[3](text)["input_ids"][-1] == host(text)["input_ids"][-1]
    made[0].use_rules({"z": ["sin"], "a": ["x"]})  # JSON files sort classes
    made[0].save_pretrained(tmp_path)
    assert list(AutoTokenizer.from_pretrained(tmp_path).finder.rules) == ["z", "a"]
    by_function = CanonicalTokenizer.from_tokenizer(host, {"name": lambda text: [(0, 3)]})
    assert by_function("sin(x)")["input_ids"] == host("b(x)")["input_ids"]


def swapped(text):
    """A model: answers `x = y` by `y = x`, with a remark that depends on what x is called."""
    left, right = text.split(" = ")
    return f"{right} = {left}" if left < right else f"{left} = {right}"


def test_a_vote_depends_on_no_name_and_says_how_far_spellings_differ():
    """The model answers by the order of letters, so that spellings differ, and none does for it."""
    model = CanonicalModel(swapped, CanonicalNames({"name": "[a-z]+"}))
    votes = {model.vote(f"{a} = {b}").answer == f"{b} = {a}" for a, b in ("pq", "qp", ("u", "k"))}
    assert len(votes) == 1
    assert model.vote("p = q").doubt in (0.2, 0.4)
    asked: list[str] = []
    listening = CanonicalModel(lambda text: asked.append(text) or swapped(text), model.names)
    assert [listening.vote("p = q", n).answer for n in (1, 2)] == [model("p = q")] * 2
    assert asked[:2] == [model.names.spell("p = q").text] * 2 and asked[2] != asked[1]
    assert len(asked) == 3
    with pytest.raises(ValueError, match="spellings is 0: give 1 or more"):
        model.vote("p = q", 0)
    assert CanonicalModel(lambda text: f"not {text}", model.names).vote("p = q").doubt == 0
    # new names are called otherwise in each spelling, which is no difference
    fresh = CanonicalModel(lambda word: f"let {'k' if word == 'b' else 'b'} = {word}", model.names)
    voted = fresh.vote("left")
    assert (voted.answer, voted.doubt) == ("let k = left", 0)


def test_a_model_on_this_machine_gives_renamed_answers():
    """With random weights, whose answers are any tokens at all."""
    tokenizer = SUBWORD[0]()
    model = make_host("llama", vocab_size=len(tokenizer), bos_token_id=None, eos_token_id=None)
    ask = generating(model, tokenizer, max_new_tokens=30, do_sample=False)
    named = CanonicalModel(ask, CanonicalNames({"name": "[a-z]{4,}"}, tokenizer=tokenizer))
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer)
    by_pipe = CanonicalModel(
        lambda text: pipe(text, return_full_text=False, max_new_tokens=30, do_sample=False)[0][
            "generated_text"
        ],
        named.names,
    )
    assert by_pipe("alpha sees gamma") == named("alpha sees gamma")
    assert named("alpha sees gamma") == named("omega sees kappa").replace("omega", "alpha").replace(
        "kappa", "gamma"
    )


NAMES = "[a-z]{4,}"
TEXTS = ["alpha sees gamma, not ants", "omega sees kappa, not ants"]
CHAT = "{% for m in messages %}<{{ m['role'][:3] }}>{{ m['content'] }}\n{% endfor %}"
LOAD = """
import json, sys
from transformers import AutoModelForCausalLM, AutoTokenizer
assert "hf_alpha" not in sys.modules
folder, *texts = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(texts, padding=True, return_tensors="pt")
ids = model.generate(**batch, max_new_tokens=20, do_sample=False)
print(json.dumps([type(model).__name__, *tokenizer.batch_decode(ids, names=batch.names)]))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Kind of host -> a host, converted; the host itself is in a folder beside it."""
    converted = {}
    for kind, tokenizer in (("t5", unigram(end=True)), ("llama", byte_level())):
        tokenizer.chat_template = CHAT
        place = tmp_path_factory.mktemp(kind)
        for part in (make_host(kind, vocab_size=len(tokenizer), eos_token_id=2), tokenizer):
            part.save_pretrained(place / "host")
        converted[kind] = place / "out"
        options = ["--to", "canonical", "--names", NAMES]
        done = hf_alpha("convert", place / "host", converted[kind], *options)
        assert done.code == 0 and "its tokenizer writes names as" in done.out, done.err
    return converted


@pytest.fixture(params=["t5", "llama"])
def folder(request, folders):
    """One of them, and its kind."""
    return folders[request.param], request.param


def renamed(text):
    """The second text's names in place of the first one's."""
    return text.replace("alpha", "omega").replace("gamma", "kappa")


def test_a_folder_is_its_host_with_names_spelled(folder):
    """The same weights and class; without names, the same tokens; and answers that are renamed."""
    out, kind = folder
    model, tokenizer = load_checkpoint(out)
    host = AutoTokenizer.from_pretrained(out.parent / "host")
    assert weights_of(out) == weights_of(out.parent / "host")
    assert len(tokenizer) == len(host) and not hasattr(model.config, "symbol_classes")
    plain = "x and y, not Z"
    assert tokenizer(plain)["input_ids"] == host(plain)["input_ids"]
    assert tokenizer.decode(host(plain)["input_ids"]) == host.decode(
        host(plain)["input_ids"], skip_special_tokens=True
    )
    told = describe_model(str(out))
    assert f"AutoTokenizer.from_pretrained('{out}', trust_remote_code=True)" in told
    assert f"hf_alpha.load_checkpoint('{out}')" in told
    chat = [{"role": "user", "content": plain}]
    ids = [one.apply_chat_template(chat)["input_ids"] for one in (tokenizer, host)]
    assert ids[0] == ids[1]
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert [*batch.names[0].values()] == ["alpha", "sees", "gamma", "ants"]
    ids = model.generate(**batch, max_new_tokens=40, do_sample=False)
    one, two = tokenizer.batch_decode(ids, names=batch.names)
    assert two == renamed(one) and (kind == "t5" or one.startswith(TEXTS[0]))
    ask = generating(model, host, max_new_tokens=9, do_sample=False)
    voting = CanonicalModel(ask, tokenizer.canonical)
    one, two = (voting.vote(text, spellings=2) for text in TEXTS)
    assert (two.answer, two.doubt) == (renamed(one.answer), one.doubt)


@pytest.mark.slow  # its code is loaded as that of other tokenizers is
def test_a_folder_is_loaded_where_the_package_is_not(folders, tmp_path):
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    told = [LOAD, folders["llama"], *TEXTS]
    done = own_process.run("-I", "-c", *told, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    name, one, two = json.loads(done.stdout.splitlines()[-1])
    assert name == "LlamaForCausalLM" and two == renamed(one)


def test_pipelines_and_streams_answer_in_the_names_of_the_prompt(folders, capsys):
    model, tokenizer = load_checkpoint(folders["llama"])
    options = {"max_new_tokens": 30, "do_sample": False}
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer,
                    pipeline_class=NamesTextGenerationPipeline)  # fmt: skip
    one, two = ([row["generated_text"] for row in pipe(text, **options)] for text in TEXTS)
    assert two == [renamed(text) for text in one]
    batch = tokenizer(TEXTS[0], return_tensors="pt")
    streamer = TextStreamer(tokenizer, skip_prompt=True, names=batch.names)
    model.generate(**batch, **options, streamer=streamer)
    assert TEXTS[0] + capsys.readouterr().out.removesuffix("\n") == one[0]


@pytest.mark.quick_cases(1)
def test_a_folder_is_trained_measured_asked_and_shown(folder, tmp_path, monkeypatch):
    """As any model with names; its alpha-covariance is 1, and its answers follow the names."""
    out, _ = folder
    monkeypatch.chdir(tmp_path)
    pool = ["alpha", "gamma", "omega", "kappa", "ants", "bees"]
    pairs = [(a, b) for a in pool for b in pool if a != b]
    rows = [{"source": f"{a} sees {b}", "target": f"{b} {a}"} for a, b in pairs]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "extends": "text/small",
        "data": {"train": "pairs.jsonl"},
        "symbols": {"name": {"pattern": NAMES, "reserved": ["sees"]}},
        "training": {"output_dir": "run", "max_steps": 2, "eval_strategy": "no",
                     "save_strategy": "no", "load_best_model_at_end": False},
    }  # fmt: skip
    (tmp_path / "my.yaml").write_text(json.dumps(recipe))
    done = hf_alpha("train", "my.yaml", f"checkpoint={out}")
    assert done.code == 0, done.err
    _, tokenizer = load_checkpoint("run")
    assert [*tokenizer("alpha sees bees").names.values()] == ["alpha", "bees"]
    done = hf_alpha("evaluate", "run", out.parent / "host", "--data", "pairs.jsonl",
                    "--covariance", 2, "--samples", 2, "--out", "report")  # fmt: skip
    assert done.code == 0 and re.search(r"alpha_covariance  run( +100\.0)+\n", done.out), done.err
    assert "finds no name" not in done.err
    done = hf_alpha("solve", "--model", "run", "alpha sees bees")
    assert done.code == 0 and "answer" in done.out, done.err
    assert page_choices(["run"])["run"].rename("alpha sees bees").same
    assert "names         written as" in hf_alpha("info", "run").out


def test_a_template_that_writes_no_tools_is_named_where_their_names_are_sought(folders, tmp_path):
    said = []
    rules = {"name": NAMES, "tool": {"rule": "tools"}}
    convert_to_canonical(folders["llama"].parent / "host", tmp_path / "out", rules, said.append)
    assert "\nits chat template writes no tools, whose names are to be found" in said[0]


def test_trained_words_are_drawn_by_the_text_without_its_names(folders, tmp_path):
    """Other words for other texts, the same for renamed ones; saved and loaded, they are so too."""
    host, place = folders["llama"].parent / "host", tmp_path / "out"
    rules = {"second": "[A-Z]", "first": "[a-z]+"}  # not in the order of the alphabet
    convert_to_canonical(host, place, rules, lambda _: None, symbol_renaming="random")
    _, tokenizer = load_checkpoint(place)
    assert list(tokenizer.finder.rules) == ["second", "first"]
    words = [[*tokenizer(f"F sees x{'.' * number}").names] for number in range(9)]
    assert words[0] == [*tokenizer("G knows y").names] and len({*map(tuple, words)}) > 5
    pair = tokenizer.encode_pair("F sees x", "x sees F")
    assert pair["labels"][: len(pair["input_ids"])] != pair["input_ids"]


def test_rows_of_a_folders_tokenizer():
    """Two texts of a row have common names; answers may have new ones only if that is said."""
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), {"name": "[a-z]+"})
    batch = tokenizer("alice, v1", "bob, alice", return_offsets_mapping=True)
    assert batch.names == {"v1": "v1", "b": "alice", "c": "bob"}
    assert batch["offset_mapping"][0] == (0, 5)
    with pytest.raises(ValueError, match="the answer 'ann' has the name 'ann'"):
        tokenizer("bob", text_target="ann")
    batch = tokenizer("c of B", text_target="ann c", allow_absent_symbols=True)
    assert tokenizer.decode(batch["labels"]) == "f b"  # `B` is a name as well
    batch = tokenizer("bob <name_3>")  # which is no symbol, as there are none
    assert tokenizer.decode(batch["input_ids"], names=batch.names) == "bob <name_3>"
    tokenizer.use_rules({"other": {"column": "people"}})
    with pytest.raises(ValueError, match="text as MarkedText"):
        tokenizer("bob")
    bytes_of_text = CanonicalTokenizer.from_tokenizer(ByT5Tokenizer(), {"name": "[a-z]+"})
    assert bytes_of_text("bob")["input_ids"] == ByT5Tokenizer()("b")["input_ids"]
    with pytest.raises(ValueError, match="no end token"):
        CanonicalTokenizer.from_tokenizer(finish(Tokenizer(models.BPE()), False, unk_token="~"), {})


def test_a_tokenizer_and_its_chats_know_spellings_of_one_name():
    tokenizer = CanonicalTokenizer.from_tokenizer(byte_level(), {"name": {"column": "people"}})
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    text, names = "alice brown and brown", [["alice brown", "brown"]]
    chat = tokenizer.apply_chat_template([{"role": "user", "content": text}], names=names)
    for told in (tokenizer(text, names=names), chat):
        ids = told["input_ids"]
        assert tokenizer.decode(ids) == "b and b2"
        assert tokenizer.decode(ids, names=told.names) == text


def test_an_encoder_reads_rings_canonically(tmp_path):
    """Its weights stay, and so do its answers to what RDKit writes."""
    host = smiles()
    config = BertConfig(
        vocab_size=len(host), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=3,
    )  # fmt: skip
    for kind in (BertForMaskedLM, BertForSequenceClassification):
        place, out = tmp_path / kind.__name__, tmp_path / f"{kind.__name__}-canonical"
        kind(config).save_pretrained(place)
        host.save_pretrained(place)
        result = hf_alpha("convert", place, out, "--to", "canonical", "--names", "{rule: smiles}")
        assert "its tokenizer writes names as their rule spells them\n" in result.out, result
        tokenizer, model = AutoTokenizer.from_pretrained(out), kind.from_pretrained(out)
        assert weights_of(out) == weights_of(place)
        assert tokenizer.padding_side == host.padding_side == "right"
        texts = ["CN1CCC[C@H]1c1cccnc1", "CN7CCC[C@H]7c3cccnc3"]
        plain = host(texts, return_tensors="pt", return_token_type_ids=False)
        logits = model(**tokenizer(texts, return_tensors="pt")).logits
        assert torch.equal(logits[0], logits[1])
        torch.testing.assert_close(logits[0], kind.from_pretrained(place)(**plain).logits[0])
