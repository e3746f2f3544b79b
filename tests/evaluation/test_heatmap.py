import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from hf_alpha.evaluation import Heatmap, Record, Report, draw
from hf_alpha.evaluation.curves import draw_curves
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


def boxes_of(axis: Axes) -> dict[tuple[int, int], tuple[tuple[float, ...], float]]:
    """(symbols, size) -> colour and width of the box there."""
    (boxes,) = axis.collections
    found = {}
    for path, color in zip(boxes.get_paths(), boxes.get_facecolors(), strict=True):
        box = path.get_extents()
        assert box.width == pytest.approx(box.height)
        place = round((box.y0 + box.y1) / 2), round((box.x0 + box.x1) / 2)
        found[place] = tuple(color[:3]), round(box.width, 6)
    return found


@pytest.mark.parametrize("metric", ["correct", "exact", "timeout", "edit_distance"])
def test_numbers_are_those_of_the_report(metric):
    report = make_report()
    heatmap = Heatmap.of(report, metric, REGION)
    assert heatmap.overall == report.overall.rate(metric)
    assert {(cell.num_symbols, cell.size) for cell in heatmap.cells} == set(report.by_cell)
    for cell in heatmap.cells:
        rates = report.by_cell[cell.num_symbols, cell.size]
        assert (cell.rate, cell.count) == (rates.rate(metric), rates.count)
        assert cell.outside == (cell.num_symbols == 3)


def test_picture_says_what_it_shows():
    """Panels in their order with their cells' colours, the training data's box, labels, notes."""
    correct, exact = (Heatmap.of(make_report(), name, REGION) for name in ("correct", "exact"))
    figure = make_figure([correct, exact])
    *panels, bar = figure.axes
    assert [axis.get_title() for axis in panels] == [
        "vanilla: 42.9 % overall",
        "vanilla: 28.6 % overall",
    ]
    assert panels[0].get_ylabel() == "number of symbols"
    assert {axis.get_xlabel() for axis in panels} == {"length of the problem (tokens)"}
    assert bar.get_ylabel() == "correct answers, exact answers" and bar.get_ylim() == (0, 1)
    one, two = map(boxes_of, panels)
    assert one.keys() == two.keys() == {(1, 1), (1, 3), (2, 3)}
    different = [cell for cell in one if one[cell] != two[cell]]
    assert different == [(1, 1)], "of one symbol and token, two of three are correct, one exact"
    for axis in panels:
        assert (axis.get_xlim(), axis.get_ylim()) == ((0.5, 5.5), (0.5, 3.5))
        hatched, *box = axis.patches
        assert hatched.get_hatch() and hatched.get_bbox().bounds == (4.5, 2.5, 1, 1)
        assert [patch.get_bbox().bounds for patch in box] == [(0.5, 0.5, 3, 2)] * 2
    notes = figure.get_supxlabel()
    assert "white: no samples; hatched: outside" in notes and "dashed frame: training" in notes
    alone = make_figure([Heatmap.of(Report("vanilla", {}, make_report().records[:4]))])
    assert "dashed" not in alone.get_supxlabel() and "hatched" not in alone.get_supxlabel()
    panels = make_figure([correct] * 5).axes[:5]
    places = [panel.get_subplotspec() for panel in panels]
    assert [(place.rowspan.start, place.colspan.start) for place in places[2:]] == [
        (0, 2), (0, 3), (1, 0),
    ]  # fmt: skip
    assert [bool(panel.get_xlabel()) for panel in panels] == [False, True, True, True, True]


def test_picture_is_written(tmp_path):
    heatmap = Heatmap.of(make_report(), training_region=REGION)
    one = draw([heatmap], tmp_path / "deep" / "one.png")
    pixels = imread(one)
    other = imread(draw([Heatmap.of(make_report(), "exact", REGION)], tmp_path / "exact.png"))
    assert pixels.shape == other.shape and not np.array_equal(pixels, other)
    drawn = {tuple(color) for color in pixels[..., :3].reshape(-1, 3)}
    (panel, _) = make_figure([heatmap]).axes
    for color, _ in boxes_of(panel).values():
        assert tuple((np.uint8(255 * np.array(color)) / 255).astype(np.float32)) in drawn
    with pytest.raises(ValueError, match="no scale in common: draw two pictures"):
        draw([heatmap, Heatmap.of(make_report(), "edit_distance")], tmp_path / "mixed.png")
    with pytest.raises(ValueError, match="no cells to draw"):
        draw([Heatmap.of(Report("empty", {}, []))], tmp_path / "empty.png")
    with pytest.raises(ValueError, match="the report of empty has no edit distances"):
        Heatmap.of(Report("empty", {}, []), "edit_distance")


def test_dollars_are_dollars(tmp_path):
    """Two of them would begin a formula, which would be an error here."""
    report = Report(r"$\nothing{$", {}, make_report().records)
    drawn = draw([Heatmap.of(report)], tmp_path / "heatmap.png")
    texts = {"title": report.model, "caption": report.model}
    assert drawn.is_file() and draw_curves([report], tmp_path / "curves.png", **texts).is_file()
