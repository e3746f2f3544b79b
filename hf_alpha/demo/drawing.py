"""HTML of what was answered. Texts of others are text: nothing in them is markup."""

import html
from collections.abc import Iterator

from hf_alpha.answer.solving import Solution
from hf_alpha.demo.choices import Choice, Renamed
from hf_alpha.io.plain_text import printable

STYLE = """
.reply {display: flex; flex-wrap: wrap; gap: 0 2em; overflow-wrap: anywhere}
.reply > * {flex: 1 1 100%}
.reply section {flex: 1 1 20em; min-width: 0}
.reply p, .reply pre {margin: .4em 0}
.reply details p {white-space: pre-line}
.reply pre {overflow-x: auto; font-size: .8em}
.reply code {font-size: .9em; margin: 0 .2em}
.reply strong {border-radius: .4em; padding: .1em .5em; margin-right: .4em; color: #fff;
  background: #5f6368}
.reply .correct, .reply .exact, .reply .same {background: #146c2e}
.reply .wrong, .reply .malformed, .reply .other, .reply .error {background: #b3261e}
"""
"""Colours with a contrast of 4.5 to 1 and more."""


def draw_solution(choice: Choice, solution: Solution) -> str:
    """Return the HTML of what a problem got."""
    return _drawn(_section(choice, solution))


def draw_renamed(choice: Choice, renamed: Renamed) -> str:
    """Return the HTML of the answers to a problem and, beside it, under other names."""
    if renamed.after is None:
        return draw_solution(choice, renamed.before)
    said, kind = {
        True: ("the same answer but for the names", "same"),
        False: ("another answer under other names", "other"),
        None: ("no two answers to compare", "none"),
    }[renamed.same]
    names = ", ".join(f"{name} → {other}" for name, other in renamed.names.items())
    first = f'<p><strong class="{kind}">{said}</strong> {_text(names)}</p>'
    return _drawn(first, _section(choice, renamed.before), _section(choice, renamed.after))


def _drawn(*parts: str) -> str:
    return f'<div class="reply" role="status">{"".join(parts)}</div>'


def _section(choice: Choice, solution: Solution) -> str:
    return f"<section>{''.join(_parts(choice, solution))}</section>"


def _parts(choice: Choice, solution: Solution) -> Iterator[str]:
    yield f"<p><code>{_text(solution.problem)}</code></p>"
    if solution.read_as is not None:
        yield f"<p>read as <code>{_text(solution.read_as)}</code></p>"
    if solution.read is not None:
        taken = ", ".join(map(_name, solution.read.symbols)) or "none"
        yield f"<p>taken for names: {_text(taken)}</p>"
    if solution.error is not None:
        yield f'<p role="alert"><strong class="error">{_text(solution.error)}</strong></p>'
    yield from (f"<p>note: {_text(note)}</p>" for note in solution.notes)
    if solution.unsatisfiable:
        yield "<p><strong>unsatisfiable</strong> There is a proof of it.</p>"
    if solution.core:
        parts = "".join(f"<li><code>{_text(part)}</code></li>" for part in solution.core)
        yield f"<p>These parts contradict one another:</p><ul>{parts}</ul>"
    for number, (answer, verdict) in enumerate(solution.answers):
        label = choice.task.label(verdict)
        text = _text(answer or choice.task.empty_answer)
        yield f'<p><strong class="{label}">{label}</strong> <code>{text}</code></p>'
        if not answer.ended:
            yield "<p>This answer is cut off at the limit of its length.</p>"
        if choice.task.has_check and solution.read is not None:
            opened, why = " open" * (number == 0), choice.task.explain(solution.read, answer)
            yield f"<details{opened}><summary>Why</summary>"
            yield from (f"<p>{_text(note)}</p>" for note in why.notes)
            yield (
                f"<pre>{_text(table)}</pre></details>"
                if (table := "\n".join(why.table()))
                else "</details>"
            )
    if solution.found_by is not None:
        asked = "" if solution.found_by == choice.name else f"asked: {choice.name}; "
        yield f"<p>{_text(f'{asked}found by {solution.found_by}, {solution.seconds:.3f} s')}</p>"


def _name(symbol: str) -> str:
    """Return a name, with its class where texts have several."""
    kind = getattr(symbol, "symbol_class", "")
    return f"{symbol} ({kind})" if kind else str(symbol)


def _text(text: str) -> str:
    return html.escape(printable(text))
