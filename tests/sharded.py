"""Sharded training in processes of their own; they import this module by its name."""

import json
from pathlib import Path

import torch
import torch.distributed
from strategies import make_model, random_batch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM

SETTINGS = {"symbol_encoding": "dual_part", "symbol_renaming": "random", "dropout": 0.0}
STEPS = 4


def train(model, batch, explicit: bool) -> list[float]:
    """Losses of some steps; random parts, renamings and the scale change in each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if explicit:
            model.advance_step()
        losses.append(loss.item())
    return [*losses, float(model.logit_scale.scale)]


def make_batch():
    model = make_model(**SETTINGS).train()
    batch = random_batch(5, model.config, [(6, 3), (5, 2)])
    return model, {**batch, "labels": batch.pop("decoder_input_ids")}


def connect(rank: int, folder: Path) -> torch.distributed.DeviceMesh:
    """Make this a process of two."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    return torch.distributed.init_device_mesh("cpu", (2,))


def run(rank: int, folder: Path) -> None:
    """A process of two; both see the same batch."""
    mesh = connect(rank, folder)
    found = []
    for explicit in (True, False):
        model, batch = make_batch()
        for layer in [*model.model.encoder.layers, *model.model.decoder.layers]:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        losses = train(model, batch, explicit)
        found.append([explicit, losses, int(model.model.symbol_draws.step)])
    (folder / f"{rank}.json").write_text(json.dumps(found))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def train_decoder(model, batch) -> list[float]:
    """Losses of some steps, by the scores of labels."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(STEPS):
        loss = -model(**batch, fused_lm_head=True).log_probs.sum() / 10
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def run_decoder(rank: int, folder: Path) -> None:
    """A process of two that trains the decoder in `start`, and writes it to `trained`."""
    mesh = connect(rank, folder)
    model = AutoModelForCausalLM.from_pretrained(folder / "start").train()
    for layer in model.backbone.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train_decoder(model, torch.load(folder / "batch.pt"))
    weights = get_model_state_dict(
        model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    if rank == 0:
        model.save_pretrained(folder / "trained", state_dict=weights)
    (folder / f"{rank}.json").write_text(json.dumps(losses))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
