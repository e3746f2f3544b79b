"""The commands and code of every page, as printed and in their order, with nothing patched."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hosts import SIZES_OF_CHATS, make_host
from pages import ROOT, Page, blocks_of, run_page
from small_tokenizers import byte_level, byte_level_of_chats, unigram, word_piece
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_alpha.tasks.text.swapping import swapping_pairs

HOURS = "takes hours, or a GPU"
HUB = "uploads to the Hub, or loads what is only there"
PLACEHOLDER = "has a word in the place of what the reader has"
DATA = "needs data or weights that no checkout has"
SERVER = "needs a server of a large model"
PART = "a part that is not whole by itself"


def save(place: Path, *parts) -> None:
    for part in parts:
        part.save_pretrained(place)


def t5(folder: Path) -> None:
    """A T5 in the place of the Hub's, with random weights."""
    tokenizer, sizes = unigram(end=True), {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1}
    config = T5Config(**sizes, vocab_size=len(tokenizer), decoder_start_token_id=0)
    save(folder / "google-t5" / "t5-small", T5ForConditionalGeneration(config), tokenizer)


def bert(folder: Path) -> None:
    tokenizer = word_piece()
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(**sizes, intermediate_size=32, vocab_size=len(tokenizer))
    save(folder / "google-bert" / "bert-base-uncased", BertForMaskedLM(config), tokenizer)


def llama(folder: Path) -> None:
    """A Llama in the places of the Hub's, with random weights and the templates of those."""
    from modeling.test_chats import TEMPLATES

    torch.manual_seed(0)
    trl = Path(str(find_spec("trl").origin)).parent / "chat_templates"
    template = (trl / "qwen2_5.jinja").read_text()
    tokenizer = byte_level_of_chats(template)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes = {**SIZES_OF_CHATS, "vocab_size": len(tokenizer), "bos_token_id": None, **ids}
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    save(folder / "Qwen" / "Qwen2.5-0.5B-Instruct", model, tokenizer)
    tokenizer.chat_template = TEMPLATES["smollm2"]
    save(folder / "HuggingFaceTB" / "SmolLM2-135M-Instruct", model, tokenizer)


def pairs(folder: Path, train: int = 400, **settings) -> None:
    """Pairs of the user's own: names change places."""
    for split, count in {"train": train, "test": 10}.items():
        rows = swapping_pairs(count, functions="FGH", seed=len(split), **settings)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")


def readme(folder: Path) -> None:
    t5(folder)
    pairs(folder)


def retrofit(folder: Path) -> None:
    """With a recipe of the page before, of a few steps."""
    t5(folder)
    llama(folder)
    pairs(folder, 100)
    recipe = {
        "extends": "text/small", "symbols": {"name": {"pattern": "[a-z_]{2,}|[a-z][0-9]*"}},
        "data": {"train": "train.jsonl", "test": "test.jsonl"},
        "training": {"output_dir": "runs/my-task", "max_steps": 2, "eval_strategy": "no"},
    }  # fmt: skip
    (folder / "my-task.yaml").write_text(json.dumps(recipe))


def alias(folder: Path) -> None:
    llama(folder)
    (folder / "chats.jsonl").write_text(json.dumps(CHAT) + "\n")


def solving(folder: Path) -> None:
    (folder / "formulas.txt").write_text("G(a -> F b)\na & !a\n")


# A pretrained model learns four rows in 100 steps at 1e-4, a random one does not.
PRETRAINED = """
from pathlib import Path
text = Path("tune.py").read_text().replace("1e-4", "5e-3")
text = text.replace('SFTConfig("calls"', 'SFTConfig("out"')
exec(compile(text, "pretraining", "exec"), {"__name__": "pretraining"})
"""

LOADED = "from hf_alpha import load_checkpoint\nmodel, tokenizer = load_checkpoint('out')"

