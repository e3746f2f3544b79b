"""The task that stands alone: what is asked under four namings, its measures, and the harness."""

import json
import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import byte_level
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.names.tool_names import utils

ROWS = utils.load()["test"].to_list()
METRICS = (*("own", "invented", "swapped", "canonical"), "consistency", "always")


def measured(choose):
    """The metrics of a model that chooses by the row."""
    asked = {name: [] for name in METRICS}
    for row in ROWS:
        scores = [(-1.0, False)] * len(row["choices"])
        scores[choose(row)] = (0.0, True)
        for name, one in utils.process_results(row, scores).items():
            asked[name].append(one)
    return {name: getattr(utils, name)(asked[name]) for name in METRICS}


def test_nothing_but_names_differs():
    assert len(ROWS) == 800
    for start in range(0, len(ROWS), 4):
        rows = {row["kind"]: row for row in ROWS[start : start + 4]}
        texts = set()
        for row in rows.values():
            text = f"{row['request']}\n{row['tools']}"
            assert len(set(row["choices"])) == len(row["choices"])
            for number, name in enumerate(row["choices"]):
                assert text.count(name) == 1
                text = text.replace(name, f"<{number}>")
            texts.add((text, row["id"], row["answer"]))
        assert len(texts) == 1 and len(rows) == 4
        own, swapped = rows["own"]["choices"], rows["swapped"]["choices"]
        assert sorted(own) == sorted(swapped)
        assert all(a != b for a, b in zip(own, swapped, strict=True))


def test_who_reads_descriptions_is_consistent_and_who_reads_names_is_not():
    by_description = measured(lambda row: row["answer"])
    assert by_description == dict.fromkeys(METRICS, 1.0)
    right = {row["id"]: row["choices"][row["answer"]] for row in ROWS if row["kind"] == "own"}

    def by_name(row):
        name = right[row["id"]]
        return row["choices"].index(name) if name in row["choices"] else 0

    found = measured(by_name)
    assert found["own"] == 1 and found["swapped"] == found["always"] == 0
    assert found["consistency"] < 1 / 2
    first = measured(lambda row: 0)
    assert first["consistency"] == 1
    assert first["own"] == first["swapped"] == first["always"] < 1


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1), st.randoms())
def test_measures_by_a_plain_count_in_any_order(questions, rng):
    kinds = utils.OWN, utils.INVENTED, utils.SWAPPED, utils.CANONICAL
    asked = [
        (f"{number}", kind, tool, 0)
        for number, chosen in enumerate(questions)
        for kind, tool in zip(kinds, chosen, strict=True)
    ]
    rng.shuffle(asked)
    pairs = [a == b for q in questions for a, b in ((q[0], q[1]), (q[0], q[2]), (q[1], q[2]))]
    assert math.isclose(utils.consistency(asked), sum(pairs) / len(pairs))
    assert math.isclose(
        utils.always(asked), sum(q[:3] == [0, 0, 0] for q in questions) / len(questions)
    )
    for number, kind in enumerate(kinds):
        right = sum(q[number] == 0 for q in questions) / len(questions)
        assert math.isclose(getattr(utils, kind)(asked), right)


@pytest.mark.slow
def test_the_command_of_the_harness_asks_a_checkpoint(tmp_path):
    pytest.importorskip("lm_eval")
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 2048}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(byte_level()), **sizes, pad_token_id=0))
    for saved in (model, byte_level()):
        saved.save_pretrained(tmp_path / "model")
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "hf", "--tasks", "tool_names"]
    command += ["--model_args", f"pretrained={tmp_path / 'model'}", "--device", "cpu"]
    command += ["--include_path", str(utils.QUESTIONS.parent), "--limit", "20"]
    command += ["--output_path", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (file,) = (tmp_path / "out").rglob("results_*.json")
    found = json.loads(file.read_text())["results"]["tool_names"]
    values = [found[f"{name},none"] for name in METRICS]
    assert all(0 <= value <= 1 for value in values) and found["always,none"] <= min(values[:3])
    assert found["consistency,none"] > 0, "a byte-level model has some tool that it likes best"
