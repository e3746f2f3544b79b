"""What was measured once still runs."""

import gzip
import importlib
import json
import random
import re
from pathlib import Path

import pytest
from scripts import load, prints_and_stores

from hf_alpha.recipe import read_recipe
from hf_alpha.train import train

pytestmark = pytest.mark.slow

SMALL = "--d-model=16 --layers=1 --heads=2 --ffn=16"
STACKS = "--hidden=8 --heads=2 --layers=1 --vocabulary=9 --rounds=1"
SIZES = {
    "folnet": f"{STACKS} --binary=4 --lengths=3,6 --tokens=6 --sets j.a jmc.atp --no-memory",
    "dual_part": f"{SMALL} --rounds=2 --batch=3 --size=9 --used-symbols=3 --symbols=5 --renamed "
    "--random-dim=8 --methods normal neighboring_points",
    "all_streams": f"{SMALL} --batch=4 --batches=1 --pool=2 --rounds=1 --new-tokens=2 --symbols=3 "
    "--work generation",
    "figure5": "--lengths=5,8 --symbols=1,2 --formulas=2 --limit=1",
    "extrapolation": "--task=propositional --encodings=relational --variants=recipe --seeds=0 "
    "--steps=4 --every=2 --samples=2 --sizes=1-5 --symbols=1-2 --change "
    "data.generate.num_samples=500 --change data.path=data --change training.warmup_steps=1 "
    "--change model.d_model=16 --change training.logging_steps=2",
    "new_names": "--task=anf --host=llama --seeds=0 --steps=2 --rows=40 --tests=1 --runs=runs "
    "--ways=learned,renamed,canonical --change=training.per_device_train_batch_size=2 "
    "--change=model.backbone_config.hidden_size=16",
}


@pytest.mark.parametrize("name", SIZES)
def test_a_settled_benchmark_prints_and_stores_what_it_measures(
    name, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    prints_and_stores(f"archive/{name}", SIZES[name], capsys)


def test_adacos_is_measured_by_the_mean_and_the_sum(capsys, tmp_path, monkeypatch):
    from tiny_studies import TINY as TINY_STUDY

    monkeypatch.chdir(tmp_path)
    adacos = load("archive/adacos")
    asked = ["--only", "copying-dual_part-*", "--seeds=0", "--steps=3", "--out", f"{tmp_path}/out"]
    for change in ([], ["--change", "model.symbol_renaming=random", "--runs", "runs/renamed"]):
        adacos.main([*asked, *change], TINY_STUDY)
    assert capsys.readouterr().out.count("| dual-part | sum |") == 2
    rows = json.loads((tmp_path / "out.json").read_text())["data"]["rows"]
    scales = {row.rpartition("-")[2]: found[0]["scale"] for row, found in rows.items()}
    assert scales["fixed"] == 10.0 and len(set(scales.values())) == 3
    recipe = read_recipe(tmp_path / "runs/renamed/tiny/models/copying-dual_part-sum-0/recipe.yaml")
    assert recipe.model["adacos"] == "sum" and recipe.model["symbol_renaming"] == "random"


@pytest.fixture
def clutrr(tmp_path) -> Path:
    """Stories of three people, in CLUTRR's form."""
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"k23_{part}.jsonl.gz", "wt") as file:
            for number in range(8):
                women, man = [f"Ann{part}{number}", f"Cleo{part}{number}"], f"Bob{part}{number}"
                row = {
                    "story": "",
                    "query": women,
                    "target": "daughter",
                    "genders": f"{women[0]}:female,{man}:male,{women[1]}:female",
                    "story_edges": [[0, 1], [1, 2]],
                    "edge_types": ["son", "sister"],
                }
                file.write(json.dumps(row) + "\n")
    return tmp_path


def test_retrofit_texts_trains_and_tests_with_known_and_new_names(clutrr, capsys, monkeypatch):
    texts = load("archive/retrofit_texts")
    monkeypatch.chdir(clutrr)
    tiny = ["--tasks=kinship", "--hosts=bart", f"--clutrr={clutrr}", "--runs=runs", "--batch=4"]
    tiny += ["--steps=2", "--tuning-steps=1", "--samples=2", "--covariance=1", "--renamings=3"]
    tiny += ["--d-model=16", "--only=untouched;first_occurrence;streams", f"--out={clutrr}/out"]
    texts.main(tiny)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| bart: ")]
    assert [line.split(" | ")[0] for line in lines] == [
        f"| bart: {name}" for name in ("untouched", "first_occurrence", "streams")
    ] * len(texts.SETS)
    found = json.loads((clutrr / "out.json").read_text())["data"]["kinship"]
    known, new = (found["sets"][name] for name in texts.SETS)
    for name in ("bart: first_occurrence", "bart: streams"):
        assert known[name] == new[name] and new[name]["covariance"] == 1
        assert new[name]["samples"] == {"3": 2}
    splits = [found["names"][name]["subwords of a name"] for name in texts.SETS]
    assert splits[1] > splits[0] >= 1
    before = (clutrr / "runs" / "kinship-bart" / "model.safetensors").stat()
    texts.main(tiny)  # all is there
    assert (clutrr / "runs" / "kinship-bart" / "model.safetensors").stat() == before


