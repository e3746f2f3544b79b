"""Propositional satisfiability: a formula is answered by a partial assignment."""

from .task import PropositionalTask

__all__ = ["PropositionalTask"]
