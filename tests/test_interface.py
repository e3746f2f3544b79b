"""What is promised: the public names, what they take, the commands and their options.

`tests/interface.txt` is the promise. Where a change of it is meant, and is a line of CHANGELOG.md:

    python tests/test_interface.py
"""

import copy
import doctest
import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer.main
from hosts import make_host
from public_names import public_names
from small_tokenizers import word_level
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DynamicCache, PreTrainedConfig

import hf_alpha
from hf_alpha.cli import app
from hf_alpha.modeling import symbol_encodings
from hf_alpha.recipe import recipe_beside
from hf_alpha.tasks import registry

ROOT = Path(__file__).resolve().parents[1]
STORED = Path(__file__).with_name("interface.txt")
NAMES = public_names()


def taken(function: Any, hidden: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    """What a function takes: names, kinds and defaults, without types."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in inspect.signature(function).parameters.items()
        if name not in hidden
    ]
    return str(inspect.Signature(parameters))


def lines_of(name: str) -> Iterator[str]:
    """A name with its arguments; of a class also the methods of the class, which make one."""
    value = NAMES[name]
    if not inspect.isclass(value):
        yield name + taken(value)
        return
    if issubclass(value, enum.Enum):
        yield f"{name}: {', '.join(value.__members__)}"
        return
    # Of a configuration, what is not every configuration's.
    general = issubclass(value, PreTrainedConfig) and inspect.signature(PreTrainedConfig).parameters
    yield name + taken(value, set(general or ()))
    for method in dir(value):
        made = inspect.getattr_static(value, method)
        ours = str(getattr(made, "__module__", None)).startswith("hf_alpha.")
        if isinstance(made, classmethod) and ours and not method.startswith("_"):
            yield f"{name}.{method}{taken(made.__func__, {'cls'})}"


def interface() -> list[str]:
    """The interface of this version, a line for each promise."""
    lines = [line for name in NAMES for line in lines_of(name)]
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        names = [
            each.name.upper() if each.param_type_name == "argument" else "/".join(each.opts)
            for each in command.params
        ]
        lines.append(" ".join(["hf-alpha", name, *sorted(names)]))
    return lines


def test_the_interface_is_the_promised_one():
    assert interface() == STORED.read_text(encoding="utf-8").splitlines(), __doc__


def test_the_page_has_each_name():
    page = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
    names = page.partition("## Names")[2].partition("## Commands")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", names, re.MULTILINE) == sorted(NAMES, key=str.lower)


@pytest.fixture(scope="module")
def at_hand() -> dict[str, Any]:
    """What docs/interface.md says examples begin with."""
    folder = ROOT / "model_cards" / "propositional-relational"
    return {
        "torch": torch,
        "model": AutoModelForSeq2SeqLM.from_pretrained(folder),
        "tokenizer": AutoTokenizer.from_pretrained(folder),
        "host": make_host("t5"),
        "host_tokenizer": word_level(words=("add",)),
        **{name.rpartition(".")[2]: value for name, value in NAMES.items()},
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_each_name(name, at_hand, tmp_path, monkeypatch):
    (tmp_path / "model_cards").symlink_to(ROOT / "model_cards")
    monkeypatch.chdir(tmp_path)
    text = inspect.cleandoc(NAMES[name].__doc__ or "")
    names = {**at_hand, "model": copy.deepcopy(at_hand["model"])}
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    for known in (symbol_encodings._ENCODINGS, registry._registered):
        for made in [key for key, kind in known.items() if kind.__module__ == "builtins"]:
            del known[made]  # what an example registers is unknown elsewhere
    assert not said, "".join(said)


def test_a_cache_as_another_version_of_transformers_calls_it_is_refused(at_hand):
    """5.24 does; a model that took no notice would generate without what it has read."""
    model, batch = at_hand["model"], at_hand["tokenizer"](["a & b"], return_tensors="pt")
    answer = torch.tensor([[1, 2]])
    with pytest.raises(ValueError, match=r"pip install 'transformers<5\.24'"):
        model(**batch, decoder_input_ids=answer, cache=DynamicCache())


GRANDSON = "the granddaughter of Clarence is Emily . the brother of Emily is Michael . "
TERM = "( ( v0 | v0 ) | ( ( ( v0 | y1 ) | v0 ) & ( v0 & y1 ) ) ) ^ v0"
STEPS = (
    "let t1 = v0 | v0 ; let t2 = v0 | y1 ; let t3 = t2 | v0 ; let t4 = v0 & y1 ; "
    "let t5 = t3 & t4 ; let t6 = t1 | t5 ; let t7 = t6 ^ v0 ; t7"
)
INLINE = """inline x2
def max_len2(total, _tmp2, max_len, rate):
    x2 = rate - max_len
    old3 = max_len + x2
    if x2 * total >= _tmp2:
        return old3
    return x2 - rate + old3"""
INLINED = """def max_len2(total, _tmp2, max_len, rate):
    old3 = max_len + (rate - max_len)
    if (rate - max_len) * total >= _tmp2:
        return old3
    return rate - max_len - rate + old3"""
RELEASED = {
    "copying-learned-small": ("ccaabbaccaa", "ccaabbaccaa"),
    "copying-streams-small": ("ccaabbaccaa", "ccaabbaccaa"),
    "ltl-relational-small": ("U&aUcXUbed", "{d}"),
    "kinship-folnet": (f"{GRANDSON}who is Michael , a man , to Clarence ?", "grandson"),
    "anf-relational": (TERM, STEPS),
    "inline-t5": (INLINE, INLINED),
}
"""Folder of tests/released/ -> a question, and the answer that its card had."""


@pytest.mark.parametrize("name", RELEASED)
def test_released_folders_load_as_they_were_uploaded(name):
    """One of each kind that 0.3 released: weights, configuration, tokenizer, recipe, answer."""
    question, expected = RELEASED[name]
    folder = ROOT / "tests" / "released" / name
    model, tokenizer = hf_alpha.load_checkpoint(folder, answers=name != "kinship-folnet")
    if name == "kinship-folnet":
        scores = model(**tokenizer(question, return_tensors="pt")).logits
        answer = model.config.id2label[int(scores.argmax(-1))]
    else:
        ((answer,),) = hf_alpha.generate_answers(model, tokenizer, [question], progress=False)
    assert answer == expected
    assert recipe_beside(folder) is not None


if __name__ == "__main__":
    STORED.write_text("\n".join(interface()) + "\n", encoding="utf-8")