def test_retrofit_texts_gives_the_same_problems_other_names(clutrr, monkeypatch):
    from hf_alpha.data.keys import canonical_text

    texts = load("archive/retrofit_texts")
    monkeypatch.chdir(clutrr)
    args = texts.parse(["--tasks=kinship", f"--clutrr={clutrr}", "--runs=runs"])
    data = texts.make_data("kinship", args)
    names = {
        part: {name for row in data.rows(part) for name in texts.names_in(row["problem"])}
        for part in ("train", *texts.SETS)
    }
    pools = [{name for of in data.pools[s].values() for name in of} for s in texts.SETS]
    assert names["train"] | names["known"] <= pools[0] and names["new"] <= pools[1]
    assert not pools[0] & pools[1]
    for known, new in zip(data.rows("known"), data.rows("new"), strict=True):
        finder = data.task.finder
        assert canonical_text(known["problem"], finder) == canonical_text(new["problem"], finder)
        one, _, two = new["answer"].partition(" is the daughter of ")
        assert new["problem"].endswith(f"who is {one} to {two} ?")
    inline = texts.pools_of("inline", [])
    assert not {*inline["known"]["identifier"]} & {*inline["new"]["identifier"]}


def test_checkpoints_has_a_line_for_each_and_what_rules_choose(capsys, tmp_path):
    run, places = tmp_path / "run", [f"data.path={tmp_path}/data", "training.disable_tqdm=true"]
    places += ["data.generate.num_samples=200", "training.max_steps=4", "training.save_steps=2"]
    places += ["training.eval_steps=2", f"training.output_dir={tmp_path}/run"]
    train(read_recipe("propositional/debug", places))
    tiny = ["--symbols=1-2", "--sizes=1-5", "--samples=4", "--others=3", f"--work={tmp_path}/work"]
    load("archive/checkpoints").main([str(run), *tiny, f"--exclude={tmp_path}/data"])
    printed = capsys.readouterr().out
    assert printed.count("| step 2 |") == printed.count("| step 4 |") == 1
    assert "| the last | 4 |" in printed and "smallest validation loss" in printed


def test_peer_of_all_streams_computes_the_same():
    import torch
    from strategies import make_model, random_batch

    from hf_alpha.modeling.cpu import BlockLinear
    from peers.all_streams import AllStreams

    model = make_model(dropout=0.0)
    peer = AllStreams(model.config).eval()
    peer.load_state_dict(model.state_dict())
    assert not any(isinstance(module, BlockLinear) for module in peer.modules())
    batch = random_batch(1, model.config, [(6, 3), (4, 0), (3, 2), (9, 5)])
    with torch.no_grad():
        found, expected = peer(**batch).logits, model(**batch).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    batch["labels"] = batch.pop("decoder_input_ids")
    for side in (model, peer):
        side.train()(**batch).loss.backward()
    for one, two in zip(peer.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-4)
    del batch["labels"]
    kept = {"num_beams": 3, "max_new_tokens": 5, "return_dict_in_generate": True}
    scores = [
        side.eval().generate(**batch, **kept, output_scores=True).sequences_scores
        for side in (model, peer)
    ]
    torch.testing.assert_close(*scores, atol=1e-5, rtol=1e-5)


def test_folnet_counts_the_parameters_of_the_paper(capsys, tmp_path):
    """The code's form of the operators and BERT's vocabulary: all but the line of RPE*."""
    load("archive/folnet").main(["--count", "--vocabularies=30522", "--out", str(tmp_path / "out")])
    *lines, last = capsys.readouterr().out.strip().splitlines()
    assert last.split(" | ")[-2:] == ["12", "10 |"]
    rows = json.loads((tmp_path / "out.json").read_text())["data"]["rows"]
    other = [
        row["line"] for row in rows if round(row["counts"]["code, 30,522"] / 1e6) != row["paper"]
    ]
    assert other == ["Table 3, 5"] and len(rows) == len(lines) - 4 == 13


