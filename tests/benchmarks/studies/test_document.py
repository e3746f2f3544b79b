import re

import pytest
from commands import study
from tiny_studies import TINY

from benchmarks.studies.document import write_document
from benchmarks.studies.encodings import Encodings
from benchmarks.studies.results import Results
from benchmarks.studies.tables import TABLES


@pytest.mark.slow
def test_the_command_writes_a_page_of_all_that_is_measured(tmp_path):
    page = tmp_path / "papers" / "page.md"
    assert study("studies", "--write-document", page).code == 0
    text = page.read_text()
    assert all(f"\n## {table.title}\n" in text for table in TABLES.values())
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 2 and all((page.parent / name).is_file() for name in pictures)


def entry(**measured):
    training = {"steps": 2, "batch_size": 8, "hours": 0.5}
    made = {"hardware": "a processor", "threads": 1, "date": "2020-01-02", "settings": {}}
    return {"measured": measured, "training": training, **made}


def test_means_spreads_gaps_and_the_papers_numbers(tmp_path):
    out, page = tmp_path / "store", tmp_path / "page.md"
    results = Results.of(out, "encodings", "tiny")
    more = {f"correct {k}": None for k in range(1, 5)}
    results.put("ltl-learned-renamed", 0, entry(correct=0.5, exact=0.25, **more))
    results.put("ltl-learned-renamed", 1, entry(correct=0.7, exact=0.25, **more))
    known = {"correct 4": 0.5, "correct more names": 0.5}
    results.put("ltl-streams-normal", 0, entry(correct=1.0, exact=0.9, **known))
    results.put(
        "ltl-random",
        0,
        {**entry(correct=0.4, exact=0.1, **{"correct more names": 0.25}), "training": {}},
    )
    write_document([Encodings()], [TINY], out, page)
    text = page.read_text()
    lines = text.splitlines()
    theirs = "34.13 | 12.12 | 64.93 | 57.99 | 40.91"
    assert f"| renamed | learned | 60.0 ± 10.0 | 25.0 ± 0.0 | - | {theirs} | 0.50 | 2 |" in lines
    assert "| normal | streams | 100.0 | 90.0 | - |  |  |  |  |  | 0.50 | 1 |" in lines
    assert "| none | random step | 40.0 | 10.0 | - |  |  |  |  |  | - | - |" in lines
    assert (
        "- LTL, more names than in training (up to 4): of the models trained on at most 3 names "
        "that can take so many, 1 of 1 are better than random answers (25.0 %)."
    ) in lines, "no best of one seed"
    assert "2 steps of 8 problems; 1.5 hours of training; a processor" in text
    assert "Not measured yet: `propositional-*-normal`, `propositional-*-renamed`, " in text
    assert "`propositional-random`, `ltl-learned-normal`, " in text
    assert "Propositional logic:" not in text, "nothing of it has been measured"
    assert "arXiv 2601.23169, Table 1" in text and str(tmp_path) not in text
    for seed in (1, 2):
        assert "The best is" not in text
        results.put("ltl-streams-normal", seed, entry(correct=1.0, exact=0.9, **known))
        write_document([Encodings()], [TINY], out, page)
        text = page.read_text()
    assert "The best is streams on normal data with 50.0 %." in text
