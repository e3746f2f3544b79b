"""Answers that are one name."""

from benchmarks.names.questions import SLOT


def the_name(text: str) -> str | None:
    """Return the slot in a text; None if there is none, or more than one name."""
    slots = set(SLOT.findall(text))
    return slots.pop() if len(slots) == 1 else None
