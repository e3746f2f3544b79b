"""Optimiser steps are counted once each, whoever counts them."""

import copy
import gc
import json
import weakref

import pytest
import sharded
import torch
import torch.multiprocessing
from strategies import make_model, random_batch
from torch import nn

from hf_alpha.modeling import steps
from hf_alpha.modeling.steps import StepCounter


def one_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def test_a_plain_loop_is_counted_by_the_hook():
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    counter = StepCounter(model)
    counter.watch()
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    assert counter.settle() == 0
    for expected in (1, 2):
        one_step(model, ours)
        assert counter.count == expected - 1, "micro-batches of one step see the same count"
        assert [counter.settle(), counter.settle()] == [expected] * 2
    one_step(other, theirs)
    assert counter.settle() == 2
    model.requires_grad_(False)
    ours.step()
    assert counter.settle() == 2


def test_a_step_that_is_reported_counts_once():
    """And a plain loop after a Trainer's, or of a copy of the model, is counted again."""
    model = nn.Linear(2, 2)
    counter, optimizer = StepCounter(model), torch.optim.SGD(model.parameters(), lr=0.1)
    counter.watch()
    for expected in (1, 2, 3):
        one_step(model, optimizer)
        counter.advance()
        assert counter.settle() == expected
    one_step(model, optimizer)
    assert counter.settle() == 4


def test_copies_count_for_themselves_and_nothing_is_kept_alive():
    model = nn.Linear(2, 2)
    model.counter = StepCounter(model)
    model.counter.watch()
    twin = copy.deepcopy(model)
    twin.counter.watch()
    one_step(twin, torch.optim.SGD(twin.parameters(), lr=0.1))
    assert (model.counter.settle(), twin.counter.settle()) == (0, 1)
    alive = weakref.ref(twin.counter)
    del twin
    gc.collect()
    assert alive() is None and len(steps._hooks) == 1


def test_models_that_need_no_steps_install_no_hook(tmp_path):
    model = make_model(adacos=False, symbol_encoding="learned").train()
    batch = random_batch(1, model.config, [(5, 2)])
    model(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    model.save_pretrained(tmp_path)
    assert model.symbol_layer.steps not in steps._watched


@pytest.mark.slow
def test_compiled_training_is_compiled_once(fresh_compiler):
    """The number of steps is no condition in what is compiled."""
    model, graphs = make_model(dropout=0.0, encoder_layers=1, decoder_layers=1).train(), []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled, optimizer = (
        torch.compile(model, backend=backend),
        torch.optim.SGD(model.parameters(), lr=0.01),
    )
    batch = random_batch(1, model.config, [(5, 2), (5, 2)])
    batch["stream_ids"] = torch.tensor([[10, 11], [10, 11]])
    batch["input_ids"][:, :2] = torch.tensor([10, 11])
    batch["input_ids"][:, 2:] = 4
    counts, labels = [], batch.pop("decoder_input_ids").clamp(max=4)
    for _ in range(5):
        compiled(**batch, labels=labels).loss.backward()
        optimizer.step()
        counts.append(len(graphs))
    assert counts[-1] == counts[1] and model.symbol_layer.steps.count == 4


# Sharded training ------------------------------------------------------------------------------


@pytest.mark.slow
def test_fully_sharded_training_takes_the_steps_of_one_process(tmp_path):
    """FSDP2 over gloo on two CPU processes."""
    torch.multiprocessing.spawn(sharded.run, (tmp_path,), nprocs=2)  # raises what a process raises
    for rank in range(2):
        for explicit, losses, step in json.loads((tmp_path / f"{rank}.json").read_text()):
            model, batch = sharded.make_batch()
            assert losses == pytest.approx(sharded.train(model, batch, explicit), rel=1e-4)
            assert step == sharded.STEPS - (not explicit)  # the hook's last one comes later
