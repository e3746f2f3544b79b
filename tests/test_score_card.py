"""Cards of models that do not answer with text: what they say can be run, and is what was found."""

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from small_objectives import FOLNET, recipe, relations, write_rows
from typer.testing import CliRunner

from hf_alpha.cli import app
from hf_alpha.release import release
from hf_alpha.train import train

PERSON = {"person": {"tokens": ["Ann", "Bea", "Cleo", "Dan", "Eli", "Finn"]}}


def evaluated(folder, *options: str) -> ModelCard:
    done = CliRunner().invoke(app, ["evaluate", str(folder), "--card", *options])
    assert done.exit_code == 0, done.output
    return ModelCard.load(folder / "README.md")


def test_card_of_a_model_of_classes_says_what_was_found_and_runs(tmp_path):
    rows = [{**row, "query": " ".join(row["query"])} for row in relations(24)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    columns = {"source": "story", "pair": "query", "target": "kind"}
    model = {**FOLNET, "symbol_encoding": "relational"}
    data = {"train": file, "test": file, **columns}
    train(recipe(tmp_path, "class", data, {"max_steps": 30}, model=model, symbols=PERSON))
    folder = tmp_path / "released"
    release(tmp_path / "out", folder)
    (folder / "NOTES.md").write_text("Knows no aunts.\n")
    out = tmp_path / "report"
    card = evaluated(folder, "--by", "kind", "--license", "cc-by-nc-4.0", "--out", str(out))
    assert card.data.license == "cc-by-nc-4.0" and card.data.pipeline_tag == "text-classification"
    found = json.loads((out / "metrics.json").read_text())["metrics"]
    said = {result.dataset_config: result.metric_value for result in card.data.eval_results}
    assert said == {
        "all" if group == "all" else f"kind-{group}": round(metrics["accuracy"], 4)
        for group, metrics in found.items()
    }
    assert (out / "report.txt").read_text().strip() in card.text
    assert "\n## Limits\nKnows no aunts.\n\n## Examples\n" in card.text
    assert "a name is only where it stands" in card.text and "relational" in card.text
    assert (folder / "results.png").stat().st_size and (folder / "training_log.png").is_file()

    code = re.search(r"```python\n(.*?)```", card.text, re.DOTALL)[1].strip().splitlines()
    variables = {"folder": str(folder)}
    exec("\n".join(code[:-1]), variables)
    answer = eval(code[-1], variables)
    shortest = min(range(len(rows)), key=lambda n: len(rows[n]["story"] + rows[n]["query"]))
    records = [json.loads(line) for line in (out / "predictions.jsonl").open()]
    assert answer == records[shortest]["prediction"]


def test_texts_of_others_are_no_markup_of_a_card(tmp_path):
    """They broke out of their fences: with three backticks, and as names of classes and groups.

    The template of cards neither fills them in nor escapes them once more.
    """
    end = "\n```\n<script>alert(1)</script>\n\x1b]0;title\x07\u202e{{ 7 * 7 }}{# & #}"
    rows = [
        {"source": f"Ann sings{end} {kind}", "target": f"{kind}{end}", "where": f"{kind}|{end}"}
        for kind in ("x", "y", "z") * 4
    ]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    train(recipe(tmp_path, "class", {"train": file, "test": file}, {"max_steps": 1}))
    card = evaluated(tmp_path / "out", "--by", "where")
    assert not re.search("[\x1b\x07\u202e]", (tmp_path / "out" / "README.md").read_text())
    assert "{{ 7 * 7 }}{# & #}" in card.text and "&amp;amp;" not in card.text
    tokens = MarkdownIt("commonmark").enable("table").parse(card.text)
    kinds = {child.type for token in tokens for child in [token, *(token.children or [])]}
    assert not kinds & {"html_block", "html_inline"}
    assert {token.content for token in tokens if token.type == "inline"} >= {"Results", "Examples"}
    examples = [token.content for token in tokens if token.type == "fence"][2]
    assert examples.count("<script>") == 9, "three rows, what is said of each, and what is right"


@pytest.mark.parametrize(
    ("objective", "row"),
    [
        ("token", {"source": ["Ann", "sings"], "target": ["B-person", "O"]}),
        ({"name": "masked", "sentences": "none"}, {"source": "Ann sings and Bea dances ."}),
        (
            {"name": "span", "max_length": 64, "stride": 16},
            {
                "id": "1",
                "question": "who sings ?",
                "context": "Ann sings .",
                "answers": {"text": ["Ann"], "answer_start": [0]},
            },
        ),
    ],
)
def test_other_objectives_have_cards_too(objective, row, tmp_path):
    file = write_rows(tmp_path / "rows.jsonl", [row] * 4)
    train(recipe(tmp_path, objective, {"train": file, "test": file}, {"max_steps": 1}))
    card = evaluated(tmp_path / "out")
    code = re.search(r"```python\n(.*?)```", card.text, re.DOTALL)[1]
    exec(code, {"folder": str(tmp_path / "out")})
    assert "## Training" in card.text and "## Examples" not in card.text


def test_texts_of_listed_names_say_where_names_stand(tmp_path):
    """The code of a card runs where rules alone do not find names."""
    file = write_rows(tmp_path / "rows.jsonl", relations(12))
    data = {"train": file, "test": file, "source": "story", "target": "kind"}
    people = {"person": {"column": "people", "count": 4}}
    model = {**FOLNET, "symbol_encoding": "relational"}
    train(recipe(tmp_path, "class", data, {"max_steps": 1}, model=model, symbols=people))
    card = evaluated(tmp_path / "out", "--by", "kind")
    code = re.search(r"```python\n(.*?)```", card.text, re.DOTALL)[1]
    assert "MarkedText(" in code
    exec(code, {"folder": str(tmp_path / "out")})


def test_a_card_of_numbers_has_no_picture_of_shares(tmp_path):
    rows = [{"source": "good " * i + "end", "target": i / 2, "half": i % 2} for i in range(12)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    objective = {"name": "class", "regression": True}
    train(recipe(tmp_path, objective, {"train": file, "test": file}, {"max_steps": 1}))
    card = evaluated(tmp_path / "out", "--by", "half")
    assert "results.png" not in card.text and "lowest" not in card.text
    assert "trust_remote_code" not in card.text and card.data.tags == ["hf_alpha"]


def test_a_license_is_for_a_card():
    model = str(Path(__file__).parents[1] / "model_cards" / "small" / "copying-learned-small")
    done = CliRunner().invoke(app, ["evaluate", model, "--license", "mit"])
    assert "give --card too" in str(done.exception)
