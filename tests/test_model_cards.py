"""Released models: complete, and their cards say what their files say."""

import json
import os
import re
import shutil
from pathlib import Path

import own_process
import pytest
from huggingface_hub import ModelCard

from hf_alpha.card import notes
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, RowsRecipe, read_recipe
from hf_alpha.release import LOG_FILE
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task

ROOT = Path(__file__).resolve().parents[1]
RESULTS = {
    "propositional": "small",
    "propositional-relational": "propositional-long",
    "propositional-converted": "medium",
    "ltl-relational": "ltl-long",
    "ltl-converted": "ltl-medium",
    "ltl-relational-five": "ltl-five",
    "inline-t5": "inline-t5",
    "anf-relational": "anf-relational",
    "proofs-relational": "proofs-relational",
}
"""Task, or model, -> folder of its results; others are called as the task is."""
RELEASED = [*released_models().values()]
FOLDERS = [path for path in RELEASED if not isinstance(read_recipe(path / RECIPE_FILE), RowsRecipe)]
"""Of models that answer with text; the others tell classes."""
TELLING = [path for path in RELEASED if path not in FOLDERS]


@pytest.mark.parametrize("folder", RELEASED, ids=lambda path: path.name)
def test_released_model_is_complete(folder):
    model, tokenizer = load_checkpoint(folder, answers=False)
    assert model.config.vocab_size == len(tokenizer)
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 12e6
    recipe = read_recipe(folder / RECIPE_FILE)
    assert notes(folder) in (folder / "README.md").read_text()
    log = json.loads((folder / LOG_FILE).read_text())
    assert max(row["step"] for row in log) == recipe.training["max_steps"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_released_tokenizer_reads_as_the_task_says(folder):
    _, tokenizer = load_checkpoint(folder)
    assert tokenizer.grammar == get_task(read_recipe(folder / RECIPE_FILE).task).model_grammar


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
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers import pipeline

for line in sys.argv[1:]:
    folder, beams, problems = json.loads(line)
    if beams is None:  # it tells classes
        tell = pipeline("text-classification", model=folder, trust_remote_code=True)
        for found in tell(problems):
            print(json.dumps(found["label"]), flush=True)
        continue
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    pair = AutoConfig.from_pretrained(folder, trust_remote_code=True).is_encoder_decoder
    auto = AutoModelForSeq2SeqLM if pair else AutoModelForCausalLM
    model = auto.from_pretrained(folder, trust_remote_code=True)
    if model.config.symbol_encoding != "learned":
        for extended in (model, tokenizer):
            extended.extend_symbols(dict.fromkeys(model.config.symbol_classes, 20))
    for problem in problems:
        batch = tokenizer([problem], return_tensors="pt", padding=True)
        answer = model.generate(**batch, num_beams=beams, max_new_tokens=128)
        answer = answer if pair else answer[:, batch["input_ids"].shape[1] :]
        new_names = "t" if getattr(model.config, "new_symbols", False) else None
        texts = tokenizer.batch_decode(answer, names=batch.names, new_names=new_names)
        print(json.dumps(texts[0]), flush=True)
"""
EXAMPLES = re.compile(r"^## Examples\n.*?```\n(.*?)```", re.DOTALL | re.MULTILINE)
ANSWERED = re.compile(r"((?:(?!  [a-z][a-z ]{9} ).*\n)+?)  [a-z][a-z ]{9} (.*(?:\n {13}.*)*)\n")
"""A problem, how it was answered, and the answer; both may have several lines."""


QUICK = (
    "copying-learned-small", "propositional-relational-small", "ltl-streams-small",
    "copying-dual-part-small", "inline-t5", "kinship-folnet", "anf-relational",
)  # fmt: skip
"""Each task, encoding and type of model once."""
SHOWN = [folder for folder in RELEASED if folder.name in QUICK]
OTHERS = [folder for folder in RELEASED if folder not in SHOWN]


@pytest.mark.parametrize("folders", [SHOWN, pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_a_user_without_the_package_gets_the_answers_of_the_cards(folders, tmp_path):
    """Where close candidates change places by rounding, one that is judged the same will do."""
    asked, wanted = [], []
    for folder in folders:
        card = (folder / "README.md").read_text(encoding="utf-8")
        shown = EXAMPLES.search(card)[1]
        copy = shutil.copytree(folder, tmp_path / folder.name)  # links become files
        if folder in TELLING:
            task, beams, lines = None, None, shown.splitlines()
            texts = zip(lines[::3], lines[1::3], strict=True)
            problems = [{"text": one, "text_pair": two} for one, two in texts]
            answers = [line.strip().partition(" (right: ")[0] for line in lines[2::3]]
        else:
            task = read_recipe(folder / RECIPE_FILE).solved
            beams = int(re.search(r"num_beams=(\d+)", card)[1])
            found = ANSWERED.findall(shown)
            problems = [problem.rstrip("\n") for problem, _ in found]
            answers = [answer.replace(f"\n{'':13}", "\n").strip() for _, answer in found]
            answers = ["" if answer == task.empty_answer else answer for answer in answers]
        asked.append([str(copy), beams, problems])
        wanted += [(task, *pair) for pair in zip(problems, answers, strict=True)]
        assert len(problems) == 3
    cache = {"HF_MODULES_CACHE": str(tmp_path / "modules")}
    told = map(json.dumps, asked)
    done = own_process.run("-I", "-c", USER, *told, env={**os.environ, **cache}, timeout=300)
    assert done.returncode == 0, done.stderr
    for line, (task, problem, answer) in zip(done.stdout.splitlines(), wanted, strict=True):
        given = json.loads(line)
        if given != answer:
            assert task is not None, (problem, given)
            assert task.check(problem, given) == task.check(problem, answer), (problem, given)


@pytest.mark.parametrize("folder", TELLING, ids=lambda path: path.name)
def test_card_of_classes_has_the_metrics_of_its_report(folder):
    card = ModelCard.load(folder / "README.md")
    assert card.data.model_name == folder.name and card.data.license
    results = ROOT / "docs" / "results" / folder.name
    metrics = json.loads((results / "metrics.json").read_text())["metrics"]
    found = {
        one.dataset_config.rpartition("-")[2]: one.metric_value for one in card.data.eval_results
    }
    assert found == {group: round(of["accuracy"], 4) for group, of in metrics.items()}
