"""Training as a recipe says: data, model, trainer, and runs that resume where they stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import (
    Seq2SeqTrainingArguments,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hf_alpha.data.collate import AlphaCollator
from hf_alpha.data.own import own_rows
from hf_alpha.folders import alone
from hf_alpha.generation import raise_limit, room_for
from hf_alpha.loading import (
    load_checkpoint,
)
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives.base import check_positions
from hf_alpha.objectives.evaluate import validating
from hf_alpha.objectives.names import find_names
from hf_alpha.objectives.optimizers import optimizer_of
from hf_alpha.objectives.rows import first
from hf_alpha.recipe import (
    RECIPE_FILE,
    PairsRecipe,
    Recipe,
    RecipeError,
    RowsRecipe,
    named_code,
    write_recipe,
)
from hf_alpha.trust import remember_recipe

from .arguments import prepare_arguments, section
from .checkpoints import (
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
from .data import longest_answer, own_pairs, prepare_data
from .models import complete_rules, objective_model, prepare_model, say_segments
from .trainers import (
    AlphaTrainer,
    AnswerRates,
    Interrupted,
    ObjectiveTrainer,
    RunTrainer,
    StopOnInterrupt,
)


def train(
    recipe: Recipe,
    resume: bool = True,
    allow_changes: bool = False,
    say: Callable[[str], object] = print,
    make_trainer: type[AlphaTrainer] = AlphaTrainer,
) -> Any:
    """Train as the recipe says; resume from the last checkpoint in `output_dir` if there is one.

    The finished model, its tokenizer and their code end up in `output_dir`. A resumed run reaches
    the same weights as one that was never stopped, to the bit, on the same machine and with the
    same number of processes. n processes see the batches of one process with n times the gradient
    accumulation steps, except that they fill up the last ones of an epoch with its first samples.

    `recipe.yaml` there says what is run, from the start on. Where settings were changed on the
    way, comments in it say until which step others held. A finished run stays as it is.

    Args:
        recipe: what to train.
        resume: go on with a run that is there; else it is an error.
        allow_changes: go on with other settings than those of the run so far.
        say: is told where a run resumes, or that it has ended, and about the user's own data.
        make_trainer: the class that trains models that answer.

    Returns:
        The trainer, with the trained model.

    Raises:
        RecipeError: the recipe does not fit its data, or the run in `output_dir`, or there is one
            and `resume` is not set.
        CheckpointError: the checkpoint to resume is damaged.
        NotFiniteError: loss or gradients were not finite in `PATIENCE` steps in a row, or are not
            at the end; no model is written.
        Interrupted: Ctrl-C; there is a checkpoint of the last step.
        ValueError: another process trains in `output_dir`.
    """
    arguments = prepare_arguments(recipe)
    with _claimed(arguments):
        return _train(recipe, arguments, resume, allow_changes, say, make_trainer)


@contextmanager
def _claimed(arguments: TrainingArguments) -> Iterator[None]:
    """Keep other runs out of the output folder; the first process does it for all of a run."""
    out = Path(arguments.output_dir)
    if out.exists() and not out.is_dir():
        raise RecipeError(f"training: output_dir {out} is a file: name a folder")
    with alone(out) if arguments.process_index == 0 else nullcontext():
        yield


def _train(
    recipe: Recipe,
    arguments: Seq2SeqTrainingArguments,
    resume: bool,
    allow_changes: bool,
    say: Callable[[str], object],
    make_trainer: type[AlphaTrainer],
) -> RunTrainer:
    """Train in a folder that is this run's."""
    own_code = named_code(recipe).values()  # before a checkpoint adds to it
    tell = say if arguments.process_index == 0 else lambda _: None
    recipe = complete_rules(recipe, tell)
    out, start = Path(arguments.output_dir), starting_point(arguments, resume)
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
        if isinstance(recipe, RowsRecipe):
            work = _prepare_objective(recipe, at_end, start, tell)
        else:
            work = _prepare_answers(recipe, at_end, tell)
    stop = StopOnInterrupt()
    kind = ObjectiveTrainer if isinstance(recipe, RowsRecipe) else make_trainer
    trainer = kind(args=arguments, callbacks=[stop], **work.given)
    if recipe.optimizer:
        with section("optimizer"):
            trainer.optimizer_cls_and_kwargs = optimizer_of(recipe.optimizer, arguments)
    if isinstance(trainer, AlphaTrainer):
        trainer.answer_rates = work.answer_rates
    if trainer.is_world_process_zero() and not (finished and (out / RECIPE_FILE).is_file()):
        write_recipe(recipe, out / RECIPE_FILE, notes)
    if trainer.is_world_process_zero():
        remember_recipe(out / RECIPE_FILE, own_code)
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


