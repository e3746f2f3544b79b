"""HumanEval's problems, solved to the half, under several namings; what models add is run."""

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from aliased.questions import Naming, Question, inverse, namings, tables
from hf_alpha import CanonicalNames
from hf_alpha.modeling.python_fragments import fragment_words
from measure import lines_of

STATEMENTS = "def ", "class ", "if ", "for ", "print", "assert", "#", "@", "```"
ENDS = [f"\n{begin}" for begin in STATEMENTS]
"""What begins behind a function."""
RULE = {"name": {"rule": "python"}}
SECONDS, BYTES = 10, 1 << 30
"""That a program gets."""
LIMITS = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({BYTES}, {BYTES}))\n"


def completions(data: Path) -> Iterator[Question]:
    """Yield questions for the second half of a function, of those with three names before it."""
    finder = CanonicalNames(RULE).finder
    rows = lines_of(data / "humaneval" / "HumanEval.jsonl.gz")
    random.Random(0).shuffle(rows)
    for row in rows:
        lines = row["canonical_solution"].rstrip().splitlines(keepends=True)
        half = len(lines) // 2
        text, rest = row["prompt"] + "".join(lines[:half]), "\n" + "".join(lines[half:])
        text = text.rstrip()  # a token may be a line's end with the spaces behind it
        names = [*dict.fromkeys(text[span.start : span.stop] for span in finder.find(text))]
        functions = [name for name in names if re.search(rf"\bdef {name}\b", text)]
        variables = [name for name in names if name not in functions]
        if len(variables) < 3:
            continue
        key = row["task_id"]
        made, alike = namings(RULE, {"prompt": text}, tables(key, variables, functions))
        asked = {
            condition: naming.asked(
                renamed_behind(naming.body["prompt"], rest, naming.table), completion_back
            )
            for condition, naming in made.items()
        }
        judge = partial(passes, before=text, test=f"{row['test']}\ncheck({row['entry_point']})\n")
        yield Question(key, asked, judge, alike)


def renamed_behind(before: str, code: str, table: dict[str, str]) -> str:
    """Write other names in code that stands behind other code."""
    text, end = before + code, len(before)
    written = []
    for start, stop in fragment_words(text):
        if start >= len(before) and text[start:stop] in table:
            written += [text[end:start], table[text[start:stop]]]
            end = stop
    return "".join([*written, text[end:]])


def completion_back(answer: str, naming: Naming) -> str:
    """Return code in own names; a name that only own names have is another one."""
    if naming.request is not None:
        return naming.text_back(answer)
    back = inverse(naming.table)
    back |= {name: f"{name}_" for name in naming.table if name not in back}
    return renamed_behind(naming.body["prompt"], answer, back)


def passes(answer: str, before: str, test: str) -> bool:
    """Whether a program passes its tests, in a process with limits of time and memory."""
    program = f"{LIMITS}{before}{answer}\n\n{test}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-"],
                input=program.encode(errors="replace"),
                capture_output=True,
                timeout=SECONDS,
                cwd=folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return not done.returncode
