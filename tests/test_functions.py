"""A function that finds names, given in Python, is taken wherever a rule is."""

import copy
import json
import pickle

import pytest
from hosts import make_host
from small_tokenizers import byte_level, unigram
from transformers import AutoTokenizer

from hf_alpha import (
    CanonicalNames,
    CanonicalTokenizer,
    SymbolConfig,
    TextTokenizer,
    get_symbol_model,
)
from hf_alpha.io.yaml_files import parse_yaml, write_yaml
from hf_alpha.modeling.name_rules import ReadyRule
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.recipe import Recipe
from hf_alpha.recipe.beside_model import named_code
from hf_alpha.tasks import get_task

TEXT = "call f1 on bob"


def find(text):
    """The second word and the last."""
    return [(5, 7), (11, 14)] if text == TEXT else []


DATA = {"train": "rows.jsonl", "validation": 0.1}


def recipe(rules):
    return Recipe(data=DATA, training={"output_dir": "x"}, task="text", symbols=rules)


def used(tokenizer, rules):
    tokenizer.use_rules(rules)
    return tokenizer


def converted(symbols):
    host = make_host("llama", vocab_size=len(unigram()), pad_token_id=0)
    return get_symbol_model(host, unigram(), SymbolConfig(symbols=symbols))[1]


PATH = f"{__name__}:find"
CALM = {"name": "[A-Z]"}
WAYS = {
    "finder": NameFinder,
    "texts": lambda rules: TextTokenizer.from_texts([TEXT], rules),
    "tokenizer": lambda rules: TextTokenizer.from_tokenizer(unigram(), rules),
    "rules": lambda rules: used(TextTokenizer.from_tokenizer(unigram(), CALM), rules),
    "canonical names": CanonicalNames,
    "canonical": lambda rules: CanonicalTokenizer.from_tokenizer(byte_level(), rules),
    "canonical rules": lambda rules: used(
        CanonicalTokenizer.from_tokenizer(byte_level(), CALM), rules
    ),
    "converted": lambda rules: converted(rules),
    "converted, one class": lambda rules: converted(rules["name"]),
    "recipe": lambda rules: recipe(rules).configured_task,
    "task": lambda rules: get_task("text").configured(symbols=rules),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "rule", [find, {"function": find, "count": 4}, {"function": ReadyRule(find)}]
)
def test_a_function_is_taken_wherever_a_rule_is(way, rule):
    made = WAYS[way]({"name": rule})
    finder = getattr(made, "finder", made)
    for copied in (finder, copy.deepcopy(finder), pickle.loads(pickle.dumps(finder))):
        assert [TEXT[start:stop] for start, stop, *_ in copied.find(TEXT)] == ["f1", "bob"]
    written = json.loads(json.dumps(finder.to_dict()))
    assert written["name"]["function"].count(":") == 1


def test_a_recipe_names_it_as_files_do():
    written = parse_yaml(write_yaml(recipe({"name": find, "other": "[A-Z]"}).settings()), "here")
    assert written["symbols"] == {"name": {"function": PATH}, "other": "[A-Z]"}
    assert named_code(recipe({"name": find})) == {"symbols.name.function": PATH}


def test_a_saved_tokenizer_names_it_and_has_it_no_more(tmp_path):
    made = TextTokenizer.from_tokenizer(unigram(), {"name": {"function": find}})
    made.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.finder.rules["name"].function == PATH
    with pytest.raises(ValueError, match=f"'{PATH}', which is not imported"):
        loaded(TEXT)
    loaded.finder.functions["name"] = find
    assert loaded(TEXT).names == made(TEXT).names
