"""What commands and options were called in the version before, and what is written now.

Old command lines are rewritten before anything else reads them, with a line on standard error. All
of this is to be left out in version 0.4.
"""

from collections.abc import Sequence

from hf_alpha.cli.common import say

MOVED_OUT = {
    "grow": "python -m benchmarks.studies.grow (in a checkout of the repository)",
    "reproduce": "python -m benchmarks.studies (in a checkout of the repository)",
    "zero-shot": "python -m benchmarks.studies.zero_shot (in a checkout of the repository)",
}
"""Commands that are no part of the package any more -> what to write."""
RENAMED = {
    "env": ("", "info"),
    "perturb": ("DATA OUT", "generate-data OUT --copy-of DATA"),
    "convert-folnet": ("SETTINGS WEIGHTS OUT", "convert SETTINGS OUT --weights WEIGHTS"),
    "convert-geometric": ("MODEL TRANSDUCER OUT", "convert MODEL OUT --transducer TRANSDUCER"),
}
"""Old command -> its arguments, and the new command with the same ones; options stay."""
ASKING = ("--few-shot", "--address", "--served", "--key-from", "--parallel", "--generation")
"""Options of `evaluate` with which it did what `ask` does now."""
OF_EVALUATE = ("--by", "--card", "--draws", "--license", "--top-n")
"""Options of `evaluate` that `ask` lacks."""
FLAGS = ("--help", "-h", "--trust-remote-code", "--quiet", "--few-shot", "--card")
"""Options without a value, of the commands above."""


def renewed(command: str, arguments: Sequence[str]) -> list[str]:
    """Return a command line as it is written now, and say so where it was an old one.

    Args:
        command: of `hf-alpha`.
        arguments: what follows it.

    Raises:
        ValueError: there is no such command any more, or too few arguments for the new one.
    """
    if command in MOVED_OUT:
        new = MOVED_OUT[command]
        raise ValueError(f"`hf-alpha {command}` is no command any more: write {new}")
    if command in RENAMED:
        return _renamed(command, arguments)
    if command == "evaluate" and (old := _old_option(arguments)):
        say(f"`hf-alpha evaluate {old}` is now `hf-alpha ask`: see its --help", err=True)
        return ["ask", *_asking(arguments)]
    return [command, *arguments]


def _renamed(command: str, arguments: Sequence[str]) -> list[str]:
    """Put the arguments of an old command where the new one has them."""
    old, new = RENAMED[command]
    usage = f"`hf-alpha {new}`"
    name, *places = new.split()
    if {"--help", "-h"} & {*arguments}:
        say(f"`hf-alpha {command}` is now {usage}", err=True)
        return [name, "--help"]
    words, options = _split(arguments)
    if len(words) != len(old.split()):
        raise ValueError(f"`hf-alpha {command}` is now {usage}: write that")
    say(f"`hf-alpha {command}` is now {usage}", err=True)
    by_name = dict(zip(old.split(), words, strict=True))
    return [name, *options, *(by_name.get(place, place) for place in places)]


def _old_option(arguments: Sequence[str]) -> str | None:
    """Return the first option that `evaluate` has no more; None if there is none."""
    options = (word.partition("=")[0] for word in arguments)
    return next((option for option in options if option in ASKING), None)


def _asking(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `ask`, in which a service is a model, NAME@ADDRESS."""
    models, words = _split(arguments)
    options, values = [], {}
    for word in words:
        name, _, value = word.partition("=")
        if name in OF_EVALUATE:
            raise ValueError(
                f"{name} is for hf-alpha evaluate, and models that are asked by a prompt are for "
                f"hf-alpha ask: leave out {name}, or evaluate the models that it is for apart"
            )
        if name in ("--address", "--served"):
            values[name] = value
        elif name != "--few-shot":
            options.append(word)
    if values:
        if len(values) < 2:
            raise ValueError("write a service as NAME@ADDRESS: some-model@http://localhost:8000/v1")
        models.append(f"{values['--served']}@{values['--address']}")
    return [*options, "--", *models]


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return arguments, and options, each with its value as `--option=value`."""
    positionals: list[str] = []
    options: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            positionals += words
        elif not word.startswith("-"):
            positionals.append(word)
        elif "=" in word or word in FLAGS:
            options.append(word)
        else:
            options.append(f"{word}={next(words, '')}")
    return positionals, options


__all__ = ["MOVED_OUT", "RENAMED", "renewed"]
