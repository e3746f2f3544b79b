import ast
import gzip
import json
import random
import re
import runpy
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts import FOLDER, load, prints_and_stores

from hf_alpha import CanonicalNames, CanonicalTokenizer
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.propositional import PropositionalTask
from hf_alpha.tasks.propositional.notation import write_assignment

SMALL = "--d-model=16 --layers=1 --heads=2 --ffn=16"
RELATIONAL = (
    "--names=1,5 --d-model=16 --encoder-layers=2 --decoder-layers=1 --heads=2 --ffn=16 --batch=2 "
    "--length=6 --target=2 --rounds=2"
)
STACKS = "--hidden=8 --heads=2 --layers=1 --vocabulary=9 --rounds=1"
LARGE_BATCH = "test_retrofit.py::TestLlamaRelational::test_renaming_of_a_large_batch"
QUICK = {
    "gpu": f"--small --shares=1 --tests={FOLDER.parent}/tests/families/{LARGE_BATCH} "
    "--only promises decoders training",
    "growth": f"{SMALL} --symbols 1 3 --lengths 4 --rounds=1",
    "pairs": "--rows=2000 --names=10",
    "geometric": f"{STACKS} --tokens=16 --lengths=8,16 --shares=0,50",
    "evaluation": "--tasks=ltl --formulas=6 --symbols=4 --rounds=1 --batch=4 --sizes 3 8",
}
SLOW = {
    "streams": f"{SMALL} --symbols=1,3 --repeats=2 --batch=3 --size=6 --new-tokens=2 "
    "--reference-size=5 --reference-new-tokens=2 --reference-repeats=2",
    "relational": f"{RELATIONAL} --streams-limit=4",
    "relational_price": "--lengths=16,48 --widths=8 --names=10 --threads=1 --tokens=48 --rounds=1",
    "memory": f"{SMALL} --work generation --symbols 2 --batch=1 --length=4 --new-tokens=2",
    "scale": "--tokens 128 256 --by tokens rows --rows 1000 2000",
    "ltl": "--rounds=1 --formulas=12 --spot-formulas=2 --checks=12 --strings=200 --limit=0.2",
    "propositional": "--rounds=1 --formulas=4 --aiger-formulas=1",
    "startup": "--rounds=1",
    "solving": "--count 1 --limit 0.2 --formulas 8",
    "answer_grammar": "--count 4 --rounds 1",
    "encodings": "--only=learned,dual_part,converted,relational-converted --seeds=0,1 --steps=2 "
    "--tuning-steps=1 --symbols=1-4 --sizes=1-7 --samples=3 --covariance=1 --draws=2 --change "
    "data.generate.num_samples=300 --change data.path=data --change training.eval_strategy=no "
    "--change training.per_device_train_batch_size=8 --change training.save_strategy=no --change "
    "model.d_model=40 --change model.encoder_layers=1 --change model.decoder_layers=1",
    "names_benchmark": "--hosts=gpt2,t5 --suites=people --pairs=40 --tokens=300 --width=16 "
    "--batch=4 --steps=2 --tuning-steps=1 --questions=2 --namings=1 --runs=runs",
    "chats": "--steps=2 --tests=4 --runs=runs",
}


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_benchmark_prints_and_stores_what_it_measures(name, capsys, tmp_path, monkeypatch):
    """At its smallest size; ours and its peers disagree nowhere."""
    monkeypatch.chdir(tmp_path)
    prints_and_stores(name, (QUICK | SLOW)[name], capsys)


def test_streams_draws_exactly_what_it_says():
    streams = load("streams")
    tokenizer = streams.build_tokenizer("propositional", 10)
    batch = streams.draw_batch(tokenizer, 7, 15, 4, seed=0)
    assert batch["input_ids"].shape == (4, 16) and batch["stream_ids"].shape == (4, 7)
    assert (batch["labels"] != -100).any(dim=1).all()
    sizes = streams.model_sizes(streams.parse([]))
    assert (sizes.d_model, sizes.layers, sizes.heads, sizes.ffn) == (64, 8, 4, 1024)
    # The paper's count for LTL (EP DP EA DA CP) less the three base tokens that LTL has more.
    assert streams.alpha_model(sizes, tokenizer).num_parameters() == 2_788_288 - 3 * 64


