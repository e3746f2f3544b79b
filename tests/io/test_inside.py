"""Paths in folders of others are followed inside them."""

import pytest

from hf_alpha.io.inside import OutsideError, inside


def test_a_name_in_a_folder_means_what_is_in_it(tmp_path):
    """Dots and links count for where they lead; a folder may be a link itself."""
    folder, other = tmp_path / "folder", tmp_path / "folder-2"
    for place in (folder / "part", other):
        place.mkdir(parents=True)
        (place / "file").touch()
    (folder / "within").symlink_to("part/file")
    (folder / "without").symlink_to(other / "file")
    (folder / "round").symlink_to("round")
    (tmp_path / "link").symlink_to(folder)
    for place in (folder, tmp_path / "link"):
        for name in ("part/file", "part/../within", f"{place}/part", ".", "absent/*.csv"):
            assert inside(place, name) == place / name
        for name in ("..", "../folder-2/file", "without", f"{other}/file", "/etc/passwd",
                     "part/../../folder-2", "without/../x"):  # fmt: skip
            with pytest.raises(OutsideError, match=r"outside of (it|the folder)"):
                inside(place, name)
    assert inside(folder / "part", "../within", folder)
    with pytest.raises(OutsideError, match=r"link to .*folder-2/file, .* put a copy"):
        inside(folder, "without")


def test_files_in_the_hubs_cache_are_links_to_their_repository(tmp_path):
    for repository in ("models--me--mine", "models--me--other"):
        (tmp_path / repository / "blobs").mkdir(parents=True)
        (tmp_path / repository / "blobs" / "0").touch()
    folder = tmp_path / "models--me--mine" / "snapshots" / "1"
    folder.mkdir(parents=True)
    (folder / "file").symlink_to("../../blobs/0")
    (folder / "other").symlink_to("../../../models--me--other/blobs/0")
    assert inside(folder, "file") == folder / "file"
    for name in ("other", "../../blobs/0"):  # nor is a link a way to name it
        with pytest.raises(OutsideError):
            inside(folder, name)
