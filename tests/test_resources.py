"""Data folders are found in a checkout, and what is missing is named with what is there."""

from pathlib import Path

import pytest

from hf_alpha import resources
from hf_alpha.resources import released_model, released_models, resource_path

ROOT = Path(__file__).resolve().parents[1]


def test_checkout_comes_first():
    assert resource_path("training") == ROOT / "training"
    assert resource_path("tokenizer", "propositional") == ROOT / "tokenizer" / "propositional"


def test_missing_file_lists_what_is_there():
    with pytest.raises(FileNotFoundError, match=r"training/\S+/nope\.yaml .*has: .*debug\.yaml"):
        resource_path("training", "propositional", "nope.yaml")
    with pytest.raises(FileNotFoundError, match=r"tokenizer/ has: .*propositional"):
        resource_path("tokenizer", "nope", "config.json")


def test_released_models_are_found_by_name():
    """Models worth a download at the top, those to compare with in a folder of their own."""
    models, top = released_models(), ROOT / "model_cards"
    assert [*models] == sorted(models)
    for name, folder in models.items():
        compared = name.endswith("-small") or name == "ltl-relational-five"
        assert folder == (top / "small" / name if compared else top / name)
    assert {path.parent for path in top.rglob("README.md")} == {*models.values()}


def test_a_released_model_that_is_not_there_is_told_with_those_that_are():
    assert released_model("inline-t5") == ROOT / "model_cards" / "inline-t5"
    for name in ("nope", None):
        with pytest.raises(FileNotFoundError, match=f"no released model {name!r}; .*: anf-rel"):
            released_model(name)


def test_packaged_copy_is_used_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "hf_alpha"
    (package / "_data" / "training" / "copying").mkdir(parents=True)
    (tmp_path / "training").mkdir()  # beside the package, but not ours: there is no checkout here
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resource_path("training", "copying") == package / "_data" / "training" / "copying"
    with pytest.raises(FileNotFoundError, match="has no model_cards/ folder"):
        released_models()