def test_new_names_finds_answers_right(tmp_path):
    """Those of a model that knows its few problems by heart, to their end."""
    study = load("archive/new_names")
    args = study.parse(["--task=anf", "--host=llama", "--steps=80", f"--runs={tmp_path}"])
    args.change = ["training.disable_tqdm=true", "training.learning_rate=0.004"]
    args.rows, args.tests = 12, 1
    study.make_data("anf", args)
    recipe = study.recipe_of("anf", "ordered", 0, args)
    recipe.training["warmup_steps"] = 5
    train(recipe)
    rows = study.rows_of(tmp_path / "data-anf-ordered" / "train.jsonl")
    right = study.judged("anf", rows, Path(recipe.training["output_dir"]))
    assert len(right) == 12 and sum(right) >= 10


@pytest.mark.parametrize("task", ["anf", "tseitin", "extract", "proofs"])
def test_new_names_renames_source_and_target_alike(task):
    study = load("archive/new_names")
    drawn = importlib.import_module(task)  # of examples/tasks
    module, _, name = read_recipe(f"text/{task}").check.partition(":")
    check = getattr(importlib.import_module(module), name)
    row = drawn.draw(random.Random(0), drawn.UNSEEN, *drawn.FILES.test[-1])
    pairs = {name: change(row, drawn) for name, change in study.NAMES.items()}
    for pair in pairs.values():
        assert check(pair["source"], pair["target"]) is True
    words = re.findall(r"\w+", "{source} {target}".format(**pairs["numbered"]))
    names = list(dict.fromkeys(word for word in words if word in drawn.SEEN))
    assert names == drawn.SEEN[: len(names)] and not {*words} & {*drawn.UNSEEN}
    assert pairs["ordered"]["source"] == row["source"]
    words = re.findall(r"\w+", pairs["ordered"]["target"])
    new = list(dict.fromkeys(word for word in words if word in drawn.SEEN))
    assert new == drawn.SEEN[: len(new)] and bool(new) is (task != "proofs")


WORDNET = """  1 This line is of the licence.
00001740 03 n 02 fire_hose 0 hose 0 001 ~ 00001930 n 0000 | a large hose; "they brought fire hoses"
"""


def test_glue_has_a_row_for_each_model_and_minute(capsys, tmp_path):
    glue = load("archive/glue")
    sentences = [f"{a} {b} hoses of the {c} ." for a in "xyz" for b in "uvw" for c in "pqrs"]
    rows = list(enumerate(sentences))
    lines = {
        "sst2/train.tsv": [f"{x}\t{i % 2}" for i, x in rows],
        "cola/in_domain_train.tsv": [f"o\t{i % 2}\t\t{x}" for i, x in rows],
        "mrpc/msr_paraphrase_train.txt": ["Quality\t1\t2\ta\tb"]
        + [f"{i % 2}\t1\t2\t{x}\t{x}" for i, x in rows],
        "rte/train.jsonl": [
            json.dumps({"premise": x, "hypothesis": x, "label": "ab"[i % 2]}) for i, x in rows
        ],
        "dimsum/dimsum16.train": ["\t".join(["1", "x", "x", "X", "O", "0", "", "", "1"]), ""],
        "wnut17/train.conll": ["x\tO", ""],
        "uner_ewt/dev.iob2": ["x\tO", ""],
        "wordnet/data.noun": [WORDNET], "wordnet/data.verb": [], "wordnet/data.adj": [],
        "wordnet/data.adv": [],
    }  # fmt: skip
    for name, some in lines.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(some) + "\n")
    for task in glue.TASKS.values():
        (tmp_path / task.test).write_text((tmp_path / task.train).read_text())
    glue.MEASURED_STEPS = 4
    small = [
        "tokenizer=wordpiece:300",
        "data.validation=0.2",
        "training.logging_steps=1",
        "training.disable_tqdm=true",
    ]
    glue.main(
        [f"--data={tmp_path}", f"--wordnet={tmp_path / 'wordnet'}", f"--runs={tmp_path / 'runs'}",
         "--minutes=0", "--seeds=0", "--epochs=1", *(f"--change={change}" for change in small)]
    )  # fmt: skip
    table = capsys.readouterr().out
    assert all(f"| {name} | 0 min, 0 steps |" in table for name in ("FOLNet", "BERT"))
    assert "| most frequent |" in table and "cola, matthews" in table
