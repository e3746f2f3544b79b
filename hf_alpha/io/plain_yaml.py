"""YAML as people mean it, without what lets a small file stand for a huge or an endless one."""

import re
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from yaml.composer import ComposerError

from hf_alpha.io.records import DEEPEST
from hf_alpha.io.settings import RecipeError

LONGEST = 2**20
"""Characters of a text; PyYAML takes seconds for so many."""
LONGEST_NUMBER = 1000
"""Characters of a number: one in base 60 (`1:30`) takes time that grows with their square."""


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number and `no` as text, as YAML 1.2 has it and everybody means it.

    Refuses aliases, a key that a mapping has twice, what is nested more than `DEEPEST` deep, and
    long numbers.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            alias = f"*{self.peek_event().anchor}"
            raise ComposerError(None, None, f"{alias} is an alias: write out what it is for", mark)
        if self._depth == DEEPEST:
            raise ComposerError(None, None, f"more than {DEEPEST} levels in each other", mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if node.tag.endswith((":int", ":float")) and len(node.value) > LONGEST_NUMBER:
            what = f"a number of {len(node.value):,} characters, the limit is {LONGEST_NUMBER:,}"
            raise ComposerError(None, None, what, node.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
                raise ComposerError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            keys.add((key.tag, f"{key.value}"))
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|false|False)$"), list("tTfF")
)


class _Dumper(yaml.SafeDumper):
    """Puts a text such as 1e3, which `_Loader` would read as a number, in quotes; no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write out whatever stands in two places."""
        return True


_Dumper.add_multi_representer(str, _Dumper.represent_str)
_POWER_OF_TEN = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _POWER_OF_TEN, list("-+0123456789"))


def read_yaml(file: Path) -> Any:
    """Read a file of anybody, or the header of a card (*.md), if it has one; see `parse_yaml`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{file}: no UTF-8 text: {error}") from error
    if file.suffix == ".md":
        header = REGEX_YAML_BLOCK.search(text)
        text = header[2] if header else ""
    return parse_yaml(text, f"{file}")


def parse_yaml(text: str, place: str) -> Any:
    """Read YAML of anybody, without aliases.

    Raises:
        RecipeError: it is none, longer than `LONGEST`, or holds what `_Loader` refuses.
    """
    if len(text) > LONGEST:
        raise RecipeError(f"{place}: {len(text):,} characters of YAML, the limit is {LONGEST:,}")
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise RecipeError(f"{place}: not valid YAML: {line}{error.problem}") from error
    except Exception as error:  # a value that its tag does not allow, such as the date 2026-13-01
        reason = " ".join(str(error).split())
        raise RecipeError(f"{place}: not valid YAML: {reason}") from error


def write_yaml(content: Any) -> str:
    """Return plain data in YAML that `parse_yaml` reads."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False)
