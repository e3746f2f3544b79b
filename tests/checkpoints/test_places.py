"""Names of checkpoints: folders here, names on the Hub."""

import pytest

from hf_alpha.checkpoints.places import checkpoint_place, may_be_on_hub


def test_a_mistyped_path_is_no_name_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for name in ("a", "a/b/c", "/a", "./a", "~/a", "me/a.jsonl", "me/a.csv.gz", "runs/a"):
        assert not may_be_on_hub(name), name
    for name in ("me/a", "me/a-1.5", "google/t5-small"):
        assert may_be_on_hub(name), name


def test_a_released_models_bare_name_is_told_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"'inline-t5' \(did you mean /.*/inline-t5\?\)"):
        checkpoint_place("inline-t5")


def test_a_file_is_no_checkpoint(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint folder '.*a\.safetensors': it is"):
        checkpoint_place(tmp_path / "a.safetensors")
