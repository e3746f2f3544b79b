"""Build the site of the documents in build/site.

    python docs/make_site.py

The pages are README.md and what it, docs/ and CONTRIBUTING.md link to, in the folders that they
have in the repository, so that a link works there and on the site. Two parts are made: a page for
each command, from its --help, and what docstrings say of the names of docs/interface.md. A
broken link, a missing anchor, or a page of docs/ that the navigation of mkdocs.yml lacks is an
error.
"""

import inspect
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
CODE_OR_LINK = re.compile(
    r"^```.*?^```$|`[^`\n]+`|(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s#:]+)(#[^)\s]*)?\)",
    re.DOTALL | re.MULTILINE,
)
"""Code, or a link: groups 1 to 3 are its label, target and anchor. A label may hold code."""
BLOCK_START = re.compile(r"(-|\d+\.) |\|")
COMMAND = re.compile(r"^(?:hf-alpha|pip) .*$", re.MULTILINE)
"""A line of a command's help that is a command."""
FIRST = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "training/README.md")


def main() -> None:
    """Write the pages, check the navigation, and build."""
    shutil.rmtree(PAGES, ignore_errors=True)
    copy_pages([*map(ROOT.joinpath, FIRST), *sorted((ROOT / "docs").glob("*.md"))])
    write_commands()
    write_reference()
    if lost := orphans():
        sys.exit(f"not in the nav of mkdocs.yml: {', '.join(lost)}")
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "--clean",
        "-f",
        ROOT / "mkdocs.yml",
    ]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit("the site was not built: see above")


def copy_pages(files: list[Path]) -> None:
    """Copy pages and all that they link to, pages of pages too."""
    seen: set[Path] = set()
    while files:
        file = files.pop()
        if file in seen:
            continue
        seen.add(file)
        place = PAGES / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, place)
            continue
        text, linked = on_site(file)
        place.write_text(text, encoding="utf-8")
        files += linked


def on_site(file: Path) -> tuple[str, list[Path]]:
    """Return the text of a page as the site has it, and the files that it links to.

    A folder is its README.md; a link to what has none becomes plain text.

    Raises:
        FileNotFoundError: a link leads nowhere.
    """
    linked: list[Path] = []

    def follow(link: re.Match[str]) -> str:
        if link[1] is None:  # code
            return link[0]
        label, target, anchor = link[1], link[2], link[3] or ""
        path = (file.parent / target).resolve()
        if path.is_dir():
            path, target = path / "README.md", f"{target.rstrip('/')}/README.md"
            if not path.exists():
                return label.removeprefix("[").removesuffix("]")
        if not path.exists():
            raise FileNotFoundError(f"{file.relative_to(ROOT)} links to {target}: no such file")
        linked.append(path)
        return f"{label}({target}{anchor})"

    text = re.sub(r"\A---\n.*?^---\n", "", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return CODE_OR_LINK.sub(follow, spaced(text)), linked


def spaced(text: str) -> str:
    """Return a page with an empty line before each list and table: Python-Markdown needs it."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        previous = lines[-1] if lines else ""
        begins = BLOCK_START.match(line) and not BLOCK_START.match(previous)
        if begins and not in_code and previous.strip() and not previous.startswith(" "):
            lines.append("")
        if line.startswith("```"):
            in_code = not in_code
        lines.append(line)
    return "\n".join(lines) + "\n"


def write_commands() -> None:
    """Write a page for each command, and one with all of them."""
    import typer.main

    from hf_alpha.cli import app

    folder = PAGES / "docs" / "commands"
    folder.mkdir()
    listed = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if not command.hidden:
            (folder / f"{name}.md").write_text(command_page(name, command), encoding="utf-8")
            summary = inspect.cleandoc(command.help).split("\n\n")[0].replace("\n", " ")
            listed.append(f"| [hf-alpha {name}]({name}.md) | {summary} |")
    head = "# Commands\n\n| command | what it does |\n| --- | --- |\n"
    (folder / "index.md").write_text(head + "\n".join(listed) + "\n", encoding="utf-8")


def command_page(name: str, command: Any) -> str:
    """Return the page of a command: its usage, what it says of itself, and its options."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(["hf-alpha", name, *command.collect_usage_pieces(context)])
    panels: dict[str, list[str]] = defaultdict(list)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            title, names = "Arguments", parameter.name.upper()
        else:
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        default = parameter.default
        plain = isinstance(default, (str, int, float)) and default not in (True, False, "")
        said = " ".join((parameter.help or "").split()).replace("|", "\\|")
        panels[title].append(f"| `{names}` | {said} | {f'`{default}`' if plain else ''} |")
    help_text = inspect.cleandoc(command.help).replace("\\[", "[")
    said = COMMAND.sub(r"```\n\g<0>\n```", help_text)
    text = f"# hf-alpha {name}\n\n```\n{usage}\n```\n\n{said}\n"
    for title, rows in panels.items():
        kind = "argument" if title == "Arguments" else "option"
        head = f"| {kind} | what it is | default |\n| --- | --- | --- |\n"
        text += f"\n## {title}\n\n{head}" + "\n".join(rows) + "\n"
    return text


def write_reference() -> None:
    """Append what docstrings say of the public names to the page that lists them."""
    import hf_alpha
    from hf_alpha.wings import NAMES

    text = "\n## Python\n"
    for name, module in sorted((hf_alpha._MODULES | NAMES).items()):
        text += f"\n### {name}\n\n::: {module}.{name}\n    options:\n      heading_level: 4\n"
    with (PAGES / "docs" / "interface.md").open("a", encoding="utf-8") as page:
        page.write(text)


def orphans() -> list[str]:
    """Return the pages of docs/ that the navigation lacks."""
    named = re.findall(r"docs/\S+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    made = [path.relative_to(PAGES).as_posix() for path in sorted((PAGES / "docs").rglob("*.md"))]
    return [page for page in made if page not in named]


if __name__ == "__main__":
    main()
