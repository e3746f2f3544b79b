import ast
import gzip
import json
import random
import re
import runpy
import sys
from importlib import import_module
from itertools import chain

import pytest
import torch
from hosts import SIZES_OF_CHATS
from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import needs_spot
from scripts import FOLDER, kept, load, prints_and_stores, store
from small_tokenizers import byte_level_of_chats

from hf_alpha import CanonicalNames, CanonicalTokenizer
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.logic.propositional.notation import write_assignment
from hf_alpha.recipe import read_recipe

STACKS = "--hidden=8 --heads=2 --layers=1 --vocabulary=9 --rounds=1"
LARGE_BATCH = "test_retrofit.py::TestLlamaRelational::test_renaming_of_a_large_batch"
QUICK = {
    "gpu": f"--small --shares=1 --tests={FOLDER.parent}/tests/families/{LARGE_BATCH} "
    "--only promises decoders training",
    "pairs": "--rows=2000 --names=10",
    "goals": "--only text-small llama-256 train --works training prefill --rounds=1 --runs=1 "
    "--steps=2",
    "geometric": f"{STACKS} --tokens=16 --lengths=8,16 --shares=0,50",
    "evaluation": "--tasks=ltl --formulas=6 --symbols=4 --rounds=1 --batch=4 --sizes 3 8",
}
SLOW = {
    "relational_price": "--lengths=16,48 --widths=8 --names=10 --threads=1 --tokens=48 --rounds=1 "
    "--sides streams relational",
    "scale": "--tokens 128 256 --by tokens rows --rows 1000 2000",
    "ltl": "--rounds=1 --formulas=12 --spot-formulas=2 --checks=12 --strings=200 --limit=0.2",
    "propositional": "--rounds=1 --formulas=4 --aiger-formulas=1",
    "startup": "--rounds=1",
    "installs": "--ways alias",  # downloads some 30 MB
}


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_benchmark_prints_and_stores_what_it_measures(name, capsys, tmp_path, monkeypatch):
    """At its smallest size; ours and its peers disagree nowhere."""
    monkeypatch.chdir(tmp_path)
    prints_and_stores(name, (QUICK | SLOW)[name], capsys)


@given(formulas=st.integers(0, 2**32), size=st.integers(1, 20), symbols=st.integers(1, 4))
def test_python_sat_alone_is_a_peer_that_answers_right(formulas, size, symbols):
    from peers.python_sat import Formula

    task, rng = PropositionalTask(), random.Random(formulas)
    names = task.default_symbols(symbols)
    if not task.is_feasible(size, symbols, constant_priority=0.2):
        return
    tokens = task.draw(rng, size, names, constant_priority=0.2)
    problem = task.write(tokens)
    with Formula(tokens) as formula:
        target = formula.target()
        assert (target is None) == (not task.has_answer(problem))
        for values in (target, {}, {name: rng.random() < 0.5 for name in names}):
            if values is not None:
                verdict = task.check(problem, write_assignment(values))
                assert formula.implied_by(values) == (verdict == "correct")
        if target is not None:
            assert formula.implied_by(target)


@needs_spot
def test_spot_alone_is_a_peer_that_judges_as_the_task_does():
    ltl = load("ltl")
    until = ["U", "a", "b"]
    pairs = [(until, ltl.TASK.target_of(tokens)) for tokens in (until, ["!", *until])]
    for sides in ltl.judge_all(pairs, 10.0).values():
        assert all(answers == [True, False] for answers, _ in sides.values())


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path):
    benchmark = load("alias")
    with pytest.raises(SystemExit, match=r"^error: .* '.*/bfcl/live_multiple.jsonl.gz'$"):
        benchmark.run(lambda: benchmark.main([f"--data={tmp_path}"]))


def test_a_model_that_is_not_there_is_said_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        load("conversion").main([f"--models={tmp_path}"])
    assert f"error: --models: {tmp_path} is no folder with" in capsys.readouterr().err


def test_chats_of_bfcl_are_certified(tmp_path, capsys):
    """Schemas become JSON Schema; answers are calls."""
    alias = load("alias")
    function = {
        "name": "sky.get",
        "description": "Asks sky.get.",
        "parameters": {"type": "dict", "properties": {"city_name": {"type": "any"}}},
    }
    question = {
        "id": "0",
        "question": [[{"role": "user", "content": "sky.get now"}]],
        "function": [function],
    }
    answer = {"id": "0", "ground_truth": [{"sky.get": {"city_name": ["Rome"], "unit": [""]}}]}
    (tmp_path / "bfcl").mkdir()
    for name in alias.FILES:
        for ending, row in (("", question), ("-answers", answer)):
            with gzip.open(tmp_path / "bfcl" / f"{name}{ending}.jsonl.gz", "wt") as file:
                file.write(json.dumps(row) + "\n")
    (chat,) = alias.chats(tmp_path / "bfcl", "parallel")
    assert chat["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"city_name": {"type": "string"}},
    }
    assert chat["messages"][1]["tool_calls"][0]["function"] == {
        "name": "sky.get",
        "arguments": '{"city_name": "Rome"}',
    }
    alias.main(["--data", str(tmp_path)])
    assert "| parallel | 1 | 2 | 7 | 0 | 1 |" in capsys.readouterr().out


