"""The command line: `hf-alpha COMMAND`. Each command imports what it needs when it runs."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.options import OnceCommand, flag
from hf_alpha.wings import is_here, missing_library

PANELS = {
    "Train": {
        **{"train": "train", "convert": "convert"},
        **dict.fromkeys(("compare", "quickstart"), "comparing"),
    },
    "Ask": {
        **{"solve": "solve", "evaluate": "evaluate", "certify": "certify"},
        **dict.fromkeys(("demo", "serve"), "serving"),
    },
    "Share": dict.fromkeys(("release", "push", "info"), "share"),
    "Data": {"generate-data": "generate", "transduce": "transduce"},
}
"""Panel of the help -> its commands, in the order of the help -> the module of each."""


COMMANDS: dict[str, Callable[..., None]] = {
    name: getattr(import_module(f"{__name__}.{module}"), name.replace("-", "_"))
    for modules in PANELS.values()
    for name, module in modules.items()
    if is_here(f"{__name__}.{module}")
}
"""Those that are in this copy of the package."""

STYLE: dict[str, Any] = {
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
}


FIRST = """\
hf-alpha quickstart                      see in a minute what it is about
hf-alpha solve 'request & !grant'        ask a released model; a solver checks the answer
hf-alpha train my-task.yaml              train on pairs of your own (docs/your-own-task.md)
hf-alpha evaluate runs/my-task           measure what the model has learned
hf-alpha convert google-t5/t5-small out  make names of a T5's, BART's or GPT-2's words

All commands: hf-alpha --help. Where to begin: docs/start.md"""
"""What `hf-alpha` alone prints."""

app = typer.Typer(
    invoke_without_command=True,
    help="Train, convert, evaluate and share models that do not care how symbols are named.",
    **STYLE,
)
for panel, names in PANELS.items():
    for name in filter(COMMANDS.__contains__, names):
        app.command(name, cls=OnceCommand, rich_help_panel=panel)(COMMANDS[name])


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        say(f"hf_alpha {version('hf_alpha')}")
        raise typer.Exit


@app.callback()
def prepare(
    context: typer.Context,
    version: bool = flag(
        "--version", "Print the version and exit.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Print where to begin if no command is named."""
    if context.invoked_subcommand is None:
        say(FIRST)
        raise typer.Exit


def main() -> None:
    """Entry point of `hf-alpha`."""
    _run(app, "hf-alpha")


def run_command(command: Callable[..., None], name: str) -> None:
    """Run a command that is not one of `hf-alpha`, such as a study's, in the same manner."""
    program = typer.Typer(add_completion=False, **STYLE)
    program.command(cls=OnceCommand)(command)
    _run(program, name)


def _run(command_line: typer.Typer, name: str) -> None:
    _quiet_bars()
    with errors_in_one_line():
        command_line(prog_name=name)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """End the process with one line for an error that the user can mend; others are raised."""
    try:
        yield
    except Exception as error:
        message = _what_to_mend(error)
        if message is None:
            raise
        typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
        say(message, err=True)
        sys.exit(2)


def _quiet_bars() -> None:
    """Switch off the bars of loading and saving: the program's own say more.

    Those of datasets stay in a terminal: a log file is no place for bars.
    """
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()  # Transformers, which is imported later, asks whether there are some
    if transformers := sys.modules.get("transformers"):
        transformers.logging.disable_progress_bar()
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        if datasets := sys.modules.get("datasets"):  # it has read its environment already
            datasets.disable_progress_bars()


def _what_to_mend(error: Exception) -> str | None:
    """Return what a user reads of an error that can be mended; None for any other."""
    if (message := missing_library(error)) is not None:
        return message
    from huggingface_hub.errors import StrictDataclassError
    from huggingface_hub.utils import httpx
    from safetensors import SafetensorError

    if isinstance(error, httpx.RequestError):
        return f"{error.request.url} cannot be reached: {error}"
    mendable = (ValueError, OSError, ImportError, StrictDataclassError, SafetensorError)
    return str(error) if isinstance(error, (*mendable, httpx.HTTPError)) else None