def test_encodings_stand_beside_earlier_results_on_the_same_formulas(capsys):
    encodings = load("encodings")
    encodings.main(["--only=", "--beside=encodings,encodings-relational"])
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    together = (FOLDER / "results" / "encodings-together.md").read_text(encoding="utf-8")
    assert shown == [line for line in together.splitlines() if line.startswith("| ")]
    with pytest.raises(SystemExit, match="other formulas"):
        encodings.main(["--only=", "--beside=encodings,encodings-ltl"])
    with pytest.raises(SystemExit, match="same name"):
        encodings.main(["--only=", "--beside=encodings,encodings"])
    with pytest.raises(SystemExit, match="name nothing"):
        encodings.main(["--only="])


@pytest.mark.parametrize("name", ["encodings", "encodings-together", "encodings-ltl"])
def test_the_guide_shows_the_results_of_encodings(name):
    results = (FOLDER / "results" / f"{name}.md").read_text(encoding="utf-8")
    guide = (FOLDER.parent / "docs" / "results.md").read_text(encoding="utf-8")
    lines = [line for line in results.splitlines() if line.startswith(("|", "`"))]
    assert len(lines) >= 5
    assert not [line for line in lines if line not in guide]


def test_clutrr_with_other_names_cannot_be_answered_by_heart(tmp_path):
    study = load("clutrr")
    stories = [
        {
            "story": f"[Ann{n % 4}] has a son [Bob{n % 3}]. Bob{n % 3} has a sister [Cleo{n % 5}].",
            "query": [f"Ann{n % 4}", f"Cleo{n % 5}"],
            "target": "daughter",
            "genders": f"Ann{n % 4}:female,Bob{n % 3}:male,Cleo{n % 5}:female",
            "task_name": "task_1.2",
            "story_edges": [[0, 1], [1, 2]],
            "edge_types": ["son", "sister"],
            "query_edge": [0, 2],
        }
        for n in range(60)
    ]
    names = {pair for story in stories for pair in study.genders_of(story)}
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"k23_{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(story) + "\n" for story in stories)
    study.redraw_names(tmp_path, "k23", 3, tmp_path / "new")
    again = study.read_stories(tmp_path / "new" / "k23_train.jsonl.gz")
    assert len(again) == 3 * len(stories)
    for old, new in zip(3 * stories, again, strict=True):
        table = dict(zip(*(dict(study.genders_of(one)) for one in (old, new)), strict=True))
        assert set(study.genders_of(new)) <= names and len(set(table.values())) == 3
        back = re.compile("|".join(table.values()))
        known = {theirs: ours for ours, theirs in table.items()}
        assert back.sub(lambda found, known=known: known[found[0]], new["story"]) == old["story"]
        assert [known[name] for name in new["query"]] == old["query"]
    pairs = [{(tuple(s["query"])) for s in some} for some in (stories, again)]
    assert len(pairs[1]) > 2 * len(pairs[0])

    study.redraw_names(tmp_path, "k23", 1, tmp_path / "facts", facts=True)
    told = study.read_stories(tmp_path / "facts" / "k23_train.jsonl.gz")
    for story in told:
        ann, bob, cleo = (name for name, _ in study.genders_of(story))
        facts = [f"the son of [{ann}] is [{bob}] .", f"the sister of [{bob}] is [{cleo}] ."]
        assert story["story"] in (" ".join(facts), " ".join(reversed(facts)))
    assert len({story["story"].split()[1] for story in told}) == 2, "facts come in any order"
    seen = study.by_heart("k23", tmp_path / "facts", study.same_facts)
    assert seen == {"2": [100.0], "all": [100.0]}
    study.draw({"k23": dict.fromkeys(study.LABELS, seen)}, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size


def test_longer_clutrr_stories_say_the_same_by_what_two_facts_tell():
    study = load("clutrr")
    told = {
        ("female", "daughter"): ("son", "sister"),
        ("female", "son"): ("daughter", "brother"),
        ("male", "sister"): ("brother", "sister"),
        ("female", "brother"): ("sister", "brother"),
    }
    rules = {facts: {relation} for (_, relation), facts in told.items()}
    gender = dict(son="male", brother="male", daughter="female", sister="female")
    stories = [
        {
            "target": target,
            "genders": f"Ann:{one},Bob:{gender[first]},Cleo:{gender[target]}",
            "story_edges": [[0, 1], [1, 2]],
            "edge_types": [first, second],
            "query_edge": [0, 2],
        }
        for (one, target), (first, second) in told.items()
    ]
    stories *= 20
    assert study.longer_stories(stories, 0, random.Random(0)) is stories
    longer = study.longer_stories(stories, 6, random.Random(0))
    assert {len(story["edge_types"]) for story in longer} == {2, 3, 4, 5, 6}
    for old, new in zip(stories, longer, strict=True):
        genders = [gender for _, gender in study.genders_of(new)]
        starts, ends = zip(*new["story_edges"], strict=True)
        assert (starts[0], ends[-1]) == tuple(old["query_edge"]) and starts[1:] == ends[:-1]
        relations = new["edge_types"]
        assert [genders[person] for person in ends] == [gender[fact] for fact in relations]
        assert old["target"] in study.composed(relations, rules)
        other = {
            **new,
            "story_edges": [[9 - one, 9 - two] for one, two in new["story_edges"]],
            "query_edge": [9 - person for person in new["query_edge"]],
        }
        assert study.same_facts(other) == study.same_facts(new)


def test_clutrr_rules_compose_facts_in_every_order_and_guess_between_two_answers(tmp_path):
    study = load("clutrr")
    rules = {
        ("husband", "son"): "son",
        ("son", "grandmother"): "mother",
        ("husband", "mother"): "mother-in-law",
    }
    chain = ("husband", "son", "grandmother")
    for part, stories in (("train", rules), ("test", {**rules, chain: "mother"})):
        lines = [json.dumps({"edge_types": facts, "target": to}) for facts, to in stories.items()]
        with gzip.open(tmp_path / study.file_name("k23", part), "wt") as file:
            file.write("\n".join(lines))
    assert study.by_rules("k23", tmp_path) == {"2": [100.0], "3": [50.0], "all": [87.5]}
    told = {facts: {relation} for facts, relation in rules.items()}
    assert study.composed(chain, told) == {"mother", "mother-in-law"}
    assert study.composed(("son", "husband"), told) == set()


def test_ltl_checks_start_cold_and_translate_once():
    from hf_alpha.tasks import base

    ltl = load("ltl")
    holds = {
        ("UaXb", "a;a;{b}"): True, ("!Uab", "{!b}"): True, ("UaXb", "{b}"): True,
        ("|a!a", "{1}"): True, ("!Uab", "b;{a}"): False, ("UaXb", "{!b}"): False,
    }  # fmt: skip
    parts = ltl.rounds_of([("", (list(problem), answer)) for problem, answer in holds], 2)
    drawn = [["".join(problem) for _, (problem, _) in part] for part in parts]
    assert drawn == [["UaXb"] * 3 + ["|a!a"], ["!Uab"] * 2]
    part = [pair for part in parts for _, pair in part]
    for pair in part:
        assert ltl.judge("auto")(pair) is not None  # caches are warm
    judged = ltl.judge_all(part, 10.0)
    assert base._read.cache_info().misses == 3, "emptied before, then one for each formula"
    expected = [holds["".join(problem), answer] for problem, answer in part]
    for sides in judged.values():
        for side, (answers, _) in sides.items():
            decided = [
                answer in (None, holds) for answer, holds in zip(answers, expected, strict=True)
            ]
            assert all(decided) if side == "three-valued" else answers == expected


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
        assert (target is None) == (not task.is_satisfiable(tokens))
        for values in (target, {}, {name: rng.random() < 0.5 for name in names}):
            if values is not None:
                verdict = task.check(problem, write_assignment(values))
                assert formula.implied_by(values) == (verdict == "correct")
        if target is not None:
            assert formula.implied_by(target)


def test_propositional_checks_start_cold_and_read_once(monkeypatch):
    from hf_alpha.tasks import base

    propositional = load("propositional")
    check, known = propositional.our_check, []

    def watched(pair: tuple[str, str]) -> bool | None:
        known.append(base._read.cache_info().currsize)
        return check(pair)

    monkeypatch.setattr(propositional, "our_check", watched)
    checks = [("&a!b", "a1b0"), ("&a!b", "a1"), ("|ab", "b1"), ("|ab", "a0")]
    for _ in range(2):  # the second time, caches are warm before
        known.clear()
        judged = propositional.judge_all(checks)
        assert known[:4] == [0, 1, 1, 2]
        for sides in judged.values():
            assert [found for found, _ in sides.values()] == [[True, False, True, False]] * 3


def test_relational_draws_all_names_into_every_sample():
    relational = load("relational")
    size = relational.PRESETS["small"].size
    assert [size.tokens(names) for names in (1, 10, 50)] == [20, 20, 60]
    batch = relational.draw_batch(size, 50)
    base = relational.alpha_config(size, "relational", 50).num_base_tokens
    names = set(range(base, base + 50))
    assert all(set(row) & names == names for row in batch["input_ids"].tolist())
    assert all(set(row) == names for row in batch["stream_ids"].tolist())
    large = relational.parse(["--size=large"])
    assert (large.sizes.tokens(200), large.numbers[-1], large.sizes.batch) == (400, 200, 1)
    assert large.sides == ["learned", "relational"]


def test_matrices_are_relations_of_the_same_model():
    """The old way gives the same loss, and is switched off again behind it."""
    price = load("relational_price")
    size = price.size_of(200, 16, 200)
    model = price.relational.make_model(size, price.RELATIONAL, 10).eval()
    batch = price.relational.draw_batch(size, 10)
    loss = float(model(**batch).loss)
    with price.only_matrices():
        assert float(model(**batch).loss) == pytest.approx(loss, abs=1e-4)
        assert price.Relations.prefers_slots is False
    assert price.Relations.prefers_slots is not False


@pytest.mark.parametrize("encoding", ["learned", "relational"])
def test_multiply_adds_are_those_of_the_model(encoding):
    """Against PyTorch's own counter, which sees products of matrices (so few rows that all are)."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import multiply_adds

    relational = load("relational")
    size = relational.parse([*RELATIONAL.split(), "--batch=1"]).sizes
    batch = relational.draw_batch(size, 5)
    model = relational.make_model(size, encoding, 5).eval()
    model.set_attn_implementation("eager")  # products inside of fused kernels are not counted
    search = relational.generation(model, batch, beams=3, new_tokens=4)
    length = size.tokens(5)
    added = multiply_adds.ADDED if encoding == "relational" else ()
    for run, counts in (
        (lambda: model(**batch), multiply_adds.forward(model.config, 5, length, size.target)),
        (search, multiply_adds.generation(model.config, 5, length, 4, beams=3)),
    ):
        assert counts.keys() == {multiply_adds.LEARNED, *multiply_adds.ADDED}
        products = {multiply_adds.LEARNED, *added} - set(multiply_adds.ELEMENTWISE)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            run()
        assert counter.get_total_flops() == 2 * sum(counts[part] for part in products)


def test_results_say_where_they_were_measured(capsys, tmp_path):
    linear = load("archive/linear")
    linear.main(["--rounds=1", f"--out={tmp_path}/linear"])
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if "sum().backward()" in line]) == 4
    stored = json.loads((tmp_path / "linear.json").read_text())
    text = (tmp_path / "linear.md").read_text()
    assert text.endswith(printed)
    cpuinfo = Path("/proc/cpuinfo").read_text()
    flags = stored["flags"].split()
    assert flags and all(f" {flag}" in cpuinfo for flag in flags) and stored["flags"] in text
    assert {"avx2", "avx512f", "amx_tile"} & set(cpuinfo.split()) <= set(flags)
    assert stored["cores"] >= 1 and min(stored["load before"], stored["load after"]) >= 0
    speeds = stored["GFLOP/s"]
    assert list(speeds) == list(stored["data"]) and "4096 x 64 x 256" in speeds
    for speed in speeds.values():
        assert set(speed) == {"oneDNN", "F.linear"} and min(speed.values()) > 0
        assert f"oneDNN {speed['oneDNN']:g} / F.linear {speed['F.linear']:g}" in text


def test_growth_counts_what_the_model_multiplies():
    """Against PyTorch's own counter, which sees its own products (so few rows that all are)."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    growth = load("growth")
    config = growth.AlphaConfig(encoder_position="tree", symbol_classes={"proposition": 4},
                                d_model=32, encoder_layers=2, encoder_attention_heads=2,
                                decoder_attention_heads=2, encoder_ffn_dim=64)  # fmt: skip
    model = growth.AlphaForConditionalGeneration(config).eval()
    model.set_attn_implementation("eager")  # products inside of fused kernels are not counted
    batch = growth.draw_sample(config, 4, 9)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.get_encoder()(**batch)
    mean = 2 * config.encoder_layers * 4 * 9 * 32  # of the streams, a product too
    assert counter.get_total_flops() - mean == growth.encoder_cost(config, 4, 9).flops


@pytest.mark.slow
def test_transduction_finds_what_its_peers_find(capsys, tmp_path):
    transduction = load("transduction")
    (tmp_path / "data.tsv").write_text("lemma\tpos\nfire hose\tn\nE.U.\tn\nwar crime\tn\n")
    out = str(tmp_path / "out")
    tiny = ["--entries", "3", "40", "--sentences=50", "--rounds=2", "--out", out]
    transduction.main([*tiny, "--data", str(tmp_path / "data.tsv")])
    lines = capsys.readouterr().out.splitlines()
    rows = json.loads((tmp_path / "out.json").read_text())["data"]["rows"]
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
def test_a_family_takes_the_encodings_that_the_document_says(family):
    """And is refused in these words."""
    text = (FOLDER.parent / "docs" / "results-retrofit.md").read_text(encoding="utf-8")
    _, table = text.split("<!-- families -->")
    table = table.split("<!-- end of families -->")[0]
    (row,) = re.findall(rf"^\| {re.escape(family)} \| (.*) \|$", table, re.MULTILINE)
    words = dict(re.findall(r"^(\d+)\. (.*)$", table, re.MULTILINE)) | {"yes": ""}
    said = [without_numbers(words[cell]) for cell in row.split(" | ")]
    assert [without_numbers(why) for why in FAMILIES.refusals(family)] == said


def test_a_crf_is_told_what_a_lexicon_says():
    """Where only the lexicon tells a phrase, it is found with its marks and not without."""
    pytest.importorskip("sklearn_crfsuite", reason="sklearn-crfsuite is not installed")
    crf = load("peers/crf")
    words = [["a", "fire", "hose"]] * 200
    marks = [["B", "I", "O"] if i % 2 else ["O", "B", "I"] for i in range(len(words))]
    parts = {"train": marks[:150], "test": marks[150:]}
    assert crf.train_and_tag(words[:150], marks[:150], words[150:], parts) == marks[150:]
    assert crf.train_and_tag(words[:150], marks[:150], words[150:], {}) != marks[150:]


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


@pytest.mark.slow  # models are trained
def test_real_tasks_are_the_same_but_for_names(tmp_path, capsys):
    """With a tiny Llama in SmolLM2's place, and the data sets' formats."""
    from transformers import LlamaConfig, LlamaForCausalLM

    chats, tasks = load("chats"), load("real_tasks")
    tokenizer = chats.host_tokenizer()
    ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **{**chats.SIZES, **ids}))
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
         "--remedies=plain,canonical,relational,relational-lora", f"--out={tmp_path / 'out'}"]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.count("| relational-lora | 1 | 1 |") == 3
    found = json.loads((tmp_path / "out.json").read_text())["data"]
    for name, (run,) in found["calls"].items():
        before, after = run["English"]
        assert (before == pytest.approx(after, rel=1e-5)) == name.endswith(" 0")
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