def test_people_counts_what_comes_back_and_what_is_not_found(tmp_path):
    """By a list of names, which finds no other ones."""
    people = load("people")
    for part in ("dev", "test"):
        lines = ["# newdoc id = 1", "# text = Ann Lee = Ann.",
                 "# text = She met Bo Xu. Xu left a long note to Ann, and so on"]  # fmt: skip
        (tmp_path / f"{part}.iob2").write_text("\n".join(lines))
    texts = people.documents(tmp_path)
    assert texts == ["Ann Lee = Ann. She met Bo Xu. Xu left a long note to Ann, and so on"] * 2

    def find(text):
        start = text.find("Ann Lee")
        return [(start, start + 7)] if start >= 0 else []

    counts = people.measured(texts, find)
    assert counts["exact"] == counts["forms"] == counts["own words"] == counts["texts"] == 2
    assert counts["with parts left"] == 2 and counts["names"] == 2
    assert counts["not found"] == counts["sent otherwise"] == 10
    assert counts["renamings"] == 12  # called PersonB, it is read as it is spelled


@pytest.mark.slow
def test_a_conversion_holds_little_more_than_the_file(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shape,) = (name for name in load("conversion").SHAPES if name.startswith("135M"))
    load("conversion").main(["--shapes", shape, f"--out={tmp_path / 'out'}"])
    held = kept()["data"]["rows"][shape]
    assert 0.5 < held["work"] / held["file"] < load("conversion").GOAL


@pytest.mark.slow
def test_transduction_finds_what_its_peers_find(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    transduction = load("transduction")
    (tmp_path / "data.tsv").write_text("lemma\tpos\nfire hose\tn\nE.U.\tn\nwar crime\tn\n")
    out = str(tmp_path / "out")
    tiny = ["--entries", "3", "40", "--sentences=50", "--rounds=2", "--out", out]
    transduction.main([*tiny, "--data", str(tmp_path / "data.tsv")])
    lines = capsys.readouterr().out.splitlines()
    rows = kept()["data"]["rows"]
    assert (
        len([line for line in lines if line.startswith("| 40 | ")]) == len(rows[1]["seconds"]) + 1
    )
    for row in rows:
        segments = row["segments"]
        assert segments["ours"] + row["dropped"] == segments["token trie"] >= 50
        assert segments["ours with ten rules"] >= segments["ours"]
        assert row["alone"]["load"]["seconds"] > 0
    entries = [("fire hose", "X"), ("Fire", "Y"), ("E.U.", "X")]
    ours = transduction.Transducer.compile(transduction.Lexicon.from_entries(entries))
    text = "The E.U. sent fire  hose and fire"
    assert transduction.TokenTrie(entries).spans(text) == ours.spans(text) != []


FAMILIES = load("retrofit_families")
NAMED_IN_WORDS = [
    *("Marian, two vocabularies", "LED", "ProphetNet", "Whisper"),
    *("GPT-J", "BLOOM", "Falcon"),
]


def without_numbers(words: str) -> str:
    """How much logits differ goes with the processor."""
    return re.sub(r"\d\.\d\de-\d\d", "", words)


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=() if family in NAMED_IN_WORDS else pytest.mark.slow)
        for family in FAMILIES.FAMILIES
    ],
)
def test_a_family_takes_the_encodings_that_the_result_says(family):
    """And is refused in these words."""
    table = store.read("retrofit_families")["text"]
    (row,) = re.findall(rf"^\| {re.escape(family)} \| (.*) \|$", table, re.MULTILINE)
    words = dict(re.findall(r"^(\d+)\. (.*)$", table, re.MULTILINE)) | {"yes": ""}
    said = [without_numbers(words[cell]) for cell in row.split(" | ")]
    assert [without_numbers(why) for why in FAMILIES.refusals(family)] == said


