from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.encodings import Encodings
from benchmarks.studies.heatmaps import PARTS, Heatmaps
from benchmarks.studies.results import Results
from benchmarks.studies.run import reproduce

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[Results, list[str]]:
    """Two seeds of LTL's vanilla model and the random answers; what was said on the way."""
    folder, said = tmp_path_factory.mktemp("heatmaps"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = ["ltl-learned-normal", "ltl-random"]
        places = (Path("runs"), Path("out"), said.append)
        results = reproduce(Heatmaps(), TINY, [0, 1], rows, *places)
        said.append("second table")
        reproduce(Encodings(), TINY, [0], ["ltl-learned-normal"], *places)
    return results, said


def test_parts_and_witness_lengths_add_up(found):
    results, _ = found
    for name in ("ltl-learned-normal", "ltl-random"):
        measured = results.measured(name)[0]
        counts = [measured[f"samples {part}"] for part in PARTS if f"samples {part}" in measured]
        cells = measured["cells"]
        assert sum(counts) == sum(cell[2] for cell in cells) == measured["samples"]
        assert max(cell[2] for cell in cells) == TINY.per_cell
        by_length = [value for key, value in measured.items() if "samples witness" in key]
        assert sum(by_length) == measured["samples"]
    learned, chance = (results.measured(name)[0] for name in ("ltl-learned-normal", "ltl-random"))
    assert learned["correct more names"] is None, "outside of the vocabulary"
    right = sum(round(rate * count) for _, _, count, rate in chance["cells"])
    assert right / chance["samples"] == pytest.approx(chance["correct"], abs=1e-5)


def test_a_picture_has_a_panel_for_each_row_and_shows_the_mean_of_the_seeds(found):
    results, _ = found
    for seed, rate in ((0, 0.0), (1, 1.0)):
        entry = results.rows["ltl-learned-normal"][seed]["measured"]
        entry["correct"] = rate
        entry["cells"] = [[*cell[:3], cell[3] and rate] for cell in entry["cells"]]
    (figure,) = Heatmaps().pictures(results, TINY).values()
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles[0] == "learned: 50.0 % overall" and titles[1].startswith("random step: ")
