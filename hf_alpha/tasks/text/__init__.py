"""Texts: the user's own pairs, some words of which are names."""

from .task import TextTask

__all__ = ["TextTask"]