@pytest.mark.slow  # 20,000 functions are drawn
def test_pairs_for_real_models_differ_in_names_alone():
    """The four kinds of names are one text to canonical spelling; wider functions are inlined."""
    real_models = load("real_models")
    train, tests = real_models.inline_pairs()
    assert len(train) >= 20_000 and not {*train} & {*tests["names of training"]}
    names = CanonicalNames({"name": real_models.RULE})
    same, wide = list(tests.values())[:4], list(tests.values())[4:]
    for pairs in zip(*same, strict=True):
        assert len({real_models.spelled(names, pair) for pair in pairs}) == 1
    for source, target in chain(*wide):
        command, code = source.removesuffix("\nanswer\n").split("\n", 1)
        tree = real_models.inline.Inline(command.split()[1]).visit(ast.parse(code))
        assert ast.unparse(tree) == target
    for count in real_models.COUNTS:
        assert {len(real_models.names_of(pair)) for pair in tests[f"{count} names"]} == {count}


def test_a_prompt_may_be_read_in_both_directions_and_an_answer_not():
    batch = load("real_models").batch([([5, 6, 7, 8], 2), ([5, 6, 7], 1)], 0, reads_ahead=True)
    seen = [
        [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]],
    ]
    assert batch["attention_mask"][:, 0].long().tolist() == seen
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3]] * 2


@pytest.mark.slow  # models are trained
def test_real_tasks_are_the_same_but_for_names(tmp_path, capsys, monkeypatch):
    """With a tiny Llama in SmolLM2's place, and the data sets' formats."""
    monkeypatch.chdir(tmp_path)
    from transformers import LlamaConfig, LlamaForCausalLM

    tasks = load("real_tasks")
    tokenizer = byte_level_of_chats(tasks.TEMPLATE)
    ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **{**SIZES_OF_CHATS, **ids}))
    for part in (tokenizer, model):
        part.save_pretrained(tmp_path / "smollm2-135m")
    small_bfcl(tmp_path / "bfcl")
    small_text2sql(tmp_path / "text2sql")
    made = {
        name: task(tmp_path, tmp_path / "smollm2-135m", 4) for name, task in tasks.TASKS.items()
    }
    for name, task in made.items():
        spelling = CanonicalTokenizer.from_tokenizer(tokenizer, task.rules)
        asked = [[tasks.encode(spelling, pair) for pair in pairs] for pairs in task.tests.values()]
        assert asked[0] == asked[1] == asked[2], name
        assert not {*task.train} & {pair for pairs in task.tests.values() for pair in pairs}
    ((source, _), *_) = made["calls"].tests["invented"]
    assert "the place" in source and '"place"' not in source  # a word, but no name
    for pair in made["calls"].tests["names as they are"]:
        for rivals in tasks.RIVALS.values():
            assert all(rival[1] != pair[1] and len(rival[1].spans) == 3 for rival in rivals(pair))
    for source, target in made["output"].tests["misleading"]:
        code, call = source.removesuffix("\nanswer\n").split("\n\n")
        exec(code, scope := {})
        assert str(eval(call, scope)) == target
    for source, target in made["extract"].train[:20]:
        assert import_module("extract_check").check(
            re.sub(r" as \w+\n", "\n", source.removesuffix("answer\n")), target
        )
    tasks.main(
        [f"{tmp_path}", f"--data={tmp_path}", "--steps=0,1", "--tasks=calls,sql", "--tests=4",
         "--remedies=plain,plain-prefix,canonical,relational-prefix-new,relational-unpointed-lora",
         f"--out={tmp_path / 'out'}"]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.count("| relational-unpointed-lora | 1 | 1 |") == 3
    found = kept()["data"]
    for name, (run,) in found["calls"].items():
        before, after = run["English"]
        assert (before == pytest.approx(after, rel=1e-6)) == (
            name.endswith(" 0") and "new" not in name
        )
    ahead, behind = (
        found["sql"][f"{name} 0"][0]["tests"]["values"]["loss"]
        for name in ("plain-prefix", "plain")
    )
    assert ahead != pytest.approx(behind, rel=1e-5)
    as_is, *renamed = found["calls"]["canonical 0"][0]["tests"].values()
    assert renamed == [as_is] * 2 and as_is["places"][1] > 0


def small_bfcl(folder):
    """Questions with a tool or two, in the files of BFCL."""
    folder.mkdir()
    for part, count in (("simple_python", 1), ("multiple", 2), ("parallel", 1)):
        rows = {"": [], "-answers": []}
        for number in range(12):
            tools = [
                {
                    "name": f"{part}_{number}.get_{other}",
                    "description": f"Tells the place of a thing, {other}.",
                    "parameters": {
                        "type": "dict",
                        "properties": {key: {"type": "string"} for key in ("place", "name")},
                        "required": ["place"],
                    },
                }
                for other in range(count)
            ]
            question = [[{"role": "user", "content": f"In the place A{number} for Bo?"}]]
            values = {"place": [f"A{number}"], "name": ["Bo"], "unit": ["", "m"]}
            row = {"id": f"{part}_{number}"}
            rows[""].append({**row, "question": question, "function": tools})
            rows["-answers"].append({**row, "ground_truth": [{tools[0]["name"]: values}]})
        for kind, lines in rows.items():
            with gzip.open(folder / f"{part}{kind}.jsonl.gz", "wt") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)


