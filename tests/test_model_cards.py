"""Released models: complete, and their cards say what their files say."""

import json
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.release import LOG_FILE
from hf_alpha.tasks import get_task

ROOT = Path(__file__).resolve().parents[1]
RESULTS = {
    "propositional": "small",
    "propositional-relational": "medium",
    "ltl-relational": "ltl-medium",
}
"""Task, or model, -> folder of its results; others are called as the task is."""
FOLDERS = sorted(path for path in (ROOT / "model_cards").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_released_model_is_complete(folder):
    model, tokenizer = load_checkpoint(folder)
    assert model.config.vocab_size == len(tokenizer)
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 4e6
    recipe = read_recipe(folder / RECIPE_FILE)
    log = json.loads((folder / LOG_FILE).read_text())
    assert max(row["step"] for row in log) == recipe.training["max_steps"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_card_has_metadata_and_figures(folder):
    card = ModelCard.load(folder / "README.md")
    assert card.data.model_name == folder.name
    assert card.data.license == "apache-2.0"
    task = read_recipe(folder / RECIPE_FILE).task
    results = ROOT / "docs" / "results" / RESULTS.get(folder.name, RESULTS.get(task, task))
    report = json.loads((results / folder.name / "report.json").read_text())
    measure = get_task(task).measure
    rates = {row["num_symbols"]: row for row in report["by_num_symbols"]}
    assert card.data.eval_results
    for result in card.data.eval_results:
        count = int(result.dataset_config.split("-")[0])
        assert result.metric_value == round(rates[count][measure], 4)
