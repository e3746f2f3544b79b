"""HTML of replies and of a task's syntax. Texts of others are text: nothing in them is markup."""

import html
from collections.abc import Iterator

from hf_alpha.demo.service import Renamed, Reply, Shown
from hf_alpha.modeling.grammar import Grammar
from hf_alpha.plain_text import printable
from hf_alpha.tasks import Task

MEANINGS = {
    "!": "not",
    "&": "and",
    "|": "or",
    "->": "implies",
    "<-": "is implied by",
    "<->": "if and only if",
    "=": "if and only if",
    "^": "exclusive or",
    "X": "next: in the next step",
    "F": "eventually: in some step from now on",
    "G": "always: in every step from now on",
    "U": "until: the right side comes, and until then the left side holds",
    "W": "weak until: as U, but the right side need not come",
    "R": "release: the right side holds, up to and with the step in which the left side does",
    "M": "strong release: as R, and the left side comes",
    "0": "false",
    "1": "true",
}
"""What the operators of the built-in grammars mean."""

STYLE = """
.reply, .renamed {overflow-wrap: anywhere}
.reply p, .renamed p {margin: .4em 0}
.reply .error {color: #b3261e; font-weight: 600}
.reply .verdict {border-radius: .4em; padding: .1em .5em; color: #fff; background: #5f6368;
  font-weight: 600}
.reply .verdict.correct, .reply .verdict.exact, .renamed .same {background: #146c2e}
.reply .verdict.wrong, .reply .verdict.malformed, .renamed .differs {background: #b3261e}
.renamed .same, .renamed .differs {border-radius: .4em; padding: .1em .5em; color: #fff;
  font-weight: 600}
.reply code, .renamed code, .syntax code {font-family: ui-monospace, monospace}
.scrolled {overflow-x: auto}
table.explanation, table.syntax {border-collapse: collapse; margin: .6em 0}
table.explanation th, table.explanation td {padding: .15em .6em; text-align: center;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent)}
table.explanation th:first-child {text-align: left; font-family: ui-monospace, monospace;
  font-weight: 400; white-space: nowrap}
@media (max-width: 600px) {
  table.explanation th:first-child {white-space: normal; min-width: 8em}
}
table.explanation td.true {background: #146c2e; color: #fff}
table.explanation td.false {background: color-mix(in srgb, currentColor 8%, transparent)}
table.explanation td.open {background: #7a5b00; color: #fff}
table.explanation th.loop {border-top: 3px double currentColor}
table.explanation tr:last-child td.loop {border-bottom: 3px double currentColor}
table.explanation tr:last-child th {font-weight: 700}
table.syntax td, table.syntax th {padding: .15em .8em .15em 0; text-align: left;
  vertical-align: top}
"""
"""For the page: colours with a contrast of 4.5 to 1 and more, also on a dark page."""


def draw_reply(reply: Reply) -> str:
    """Return the HTML of a reply."""
    return f'<div class="reply" role="status">{"".join(_reply(reply))}</div>'


def draw_renamed(renamed: Renamed) -> str:
    """Return the HTML of an answer before and after names were changed."""
    parts = [*_names(renamed), *_reply(renamed.after)]
    if renamed.names:
        parts.insert(0, _said_same(renamed))
    return f'<div class="renamed reply" role="status">{"".join(parts)}</div>'


def draw_syntax(task: Task) -> str:
    """Return the HTML of how problems and answers of a task are written."""
    if task.grammar is None:
        return "<p>A problem is a text, in which the task finds the names.</p>"
    rows = "".join(
        f"<tr><td><code>{_text(operator)}</code></td><td>{_text(meaning)}</td>"
        f"<td><code>{_text(', '.join(others))}</code></td></tr>"
        for operator, meaning, others in _operators(task.grammar)
    )
    return (
        '<div class="syntax scrolled"><p>Names are words, such as <code>request</code> and '
        "<code>grant_17</code>, or anything in double quotes. Unary operators bind tightest. "
        "Prefix notation, <code>&amp; a ! b</code>, is read too.</p>"
        f'<table class="syntax"><tr><th></th><th>means</th><th>also written</th></tr>{rows}</table>'
        "</div>"
    )


def _reply(reply: Reply) -> Iterator[str]:
    solution = reply.solution
    yield f"<p><code>{_text(solution.problem)}</code></p>"
    if solution.read_as is not None:
        yield f"<p>read as <code>{_text(solution.read_as)}</code></p>"
    if solution.error is not None:
        yield f'<p class="error" role="alert">{_text(solution.error)}</p>'
    for note in solution.notes:
        yield f'<p class="note">note: {_text(note)}</p>'
    if solution.unsatisfiable:
        yield '<p><span class="verdict">unsatisfiable</span> There is a proof of it.</p>'
    if solution.core:
        parts = "".join(f"<li><code>{_text(part)}</code></li>" for part in solution.core)
        yield f"<p>These parts contradict one another:</p><ul>{parts}</ul>"
    for number, answer in enumerate(reply.answers):
        yield from _answer(answer, opened=number == 0)
    if solution.found_by is not None:
        yield f"<p>{_found(reply)}</p>"


def _found(reply: Reply) -> str:
    found_by, seconds = reply.solution.found_by, reply.solution.seconds
    said = f"found by {_text(found_by or '')}, {seconds:.3f} s"
    return said if found_by == reply.asked else f"asked: {_text(reply.asked)}; {said}"


def _answer(answer: Shown, opened: bool) -> Iterator[str]:
    yield (
        f'<p><span class="verdict {_text(answer.label)}">{_text(answer.label)}</span> '
        f'<code class="answer">{_text(answer.text)}</code></p>'
    )
    if not answer.ended:
        yield "<p>This answer is cut off at the limit of its length.</p>"
    if answer.explanation.notes:
        why = f'<div class="scrolled">{answer.explanation.html()}</div>'
        yield f"<details{' open' * opened}><summary>Why</summary>{why}</details>"


def _said_same(renamed: Renamed) -> str:
    if renamed.same is None:
        return "<p>There are no two answers to compare.</p>"
    old = renamed.before.answers[:1]
    under = "".join(f"; under the old ones <code>{_text(answer.text)}</code>" for answer in old)
    if renamed.same:
        return f'<p><span class="same">the same answer</span> but for the names{under}</p>'
    return f'<p><span class="differs">another answer</span> with other names{under}</p>'


def _names(renamed: Renamed) -> Iterator[str]:
    if renamed.names:
        pairs = (f"{_text(name)} → {_text(other)}" for name, other in renamed.names.items())
        yield f"<p>{', '.join(pairs)}</p>"


def _operators(grammar: Grammar) -> Iterator[tuple[str, str, list[str]]]:
    """Give each operator and constant with its meaning and its other spellings."""
    tokens = [*grammar.operators, *grammar.derived, *grammar.constants]
    for token in tokens:
        spellings = [text for text, meant in grammar.spellings.items() if meant == token]
        yield token, MEANINGS.get(token, ""), spellings


def _text(text: str) -> str:
    return html.escape(printable(text))


__all__ = ["STYLE", "draw_renamed", "draw_reply", "draw_syntax"]
