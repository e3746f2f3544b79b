"""Texts for terminals and Markdown: of others, such as those of data, and tables."""

import html
import re
from collections.abc import Sequence

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tabs and line ends, what turns lines around, halves of characters."""
MARKUP = re.compile(r"([\\`*~$|\[\]]|(?<!\w)_|_(?!\w))")
"""What Markdown does not take for text within a line, beside HTML."""


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, as a string of Python has them.

    A terminal obeys escape sequences, and shows a line with marks of direction in another order
    than it has: `\x1b]0;title\x07` becomes letters. Tabs and line ends stay.
    """
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown, which nothing within the text can end."""
    text = printable(text).rstrip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def within_line(text: str) -> str:
    """Return a text for a line of Markdown or a cell of a table, where nothing of it is markup."""
    text = MARKUP.sub(r"\\\1", printable(" ".join(text.split())))
    return html.escape(text, quote=False)


def counted(number: int, noun: str) -> str:
    """Return so many of what a noun says: `1 text`, `2,000 texts`."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, with a line below its first row: two columns of labels, then numbers.

    Labels stand on the left of their columns, numbers on the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        labels = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*labels, *numbers]).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)
