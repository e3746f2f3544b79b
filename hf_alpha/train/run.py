"""Training as a recipe says: data, model, trainer, and runs that resume where they stopped."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from transformers import Seq2SeqTrainingArguments, set_seed
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils import CONFIG_NAME

from hf_alpha.checkpoints.named_files import WEIGHTS
from hf_alpha.data.keys import TRAINED_ROWS_FILE
from hf_alpha.data.pairs import UserPairs
from hf_alpha.io.folders import check_own, lock_folder
from hf_alpha.io.settings import section
from hf_alpha.names.first_look import FIRST_LOOK_FILE
from hf_alpha.objectives.optimizers import optimizer_of
from hf_alpha.recipe import RECIPE_FILE, Recipe, RecipeError, named_code, write_recipe
from hf_alpha.trust import remember_recipe, was_trained_here

from .checkpoints import (
    TRAINER_STATE,
    check_shapes,
    check_vocabulary,
    final_weights,
    has_model,
    is_finished,
    notes_of_changes,
    starting_point,
    state_of,
    whole_checkpoint,
)
from .models import complete_rules, load_trained, prepare_model
from .trainers import AlphaTrainer, Interrupted, ObjectiveTrainer, RunTrainer, StopOnInterrupt


def train(
    recipe: Recipe,
    allow_changes: bool = False,
    say: Callable[[str], object] = print,
    make_trainer: Callable[..., AlphaTrainer] = AlphaTrainer,
    examples: Any = None,
) -> Any:
    """Train as the recipe says; resume from the last checkpoint in `output_dir` if there is one.

    The finished model, its tokenizer and their code end up in `output_dir`. A resumed run reaches
    the same weights as one that was never stopped, to the bit, on the same machine and with the
    same number of processes. n processes see in each step the rows that one process sees with
    n times the batch, or n times the gradient accumulation, except that they fill up the last step
    of an epoch with its first rows.

    `recipe.yaml` there says what is run, from the start on. Where settings were changed on the
    way, comments in it say until which step others held. A finished run stays as it is.

    Args:
        allow_changes: go on with other settings than those of the run so far.
        say: is told where a run resumes, or that it has ended, and about the user's own data.
        make_trainer: makes the trainer of models that answer.
        examples: of `recipe.aim.examples`, where the recipe's data has been read already: runs with
            the same data need not read it, look at it and split it into tokens again.

    Returns:
        The trainer, with the trained model.

    Raises:
        RecipeError: the recipe does not fit its data, or the run in `output_dir`.
        CheckpointError: the checkpoint to resume is damaged.
        NotFiniteError: loss or gradients were not finite in `PATIENCE` steps in a row, or are not
            at the end; no model is written.
        Interrupted: Ctrl-C; there is a checkpoint of the last step.
        ValueError: another process trains in `output_dir`.
        FileExistsError: it is a file, or holds a recipe or a model that no run of this user wrote.
    """
    arguments = prepare_arguments(recipe)
    out = Path(arguments.output_dir)  # which the first process claims for all of a run
    with lock_folder(out) if arguments.process_index == 0 else nullcontext():
        return _train(recipe, arguments, allow_changes, say, make_trainer, examples)


def _check_own(arguments: Seq2SeqTrainingArguments) -> None:
    """Refuse to train over a model or a recipe that no run of this user left there."""
    out = Path(arguments.output_dir)
    if starting_point(arguments) is None and not was_trained_here(out):
        ours = (RECIPE_FILE, FIRST_LOOK_FILE, TRAINED_ROWS_FILE, CONFIG_NAME, WEIGHTS)
        check_own(out, ours, TRAINER_STATE)


def _train(
    recipe: Recipe,
    arguments: Seq2SeqTrainingArguments,
    allow_changes: bool,
    say: Callable[[str], object],
    make_trainer: Callable[..., AlphaTrainer],
    examples: Any,
) -> RunTrainer:
    """Train in a folder that is this run's."""
    if arguments.process_index == 0:
        _check_own(arguments)
    code_names = named_code(recipe).values()  # before a checkpoint adds to it
    tell = say if arguments.process_index == 0 else lambda _: None
    recipe = complete_rules(recipe, tell)
    out, start = Path(arguments.output_dir), starting_point(arguments)
    notes = (
        []
        if start is None
        else notes_of_changes(recipe, out, state_of(start).global_step, allow_changes)
    )
    finished = start is not None and is_finished(state_of(start), arguments)
    set_seed(arguments.seed)  # for the weights of a new model
    at_end = final_weights(arguments, start) if start is not None and finished else None
    # One process makes the data, the others wait and read it.
    with arguments.main_process_first(desc="data"):
        examples = recipe.aim.examples(recipe, tell) if examples is None else examples
        prepared = _prepare(recipe, at_end, start, tell, examples)
    stop = StopOnInterrupt()
    kind: Callable[..., RunTrainer] = make_trainer if recipe.aim.answers else ObjectiveTrainer
    trainer = kind(args=arguments, callbacks=[stop], **prepared)
    if recipe.optimizer:
        with section("optimizer"):
            trainer.optimizer_cls_and_kwargs = optimizer_of(recipe.optimizer, arguments)
    if trainer.is_world_process_zero() and not (finished and (out / RECIPE_FILE).is_file()):
        write_recipe(recipe, out / RECIPE_FILE, notes)
    if trainer.is_world_process_zero():
        remember_recipe(out / RECIPE_FILE, code_names)
        if isinstance(examples, UserPairs):
            examples.save(out, recipe.checkpoint)
    if start is not None and finished:
        trainer.state = state_of(start)
        tell(f"{out} holds a finished run of {trainer.state.global_step} steps: nothing is done")
    else:
        _run(trainer, start, stop, tell)
    if not (finished and has_model(out, trainer.state)):
        with whole_checkpoint(out):
            trainer.save_model()
            trainer.save_state()
    return trainer


