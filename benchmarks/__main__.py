"""The benchmarks: what there is, and the commands that wrote each result.

    python benchmarks                    # all that are kept, by what they are about
    python benchmarks archive            # what was measured once, by scripts that git keeps
    python benchmarks goals              # the commands of a benchmark
    python benchmarks goals-small        # ... or of one result
    python benchmarks goals-small | sh   # runs it again
    python benchmarks show goals-small   # what it printed, and where it was measured

Commands are those of the store (results/README.md). What a benchmark measures is the first line of
its script.
"""

import argparse
import ast
import shlex
import signal
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import measure
from studies import store

FOLDER = Path(__file__).resolve().parent
SHOW, ARCHIVE = "show", "archive"
NO_BENCHMARKS = ("__main__", "figures", "evaluations")
KEPT: dict[str, dict[str, tuple[str, str]]] = {
    "Speed and memory": {
        "goals": ("a BART; the Llama converted; Seq2SeqTrainer", "About 15 minutes"),
        "relational_price": ("a BART and `learned` of the same size", "About 20 minutes"),
        "conversion": ("the file of weights", "About 2 minutes"),
        "scale": ("none", "About 30 minutes"),
        "retrofit": ("the bare backbone: a T5, GPT-2 or Llama", "About 20 minutes"),
        "geometric": ("a BERT of the same size", "About 2 minutes"),
        "gpu": ("the Llama that is the decoders' host", "About 6 minutes of a GPU"),
        "evaluation": ("generation alone", "About 5 minutes"),
        "pairs": ("finding the names, and nothing else", "About 5 minutes"),
        "text_tokenizer": ("the fast tokenizer beneath", "About 1 minute"),
        "transduction": ("a trie of dictionaries; flashtext2", "About 5 minutes"),
        "startup": ("`import transformers`", "About 1 minute"),
        "installs": ("none", "About an hour, and gigabytes of downloads"),
        "servers": ("`transformers serve` of the Llama converted", "About 10 minutes"),
        "gateway": ("the server behind it, asked directly", "About 10 minutes"),
    },
    "Accuracy": {
        "beyond": ("random answers", "About an hour"),
        "first_wrong": ("none: it tells where answers go wrong", "About 3 minutes"),
        "normal_forms": ("whole answers", "About 5 minutes a model"),
        "studies": ("the papers' tables", "Hours"),
    },
    "Real models": {
        "alias": ("none", "Half a minute"),
        "alias_models": ("each model under its own names", "Hours; it goes on where it stopped"),
        "people": ("spaCy's spans as they are", "About 3 minutes"),
        "real_models": ("SmolLM2-135M, trained as it is", "About 5 to 30 minutes a model"),
        "reactions": ("ANNalog, trained as it is", "About 5 to 20 minutes a model"),
        "real_tasks": ("SmolLM2, as it is", "About 10 minutes; 20 more a model that is trained"),
        "annalog": ("none: it makes the checkpoint", "About 1 minute"),
        "retrofit_families": ("none: it tells which models are taken", "About 5 minutes"),
    },
    "Data and solvers": {
        "ltl": ("Spot", "About 10 minutes"),
        "propositional": ("python-sat; py-aiger-sat", "About 10 minutes"),
        "walks": ("drawing formula after formula", "About 5 minutes"),
    },
}
"""By group and name: the peer, and what all commands take on one thread of a CPU, estimated."""
GONE = {
    "ac75e26e": (
        *("archive/adacos", "archive/all_streams", "archive/checkpoints", "archive/dual_part"),
        *("archive/extrapolation", "archive/figure5", "archive/folnet", "archive/glue"),
        *("archive/linear", "archive/new_names", "archive/operators", "archive/retrofit_study"),
        *("archive/retrofit_texts", "archive/segment_positions", "archive/stream_numbers"),
    ),
    "74fd9546": (
        *("answer_grammar", "chats", "clutrr", "encodings", "geometric_pretrained"),
        *("geometric_study", "growth", "memory", "names_benchmark", "relational", "rxnfp"),
        *("solving", "streams"),
    ),
    "0420178b": ("kinship_pairs",),
}
"""The last commit that has them -> benchmarks whose results are settled, and which git keeps."""


