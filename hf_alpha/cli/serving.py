"""`hf-alpha demo` and `serve`: a page and an address at which a model answers."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import quiet_bars, say
from hf_alpha.cli.options import Device, ModelsTask, grouped, may_trust, refuse
from hf_alpha.folders import checkpoint_place
from hf_alpha.serve import Limits


@may_trust("model")
def demo(
    command: typer.Context,
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
    for place in model or ():
        checkpoint_place(place)
    if not model:
        refuse(command, ["task"], "says what a model of yours solves, and no --model is named")
    from hf_alpha.demo.choices import page_choices
    from hf_alpha.demo.server import serve

    choices = page_choices(model or (), task, device)
    page = serve(choices, port=port)
    say(f"{page.local_url} (stop with Ctrl-C)")
    page.block_thread()


@grouped
@may_trust("model")
def serve(
    model: Annotated[str, typer.Argument(help="Folder or Hub name.")],
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for other machines too.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="HF_ALPHA_API_KEY", help="What clients have to know. Others see a command line."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; by default its folder's name.")
    ] = None,
    device: Device = "auto",
    limits: Limits,
) -> None:
    r"""Serve a model to OpenAI's clients: /v1/chat/completions, /v1/completions, /v1/models.

    Answers are in the names of each text, streamed or at once. It listens on this machine alone
    unless --host says otherwise. It needs:

    pip install -e '.\[serve]'
    """
    checkpoint_place(model)
    quiet_bars()
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.processes import choose_device
    from hf_alpha.serve.engine import Engine
    from hf_alpha.serve.reading import prepare
    from hf_alpha.serve.server import LOOPBACK, Api
    from hf_alpha.serve.server import serve as serve_api

    prepare()
    weights, tokenizer = load_checkpoint(model)
    engine = Engine(weights.to(choose_device(device)), tokenizer, limits)
    if not api_key and host not in LOOPBACK:
        say(f"warning: whoever reaches {host} may ask: set HF_ALPHA_API_KEY", err=True)
    called = name or (Path(model).resolve().name if Path(model).is_dir() else model)
    serve_api(Api(engine, called, api_key), host, port, say)
