"""Texts of pictures in any script, and with signs that mean something to Matplotlib."""

import warnings
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager

from hf_alpha.evaluation import fonts
from hf_alpha.evaluation.curves import draw_curves
from hf_alpha.evaluation.heatmap import Cell, Heatmap, draw, make_figure
from hf_alpha.evaluation.report import Record, Report

CELLS = (Cell(2, 4, 0.5, 3, False),)


@pytest.fixture
def installed(monkeypatch):
    """The fonts that are installed: none, unless a test adds one."""
    from matplotlib import get_data_path

    own = [entry for entry in fontManager.ttflist if entry.fname.startswith(get_data_path())]
    monkeypatch.setattr(fontManager, "ttflist", own)
    fonts._font_of.cache_clear()
    yield own
    fonts._font_of.cache_clear()


def make_font(path: Path, signs: str) -> Path:
    """A font in which each of these signs is a square."""
    names = [".notdef", *(f"sign{number}" for number in range(len(signs)))]
    pen = TTGlyphPen(None)
    for step, corner in enumerate([(0, 0), (0, 700), (700, 700), (700, 0)]):
        (pen.lineTo if step else pen.moveTo)(corner)
    pen.closePath()
    square = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(dict(zip(map(ord, signs), names[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (800, 50)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return path


def test_a_font_that_has_the_signs_draws_them(installed, tmp_path):
    fontManager.addfont(make_font(tmp_path / "squares.ttf", "\u4e2d\u6587"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as: a glyph is missing
        figure = make_figure([Heatmap("\u4e2d\u6587 a", "correct", 0.5, CELLS)])
        figure.savefig(tmp_path / "picture.png")
    assert figure.axes[0].get_title() == "\u4e2d\u6587 a: 50.0 % overall"


def test_dollars_are_dollars(installed, tmp_path):
    """Two of them would begin a formula, which would be an error here."""
    name = r"$\nothing{$"
    drawn = draw([Heatmap(name, "correct", 0.5, CELLS)], tmp_path / "heatmap.png")
    report = Report(name, {}, [Record(0, "a", "a1", 1, 1, ("a1",), ("exact",), 0)])
    curves = draw_curves([report], tmp_path / "curves.png", title=name, caption=name)
    assert drawn.is_file() and curves.is_file()
