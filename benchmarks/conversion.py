"""Memory of a conversion: the most that it holds, by the size of the file that it converts.

    python benchmarks/conversion.py --out conversion
    python benchmarks/conversion.py --models FOLDER

By default the models are Llamas with random weights in the shapes of SmolLM2-135M and of TinyLlama
with 1.1 billion, the second in bfloat16 and several files. Each figure is from a process of its
own: the most memory that it held while it converted by `--to relational`, the file's pages that are
mapped included, less what it held before, when it had converted a model of no size with the same
tokenizer.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import measure
from hf_alpha.convert.retrofit import SymbolConfig, convert_host

SMALL = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
         "num_attention_heads": 1, "num_key_value_heads": 1}  # fmt: skip
SHAPES = {
    "135M, float32": (
        torch.float32,
        {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
         "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49_152,
         "tie_word_embeddings": True},
    ),
    "1.1B, bfloat16": (
        torch.bfloat16,
        {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
         "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32_000},
    ),
}  # fmt: skip
GOAL = 1.3
"""Of memory, by the size of the file."""


def tokenizer_of_bytes() -> PreTrainedTokenizerFast:
    """A tokenizer of 300 tokens."""
    beneath = Tokenizer(models.BPE())
    beneath.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    beneath.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    beneath.train_from_iterator(["the value of a is the value of b"], trainer)
    names = dict(zip(("pad_token", "bos_token", "eos_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=beneath, **names)


def write_host(folder: Path, dtype: torch.dtype, shape: dict[str, int], tokenizer: Any) -> None:
    """Write a Llama with random weights."""
    tokenizer.save_pretrained(folder)
    names = ("pad_token_id", "bos_token_id", "eos_token_id")
    ids = {name: getattr(tokenizer, name) for name in names}
    torch.manual_seed(0)
    model = LlamaForCausalLM._from_config(LlamaConfig(**shape, **ids), dtype=dtype)
    model.save_pretrained(folder, max_shard_size="1GB")


def converted(model: str) -> dict[str, float]:
    """Convert in this process; megabytes and seconds of the processor."""
    with tempfile.TemporaryDirectory() as scratch:
        small, out = Path(scratch) / "small", Path(scratch) / "out"
        rule = {"name": {"pattern": "[a-z]", "count": 16}}
        tokenizer = AutoTokenizer.from_pretrained(model)
        write_host(small, torch.float32, {**SMALL, "vocab_size": len(tokenizer)}, tokenizer)
        del tokenizer
        convert_host(small, Path(scratch) / "first", SymbolConfig("relational", rule), str)
        before, start = measure.held(), time.process_time()
        Path("/proc/self/clear_refs").write_text("5")  # forgets the most that was held
        convert_host(model, out, SymbolConfig("relational", rule), str)
        seconds, most = time.process_time() - start, measure.held("VmHWM")
        size = sum(file.stat().st_size for file in Path(model).glob("*.safetensors")) / 1e6
    return {"file": size, "work": most - before, "process": most, "seconds": seconds}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("--models", nargs="+", default=[], help="folders of models in safetensors")
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=None)
    options = parser.parse_args(argv)
    rows = {}
    for model in options.models:
        if not [*Path(model).glob("*.safetensors")]:
            parser.error(f"--models: {model} is no folder with *.safetensors")
        rows[Path(model).name] = measure.in_own_process(converted, model)
    shapes = options.shapes if options.shapes is not None else [] if options.models else [*SHAPES]
    for name in shapes:
        with tempfile.TemporaryDirectory() as folder:
            write_host(Path(folder), *SHAPES[name], tokenizer_of_bytes())
            rows[name] = measure.in_own_process(converted, folder)
    lines = [
        [name, f"{of['file']:,.0f}", f"{of['work']:,.0f}", f"{of['work'] / of['file']:.2f}",
         f"{GOAL}", f"{of['process']:,.0f}", f"{of['seconds']:.1f}"]
        for name, of in rows.items()
    ]  # fmt: skip
    columns = ["model", "MB of the file", "MB of the work", "by the file", "goal: at most",
               "MB of the process", "seconds of the processor"]  # fmt: skip
    measure.finish(measure.table(columns, lines), {"rows": rows}, options.out, argv)


if __name__ == "__main__":
    measure.run(main)
