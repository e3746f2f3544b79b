"""`hf-alpha demo`: a page in the browser that answers, checks, explains and renames."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import check_places, say
from hf_alpha.cli.options import Device, ModelsTask, may_trust


@may_trust("model")
def demo(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder or Hub name of a model that answers; may be repeated. By default the "
            "released ones."
        ),
    ] = None,
    task: ModelsTask = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="By default the first free one from 7860 on."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page.")] = False,
    device: Device = "auto",
    space: Annotated[
        Path | None,
        typer.Option(help="Start nothing; write the folder of a Hugging Face Space here."),
    ] = None,
) -> None:
    r"""Start a page in the browser: problems are answered, checked, explained and renamed.

    It listens on this machine alone, and offers programs an API. It needs Gradio:

    pip install -e '.\[demo]'
    """
    check_places(*model or ())
    if task is not None and not model:
        raise ValueError("--task says what a model of yours solves: name it with --model")
    from hf_alpha.demo.page import import_gradio
    from hf_alpha.demo.service import Service, page_models

    import_gradio()  # what is missing is said before models are loaded
    offered = page_models(model or (), task)
    if space is not None:
        from hf_alpha.demo.space import write_space

        write_space(offered, space)
        say(f"{space}: upload it with hf upload owner/name {space} --repo-type space")
        return
    from hf_alpha.demo.server import serve

    serve(Service(offered, device), port=port, browser=browser, say=say)


__all__ = ["demo"]
