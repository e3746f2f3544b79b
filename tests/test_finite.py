"""A training whose numbers are no longer finite stops, and its good checkpoints stay."""

import json
import logging
import math
import textwrap
from pathlib import Path

import own_process
import pytest
import torch
from commands import hf_alpha
from safetensors.torch import load_file
from small_objectives import PEOPLE, recipe, relations, write_rows

from hf_alpha.data.collate import AlphaCollator
from hf_alpha.loading import CheckpointError
from hf_alpha.recipe import read_recipe
from hf_alpha.train import AlphaTrainer, prepare_arguments, prepare_data, prepare_model, train
from hf_alpha.train.trainers import PATIENCE, FiniteSteps, NotFiniteError

SMALL = ["training.disable_tqdm=true", "training.logging_steps=1", "training.eval_strategy=no"]


def copying(out: Path, *changes: str):
    return read_recipe("copying/debug", [f"training.output_dir={out}", *SMALL, *changes])


def bad_in(*steps: int) -> type[AlphaTrainer]:
    """A trainer whose loss is NaN in the last micro-batch of some steps."""

    class Trainer(AlphaTrainer):
        def compute_loss(self, *args, **kwargs):
            loss = super().compute_loss(*args, **kwargs)
            micro = len(self._losses) == self.args.gradient_accumulation_steps - 1
            return loss * (math.nan if micro and self.state.global_step + 1 in steps else 1.0)

    return Trainer


def is_whole(folder: Path) -> bool:
    return all(bool(x.isfinite().all()) for x in load_file(folder / "model.safetensors").values())


def losses(folder: Path) -> list[float]:
    history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    return [entry["loss"] for entry in history if "loss" in entry]


def test_a_run_that_ends_in_nan_writes_no_model_and_names_what_is_good(tmp_path):
    changes = ["training.save_steps=2", "training.gradient_accumulation_steps=2"]
    with pytest.raises(NotFiniteError) as stopped:
        train(copying(tmp_path, *changes), make_trainer=bad_in(7, 8, 9, 10))
    said = str(stopped.value)
    assert f"stopped at step {6 + PATIENCE}: in {PATIENCE} steps in a row" in said
    assert f"the last good checkpoint is {tmp_path}/checkpoint-4: 'checkpoint: " in said
    assert f"({tmp_path}/checkpoint-6 was saved behind it, and leads here again)" in said
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"recipe.yaml", "checkpoint-2", "checkpoint-4", "checkpoint-6"}
    assert is_whole(tmp_path / "checkpoint-6")


def test_one_bad_batch_changes_no_weight_and_its_loss_is_none(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        train(copying(tmp_path, "training.save_steps=5"), make_trainer=bad_in(4, 5))
    assert is_whole(tmp_path) and "step 4 is left out: loss nan" in caplog.text
    assert f"{tmp_path}/checkpoint-5 is not written" in caplog.text
    assert [math.isfinite(loss) for loss in losses(tmp_path)] == 3 * [True] + 2 * [False] + 5 * [
        True
    ]


def test_a_run_that_ends_in_a_bad_step_has_no_model(tmp_path):
    with pytest.raises(NotFiniteError, match=r"in the last steps, .* no good checkpoint: begin"):
        train(copying(tmp_path, "training.max_steps=2"), make_trainer=bad_in(2))
    assert not (tmp_path / "model.safetensors").exists()


def test_the_command_fails_where_training_leads_to_nan(tmp_path):
    arguments = [f"training.output_dir={tmp_path}", *SMALL, "training.save_steps=1"]
    done = hf_alpha("train", "copying/debug", *arguments, "training.learning_rate=1e30")
    assert done.code == 2 and "loss 0.000" not in done.out and "  loss nan" in done.out
    assert "no model is written; there is no good checkpoint" in done.err
    assert "the trained model is in" not in done.out
    assert [path.name for path in tmp_path.glob("*/*.safetensors")] == ["model.safetensors"]
    assert not (tmp_path / "model.safetensors").exists() and is_whole(tmp_path / "checkpoint-1")


def test_objectives_that_do_not_answer_stop_too(tmp_path):
    rows = write_rows(tmp_path / "rows.jsonl", relations(20))
    said = recipe(
        tmp_path,
        "class",
        {"train": rows, "source": "story", "target": "kind"},
        {"learning_rate": 1e30, "max_steps": 20},
        symbols={"person": {"tokens": list(PEOPLE)}},
        tokenizer="words",
    )
    with pytest.raises(NotFiniteError, match="steps in a row"):
        train(said)
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_a_scaler_has_its_time_to_find_a_scale(tmp_path):
    """As with fp16: overflow is no fault of the weights while the scale can fall."""
    made = copying(tmp_path, "training.max_steps=20")
    model, tokenizer = prepare_model(made)
    trainer = AlphaTrainer(
        model,
        prepare_arguments(made),
        train_dataset=prepare_data(made, tokenizer)[0],
        data_collator=AlphaCollator(tokenizer),
    )
    trainer.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=32.0)
    next(model.parameters()).register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(NotFiniteError, match=f"stopped at step {5 + PATIENCE}"):
        trainer.train()
    logged = [entry["loss"] for entry in trainer.state.log_history]
    assert len(logged) == 4 + PATIENCE and all(map(math.isfinite, logged))


@pytest.mark.slow
def test_all_processes_stop_together(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import math, os, sys
        from hf_alpha.recipe import read_recipe
        from hf_alpha.train import AlphaTrainer, train

        class Trainer(AlphaTrainer):
            def _get_grad_norm(self, model, grad_norm=None):
                if self.args.process_index == 1 and self.state.global_step >= 3:
                    self._losses[-1] = self._losses[-1] * math.inf  # here alone
                return super()._get_grad_norm(model, grad_norm)

        try:
            train(read_recipe("copying/debug", sys.argv[1:]), make_trainer=Trainer)
        except ValueError as error:
            print("rank", os.environ["RANK"], error, flush=True)
        """)
    )
    changes = [f"training.output_dir={tmp_path}/out", *SMALL, "training.save_steps=1"]
    done = own_process.run_in_two(script, *changes)
    assert done.returncode == 0, done.stderr[-3000:]
    for rank in (0, 1):
        assert f"rank {rank} training is stopped at step {3 + PATIENCE}" in done.stdout
    assert f"the last good checkpoint is {tmp_path}/out/checkpoint-2" in done.stdout
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_weights_that_are_not_finite_are_not_resumed(tmp_path):
    train(copying(tmp_path, "training.max_steps=2", "training.save_steps=1"))
    file = tmp_path / "checkpoint-2" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-4:] = b"\x00\x00\xc0\x7f"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"checkpoint-2.* not finite"):
        train(copying(tmp_path, "training.max_steps=4"), allow_changes=True)


@pytest.mark.parametrize(
    ("loss", "norm", "finite"),
    [
        (1.0, 1.0, True),
        (math.nan, 0.0, True),  # of a batch in which nothing is asked
        (math.nan, math.nan, False),
        (1.0, math.inf, False),
        (math.inf, 1.0, False),
        (1.0, None, True),
        (math.nan, None, False),
    ],
)
def test_which_steps_are_finite(loss, norm, finite):
    steps = FiniteSteps()
    assert steps.add(4, loss, norm) == finite
    assert (steps.in_a_row, steps.proved) == ((0, 3) if finite else (1, -1))
    assert steps.losses == math.isfinite(loss)
