"""Measure the walls of the package: `python tests/code_wings.py [CHECKOUT]` prints a table.

A wing is a part that can be left out: of each its files and lines, and which other modules cannot
be imported without it, by what modules import when they are imported themselves. Then lines of the
core, and files and lines of code that each kind of model carries when it is saved.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]


class Wing(NamedTuple):
    """A part of the package that can be left out. What joins two wings belongs to both.

    Attributes:
        modules: of `hf_alpha`, each with all that is in it.
        words: by which texts ask for it: types of models, tasks, commands.
    """

    modules: str
    words: str


WINGS = {
    "FOLNet": Wing(
        "folnet modeling.modeling_folnet modeling.folnet_stacks modeling.logic_operators "
        "modeling.configuration_folnet convert.folnet convert.folnet_original",
        "folnet",
    ),
    "geometric": Wing(
        "modeling.modeling_geometric modeling.configuration_geometric modeling.segment_relations "
        "modeling.tokenization_geometric convert.geometric geometric transduction cli.transduce",
        "geometric transduce transducer",
    ),
    "logic": Wing("logic cli.generate", "copying ltl propositional"),
    "serve and demo": Wing("serve demo cli.serving", "serve demo"),
    "ready-made rules": Wing(
        "modeling.ready_rules modeling.names_in_code modeling.names_in_sql "
        "modeling.names_in_languages modeling.languages "
        "modeling.names_in_python modeling.python_code modeling.python_fragments "
        "modeling.python_reading modeling.tokenization_text_ruled "
        "modeling.tokenization_text_languages modeling.tokenization_canonical_ruled "
        "modeling.tokenization_canonical_languages",
        "rule smiles javascript python_names",
    ),
    "aliases": Wing(
        "alias canonical modeling.canonical_names modeling.canonical_answers "
        "modeling.tokenization_canonical "
        "modeling.tokenization_canonical_ruled modeling.tokenization_canonical_languages "
        "cli.certify serve.gateway serve.spelling",
        "canonical certify plain",
    ),
    "conversion": Wing(
        "convert geometric modeling.configuration_retrofit modeling.modeling_retrofit "
        "modeling.modeling_retrofit_decoder modeling.host_attention modeling.host_encoding "
        "cli.convert",
        "convert converted retrofit",
    ),
    "comparison": Wing(
        "train.side_by_side train.quickstart cli.comparing evaluation.curves evaluation.harness",
        "compare quickstart",
    ),
    "releases": Wing("hub cli.share environment", "release card"),
    "checks of answers": Wing(
        "tasks.text.anf tasks.text.molecules tasks.text.proofs",
        "anf proofs-relational reactions-relational",
    ),
}
SAVED = {
    "formulas": "configuration_alpha modeling_alpha tokenization_alpha",
    "texts": "configuration_alpha modeling_alpha tokenization_text",
    "texts, ready-made rules": "configuration_alpha modeling_alpha tokenization_text_ruled",
    "texts, rules of languages": "configuration_alpha modeling_alpha tokenization_text_languages",
    "decoder": "configuration_alpha modeling_alpha_decoder tokenization_text",
    "converted encoder-decoder": "configuration_retrofit modeling_retrofit tokenization_text",
    "converted decoder": "configuration_retrofit modeling_retrofit_decoder tokenization_text",
    "FOLNet": "configuration_folnet modeling_folnet tokenization_text",
    "geometric": "configuration_geometric modeling_geometric tokenization_geometric",
    "canonical spelling": "tokenization_canonical",
}
"""Kind of model -> the modules of `hf_alpha.modeling` that its configurations name."""


class Package:
    """The modules of a checkout's package, and what they import.

    Args:
        with_tests: its tests too, called as they import one another.

    Attributes:
        files: module -> its file; of a link, there is none.
        imports: module -> the modules that it imports when it is imported.
        names: module -> all modules that it imports, in functions too.
    """

    def __init__(self, checkout: Path = CHECKOUT, with_tests: bool = False):
        self.files: dict[str, Path] = {}
        for folder in (checkout / "hf_alpha", *[checkout / "tests"] * with_tests):
            base = checkout if folder.name == "hf_alpha" else folder
            for path in sorted(folder.rglob("*.py")):
                name = ".".join(path.relative_to(base).with_suffix("").parts)
                if not path.is_symlink():
                    self.files[name.removesuffix(".__init__")] = path
        stub = ast.parse((checkout / "hf_alpha" / "__init__.pyi").read_text())
        self.public = {
            f"hf_alpha.{alias.name}": f"{node.module}"
            for node in stub.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self.trees = {name: ast.parse(path.read_text()) for name, path in self.files.items()}
        self.imports = {m: set(self._of(m, _when_imported(t))) for m, t in self.trees.items()}
        self.names = {m: set(self._of(m, ast.walk(tree))) for m, tree in self.trees.items()}

    def _of(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
        """Yield the modules here that statements of a module import."""
        package = module.split(".")
        if self.files[module].name != "__init__.py":
            package = package[:-1]
        for node in nodes:
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*base, *filter(None, [node.module])])
                found = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
            found = [self.public.get(name, name) for name in found]
            yield from (name for name in found if name in self.files)

    def part(self, modules: str) -> set[str]:
        """Return all modules of a wing."""
        roots = [f"hf_alpha.{name}" for name in modules.split()]
        return {m for m in self.files if any(f"{m}.".startswith(f"{root}.") for root in roots)}

    @property
    def core(self) -> set[str]:
        """All modules of the package that are in no wing."""
        return self.files.keys() - {m for wing in WINGS.values() for m in self.part(wing.modules)}

    def failing(self, missing: set[str]) -> set[str]:
        """Return the other modules that cannot be imported without some, which are left out."""
        needed = {
            module: imports | {name for name in self.files if module.startswith(f"{name}.")}
            for module, imports in self.imports.items()
        }
        return _reaching(needed, missing) - missing

    def tests_of(self, wing: Wing) -> set[str]:
        """Return the modules of tests that use a wing: that import it, or name it in a text."""
        tests = {m: names for m, names in self.names.items() if not m.startswith("hf_alpha")}
        words = re.compile(rf"(?i)\b({'|'.join(wing.words.split())})\b")
        asking = {m for m in tests if any(map(words.search, _texts(self.trees[m])))}
        return _reaching(tests, asking | self.part(wing.modules)) & tests.keys()

    def carried(self, modules: Iterable[str]) -> set[str]:
        """Return modules of `hf_alpha.modeling`, given without that, and all that they import."""
        found: set[str] = set()
        pending = {f"hf_alpha.modeling.{name}" for name in modules}
        while pending:
            found |= pending
            pending = {n for m in pending for n in self.names[m]} - found - {"hf_alpha.modeling"}
        return found

    def lines(self, modules: Iterable[str]) -> int:
        """Return how many lines the files of modules have."""
        return sum(len(self.files[module].read_text().splitlines()) for module in modules)


def _reaching(graph: Mapping[str, set[str]], ends: set[str]) -> set[str]:
    """Return some nodes of a graph, and all from which a way leads to one of them."""
    found = set(ends)
    while more := {node for node, nexts in graph.items() if node not in found and nexts & found}:
        found |= more
    return found


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _when_imported(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is imported, whatever is there."""
    for node in ast.iter_child_nodes(tree):
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if not is_later and "TYPE_CHECKING" not in test and "is_here(" not in test:
            yield node
            yield from _when_imported(node)


