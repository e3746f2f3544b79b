"""Propositional satisfiability: a formula is answered by a partial assignment that implies it."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hf_alpha.logic import sat, truth_table
from hf_alpha.logic.cores import Clock, small_core
from hf_alpha.logic.formula_task import FormulaTask, solver_target
from hf_alpha.logic.sampling import Sampler
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks.base import Verdict
from hf_alpha.tasks.decision import Decision
from hf_alpha.tasks.explanation import Explanation
from hf_alpha.tasks.solver_process import TIMEOUT, SolverProcess

from . import aiger_worker
from .explain import explain
from .notation import PROPOSITIONAL, Assignment, read_assignment, write_assignment
from .sampler import FormulaSampler

SOLVER = "python-sat"
SOLVERS = ("auto", "sat")


class PropositionalTask(FormulaTask):
    """Find a partial assignment all of whose completions satisfy a propositional formula.

    An answer is a sequence of symbols, each followed by its value: `a1b0`, or `request 1 grant 0`
    with long names. The empty answer says that the formula is a tautology.
    """

    name: ClassVar[str] = "propositional"
    grammar: ClassVar[Grammar] = PROPOSITIONAL
    commutative: ClassVar[frozenset[str]] = frozenset("&|=^")
    sampler: ClassVar[type[Sampler]] = FormulaSampler
    base_tokens: ClassVar[tuple[str, ...]] = ("0", "1", "!", "&", "|", "=", "^")
    symbol_classes: ClassVar[Mapping[str, int]] = {"proposition": 5}
    targets: ClassVar[Mapping[str, str]] = {
        "equivariant": "The answer with the fewest literals; among those, the one whose symbols "
        "occur first in the formula, then true before false; written in order of first occurrence. "
        "Of a formula with more than 16 symbols, an answer of which no literal can be left out. "
        "Renaming a formula renames its answer.",
        "papers": "A model found by py-aiger-sat, reduced to an unsat core of the negated formula, "
        "written in order of first occurrence. It depends on how the symbols are spelt.",
    }
    data: ClassVar[str] = (
        "`problem` is a satisfiable formula in prefix notation (`!` not, `&` and, `|` or, `=` iff, "
        "`^` xor), `answer` a partial assignment all of whose completions satisfy it (`a1b0`; "
        "empty for a tautology)"
    )
    random_name: ClassVar[str] = "random assignment"
    random_note: ClassVar[str] = "The random assignment gives every symbol of a formula a value."
    example: ClassVar[str] = "& request ! grant"
    samples: ClassVar[tuple[str, ...]] = (
        "request & !(grant | idle)",
        "(rain -> wet) & (wet -> slippery) & rain",
        "a ^ b ^ c",
        "(a | b) & (!a | c) & !(b & c)",
        "a | !a",
        "a & !a",
    )
    empty_answer: ClassVar[str] = "(empty: any assignment)"
    released_model: ClassVar[str | None] = "propositional-relational"
    decides: ClassVar[bool] = True
    alpha: ClassVar[float] = 0.095

    def has_answer(self, problem: str) -> bool | None:
        """Say whether a formula is satisfiable: by truth table, beyond 16 symbols by SAT.

        None if that takes too long.
        """
        tokens = self.read(problem).tokens
        table = truth_table.table_of(tokens, self.symbols_in(tokens))
        return sat.is_satisfiable(tokens, Clock(TIMEOUT)) if table is None else table != 0

    def decide(self, problem: str, seconds: float = 10.0) -> Decision:
        """Find an assignment of which nothing can be left out, or prove that there is none."""
        problem, clock = self.read(problem), Clock(seconds)
        try:
            implicant = sat.prime_implicant(problem.tokens, problem.symbols, clock)
        except sat.GaveUpError:
            return Decision(SOLVER, reason=f"the solver was not done within {seconds:g} s")
        if implicant is not None:
            return Decision(SOLVER, write_assignment(implicant))
        written = problem.written or problem.tokens
        core = small_core(
            written, self.grammar, lambda tokens: sat.is_satisfiable(tokens) is False, clock
        )
        return Decision(SOLVER, unsatisfiable=True, core=core)

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str | None:
        """Compute an answer to a formula given as canonical tokens, None if there is none.

        A formula on which py-aiger-sat fails, or spends more than 10 seconds, gets no target but a
        warning in the log; near that limit, whether it gets one depends on the machine.

        Raises:
            ValueError: if the method is unknown.
            MissingSolverError: if the method is `papers` and py-aiger-sat is not installed.
        """
        check_known("targets", method, self.targets)
        symbols = self.symbols_in(tokens)
        if method == "papers":
            core = solver_target(lambda: _aiger.call("reduced_model", TIMEOUT, tokens), tokens)
            return core if core is None else write_assignment(_ordered(core, symbols))
        table = truth_table.table_of(tokens, symbols)
        if table is not None:
            cube = truth_table.minimal_cube(table, len(symbols))
            return cube if cube is None else write_assignment({symbols[i]: x for i, x in cube})
        try:
            implicant = sat.prime_implicant(tokens, symbols)
        except sat.GaveUpError:
            return None
        return None if implicant is None else write_assignment(implicant)

    def answer_mask(self, tokenizer: Any) -> Callable[[Any], Any]:
        from hf_alpha.logic.answer_masks import AssignmentMask

        return AssignmentMask(tokenizer)

    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Draw a value for every symbol of the formula."""
        return write_assignment({s: rng.random() < 0.5 for s in self.read(problem).symbols})

    def check(
        self,
        problem: str,
        answer: str,
        target: str | None = None,
        notation: str | None = None,
        solver: str = "auto",
        timeout: float = 10.0,
    ) -> Verdict:
        """Judge an answer.

        `exact` is equality with the target as a sequence of symbols and values, so order matters,
        as in the papers; another way to write the same sequence is still exact. `correct` means
        that every completion of the answer satisfies the formula. Values for symbols that the
        formula lacks are allowed and change nothing. A symbol that occurs twice makes an answer
        malformed, even with the same value both times.

        Args:
            notation: how the answer is written: "compact", "prefix" (spaced), "infix" (`a & !b`,
                `a=1, b=0`), or None to detect it. An answer that reads as `a1b0` or `a 1 b 0` is
                never taken for infix.
            solver: "auto" (a truth table where at most 16 symbols have no value, else python-sat)
                or "sat" (python-sat).
            timeout: seconds for python-sat, after which the verdict is `timeout`.

        Raises:
            FormulaError: if the problem cannot be read.
            ValueError: if the solver or the notation is unknown.
        """
        check_known("solver", solver, SOLVERS)
        problem = self.read(problem)
        assignment = read_assignment(answer, notation)
        if assignment is None:
            return Verdict.malformed
        if target is not None and _same_sequence(assignment, target):
            return Verdict.exact
        free = [symbol for symbol in problem.symbols if symbol not in assignment]
        if solver == "auto" and len(free) <= truth_table.MAX_VARIABLES:
            table = truth_table.table_of(problem.tokens, free, assignment)
            implied: bool | None = table == truth_table.full_table(len(free))
        else:
            implied = sat.implies(problem.tokens, assignment, Clock(timeout))
        if implied is None:
            return Verdict.timeout
        return Verdict.correct if implied else Verdict.wrong

    def explain(self, problem: str, answer: str) -> Explanation:
        """Explain an answer by the value of each subformula, and under which completions."""
        return explain(self.read(problem), answer)


def _same_sequence(assignment: Assignment, target: str) -> bool:
    right = read_assignment(target)
    return right is not None and list(assignment.items()) == list(right.items())


def _ordered(values: Assignment, symbols: Sequence[str]) -> Assignment:
    return {symbol: values[symbol] for symbol in symbols if symbol in values}


_aiger = SolverProcess(Path(aiger_worker.__file__))
"""Which model and which core it finds depends on Python's string hashing (py-aiger iterates over
sets), which is fixed in a process of the solver: equal formulas get equal results."""