def small_text2sql(folder):
    """Questions about a table, in the files of text2sql-data."""
    folder.mkdir()
    for name in ("geography", "scholar", "restaurants"):
        queries = [
            {
                "query-split": split,
                "sql": [f'SELECT A FROM {name} WHERE B = "city_name0" AND C > {number} ;'],
                "variables": [{"name": "city_name0"}],
                "sentences": [
                    {
                        "text": f"which has city_name0 and {number} or {part}",
                        "question-split": part,
                        "variables": {"city_name0": "new york"},
                    }
                    for part in ("train", "test")
                ],
            }
            for number, split in enumerate(["train", "test"] * 4)
        ]
        with gzip.open(folder / f"{name}.json.gz", "wt") as file:
            json.dump(queries, file)
        lines = f"Table Name, Field Name, Is\n{name}, A, y\n-, -, -\n{name}, B, n\n"
        (folder / f"{name}-schema.csv").write_text(lines)


def test_a_model_of_rings_reads_the_same_whatever_their_numbers(tmp_path):
    """And one of digits; one that is trained as it is does not."""
    from transformers import MarianConfig, MarianMTModel

    import annalog

    reactions = load("reactions")
    words = ["<unk>", "<pad>", "<sos>", "<eos>", *"CNcn().123456789"]
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder")
             for name, n in {"layers": 1, "attention_heads": 2, "ffn_dim": 8}.items()}  # fmt: skip
    ids = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2}
    config = MarianConfig(vocab_size=len(words), d_model=8, **sizes, **ids)
    config.forced_eos_token_id = None
    MarianMTModel(config).save_pretrained(tmp_path)
    annalog.tokenizer_of(words).save_pretrained(tmp_path)
    pair = "CN1CCC1.c1ccncc1", "CN1CC1c1cc2nc1C2"  # whose last ring is new
    for name, same in {"plain": False, "relational-scratch": True, "binding": True}.items():
        learner = reactions.Learner(name, tmp_path)
        read = pair if name != "relational-scratch" else (pair[0], pair[0])
        batches = [learner.batch([each]) for each in (read, reactions.permuted(read, 1))]
        for key in ("input_ids", "labels"):
            assert batches[0][key].equal(batches[1][key]) is same, (name, key)
    answers = learner.best([pair], 2)
    assert [len(row) for row in answers] == [2]


def test_beyond_asks_problems_that_are_not_in_training(tmp_path, monkeypatch, capsys):
    import beyond

    anf = beyond.anf
    anf.FILES.save(tmp_path, rows=500, tests=1)
    train = [json.loads(line) for line in (tmp_path / "train.jsonl").open()]
    pairs = list(beyond.training_pairs(anf.FILES, len(train)))
    assert pairs == train
    monkeypatch.setitem(
        beyond.SOURCES, "anf-relational", (lambda: pairs, beyond.with_names(anf.draw))
    )
    point = beyond.Point("operations", "2", [(2, 2), (3, 2)])
    args = beyond.parse(["--only=anf-relational", "--samples=20", f"--runs={tmp_path / 'runs'}"])
    finder = read_recipe("text/anf").configured_task.finder
    rows = beyond.problems_of(
        "anf-relational", point, read_recipe("text/anf").configured_task, args
    )
    keys = [{beyond.pair_key(text, finder) for text in texts} for texts in (
        [row["problem"] for row in rows], [row["source"] for row in train],
    )]  # fmt: skip
    assert len(rows) == 20 and not keys[0] & keys[1]
    points = beyond.each("operations", (2,), lambda size: [(3, size)])
    monkeypatch.setattr(beyond, "POINTS", {"anf-relational": points})
    beyond.main(["--only=anf-relational", "--samples=2", f"--runs={tmp_path / 'runs'}"])
    assert "| anf-relational | operations | 2: 100.0 | 2 |" in capsys.readouterr().out


@pytest.mark.slow  # 120,000 functions are drawn
def test_inlining_is_tested_on_what_no_training_had(tmp_path):
    """Also where first trainings had fewer names, as those of inline-t5."""
    import beyond

    inline = beyond.inline
    assert len(inline.pair(random.Random(0), 10)["source"].split("(")[1].split(",")) == 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["inline.py", str(tmp_path), "20"])
        runpy.run_path(inline.__file__, run_name="__main__")
    test = [json.loads(line) for line in (tmp_path / "test.jsonl").open()]
    assert len(test) == 17 * 60  # 4 to 20 names
    assert not {*map(inline.shape, test)} & {*map(inline.shape, beyond.inlined_before())}
