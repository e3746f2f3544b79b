"""Pinned behaviour: what released models answer, and what weights and training steps look like.

`python tests/golden.py [NAME ...]` measures what is new, and what has these names, and writes the
files in tests/golden/; tests/test_golden.py compares. They change with a decision to change the
behaviour, which CHANGELOG.md names, and with nothing else.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, AlphaTokenizer
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.resources import released_models

FOLDER = Path(__file__).parent / "golden"
PROBLEMS = {
    "anf": ["a & ( b | a )", "t1", "( ( x ^ y ) & z ) | ( x ^ w )"],
    "copying": ["abca", "a", "eedcba", "abababab", "d c e"],
    "inline": [
        "inline a\ndef f(x):\n    a = x - x\n    b = a * x\n    if a < x:\n        return b\n"
        "    return x / a - b"
    ],
    "ltl": ["a", "&aXb", "U!a&bXc", "&XXaU1!a", "UXa&bUcX!d"],
    "proofs": [
        "a -> b . c -> d . b -> c . fact : a . goal : c .",
        "x1 -> y2 . z3 -> y2 . y2 -> z3 . fact : z3 . goal : y2 .",
    ],
    "reactions": ["CC(=O)O.OCC1CC1", "BrCc7ccccc7.N#C[Na]", "C1CC1N.O=C(Cl)c1ccc2ccccc2c1"],
    "propositional": ["a", "&a!b", "|&ab=c!d", "^a^b^ce", "!=&ab|!a!c"],
}
SIZES = {
    "num_base_tokens": 9,
    "symbol_classes": {"proposition": 4, "variable": 3},
    "encoder_position": "tree",
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    # The defaults when they were pinned.
    "adacos": True,
    "encoder_aggregated_attention": True,
    "decoder_aggregated_attention": True,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "learned": {"symbol_encoding": "learned"},
    "learned-random": {"symbol_encoding": "learned", "symbol_renaming": "random"},
    "learned-canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "dual_part-random": {"symbol_encoding": "dual_part", "symbol_renaming": "random_per_batch"},
    "streams": {"symbol_encoding": "streams"},
    "streams-all-attention": {"cross_attention": ["per_stream", "aggregated"]},
    "streams-aggregated-only": {
        "encoder_per_stream_attention": False,
        "decoder_per_stream_attention": False,
        "cross_attention": ["aggregated"],
    },
    "streams-pre": {"aggregated_attention_norm": "pre", "encoder_position": "sinusoidal"},
    "streams-plain": {
        "adacos": False,
        "normalize_features": False,
        "normalize_embeddings": False,
        "label_smoothing": 0.1,
        "encoder_position": "rope",
        "decoder_position": "sinusoidal",
    },
    "relational": {"symbol_encoding": "relational"},
    "relational-all-attention": {
        "symbol_encoding": "relational",
        "cross_attention": ["per_stream", "aggregated"],
        "encoder_position": "rope",
    },
}


def released() -> list[str]:
    """Names of the released models that answer with text."""
    recipes = {name: read_recipe(path / RECIPE_FILE) for name, path in released_models().items()}
    return [name for name, recipe in recipes.items() if recipe.aim.answers]


@torch.no_grad()
def answers(name: str) -> dict[str, Any]:
    """What a released model answers: greedy and beam tokens, and logits behind the start token."""
    model, tokenizer = load_checkpoint(released_models()[name])
    problems = PROBLEMS[name.partition("-")[0]]
    if isinstance(tokenizer, AlphaTokenizer):  # others find names by a rule
        room = len(tokenizer.symbol_tokens)
        problems = [each for each in problems if len(set(re.findall("[a-z]", each))) <= room]
    batch = tokenizer(problems, return_tensors="pt", padding=True)
    found: dict[str, Any] = {"problems": problems}
    for beams in (1, 3):
        output = model.generate(**batch, num_beams=beams, max_new_tokens=24)
        if not model.config.is_encoder_decoder:
            output = output[:, batch["input_ids"].shape[1] :]
        found[f"beams-{beams}"] = tokenizer.batch_decode(
            output, names=batch.names, new_names="t" if model.config.new_symbols else None
        )
    if not model.config.is_encoder_decoder:
        logits = model(**batch).logits[:, -1]
        return {**found, "logits": [[round(x, 5) for x in row] for row in logits.tolist()]}
    start = torch.full((len(problems), 1), model.config.decoder_start_token_id)
    logits = model(**batch, decoder_input_ids=start).logits[:, -1]
    found["logits"] = [[round(value, 5) for value in row] for row in logits.tolist()]
    return found


def small_model(variant: str) -> AlphaForConditionalGeneration:
    torch.manual_seed(0)
    return AlphaForConditionalGeneration(AlphaConfig(**{**SIZES, **VARIANTS[variant]}))


def parameters(variant: str) -> dict[str, list[int]]:
    """Name -> shape of all that a checkpoint holds."""
    return {name: list(x.shape) for name, x in small_model(variant).state_dict().items()}


def training(variant: str, steps: int = 4) -> list[float]:
    """Losses of some steps on random batches, two micro-batches each, dropout switched off."""
    model = small_model(variant).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        for _ in range(2):
            ids = torch.randint(3, 16, (4, 7), generator=generator)
            ids[0, 5:] = 0
            batch = {"input_ids": ids, "attention_mask": (ids != 0).long()}
            paths = torch.randint(1, 64, ids.shape, generator=generator)
            loss = model(**batch, tree_paths=paths, labels=ids[:, :5]).loss
            loss.backward()
            losses.append(round(loss.item(), 5))
        optimizer.step()
        optimizer.zero_grad()
    return losses


PINNED: dict[str, tuple[Callable[[str], Any], Callable[[], list[str]]]] = {
    "answers": (answers, released),
    "parameters": (parameters, lambda: list(VARIANTS)),
    "training": (training, lambda: list(VARIANTS)),
}


def pinned(kind: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{kind}.json").read_text())


def main(chosen: set[str]) -> None:
    known = {name for _, names in PINNED.values() for name in names()}
    if chosen - known:
        raise SystemExit(f"no {', '.join(chosen - known)}: there are {', '.join(sorted(known))}")
    for kind, (measure, names) in PINNED.items():
        path = FOLDER / f"{kind}.json"
        before = json.loads(path.read_text())
        kept = {name: value for name, value in before.items() if name not in chosen}
        rows = (
            f" {json.dumps(name)}: {json.dumps(kept[name] if name in kept else measure(name))}"
            for name in names()
        )
        path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
