"""Texts: the user's own pairs, some words of which are names."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from numbers import Real
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

from hf_alpha.checkpoints.imported_code import import_functions, import_object, module_source
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText, parts, without_spelling
from hf_alpha.modeling.text_pieces import WORD
from hf_alpha.tasks.base import EQUIVALENCES, WARNED, Task, Verdict, warn_once
from hf_alpha.tasks.explanation import Explanation
from hf_alpha.tasks.problem import Problem
from hf_alpha.tasks.solver_process import SolverCrashError, SolverProcess

WORKER = Path(__file__).with_name("check_worker.py")
SHOWN = 200
"""Letters of a text that an error shows."""


class NameToken(str):
    """A token that is a name, of a class; its `key` is its spelling, or its binding's."""

    symbol_class: str
    key: str

    def __new__(cls, text: str, symbol_class: str, key: str) -> "NameToken":
        self = super().__new__(cls, text)
        self.symbol_class, self.key = symbol_class, key
        return self

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return str(self), self.symbol_class, self.key


class MarkedProblem(Problem, MarkedText):
    """A text that was read and says itself where its names stand."""


class TextTask(Task):
    """Pairs of texts of the user's own; an answer is right if it is the one of the data.

    Args:
        symbols: class -> rule by which its names are found, see `NameRule`.
        check: the user's own check, `package.module:function`: from source, answer and target
            (None if there is none) to yes or no, or a `Verdict` or its name; or to a pair of that
            and words that say why. It is asked where the answer is not the data's, in a process of
            its own, with a time limit.
        measures: name -> `package.module:function` of the user's own, from `predictions` and
            `references` to a number or a mapping of numbers; or an object with such a `compute`.
        ignore_whitespace: answers that differ in whitespace only are the same.

    Raises:
        ValueError: a rule or the path of a function cannot be used.

    Examples:
        >>> task = TextTask({"variable": "[a-z]"})
        >>> task.check("swap x y", "y x", target="y x")
        <Verdict.exact: 'exact'>
    """

    name: ClassVar[str] = "text"
    grammar: ClassVar[None] = None
    base_tokens: ClassVar[tuple[str, ...]] = ()
    symbol_classes: ClassVar[Mapping[str, int]] = {}
    num_beams: ClassVar[int] = 1
    random_name: ClassVar[str] = "copy of the input"
    random_note: ClassVar[str] = "The copy answers every input by itself."
    problems: ClassVar[str] = "texts"
    example: ClassVar[str] = ""
    data: ClassVar[str] = "`problem` is the source, `answer` the target"

    def __init__(
        self,
        symbols: Mapping[str, Any] | None = None,
        check: str | None = None,
        measures: Mapping[str, str] | None = None,
        ignore_whitespace: bool = False,
    ):
        self.finder = NameFinder(symbols or {})
        import_functions(self.finder)
        self.measure_paths = dict(measures or {})
        paths = {"check": check} if check is not None else {}
        for name, path in {**paths, **self.measure_paths}.items():
            if not isinstance(path, str) or path.count(":") != 1 or not all(path.split(":")):
                raise ValueError(f"{name} {path!r}: write package.module:function")
        self.check_path, self.ignore_whitespace = check, ignore_whitespace

    def configured(self, **settings: Any) -> "TextTask":
        return TextTask(**settings)

    def measured(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        """Return the user's own measures.

        Raises:
            ValueError: a function is not there, or returns no numbers.
        """
        numbers: dict[str, float] = {}
        for name, path in self.measure_paths.items():
            function: Any = import_object(path, "measure", "package.module:function")
            function = getattr(function, "compute", function)
            result = function(predictions=predictions, references=references)
            values = result if isinstance(result, Mapping) else {name: result}
            measures = {k: float(v) for k, v in values.items() if isinstance(v, Real)}
            if not measures:
                raise ValueError(f"measure {path}: it returned {result!r}: return numbers")
            numbers |= measures
        return numbers

    def prepare(self, tokenizer: Any) -> None:
        """Give a tokenizer the functions by which names are found."""
        if hasattr(tokenizer, "finder"):
            tokenizer.finder.take_functions(self.finder)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that verdicts depend on: symbols, the check and its code, whitespace."""
        code = module_source(self.check_path) if self.check_path is not None else ""
        return {
            "symbols": self.finder.to_dict(),
            "check": self.check_path,
            "check_code": sha256(code.encode()).hexdigest()[:16],
            "ignore_whitespace": self.ignore_whitespace,
        }

    @property
    def has_check(self) -> bool:
        """Whether there is a check of the user's own."""
        return self.check_path is not None

    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Copy the input: what a model has to beat."""
        return str(problem)

    def read(self, problem: str, notation: str | None = None) -> Problem:
        """Read a text; a tokenizer splits it itself, and takes the names from a `MarkedText`."""
        if isinstance(problem, Problem):
            return problem
        tokens = self.parse(problem)
        symbols = self.symbols_in(tokens)
        if not isinstance(problem, MarkedText):
            return Problem(problem, problem, tokens, symbols)
        marked = MarkedProblem(problem, problem, tokens, symbols)
        marked.spans = problem.spans
        return marked

    def parse(self, problem: str, notation: str | None = None) -> list[str]:
        """Return the words of a text, without spaces; its names are `NameToken`s.

        Raises:
            ValueError: names are listed in a column of the data, and this text lacks them.
        """
        self.finder.require_names(problem)
        return self._split(problem)

    def _split(self, text: str, classes: Mapping[str, str] | None = None) -> list[str]:
        """Split a text; of an answer `classes` are the names of its problem: name -> class."""
        tokens: list[str] = []
        for part, span in parts(text, self.finder.find(text, classes)):
            tokens += [word for word in WORD.findall(part) if not word.isspace()]
            if span is not None:
                name = text[span.start : span.stop]
                tokens.append(NameToken(name, span.symbol_class, span.key(text)))
        return tokens

    def symbols_in(self, tokens: Sequence[str]) -> list[str]:
        """Return the distinct names among the tokens of `parse`."""
        names: dict[str, str] = {}
        for token in tokens:
            if isinstance(token, NameToken):
                names.setdefault(token.key, token)
        return list(names.values())

    def needed_symbols(self, problems: Sequence[str]) -> Mapping[str, int]:
        """Return the most names of each class in a problem."""
        largest_counts = dict.fromkeys(self.finder.rules, 0)
        for problem in problems:
            tokens = problem.tokens if isinstance(problem, Problem) else self._split(problem)
            names = {
                (token.symbol_class, token.key) for token in tokens if isinstance(token, NameToken)
            }
            for kind, count in Counter(kind for kind, _ in names).items():
                largest_counts[kind] = max(largest_counts[kind], count)
        return largest_counts

    def canonical_form(self, tokens: Sequence[str], equivalence: str = EQUIVALENCES[0]) -> str:
        """Return the tokens with names numbered by first occurrence: equal up to renaming."""
        return " ".join(_numbered(tokens, lambda name: True))

    def distance(self, problem: str, answer: str | None, target: str | None = None) -> int | None:
        """Return the edit distance to the target in words; None without a target.

        What names are called that the problem lacks makes no difference.
        """
        from rapidfuzz.distance import Levenshtein

        if target is None:
            return None
        classes = self._classes(problem)
        answer = self._called_as(target, answer or "", classes)
        expected, written = (
            _numbered(self._split(text, classes), lambda name: name.key != name)
            for text in (target, answer)
        )
        return Levenshtein.distance(expected, written)

    def _classes(self, problem: str) -> dict[str, str]:
        """Return name -> class, of the names of a problem."""
        names = (token for token in self.read(problem).tokens if isinstance(token, NameToken))
        return {str(name): name.symbol_class for name in names}

    def _called_as(self, target: str, answer: str, classes: Mapping[str, str]) -> str:
        """Return an answer whose new names are called as those of the target, by first occurrence.

        Args:
            classes: name -> class, of the problem, which has no new names.
        """
        of_target, of_answer = (
            [
                name
                for name in self.symbols_in(self._split(text, classes))
                if name not in classes and name == name.key  # type: ignore[attr-defined]
            ]
            for text in (target, answer)
        )
        if not of_target:
            return answer
        # Names beyond those of the target must not become one of them.
        called = {name: f"{name}\u02b9" for name in of_answer}
        called |= zip(of_answer, of_target, strict=False)
        written = ""
        for part, span in parts(answer, self.finder.find(answer, classes)):
            name = "" if span is None else answer[span.start : span.stop]
            is_bound = span is not None and span.binding
            written += part + (name if is_bound else called.get(name, name))
        return written

    def check(
        self,
        problem: str,
        answer: str,
        target: str | None = None,
        notation: str | None = None,
        solver: str = "auto",
        timeout: float = 10.0,
    ) -> Verdict:
        """Judge an answer: `exact` if it is the target, else as the user's own check says.

        It is the target whatever names are called that the source lacks, or that belong to a
        binding.

        Without one an answer that is not the target is `wrong`, and `undecided` if there is no
        target. A check that fails, or gives no verdict, leaves it `undecided`; of the first failure
        the log warns.

        Args:
            timeout: seconds for the user's own check.
        """
        if target is not None and self._is_target(problem, answer, target):
            return Verdict.exact
        if self.check_path is None:
            return Verdict.undecided if target is None else Verdict.wrong
        try:
            verdict, _ = self.ask(problem, answer, target, timeout)
        except TimeoutError:
            return Verdict.timeout
        except (SolverCrashError, ValueError) as error:
            warning = f"check {self.check_path}: {error}; such answers stay undecided"
            warn_once(warning, f"check {self.check_path}")
            return Verdict.undecided
        # What is `exact` only the target says.
        return Verdict.correct if verdict is Verdict.exact else verdict

    @staticmethod
    def forget_checks() -> None:
        """Have checks loaded anew: their code may have changed, or the current folder."""
        _process().stop()
        WARNED.clear()

    def explain(self, problem: str, answer: str) -> Explanation:
        """Explain an answer in the words of the user's own check, if it has any."""
        if self.check_path is None:
            return Explanation(("The task has no check of answers.",))
        try:
            verdict, words = self.ask(problem, answer, None)
        except (TimeoutError, SolverCrashError, ValueError) as error:
            return Explanation((f"check {self.check_path}: {error}",))
        return Explanation((words or f"check {self.check_path} says {verdict}",))

    def ask(
        self, problem: str, answer: str, target: str | None, timeout: float = 10.0
    ) -> tuple[Verdict, str | None]:
        """Ask the user's own check for its verdict, and its words, if it gives any.

        Raises:
            TimeoutError: it takes longer than `timeout` seconds.
            SolverCrashError: it raised, with its error and the texts, or its process died.
            ValueError: it returned something that is no verdict.
        """
        assert self.check_path is not None
        texts = [str(problem), answer, target]
        asked = (texts, self.check_path, os.getcwd())
        reply, words = _process().call("check", timeout, *asked)  # type: ignore[arg-type]
        if isinstance(reply, bool):
            return Verdict.correct if reply else Verdict.wrong, words
        try:
            return Verdict.undecided if reply is None else Verdict(reply), words
        except ValueError:
            verdicts = ", ".join(verdict.value for verdict in Verdict)
            raise ValueError(
                f"it returned {reply!r}: return yes or no, or one of {verdicts}"
            ) from None

    def _is_target(self, problem: str, answer: str, target: str) -> bool:
        if self.same(answer, target):
            return True
        classes = self._classes(problem)
        texts = (self._called_as(target, answer, classes), target)
        return self.same(*(without_spelling(t, self.finder.find(t, classes)) for t in texts))

    def same(self, answer: str, target: str) -> bool:
        """Whether an answer is the target."""
        if self.ignore_whitespace:
            return "".join(answer.split()) == "".join(target.split())
        return answer.strip() == target.strip()


def _numbered(tokens: Iterable[str], which: Callable[[NameToken], bool]) -> list[str]:
    """Return tokens with some of the names numbered by first occurrence."""
    numbers: dict[str, str] = {}
    written = []
    for token in tokens:
        if isinstance(token, NameToken) and which(token):
            token = numbers.setdefault(token.key, f"\0{token.symbol_class}{len(numbers)}")
        written.append(token)
    return written


class _CheckProcess(SolverProcess):
    what = "check"

    def _shown(self, tokens: Sequence[str]) -> str:
        problem, answer = (shorten(text, SHOWN, placeholder=" ...") for text in tokens[:2])
        return f"the problem {problem!r} with the answer {answer!r}"


@cache
def _process() -> SolverProcess:
    return _CheckProcess(WORKER)
