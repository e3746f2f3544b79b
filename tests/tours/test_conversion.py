import json
from pathlib import Path

import own_process
import pytest
from commands import hf_alpha
from pictures import shows_reports

from hf_alpha.tasks import get_task
from hf_alpha.tours import run_tour
from hf_alpha.tours.conversion import caption

DASH = "\N{EN DASH}"
# What somebody does with the model who has Transformers and not this package.
ELSEWHERE = """
import sys

class NoPackage:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_alpha":
            raise ModuleNotFoundError(f"{name} is hidden")

sys.meta_path.insert(0, NoPackage())
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = sys.argv[1]
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(["request & !grant", "&a!b"], return_tensors="pt", padding=True)
out = model.generate(**batch, num_beams=3)
print(tokenizer.batch_decode(out, names=batch.names))
"""


@pytest.fixture(scope="module")
def tour(tmp_path_factory) -> tuple[Path, str, str]:
    """Folder, table and printed text of a short tour."""
    folder = tmp_path_factory.mktemp("tour") / "quickstart"
    lines: list[str] = []
    table = run_tour(folder, "propositional", steps=2, samples=1, say=lines.append)
    return folder, table, "\n".join(lines)


def test_the_table_shows_the_model_before_and_after_each_step(tour):
    folder, table, said = tour
    assert table in said and (folder / "evaluation" / "table.txt").read_text() == table + "\n"
    rows = [line.split() for line in table.splitlines()]
    assert rows[0][2:] == [*"12345678", "all"]
    # Each kind of figure has a row for each model; its name stands in the first one only.
    assert [row[0] for row in rows[2:]] == [
        *("correct", "converted", "tuned", "random"),
        *("exact", "converted", "tuned", "random"),
        *("alpha_covariance", "converted", "tuned"),
        "samples",
        "alpha-covariance:",
        "same",
    ]
    assert rows[-2][1:5] == ["1", "problem", "a", "column,"]
    assert table.splitlines()[-1].startswith("same answer to all renamings: ")
    vanilla, converted, tuned, chance = (row[-9:] for row in rows[2:6])
    assert vanilla[3:8] == [DASH] * 5 and DASH not in vanilla[:3]
    assert DASH not in converted + tuned + chance
    assert rows[11][1:] == rows[12][1:] == ["100.0"] * 9


def test_the_converted_model_is_not_tuned_yet(tour):
    """With the symbol a alone it answers as the vanilla model does, to the letter."""
    answers = {
        name: {
            row["problem"]: row["answers"]
            for row in map(json.loads, (tour[0] / "evaluation" / name / "records.jsonl").open())
            if set(row["problem"]) & set("abcdefgh") == {"a"}
        }
        for name in ("vanilla", "converted")
    }
    assert answers["vanilla"] and answers["converted"] == answers["vanilla"]


def test_the_picture_shows_all_models_and_says_what_it_means(tour, tmp_path):
    says = caption(get_task("propositional").tour)
    models = ["vanilla", "converted", "tuned"]
    assert shows_reports(tour[0] / "evaluation", models, tmp_path / "again.png", says)
    assert not shows_reports(tour[0] / "evaluation", models, tmp_path / "no caption.png")


@pytest.mark.slow  # so does that of the tour from the wheel, in tests/test_packaging.py
def test_the_model_loads_without_the_package(tour, tmp_path):
    done = own_process.run("-I", "-c", ELSEWHERE, tour[0] / "model", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "request" in done.stdout or "grant" in done.stdout


@pytest.mark.slow
def test_a_second_tour_in_the_same_folder(tour):
    folder = tour[0]
    before = (folder / "model" / "model.safetensors").read_bytes()
    again = ["quickstart", "--task", "propositional", "--output", folder]
    done = hf_alpha(*again, "--steps", 3, "--samples", 1)
    assert done.code == 0, done.err
    assert (folder / "model" / "model.safetensors").read_bytes() != before
    assert "seconds in all" in done.out and "Fine-tuned for another 3 steps." in done.out

    done = hf_alpha(*again, "--steps", 1, "--samples", 3)
    assert "per_cell is 1 there and 3 here; choose another folder" in done.error
