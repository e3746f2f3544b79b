"""`hf-alpha certify`: does anything that reaches a model depend on names?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hf_alpha.cli.common import quiet_bars, say
from hf_alpha.cli.options import may_trust, refuse_options
from hf_alpha.io.folders import write_text


@may_trust("model")
def certify(
    command: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="Lines of JSON with `messages` (and `tools`), `prompt` or `source`; or lines of "
            "text."
        ),
    ],
    names: Annotated[
        list[str],
        typer.Option(
            help="Which words are names: '{rule: tools}', '\\[a-z]+', or person='\\[A-Z]\\w+', "
            "once for each class."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Folder or Hub name of a decoder of Transformers, whose answers are compared too."
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            help="Address of a model, http://host:8000/v1, in place of --model. Its key is "
            "OPENAI_API_KEY."
        ),
    ] = None,
    upstream_model: Annotated[
        str, typer.Option(help="What the address calls the model.")
    ] = "default",
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer.")] = 128,
    out: Annotated[
        Path | None, typer.Option(help="File for all figures, as JSON; it must not exist.")
    ] = None,
) -> None:
    """Rename what is only a name, in ways made to break it; does it make a difference?

    Names are swapped, and called by misleading, reserved and very long words, in other scripts, and
    as the words that stand for names. Do the bytes that would reach a model by canonical spelling
    stay the same? With a model: do its answers, if it is asked as it is (plain) and in canonical
    spelling? The exit status is 1 if anything changes in canonical spelling.
    """
    from hf_alpha.alias.certificate import certify as certify_requests
    from hf_alpha.alias.certificate import read_requests, shown
    from hf_alpha.checkpoints.imported_code import import_functions
    from hf_alpha.modeling.canonical_names import CanonicalNames
    from hf_alpha.modeling.names_in_text import NameFinder
    from hf_alpha.names.given_names import read_rules

    if model is not None and upstream is not None:
        raise ValueError("--model and --upstream are two models: name one of them")
    if upstream is None:
        refuse_options(command, ["upstream_model"], "is for --upstream")
    if out is not None and out.exists():
        raise FileExistsError(f"{out} exists: name another --out")
    import_functions(finder := NameFinder(read_rules(names)))
    canonical = CanonicalNames(finder)
    ask: Any = None
    if upstream is not None:
        ask = _address(upstream, upstream_model, max_tokens)
    elif model is not None:
        ask = _folder(model, max_tokens)
    made = certify_requests(read_requests(file, canonical.finder), canonical, ask)
    if out is not None:
        write_text(out, json.dumps(made.to_dict(), ensure_ascii=False, indent=1) + "\n")
    say(f"{made}")
    if made.undescribed:
        say(f"only their names say what these are for: {shown(made.undescribed)}", err=True)
    if made.like_names:
        say(f"not found, though they look like names: {shown(made.like_names)}", err=True)
    if made.parts_left:
        say(f"parts of names that reach the model: {shown(made.parts_left)}", err=True)
    for told, rows in (("sent otherwise", made.differing), ("answered otherwise", made.changed)):
        for number, kind in rows[:3]:
            say(f"{told}: text {number + 1}, names {kind}", err=True)
    raise typer.Exit(0 if made.holds else 1)


def _address(upstream: str, model: str, max_tokens: int) -> Any:
    """Return what asks an address, greedily."""
    import os

    import httpx2

    key = os.environ.get("OPENAI_API_KEY", "none")
    client = httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=600)

    def ask(body: dict[str, Any]) -> Any:
        path = "/chat/completions" if "messages" in body else "/completions"
        sent = {"model": model, "temperature": 0, "max_tokens": max_tokens, **body}
        response = client.post(upstream.rstrip("/") + path, json=sent)
        if response.status_code != 200:
            raise ValueError(f"{upstream} answers {response.status_code}: {response.text[:300]}")
        return response.json()

    return ask


def _folder(place: str, max_tokens: int) -> Any:
    """Return what asks a model of this process, greedily."""
    quiet_bars()
    from transformers import AutoModelForCausalLM

    from hf_alpha.canonical import answering
    from hf_alpha.loading import auto_class, load_config, load_host
    from hf_alpha.processes import choose_device

    if auto_class(load_config(place)) is not AutoModelForCausalLM:
        raise ValueError(f"--model {place}: it is no decoder, which goes on from a chat or text")
    weights, tokenizer = load_host(place, AutoModelForCausalLM)
    return answering(weights.to(choose_device("auto")).eval(), tokenizer, max_tokens)
