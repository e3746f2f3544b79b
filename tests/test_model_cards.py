"""Released models: complete, and their cards say what their files say."""

import json
import os
import re
import shutil
import subprocess
import sys
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


# A user without the package, who has a folder and the problems of its card.
USER = """
import json, sys
sys.modules["hf_alpha"] = None  # importing it is an error
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

for line in sys.stdin:
    folder, beams, problems = json.loads(line)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
    if model.config.symbol_encoding != "learned":
        for extended in (model, tokenizer):
            extended.extend_symbols(dict.fromkeys(model.config.symbol_classes, 20))
    for problem in problems:
        batch = tokenizer([problem], return_tensors="pt", padding=True)
        answer = model.generate(**batch, num_beams=beams, max_new_tokens=128)
        print(json.dumps(tokenizer.batch_decode(answer, names=batch.names)[0]), flush=True)
"""
EXAMPLES = re.compile(r"^## Examples\n.*?```\n(.*?)```", re.DOTALL | re.MULTILINE)


def test_a_user_without_the_package_gets_the_answers_of_the_cards(tmp_path):
    """Where close candidates change places by rounding, one that is judged the same will do."""
    asked, wanted = [], []
    for folder in FOLDERS:
        card = (folder / "README.md").read_text(encoding="utf-8")
        shown = EXAMPLES.search(card)[1].splitlines()
        copy = shutil.copytree(folder, tmp_path / folder.name)  # links become files
        asked.append([str(copy), int(re.search(r"num_beams=(\d+)", card)[1]), shown[::2]])
        task = get_task(read_recipe(folder / RECIPE_FILE).task)
        answers = (line.strip().partition(" ")[2].strip() for line in shown[1::2])  # may be empty
        wanted += [(task, *pair) for pair in zip(shown[::2], answers, strict=True)]
        assert len(shown) == 6
    done = subprocess.run(
        [sys.executable, "-I", "-c", USER],
        input="\n".join(map(json.dumps, asked)),
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for line, (task, problem, answer) in zip(done.stdout.splitlines(), wanted, strict=True):
        given = json.loads(line)
        if given != answer:
            assert task.check(problem, given) == task.check(problem, answer), (problem, given)
