"""Links in a folder of images: followed within it, each to a place once; none leads out of it."""

from pathlib import Path

import pytest

from gramfold.errors import FileError
from gramfold.sources.folder import image_folder


@pytest.fixture
def photos(tmp_path) -> Path:
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "a.png").write_bytes(b"x")
    return tmp_path / "photos"


def test_a_loop_ends(photos):
    """It went on until the system's limit on links, 40 levels of every image."""
    (photos / "cat" / "again").symlink_to(photos, target_is_directory=True)
    (photos / "dog" / "self").symlink_to(photos / "dog", target_is_directory=True)
    assert len(image_folder(photos).items) == 2


@pytest.mark.parametrize("what", ["a file", "a folder", "a relative one"])
def test_a_link_that_leads_out_is_refused(what, photos, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    (private / "scan.png").write_bytes(b"x")
    link = photos / "cat" / ("b.png" if what == "a file" else "more")
    target = {"a file": private / "scan.png", "a folder": private, "a relative one": Path("../../private")}[what]
    link.symlink_to(target)
    with pytest.raises(FileError):
        image_folder(photos)


def test_a_folder_that_is_itself_a_link_is_read(photos, tmp_path):
    (tmp_path / "alias").symlink_to(photos, target_is_directory=True)
    assert len(image_folder(tmp_path / "alias").items) == 2