def test_reactions_are_the_same_but_for_digits():
    import annalog

    reactions = load("reactions")
    pair = "CN1CCC[C@H]1c1cccnc1.Clc1ccc2ccccc2c1", "c1ccc2c(c1)[nH]c%10c2CCCC%10"
    assert reactions.in_order(pair) == pair
    renamed = {reactions.permuted(pair, seed) for seed in range(20)}
    assert len(renamed) > 10 and {reactions.in_order(each) for each in renamed} == {pair}
    assert "".join(annalog.tokens(pair[1])) == pair[1] and "%10" in annalog.tokens(pair[1])
    tokenizer = annalog.tokenizer_of(["<unk>", "<pad>", "<sos>", "<eos>", *"Ccn()123", "[nH]"])
    ids = tokenizer(reactions.spaced("c1c[nH]c2"))["input_ids"]
    assert ids == tokenizer("c1c[nH]c2")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "c1c[nH]c2"


def test_reactions_in_another_order_are_the_same_molecules_and_can_be_read():
    pytest.importorskip("rdkit")
    reactions = load("reactions")
    pair = "CN1CCC[C@H]1c1cccnc1.Clc1ccc2ccccc2c1", "CN1CCC[C@H]1c1cccnc1"
    words = frozenset([*"CNcn()123.", "[C@H]", "[C@@H]", "Cl"])
    drawn = {reactions.in_other_order(pair, random.Random(seed), words) for seed in range(20)}
    assert len(drawn) > 5 and {target for _, target in drawn} == {pair[1]}
    assert {reactions.written(source, False) for source, _ in drawn} == {
        reactions.written(pair[0], False)
    }
    assert all(reactions.fits(*each, words) for each in drawn)
    assert reactions.in_other_order(pair, random.Random(0), frozenset("C")) == pair


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
    for name, same in {"plain": False, "relational": True, "binding": True}.items():
        learner = reactions.Learner(name, tmp_path)
        read = pair if name != "relational" else (pair[0], pair[0])
        batches = [learner.batch([each]) for each in (read, reactions.permuted(read, 1))]
        for key in ("input_ids", "labels"):
            assert batches[0][key].equal(batches[1][key]) is same, (name, key)
    answers = learner.best([pair], 2)
    assert [len(row) for row in answers] == [2]


