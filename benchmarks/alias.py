"""Names before any model: do BFCL's chats reach one the same, however their tools are called?

    python benchmarks/alias.py --data data --out alias

Each chat is a question, its tools and the calls that answer it (`data/bfcl`). It is renamed in the
ways of `hf-alpha certify`, and spelled canonically; bytes are compared. No model is asked.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import bfcl
from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import certify
from measure import finish, parser_of, run, table

FILES = ("live_multiple", "multiple", "parallel", "simple_python", "live_simple")


def chats(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the chats of a file of BFCL, in OpenAI's form."""
    for question, right in bfcl.questions(folder, name):
        calls = [
            {"name": tool, "arguments": {k: v[0] for k, v in values.items() if v and v[0] != ""}}
            for call in right
            for tool, values in call.items()
        ]
        written = [{**call, "arguments": json.dumps(call["arguments"])} for call in calls]
        said = [{"id": "1", "type": "function", "function": call} for call in written]
        reply = {"role": "assistant", "content": "", "tool_calls": said}
        tools = [
            {"type": "function", "function": bfcl.as_json_schema(t)} for t in question["function"]
        ]
        yield {"messages": [*question["question"][0], reply], "tools": tools}


def main(argv: Sequence[str] | None = None) -> None:
    """Certify chats of each file."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="with bfcl")
    parser.add_argument("--count", type=int, default=200, help="chats of each file")
    options = parser.parse_args(argv)
    names, lines, data = CanonicalNames({"tool": {"rule": "tools"}}), [], {}
    for name in FILES:
        drawn = [*chats(options.data / "bfcl", name)]
        random.Random(0).shuffle(drawn)
        made = certify(drawn[: options.count], names)
        tried = sum(made.renamings.values())
        counts = (
            made.texts,
            made.names,
            tried,
            len(made.differing),
            sum(made.undescribed.values()),
        )
        lines.append([name, *(f"{count:,}" for count in counts)])
        data[name] = made.to_dict()
    columns = ["BFCL", "chats", "names", "renamings", "sent otherwise", "without a description"]
    finish(table(columns, lines), data, options.out, argv)


if __name__ == "__main__":
    run(main)