PAGES = {
    "README.md": Page(
        not_run={
            "hf-alpha serve --upstream": SERVER,
            "hf-alpha push": HUB,
        },
        needs=readme,
        loose=("print(hf_alpha.alpha_covariance(your_model",),
    ),
    "docs/alias.md": Page(
        not_run={
            '{"names"': PART,
            "import spacy": DATA,
            "hf-alpha certify chats.jsonl --names '{rule: tools}' --upstream": SERVER,
            "hf-alpha certify chats.jsonl --names '{rule: tools}' --model": DATA,
        },
        needs=alias,
    ),
    "docs/chats.md": Page(
        files={
            "def tool(name, parameter, what):": "tools.py",
            "from datasets import Dataset": "tune.py",
            "{% if tools %}": "tools.jinja",
        },
        before={"python tune.py": PRETRAINED},
        needs=llama,
    ),
    "docs/choosing.md": Page(not_run={"from hf_alpha import AlphaConfig": PLACEHOLDER}),
    "docs/chemistry.md": Page(
        not_run={
            "hf-alpha convert MODEL out": PLACEHOLDER,
            "python examples/tasks/reactions.py": DATA,
            "python benchmarks/": DATA,
            "hf-alpha convert runs/annalog/host": DATA,
            "hf-alpha train": HOURS,
            "hf-alpha evaluate": HOURS,
        },
    ),
    "docs/folnet.md": Page(
        not_run={"hf-alpha convert original.cfg": DATA}
    ),
    "docs/geometric.md": Page(not_run={"extends: geometric/dimsum-graph": PART}, needs=bert),
    "docs/interface.md": Page(),
    "docs/names-benchmark.md": Page(
        not_run={
            "lm_eval run --model hf": HUB,
            "lm_eval run --model local-chat-completions": SERVER,
            '{"questions"': PART,
            "python -m hf_alpha.evaluation.harness": PLACEHOLDER,
        },
    ),
    "docs/promises.md": Page(
        before={"from peft import LoraConfig, get_peft_model": LOADED},
        needs=lambda folder: decoder(folder / "out"),
    ),
    "docs/results-alias.md": Page(not_run={"python benchmarks/alias_models.py": DATA}),
    "docs/results-chemistry.md": Page(not_run={"python benchmarks/": DATA}),
    "docs/results-models.md": Page(),
    "docs/results-retrofit.md": Page(
        not_run={"python benchmarks real-tasks": DATA, "python benchmarks/real_models.py": DATA}
    ),
    "docs/retrofit.md": Page(
        not_run={
            "hf-alpha convert MODEL": PLACEHOLDER,
            "model, tokenizer = get_symbol_model(llama": PLACEHOLDER,
            "model:": PART,
            "python examples/tasks/anf.py": HOURS,
            "hf-alpha train text/anf": HOURS,
            "hf-alpha evaluate runs/anf": HOURS,
        },
        needs=retrofit,
    ),
    "docs/rules.md": Page(not_run={"symbols:": PART}),
    "docs/solving.md": Page(
        not_run={
            "hf-alpha solve --model my-model": PLACEHOLDER,
            "hf-alpha demo": PLACEHOLDER,
            "from hf_alpha.demo.choices": HUB,
            "hf-alpha serve runs/my-decoder": PLACEHOLDER,
            "from openai import OpenAI": PLACEHOLDER,
            "import hf_alpha\n\nmodel, tokenizer": PLACEHOLDER,
        },
        needs=solving,
    ),
    "docs/start.md": Page(not_run={"from hf_alpha import alpha_covariance": PLACEHOLDER}),
    "docs/train.md": Page(
        not_run={
            "task: text": PART,
            "hf-alpha train mine.yaml": HOURS,
            "hf-alpha evaluate runs/mine": HOURS,
        },
        needs=lambda folder: decoder(folder / "out"),
    ),
    "docs/your-own-task.md": Page(
        not_run={
            "hf-alpha train my-task.yaml && hf-alpha evaluate": "stands before the recipe",
            "tokenizer = TextTokenizer.from_tokenizer(host": PLACEHOLDER,
            "hf-alpha evaluate": "what training takes minutes to make",
            "hf-alpha compare": HOURS,
            "import hf_alpha": HUB,
            "tokenizer = hf_alpha.TextTokenizer.from_texts": PART,
        },
    ),
    "benchmarks/README.md": Page(not_run={"python benchmarks": DATA}),
    "training/README.md": Page(
        not_run={
            "extends: learned": PART, "accelerate launch": HOURS, "torchrun": HOURS,
            "#SBATCH": HOURS, "srun": HOURS,
        },
    ),
    "CONTRIBUTING.md": Page(
        not_run={
            "source .venv/bin/activate": "the tests' own environment, and changes git",
        },
    ),
}  # fmt: skip
CHAT = {
    "messages": [{"role": "user", "content": "What does get_weather do?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather."}}],
}


def decoder(place: Path) -> None:
    """What `hf-alpha convert` makes of a small Llama, for TRL."""
    from hf_alpha import SymbolConfig, get_symbol_model

    tokenizer = byte_level()
    host = make_host("llama", vocab_size=len(tokenizer), eos_token_id=0, bos_token_id=0)
    config = SymbolConfig("relational", symbols={"name": {"pattern": "[a-z]", "count": 4}})
    save(place, *get_symbol_model(host, tokenizer, config))


def test_every_page_with_code_is_here():
    folders = [ROOT / name for name in ("", "benchmarks", "examples", "training")]
    pages = [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"),
             *(folder / "README.md" for folder in folders)]  # fmt: skip
    with_code = {
        f"{page.relative_to(ROOT)}" for page in pages if blocks_of(page.read_text("utf-8"))
    }
    assert with_code == PAGES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_printed(page: str, tmp_path: Path):
    run_page(page, PAGES[page], tmp_path)
