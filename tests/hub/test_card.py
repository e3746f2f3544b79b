import json
import random
import re
from dataclasses import replace

import pytest
from commands import hf_alpha
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from matplotlib.image import imread
from small_objectives import FOLNET, recipe, relations, write_rows
from strategies import make_model
from typer.testing import CliRunner

from hf_alpha.answer.base import Random
from hf_alpha.cli import app
from hf_alpha.demo.choices import page_choices
from hf_alpha.demo.drawing import draw_solution
from hf_alpha.evaluation import alpha_covariance, evaluate, run
from hf_alpha.evaluation.compare import trained_region
from hf_alpha.evaluation.report import table
from hf_alpha.hub.card import CURVE_FILE, HEATMAP_FILE, _example, _examples, make_curve, write_card
from hf_alpha.hub.release import LOG_FILE, release
from hf_alpha.recipe import RECIPE_FILE, Recipe, read_recipe, write_recipe
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import train


def test_card_of_a_copying_model(tmp_path):
    rows = [{"problem": text, "answer": text} for text in ("aab", "abc")]
    tokenizer = build_tokenizer("copying", 3)
    model = make_model(num_base_tokens=3, symbol_classes={"character": 3}, encoder_position="rope")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "NOTES.md").write_text("Knows no capitals.\n")
    report = evaluate(model, tokenizer, "copying", rows, progress=False, max_new_tokens=4)
    region = (1, 2), (2, 6)
    baseline = run(Random("random string"), "copying", rows, progress=False)
    write_card(tmp_path, report, baseline, "the command", "2026-01-02", region=region)
    card = ModelCard.load(tmp_path / "README.md")
    values = [(r.dataset_name, r.metric_type, r.metric_value) for r in card.data.eval_results]
    assert values == [
        (f"strings with {k} symbols", "edit_distance", round(rates.edit_distance, 4))
        for k, rates in report.by_num_symbols.items()
    ]
    limits = card.text.partition("## Limits\n")[2].strip()
    assert "trained on strings with at most 2 symbols and 6 tokens." in limits
    assert limits.endswith("as `hf-alpha solve` does.\n\nKnows no capitals.")
    assert "--task copying" in card.text and "num_beams=1" in card.text
    assert "logic" not in card.data.tags
    assert "up to renaming" not in card.text and "random string" in card.text


def test_card_says_what_the_report_says(tmp_path):
    task = get_task("propositional")
    rng = random.Random(0)
    rows = [
        {"problem": task.sample(rng, 7, "abcdefg"[:k]), "answer": None}
        for k in (2, 3)
        for _ in "12"
    ]
    model, tokenizer = make_model(), build_tokenizer("propositional", 5)
    model.save_pretrained(tmp_path / "toy")
    tokenizer.save_pretrained(tmp_path / "toy")
    recipe = read_recipe("propositional/debug", ["data.generate.num_symbols=3"])
    write_recipe(recipe, tmp_path / "toy" / RECIPE_FILE)
    log = [{"step": 1, "loss": 2.0}, {"step": 1, "eval_loss": 1.5}, {"step": 2, "loss": 1.0}]
    (tmp_path / "toy" / LOG_FILE).write_text(json.dumps(log))
    report = evaluate(model, tokenizer, task, rows, progress=False, max_new_tokens=8)
    problems, brief = [row["problem"] for row in rows], {"num_beams": 1, "max_new_tokens": 2}
    report.alpha_covariance = alpha_covariance(
        model, tokenizer, problems, max_renamings=2, generate_kwargs=brief, progress=False
    )
    baseline = run(Random(task.random_name), task, rows, progress=False)
    write_card(tmp_path / "toy", report, baseline, "hf-alpha evaluate toy", "2026-01-02")
    card = ModelCard.load(tmp_path / "toy" / "README.md")
    assert card.data.model_name == "toy"
    values = {r.dataset_config: r.metric_value for r in card.data.eval_results}
    assert values == {
        f"{count}-symbols": round(rates.correct, 4)
        for count, rates in report.by_num_symbols.items()
    }
    assert f"{model.num_parameters():,}" in card.text
    assert table([report, baseline]) in card.text
    assert "a column, at most 2 renamings each (seed 0)" in card.text
    assert "hf-alpha evaluate toy" in card.text and "task: propositional" in card.text
    most = recipe.data.generate["sizes"][1]
    assert f"at most 3 symbols and {most} tokens" in card.text
    assert "Of those tested within that, 0.0 % are answered right." in card.text
    many = ["data.generate.many_symbols=3200", "data.generate.up_to_symbols=8"]
    assert trained_region(read_recipe("ltl/relational-small", many)) == ((0, 8), (1, 15))
    further = read_recipe("propositional/relational-further")  # its second dataset has more names
    assert trained_region(further) == ((0, 10), (1, 50))
    # A model without any training is right less often than a random assignment.
    assert [report.by_num_symbols[k].correct for k in (2, 3)] == [0, 0]
    assert "no better than the random assignment" in card.text
    for record in (report.records[0], report.records[2]):  # the first of each number of symbols
        assert f"{record.problem}\n  {record.outcome:<10} {record.answers[0]}\n" in card.text
    assert report.records[1].problem not in card.text
    records = [replace(report.records[0], problem="```", answers=("",)),
               replace(report.records[2], answers=None, verdicts=("malformed",)),
               replace(report.records[1], num_symbols=9, verdicts=("correct",),
                       problem="p\n  q", answers=("a\n b",))]  # fmt: skip
    examples = _examples(task, replace(report, records=records))
    assert examples == {
        2: f"```\n  {records[0].outcome:<10} {task.empty_answer}",
        3: f"{records[1].problem}\n  malformed  no answer",
        9: f"p\n  q\n  correct    a\n{'':13} b",
    }
    for name in (HEATMAP_FILE, CURVE_FILE):
        assert f"]({name})" in card.text and imread(tmp_path / "toy" / name).ndim == 3
    assert card.data.tags == ["hf_alpha", "alpha-equivalence", "logic", "propositional"]
    assert f'tokenizer(["{task.example}"]' in card.text
    own = get_task("text")  # shows the shortest of the user's own texts
    assert json.loads(_example(own, replace(report, records=records))) == "```"
    (axis,) = make_curve(log).axes
    assert [line.get_xydata().tolist() for line in axis.lines] == [[[1, 2], [2, 1]], [[1, 1.5]]]


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
    warning, _, table = (out / "report.txt").read_text().strip().partition("\n\n")
    assert warning.startswith("? released: 24 of 24 rows") and table in card.text
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


