"""Copying: a string is answered by itself."""

from .task import CopyingTask

__all__ = ["CopyingTask"]
