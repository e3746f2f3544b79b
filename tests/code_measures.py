"""Count what makes a code base hard to read: `python tests/code_measures.py [CHECKOUT]`.

Of the package's Python: lines, the largest file, functions of more than 60 lines (signature and
docstring included), class names that are defined twice or more, raise statements, the parameters of
the longest command, where a group of options counts as one, and the options of the longest command,
where none does. Then lines of tests, and words of what contributors and users read. How often a
reader goes back to a file is counted by `code_walks.py`.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

LONG = 60
READ = "CONTRIBUTING.md", "docs/architecture.md"
NOT_READ = re.compile(
    r"^```.*?^```$|<!-- figures: .*?<!-- end -->|(?<=\])\([^)]*\)", re.DOTALL | re.MULTILINE
)
"""Of a page: code, tables that are made from results, and where a link leads."""
NOT_PAGES = "results", "paper", "LOG"
"""What names of files in docs/ begin with that are looked up, and not read."""


def measures(root: Path) -> dict[str, str]:
    """Return what is counted, as texts."""
    package = root / "hf_alpha"
    classes: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    raises, functions = 0, []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        sizes[name] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            raises += isinstance(node, ast.Raise)
            classes.update([node.name] if isinstance(node, ast.ClassDef) else [])
            if not isinstance(node, ast.FunctionDef):
                continue
            functions.append((1 + (node.end_lineno or 0) - node.lineno, f"{name}: {node.name}"))
    total = sum(sizes.values())
    long = [size for size, _ in functions if size > LONG]
    largest = max(sizes, key=sizes.__getitem__)
    commands = _commands(package / "cli")
    most_parameters = max((parameters, name) for name, (parameters, _) in commands.items())
    most_options = max((options, name) for name, (_, options) in commands.items())
    return {
        "lines of Python": f"{total:,} in {len(sizes)} files",
        "largest file": f"{largest}, {sizes[largest]:,} lines",
        "files of more than 800 lines": f"{sum(size > 800 for size in sizes.values())}",
        f"functions of more than {LONG} lines": f"{len(long)}; longest: {max(functions)}",
        "classes of one name": ", ".join(sorted(n for n, count in classes.items() if count > 1)),
        "raise statements": f"{raises} ({1000 * raises / total:.1f} in 1,000 lines)",
        "parameters of the longest command": "{} ({})".format(*most_parameters),
        "options of the longest command": "{} ({})".format(*most_options),
        "lines of tests": f"{sum(len(_lines(path)) for path in (root / 'tests').rglob('*.py')):,}",
        "words of CONTRIBUTING, architecture": f"{sum(_words(root / name) for name in READ):,}",
        "words of pages that people read": f"{sum(words_read(root).values()):,}",
    }


def words_read(root: Path) -> dict[str, int]:
    """Return the words, by page, of README and of docs/ but for results, the paper and the log."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {
        page.name: len(re.findall(r"\S*\w\S*", NOT_READ.sub("", page.read_text("utf-8"))))
        for page in pages
        if not page.name.startswith(NOT_PAGES)
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def _commands(folder: Path) -> dict[str, tuple[int, int]]:
    """Command -> its parameters, and its options, with those of groups counted."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")]
    sizes: dict[str, int] = {}
    for tree in trees:
        sizes |= _groups(tree)
    commands = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                kinds = [ast.unparse(one.annotation) for one in every if one.annotation]
                no_options = "Context", "typer.Argument"  # `--help` lists arguments apart
                kinds = [kind for kind in kinds if not any(word in kind for word in no_options)]
                trust = sum("may_trust" in ast.unparse(one) for one in node.decorator_list)
                options = trust + sum(sizes.get(kind, 1) for kind in kinds)
                commands[node.name] = (len(kinds) + trust, options)
    return commands


def _groups(tree: ast.Module) -> dict[str, int]:
    """Class -> how many options it has, of the groups in a file."""
    return {
        node.name: sum(
            isinstance(entry, ast.AnnAssign) and "PANEL" not in ast.unparse(entry.target)
            for entry in node.body
        )
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "PANEL" in ast.unparse(node)
    }


def main() -> None:
    """Print the measures of a checkout, by default this one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    for name, value in measures(root).items():
        print(f"{name:<36} {value}")


if __name__ == "__main__":
    main()
