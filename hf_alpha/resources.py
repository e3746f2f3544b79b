"""Where the data that goes with the package lies: built tokenizers, recipes, released models.

In a checkout these are the top-level folders; the wheel carries a copy of them inside the package.
"""

from pathlib import Path
from typing import Literal

Kind = Literal["tokenizer", "training", "model_cards"]

_PACKAGE = Path(__file__).resolve().parent


def resource_path(kind: Kind, *parts: str) -> Path:
    """Return the path of a file or folder that is shipped with the package.

    The checkout's folder beside the package comes first, then the copy in an installed wheel, so
    that what is edited in a checkout is what runs.

    Args:
        *parts: the path below it, such as `"TASK", "debug.yaml"`; none for the folder.

    Raises:
        FileNotFoundError: nothing is there; the message lists what is.
    """
    for root in _roots(kind):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(_missing(kind, parts))


def released_models() -> dict[str, Path]:
    """Return the folders of the released models by name, wherever they lie below `model_cards/`.

    Raises:
        FileNotFoundError: this installation has no folder of models.
    """
    files = resource_path("model_cards").rglob("config.json")
    return dict(sorted((file.parent.name, file.parent) for file in files))


def released_model(name: str | None) -> Path:
    """Return the folder of the released model of this name.

    Raises:
        FileNotFoundError: there is none; the message lists those that there are.
    """
    folders = released_models()
    if name not in folders:
        raise FileNotFoundError(f"no released model {name!r}; there are: {', '.join(folders)}")
    return folders[name]


def recipe_file(path: str | Path) -> Path:
    """Return the file of a recipe, given as a path or by its name among those shipped.

    Raises:
        FileNotFoundError: there is none; the message lists those that there are.
    """
    if Path(path).is_file():
        return Path(path)
    name = f"{path}" if str(path).endswith(".yaml") else f"{path}.yaml"
    try:
        return resource_path("training", *Path(name).parts)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no recipe {str(path)!r}: {error}") from error


def checkout_folders() -> list[Path]:
    """Return the checkout's folders of models and tokenizers; none for an installed package."""
    return [path for kind in ("model_cards", "tokenizer") for path in _in_checkout(kind)]


def _in_checkout(kind: str) -> list[Path]:
    checkout = _PACKAGE.parent
    # An installed package has site-packages beside it, where a folder of this name is not ours.
    return [checkout / kind] if (checkout / "pyproject.toml").is_file() else []


def _roots(kind: Kind) -> list[Path]:
    """Return the existing folders of this kind, the preferred one first."""
    return [root for root in (*_in_checkout(kind), _PACKAGE / "_data" / kind) if root.is_dir()]


def _missing(kind: Kind, parts: tuple[str, ...]) -> str:
    resource = "/".join((kind, *parts))
    roots = _roots(kind)
    if not roots:
        return (
            f"{resource} is not there: this installation of hf_alpha has no {kind}/ folder. "
            "Install the wheel or an editable checkout again."
        )
    # The deepest folder on the way that exists is where the wrong name stands.
    folder = next(path for path in roots[0].joinpath(*parts).parents if path.is_dir())
    alike = [path for path in folder.iterdir() if path.suffix in ("", Path(*parts).suffix)]
    names = sorted(path.name for path in alike if not path.name.startswith((".", "_")))
    reached = folder.relative_to(roots[0].parent)
    return f"{resource} is not there; {reached}/ has: {', '.join(names) or 'nothing'}."
