import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.models import CLOCK, Model, training_of
from benchmarks.studies.renamed import rename_training_data
from hf_alpha.logic.drawing.generate import generate

MODEL = Model("copying-learned", "copying/learned")


def test_a_run_that_was_stopped_goes_on_and_its_hours_are_those_of_all_starts(tmp_path):
    folder = MODEL.train(TINY, 0, tmp_path, lambda _: None)
    last = folder / "checkpoint-2"
    for path in (folder / "trainer_state.json", folder / "model.safetensors"):
        path.unlink()  # as if it had been killed behind its first checkpoint
    for path in sorted(last.iterdir()):
        path.unlink()
    last.rmdir()
    state = folder / "checkpoint-1" / "trainer_state.json"
    content = json.loads(state.read_text())
    content["log_history"][-1][CLOCK] = 7200.0
    state.write_text(json.dumps(content))
    assert not MODEL.is_trained(0, tmp_path)
    said = []
    MODEL.train(TINY, 0, tmp_path, said.append)
    found = training_of(folder)
    assert said == ["copying-learned-0: 2 steps"]
    assert 2 <= found["hours"] < 2.05  # rounded to 0.4 s
    assert found["steps"] == 2 and found["batch_size"] == 8


def test_a_model_of_other_settings_is_refused_by_name(tmp_path):
    MODEL.train(TINY, 0, tmp_path, lambda _: None)
    other = replace(MODEL, changes=("model.dropout=0.25",))
    named = r"model\.dropout: 0\.0 -> 0\.25; name another --runs, or remove that folder and "
    with pytest.raises(ValueError, match=named) as refused:
        other.train(TINY, 0, tmp_path, print)
    assert str(refused.value).endswith(f"{tmp_path}/reports/*/{MODEL.folder(0, tmp_path).name}")


def test_a_start_of_other_settings_is_refused_by_name(tmp_path):
    """The vanilla model was trained again with other settings, the converted one was not."""
    converted = Model(
        "copying-converted", "copying/learned", share=0.5, start=MODEL, conversion="streams"
    )
    converted.train(TINY, 0, tmp_path, lambda _: None)
    converted.train(TINY, 0, tmp_path, lambda _: None)
    shutil.rmtree(MODEL.folder(0, tmp_path))
    other = replace(converted, start=replace(MODEL, changes=("training.learning_rate=0.25",)))
    named = (
        r"-start was converted from .*: training\.learning_rate: .* -> 0\.25; name another --runs"
    )
    with pytest.raises(ValueError, match=named) as refused:
        other.train(TINY, 0, tmp_path, print)
    out = other.folder(0, tmp_path)
    assert f"{out} and {tmp_path / 'reports' / '*' / out.name}" in str(refused.value)
    shutil.rmtree(out.with_name(f"{out.name}-start"))
    with pytest.raises(ValueError, match=named):  # the trained model came from the old one too
        other.train(TINY, 0, tmp_path, print)
    shutil.rmtree(out)
    assert other.train(TINY, 0, tmp_path, lambda _: None) == out


def test_renamed_data_of_other_data_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = Model("propositional-renamed", "propositional/learned", data="renamed")
    recipe = TINY.recipe(model.recipe)
    generate(recipe.task, "other", **{**recipe.data.generate, "num_samples": 200}, progress=False)
    rename_training_data("other", f"{recipe.data.path}-renamed", recipe.task)
    with pytest.raises(ValueError, match="num_samples: 200 -> 300; remove that folder"):
        model.train(TINY, 0, Path("runs"), print)