def test_runs_of_reactions_with_fewer_measures_are_read():
    reactions = load("reactions")
    old = {"right": 12, "of": 300, "loss": 0.3, "spelled": 15}
    new = {**old, "valid": 270, "top 5": 30, "changed": 0}
    runs = [
        {"loss": 1.0, "minutes": 5.0, "tests": dict.fromkeys(kinds, test)}
        for kinds, test in (
            (reactions.TESTED, old),
            ((*reactions.TESTED, reactions.ORDER, reactions.MANY), new),
        )
    ]
    one = reactions.table({"plain 300": runs[:1]})
    first, second = reactions.table({"plain 300": runs[:1], "binding 300": runs[1:]}).split("\n\n")
    assert one.splitlines()[2:] == first.splitlines()[2:4]
    assert "| canonical | 300 | 1 | 5.0 | 5.0 | 5 |" in one
    (row,) = second.splitlines()[2:]
    assert row.startswith("| relational by binding | 300 | 1 | 10.0 | 10.0 | 90.0 | 90.0 | 0.0 |")


def test_tokens_of_reactions_are_masked_one_by_one():
    rxnfp = load("rxnfp")
    text = "CN1CCC1>>c1ccc2c(c1)CC2"
    assert rxnfp.closing(text) == [6, 17, 21]
    assert rxnfp.closing(text, text.index(">>")) == [17, 21]
    learner = object.__new__(rxnfp.Learner)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"CNc12()", ">>"]
    learner.ids = {word: number for number, word in enumerate(words)}
    rows = {name: x.cpu() for name, x in learner.batch([text, "C"], [[6], [0]]).items()}
    assert rows["attention_mask"].sum(1).tolist() == [24, 3]
    assert rows["input_ids"][1].tolist()[:4] == [2, 4, 3, 0] and rows["input_ids"][0, 7] == 4
    assert (rows["labels"] != -100).nonzero().tolist() == [[0, 7], [1, 1]]
    assert rows["labels"][0, 7] == learner.ids["1"] and rows["labels"][1, 1] == learner.ids["C"]


