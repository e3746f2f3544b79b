"""What is shared of a model is all that saving, releasing and cards write, whatever the model."""

import json
from pathlib import Path

import pytest
from geometrics import small_model
from small_tokenizers import word_piece
from strategies import make_model
from transformers import AutoTokenizer

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.loading import load_parts
from hf_alpha.model_files import model_files, pictures
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.recipe import RECIPE_FILE, read_recipe, write_recipe
from hf_alpha.release import release
from hf_alpha.resources import released_models
from hf_alpha.train import TRAINER_STATE
from hf_alpha.transduction import Lexicon, Transducer


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", released_models().values(), ids=lambda folder: folder.name)
def test_all_of_a_released_model_is_shared(folder):
    _, tokenizer = load_parts(folder, answers=False)
    assert written(folder) <= model_files(folder, tokenizer)


def test_all_that_a_release_writes_is_shared(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    make_model().save_pretrained(run, max_shard_size="20kB")
    assert (run / "model.safetensors.index.json").is_file()
    build_tokenizer("propositional", 5).save_pretrained(run)
    (run / TRAINER_STATE).write_text(json.dumps({"log_history": [{"step": 1, "loss": 2.0}]}))
    write_recipe(read_recipe("propositional/debug"), run / RECIPE_FILE)
    release(run, out)
    for folder in (run, out):
        shared = model_files(folder, load_parts(folder)[1])
        assert written(folder) - {TRAINER_STATE} <= shared and TRAINER_STATE not in shared


def test_all_that_a_tokenizer_writes_is_shared(tmp_path):
    transducer = Transducer.compile(Lexicon.from_entries([("alice sees", "seen")]))
    tokenizer = GeometricTokenizer.from_tokenizer(word_piece(), transducer)
    tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "{{ tools }}"}
    small_model(vocab_size=len(tokenizer), segment_labels=transducer.labels).save_pretrained(
        tmp_path
    )
    tokenizer.save_pretrained(tmp_path)
    files = written(tmp_path)
    assert {"lexicon.tsv", "transducer.json", "additional_chat_templates/tool_use.jinja"} <= files
    assert files <= model_files(tmp_path, AutoTokenizer.from_pretrained(tmp_path))


def test_pictures_are_those_that_the_card_shows(tmp_path):
    shown = [
        "![a](a.png)",
        "[b](./b%20c.PDF 'title')",
        '<img width=3 src="d/e.svg">',
        "![](<f.jpg>)",
    ]
    hidden = ["![](../x.png)", "![](/etc/x.png)", "[](.env)", "![](.x.png)", "[data](test.jsonl)",
              "![](d/../../x.png)", "![](a)", "b.png"]  # fmt: skip
    (tmp_path / "README.md").write_text("\n".join([*shown, *hidden]))
    assert {*pictures(tmp_path)} == {"a.png", "b c.PDF", "d/e.svg", "f.jpg"}
    (tmp_path / "README.md").unlink()
    assert not {*pictures(tmp_path)}
