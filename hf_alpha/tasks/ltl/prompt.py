"""The prompt of linear temporal logic: answers are traces, `a; a & b; cycle{b}`."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from hf_alpha.modeling.grammar import Grammar, split_at
from hf_alpha.tasks.prompts import Prompt

from .grammar import LTL
from .trace import CLOSE, CYCLE, OPEN, read_trace, write_trace

MARKUP = " \t`*$>#-"
"""What may stand before a trace on its line."""
_BEFORE = re.compile(rf"\b{CYCLE}\s*$")
_CONTINUED = re.compile(r";\s*\n\s*")


class TracePrompt(Prompt):
    """Asks for a lasso trace whose loop is written `cycle{...}`.

    A trace begins where a line does, behind a colon or markup, and ends with the brace of its
    cycle; a line that ends with `;` goes on in the next. In double quotes it is read too.
    """

    grammar: ClassVar[Grammar] = LTL
    instructions: ClassVar[str] = """\
Find a trace that satisfies a formula of linear temporal logic (LTL).
Atomic propositions are names, such as a or b.
A trace is a lasso: first the steps of a prefix, which may be empty, then a cycle of steps that is \
repeated forever.
Steps are separated by semicolons. The cycle stands in braces behind the word cycle.
A step is a formula without temporal operators: what has to hold at that time. \
What it leaves open may be true or false.

Temporal operators:
X: next
U: until

Logical operators:
&: and
|: or
!: not

X and ! bind most tightly, then U, then &, then |. U groups to the right.

Constants:
0: false
1: true
There are no other numbers."""
    examples: ClassVar[tuple[tuple[str, str], ...]] = (
        ("XU&aXaXXb", "1;1;1;b;{1}"),
        ("U!cXU1b", "1;b;{1}"),
        ("X!X!&bXb", "1;1;b;b;{1}"),
        ("!U1!c", "{c}"),
    )
    label: ClassVar[str] = "Trace"
    request: ClassVar[str] = "Give a trace that satisfies this formula. Answer with the trace only."
    missing: ClassVar[str] = "no cycle{...}"
    unreadable: ClassVar[str] = "a trace that cannot be read"

    def write_problem(self, tokens: Sequence[str]) -> str:
        """Write a formula in infix."""
        return LTL.format(list(tokens), "infix")

    def write_answer(self, answer: str) -> str:
        """Write a trace with `cycle{...}`.

        Raises:
            ValueError: the answer is no trace.
        """
        trace = read_trace(answer)
        if trace is None:
            raise ValueError(f"{answer!r} is no trace")
        return write_trace(trace, "infix")

    def candidates(self, text: str) -> Iterator[str]:
        """Find what ends with `cycle{...}`."""
        for line in _CONTINUED.sub("; ", text).splitlines():
            yield from list(_traces(line)) or _traces(line.replace('"', " "))

    def read_answer(self, candidate: str) -> str | None:
        """Read a trace."""
        trace = read_trace(candidate, "infix")
        return None if trace is None else write_trace(trace)


def _traces(line: str) -> Iterator[str]:
    """Yield what may be a trace in a line: from its start, a colon or the last trace to a brace."""
    head, *parts = split_at(line, OPEN)
    for part in parts:
        loop, *after = split_at(part, CLOSE)
        if after and _BEFORE.search(head):
            yield f"{split_at(head, ':')[-1].lstrip(MARKUP)}{OPEN}{loop}{CLOSE}"
        head = CLOSE.join(after)


__all__ = ["TracePrompt"]
