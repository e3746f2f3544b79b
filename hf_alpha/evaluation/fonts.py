"""Fonts for texts of pictures that the usual one has no signs for, such as Chinese."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make_legible(figure: "Figure") -> None:
    """Have each text drawn by fonts that have its signs; what is between two `$` is text too.

    Matplotlib warns of signs that no font here has.
    """
    from matplotlib import rcParams
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        words = text.get_text()
        if not words or "\\mathdefault" in words:  # a tick's
            continue
        text.set_parse_math(False)
        fonts = {sign: _font_of(sign) for sign in words if sign != "\n"}
        text.set_fontfamily(
            [*rcParams["font.family"], *filter(None, dict.fromkeys(fonts.values()))]
        )


@cache
def _font_of(sign: str) -> str | None:
    """Return a font that has a sign; "" for the usual one."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    if ord(sign) in _signs(findfont(FontProperties())):
        return ""
    # Those that come with Matplotlib are for formulas, or draw boxes.
    installed = [e for e in fontManager.ttflist if not e.fname.startswith(get_data_path())]
    return next((entry.name for entry in installed if ord(sign) in _signs(entry.fname)), None)


@cache
def _signs(file: str) -> frozenset[int]:
    """Return the code points that a font has."""
    from matplotlib.font_manager import get_font

    return frozenset(get_font(file).get_charmap())
