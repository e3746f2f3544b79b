import inspect
import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
import typer

from hf_alpha.cli.evaluate import row_names
from hf_alpha.cli.options import grouped, integers, names_of

WIDTH = typer.Option(help="How wide.")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    PANEL: ClassVar[str] = "Sizes"
    width: Annotated[int, WIDTH] = 3
    height: Annotated[int, WIDTH]


def test_a_command_gets_its_groups_filled():
    @grouped
    def command(sizes: Sizes, name: Annotated[str, typer.Argument(help="Whose.")]) -> None:
        calls.append((sizes, name))

    calls: list[tuple[Sizes, str]] = []
    command(width=4, height=5, name="a")  # type: ignore[call-arg]
    assert calls == [(Sizes(width=4, height=5), "a")] and names_of(Sizes) == ["width", "height"]
    width, height, name = inspect.signature(command).parameters.values()
    assert (width.name, width.default, width.annotation.__metadata__[0].rich_help_panel) == (
        "width", 3, "Sizes",
    )  # fmt: skip
    assert height.default is inspect.Parameter.empty and name.name == "name"
    assert WIDTH.rich_help_panel is None, "an option may be in groups of several commands"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", [3]),
        ("1-4", [1, 2, 3, 4]),
        (" 5-7,1, 2 ", [1, 2, 5, 6, 7]),
        ("2-3,3-4", [2, 3, 4]),
        ("0", [0]),
    ],
)
def test_integers(text, numbers):
    assert integers(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-2-3", "1,,2", "1.5", "4-2", "1 2"])
def test_what_is_no_integers(text):
    with pytest.raises(ValueError, match=re.escape(text.strip() or "''")):
        integers(text)


def test_row_names_differ():
    assert row_names(["runs/small/", "me/large"]) == ["small", "large"]
    assert row_names(["runs/one/model", "runs/two/model"]) == ["runs/one/model", "runs/two/model"]
    with pytest.raises(ValueError, match="given twice"):
        row_names(["a", "a"])
