"""Count what makes a code base hard to read: `python tests/code_measures.py [CHECKOUT]`.

Of the package's Python: lines, the largest file, functions of more than 60 lines (signature and
docstring included), raise statements in 1,000 lines, and the parameters of the longest command.
"""

import ast
import sys
from pathlib import Path

LONG = 60


def measures(package: Path) -> dict[str, str]:
    """Return what is counted, as texts."""
    sizes: dict[str, int] = {}
    raises, functions, commands = 0, [], []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        sizes[name] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            raises += isinstance(node, ast.Raise)
            if not isinstance(node, ast.FunctionDef):
                continue
            functions.append((1 + (node.end_lineno or 0) - node.lineno, f"{name}: {node.name}"))
            if path.parent.name == "cli" and not node.name.startswith("_"):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                options = [a for a in arguments if "Context" not in ast.unparse(a)]
                commands.append((len(options), node.name))
    total = sum(sizes.values())
    long = [size for size, _ in functions if size > LONG]
    largest = max(sizes, key=sizes.__getitem__)
    longest_command = max(commands)
    return {
        "lines of Python": f"{total:,} in {len(sizes)} files",
        "largest file": f"{largest}, {sizes[largest]:,} lines",
        "files of more than 800 lines": f"{sum(size > 800 for size in sizes.values())}",
        f"functions of more than {LONG} lines": f"{len(long)}; longest: {max(functions)}",
        "raise statements in 1,000 lines": f"{1000 * raises / total:.1f} ({raises})",
        "parameters of the longest command": "{} ({})".format(*longest_command),
    }


def main() -> None:
    """Print the measures of a checkout, by default this one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    for name, value in measures(root / "hf_alpha").items():
        print(f"{name:<36} {value}")


if __name__ == "__main__":
    main()