def test_tokens_that_a_model_lacks_get_the_mean_of_atoms_in_brackets(tmp_path):
    import torch

    import annalog

    words = ["<unk>", "C", "[nH]", "[O-]"]
    table, bias = torch.arange(8.0).view(4, 2), torch.arange(4.0)[None]
    grown = annalog.with_rows(table, words, 2)
    assert grown.tolist() == [*table.tolist(), [5.0, 6.0], [5.0, 6.0]]
    assert annalog.with_rows(bias, words, 1).tolist() == [[0.0, 1.0, 2.0, 3.0, 2.5]]
    other = torch.ones(3, 3)
    assert annalog.with_rows(other, words, 2) is other
    data = tmp_path / "pairs.jsonl"
    data.write_text('{"source": "C[Na+].[Na+]", "target": "[Cl]C"}\n')
    assert annalog.other_tokens(words, data) == ["[Na+]"]


def test_pairs_of_relations_have_one_answer_in_every_family():
    import kinship_pairs as pairs

    answers = pairs.answers(20)
    assert answers == pairs.answers(40)
    expected = {("daughter-in-law", "husband"): "son", ("son", "mother"): "wife"}
    expected[("father", "son")] = "brother"
    assert expected.items() <= answers.items()
    # The aunt of a son may be a sister, or one of his other parent; a mother's son-in-law is none.
    assert not {("son", "aunt"), ("son", "grandmother"), ("mother", "son-in-law")} & answers.keys()
    facts = [{"edge_types": ["father", "son"]}, {"edge_types": ["son", "mother", "son"]}]
    groups = pairs.groups(expected, facts)
    assert list(groups.values()) == [[("father", "son")], [("son", "mother")], [*expected][:1]]
    *told, held_out = pairs.groups(answers, facts, families=True).values()
    assert sorted([*told[0], *told[1], *held_out]) == [*answers] and len(held_out) == 25
    assert pairs.asked([("son", "son")], pairs.MODEL) == {("son", "son"): ["grandson"] * 2}


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


@pytest.mark.slow  # 40,000 functions are drawn
def test_inlining_is_tested_on_what_no_training_had(tmp_path):
    """Also where a first training had fewer names, as that of inline-t5."""
    import beyond

    inline = beyond.inline
    assert len(inline.pair(random.Random(0), 10)["source"].split("(")[1].split(",")) == 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["inline.py", str(tmp_path), "8"])
        runpy.run_path(inline.__file__, run_name="__main__")
    test = [json.loads(line) for line in (tmp_path / "test.jsonl").open()]
    assert len(test) == 360
    assert not {*map(inline.shape, test)} & {*map(inline.shape, beyond.inlined_before())}
