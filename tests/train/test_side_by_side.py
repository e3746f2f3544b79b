"""Encodings side by side, from the command line too."""

import json
import re
from pathlib import Path

import pytest
from commands import hf_alpha
from hosts import make_host
from pictures import is_picture
from small_tokenizers import byte_level
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from hf_alpha.data.pairs import evaluation_rows, read_pairs
from hf_alpha.evaluation.covariance import AlphaCovariance, CovarianceSample
from hf_alpha.evaluation.report import Record, Report
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.text.swapping import swapping_pairs
from hf_alpha.train.side_by_side import (
    CURVES_FILE,
    ENCODINGS,
    compare_encodings,
    pooled,
    with_encoding,
)

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "model.d_model=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.encoder_attention_heads=2", "model.decoder_attention_heads=2",
    "model.encoder_ffn_dim=16", "model.decoder_ffn_dim=16",
]  # fmt: skip


@pytest.fixture(scope="module")
def changes(tmp_path_factory) -> list[str]:
    """Changes to the shipped recipe: small data, a small model."""
    folder = tmp_path_factory.mktemp("own")
    for name, seed in (("train", 0), ("test", 1)):
        rows = "".join(json.dumps(row) + "\n" for row in swapping_pairs(40, seed=seed))
        (folder / f"{name}.jsonl").write_text(rows)
    places = [f"data.{name}={folder / name}.jsonl" for name in ("train", "test")]
    held_out = ["data.validation=0.2"]
    return [*places, *held_out, *TINY, f"training.output_dir={folder / 'model'}"]


@pytest.mark.slow
def test_each_encoding_is_trained_and_tested(tmp_path: Path, changes):
    out = tmp_path / "out"
    arguments = ["--encodings", "relational,canonical", "--out", out, "--covariance", 1, "--quiet"]
    done = hf_alpha("compare", "text/swap", "training.max_steps=2", *changes, *arguments)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "relational: training" and "canonical: training" in lines
    assert lines[1].split() == ["pairs", "40"] and done.out.count("\npairs ") == 1
    table = (out / "table.txt").read_text()
    assert table.strip() in done.out
    rates = (out / "evaluation" / "table.txt").read_text().strip()
    for text in (table, rates):  # its own pairs are as those of training
        assert text.startswith("? ") and " rows are renamings of training's" in text
    assert rates.splitlines()[-1] in table and "\n%  trained:" in table
    for name in ("relational", "canonical"):
        state = json.loads((out / name / "trainer_state.json").read_text())
        row = next(line.split() for line in table.splitlines() if line.split()[:1] == [name])
        assert state["global_step"] == 2 and row[1:3] == ["2", "0.003"]
        report = json.loads((out / "evaluation" / name / "report.json").read_text())
        held = json.loads((out / "evaluation" / "held-out" / name / "report.json").read_text())
        rates = [f"{100 * one['overall']['correct']:.1f}" for one in (held, report)]
        assert row[-2:] == rates and 0 < held["overall"]["count"] < 20
    assert is_picture(out / CURVES_FILE)
    model, _ = load_checkpoint(out / "canonical")
    assert model.config.symbol_renaming == "first_occurrence"
    again = hf_alpha("compare", "text/swap", "training.max_steps=2", *changes, *arguments)
    assert again.code == 0 and "holds a finished run of 2 steps: nothing is done" in again.out
    other = hf_alpha("compare", "text/swap", "training.max_steps=1", *changes, *arguments)
    assert other.code == 2 and "holds a run with other settings" in other.err
    assert "step 2/2" not in done.out, "--quiet"

    answered = hf_alpha("solve", "--model", out / "relational", "swap x y : F x y")
    assert answered.code == 0 and "  answer " in answered.out
    # The model's recipe says what is solved, and where the test lies.
    found = hf_alpha("evaluate", out / "relational", "--covariance", 0)
    assert found.code == 0 and (out / "relational" / "evaluation" / "table.txt").is_file()
    assert "copy of the input" in found.out
    # Test data is looked at first, beside what training has left there.
    assert re.search(r"^variable  .* in training 2 to 3$", found.out, re.MULTILINE), found.out
    table = (out / "relational" / "evaluation" / "table.txt").read_text()
    report = json.loads(
        (out / "relational" / "evaluation" / "relational" / "report.json").read_text()
    )
    assert [f"? {text}" for text in report["warnings"]] == table.splitlines()[:1]
    noted = hf_alpha("solve", "--model", out / "relational", "swap a b c d e : F x y")
    assert "note: 7 names of class variable; training had 3 at most" in noted.err
    assert "names of class" not in answered.err