def test_a_model_whose_names_come_with_each_text(tmp_path, monkeypatch):
    """From a file of a spreadsheet to the page: all say that names are given, and take them."""
    monkeypatch.chdir(tmp_path)
    people = ["anna ben", "ben carl", "carl anna", "dora carl"]
    lines = [f'{a} sees {b} here,{b} was seen by {a},"{a}, {b}"' for a, b in map(str.split, people)]
    (tmp_path / "pairs.csv").write_text("\n".join(["source,target,people", *lines, ""]))
    sizes = {"encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "d_model": 8}
    sizes |= dict.fromkeys(["encoder_layers", "decoder_layers"], 1)
    sizes |= dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 1)
    settings = {"output_dir": "out", "max_steps": 1, "use_cpu": True, "disable_tqdm": True}
    train(Recipe(
        task="text", symbols={"person": {"column": "people"}}, data={"train": "pairs.csv"},
        tokenizer="words", model={"symbol_encoding": "relational", **sizes}, training=settings,
    ))  # fmt: skip
    done = hf_alpha("evaluate", "out", "--data", "pairs.csv", "--covariance", 0, "--card")
    assert done.code == 0, done.err
    card = (tmp_path / "out" / "README.md").read_text()
    names = {"folder": "out"}
    exec(re.search(r"```python\n(.*?)```", card, re.DOTALL)[1], names)
    assert [*names["batch"].names[0].values()] == ["anna", "ben"]
    assert "--model out --names person=zoe,max` answers" in card
    assert "Tested on `pairs.csv` alone. Not measured: more than 2 symbols in a problem" in card
    said = hf_alpha("info", "out").out
    assert "names of person are given with each text" in " ".join(said.split())
    choice = page_choices(["out"], device="cpu")["out"]
    asked = "zoe sees max here"
    assert "are given with each text: write" in choice.solve(asked).error
    assert "'tim' stands in no text" in choice.solve(asked, names="tim").error
    answer = hf_alpha("solve", "--model", "out", "--names", "zoe,max", asked).out
    solution = choice.solve(asked, names="person=zoe,max")
    assert f"answer     {solution.answers[0][0]}\n" in answer
    drawn = draw_solution(choice, solution)
    assert "taken for names: zoe (person), max (person)" in drawn
    renamed = choice.rename(asked, names="zoe,max")
    assert renamed.same and renamed.names == {"zoe": "max", "max": "zoe"}
