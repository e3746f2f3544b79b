"""Texts: the user's own pairs, some words of which are names."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from numbers import Real
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

from hf_alpha.modeling.names_in_text import NameFinder, parts
from hf_alpha.modeling.text_pieces import WORD
from hf_alpha.own_code import import_functions, own_object, own_source
from hf_alpha.tasks.base import EQUIVALENCES, WARNED, Task, Verdict, warn_once
from hf_alpha.tasks.registry import register_task
from hf_alpha.tasks.solver_process import SolverCrashError, SolverProcess

WORKER = Path(__file__).with_name("check_worker.py")
SHOWN = 200
"""Letters of a text that an error shows."""


class Name(str):
    """A token that is a name, of a class."""

    symbol_class: str

    def __new__(cls, text: str, symbol_class: str) -> "Name":
        self = super().__new__(cls, text)
        self.symbol_class = symbol_class
        return self


@register_task
class TextTask(Task):
    """Pairs of texts of the user's own; an answer is right if it is the one of the data.

    Args:
        symbols: class -> rule by which its names are found, see `NameRule`.
        check: the user's own check, `package.module:function`: from source, answer and target
            (None if there is none) to yes or no, or a `Verdict` or its name. It is asked where the
            answer is not the data's, in a process of its own, with a time limit.
        measures: name -> `package.module:function` of the user's own, from `predictions` and
            `references` to a number or a mapping of numbers; or an object with such a `compute`.
        ignore_whitespace: answers that differ in whitespace only are the same.

    Raises:
        ValueError: a rule or the path of a function cannot be used.
    """

    name: ClassVar[str] = "text"
    grammar: ClassVar[None] = None
    base_tokens: ClassVar[tuple[str, ...]] = ()
    symbol_classes: ClassVar[Mapping[str, int]] = {}
    targets: ClassVar[Mapping[str, str]] = {"given": "The target of the data."}
    num_beams: ClassVar[int] = 1
    random_name: ClassVar[str] = "copy of the input"
    random_note: ClassVar[str] = "The copy answers every input by itself."
    problems: ClassVar[str] = "texts"
    example: ClassVar[str] = ""
    data: ClassVar[str] = "`problem` is the source, `answer` the target"
    own_data: ClassVar[bool] = True

    def __init__(
        self,
        symbols: Mapping[str, Any] | None = None,
        check: str | None = None,
        measures: Mapping[str, str] | None = None,
        ignore_whitespace: bool = False,
    ):
        self.finder = NameFinder(symbols or {})
        import_functions(self.finder)
        self.own_measures = dict(measures or {})
        paths = {"check": check} if check is not None else {}
        for name, path in {**paths, **self.own_measures}.items():
            if not isinstance(path, str) or path.count(":") != 1 or not all(path.split(":")):
                raise ValueError(f"{name} {path!r}: write package.module:function")
        self.own_check, self.ignore_whitespace = check, ignore_whitespace

    def configured(self, **settings: Any) -> "TextTask":
        """Return the task with a recipe's settings."""
        return TextTask(**settings)

    def is_feasible(
        self, size: int, num_symbols: int, exactly: bool = False, constant_priority: float = 0.0
    ) -> bool:
        """There is nothing to draw: data is the user's."""
        return False

    def draw(
        self,
        rng: random.Random,
        size: int,
        symbols: Sequence[str],
        exactly: bool = False,
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Refuse: data is the user's.

        Raises:
            ValueError: always.
        """
        raise ValueError("texts are not drawn: name a file of pairs (--data, or data.train)")

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> None:
        """Return None: only the data knows the answer."""
        return None

    def measured(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        """Return the user's own measures.

        Raises:
            ValueError: a function is not there, or returns no numbers.
        """
        numbers: dict[str, float] = {}
        for name, path in self.own_measures.items():
            function: Any = own_object(path, "measure", "package.module:function")
            function = getattr(function, "compute", function)
            found = function(predictions=predictions, references=references)
            values = found if isinstance(found, Mapping) else {name: found}
            kept = {k: v for k, v in values.items() if isinstance(v, Real)}
            if not kept:
                raise ValueError(f"measure {path}: it returned {found!r}: return numbers")
            numbers |= {k: float(v) for k, v in kept.items()}
        return numbers

    def prepare(self, tokenizer: Any) -> None:
        """Give a tokenizer the functions by which names are found."""
        if self.finder is not None and hasattr(tokenizer, "finder"):
            tokenizer.finder.take_functions(self.finder)

    @property
    def settings(self) -> dict[str, Any]:
        """What verdicts depend on."""
        rules = self.finder.to_dict() if self.finder is not None else {}
        code = own_source(self.own_check) if self.own_check is not None else ""
        return {
            "symbols": rules,
            "check": self.own_check,
            "check_code": sha256(code.encode()).hexdigest()[:16],
            "ignore_whitespace": self.ignore_whitespace,
        }

    @property
    def has_check(self) -> bool:
        """Whether there is a check of the user's own."""
        return self.own_check is not None

    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Copy the input: what a model has to beat."""
        return str(problem)

    def parse(self, problem: str, notation: str | None = None) -> list[str]:
        """Return the words of a text, without spaces; its names are `Name`s."""
        return self._parse(problem, None)

    def _parse(self, problem: str, known: Mapping[str, str] | None) -> list[str]:
        """`parse`; in an answer the names of its problem are known: name -> class."""
        if self.finder is not None and known is None:
            self.finder.require_names(problem)
        spans = self.finder.find(problem, known) if self.finder is not None else ()
        tokens: list[str] = []
        for part, span in parts(problem, spans):
            tokens += [word for word in WORD.findall(part) if not word.isspace()]
            if span is not None:
                tokens.append(Name(problem[span.start : span.stop], span.symbol_class))
        return tokens

    def symbols_in(self, tokens: Sequence[str]) -> list[str]:
        """Return the distinct names among the tokens of `parse`."""
        return list(dict.fromkeys(token for token in tokens if isinstance(token, Name)))

    def needed_symbols(self, problems: Sequence[str]) -> Mapping[str, int]:
        """Return the most names of each class in a problem."""
        if self.finder is None:
            return {}
        most = dict.fromkeys(self.finder.rules, 0)
        for problem in problems:
            found = self.finder.find(problem)
            names = {(kind, str(problem)[start:stop]) for start, stop, kind in found}
            for kind, count in Counter(kind for kind, _ in names).items():
                most[kind] = max(most[kind], count)
        return most

    def canonical_form(self, tokens: Sequence[str], equivalence: str = EQUIVALENCES[0]) -> str:
        """Return the tokens with names numbered by first occurrence: equal up to renaming."""
        names = dict.fromkeys(token for token in tokens if isinstance(token, Name))
        number = {name: f"\0{name.symbol_class}{i}" for i, name in enumerate(names)}
        return " ".join(number[t] if isinstance(t, Name) else t for t in tokens)

    def distance(self, problem: str, answer: str | None, target: str | None = None) -> int | None:
        """Return the edit distance to the target in words; None without a target."""
        from rapidfuzz.distance import Levenshtein

        if target is None:
            return None
        names = (token for token in self.parse(problem) if isinstance(token, Name))
        known = {str(name): name.symbol_class for name in names}
        return Levenshtein.distance(self._parse(target, known), self._parse(answer or "", known))

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

        Without one an answer that is not the target is `wrong`, and `undecided` if there is no
        target. A check that fails, or gives no verdict, leaves it `undecided`; of the first failure
        the log warns.

        Args:
            problem: the source.
            answer: any string.
            target: the data's answer.
            notation: not needed.
            solver: not needed.
            timeout: seconds for the user's own check.
        """
        if target is not None and self.same(answer, target):
            return Verdict.exact
        if self.own_check is None:
            return Verdict.undecided if target is None else Verdict.wrong
        try:
            found = self.ask(problem, answer, target, timeout)
        except TimeoutError:
            return Verdict.timeout
        except (SolverCrashError, ValueError) as error:
            said = f"check {self.own_check}: {error}; such answers stay undecided"
            warn_once(said, f"check {self.own_check}")
            return Verdict.undecided
        # What is `exact` only the target says.
        return Verdict.correct if found is Verdict.exact else found

    @staticmethod
    def forget_checks() -> None:
        """Have checks loaded anew: their code may have changed, or the current folder."""
        _process().stop()
        WARNED.clear()

    def ask(self, problem: str, answer: str, target: str | None, timeout: float = 10.0) -> Verdict:
        """Ask the user's own check.

        Raises:
            TimeoutError: it takes longer than `timeout` seconds.
            SolverCrashError: it raised, with its error and the texts, or its process died.
            ValueError: it returned something that is no verdict.
        """
        assert self.own_check is not None
        texts = [str(problem), answer, target]
        found = _process().call("check", timeout, texts, self.own_check)  # type: ignore[arg-type]
        if isinstance(found, bool):
            return Verdict.correct if found else Verdict.wrong
        try:
            return Verdict.undecided if found is None else Verdict(found)
        except ValueError:
            known = ", ".join(verdict.value for verdict in Verdict)
            raise ValueError(
                f"it returned {found!r}: return yes or no, or one of {known}"
            ) from None

    def same(self, answer: str, target: str) -> bool:
        """Whether an answer is the target."""
        if self.ignore_whitespace:
            return "".join(answer.split()) == "".join(target.split())
        return answer.strip() == target.strip()


class _CheckProcess(SolverProcess):
    what = "check"

    def _shown(self, tokens: Sequence[str]) -> str:
        problem, answer = (shorten(text, SHOWN, placeholder=" ...") for text in tokens[:2])
        return f"the problem {problem!r} with the answer {answer!r}"


@cache
def _process() -> SolverProcess:
    return _CheckProcess(WORKER)


__all__ = ["TextTask"]
