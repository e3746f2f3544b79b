"""Linear temporal logic: a formula is answered by a symbolic lasso trace that satisfies it."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hf_alpha.logic import truth_table
from hf_alpha.logic.formula_task import FormulaTask, solver_target
from hf_alpha.logic.sampling import Sampler
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks.base import Verdict, warn_once
from hf_alpha.tasks.decision import Decision
from hf_alpha.tasks.explanation import Explanation
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError

from . import lasso
from .bounded_worker import search
from .explain import explain
from .grammar import LTL, LTL_WITHOUT_OR, for_solvers
from .sampler import LtlSampler
from .trace import Trace, cube_step, read_trace, same_trace, write_trace
from .witness import MAX_STEPS, shortest_witness

SOLVERS = ("auto", "lasso", "spot")


class LTLTask(FormulaTask):
    """Find a symbolic trace all of whose words satisfy a formula of linear temporal logic.

    Formulas have not, and, or, next, until and the constants; the other operators of infix and
    Spot's syntax (`F G R W M -> <-> xor`) are rewritten while reading, and for models `|` too,
    which training formulas have not. An answer is a lasso: steps that are Boolean formulas,
    separated by `;`, the last ones in braces and repeated forever: `a;&ab;{b}`, or `request ;
    { grant }` with long names. What a step leaves open is open at every visit anew.
    """

    name: ClassVar[str] = "ltl"
    grammar: ClassVar[Grammar] = LTL
    commutative: ClassVar[frozenset[str]] = frozenset("&|")
    sampler: ClassVar[type[Sampler]] = LtlSampler
    base_tokens: ClassVar[tuple[str, ...]] = ("0", "1", "!", "&", "|", ";", "{", "}", "U", "X")
    symbol_classes: ClassVar[Mapping[str, int]] = {"proposition": 5}
    targets: ClassVar[Mapping[str, str]] = {
        "equivariant": "A trace with as few steps as possible, then with the shortest loop, then "
        "with the fewest literals that can be proved, all found without Spot. Renaming a formula "
        "renames its answer. Formulas that need more than 5 steps are left out.",
        "deepltl": "The accepting run that Spot finds in its default translation of the formula, "
        "simplified, as DeepLTL makes its data. It depends on how the symbols are spelt.",
    }
    data: ClassVar[str] = (
        "`problem` is a satisfiable formula of linear temporal logic in prefix notation (`!` not, "
        "`&` and, `X` next, `U` until), `answer` a symbolic lasso trace all of whose words satisfy "
        "it (`a;&ab;{b}`: steps separated by `;`, those in braces repeated forever), "
        "`witness_length` the fewest steps of any such trace, prefix and loop together"
    )
    facts: ClassVar[tuple[str, ...]] = ("witness_length",)
    random_name: ClassVar[str] = "random step"
    random_note: ClassVar[str] = (
        "The random answer is a single step, repeated forever, with a value for every symbol."
    )
    example: ClassVar[str] = "& request X U ! request grant"
    samples: ClassVar[tuple[str, ...]] = (
        "G(request -> F grant) & F request",
        "!goal U key & F goal",
        "G F red & G F green & G !(red & green)",
        "F G stable & F !stable",
        "a & G(a <-> X !a)",
        "G a & F !a",
    )
    released_model: ClassVar[str | None] = "ltl-relational"
    decides: ClassVar[bool] = True
    sizes: ClassVar[tuple[int, int]] = (10, 35)
    alpha: ClassVar[float] = 0.112
    constant_priority: ClassVar[float] = 1.0
    hard: ClassVar[str] = (
        "To a hard formula no single step, repeated forever, is an answer: its shortest witness "
        "has two steps or more. With a hardness of n it has more than n."
    )
    hardest: ClassVar[int] = MAX_STEPS - 1

    @property
    def model_grammar(self) -> Grammar:
        """The task's grammar, which here rewrites `|` too."""
        return LTL_WITHOUT_OR

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str | None:
        """Compute an answer to a formula given as canonical tokens, None if none is found.

        A formula on which Spot fails, or spends more than 10 seconds, gets no target but a warning
        in the log.

        Raises:
            ValueError: if the method is unknown.
            MissingSolverError: if the method is `deepltl` and Spot is not installed.
        """
        check_known("targets", method, self.targets)
        if method == "deepltl":
            from . import spot

            trace = solver_target(
                lambda: spot.find_trace(tokens, spot.TIMEOUT, options=None), tokens
            )
        else:
            trace = shortest_witness(tokens, self.symbols_in(tokens))
        return None if trace is None else write_trace(trace)

    def facts_of(self, tokens: Sequence[str], answer: str | None = None) -> dict[str, int | None]:
        """Return `witness_length`; None beyond 5 steps."""
        if answer is not None:
            trace = read_trace(answer)
        else:
            trace = shortest_witness(tokens, self.symbols_in(tokens))
        return {"witness_length": None if trace is None else len(trace.steps)}

    def vary(
        self,
        rng: random.Random,
        tokens: Sequence[str],
        symbols: Sequence[str],
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Draw one subformula anew."""
        return LtlSampler(tuple(symbols), constant_priority).vary(rng, tokens)

    def is_hard(self, tokens: Sequence[str], hardness: int = 1) -> bool:
        """Say of a satisfiable formula whether it has no witness of at most `hardness` steps.

        A SAT solver tells it of two steps and more, of one a truth table. Beyond 16 symbols none
        counts as hard.

        Raises:
            ImportError: python-sat is not installed, and `hardness` is more than 1.
        """
        symbols = self.symbols_in(tokens)
        if len(symbols) > truth_table.MAX_VARIABLES:
            return False
        tables = {name: (x, x) for name, x in truth_table.leaf_tables(symbols).items()}
        holds, _ = lasso.shape(1, 0, 1 << len(symbols)).evaluate(tokens, tables)
        return not holds and (hardness == 1 or search(tokens, hardness) is None)

    def has_answer(self, problem: str) -> bool | None:
        """Say whether a formula is satisfiable; None without Spot."""
        from . import spot

        try:
            return spot.is_satisfiable(for_solvers(self.read(problem)))
        except (MissingSolverError, SolverCrashError, TimeoutError):
            return None

    def decide(self, problem: str, seconds: float = 10.0) -> Decision:
        """Find a trace by bounded search, or have Spot prove that there is none."""
        from .decide import decide

        return decide(self.read(problem), seconds)

    def decide_all(self, problems: Sequence[str], seconds: float = 10.0) -> Iterator[Decision]:
        """Yield what `decide` says; bounded search is at the next formulas meanwhile."""
        from .decide import decide_all

        return decide_all([self.read(problem) for problem in problems], seconds)

    def answer_mask(self, tokenizer: Any) -> Callable[[Any], Any]:
        from hf_alpha.logic.answer_masks import TraceMask

        return TraceMask(tokenizer)

    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Draw a trace of a single step with a value for every symbol of the formula."""
        symbols = self.symbols_of(problem)
        return write_trace(Trace((cube_step([(s, rng.random() < 0.5) for s in symbols]),), 0))

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

        `exact` is equality with the target up to the order of the operands of `&` and `|`, as in
        the papers. `correct` means that every word of the trace satisfies the formula. Symbols
        that the formula lacks are allowed and change nothing. A trace with a step that contradicts
        itself has no words at all, and is malformed.

        Args:
            notation: how the answer is written: "compact" (`a;{&ab}`), "prefix" (spaced), "infix"
                (Spot's `a; cycle{a & b}`), or None to detect it.
            solver: "lasso" (the three-valued evaluation of `lasso`, which leaves some questions
                open), "spot", or "auto": Spot for what stays open.
            timeout: seconds for Spot, after which the verdict is `timeout`; if Spot is not
                installed, of which the log warns once, or its process fails, it is `undecided`.

        Raises:
            FormulaError: if the problem cannot be read.
            ValueError: if the solver or the notation is unknown.
        """
        check_known("solver", solver, SOLVERS)
        tokens = for_solvers(self.read(problem))
        trace = read_trace(answer, notation)
        contradictions = set() if trace is None else set(map(lasso.is_contradictory, trace.steps))
        if trace is None or True in contradictions:
            return Verdict.malformed
        if None in contradictions:
            return Verdict.undecided
        if target is not None and _is_target(trace, target):
            return Verdict.exact
        holds = None if solver == "spot" else lasso.decide(tokens, trace)
        if holds is None:
            return (
                Verdict.undecided if solver == "lasso" else _check_with_spot(tokens, trace, timeout)
            )
        return Verdict.correct if holds else Verdict.wrong

    def explain(self, problem: str, answer: str) -> Explanation:
        """Explain an answer by the value of each subformula at each step of the trace."""
        return explain(self.read(problem), answer)


def _is_target(trace: Trace, target: str) -> bool:
    right = read_trace(target)
    return right is not None and same_trace(trace, right)


def _check_with_spot(tokens: Sequence[str], trace: Trace, timeout: float) -> Verdict:
    from . import spot

    try:
        holds = spot.holds(tokens, trace, timeout)
    except TimeoutError:
        return Verdict.timeout
    except MissingSolverError as error:
        warn_once(f"answers stay undecided: {error}")
        return Verdict.undecided
    except SolverCrashError:
        return Verdict.undecided
    return Verdict.correct if holds else Verdict.wrong
