"""Fonts for texts of pictures that the usual one has no signs for, such as Chinese."""

import logging
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)


def make_legible(figure: "Figure") -> None:
    """Have each text drawn by fonts that have its signs, and write code points where none has.

    What is between two `$` is text too, and no formula.
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
        text.set_text(readable(words))


def readable(text: str) -> str:
    r"""Return a text with code points, such as `\u4e2d`, for signs that no font here has."""
    lost = {sign for sign in text if sign != "\n" and _font_of(sign) is None}
    if lost:
        logger.warning(
            "no font that is installed here has %s: the picture shows code points; install a font, "
            "such as fonts-noto-cjk", " ".join(sorted(lost)),
        )  # fmt: skip
    return "".join(ascii(sign)[1:-1] if sign in lost else sign for sign in text)


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


__all__ = ["make_legible", "readable"]
