import csv

import numpy as np
import pytest
from matplotlib.image import imread

from hf_alpha.evaluation import Heatmap, Record, Report, draw
from hf_alpha.evaluation.heatmap import make_figure
from hf_alpha.evaluation.report import OUTSIDE

REGION = ((1, 2), (1, 3))


def make_report() -> Report:
    found = [
        (1, 1, "exact"), (1, 1, "correct"), (1, 1, "wrong"), (1, 3, "timeout"), (2, 3, "exact"),
        (3, 5, OUTSIDE), (3, 5, OUTSIDE),
    ]  # fmt: skip
    records = [
        Record(index, "a", "a1", symbols, size, None if outcome == OUTSIDE else ("a1",), (outcome,),
               0 if outcome == "exact" else size)
        for index, (symbols, size, outcome) in enumerate(found)
    ]  # fmt: skip
    return Report("vanilla", {}, records)


@pytest.mark.parametrize("metric", ["correct", "exact", "timeout", "edit_distance"])
def test_numbers_are_those_of_the_report(tmp_path, metric):
    report = make_report()
    heatmap = Heatmap.of(report, metric, REGION)
    assert heatmap.overall == report.overall.rate(metric)
    assert {(cell.num_symbols, cell.size) for cell in heatmap.cells} == set(report.by_cell)
    for cell in heatmap.cells:
        rates = report.by_cell[cell.num_symbols, cell.size]
        assert (cell.rate, cell.count) == (rates.rate(metric), rates.count)
        assert cell.outside == (cell.num_symbols == 3)
    heatmap.save(tmp_path / "heatmap.json")
    assert Heatmap.load(tmp_path / "heatmap.json") == heatmap
    heatmap.save(tmp_path / "heatmap.csv")
    with (tmp_path / "heatmap.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rate"]) for row in rows] == [cell.rate for cell in heatmap.cells]
    with pytest.raises(ValueError, match=r"heatmap\.txt: use \.json or \.csv"):
        heatmap.save(tmp_path / "heatmap.txt")


def test_picture_says_what_it_shows():
    """Panels in their order with their cells' colours, the training data's box, labels, notes."""
    correct, exact = (Heatmap.of(make_report(), name, REGION) for name in ("correct", "exact"))
    figure = make_figure([correct, exact], title="Both")
    *panels, bar = figure.axes
    assert [axis.get_title() for axis in panels] == [
        "vanilla: 42.9 % overall",
        "vanilla: 28.6 % overall",
    ]
    assert figure.get_suptitle() == "Both" and panels[0].get_ylabel() == "number of symbols"
    assert {axis.get_xlabel() for axis in panels} == {"length of the problem (tokens)"}
    assert bar.get_ylabel() == "correct answers, exact answers" and bar.get_ylim() == (0, 1)
    one, two = (axis.images[0].get_array() for axis in panels)
    assert one.shape == two.shape == (3, 5, 3)
    different = np.argwhere((one != two).any(-1)).tolist()
    assert different == [[0, 0]], "of one symbol and token, two of three are correct, one exact"
    for axis in panels:
        assert axis.images[0].get_extent() == [0.5, 5.5, 0.5, 3.5]
        hatched, *box = axis.patches
        assert hatched.get_hatch() and hatched.get_bbox().bounds == (4.5, 2.5, 1, 1)
        assert [patch.get_bbox().bounds for patch in box] == [(0.5, 0.5, 3, 2)] * 2
    notes = figure.get_supxlabel()
    assert "(full: 3)" in notes and "hatched: outside" in notes and "dashed: training" in notes
    alone = make_figure(Heatmap.of(Report("vanilla", {}, make_report().records[:4])))
    assert "dashed" not in alone.get_supxlabel() and "hatched" not in alone.get_supxlabel()
    beside, stacked = (make_figure([correct, exact], columns=columns).axes[1] for columns in (2, 1))
    assert beside.get_subplotspec().colspan.start == stacked.get_subplotspec().rowspan.start == 1


def test_picture_is_written(tmp_path):
    heatmap = Heatmap.of(make_report(), training_region=REGION)
    one = draw(heatmap, tmp_path / "deep" / "one.png")
    pixels = imread(one)
    assert np.array_equal(pixels, imread(draw(heatmap, tmp_path / "again.png")))
    other = imread(draw(Heatmap.of(make_report(), "exact", REGION), tmp_path / "exact.png"))
    assert pixels.shape == other.shape and not np.array_equal(pixels, other)
    drawn = {tuple(color) for color in pixels[..., :3].reshape(-1, 3)}
    (panel, _) = make_figure(heatmap).axes
    for color in panel.images[0].get_array().reshape(-1, 3):
        assert tuple((np.uint8(255 * color) / 255).astype(np.float32)) in drawn
    with pytest.raises(ValueError, match="no scale in common: draw two pictures"):
        draw([heatmap, Heatmap.of(make_report(), "edit_distance")], tmp_path / "mixed.png")
    with pytest.raises(ValueError, match="no cells to draw"):
        draw(Heatmap.of(Report("empty", {}, [])), tmp_path / "empty.png")
    with pytest.raises(ValueError, match="the report of empty has no edit distances"):
        Heatmap.of(Report("empty", {}, []), "edit_distance")


def test_colour_shows_the_rate_and_brightness_the_count(tmp_path):
    """Pixels in the middle of cells, read back from an image of the axes alone."""
    from matplotlib.figure import Figure

    from hf_alpha.evaluation.heatmap import EMPTY, _colors, _draw_panel

    axis = Figure().subplots()
    _draw_panel(axis, Heatmap.of(make_report()), range(1, 4), range(1, 6), _colors((0, 1)), 3)
    image = axis.images[0].get_array()
    assert tuple(image[0, 1]) == EMPTY
    red, _, blue = image[0, 2]
    assert red > blue, "a rate of 0"
    red, _, blue = image[1, 2]
    assert blue > red, "a rate of 1"
    assert image[0, 0].sum() > image[0, 2].sum(), "three samples against one"


def test_small_edit_distances_are_blue(tmp_path):
    from matplotlib.figure import Figure

    from hf_alpha.evaluation.heatmap import OUTSIDE_GRAY, _colors, _draw_panel, _worst

    heatmap = Heatmap.of(make_report(), "edit_distance")
    assert heatmap.overall == 15 / 7 and _worst(heatmap.cells) == 3
    assert _worst(heatmap.cells[:1]) == 1, "two thirds of a token is no disaster"
    axis = Figure().subplots()
    colors = _colors((0, 3), reverse=True)
    _draw_panel(axis, heatmap, range(1, 4), range(1, 6), colors, 3)
    assert axis.get_title() == "vanilla: 2.14 overall"
    image = axis.images[0].get_array()
    red, _, blue = image[0, 2]
    assert red > blue, "a distance of 3"
    red, _, blue = image[1, 2]
    assert blue > red, "a distance of 0"
    assert tuple(image[2, 4]) == OUTSIDE_GRAY
    assert draw(heatmap, tmp_path / "distance.png").is_file()