@dataclass
class _Work:
    """What a run needs: all that a trainer is given, and what says how many answers are right."""

    given: dict[str, Any]
    answer_rates: AnswerRates | None = None


def _prepare_answers(recipe: Recipe, finished: Path | None, say: Callable[[str], object]) -> _Work:
    """The work of a model that answers; of a finished run, with its own model."""
    task = recipe.solved
    own = own_pairs(recipe, say)
    model, tokenizer = load_checkpoint(finished) if finished else prepare_model(recipe, own, say)
    task.prepare(tokenizer)
    train_data, valid_data = prepare_data(recipe, tokenizer, own)
    raise_limit(model, 0 if own is None else room_for(longest_answer(train_data)))
    rates = None
    if isinstance(recipe, PairsRecipe) and own is not None and own.validation is not None:
        few = own_rows(own.validation, task, recipe.data.max_answer_samples)
        rates = AnswerRates(task, tokenizer, few)
    return _Work(
        {
            "model": model,
            "train_dataset": train_data,
            "eval_dataset": valid_data,
            "data_collator": AlphaCollator(
                tokenizer, for_decoder=not model.config.is_encoder_decoder
            ),
            "processing_class": tokenizer,
        },
        rates,
    )


def _prepare_objective(
    recipe: RowsRecipe, finished: Path | None, start: Path | None, say: Callable[[str], object]
) -> _Work:
    """The work of an objective that does not answer; of a finished run, with its own model."""
    aim, seed = recipe.aim, recipe.training.get("seed", 42)
    finder = find_names(recipe.symbols)
    with section("data"):
        train, validation = aim.read_both(recipe.data, seed, finder)
    if validation is None and recipe.training.get("eval_strategy", "no") != "no":
        raise RecipeError("training: eval_strategy needs data.validation: a share, or rows")
    with section("data"):
        parts = [train] if validation is None else [train, validation]
        labels = aim.config_settings(parts, recipe.data)
    train = first(train, recipe.data.max_train_samples)
    if finished:
        model, tokenizer = load_checkpoint(finished, answers=False)
    else:
        model, tokenizer = objective_model(recipe, train, labels, finder, start, say)
    if finder is not None and isinstance(tokenizer, TextTokenizer):
        tokenizer.finder.take_functions(finder)
    with section("objective"):
        check_positions(model, aim.max_length)
    say_segments(model, tokenizer, say)
    with section("data"):
        made = aim.features(train, recipe.data, tokenizer, model.config, seed=seed)
        say(f"training: {aim.summary(train, made, recipe.data, finder)}")
        given: dict[str, Any] = {"train_dataset": made}
        if validation is not None:
            given |= validating(aim, validation, recipe.data, model, tokenizer, seed)
    given |= {"data_collator": aim.collator(tokenizer, model, seed), "processing_class": tokenizer}
    return _Work({"model": model, **given})


def _run(
    trainer: RunTrainer, start: Path | None, stop: StopOnInterrupt, say: Callable[[str], object]
) -> None:
    """Train from the beginning, or from a checkpoint whose weights fit."""
    out = trainer.args.output_dir
    if start is not None:
        saved, theirs = load_checkpoint(start, answers=isinstance(trainer, AlphaTrainer))
        check_shapes(trainer.model, saved, start)
        check_vocabulary(trainer.processing_class, theirs, start)
        say(f"{out}: resuming from {start}, step {state_of(start).global_step}")
    try:
        with stop.listening(alone=trainer.args.world_size == 1):
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


__all__ = ["train"]