@cache
def package() -> Package:
    """Return the package of this checkout."""
    return Package()


def rows(package: Package) -> Iterator[Mapping[str, object]]:
    """Yield a row for each wing."""
    for name, wing in WINGS.items():
        modules = package.part(wing.modules)
        failing = sorted(package.failing(modules))
        yield {
            "wing": name,
            "files": len(modules),
            "lines": package.lines(modules),
            "others that need it": len(failing),
            "which": ", ".join(m.removeprefix("hf_alpha.") for m in failing[:6])
            + ", ..." * (len(failing) > 6),
        }


def table(rows: Iterable[Mapping[str, object]]) -> str:
    """Return a table in Markdown; numbers have commas."""
    listed = [*rows]
    cells = [[f"{v:,}" if isinstance(v, int) else f"{v}" for v in row.values()] for row in listed]
    rules = ["---:" if isinstance(value, int) else "---" for value in listed[0].values()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [[*listed[0]], rules, *cells])


def report(package: Package) -> str:
    """Return all that is measured."""
    core, every = package.core, package.files.keys()
    kinds = {kind: package.carried(modules.split()) for kind, modules in SAVED.items()}
    saved = [
        {"saved model": kind, "files": len(modules), "lines": package.lines(modules)}
        for kind, modules in kinds.items()
    ]
    return "\n\n".join([
        table(rows(package)),
        f"core: {len(core):,} files, {package.lines(core):,} lines; "
        f"all: {len(every):,} files, {package.lines(every):,} lines",
        table(saved),
    ])  # fmt: skip


if __name__ == "__main__":
    print(report(Package(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else package()))
