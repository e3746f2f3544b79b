"""A tour with released models: convert a vanilla one, tune it, compare all on 1 to 8 symbols."""

import copy
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from transformers import PreTrainedModel, Seq2SeqTrainingArguments, TrainerCallback
from transformers.utils import logging

from hf_alpha.convert import to_streams
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.generate import generate
from hf_alpha.data.read import load
from hf_alpha.evaluation.compare import HEATMAP_FILE, EvaluatedModel, compare, draw_problems
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.processes import choose_device
from hf_alpha.progress import TrainingProgress
from hf_alpha.resources import released_model
from hf_alpha.tasks import Task, Tour, name_of
from hf_alpha.tours.closing import closing
from hf_alpha.train import AlphaTrainer

TRAINED_SYMBOLS, SYMBOLS = 3, range(1, 9)
TUNING_SECONDS, TUNING_FORMULAS, TUNING_BATCH = 90.0, 20_000, 128
Loaded = tuple[PreTrainedModel, AlphaTokenizer]


def run(
    output: Path,
    task: Task,
    tour: Tour,
    steps: int | None,
    samples: int,
    seed: int,
    say: Callable[[str], None],
) -> str:
    """Run the tour of a task with released models; `run_tour` describes arguments and errors."""
    start = time.monotonic()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    task.require_solver(tour.solver[0])
    # First, because a folder that holds other problems is an error.
    rows = draw_problems(
        task, output / "problems", SYMBOLS, tour.sizes, samples, seed, progress=False
    )
    models = _convert(tour, say)
    num_steps = _tune(*models["tuned"], task, tour, output, steps, seed, say)
    say(f"   Fine-tuned for another {num_steps} steps.")
    folder = output / "model"
    for part in models["tuned"]:
        part.save_pretrained(folder)
    solver, checker = tour.solver
    say(f"4. All three, and a {task.random_name}, on new formulas; {checker} checks every answer.")
    _forget_reports(output / "evaluation")
    table, reports = compare(
        _evaluated(models | {"tuned": load_checkpoint(folder)}),
        task,
        rows,
        output / "evaluation",
        region=((0, TRAINED_SYMBOLS), (tour.sizes[0], tour.sizes[-1])),
        caption=caption(tour),
        covariance=min(8, samples),
        max_renamings=12,
        solver=solver,
        seed=seed,
    )
    say(f"\n{table}\n")
    say(f"Picture: {output / 'evaluation' / HEATMAP_FILE}")
    say(f"Model:   {folder} - AutoModelForSeq2SeqLM.from_pretrained({str(folder)!r}, ")
    say("         trust_remote_code=True) loads it, here and on any machine.")
    say(f"{time.monotonic() - start:.0f} seconds in all.")
    say(closing(reports[:-1], TRAINED_SYMBOLS))
    say("Next:    ask the tuned model a formula of your own:")
    say(f"         hf-alpha solve --task {name_of(task)} --model {folder} '{tour.example}'")
    return table


def caption(tour: Tour) -> str:
    """Say what the picture means."""
    return (
        "Formulas above the dashed frame have more symbols than any in training "
        f"({TRAINED_SYMBOLS} at most): the vanilla model cannot read them, its conversion can at "
        "once (converted), and is then tuned on formulas within the frame (tuned). Blue cells: "
        f"most answers are right, as {tour.solver[1]} says."
    )


def _convert(tour: Tour, say: Callable[[str], None]) -> dict[str, Loaded]:
    """Return the vanilla model, its conversion, and that conversion after it was tuned."""
    vanilla, tokenizer = load_checkpoint(released_model(tour.vanilla))
    say(
        f"1. {tour.vanilla}: a vanilla encoder-decoder, one vector for each of its symbols a, b, c."
    )
    a, b = tokenizer.convert_tokens_to_ids(["a", "b"])
    converted = to_streams(vanilla, a, b, tour.sides)
    say("2. Converted to one stream per symbol: without symbols, and with a alone, its logits are")
    say("   identical to the vanilla model's. Aggregated attention added, silent until trained.")
    tuned, tuned_tokenizer = load_checkpoint(released_model(tour.tuned))
    say(f"3. Two minutes of training are not enough, so it goes on from {tour.tuned}:")
    say("   this very conversion, tuned longer on formulas with at most 3 symbols.")
    _check_same_shape(tour, converted, tuned)
    return {
        "vanilla": (vanilla, tokenizer),
        "converted": (converted, copy.deepcopy(tokenizer)),  # which gets more symbols
        "tuned": (tuned, tuned_tokenizer),
    }


def _evaluated(models: Mapping[str, Loaded]) -> list[EvaluatedModel]:
    device = choose_device()
    return [
        EvaluatedModel(name, model.eval().to(device), tokenizer)
        for name, (model, tokenizer) in models.items()
    ]


def _check_same_shape(tour: Tour, one: PreTrainedModel, two: PreTrainedModel) -> None:
    shapes = [{name: p.shape for name, p in model.named_parameters()} for model in (one, two)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{tour.tuned} is not a conversion of {tour.vanilla}: their shapes differ")


def _forget_reports(folder: Path) -> None:
    """Remove what an earlier tour has left there: its model had other weights."""
    for name in ("report.json", "records.jsonl", "progress.json", "progress-*.jsonl"):
        for path in folder.glob(f"*/{name}"):
            path.unlink()


class _StopAfter(TrainerCallback):
    """Stops training when its time is up, and says how it goes: nobody knows how many steps."""

    def __init__(self, seconds: float, say: Callable[[str], None]):
        self.seconds, self.say = seconds, say
        self.start = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
        control.should_training_stop |= time.monotonic() - self.start > self.seconds

    def on_log(self, args, state, control, logs=None, **kwargs):  # type: ignore[no-untyped-def]
        if logs and "loss" in logs:
            passed = time.monotonic() - self.start
            self.say(f"   {passed:.0f} of {self.seconds:.0f} seconds  loss {logs['loss']:#.4g}")


def _tune(
    model: PreTrainedModel,
    tokenizer: AlphaTokenizer,
    task: Task,
    tour: Tour,
    output: Path,
    steps: int | None,
    seed: int,
    say: Callable[[str], None],
) -> int:
    """Train a little on fresh data; returns the number of steps.

    A few steps have few formulas, in a folder of their own: most of the time would go into others.
    """
    count = min(TUNING_FORMULAS, 2 * TUNING_BATCH * (steps or TUNING_FORMULAS))
    folder = output / "data" / str(count)
    generate(
        task,
        folder,
        count,
        sizes=(tour.sizes[0], tour.sizes[-1]),
        num_symbols=TRAINED_SYMBOLS,
        constant_priority=tour.constants,
        seed=seed + 1,
        progress=False,
    )
    data = tokenize(load(folder, "train"), tokenizer)
    trainer = AlphaTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(output / "tuning"),
            max_steps=steps if steps is not None else 100_000,
            per_device_train_batch_size=TUNING_BATCH,
            learning_rate=1e-4,
            lr_scheduler_type="constant",
            adam_beta2=0.95,
            weight_decay=0.1,
            save_strategy="no",
            logging_steps=100,
            report_to="none",
            dataloader_pin_memory=torch.cuda.is_available(),
            seed=seed,
        ),
        train_dataset=data,
        data_collator=AlphaCollator(tokenizer),
    )
    if steps is None:
        trainer.remove_callback(TrainingProgress)
        trainer.add_callback(_StopAfter(TUNING_SECONDS, say))
    trainer.train()
    return trainer.state.global_step


__all__ = ["caption", "run"]
