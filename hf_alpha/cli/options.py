"""Options that several commands have, and how values of options are read."""

import copy
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import Field, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from hf_alpha.tasks.registry import DEFAULT_TASK, built_in_tasks
from hf_alpha.trust import TRUST_OPTION, trusting

TASKS = ", ".join(built_in_tasks())
ModelsTask = Annotated[
    str | None,
    typer.Option(
        help=f"What is solved: {TASKS}, or package.module:Class of your own; by default what the "
        f"model's recipe.yaml or tokenizer says; without one, {DEFAULT_TASK}."
    ),
]
Beams = Annotated[
    int | None, typer.Option(min=1, help="Number of beams, 1 for greedy; by default the task's.")
]
Seed = Annotated[int, typer.Option(help="Everything drawn is a function of it.")]
Device = Annotated[str, typer.Option(help="auto (an accelerator if there is one), cpu, cuda:1")]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Changes: training.max_steps=100 model.d_model=64")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        TRUST_OPTION,
        help="Run the code that the model's folder or repository names: for what you know and "
        "trust. It holds for this command.",
    ),
]


def option(meaning: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option, in the place of its default; `...` is for one that has to be given."""
    return typer.Option(default, help=meaning, **settings)


def flag(name: str, meaning: str, **settings: Any) -> Any:
    """Declare an option that has no value, and is off by default."""
    return typer.Option(False, name, help=meaning, **settings)


def argument(meaning: str, default: Any = ..., **settings: Any) -> Any:
    """Declare an argument, in the place of its default; by default, it has to be given."""
    return typer.Argument(default, help=meaning, **settings)


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, unless it takes several values.

    Its help is as wide as the terminal: lines of a paragraph end where there is no more room.
    """

    def __init__(self, *args: Any, help: str | None = None, **settings: Any):
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(help or ""))
        super().__init__(*args, help=text, **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line as the base class does."""
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        single_valued = [one for one in parameters if not one.multiple]
        if twice := next((one for one in single_valued if single_valued.count(one) > 1), None):
            ctx.fail(f"{twice.opts[0]} is given twice: all but one would have no effect")
        return super().parse_args(ctx, args)


def may_trust(*arguments: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the option to obey the code of models; a decorator.

    Args:
        arguments: of the command, with folders or Hub names, or lists of them.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(trust_remote_code: bool = False, **values: Any) -> None:
            places: list[Any] = []
            for name in arguments if trust_remote_code else ():
                places += values[name] if isinstance(values[name], list) else [values[name]]
            with trusting(*places):
                command(**values)

        option = inspect.Parameter(
            "trust_remote_code", inspect.Parameter.KEYWORD_ONLY, default=False,
            annotation=TrustRemoteCode,
        )  # fmt: skip
        return _with_parameters(run, [*inspect.signature(command).parameters.values(), option])

    return decorate


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each group that it has as a parameter; a decorator.

    A group is a dataclass whose fields are options, declared as those of a command. Its `PANEL` is
    their heading in the help.
    """
    parameters = inspect.signature(command).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        filled = {
            name: group(**{option: arguments.pop(option) for option in names_of(group)})
            for name, group in groups.items()
        }
        command(**arguments, **filled)

    expanded: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        expanded += _options_of(groups[name]) if name in groups else [parameter]
    return _with_parameters(run, expanded)


def names_of(*groups: Any) -> list[str]:
    """Return the names of all options of groups."""
    return [field.name for group in groups for field in fields(group)]


def _options_of(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)

    def parameter(field: "Field[Any]") -> inspect.Parameter:
        kind, default = hints[field.name], copy.copy(field.default)
        if isinstance(default, OptionInfo):
            default.rich_help_panel = group.PANEL
        else:  # one that several commands have
            kind, declared = get_args(kind)
            declared = copy.copy(declared)
            declared.rich_help_panel = group.PANEL
            kind = Annotated[kind, declared]
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(field.name, keyword, default=default, annotation=kind)

    return [parameter(field) for field in fields(group)]


def _with_parameters(
    run: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """Say which parameters a wrapped command has; all of them are given by name."""
    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in keyword_only}
    return run


def integers(text: str) -> list[int]:
    """Read `3`, `1-8` or `1,2,5-7` as sorted numbers.

    Raises:
        ValueError: the text is something else.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise ValueError(f"{text!r} is no range of numbers: write 3, 1-8 or 1,2,5-7")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f"{part.strip()!r} is an empty range: write {last}-{first}")
        numbers.update(range(first, last + 1))
    return sorted(numbers)


def refuse_options(command: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options of a command that would have no effect.

    Raises:
        ValueError: with the first one that is on the command line.
    """
    option_names = {parameter.name: parameter.opts[0] for parameter in command.command.params}
    for name in names:
        source = command.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{option_names[name]} {why}: leave it out")