def described(script: Path) -> str:
    """What a benchmark measures."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def scripts(folder: Path) -> dict[str, Path]:
    """The benchmarks in a folder, by name."""
    return {
        path.stem: path
        for path in sorted(folder.glob("*.py"))
        if path.stem not in NO_BENCHMARKS and '__name__ == "__main__"' in path.read_text("utf-8")
    }


@cache
def recorded() -> dict[str, str]:
    """The command that measured each result."""
    return store.commands()


def commands(name: str) -> dict[str, str]:
    """The commands of a benchmark, or of one result, by result."""
    stored = recorded()
    if name == "studies":
        return {result: line for result, line in stored.items() if result.startswith("studies/")}
    if written := {result: line for result, line in stored.items() if script_of(line) == name}:
        return written
    if name in scripts(FOLDER):
        return {"no file": f"python {FOLDER.name}/{name}.py"}
    if name in stored:
        return {name: stored[name]}
    raise SystemExit(f"{name} is neither a benchmark nor a result: python benchmarks lists all")


def script_of(command: str) -> str:
    """The script that a command starts, as `GONE` names it."""
    return shlex.split(command)[1].removeprefix(f"{FOLDER.name}/").removesuffix(".py")


def last_commit(command: str) -> str | None:
    """The last commit in which a command runs; None where it runs in this one."""
    script = script_of(command)
    return next((commit for commit, gone in GONE.items() if script in gone), None)


def headed(result: str, command: str) -> str:
    """A command behind its result, and behind the commit in which it runs, if that is another."""
    commit = last_commit(command)
    where = f"# in git: git worktree add ../{commit} {commit}\n" if commit else ""
    return f"# {result}\n{where}{command}"


def entry(name: str, text: str, peer: str = "", minutes: str = "") -> str:
    """A benchmark in the list."""
    facts = [f"Peer: {peer}."] * bool(peer) + [f"{minutes}."] * bool(minutes)
    facts.append(f"Writes {', '.join(commands(name))}.")
    lines = (textwrap.wrap(part, 76, break_on_hyphens=False) for part in (text, " ".join(facts)))
    head, *rest = chain(*lines)
    return f"  {name:<20}  {head}\n" + textwrap.indent("\n".join(rest), " " * 24)


def listed() -> Iterator[str]:
    """The list of the benchmarks that are kept."""
    found = {name: described(path) for name, path in scripts(FOLDER).items()}
    found["studies"] = described(FOLDER / "studies" / "__main__.py")
    for group, names in KEPT.items():
        yield f"\n{group}"
        for name, facts in names.items():
            yield entry(name, found.pop(name), *facts)
    if found:
        yield "\nNot sorted yet"
        yield from (entry(name, text) for name, text in found.items())
    evaluations = [name for name in recorded() if name.startswith("evaluations/")]
    yield "\nEvaluations\n" + textwrap.fill(
        ", ".join(evaluations), 100, initial_indent="  ", break_on_hyphens=False
    )
    yield "\npython benchmarks NAME prints the commands; python benchmarks archive what is settled."


def shown(result: str) -> str:
    """What people read of a result.

    Raises:
        SystemExit: there is none.
    """
    if result not in recorded():
        raise SystemExit(f"the store has no result {result!r}: python benchmarks lists all")
    found = store.read(result)
    parts = [f"`{found['command']}`", measure.describe(found["conditions"]), found["text"]]
    return "\n\n".join(part for part in parts if part)


def settled() -> Iterator[str]:
    """The commands whose script was taken away."""
    yield from (headed(*each) for each in recorded().items() if last_commit(each[1]))


def main(argv: Sequence[str] | None = None) -> None:
    """List benchmarks, or print commands."""
    known = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser("python benchmarks", **known)
    parser.add_argument("name", nargs="?", help="a benchmark, a result, `archive` or `show`")
    parser.add_argument("result", nargs="?", help="that is shown")
    name, result = vars(parser.parse_args(argv)).values()
    if (name == SHOW) != (result is not None):
        parser.error("`show` takes a result, and nothing else does")
    if name is None:
        print("\n".join(listed()).lstrip())
    elif name == SHOW:
        print(shown(result))
    elif name == ARCHIVE:
        print("\n".join(settled()))
    else:
        print("\n".join(headed(*each) for each in commands(name).items()))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # quiet where `head` has read enough
    main()
