"""Pages whose code runs as written: what it prints and draws is what they show."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import code_measures
import own_process
import pytest
import torch
from commands import hf_alpha
from hosts import SIZES_OF_CHATS
from small_tokenizers import byte_level_of_chats, unigram
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks.text.swapping import swapping_pairs

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(page: str, folder: Path, section: str = "") -> tuple[str, str]:
    """What the commands of a page print, then its Python; and what the page says they do.

    With a section, it alone is run.
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    if section:
        text = re.split(r"^## ", text.split(f"\n## {section}\n")[1], flags=re.MULTILINE)[0]
    blocks = BLOCK.findall(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    python = "\n".join(code for language, code in blocks if language == "python")
    bash = "\n".join(code for language, code in blocks if language == "bash")
    place = {"cwd": folder, "env": {**os.environ, "PATH": path}}
    commands = ["bash", "-e", "-c", bash]
    printed = ""
    for done in (
        subprocess.run(commands, **place, capture_output=True, text=True, timeout=300),
        own_process.run("-c", python, **place, timeout=300),
    ):
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed, "".join(code for language, code in blocks if not language)


def blocks_of(text: str, language: str) -> list[str]:
    """The code of a page in one language, block by block."""
    return [code for found, code in BLOCK.findall(text) if found == language]


def test_pages_that_people_read_have_at_most_18000_words():
    """What is to be added takes the place of something else."""
    words = code_measures.words_read(ROOT)
    assert len(words) > 15 and sum(words.values()) <= 18_000, words
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 700


def test_the_python_of_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    """With a small T5 in the place of the Hub's."""
    (tmp_path / "model_cards").symlink_to(ROOT / "model_cards")
    tokenizer, sizes = unigram(end=True), {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1}
    model = T5ForConditionalGeneration(
        T5Config(**sizes, vocab_size=len(tokenizer), decoder_start_token_id=0)
    )
    for saved in (model, tokenizer):
        saved.save_pretrained(tmp_path / "google-t5" / "t5-small")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks_of(text, "python")), {"__name__": "__main__"})
    (said,) = blocks_of(text, "")
    assert capsys.readouterr().out.startswith(f"{said}alpha-covariance ")


def test_the_recipe_of_the_readme_is_trained_and_evaluated(tmp_path, monkeypatch):
    """By its own commands, with a few steps; the push needs a Hub."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (recipe,) = blocks_of(text, "yaml")
    (tmp_path / "my-task.yaml").write_text(recipe, encoding="utf-8")
    for split, count in {"train": 400, "test": 10}.items():
        pairs = swapping_pairs(count, functions="FGH")
        lines = [json.dumps(pair) + "\n" for pair in pairs]
        (tmp_path / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    (commands,) = (code for code in blocks_of(text, "bash") if "my-task" in code)
    train, evaluate, push = commands.splitlines()
    assert push == "hf-alpha push runs/my-task me/my-task"
    monkeypatch.chdir(tmp_path)
    for command in (f"{train} training.max_steps=4 training.eval_steps=4", evaluate):
        program, *arguments = shlex.split(command)
        assert program == "hf-alpha"
        done = hf_alpha(*arguments)
        assert done.code == 0, done.err
    assert "correct" in done.out


def test_transduction(tmp_path):
    printed, said = run("geometric.md", tmp_path, section="Find segments")
    assert printed == said
    assert (tmp_path / "party.svg").read_text() == (DOCS / "transduction.svg").read_text()


def test_names_benchmark_by_hand():
    """Its Python alone; the tasks are tested in benchmarks/names/test_tasks.py."""
    blocks = BLOCK.findall((DOCS / "names-benchmark.md").read_text(encoding="utf-8"))
    (code,) = (code for language, code in blocks if language == "python")
    (said,) = (text for language, text in blocks if not language)
    done = own_process.run("-c", code, cwd=ROOT, timeout=300)
    assert done.returncode == 0 and done.stdout == said, done.stderr


def test_chemistry(tmp_path, monkeypatch, capsys):
    """Its Python, and the released model; what it trains takes hours."""
    pytest.importorskip("rdkit")
    page = (DOCS / "chemistry.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks_of(page, "python")), {})
    assert capsys.readouterr().out == "".join(blocks_of(page, ""))
    assert (tmp_path / "rings.svg").read_text().count("<path") > 20
    monkeypatch.chdir(ROOT)
    lines = "".join(blocks_of(page, "bash")).splitlines()
    (asked,) = (shlex.split(line)[1:] for line in lines if line.startswith("hf-alpha solve"))
    done = hf_alpha(*asked)
    assert (done.code, done.out) == (0, "".join(blocks_of(page, "text")))


@pytest.mark.slow  # trains a decoder
def test_chats(tmp_path, monkeypatch, capsys):
    """From a host whose template writes no tools to a server, with a small Llama for the Hub's.

    The page as printed, with a template that writes them, is run by test_pages.py.
    """
    from modeling.test_chats import TEMPLATES
    from serve.test_server import served

    page, rest = (DOCS / "chats.md").read_text(encoding="utf-8").split("\n## Is it better?")
    of_template = rest.split("\n## A host whose template writes no tools\n")[1].split("\n## ")[0]
    ((template,), (set_template,)) = (blocks_of(of_template, kind) for kind in ("jinja", "python"))
    tools, tune, ask = blocks_of(page, "python")
    convert, train = (block.splitlines() for block in blocks_of(page, "bash"))
    assert len(convert) + len(train) <= 12
    tokenizer = byte_level_of_chats(template)
    tokenizer.chat_template = TEMPLATES["smollm2"]
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes = {**SIZES_OF_CHATS, "vocab_size": len(tokenizer), "bos_token_id": None, **ids}
    torch.manual_seed(0)
    for saved in (LlamaForCausalLM(LlamaConfig(**sizes)), tokenizer):
        saved.save_pretrained(tmp_path / "Qwen" / "Qwen2.5-0.5B-Instruct")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(convert[1])
    assert program == "hf-alpha" and (converted := hf_alpha(*arguments)).code == 0
    assert "its chat template writes no tools" in converted.out
    assert train == ["python tune.py", "hf-alpha serve calls"] and "learning_rate=1e-4" in tune
    (tmp_path / "tools.py").write_text(tools)
    (tmp_path / "tools.jinja").write_text(template)
    exec(set_template, {})
    monkeypatch.syspath_prepend(tmp_path)
    # A host without training learns more slowly.
    exec(tune.replace("1e-4", "2e-3").replace("=100", "=200"), {})
    capsys.readouterr()
    with served(*load_checkpoint("calls")) as client:
        ask = ask.replace("http://127.0.0.1:8000/v1", str(client.base_url))
        exec(ask.replace('"calls"', '"small"'), {})
    assert capsys.readouterr().out == blocks_of(page, "")[0]
