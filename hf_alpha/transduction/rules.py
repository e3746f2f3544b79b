"""Rules: regular expressions over the words and segments of a text, compiled by pynini."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from hf_alpha.io.settings import model_of
from hf_alpha.io.yaml_files import read_yaml
from hf_alpha.transduction.automaton import Conditions, RuleAutomaton
from hf_alpha.transduction.lexicon import CONTROL
from hf_alpha.transduction.units import Options, unit_finder
from hf_alpha.wings import optional

MOST_REPETITIONS = 100
MOST_STATES = 2_000
TOKEN = re.compile(
    r"""(?P<regex>/(?:[^/\\]|\\.)+/)
    |(?P<label><[^<>]+>)
    |(?P<quoted>"[^"]+")
    |(?P<repeat>[?*+]|\{\d+(?:,\d*)?\})
    |(?P<mark>[()|])
    |(?P<any>\.)
    |(?P<word>[^\s()|?*+.{}<>"/]+)""",
    re.VERBOSE,
)


class RuleError(ValueError):
    """A rule that cannot be compiled; the message has its number, its text and the column."""


@dataclass(frozen=True)
class Rule:
    """A regular expression over words and segments, and the label of what it finds.

    Its items are separated by spaces:

    | item | what it matches |
    |---|---|
    | `march` | this word; split like a text, so `don't` is three words |
    | `"U.S."` | the words of a text in double quotes; `.` and other signs stand for themselves |
    | `/[0-9]{4}/` | a word, as the text writes it, that Python's `re` matches from end to end |
    | `.` | any word |
    | `<MONTH>` | a segment with this label, of the lexicon or of a rule before this one |
    | `( )`, `a | b`, `?`, `*`, `+`, `{2}`, `{2,4}`, `{2,}` | groups, choices, repetitions |

    Args:
        label: of the segments that it finds.

    Examples:
        >>> date = Rule("May /[0-9]{1,2}/", label="DATE")
        >>> Transducer.compile(rules=[date]).spans("on May 12")
        [(3, 9, 'DATE')]
    """

    pattern: str
    label: str


def read_rules(path: str | PathLike[str]) -> list[Rule]:
    """Read a YAML file: a list of rules, each with `pattern` and `label`.

    Raises:
        ValueError: the file holds something else; the message has the line if it is no YAML.
        OSError: it cannot be read.
    """
    return rules_of(read_yaml(Path(path)), f"{path}")


def rules_of(content: Any, place: str) -> list[Rule]:
    """Make rules of plain data; see `read_rules`.

    Raises:
        ValueError: it is no list of mappings with a pattern and a label.
    """
    if not isinstance(content, list):
        raise ValueError(f"{place}: write a list of rules, each with 'pattern' and 'label'")
    for number, entry in enumerate(content, start=1):
        at = f"{place}: rule {number}"
        if not isinstance(entry, dict) or not entry.keys() >= {"pattern", "label"}:
            raise ValueError(f"{at} has no 'pattern' and 'label': {entry!r}")
        model_of(Rule).read(entry, at)
    return [Rule(**entry) for entry in content]


def compile_rules(
    rules: Sequence[Rule], lexicon_labels: Sequence[str], options: Options
) -> tuple[list[RuleAutomaton], Conditions]:
    """Return rules as automata over atoms, and the atoms.

    Raises:
        RuleError: a rule cannot be compiled, or needs too many states; the message has its number,
            its text and the column.
        ImportError: pynini is not installed.
    """
    pattern, atoms = unit_finder(options.unit), Conditions(options.lowercase)
    labels, compiled = list(lexicon_labels), []
    for number, rule in enumerate(rules, start=1):
        parser = _Parser(
            rule, number, atoms, lambda text: pattern(text).findall(text), labels, options.max_units
        )
        compiled.append(parser.compile())
        labels.append(rule.label)
    return compiled, atoms


class _Parser:
    """Compiles one rule by recursive descent.

    Args:
        atoms: gets the rule's conditions.
        split: splits a text into units.
        labels: those that segments can have when the rule is applied.
        max_units: most units in a match; of a repetition, more are not compiled.
    """

    def __init__(
        self,
        rule: Rule,
        number: int,
        atoms: Conditions,
        split: Callable[[str], list[str]],
        labels: Collection[str],
        max_units: int,
    ) -> None:
        with optional():
            self._pynini = import_module("pynini")
        self._rule, self._number, self._atoms = rule, number, atoms
        self._split, self._labels, self._max_units = split, labels, max_units
        is_bad = not rule.label.strip() or CONTROL.search(rule.label)
        self._refuse(is_bad, 0, f"its label {rule.label!r} is empty or has a tab or a line break")
        self._tokens = self._read_tokens()

    def compile(self) -> RuleAutomaton:
        """Return the rule as a deterministic minimal automaton over atoms."""
        fst = self._choice()
        if self._tokens:  # what ends a choice and is not the end of the rule
            raise self._error(self._tokens[0].start(), "this ) has no ( before it")
        fst = self._compact(fst, 0)
        zero = self._pynini.Weight.zero(fst.weight_type())
        arcs: list[list[tuple[int, int]]] = []
        for state in fst.states():
            masks: dict[int, int] = {}
            for arc in fst.arcs(state):
                masks[arc.nextstate] = masks.get(arc.nextstate, 0) | 1 << arc.ilabel
            arcs.append([(mask, to) for to, mask in masks.items()])
        final = [fst.final(state) != zero for state in fst.states()]
        return RuleAutomaton(arcs, final, fst.start())

    def _error(self, at: int, message: str) -> RuleError:
        return RuleError(f"rule {self._number}, {self._rule.pattern!r}, column {at + 1}: {message}")

    def _refuse(self, fault: object, at: int, message: str) -> None:
        if fault:
            raise self._error(at, message)

    def _compact(self, fst: Any, at: int, copies: int = 1) -> Any:
        """Return the same automaton, deterministic and minimal, with room for so many copies."""
        # It stops at so many states.
        automaton = self._pynini.determinize(fst.copy().rmepsilon(), nstate=MOST_STATES)
        is_full = automaton.num_states() >= MOST_STATES
        self._refuse(
            is_full or automaton.minimize().num_states() * copies >= MOST_STATES, at,
            f"it needs {MOST_STATES:,} states or more: repeat fewer times, and list phrases in the "
            "lexicon",
        )  # fmt: skip
        return automaton

    def _read_tokens(self) -> list[re.Match[str]]:
        text, at, tokens = self._rule.pattern, 0, []
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            if (token := TOKEN.match(text, at)) is None:
                raise self._error(
                    at, f"{text[at]!r} begins nothing here; put signs of the text in double quotes"
                )
            tokens.append(token)
            at = token.end()
        return tokens

    def _next_is(self, *texts: str) -> bool:
        return bool(self._tokens) and self._tokens[0][0] in texts

    def _choice(self) -> Any:
        choices = [self._sequence()]
        while self._next_is("|"):
            self._tokens.pop(0)
            choices.append(self._sequence())
        return self._pynini.union(*choices) if len(choices) > 1 else choices[0]

    def _sequence(self) -> Any:
        at = self._tokens[0].start() if self._tokens else len(self._rule.pattern)
        items = []
        while self._tokens and not self._next_is("|", ")"):
            items.append(self._repeated(self._item()))
        self._refuse(not items, at, "an item is missing: a word, /regex/, <LABEL>, . or ( )")
        return self._joined(items)

    def _joined(self, items: Sequence[Any]) -> Any:
        product = items[0].copy()
        for item in items[1:]:
            product.concat(item)
        return product

    def _item(self) -> Any:
        token = self._tokens.pop(0)
        text, at = token[0], token.start()
        if text == "(":
            inner = self._choice()
            self._refuse(not self._next_is(")"), at, "this ( is not closed")
            self._tokens.pop(0)
            return inner
        match token.lastgroup:
            case "any":
                return self._atom(Conditions.ANY)
            case "regex":
                return self._atom(self._regex(text[1:-1], at))
            case "label":
                return self._atom(self._label(text[1:-1], at))
            case "word" | "quoted":
                words = self._split(text.strip('"'))
                self._refuse(not words, at, f"{text} holds no word")
                return self._joined([self._atom(self._atoms.word(word)) for word in words])
        raise self._error(at, f"{text} has nothing before it to repeat")

    def _atom(self, number: int) -> Any:
        return self._pynini.accep(f"[{number}]")  # pynini's notation of an arc label

    def _regex(self, source: str, at: int) -> int:
        try:
            return self._atoms.regex(source)
        except re.error as error:
            column = at + 1 + (error.pos or 0)
            raise self._error(column, f"/{source}/ is no regular expression: {error}") from None

    def _label(self, label: str, at: int) -> int:
        choices = f"known: {', '.join(self._labels)}" if self._labels else "there are none"
        message = f"no entry of the lexicon and no rule before has the label {label!r}; {choices}"
        self._refuse(label not in self._labels, at, message)
        return self._atoms.label(label)

    def _repeated(self, item: Any) -> Any:
        while self._tokens and self._tokens[0].lastgroup == "repeat":
            token = self._tokens.pop(0)
            bounds = self._bounds(token)
            item = self._compact(item, token.start(), max(1, *bounds))
            item = self._pynini.closure(item, *bounds)
        return item

    def _bounds(self, token: re.Match[str]) -> tuple[int, int]:
        """Return least and most repetitions; pynini's 0 for the latter is no limit.

        A match has a unit for each repetition that is not empty, so one more than `max_units` is
        the same as any more.
        """
        if token[0] in "?*+":
            return {"?": (0, 1), "*": (0, 0), "+": (1, 0)}[token[0]]
        first, comma, second = token[0][1:-1].partition(",")
        least, most = int(first), int(second or first)
        unlimited = bool(comma) and not second
        is_out = max(least, most) > MOST_REPETITIONS or (most == 0 and not unlimited)
        self._refuse(is_out, token.start(), f"{token[0]}: write 1 to {MOST_REPETITIONS} times")
        is_turned = most < least
        self._refuse(is_turned, token.start(), f"{token[0]}: the second number is the smaller one")
        enough = self._max_units + 1
        return min(least, enough), 0 if unlimited else min(most, enough)
