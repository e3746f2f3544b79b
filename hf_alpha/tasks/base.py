"""What every task knows: its tokens, how to read a problem and check an answer; and to draw one."""

import logging
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from hf_alpha import wings
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import NAME, FormulaError, Grammar, unquoted

from .decision import Decision
from .explanation import Explanation
from .problem import Problem

logger = logging.getLogger(__name__)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
IDENTIFIER = re.compile(NAME)  # what the tokenizer takes for a name


NUM_BEAMS = 3
"""Of the papers."""
EQUIVALENCES = ("commuting", "renaming")
"""What may differ between problems that count as one, the default first; see `Task.canonical`."""


class Verdict(StrEnum):
    """The outcome of checking one answer.

    Examples:
        >>> TextTask({"variable": "[a-z]"}).check("swap x y", "y x", target="y x").is_correct
        True
    """

    exact = "exact"
    correct = "correct"
    wrong = "wrong"
    malformed = "malformed"
    timeout = "timeout"
    undecided = "undecided"

    @property
    def is_correct(self) -> bool:
        """Whether the answer solves the problem."""
        return self in (Verdict.exact, Verdict.correct)


class Task(ABC):
    """A kind of problem whose symbols may be renamed without changing what is asked.

    Problems and answers are strings. Problems are trusted: one that cannot be read is a
    `FormulaError`. Answers come from models: whatever they are, checking gives a verdict. Each
    method that takes a problem takes what `read` made of it, too, and does not read it again.

    A task that can draw problems and find their answers is a `DrawnTask`.

    Everything that the tools know of a task is said by its class: a task of one's own is a subclass
    in one file, which sets at least the attributes without a default and has the abstract methods.
    It is made without arguments. `hf_alpha.tasks.registry` says how the tools find it.

    Attributes:
        name: what a task is called. `get_task` finds a built-in, registered or installed one by it.
        grammar: the notation of problems; None for plain sequences of symbols.
        commutative: the grammar's binary operators whose operands may change places.
        base_tokens: tokens whose identity matters, without padding, start and end.
        symbol_classes: class of interchangeable symbols -> how many the vocabulary starts with.
        facts: whole numbers known of a problem beside its symbols and size, as columns of the data.
        measure: the number that a report leads with: "correct", or "edit_distance".
        num_beams: number of beams of the papers; 1 is greedy search.
        random_name: what the row of random answers is called in a report.
        random_note: what a card says of them.
        example: one of them, in spaced prefix notation.
        samples: more of them, in any notation, to be clicked on a page.
        data: what a dataset card says of problems and answers.
        empty_answer: what is shown in place of an answer without a token.
        released_model: name of the released model that `hf-alpha solve` takes unless told
            otherwise; None where there is none.
        decides: there is a solver behind `decide`, which needs no model.
        held_out: whether equal up to renaming and commuting counts as equal, and tests keep clear
            of training data. False where there are too few problems for that.
        settings: what verdicts depend on beside the task's name, a mapping; or a property.

    Examples:
        >>> TextTask({"variable": "[a-z]"}).check("swap x y", "y  x", target="y x")
        <Verdict.wrong: 'wrong'>
    """

    name: ClassVar[str]
    grammar: ClassVar[Grammar | None]
    commutative: ClassVar[frozenset[str]] = frozenset()
    base_tokens: ClassVar[tuple[str, ...]]
    symbol_classes: ClassVar[Mapping[str, int]]
    facts: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "correct"
    num_beams: ClassVar[int] = NUM_BEAMS
    random_name: ClassVar[str] = "random answer"
    random_note: ClassVar[str] = "The random answer is well-formed and knows nothing else."
    problems: ClassVar[str] = "formulas"
    example: ClassVar[str]
    samples: ClassVar[tuple[str, ...]] = ()
    data: ClassVar[str] = "`problem` is what is asked, `answer` a right answer"
    empty_answer: ClassVar[str] = "(empty)"
    released_model: ClassVar[str | None] = None
    decides: ClassVar[bool] = False
    held_out: ClassVar[bool] = True
    settings: Any = MappingProxyType({})

    def configured(self, **settings: Any) -> "Task":
        """Return the task with what a recipe says of it: `symbols`, `check` and the like.

        Raises:
            ValueError: the task has no such settings.
        """
        if settings:
            raise ValueError(f"task {self.name!r} has no settings {', '.join(settings)}")
        return self

    def facts_of(self, tokens: Sequence[str], answer: str | None = None) -> dict[str, int | None]:
        """Return `facts` of a problem; `answer` is one that a `DrawnTask` found by default."""
        return {}

    def distance(self, problem: str, answer: str | None, target: str | None = None) -> int | None:
        """Return how far an answer is from the right one; None where that has no sense."""
        return None

    def measured(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        """Return measures of all answers together, by name; none by default.

        Args:
            references: the targets, as many.
        """
        return {}

    def prepare(self, tokenizer: Any) -> None:
        """Give a tokenizer that was loaded what its files cannot hold; nothing by default."""
        return None

    def label(self, verdict: Verdict) -> str:
        """Return what people read of a verdict: `answer`, of a text's that nothing could judge."""
        is_text = self.grammar is None
        return "answer" if is_text and verdict is Verdict.undecided else verdict.value

    def answer_line(self, label: str, answer: str) -> str:
        """Return an answer's lines for the screen: the first after its label, others indented."""
        return f"  {label:<10} " + (answer or self.empty_answer).replace("\n", f"\n{'':13}")

    def answer_mask(self, tokenizer: Any) -> Callable[[Any], Any] | None:
        """Return which tokens may come next in answers; None, as by default, for all of them.

        Returns:
            A function from the tokens so far (R, T), without the start token, to a mask over the
            vocabulary (R, V); tensors of torch.
        """
        return None

    @property
    def has_check(self) -> bool:
        """Whether an answer can be judged where the data has no target."""
        return True

    @property
    def model_grammar(self) -> Grammar | None:
        """Grammar by which tokenizers of the task's models read problems; by default the task's."""
        return self.grammar

    @abstractmethod
    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Draw a well-formed answer at random: the baseline that a model has to beat."""

    @abstractmethod
    def check(
        self,
        problem: str,
        answer: str,
        target: str | None = None,
        notation: str | None = None,
        solver: str = "auto",
        timeout: float = 10.0,
    ) -> Verdict:
        """Judge an answer; `exact` needs a target, `notation` is how the answer is written."""

    def explain(self, problem: str, answer: str) -> Explanation:
        """Say why an answer is right or wrong; by default in the words of the verdict.

        Args:
            problem: in any notation.
            answer: any string, in a notation that is detected.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        return Explanation((f"The check says {self.check(problem, answer)}.",))

    def has_answer(self, problem: str) -> bool | None:
        """Say whether any answer is right; None, as by default, where nothing proves either.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        return None

    def decide(self, problem: str, seconds: float = 10.0) -> Decision:
        """Say what a solver alone makes of a problem; see `decides`.

        Args:
            problem: in any notation.
            seconds: after which the solver gives up.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        return Decision("no solver", reason=f"task {self.name!r} has no solver")

    def decide_all(self, problems: Sequence[str], seconds: float = 10.0) -> Iterator[Decision]:
        """Yield what `decide` says of problems, each of which has so many seconds."""
        return (self.decide(problem, seconds) for problem in problems)

    def read(self, problem: str, notation: str | None = None) -> Problem:
        """Read a problem, once for all that is done with it; one that was read stays as it is.

        Args:
            problem: a text, or a `Problem`.
            notation: how the text is written; detected by default.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        if isinstance(problem, Problem):
            return problem
        if self.grammar is None or type(self).parse is not Task.parse:  # it has a way of its own
            tokens = self.parse(problem, notation)
            return Problem(" ".join(tokens), problem, tokens, self.symbols_in(tokens))
        return _read_formula(type(self), problem, notation)

    def parse(self, problem: str, notation: str | None = None) -> list[str]:
        """Return the problem's canonical prefix tokens; a task without a grammar overrides it.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        if isinstance(problem, Problem):
            return list(problem.tokens)
        assert self.grammar is not None
        return self.grammar.parse(problem, notation)

    def symbols_of(self, problem: str) -> list[str]:
        """Return the problem's distinct symbols in order of first occurrence."""
        return list(self.read(problem).symbols)

    def symbols_in(self, tokens: Sequence[str]) -> list[str]:
        """Return the distinct symbols of canonical tokens in order of first occurrence."""
        fixed = _fixed_tokens(type(self))
        return [token for token in dict.fromkeys(tokens) if token not in fixed]

    def needed_symbols(self, problems: Sequence[str]) -> int | Mapping[str, int]:
        """Return the most symbols of a problem; by class where that is known."""
        return max((len(self.read(problem).symbols) for problem in problems), default=0)

    def canonical(self, problem: str, equivalence: str = EQUIVALENCES[0]) -> str:
        """Return the canonical form of a problem: one way to write all that are equivalent to it.

        Args:
            problem: a problem in any notation.
            equivalence: "commuting": up to renaming, and operands of the task's `commutative`
                operators may change places (not where brackets are: `(a & b) & c` and
                `a & (b & c)` differ). "renaming": up to renaming only, as in the papers.

        Returns:
            The problem with operands sorted, unless for "renaming", and then symbols renamed in
            order of first occurrence. Problems with equal forms are equivalent. Equivalent problems
            have equal forms, for "renaming" always, for "commuting" with exceptions that take
            formulas made for it; `hf_alpha.logic.commuting` has the order and says when.

        Raises:
            FormulaError: if the problem cannot be read.
            ValueError: if the equivalence is unknown.
        """
        return self.canonical_form(self.read(problem).tokens, equivalence)

    def canonical_form(self, tokens: Sequence[str], equivalence: str = EQUIVALENCES[0]) -> str:
        """Return the canonical form of a problem given as canonical tokens; see `canonical`."""
        check_known("equivalence", equivalence, EQUIVALENCES)
        if equivalence == "commuting" and not self.commutative.isdisjoint(tokens):
            tokens = wings.wing("commuting").in_order(tokens, type(self))
        symbols = self.symbols_in(tokens)
        names = dict(zip(symbols, self.default_symbols(len(symbols)), strict=True))
        return self.write([names.get(token, token) for token in tokens])

    @staticmethod
    def write(tokens: Sequence[str]) -> str:
        """Join tokens: without spaces if every token is one character, else with them."""
        return ("" if all(len(token) == 1 for token in tokens) else " ").join(tokens)

    @staticmethod
    def rename(text: str, mapping: Mapping[str, str]) -> str:
        """Rename the symbols of a problem or an answer; symbols not in `mapping` stay.

        `words_of` says what counts as a name. A compact text that receives a longer name becomes a
        spaced one.
        """
        if words_of(text, mapping) is None:
            return Task.write([mapping.get(token, token) for token in text.strip()])

        def renamed(match: re.Match[str]) -> str:
            name = match.group()
            return mapping.get(name) or mapping.get(unquoted(name), name)

        return IDENTIFIER.sub(renamed, text)

    def default_symbols(self, count: int) -> list[str]:
        """Return the first `count` names: a to z, A to Z, then s52, s53 and so on.

        Letters that mean something else to the grammar are left out.
        """
        letters = _letters(type(self))
        return [*letters[:count], *(f"s{i}" for i in range(len(letters), count))]


def words_of(text: str, names: Container[str]) -> list[str] | None:
    """Return the words of a text; None if it is compact and each letter stands for itself.

    It is if it has no whitespace and no word that is one of the `names` and longer than a letter.
    """
    words = IDENTIFIER.findall(text)
    spaced = len(text.split()) > 1 or any(len(word) > 1 and word in names for word in words)
    return words if spaced else None


WARNED: set[str] = set()
"""What was warned of in this process."""


def warn_once(message: str, about: str | None = None) -> None:
    """Write a warning that is not written again, nor another one about the same thing."""
    if (subject := about or message) not in WARNED:
        WARNED.add(subject)
        logger.warning(message)


class DrawnTask(Task):
    """A task that draws its problems and finds their answers.

    Attributes:
        targets: way to compute a target -> what a dataset card says of it; the first is the
            default.
        sizes: the papers' smallest and largest size.
        alpha: the papers' departure from uniform sizes; see `hf_alpha.logic.drawing.generate`.
        constant_priority: the papers' weight of the leaves 0 and 1 against a symbol's 1.
        hard: a dataset card's text on hard problems; empty for a task that has none.
        hardest: the largest `hardness` that `is_hard` knows.
    """

    targets: ClassVar[Mapping[str, str]]
    sizes: ClassVar[tuple[int, int]] = (1, 35)
    alpha: ClassVar[float] = 0.0
    constant_priority: ClassVar[float] = 0.0
    hard: ClassVar[str] = ""
    hardest: ClassVar[int] = 1

    @abstractmethod
    def is_feasible(
        self, size: int, num_symbols: int, exactly: bool = False, constant_priority: float = 0.0
    ) -> bool:
        """Say whether `draw` can give something; `exactly`: all symbols have to occur."""

    @abstractmethod
    def draw(
        self,
        rng: random.Random,
        size: int,
        symbols: Sequence[str],
        exactly: bool = False,
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Draw a problem of exactly `size` canonical tokens over the symbols.

        Args:
            rng: source of randomness; the result is a function of its state.
            size: number of tokens.
            exactly: every symbol occurs.
            constant_priority: weight of the leaves 0 and 1 against a symbol's 1.

        Raises:
            ValueError: if there is no such problem.
        """

    @abstractmethod
    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str | None:
        """Compute an answer to a problem given as canonical tokens; see `target`."""

    def vary(
        self,
        rng: random.Random,
        tokens: Sequence[str],
        symbols: Sequence[str],
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Draw a part of a problem anew, at its size: a step of a walk.

        Steps of this kind, of which those to a problem that is not wanted are not taken, are a
        Metropolis-Hastings walk: in the long run it visits each wanted problem as often as `draw`
        gives it.

        Args:
            rng: source of randomness; the result is a function of its state.
            tokens: a problem that `draw` may give.
            constant_priority: weight of the leaves 0 and 1 against a symbol's 1.

        Returns:
            Another such problem of the same size; the same one where a step led to none.

        Raises:
            NotImplementedError: the task has no walk; one without hard problems needs none.
        """
        raise NotImplementedError(f"task {self.name!r} has no `vary`, which a walk needs")

    def is_hard(self, tokens: Sequence[str], hardness: int = 1) -> bool:
        """Say of a problem that has an answer whether it is hard; cheaper than finding one.

        Of those that are hard with a larger `hardness`, each is hard with a smaller one.

        Args:
            hardness: from 1 to `hardest`; the larger, the fewer problems are hard.
        """
        return False

    def sample(
        self, rng: random.Random, size: int, symbols: Sequence[str], constant_priority: float = 0.0
    ) -> str:
        """Draw a problem of exactly `size` tokens; `draw` describes the arguments."""
        return self.write(self.draw(rng, size, symbols, constant_priority=constant_priority))

    def target(self, problem: str, method: str | None = None) -> str | None:
        """Compute an answer with one of `targets`; None if there is none.

        Raises:
            FormulaError: if the problem cannot be read.
            ValueError: if the method is unknown.
        """
        return self.target_of(self.read(problem).tokens, method)


@lru_cache(maxsize=4096)
def _read_formula(task: type[Task], problem: str, notation: str | None) -> Problem:
    """Read a formula once for the many answers that are checked against it one by one."""
    grammar = task.grammar
    assert grammar is not None
    written = grammar.read(problem, notation)
    tokens, too_long = written, None
    try:
        tokens = grammar.rewritten(written)
    except FormulaError as error:
        too_long = str(error)
    text, symbols = grammar.format(tokens), task().symbols_in(tokens)
    return Problem(text, problem, tokens, symbols, written, too_long)


@cache
def _letters(task: type[Task]) -> tuple[str, ...]:
    grammar = task.grammar
    return tuple(x for x in LETTERS if grammar is None or grammar.is_name(x))


@cache
def _fixed_tokens(task: type[Task]) -> frozenset[str]:
    grammar = task.grammar
    return frozenset(grammar.arities if grammar else ())


def __getattr__(name: str) -> Any:
    if name == "FormulaTask":
        return wings.moved(name, __name__, "hf_alpha.logic.formula_task")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
