"""Names of Python programs, checked by Python: its compiler, its symbol tables, and by running."""

import ast
import builtins
import dis
import keyword
import random
import re
import symtable
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.modeling.names_in_python import python_names, unbound_names

LIBRARY = Path(ast.__file__).parent
FILES = ["ast", "dataclasses", "functools", "inspect", "enum", "contextlib", "string", "typing"]


def renamed(text: str, called: Callable[[str], str]) -> str:
    """Give each binding another name."""
    for start, stop, binding in reversed(python_names(text)):
        text = text[:start] + called(binding) + text[stop:]
    return text


def distinct(binding: str) -> str:
    name, _, number = binding.partition(" ")
    return f"{name}0{int(number or 0):03}ǃ"


def instructions(code: CodeType) -> list[Any]:
    """Return what code does, with names as they were before `distinct`, and the code in it."""
    lines: list[Any] = []
    for step in dis.get_instructions(code):
        value = step.argval
        if isinstance(value, CodeType):
            value = instructions(value)
        elif isinstance(value, tuple) and step.opname in ("LOAD_CONST", "KW_NAMES"):
            value = [plain(item) if isinstance(item, str) else item for item in value]
        elif step.opname in ("LOAD_CONST", "COMPARE_OP", "BINARY_OP") and not is_name(value):
            value = step.argrepr
        lines.append((step.opname, plain(str(value)) if not isinstance(value, list) else value))
    return lines


def plain(name: str) -> str:
    return re.sub("0[0-9]{3}ǃ", "", name)


def is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


@pytest.mark.parametrize("name", FILES)
def test_a_library_under_other_names_is_the_same_code(name: str) -> None:
    text = (LIBRARY / f"{name}.py").read_text()
    other = renamed(text, distinct)
    a, b = instructions(compile(text, name, "exec")), instructions(compile(other, name, "exec"))
    def diff(a,b):
        if len(a)!=len(b): print("LEN",len(a),len(b)); 
        for x,y in zip(a,b):
            if x!=y:
                if isinstance(x[1],list) and isinstance(y[1],list): diff(x[1],y[1])
                else: print(x,y)
    if a!=b: diff(a,b)
    assert a == b
