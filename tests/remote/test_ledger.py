"""The ledger on disk: whenever the server is killed, the sum is that of the uploads which it counts, and they are all there."""

import os
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.remote.ledger import Ledger, SentUpload
from strategies import distance

SESSION = "session"


class Killed(BaseException):
    """Nothing catches it, and nothing runs after it: everything that writes raises it from then on."""


def kill_at(monkeypatch: pytest.MonkeyPatch, point: int) -> list[str]:
    """From the call with this number on, nothing is written, renamed or removed any more; returns the calls so far."""
    calls: list[str] = []

    def counting(name, real):
        def call(*arguments, **more):
            if len(calls) >= point:
                raise Killed
            calls.append(name)
            return real(*arguments, **more)

        return call

    for owner, name in ((os, "open"), (os, "fsync"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, counting(name, getattr(owner, name)))
    return calls


def upload(seed: int) -> gf.Moments:
    rng = np.random.default_rng(seed)
    return gf.Moments.from_features(rng.standard_normal((9, 3)), rng.integers(0, 2, 9), classes=2)


OLD, NEW, OTHER = upload(0), upload(1), upload(2)


def replace_it(folder: Path) -> None:
    """What a run does for a site whose data changed, wherever an earlier run was killed."""
    ledger = Ledger.load(folder / "fold", SESSION, folder / "kept")
    if ledger.counted["a"] == "new":
        return
    ledger.add(SentUpload(NEW.copy(), {"a": 1}, site="a", upload_id="new", replaced=OLD.copy()))
    ledger.save(folder / "fold", SESSION, "{}")


def assert_whole(ledger: Ledger) -> None:
    expected = ledger.upload_of("a").copy()
    expected += ledger.upload_of("b")
    assert distance(ledger.total, expected) < 1e-12
    assert distance(ledger.upload_of("a"), NEW if ledger.counted["a"] == "new" else OLD) < 1e-12


def test_killed_anywhere_while_replacing_a_kept_upload_the_sum_is_right(tmp_path):
    point, finished = 0, False
    while not finished:
        folder = tmp_path / str(point)
        (folder / "kept").mkdir(parents=True)
        ledger = Ledger(kept=folder / "kept")
        for site, moments in (("a", OLD), ("b", OTHER)):
            ledger.add(SentUpload(moments.copy(), {site: 1}, site=site, upload_id="old"))
        ledger.save(folder / "fold", SESSION, "{}")
        with pytest.MonkeyPatch.context() as monkeypatch:
            kill_at(monkeypatch, point)
            try:
                replace_it(folder)
                finished = True
            except Killed:
                pass
        assert_whole(Ledger.load(folder / "fold", SESSION, folder / "kept"))
        replace_it(folder)
        after = Ledger.load(folder / "fold", SESSION, folder / "kept")
        assert after.counted == {"a": "new", "b": "old"}
        assert_whole(after)
        after.save(folder / "fold", SESSION, "{}")
        assert len(list((folder / "kept").iterdir())) == 2, "what no longer counts is removed, sooner or later"
        point += 1
    assert point > 8


def test_a_refused_replacement_changes_nothing(tmp_path):
    ledger = Ledger(kept=tmp_path)
    ledger.add(SentUpload(OLD.copy(), {"a": 1}, site="a", upload_id="old"))
    other = gf.Moments.from_features(np.eye(2), np.array([0, 1]), classes=2)
    with pytest.raises(gf.GramfoldError, match="feature dimension"):
        ledger.add(SentUpload(other, {"a": 1}, site="a", upload_id="new", replaced=OLD.copy()))
    assert ledger.counted == {"a": "old"}
    assert distance(ledger.total, OLD) == 0
    assert distance(ledger.upload_of("a"), OLD) < 1e-12


def test_a_site_that_names_anothers_upload_leaves_the_others_file_alone(tmp_path):
    ledger = Ledger(kept=tmp_path)
    for site, moments in (("a", OLD), ("b", OTHER)):
        ledger.add(SentUpload(moments.copy(), {site: 1}, site=site, upload_id="the same"))
    assert distance(ledger.upload_of("a"), OLD) < 1e-12
    assert distance(ledger.upload_of("b"), OTHER) < 1e-12


def test_only_our_own_files_are_removed(tmp_path):
    theirs = [tmp_path / "thesis.safetensors", tmp_path / "upload-notes.txt", tmp_path / "photos"]
    theirs[0].write_bytes(b"x")
    theirs[1].write_bytes(b"x")
    theirs[2].mkdir()
    ledger = Ledger(kept=tmp_path)
    ledger.add(SentUpload(OLD.copy(), {"a": 1}, site="a", upload_id="old"))
    Ledger(kept=tmp_path).sweep()
    assert sorted(tmp_path.iterdir()) == sorted(theirs)
