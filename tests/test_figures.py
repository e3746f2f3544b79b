"""Figures in documents are those of the results that they name, to the digit."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from scripts import store

from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.resources import released_models

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
CARDS = [folder / "README.md" for folder in released_models().values()]
FENCE = re.compile(r"^```\n((?:%|x100|\? \w).*?)^```$", re.DOTALL | re.MULTILINE)
EVALUATION = re.compile(r"`(evaluations/[\w/-]+)`")
OUT = re.compile(r"`((?:hf-alpha|python benchmarks/)[^`]*--out [^`]*)`")
SIDE_BY_SIDE = {"streams": "encodings", "relational": "encodings-relational"}
CONSTANT = "no name in any answer"
BY_NAMES = "**Propositional logic: correct answers by number of names, %**"
Rows = dict[tuple[str, str, str], list[str]]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def rows_of(table: str) -> Rows:
    """Cells by kind of table, metric and model; notes have no cells but all of their line."""
    rows: Rows = {}
    kind = metric = ""
    for line in table.splitlines():
        parts = re.split(r" {2,}", line.strip())
        if line.startswith("%"):
            kind = parts[1]
            continue
        if not line or set(line) == {"-"} or line.startswith("? "):  # a warning
            continue
        if ": " in line:
            rows[kind, parts[0].split(":")[0], ""] = [line]
        elif parts[0] == "samples":
            rows[kind, "samples", ""] = line.split()[1:]
        else:
            if not line.startswith(" "):
                metric, *parts = parts
            rows[kind, metric, parts[0]] = parts[1:]
    return rows


def quoted_tables() -> Iterator[tuple[str, str]]:
    """Each table of an evaluation in the documents, and the result that is named in the paragraph
    before it, or else next after it."""
    for path in DOCUMENTS:
        text = read(path)
        for found in FENCE.finditer(text):
            before = text[: found.start()].rstrip().rsplit("\n\n", 1)[-1]
            named = EVALUATION.search(before) or EVALUATION.search(text, found.end())
            assert named, f"{path.name} does not name the results of a table"
            yield named[1], found[1]


def written(result: str) -> str:
    """The table of an evaluation."""
    return store.read(result)["text"]


def table_of(name: str) -> Rows:
    return rows_of(written(f"evaluations/{name}"))


def test_tables_of_evaluations_are_those_of_the_results_that_the_text_names():
    tables = list(quoted_tables())
    assert "evaluations/small" in {name for name, _ in tables}
    for name, table in tables:
        assert table.rstrip() == written(name), name


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_tables_of_cards_are_parts_of_those_of_the_results_that_they_name(path):
    text = read(path)
    (table,) = (found[1] for found in FENCE.finditer(text))
    command = shlex.split(OUT.search(text)[1])
    result = command[command.index("--out") + 1].removeprefix("runs/")
    assert shlex.join(command) == shlex.join(shlex.split(store.commands()[result]))
    said = written(result)
    if not read_recipe(path.parent / RECIPE_FILE).aim.answers:
        assert table.rstrip() == said.rstrip()
        return
    whole, rows = rows_of(said), rows_of(table)
    models = {name for _, _, name in rows}
    assert path.parent.name in models and len(models) == 3, "the model, a random answer, notes"
    expected = {key: cells for key, cells in whole.items() if key[2] in models}
    assert rows.keys() == expected.keys()
    for key, cells in rows.items():
        if key[1] in ("alpha-covariance", "edit_distance") and not key[2]:
            assert expected[key][0].startswith(cells[0])
        elif key[1] == CONSTANT:  # names every model of the table
            assert cells[0].removeprefix(f"{CONSTANT}: ") in expected[key][0]
        else:
            assert cells == expected[key], key


def test_tables_of_benchmarks_are_those_of_the_results():
    """After new results: python benchmarks/figures.py."""
    import figures

    blocks = []
    for name in figures.DOCUMENTS:
        text = read(ROOT / name)
        blocks += [found[2] for found in figures.BLOCK.finditer(text)]
        assert figures.fill(text) == text, name
    assert sorted(blocks) == sorted(figures.TABLES)


def test_pictures_of_real_models_are_drawn_from_the_results(tmp_path):
    """After new results: python benchmarks/figures.py."""
    import figures

    for draw, picture in (
        (figures.draw_real_model, figures.REAL_PICTURE),
        (figures.draw_swapped_tools, figures.SWAP_PICTURE),
    ):
        draw(tmp_path / "again.png")
        assert np.array_equal(imread(picture), imread(tmp_path / "again.png"))


def test_the_tables_of_what_is_new_are_rows_of_the_pages_that_it_names():
    docs = ROOT / "docs"
    rows = [line for line in read(docs / "paper.md").splitlines() if line.startswith("| ")]
    pages = ("results.md", "results-retrofit.md")
    whole = {line for page in pages for line in read(docs / page).splitlines()}
    assert len(rows) > 15 and set(rows) <= whole


def test_sentences_say_what_the_results_say():
    import figures

    for name, sentence in [*figures.sentences(), *evaluated()]:
        assert sentence in read(ROOT / name), f"{name} should say: {sentence}"


def evaluated() -> Iterator[tuple[str, str]]:
    """What documents say of evaluations outside of tables."""
    one, two, more, _ = witness_rates("ltl-in-distribution", "ltl-streams-small")
    yield (
        "docs/results-models.md",
        (
            f"answers {one} % of those with a one-step witness, {two} % of those that need two "
            f"steps and {more} % of those that need more"
        ),
    )
    one, two, more, _ = witness_rates("ltl-hard", "ltl-streams-small")
    samples = table_of("ltl-hard")["witness length:", "samples", ""]
    chance = [f"{float(rate):g}" for rate in witness_rates("ltl-hard", "random step")[:3]]
    yield (
        "docs/results-models.md",
        (
            f"answers {one} % of those with a one-step witness, {two} % of those that need two and "
            f"{more} % of the {samples[2]} that need more; "
            f"a random step {chance[0]}, {chance[1]} and {chance[2]} %"
        ),
    )
    one, two, more, _ = witness_rates("ltl-hard", "ltl-relational-small")
    yield "docs/results-models.md", f"`ltl-relational-small` answers {one}, {two} and {more} %"
    right, of = patterns("dwyer")
    yield "docs/results-models.md", f"answers {right} of the {of} specification patterns"
    yield (
        "docs/results-models.md",
        f"`ltl-relational-small` answers {patterns('dwyer-relational')[0]} (",
    )
    for encoding in ("streams", "relational"):
        models = store.read(SIDE_BY_SIDE[encoding])["data"]["models"]
        overall = [rates[-1] for rates in models[encoding]["correct"]]
        mean = f"{100 * sum(overall) / len(overall):.1f}"
        yield "docs/paper.md", f"{mean} %"
        held_out = read(ROOT / "docs" / "results.md").split(BY_NAMES)[1]
        row = re.search(rf"^\| normal \| {encoding} \|.*$", held_out, re.MULTILINE)[0]
        yield "docs/models.md", f"{row.split(' | ')[-4]} %"
    tables = [
        read(ROOT / "docs" / "results.md").split(BY_NAMES.replace("Propositional logic", task))[1]
        for task in ("LTL", "Propositional logic")
    ]
    for name in ("relational", "streams", "dual-part", "alpha-renaming", "canonical", "learned"):
        rows = [re.search(rf"^\| normal \| {name} \|.*$", table, re.MULTILINE) for table in tables]
        yield "docs/choosing.md", "| {} | {} |".format(*(row[0].split(" | ")[-4] for row in rows))
    ten = table_of("top-10")
    ours, chance = (
        ten["symbols:", "top_n", name][-1]
        for name in ("propositional-relational", "random assignment")
    )
    yield (
        "docs/results-models.md",
        f"is right in {ours} %; but one of ten random assignments is right in ",
    )
    yield "docs/results-models.md", f"is right in {chance} %, so there"
    ten = table_of("ltl-top-10")
    ours, chance = (ten["symbols:", "top_n", n][-1] for n in ("ltl-relational", "random step"))
    yield "docs/results-models.md", f"has a right one in {ours} %, ten random steps in {chance} %"
    two = ten["witness length:", "top_n", "ltl-relational"][1]
    assert float(ten["witness length:", "top_n", "random step"][1]) == 0
    yield "docs/results-models.md", f"takes two steps, {two} % against none"
    inlined = table_of("inline-t5")
    right = inlined["symbols:", "correct", "inline-t5"]
    yield (
        "docs/models.md",
        f"right in {right[-1]} % with 4 to 20 of them, as in training",
    )
    assert set(right) == {"100.0"}
    yield "docs/results-retrofit.md", "with up to 20, it answers all of those"
    copying = table_of("copying")
    streams, learned = (
        copying["symbols:", "edit_distance", f"copying-{name}-small"][-1]
        for name in ("streams", "learned")
    )
    count = int(copying["symbols:", "samples", ""][-1])
    yield "docs/results-models.md", f"(mean edit distance {streams} on {count:,} strings;"
    yield "docs/results-models.md", f"within its 5 characters, {learned} over all"
    draws = store.read("evaluations/copying-draws")["data"]["draws"]
    least, most = (100 * draws["correct"][which] for which in ("minimum", "maximum"))
    yield (
        "docs/results-models.md",
        f"with others it copies {least:.1f} to {most:.0f} % of 400 strings",
    )
    said = written("evaluations/quickstart")
    seconds = re.search(r"(\d+) seconds in all", said)[1]
    yield "docs/start.md", f"this run of `hf-alpha quickstart`: {seconds} seconds after the install"
    small = table_of("small")
    four = {
        name: small["symbols:", "correct", f"propositional-{name}-small"][3]
        for name in ("streams", "converted")
    }
    yield (
        "docs/results.md",
        (
            f"answer {four['streams']} % (`streams`) and {four['converted']} % (converted) of "
            "formulas with 4 symbols"
        ),
    )


def patterns(name: str) -> tuple[int, int]:
    """How many of the specification patterns were answered right, and how many there are."""
    verdicts = re.findall(r"^  (correct|wrong) ", written(f"evaluations/{name}"), re.MULTILINE)
    return verdicts.count("correct"), len(verdicts)


def witness_rates(result: str, name: str) -> list[str]:
    """Correct answers by witness length."""
    return table_of(result)["witness length:", "correct", name]


def test_commands_that_documents_name_are_those_that_wrote_the_results():
    """Of benchmarks, as the store has it; and what stands in brackets is in the store."""
    stored, seen, named = store.commands(), set(), set()
    for path in DOCUMENTS:
        for command in OUT.findall(read(path)):
            name = re.search(r"--out (\S+)", command)[1]
            if command.startswith("python") and name in stored:
                assert command == stored[name], path
                seen.add(name)
        for words in re.findall(r"\(((?:`[\w/-]+`(?:, )?)+)[;,)]", read(path)):
            named |= set(re.findall(r"`([\w/-]+)`", words))
    lost = {name for name in named if name.startswith(("evaluations/", "studies/"))} - stored.keys()
    assert len(seen) > 5 and len(named & stored.keys()) > 80 and not lost, (seen, named, lost)
