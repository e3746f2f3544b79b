"""`hf-alpha train` and Transformers' own trainer with a BART, which get the same batches."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import BartConfig, BartForConditionalGeneration, Seq2SeqTrainer

from hf_alpha.recipe import Recipe, read_recipe
from hf_alpha.tasks.text.swapping import swapping_pairs
from hf_alpha.train.trainers import AlphaTrainer
from steps import Batch


def swap(folder: Path, name: str, steps: int, device: str) -> Recipe:
    """The recipe text/swap with pairs of two classes of names, for a run in the folder."""
    pairs = folder / "train.jsonl"
    if not pairs.exists():
        rows = swapping_pairs(32 * steps, variables="abcd", functions="ABCD")
        pairs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    changes = {"data.train": pairs, "data.test": pairs, "training.output_dir": folder / name,
               "training.max_steps": steps, "training.disable_tqdm": "true",
               "training.use_cpu": str(device == "cpu").lower()}  # fmt: skip
    return read_recipe("text/swap", [f"{key}={value}" for key, value in changes.items()])


class Peer(Seq2SeqTrainer):
    """Transformers' own trainer, called as `train` calls ours."""

    def run(self, start: Any, say: Any) -> None:
        """Train from the beginning."""
        self.train()


def bart(model: Any, data_collator: Callable[..., Batch], **options: Any) -> Seq2SeqTrainer:
    """A trainer of a BART with this model's sizes; it gets the same batches."""
    ours = model.config
    sizes = {
        f"{part}_{name}": getattr(ours, f"{part}_{name}")
        for part in ("encoder", "decoder") for name in ("layers", "attention_heads", "ffn_dim")
    }  # fmt: skip
    config = BartConfig(
        vocab_size=ours.vocab_size, d_model=ours.d_model, dropout=0.0, **sizes, pad_token_id=0,
        max_position_embeddings=512, decoder_start_token_id=1, forced_eos_token_id=None,
    )  # fmt: skip

    def collate(rows: list[dict[str, Any]]) -> Batch:
        batch = data_collator(rows)
        return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}

    trainer = Peer(model=BartForConditionalGeneration(config), data_collator=collate, **options)
    trainer.check_end = lambda: None
    return trainer


SIDES = {"hf-alpha train": AlphaTrainer, "Seq2SeqTrainer, BART": bart}
"""What makes the trainer of each."""