@pytest.mark.slow
def test_a_plain_model_stands_beside_what_is_made_of_it(tmp_path: Path, changes):
    """Each is converted once, trained, and tested; an earlier start's conversions are kept."""
    tokenizer = byte_level(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=0)
    host.save_pretrained(tmp_path / "host")
    tokenizer.save_pretrained(tmp_path / "host")
    shared = [one for one in changes if not one.startswith("model.")]
    command = ["compare", "text/swap", *shared, "model=null", f"checkpoint={tmp_path / 'host'}",
               "training.max_steps=1", "--encodings", "plain,canonical,relational,renaming",
               "--covariance", 1, "--quiet", "--out", tmp_path / "out"]  # fmt: skip
    done = hf_alpha(*command)
    assert done.code == 0, done.err
    names = ["plain", "canonical", "relational", "renaming"]
    rows = [line.split()[0] for line in (tmp_path / "out/table.txt").read_text().splitlines()[3:7]]
    assert rows == names
    configs = [json.loads((tmp_path / "out" / name / "config.json").read_text()) for name in names]
    assert [one["model_type"] for one in configs] == [
        "t5",
        "t5",
        "alpha-retrofit",
        "alpha-retrofit",
    ]
    assert configs[3]["symbol_renaming"] == "random" and configs[2]["symbol_classes"]
    reports = [tmp_path / "out/evaluation" / name / "report.json" for name in names]
    means = [json.loads(one.read_text())["alpha_covariance"]["mean"] for one in reports]
    assert means[1] == means[2] == 1 > means[0]
    assert isinstance(
        AutoTokenizer.from_pretrained(tmp_path / "out/plain"), PreTrainedTokenizerFast
    )
    made = sorted(path.stat().st_mtime_ns for path in (tmp_path / "out/converted").iterdir())
    assert hf_alpha(*command).code == 0
    again = sorted(path.stat().st_mtime_ns for path in (tmp_path / "out/converted").iterdir())
    assert made == again and len(made) == 3


def own(recipe) -> list[dict]:
    """The test rows of a recipe."""
    pairs = read_pairs(recipe.data, recipe.data.test, recipe.configured_task.finder, "test")
    return evaluation_rows(pairs, recipe.configured_task)


def test_rates_are_tuned_and_seeds_pooled(tmp_path: Path, changes):
    """With rates far apart: the middle one learns, a hundred times less or more does not."""
    recipe = read_recipe(
        "text/swap", [*changes, "training.max_steps=8", "training.logging_steps=1"]
    )
    said: list[str] = []
    text, reports = compare_encodings(
        recipe, ["relational"], own(recipe), tmp_path, seeds=2, tuning_steps=4, say=said.append,
        progress=False,
    )  # fmt: skip
    trials = {path.name: json.loads((path / "trainer_state.json").read_text())
              for path in (tmp_path / "tuning").iterdir()}  # fmt: skip
    assert trials.keys() == {f"relational-{rate}" for rate in (0.001, 0.003, 0.009)}
    losses = {
        float(name.rpartition("-")[2]): state["log_history"][-2]["eval_loss"]
        for name, state in trials.items()
    }
    best = min(losses, key=losses.get)
    assert {state["global_step"] for state in trials.values()} == {4}
    assert any(f"the learning rate is {best:g}" in line for line in said), said
    assert sum(line.startswith("pairs") for line in said) == 1, "data is looked at once"
    runs = [tmp_path / f"relational-seed-{seed}" for seed in (42, 43)]
    for run, seed in zip(runs, (42, 43), strict=True):
        trained = read_recipe(run / "recipe.yaml").training
        assert (trained["seed"], trained["learning_rate"]) == (seed, best)
    pooled = reports[0]
    assert pooled.model == "relational" and len(pooled.records) == 80
    alone = [json.loads((tmp_path / "evaluation" / run.name / "report.json").read_text())
             for run in runs]  # fmt: skip
    mean = sum(report["overall"]["correct"] for report in alone) / 2
    assert pooled.overall.correct == pytest.approx(mean)
    for row in ("relational, mean", "relational, lowest", "relational, highest"):
        assert row in text


def test_recipes_differ_in_the_encoding_alone(changes):
    recipe = read_recipe("text/swap", changes)
    for name, settings in ENCODINGS.items():
        other = with_encoding(recipe, name, Path("elsewhere"))
        assert other.model == {**recipe.model, **settings}
        assert other.training == {**recipe.training, "output_dir": "elsewhere"}
        faster = with_encoding(recipe, name, Path("elsewhere"), learning_rate=1.0)
        assert faster.training == {**other.training, "learning_rate": 1.0}
    with pytest.raises(ValueError, match="unknown encoding 'telepathy': choose one of learned"):
        compare_encodings(recipe, ["telepathy"], [], Path("elsewhere"))


def test_what_cannot_be_compared(tmp_path: Path, changes):
    folder = Path(ROOT / "tests" / "released" / "inline-t5")
    recipe = read_recipe("text/swap", changes).model_copy(update={"checkpoint": str(folder)})
    with pytest.raises(ValueError, match="is none: leave out 'checkpoint'"):
        compare_encodings(recipe, ["learned"], [], tmp_path)
    recipe = read_recipe("text/swap", changes)
    with pytest.raises(ValueError, match="plain is a model of Transformers as it is: name one as"):
        compare_encodings(recipe, ["plain"], [], tmp_path)
    done = hf_alpha("compare", "copying/debug")
    assert done.code == 2 and "no recipe for pairs of your own" in done.err


def test_seeds_count_together():
    """By made-up reports: rates are means over the seeds."""

    def report(name: str, rights: list[bool]) -> Report:
        records = [
            Record(i, "x", "y", i + 1, 10, ("y",), ("exact" if right else "wrong",))
            for i, right in enumerate(rights)
        ]
        covariance = AlphaCovariance((CovarianceSample(0, 1, 2, 2, 1, 2, 2),), {}, 24, 0)
        return Report(name, {}, records, covariance)

    one = pooled("one", [report("a", [True, False, True, False]), report("b", [True] * 4)])
    assert one.model == "one" and one.overall.correct == pytest.approx(6 / 8)
    assert one.alpha_covariance.used == 2