def _prepare(
    recipe: Recipe,
    finished: Path | None,
    start: Path | None,
    say: Callable[[str], object],
    examples: Any,
) -> dict[str, Any]:
    """Return the arguments of a trainer; those of a finished run have its own model."""
    objective = recipe.aim
    model, tokenizer = prepare_model(recipe, examples, start, finished, say)
    return {
        "model": model,
        "processing_class": tokenizer,
        **objective.datasets(recipe, examples, model, tokenizer, say),
        "data_collator": objective.collator(tokenizer, model, recipe.seed),
    }


def _run(
    trainer: RunTrainer, start: Path | None, stop: StopOnInterrupt, say: Callable[[str], object]
) -> None:
    """Train from the beginning, or from a checkpoint whose weights fit."""
    out = trainer.args.output_dir
    if start is not None:
        answers = isinstance(trainer, AlphaTrainer)
        saved_model, saved_tokenizer = load_trained(start, answers)
        check_shapes(trainer.model, saved_model, start)
        check_vocabulary(trainer.processing_class, saved_tokenizer, start)
        say(f"{out}: resuming from {start}, step {state_of(start).global_step}")
    try:
        with stop.listening(single_process=trainer.args.world_size == 1):
            trainer.train(resume_from_checkpoint=None if start is None else str(start))
    except KeyError as error:
        if "metric_for_best_model" not in str(error):
            raise
        raise RecipeError(f"training: {error.args[0]}") from error
    trainer.check_end()
    if stop.interrupted and not is_finished(trainer.state, trainer.args):
        step = trainer.state.global_step
        raise Interrupted(
            f"stopped at step {step}, which {out}/{PREFIX_CHECKPOINT_DIR}-{step} holds: the same "
            "command goes on from there"
        )


def prepare_arguments(recipe: Recipe) -> Seq2SeqTrainingArguments:
    """Return the arguments of training, with defaults that suit the machine.

    Raises:
        RecipeError: a setting of training has a wrong kind or value.
    """
    objective = recipe.aim
    defaults: dict[str, Any] = {
        # Without it, processes that torchrun starts on a CPU would not know of each other.
        "use_cpu": not torch.accelerator.is_available(),
        # Heads leave some weights of a body without gradients.
        "ddp_find_unused_parameters": not objective.answers,
    }
    if recipe.data.streaming:  # else processes would get parts of one batch
        defaults["accelerator_config"] = {"dispatch_batches": False}
    with section("training"):
        objective.check_training(recipe.training)
        arguments = Seq2SeqTrainingArguments(**{**defaults, **recipe.training})
    if not objective.answers:
        arguments.remove_unused_columns = False  # collators take what else there is
    with section("training: report_to"):
        for tracker in get_reporting_integration_callbacks(arguments.report_to):
            tracker()  # one that is not installed says so before any work
    return arguments
