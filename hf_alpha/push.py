"""Sharing on the Hub."""

from pathlib import Path

from datasets import DatasetDict, load_dataset
from huggingface_hub import HfApi

from hf_alpha.loading import load_checkpoint


def push(folder: Path, repository: str, private: bool = False) -> str:
    """Upload a model folder or a dataset folder as it is, after checking that it loads.

    A model folder has a `config.json`, a dataset folder parquet files below `data/`. Its README.md
    becomes the card.

    Returns:
        The address of the repository.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: it is neither, or it does not load.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {str(folder)!r}")
    api = HfApi()
    if (folder / "config.json").is_file():
        load_checkpoint(folder)
        kind = "model"
    elif any(folder.glob("data/*.parquet")):
        data = load_dataset(str(folder))
        assert isinstance(data, DatasetDict)
        kind = "dataset"
    else:
        raise ValueError(
            f"{folder} is neither a model (config.json) nor a dataset (data/*.parquet)"
        )
    url = api.create_repo(repository, private=private, repo_type=kind, exist_ok=True)
    api.upload_folder(
        folder_path=folder,
        repo_id=repository,
        repo_type=kind,
        commit_message=f"Upload {kind}",
        # Training state is nobody else's business, and optimiser files are pickles.
        ignore_patterns=["checkpoint-*", "*.pt", "*.pth", "*.bin", "runs/*", ".parts/*"],
    )
    return str(url)


__all__ = ["push"]
