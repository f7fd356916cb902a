"""Files: all or nothing, for their owner only, under no name that anybody could guess."""

import os
import stat

import pytest

from gramfold import wire
from gramfold.cli.run import check_outputs
from gramfold.errors import GramfoldError


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_its_owners_and_a_page_follows_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        wire.write_atomically(tmp_path / "moments", b"x")
        wire.write_atomically(tmp_path / "page", b"x", public=True)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "moments"), mode(tmp_path / "page")) == (0o600, 0o644)


def test_a_readable_file_becomes_private_when_it_is_written_again(tmp_path):
    (tmp_path / "moments").write_bytes(b"old")
    (tmp_path / "moments").chmod(0o644)
    wire.write_atomically(tmp_path / "moments", b"new")
    assert mode(tmp_path / "moments") == 0o600


def test_a_link_at_the_name_is_replaced_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")
    wire.write_atomically(tmp_path / "ours", b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "ours").is_symlink()


def test_the_temporary_name_is_another_every_time_and_never_an_existing_file(tmp_path, monkeypatch):
    names, opened = [], os.open

    def spy(path, flags, *rest, **more):
        if flags & os.O_CREAT:
            assert flags & os.O_EXCL
            names.append(str(path))
        return opened(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", spy)
    for _ in range(3):
        wire.write_atomically(tmp_path / "x", b"x")
    assert len(set(names)) == 3
    assert not any(str(os.getpid()) in name.removeprefix(str(tmp_path)).split(".") for name in names)


def test_content_and_name_are_on_disk_before_the_call_returns(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(stat.S_ISDIR(os.fstat(number).st_mode)), sync(number)))
    wire.write_atomically(tmp_path / "x", b"x")
    assert synced == [False, True]


def test_what_a_killed_write_leaves_does_not_make_a_folder_unusable(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    monkeypatch.setattr("pathlib.Path.replace", die)
    with pytest.raises(Killed):
        wire.write_atomically(tmp_path / "result.json", b"x")
    assert len(list(tmp_path.iterdir())) == 1
    check_outputs(tmp_path, ("result.json",))
    (tmp_path / "thesis.tmp").write_bytes(b"somebody else's")
    with pytest.raises(GramfoldError, match=r"contains other files \(thesis.tmp\)"):
        check_outputs(tmp_path, ("result.json",))
