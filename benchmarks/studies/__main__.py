"""The tables of the papers, measured again: `python -m benchmarks.studies`."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli import run_command
from hf_alpha.cli.common import say
from hf_alpha.cli.options import integers, refuse_options
from hf_alpha.modeling.choices import check_known
from hf_alpha.train import Interrupted

from . import FOLDER
from .document import write_document as write
from .run import overview, reproduce
from .sizes import SIZES
from .tables import TABLES


def studies(
    command: typer.Context,
    table: Annotated[
        str | None, typer.Argument(help="Which one; without it they are listed.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="cpu (minutes for each row), or full (the papers', for a GPU).")
    ] = "cpu",
    seeds: Annotated[str, typer.Option(help="Of weights and batches.")] = "0,1",
    only: Annotated[
        str | None, typer.Option(help="Rows, or patterns such as '*-normal', with commas.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder for models, problems and reports.")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path, typer.Option(help="Folder of the store of results.")] = FOLDER,
    write_document: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md", help="Write a page of all that is measured, with pictures beside it."
        ),
    ] = None,
) -> None:
    """Measure a table of the papers again: train and test what is missing of it.

    A run that was killed goes on where it stopped. What is done is not done again.
    """
    check_known("size", size, SIZES)
    check_known("table", table, TABLES)
    if table is None:
        refuse_options(command, ["only"], "is for a table, and none is named")
    else:
        rows = [] if only is None else only.split(",")
        try:
            reproduce(TABLES[table], SIZES[size], integers(seeds), rows, runs, out, say)
        except Interrupted as stop:
            say(str(stop), err=True)
            raise typer.Exit(130) from None
    if write_document is not None:
        write(TABLES.values(), SIZES.values(), out, write_document)
        say(f"{write_document} is written")
    elif table is None:
        say(overview(TABLES.values(), SIZES[size], integers(seeds), runs, out))


def main() -> None:
    """Entry point."""
    run_command(studies, "python -m benchmarks.studies")


if __name__ == "__main__":
    main()
