"""Sharing on the Hub."""

from pathlib import Path

from huggingface_hub import HfApi

from hf_alpha.data.run_folder import PARTS, SETTINGS
from hf_alpha.folders import TEMPORARY

# Training state is nobody else's business, optimiser files are pickles, killed runs leave parts.
NOT_SHARED = [
    *("checkpoint-*", "*.pt", "*.pth", "*.bin", "runs/*"),
    *(f"{PARTS}/*", TEMPORARY, f"{TEMPORARY}/*"),
    "evaluation*/**",  # whose records hold the test's problems and answers
]


def push(folder: Path, repository: str, private: bool = False) -> str:
    """Upload a model folder or a dataset folder as it is, after checking that it loads.

    A model folder has a `config.json`, a dataset folder parquet files below `data/`. Its README.md
    becomes the card.

    Returns:
        The address of the repository.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: it is neither, it does not load, or a link in it leads nowhere.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {str(folder)!r}")
    _check_links(folder)
    kind = _kind(folder)
    api = HfApi()
    url = api.create_repo(repository, private=private, repo_type=kind, exist_ok=True)
    api.upload_folder(
        folder_path=folder,
        repo_id=repository,
        repo_type=kind,
        commit_message=f"Upload {kind}",
        ignore_patterns=NOT_SHARED,
    )
    return str(url)


def _check_links(folder: Path) -> None:
    """A link that leads nowhere would be left out of the upload without a word."""
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.exists():
            raise ValueError(
                f"{path} is a link that leads nowhere: copy model folders of a checkout with "
                f"cp -rL, or write the code again with hf-alpha release {folder}"
            )


def _kind(folder: Path) -> str:
    """Tell model from dataset; either has to load."""
    # Here: a mistyped folder is said before torch is loaded.
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    from hf_alpha.loading import load_checkpoint

    if (folder / "config.json").is_file():
        load_checkpoint(folder, answers=False)
        if not any(folder.glob("*.safetensors")):
            raise ValueError(f"{folder} has no *.safetensors: save the model by save_pretrained")
        return "model"
    if (folder / PARTS).exists() and not (folder / SETTINGS).exists():
        raise ValueError(f"{folder} holds an unfinished run: start the same generation again")
    if any(folder.glob("data/*.parquet")):
        try:
            load_dataset(str(folder))
        except DatasetsError as error:
            raise ValueError(f"{folder}: the dataset does not load: {error}") from error
        return "dataset"
    raise ValueError(f"{folder} is neither a model (config.json) nor a dataset (data/*.parquet)")


__all__ = ["push"]
