"""`hf-alpha demo` and `serve`: a page and an address at which a model answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import say
from hf_alpha.cli.options import (
    Device,
    ModelsTask,
    argument,
    grouped,
    may_trust,
    names_of,
    option,
    refuse_options,
)
from hf_alpha.serve import Limits


@may_trust("model")
def demo(
    command: typer.Context,
    model: list[str] | None = option(
        "Folder or Hub name of a model that answers; may be repeated. By default the released ones."
    ),
    task: ModelsTask = None,
    port: int | None = option("By default the first free one from 7860 on.", min=1, max=65535),
    device: Device = "auto",
) -> None:
    r"""Start a page in the browser: problems are answered, checked, explained and renamed.

    It listens on this machine alone, and offers programs an API. It needs Gradio:

    pip install -e '.\[demo]'
    """
    for place in model or ():
        checkpoint_place(place)
    if not model:
        refuse_options(
            command, ["task"], "says what a model of yours solves, and no --model is named"
        )
    from hf_alpha.demo.choices import page_choices
    from hf_alpha.demo.server import serve

    choices = page_choices(model or (), task, device)
    page = serve(choices, port=port)
    say(f"{page.local_url} (stop with Ctrl-C)")
    page.block_thread()


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """Another address that answers, and what it reads of names."""

    PANEL: ClassVar[str] = "In front of another server"
    upstream: str | None = option(
        "Its address, http://host:8000/v1, in place of a model of this process."
    )
    names: list[str] | None = option(
        "Which words are names: '{rule: tools}', '\\[a-z]+', or person='\\[A-Z]\\w+', "
        "once for each class."
    )
    words: list[str] | None = option(
        "What stands for names: the stem of words, tool_, or person=Person for a class."
    )
    upstream_key: str | None = option(
        "Its key; by default each client's own, unless clients have to know --api-key.",
        envvar="HF_ALPHA_UPSTREAM_KEY",
    )


@grouped
@may_trust("model")
def serve(
    command: typer.Context,
    model: str | None = argument("Folder or Hub name.", None),
    *,
    host: str = option("Address to listen on; 0.0.0.0 for other machines too.", "127.0.0.1"),
    port: int = option("0 for any that is free.", 8000, min=0, max=65535),
    api_key: str | None = option(
        "What clients have to know. Others see a command line.", envvar="HF_ALPHA_API_KEY"
    ),
    name: str | None = option("What clients call the model; by default its folder's name."),
    device: Device = "auto",
    other: Upstream,
    limits: Limits,
) -> None:
    r"""Serve a model to OpenAI's clients: /v1/chat/completions, /v1/completions, /v1/models.

    hf-alpha serve --upstream http://localhost:8001/v1 --names '{rule: tools}'

    This one goes in front of another server, whose model then reads the same, whatever names are
    called; what it reads depends on nothing here but names and words.

    Answers are in the names of each text, streamed or at once. It listens on this machine alone
    unless --host says otherwise. It needs:

    pip install -e '.\[serve]'
    """
    if (model is None) == (other.upstream is None):
        raise ValueError("name a model, or the address of another server: --upstream (not both)")
    if not api_key and host not in ("127.0.0.1", "localhost"):
        say(f"warning: whoever reaches {host} may ask: set HF_ALPHA_API_KEY", err=True)
    if model is None:
        own = [name for name in names_of(Limits) if name != "timeout"]
        refuse_options(command, ["name", "device", *own], "is for a model of this process")
        return _serve_upstream(other, host, port, api_key, limits.timeout)
    refuse_options(command, ["names", "words", "upstream_key"], "is for --upstream")
    checkpoint_place(model)
    from hf_alpha.loading import load_answering
    from hf_alpha.processes import choose_device
    from hf_alpha.serve.engine import Engine
    from hf_alpha.serve.http import serve as serve_api
    from hf_alpha.serve.reading import prepare
    from hf_alpha.serve.server import Api

    prepare()
    weights, tokenizer = load_answering(model)
    engine = Engine(weights.to(choose_device(device)), tokenizer, limits)
    called = name or (Path(model).resolve().name if Path(model).is_dir() else model)
    serve_api(Api(engine, called, api_key), host, port, say)


def _serve_upstream(
    other: Upstream, host: str, port: int, api_key: str | None, timeout: float
) -> None:
    if not other.names:
        raise ValueError("--upstream needs --names: which words are names, '{rule: tools}' or so")
    from hf_alpha.checkpoints.imported_code import import_functions
    from hf_alpha.modeling.canonical_names import CanonicalNames
    from hf_alpha.modeling.names_in_text import NameFinder
    from hf_alpha.names.given_names import by_class, read_rules
    from hf_alpha.serve.gateway import Gateway
    from hf_alpha.serve.http import serve as serve_api

    rules, words = read_rules(other.names), dict[str, str]()
    for text in other.words or ():
        given = by_class(text)
        words |= dict.fromkeys(rules, given[""]) if "" in given else given
    import_functions(finder := NameFinder(rules))
    canonical = CanonicalNames(finder, words=words or None)
    gateway = Gateway(f"{other.upstream}", canonical, api_key, other.upstream_key, timeout)
    serve_api(gateway, host, port, say)
