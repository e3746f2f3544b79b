"""What pictures have in common: their colours, and that texts in them are no formulas."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by the colour-blind too (Okabe and Ito)."""


def take_literally(figure: "Figure") -> None:
    """Have texts drawn as they are: what is between two `$` is a formula in ticks only."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if text.get_text() and "\\mathdefault" not in text.get_text():
            text.set_parse_math(False)
