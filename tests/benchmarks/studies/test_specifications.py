import csv
from pathlib import Path

from tiny_studies import TINY

from benchmarks.studies.results import Results
from benchmarks.studies.run import reproduce
from benchmarks.studies.sizes import CPU
from benchmarks.studies.specifications import FAMILIES, Specifications, patterns
from benchmarks.studies.table import percent
from hf_alpha.data.keys import key_of, split_of
from hf_alpha.evaluation.report import OUTCOMES
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task

DWYER = Path(__file__).parents[2] / "data_files" / "dwyer.tsv"


def test_patterns_can_be_read_and_dwyers_are_those_of_the_tests():
    task = get_task("ltl")
    assert len({pattern["name"] for pattern in patterns()}) == len(patterns()) == 192
    assert list(dict.fromkeys(pattern["family"] for pattern in patterns())) == [*FAMILIES]
    assert all(task.symbols_of(pattern["formula"]) for pattern in patterns())
    with DWYER.open(encoding="utf-8") as file:
        theirs = [row["formula"] for row in csv.DictReader(file, delimiter="\t")]
    assert [x["formula"] for x in patterns() if x["family"] == "DAC"] == theirs
    assert patterns()[22]["name"] == "precedence, after Q"


def test_released_models_and_chance_are_measured_without_training(tmp_path, monkeypatch):
    """On two patterns of Dwyer et al. and one of another family."""
    monkeypatch.chdir(tmp_path)
    some = tuple(patterns()[place] for place in (0, 49, 60))
    monkeypatch.setattr("benchmarks.studies.specifications.patterns", lambda: some)
    table = Specifications()
    rows = [row.name for row in table.rows(TINY) if row.model is None]
    released = {name for name in released_models() if name.startswith("ltl-")}
    assert {*rows} == {*released, "ltl-random"} and "ltl-relational-small" in released
    only = ["ltl-learned-small", "ltl-relational-small", "ltl-random"]
    results = reproduce(table, TINY, [0], only, Path("runs"), Path("out"), lambda _: None)
    found = results.measured("ltl-relational-small")[0]
    assert (found["samples"], found["samples DAC"], found["samples EH"]) == (3, 2, 1)
    weights = {name: results.rows[name][0]["settings"].get("weights") for name in only}
    assert len({*weights.values()}) == 3 and weights["ltl-random"] is None
    failed = {place: OUTCOMES[outcome] for place, *_, outcome in found["failed"]}
    assert found["correct"] == round(1 - len(failed) / 3, 6)
    assert 1 in failed, "this one solves no such chain"
    sentences = table.findings(results, TINY)
    assert sentences[1].startswith(
        "ltl-relational-small (released) solves 1 of the 2 patterns of Dwyer et al; not solved: "
        "response chain 1-2, after Q until R (5 names, "
    )
    assert sentences[1].endswith(f" tokens, witness of 1 step: {failed[1]}).")
    chance = results.measured("ltl-random")[0]["correct"]
    assert f"it is right in {percent(chance)} %; " in sentences[-1] and len(sentences) == 3
    assert "| ltl-relational-small (released) | 50.0 |" in table.render(results, TINY)
    assert not table.findings(Results(Path(), "x", "y"), TINY)


def test_the_text_says_how_many_patterns_may_be_training_formulas():
    text = Specifications().text(CPU)
    assert "no model was trained" not in text
    task = get_task("ltl")
    keys = [key_of(task.canonical(pattern["formula"])) for pattern in patterns()]
    known = {
        place
        for place, pattern in enumerate(patterns())
        if split_of(keys[place]) == "train"
        and len(task.parse(pattern["formula"])) <= CPU.length
        and len(task.symbols_of(pattern["formula"])) <= CPU.names
    }
    dwyer = sum(patterns()[place]["family"] == "DAC" for place in known)
    assert 14 <= len(known) < 192 and 4 <= dwyer < 55
    assert f"{len(known)} of the 192 ({dwyer} of the 55 of Dwyer" in text
