"""Sharing on the Hub."""

from collections.abc import Callable, Iterator
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi

from hf_alpha.data.dataset_folder import PARTS, SETTINGS
from hf_alpha.folders import ADAPTER, inside, refuse_adapter


def push(
    folder: Path, repository: str, private: bool = False, say: Callable[[str], object] = print
) -> str:
    """Upload what belongs to the model or the dataset in a folder, after checking that it loads.

    A model folder has a `config.json`, a dataset folder parquet files below `data/`. Its README.md
    becomes the card. Nothing else that lies there is uploaded, and no target of a link out of it
    but the package's own code.

    Args:
        folder: of the model or dataset.
        repository: owner/name on the Hub.
        private: make it so that others do not see it, if it is new.
        say: is told before the upload which files are uploaded, and which are left out.

    Returns:
        The address of the repository.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: it is neither, it does not load, a file of it is a link to somewhere else, or a
            secret is in it.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {str(folder)!r}")
    kind, files = shared_files(folder)
    say(f"{repository} gets these files of {folder}, with their bytes:")
    for name, path in files.items():
        say(f"{path.stat().st_size:>15,}  {name}")
    if left_out := sorted(_left_out(folder, files)):
        say(f"left out, as no part of a {kind}: {', '.join(left_out)}")
    api = HfApi()
    url = api.create_repo(repository, private=private, repo_type=kind, exist_ok=True)
    api.create_commit(
        repository,
        [CommitOperationAdd(name, path) for name, path in files.items()],
        repo_type=kind,
        commit_message=f"Upload {kind}",
    )
    return str(url)


def shared_files(folder: Path) -> tuple[str, dict[str, Path]]:
    """Return what may be shared of a model or a dataset: its kind, and name -> file.

    Raises:
        ValueError: it is neither, it does not load, a file of it is a link to somewhere else, or a
            secret is in it.
    """
    kind, belongs = _contents(folder)
    files = {
        name: _real(folder, name)
        for name in sorted(belongs)
        if (folder / name).is_file() or (folder / name).is_symlink()
    }
    _check_secrets(folder, files)
    return kind, files


def _contents(folder: Path) -> tuple[str, set[str]]:
    """Tell model from dataset, either of which has to load, and what may belong to it."""
    # Here: a mistyped folder is said before torch is loaded.
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    from hf_alpha.data.files import check_card
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.model_files import CARD, WEIGHTS, model_files, pictures

    refuse_adapter(folder, folder / ADAPTER)
    if (folder / "config.json").is_file():
        _, tokenizer = load_checkpoint(folder, answers=False)
        names = model_files(folder, tokenizer)
        if not any(map(WEIGHTS.fullmatch, names)):
            raise ValueError(f"{folder} has no *.safetensors: save the model by save_pretrained")
        return "model", names
    if (folder / PARTS).exists() and not (folder / SETTINGS).exists():
        raise ValueError(f"{folder} holds an unfinished run: start the same generation again")
    if data := [f"data/{path.name}" for path in folder.glob("data/[!.]*.parquet")]:
        check_card(folder)
        try:
            load_dataset(str(folder))
        except DatasetsError as error:
            raise ValueError(f"{folder}: the dataset does not load: {error}") from error
        return "dataset", {*data, SETTINGS, *CARD, *pictures(folder)}
    raise ValueError(f"{folder} is neither a model (config.json) nor a dataset (data/*.parquet)")


def _real(folder: Path, name: str) -> Path:
    """Return the file of that name: in the folder, or the package's own code.

    Raises:
        OutsideError: a link leads to something else, which the user may not want to share.
    """
    from hf_alpha.code_links import CODE

    real = (folder / name).resolve()
    return real if real == CODE / name else inside(folder, name)


def _check_secrets(folder: Path, files: dict[str, Path]) -> None:
    """Raise ValueError if the recipe or another text has a secret in it."""
    from hf_alpha.recipe import HUB_TOKEN, RECIPE_FILE, check_shareable

    if RECIPE_FILE in files:
        check_shareable(folder / RECIPE_FILE)
    for name, path in files.items():
        text = path.suffix in (".json", ".jinja", ".md", ".py", ".txt", ".yaml")
        if text and HUB_TOKEN.search(path.read_text(encoding="utf-8", errors="replace")):
            raise ValueError(
                f"{folder / name} has a token of the Hub in it (hf_...): take it out, and replace "
                "it by a new one if others may have seen it"
            )


def _left_out(folder: Path, files: dict[str, Path]) -> Iterator[str]:
    """Return what else lies in a folder; of one within it that shares nothing, its name."""
    shared = {folder / name for name in files}
    opened_folders = {folder / parent for name in files for parent in Path(name).parents}
    for place in opened_folders:
        for path in set(place.iterdir()) - shared - opened_folders:
            yield f"{path.relative_to(folder)}{'/' * path.is_dir()}"


__all__ = ["push", "shared_files"]
