"""The folder of a Hugging Face Space: the page, its models, and this version of the package."""

import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from hf_alpha.demo.service import Model
from hf_alpha.folders import new_folder
from hf_alpha.push import shared_files
from hf_alpha.recipe import named_code, recipe_of
from hf_alpha.trust import is_own_check

PACKAGE = Path(__file__).resolve().parents[1]
EXTRAS = ("", "ltl")
"""Gradio is brought by the Space itself: `sdk_version`."""
MODELS = "models"

APP = '''"""The page of hf_alpha. The package lies beside this file, as it is on no index."""

from hf_alpha.demo.server import serve
from hf_alpha.demo.service import Service, page_models

if __name__ == "__main__":
    serve(Service(page_models({places!r})), host="0.0.0.0", port=7860)
'''
CARD = """---
title: {title}
emoji: 🦎
colorFrom: green
colorTo: gray
sdk: gradio
sdk_version: {gradio}
python_version: "3.11"
app_file: app.py
license: apache-2.0
---

A model answers problems in which some tokens are only names, every answer is checked, and the
problem may be asked again under other names. Models: {models}. Written by `hf-alpha demo --space`.
"""


def write_space(models: Sequence[Model], out: Path, title: str = "Names are only names") -> None:
    """Write the folder of a Space: `app.py`, `README.md`, `requirements.txt`, package and models.

    Upload it with `hf upload owner/name FOLDER --repo-type space`.

    Args:
        models: to offer. Folders are copied, without what `push` would leave out; a name on the
            Hub stays a name.
        out: folder to make.
        title: of the Space.

    Raises:
        FileExistsError: `out` exists.
        ImportError: Gradio is not installed.
        ValueError: a model names code of the user's own, which a Space would not have, or may not
            be shared.
    """
    for model in models:
        _refuse_own_code(model.place)
    with new_folder(out) as folder:
        places = [_copied(model, folder) for model in models]
        shutil.copytree(
            PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__", "_data")
        )
        names = ", ".join(model.name for model in models)
        card = CARD.format(title=title, gradio=_gradio_version(), models=names)
        (folder / "app.py").write_text(APP.format(places=places), encoding="utf-8")
        (folder / "README.md").write_text(card, encoding="utf-8")
        (folder / "requirements.txt").write_text("\n".join(_requirements()) + "\n")


def _refuse_own_code(place: str) -> None:
    recipe = recipe_of(place)
    names = {} if recipe is None else named_code(recipe)
    if own := sorted(name for name in names.values() if not is_own_check(name)):
        raise ValueError(
            f"{place}: its recipe names code of your own, {own[0]}, which a Space would not have"
        )


def _copied(model: Model, folder: Path) -> str:
    """Copy a model's folder below that of the Space; return its place there."""
    if not Path(model.place).is_dir():
        return model.place
    _, files = shared_files(Path(model.place))
    for name, file in files.items():
        copy = folder / MODELS / model.name / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return f"{MODELS}/{model.name}"


def _gradio_version() -> str:
    try:
        return version("gradio")
    except PackageNotFoundError:
        raise ImportError("a Space needs Gradio: pip install 'hf_alpha[demo]'") from None


def _requirements() -> Iterator[str]:
    """Give what the package needs, and a build of PyTorch for CPUs, as free Spaces have."""
    yield "--extra-index-url https://download.pytorch.org/whl/cpu"
    for line in requires("hf_alpha") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in EXTRAS):
            requirement.marker = None
            yield str(requirement)


__all__ = ["write_space"]
