"""The command line: `hf-alpha COMMAND`. Each command imports what it needs when it runs."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from hf_alpha.cli import (
    compare,
    convert,
    data,
    evaluate,
    quickstart,
    reproduce,
    share,
    solve,
    train,
    transduce,
    zero_shot,
)
from hf_alpha.cli.common import quiet_bars, say

COMMANDS: dict[str, Callable[..., None]] = {
    "generate-data": data.generate_data,
    "perturb": data.perturb,
    "train": train.train,
    "convert": convert.convert,
    "convert-folnet": convert.convert_folnet,
    "convert-geometric": convert.convert_geometric,
    "grow": convert.grow,
    "evaluate": evaluate.evaluate,
    "zero-shot": zero_shot.zero_shot,
    "compare": compare.compare,
    "reproduce": reproduce.reproduce,
    "solve": solve.solve,
    "transduce": transduce.transduce,
    "release": share.release,
    "info": share.info,
    "env": share.env,
    "push": share.push,
    "quickstart": quickstart.quickstart,
}
"""In the order of the help."""
LATE = ("solve", "env", "transduce")
"""They do not begin by importing Transformers: formulas are read first, env is for what cannot be
imported, and transducers do not need it."""


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, unless it takes several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line as the base class does."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        once = [one for one in given if not one.multiple]
        if twice := next((one for one in once if once.count(one) > 1), None):
            ctx.fail(f"{twice.opts[0]} is given twice: all but one would have no effect")
        return super().parse_args(ctx, args)


app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Train, convert, evaluate and share models that do not care how symbols are named.",
)
for name, command in COMMANDS.items():
    app.command(name, cls=OnceCommand)(command)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"hf_alpha {version('hf_alpha')}")
        raise typer.Exit


@app.callback()
def prepare(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Quiet the bars of loading and saving; our own say more."""
    if not sys.stderr.isatty():  # a log file is no place for bars
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    if context.invoked_subcommand not in LATE:
        quiet_bars()


def main() -> None:
    """Entry point: errors that the user can mend are one line, others keep their traceback."""
    try:
        app(prog_name="hf-alpha")
    except Exception as error:
        message = _what_to_mend(error)
        if message is None:
            raise
        _fail(message)


def _fail(message: str) -> NoReturn:
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    say(message, err=True)
    sys.exit(2)


def _what_to_mend(error: Exception) -> str | None:
    """What a user reads of an error that can be mended; None for any other."""
    from huggingface_hub.errors import StrictDataclassError
    from huggingface_hub.utils import httpx
    from safetensors import SafetensorError

    if isinstance(error, httpx.RequestError):
        return f"{error.request.url} cannot be reached: {error}"
    named = (ValueError, OSError, ImportError, StrictDataclassError, SafetensorError)
    return str(error) if isinstance(error, (*named, httpx.HTTPError)) else None


__all__ = ["app", "main"]
