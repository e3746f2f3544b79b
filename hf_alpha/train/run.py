"""Training as a recipe says: data, model, trainer, and runs that resume where they stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import Seq2SeqTrainingArguments, set_seed
from transformers.integrations import get_reporting_integration_callbacks
from transformers.utils import CONFIG_NAME

from hf_alpha.checkpoints.named_files import WEIGHTS
from hf_alpha.data.keys import TRAINED_ROWS_FILE
from hf_alpha.io.folders import check_own, lock_folder
from hf_alpha.io.settings import section
from hf_alpha.modeling.choices import refuse
from hf_alpha.names.first_look import FIRST_LOOK_FILE
from hf_alpha.objectives.optimizers import optimizer_of
from hf_alpha.recipe import RECIPE_FILE, Recipe, named_code, write_recipe
from hf_alpha.trust import remember_recipe, was_trained_here

from .checkpoints import (
    TRAINER_STATE,
    final_weights,
    has_model,
    is_finished,
    notes_of_changes,
    starting_point,
    state_of,
    whole_checkpoint,
)
from .models import complete_rules, prepare_model
from .trainers import AlphaTrainer, ObjectiveTrainer


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
    arguments, objective = prepare_arguments(recipe), recipe.aim
    out, is_first = Path(arguments.output_dir), arguments.process_index == 0
    tell = say if is_first else lambda _: None
    with lock_folder(out):
        start = starting_point(arguments)
        if is_first and start is None and not was_trained_here(out):
            ours = (RECIPE_FILE, FIRST_LOOK_FILE, TRAINED_ROWS_FILE, CONFIG_NAME, WEIGHTS)
            check_own(out, ours, TRAINER_STATE)
        code_names = named_code(recipe).values()  # before a checkpoint adds to it
        if recipe.checkpoint is not None:
            recipe = complete_rules(recipe, tell)
        notes, at_end = [], None
        if start is not None:
            state = state_of(start)
            notes = notes_of_changes(recipe, out, state.global_step, allow_changes)
            at_end = final_weights(arguments, start) if is_finished(state, arguments) else None
        set_seed(arguments.seed)  # for the weights of a new model
        # One process makes the data, the others wait and read it.
        with arguments.main_process_first(desc="data"):
            examples = objective.examples(recipe, tell) if examples is None else examples
            model, tokenizer = prepare_model(recipe, examples, start, at_end, tell)
            data = objective.datasets(recipe, examples, model, tokenizer, tell)
        make = make_trainer if objective.answers else ObjectiveTrainer
        trainer: Any = make(
            model=model,
            args=arguments,
            processing_class=tokenizer,
            data_collator=objective.collator(tokenizer, model, arguments.seed),
            **data,
        )
        if recipe.optimizer:
            with section("optimizer"):
                trainer.optimizer_cls_and_kwargs = optimizer_of(recipe.optimizer, arguments)
        if trainer.is_world_process_zero():
            if at_end is None or not (out / RECIPE_FILE).is_file():
                write_recipe(recipe, out / RECIPE_FILE, notes)
            remember_recipe(out / RECIPE_FILE, code_names)
            examples.save(out, recipe.checkpoint)
        if at_end is None:
            trainer.run(start, tell)
        else:
            trainer.state = state
            tell(f"{out} holds a finished run of {state.global_step} steps: nothing is done")
        if at_end is None or not has_model(out, trainer.state):
            with whole_checkpoint(out):
                trainer.save_model()
                trainer.save_state()
    return trainer


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
        refuse(
            arguments.fsdp and arguments.device.type == "cpu",
            "fsdp shards a model over accelerators alone (accelerate would train a whole copy in "
            "each process here): leave it out",
        )
    if not objective.answers:
        arguments.remove_unused_columns = False  # collators take what else there is
    with section("training: report_to"):
        for tracker in get_reporting_integration_callbacks(arguments.report_to):
            tracker()  # one that is not installed says so before any work
    return arguments
