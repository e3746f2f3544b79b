"""Count how often a reader has to go back to a file: `python tests/code_walks.py`.

A command is run and followed from its call to the model: `train` up to the first loss, `evaluate`
up to the report, on data that are there. Each function of the package counts where it is first
called, in this order; what runs while a module is imported does not. A pass is a change from one
file to another, a return a pass to a file in which the reader has been. The model itself
(`modeling/`) is left out: it is read by itself.
"""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType

import hf_alpha
from hf_alpha.cli import main

PACKAGE = Path(hf_alpha.__file__).parent
LEFT_OUT = "modeling/"


class Walk:
    """A function for `sys.setprofile` that notes the files of functions as they are first called.

    Args:
        last: the qualified name of the function at which the walk ends.
    """

    def __init__(self, last: str):
        self.last = last
        self.functions: list[tuple[str, str]] = []
        self._seen: set[object] = set()
        self._imports = 0
        self._ended = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a function of the package, unless it was called before."""
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            self._imports += 1 if event == "call" else -1
            return
        path = Path(code.co_filename)
        if event != "call" or self._imports or self._ended or code in self._seen:
            return
        self._seen.add(code)
        if code.co_name.startswith("<") or PACKAGE not in path.parents:
            return
        self._ended = code.co_qualname == self.last
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(LEFT_OUT):
            self.functions.append((name, code.co_qualname))

    def __str__(self) -> str:
        names = [name for name, _ in self.functions]
        passes = [name for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
        files = len(set(passes))
        return f"{files} files, {len(passes)} passes, {len(passes) - files} returns"


def walk(last: str, *arguments: str) -> Walk:
    """Run a command and follow it up to a function."""
    followed = Walk(last)
    sys.argv = ["hf-alpha", *arguments]
    sys.setprofile(followed)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
    return followed


def print_walks(verbose: bool) -> None:
    """Print what the two walks cost; if `verbose`, each function."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(Path(__file__).resolve().parents[1])
        run, data = f"{folder}/run", f"{folder}/data"
        recipe = ["propositional/debug", f"data.path={data}", "training.disable_tqdm=true"]
        own = f"training.output_dir={folder}/first"
        asked = ["evaluate", run, "--data", data, "--samples", "2", "--out"]
        walk("", "train", *recipe, own)  # data are made once: how is a walk of its own
        walks = {
            "train": walk("SymbolHead.predict", "train", *recipe, f"training.output_dir={run}"),
            "evaluate": walk("", *asked, f"{folder}/report"),
        }
    for command, followed in walks.items():
        print(f"{command:<10} {followed}")
        if verbose:
            print(*(f"    {name}: {function}" for name, function in followed.functions), sep="\n")


if __name__ == "__main__":
    print_walks("--verbose" in sys.argv)
