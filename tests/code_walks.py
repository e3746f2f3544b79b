"""Count how often a reader has to go back to a file: `python tests/code_walks.py [CHECKOUT]`.

Four commands are run and followed: `train` up to the first loss, `evaluate` of the model of that
run, `solve` of a formula by it, and `convert` of a T5. Each function of the package counts where it
is first called, in this order, whoever calls it: also through a callable that was handed on, in
another thread, and in what a library calls back. What runs while a module is imported does not
count. A pass is a change from one file to another, a return a pass to a file in which the reader
has been. The model itself (`modeling/`) is left out: it is read by itself.
"""

import contextlib
import io
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

CHECKOUT = Path(__file__).resolve().parents[1]
LEFT_OUT = "modeling/"


class Walk:
    """A function for `sys.setprofile` that notes the files of functions as they are first called.

    Args:
        package: the folder of the package.
        last: the qualified name of the function at which the walk ends.
    """

    def __init__(self, package: Path, last: str):
        self.package, self.last = f"{package}{os.sep}", last
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
        if event != "call" or self._imports or self._ended or code in self._seen:
            return
        self._seen.add(code)
        if code.co_name.startswith("<") or not code.co_filename.startswith(self.package):
            return
        self._ended = code.co_qualname == self.last
        name = code.co_filename.removeprefix(self.package).replace(os.sep, "/")
        if not name.startswith(LEFT_OUT):
            self.functions.append((name, code.co_qualname))

    def __str__(self) -> str:
        names = [name for name, _ in self.functions]
        passes = [name for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
        files = len(set(passes))
        return f"{files} files, {len(passes)} passes, {len(passes) - files} returns"

    def follow(self, *arguments: str) -> "Walk":
        """Run a command; return this walk along it."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            run(*arguments)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        return self


def run(*arguments: str) -> None:
    """Run a command of the package silently."""
    from hf_alpha.cli import main

    sys.argv = ["hf-alpha", *arguments]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
    except SystemExit as end:
        if "error:" in printed.getvalue():  # an answer that is wrong is none
            raise SystemExit(f"{' '.join(arguments)}: {printed.getvalue()}") from end


def save_host(folder: str) -> None:
    """Write a small T5."""
    from hosts import make_host
    from small_tokenizers import unigram

    tokenizer = unigram(end=True)
    make_host("t5", vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    """Print what the walks cost; with `--verbose`, each function."""
    arguments = [each for each in sys.argv[1:] if each != "--verbose"]
    verbose = len(arguments) < len(sys.argv[1:])
    checkout = Path(arguments[0]).resolve() if arguments else CHECKOUT
    sys.path[:0] = [str(checkout), str(checkout / "tests")]
    os.chdir(checkout)
    package = checkout / "hf_alpha"
    with tempfile.TemporaryDirectory() as folder:
        data, model = f"{folder}/data", f"{folder}/run"
        recipe = ["propositional/debug", f"data.path={data}", "training.disable_tqdm=true"]
        recipe += ["training.max_steps=2", "training.eval_steps=2", "training.save_steps=2"]
        run("train", *recipe, f"training.output_dir={folder}/first")  # data are made once
        save_host(f"{folder}/host")
        asked = [model, "--data", data, "--samples", "2", "--out", f"{folder}/report"]
        for command, last, told in (
            ("train", "SymbolHead.predict", [*recipe, f"training.output_dir={model}"]),
            ("evaluate", "", asked),
            ("solve", "", ["a & b", "--model", model, "--method", "model"]),
            ("convert", "", [f"{folder}/host", f"{folder}/converted", "--symbols", "4"]),
        ):
            walk = Walk(package, last).follow(command, *told)
            print(f"{command:<10} {walk}")
            if verbose:
                print(*(f"    {name}: {function}" for name, function in walk.functions), sep="\n")


if __name__ == "__main__":
    main()
