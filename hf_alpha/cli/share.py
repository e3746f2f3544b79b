"""`hf-alpha release`, `push` and `info`: what others get, and what they are told."""

from pathlib import Path

from hf_alpha.checkpoints.places import checkpoint_place, similar_names
from hf_alpha.cli.common import say
from hf_alpha.cli.options import argument, flag, may_trust


@may_trust("run")
def release(
    run: Path = argument("Output folder of a finished training run, or one of its checkpoints."),
    out: Path | None = argument("Folder to make; left out, RUN's code is renewed.", None),
) -> None:
    """Make the folder to share from a training run: model, code, recipe and log, no more."""
    if not run.is_dir():
        raise FileNotFoundError(f"no folder {run} of a training run{similar_names(run)}")
    from hf_alpha.hub.card import how_to_write
    from hf_alpha.hub.release import refresh
    from hf_alpha.hub.release import release as make

    if out is None:
        refresh(run)
        say(f"{run} has this version's code")
    else:
        make(run, out)
        say(f"{out} has no card: {how_to_write(out)}")


@may_trust("models")
def info(
    models: list[str] | None = argument(
        "Folders or Hub names; without any, the versions of what is here.", None
    ),
) -> None:
    """Say what a model is: encoding and promises, sizes, vocabulary, training, how to load it.

    Without a model: the versions of everything that matters, for a bug report.
    """
    if not models:
        from hf_alpha.environment import describe_environment

        say(describe_environment())
        return
    for place in models:
        checkpoint_place(place)
    from hf_alpha.hub.info import describe_model

    say("\n\n".join(describe_model(model) for model in models))


@may_trust("folder")
def push(
    folder: Path = argument("Model folder, or dataset folder.", exists=True, file_okay=False),
    repository: str = argument("owner/name on the Hub."),
    private: bool = flag("--private", "Make the repository private."),
    dry_run: bool = flag(
        "--dry-run", "Say what would be uploaded, and how the card begins; no more."
    ),
) -> None:
    """Share a model with its tokenizer, card and code, or a dataset, on the Hugging Face Hub.

    What is uploaded, and what is left out of the folder, is said before.
    """
    from hf_alpha.hub.push import push as run

    say(run(folder, repository, private, lambda text: say(text, err=True), dry_run))
