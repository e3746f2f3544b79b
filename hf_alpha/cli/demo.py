"""`hf-alpha demo`: a page in the browser that answers, checks, explains and renames."""

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
    device: Device = "auto",
) -> None:
    r"""Start a page in the browser: problems are answered, checked, explained and renamed.

    It listens on this machine alone, and offers programs an API. It needs Gradio:

    pip install -e '.\[demo]'
    """
    check_places(*model or ())
    if task is not None and not model:
        raise ValueError("--task says what a model of yours solves: name it with --model")
    from hf_alpha.demo.choices import page_choices
    from hf_alpha.demo.server import serve

    choices = page_choices(model or (), task, device)
    page = serve(choices, port=port)
    say(f"{page.local_url} (stop with Ctrl-C)")
    page.block_thread()


__all__ = ["demo"]
