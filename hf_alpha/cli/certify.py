"""`hf-alpha certify`: does anything that reaches a model depend on names?"""

import json
from collections.abc import Iterator
from itertools import chain, islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hf_alpha.answer.solving import Line
from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import contents_of, say
from hf_alpha.cli.options import argument, may_trust, option, refuse_options
from hf_alpha.io.folders import write_text
from hf_alpha.processes import is_first, own_share, several_asked_for

if TYPE_CHECKING:
    from hf_alpha.modeling.names_in_text import NameFinder


@may_trust("model")
def certify(
    command: typer.Context,
    file: Path = argument(
        "Lines of JSON with `messages` (and `tools`), `prompt` or `source`; rows of other "
        "files; or lines of text (*.txt)."
    ),
    names: list[str] = option(
        "Which words are names: '{rule: tools}', '\\[a-z]+', or person='\\[A-Z]\\w+', "
        "once for each class.",
        ...,
    ),
    source: str | None = option("Column of the texts; of tables, by default `source`."),
    model: str | None = option(
        "Folder or Hub name of a decoder of Transformers, whose answers are compared too."
    ),
    upstream: str | None = option(
        "Address of a model, http://host:8000/v1, in place of --model. Its key is OPENAI_API_KEY."
    ),
    upstream_model: str = option("What the address calls the model.", "default"),
    max_tokens: int = option("Of an answer.", 128, min=1),
    out: Path | None = option("File for all figures, as JSON; it must not exist."),
) -> None:
    """Rename what is only a name, in ways made to break it; does it make a difference?

    Names are swapped, and called by misleading, reserved and very long words, in other scripts, and
    as the words that stand for names. Do the bytes that would reach a model by canonical spelling
    stay the same? With a model: do its answers, if it is asked as it is (plain) and in canonical
    spelling? The exit status is 1 if anything changes in canonical spelling.

    On several GPUs: accelerate launch -m hf_alpha certify FILE ... --model MODEL. Each process asks
    about a share of the texts, and all of them tell the whole.
    """
    from hf_alpha.alias.certificate import SWAPPED, Certificate, shown
    from hf_alpha.alias.certificate import certify as certify_requests
    from hf_alpha.checkpoints.imported_code import import_functions
    from hf_alpha.io.plain_text import counted
    from hf_alpha.modeling.canonical_names import CanonicalNames
    from hf_alpha.modeling.names_in_text import NameFinder
    from hf_alpha.names.given_names import read_rules

    if model is not None and upstream is not None:
        raise ValueError("--model and --upstream are two models: name one of them")
    if upstream is None:
        refuse_options(command, ["upstream_model"], "is for --upstream")
    if model is not None:
        checkpoint_place(model)
    if out is not None and out.exists():
        raise FileExistsError(f"{out} exists: name another --out")
    import_functions(finder := NameFinder(read_rules(names)))
    canonical = CanonicalNames(finder)
    requests = _requests(file, finder, source)  # a column that is missing is told first
    ask: Any = None
    if upstream is not None:
        ask = _address(upstream, upstream_model, max_tokens)
    elif model is not None:
        ask = _folder(model, max_tokens)
    made = certify_requests(requests, canonical, ask, own_share())
    if several_asked_for():
        from hf_alpha.processes import gather, process_state

        made = sum(gather([made], process_state()), Certificate())
    if not made.renamings:
        why = "no other name fits the rules" if made.names else "the rules find no name"
        raise ValueError(f"{file}: nothing was renamed, in {counted(made.texts, 'text')}: {why}")
    if out is not None and is_first():
        write_text(out, json.dumps(made.to_dict(), ensure_ascii=False, indent=1) + "\n")
    say(f"{made}")
    if made.renamings.keys() == {SWAPPED}:
        say("renamed by names of the same text alone: no other name fits the rules", err=True)
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


def _requests(file: Path, finder: "NameFinder", source: str | None) -> Iterator[dict[str, Any]]:
    """Give the requests of a file; the first one is read at once.

    Raises:
        ValueError: there is none: a certificate would say that nothing was renamed.
    """
    from hf_alpha.alias.certificate import request_of
    from hf_alpha.data.formats import BINARY, kind_of

    columns = dict.fromkeys(finder.columns.values(), "")
    if source is not None or kind_of(file) not in BINARY:  # which may hold chats
        columns = {source or "source": "--source", **columns}
    contents = contents_of(file, columns)

    def read(line: Line, content: Any) -> dict[str, Any]:
        if line.error is not None:
            raise ValueError(line.error)
        return request_of(content, line.place, finder, source)

    filled = (pair for pair in contents if pair[0].error or pair[0].strip())
    first = [read(*pair) for pair in islice(filled, 1)]
    if not first:
        raise ValueError(f"{file} holds no text: it is empty")
    return chain(first, starmap(read, filled))


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
    from transformers import AutoModelForCausalLM

    from hf_alpha.canonical import answering
    from hf_alpha.loading import auto_class, load_config, load_host
    from hf_alpha.processes import choose_device

    if auto_class(load_config(place)) is not AutoModelForCausalLM:
        raise ValueError(f"--model {place}: it is no decoder, which goes on from a chat or text")
    weights, tokenizer = load_host(place, AutoModelForCausalLM)
    return answering(weights.to(choose_device("auto")).eval(), tokenizer, max_tokens)
