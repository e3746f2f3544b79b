"""How models that do not answer are trained, whatever they are trained for."""

import json
import textwrap

import own_process
import pytest
import torch
import transformers
from datasets import Dataset
from folnets import NO_DROPOUT, make_folnet
from small_objectives import FOLNET, SIZES, recipe, write_rows
from transformers import BertConfig, PreTrainedModel, TrainingArguments

from hf_alpha.recipe import RecipeError
from hf_alpha.train import ObjectiveTrainer, train

KINDS = ["SequenceClassification", "MaskedLM", "PreTraining"]


def make_model(family: str, kind: str) -> PreTrainedModel:
    auto = f"AutoModelFor{kind}"
    if family == "folnet":
        return make_folnet(auto, **NO_DROPOUT)
    torch.manual_seed(0)
    return getattr(transformers, auto).from_config(
        BertConfig(**{**SIZES, **NO_DROPOUT}, vocab_size=16)
    )


def sequences(kind: str, uneven: bool) -> Dataset:
    """Labelled rows, all of one length; with `uneven`, some have more masked tokens."""
    drawn = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 10, (16, 8), generator=drawn)
    classes = torch.randint(0, 2, (16,), generator=drawn).tolist()
    columns = {
        "input_ids": ids.tolist(),
        "attention_mask": torch.ones_like(ids).tolist(),
        "token_type_ids": [[0] * 5 + [1] * 3] * 16,
    }
    if kind == "SequenceClassification":
        return Dataset.from_dict({**columns, "labels": classes})
    masked = [1 + row % 3 if uneven else 2 for row in range(16)]
    labels = [row[:n] + [-100] * (8 - n) for row, n in zip(ids.tolist(), masked, strict=True)]
    more = {"next_sentence_label": classes} if kind == "PreTraining" else {}
    return Dataset.from_dict({**columns, "labels": labels, **more})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["bert", "folnet"])
def test_accumulated_gradients_are_those_of_one_batch(tmp_path, family, kind):
    """To the digit where parts have as many masked tokens, and with FOLNet's masked tokens always.

    There FOLNet counts those of the whole step; other models take the mean of means.
    """
    trained = []
    for parts in (1, 4):
        arguments = TrainingArguments(
            str(tmp_path), max_steps=1, per_device_train_batch_size=16 // parts, optim="sgd",
            gradient_accumulation_steps=parts, learning_rate=1.0, lr_scheduler_type="constant",
            max_grad_norm=0.0, save_strategy="no", report_to="none", disable_tqdm=True,
            remove_unused_columns=False, use_cpu=True,
        )  # fmt: skip
        uneven = (family, kind) == ("folnet", "MaskedLM")
        rows, model = sequences(kind, uneven), make_model(family, kind)
        before = {name: weight.clone() for name, weight in model.state_dict().items()}
        trainer = ObjectiveTrainer(model, arguments, train_dataset=rows)
        trainer.train()
        trained.append(model.state_dict())
    assert any(not torch.equal(trained[0][name], before[name]) for name in before)
    for name, weight in trained[0].items():
        assert torch.allclose(trained[1][name], weight, atol=1e-5), name


PROCESSES = """
    import json, sys
    from hf_alpha.recipe import parse_recipe
    from hf_alpha.train import train

    for said in json.loads(sys.argv[1]):
        trainer = train(parse_recipe(said))
        assert trainer.args.world_size == 2 and trainer.state.global_step == 3
        assert trainer.args.gradient_checkpointing == said["training"]["gradient_checkpointing"]
"""


@pytest.mark.slow
def test_processes_train_models_with_weights_that_no_loss_reaches(tmp_path):
    """The last binary deduction of a FOLNet with a head for classes is such a weight."""
    rows = [{"source": f"a b {i}", "target": i % 2} for i in range(24)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    said = [
        {
            "task": "text",
            "objective": "class",
            "data": {"train": file},
            "model": FOLNET,
            "training": {
                "output_dir": str(tmp_path / f"out-{checkpointing}"),
                "max_steps": 3,
                "per_device_train_batch_size": 2,
                "gradient_checkpointing": checkpointing,
                "report_to": "none",
                "disable_tqdm": True,
            },
        }
        for checkpointing in (False, True)
    ]
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROCESSES))
    done = own_process.run_in_two(script, json.dumps(said))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("objective", "setting", "message"),
    [
        *((objective, {"label_smoothing_factor": 0.1}, "label_smoothing_factor is for classes, not")
          for objective in ("masked", "span", {"name": "class", "regression": True})),
        ("masked", {"dataloader_persistent_workers": True, "dataloader_num_workers": 1},
         "training: dataloader_persistent_workers: such workers would draw the masks of the f"),
    ],
)  # fmt: skip
def test_settings_that_would_do_something_else_are_refused(tmp_path, objective, setting, message):
    made = recipe(tmp_path, objective, {"train": "rows.jsonl"}, setting)
    with pytest.raises(RecipeError, match=message):
        train(made)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_loss_of_classes_is_smoothed(tmp_path):
    """It cannot come near to 0 then."""
    rows = [{"source": word * 3, "target": word} for word in ("yes ", "no ") * 6]
    data = {"train": write_rows(tmp_path / "rows.jsonl", rows)}
    losses = []
    for factor in (0.0, 0.3):
        told = {"output_dir": str(tmp_path / str(factor)), "label_smoothing_factor": factor,
                "learning_rate": 0.02, "max_steps": 60, "logging_steps": 60}  # fmt: skip
        trainer = train(recipe(tmp_path, "class", data, told, model=FOLNET, tokenizer="words"))
        losses.append(trainer.state.log_history[0]["loss"])
    assert losses[1] > losses[0] + 0.1


@pytest.mark.parametrize("strategy", ["random", "group_by_length"])
def test_metrics_of_validation_are_of_the_right_rows(tmp_path, strategy):
    """However training sorts its sequences, outputs are compared with the rows they belong to."""
    rows = [
        {"source": f"{'oh ' * (n % 5)}{kind}", "target": kind} for n in range(8) for kind in "ab"
    ]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    training = {"max_steps": 40, "learning_rate": 0.01, "eval_strategy": "steps", "eval_steps": 40}
    training |= {"per_device_eval_batch_size": 2, "train_sampling_strategy": strategy}
    trainer = train(recipe(tmp_path, "class", {"train": file, "validation": file}, training))
    (seen,) = (row for row in trainer.state.log_history if "eval_accuracy" in row)
    assert seen["eval_loss"] < 0.2 and seen["eval_accuracy"] == 1
