"""Part files add up in any tree; nothing is in a sum twice, and nothing that answers another question is in it at all."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import files, wire
from gramfold.errors import PartsError
from gramfold.files.parts import PartFile, hashes
from gramfold.files.reading import Reading
from gramfold.wire import Packet

SIX = 6
TOLERANCE = 1e-12
"""Sums of a hundred numbers of size one, in another order."""


def write(path: Path, seed: int, n: int = 12, features: int = 3, classes: int = 2) -> Path:
    rng = np.random.default_rng(seed)
    np.savez(path, features=rng.standard_normal((n, features)), labels=np.arange(n) % classes)
    return path


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    """Six parts, a client each, and the task file that they answer."""
    folder = tmp_path_factory.mktemp("six")
    data = [write(folder / f"{k}.npz", k) for k in range(SIX)]
    task = files.begin(gf.AFL(features="bias+linear"), Reading(), data=data)
    paths = [folder / f"{k}.moments" for k in range(SIX)]
    for path, part in zip(paths, data, strict=True):
        files.fold(task, [part]).save(path)
    return task, paths


@given(st.permutations(range(SIX)), st.lists(st.integers(0, SIX - 2), min_size=SIX - 1, max_size=SIX - 1))
def test_any_tree_of_merges_gives_the_same(six, order, joints):
    _, paths = six
    straight = files.merge(paths)
    with tempfile.TemporaryDirectory() as folder:
        waiting = [paths[k] for k in order]
        for number, joint in enumerate(joints):
            i = joint % (len(waiting) - 1)
            merged = Path(folder) / f"{number}.moments"
            files.merge(waiting[i : i + 2]).save(merged)
            waiting[i : i + 2] = [merged]
        found = PartFile.load(waiting[0])
    assert found.parts == straight.parts
    assert found.asked == straight.asked
    np.testing.assert_array_equal(found.clients, straight.clients)
    np.testing.assert_allclose(found.upload.gram, straight.upload.gram, atol=TOLERANCE)
    np.testing.assert_allclose(found.upload.cross, straight.upload.cross, atol=TOLERANCE)
    assert found.upload.n == straight.upload.n == sum(part["samples"] for part in found.parts.values())


@given(st.sets(st.integers(0, SIX - 1), min_size=1), st.sets(st.integers(0, SIX - 1), min_size=1))
def test_a_part_does_not_count_twice_in_any_tree(six, left, right):
    _, paths = six
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "one.moments", Path(folder) / "other.moments"
        files.merge([paths[k] for k in sorted(left)]).save(one)
        files.merge([paths[k] for k in sorted(right)]).save(other)
        if not left & right:
            assert len(files.merge([one, other]).parts) == len(left | right)
            return
        with pytest.raises(
            gf.GramfoldError, match=r"other.moments and .*one.moments both hold part \d \([0-9a-f]{8}\), which would"
        ):
            files.merge([one, other])


def test_a_copy_under_another_name_is_the_same_part(six, tmp_path):
    task, paths = six
    content = np.load(paths[0].with_suffix(".npz"))
    np.savez(tmp_path / "copy of 0.npz", **content)
    files.fold(task, [tmp_path / "copy of 0.npz"]).save(tmp_path / "copy.moments")
    with pytest.raises(PartsError):
        files.merge([paths[0], tmp_path / "copy.moments"])


def test_a_client_is_in_one_part_whatever_its_samples_are_now(six, tmp_path):
    task, paths = six
    (tmp_path / "later").mkdir()
    files.fold(task, [write(tmp_path / "later" / "0.npz", 99)]).save(tmp_path / "again.moments")
    with pytest.raises(gf.GramfoldError, match=r"1 client of .*again.moments is in another part already, with other samples"):
        files.merge([paths[0], paths[1], tmp_path / "again.moments"])


def test_the_sum_may_be_among_what_is_merged(six, tmp_path):
    """A pattern catches it too: what an earlier merge left is made anew, a sum of others is added to."""
    _, paths = six
    out = tmp_path / "all.moments"
    files.merge(paths[:4]).save(out)
    assert len(files.merge([*paths[:4], out], out).parts) == 4
    assert len(files.merge([*paths, out], out).parts) == 6
    assert len(files.merge([out, *paths[4:]], out).parts) == 6
    with pytest.raises(PartsError):
        files.merge([out, *paths[3:]], out)


def test_the_same_inputs_give_the_same_file(six, tmp_path):
    task, paths = six
    files.fold(task, [paths[0].with_suffix(".npz")]).save(tmp_path / "again.moments")
    assert (tmp_path / "again.moments").read_bytes() == paths[0].read_bytes()
    files.merge(paths).save(tmp_path / "one.moments")
    files.merge(list(reversed(paths[:2])) + paths[2:]).save(tmp_path / "other.moments")
    assert PartFile.load(tmp_path / "one.moments").parts == PartFile.load(tmp_path / "other.moments").parts


OTHERS = [
    (gf.APFL(features="bias+linear"), {}, r"differ in their method \(apfl and afl\)"),
    (gf.AFL(features="bias+linear", penalty=2.0), {}, r"differ in their parameters: penalty \(2.0 and none\)"),
    (gf.AFL(features="bias+fourier:8"), {}, r"differ in their parameters: features"),
    (gf.AFL(features="bias+linear"), {"seed": 1}, r"differ in their seed \(1 and 0\)"),
    (gf.AFL(features="bias+linear"), {"test": 0.5}, r"differ in their data's columns: test \(0.5 and 0.25\)"),
]


@pytest.mark.parametrize(("method", "other", "what"), OTHERS, ids=[what for *_, what in OTHERS])
def test_what_answers_another_question_is_refused_with_what_differs(method, other, what, six, tmp_path):
    task, paths = six
    data = [path.with_suffix(".npz") for path in paths]
    reading = Reading(test=other.get("test", 0.25))
    strange = files.begin(method, reading, other.get("seed", 0), data)
    files.fold(strange, [data[1]]).save(tmp_path / "strange.moments")
    with pytest.raises(gf.GramfoldError, match=what) as caught:
        files.merge([paths[0], tmp_path / "strange.moments"])
    assert "\n" not in str(caught.value)
    with pytest.raises(PartsError):
        files.following(task, PartFile.load(tmp_path / "strange.moments"))


def test_other_classes_and_another_round_are_refused(six, tmp_path):
    task, paths = six
    data = [write(tmp_path / f"three-{k}.npz", k, classes=3) for k in range(2)]
    three = files.begin(gf.AFL(features="bias+linear"), Reading(), data=data)
    files.fold(three, [data[0]]).save(tmp_path / "three.moments")
    with pytest.raises(gf.GramfoldError, match=r"differ in their classes \(\[0, 1, 2\] and \[0, 1\]\)"):
        files.merge([paths[0], tmp_path / "three.moments"])
    files.fold(files.begin(gf.AFL(features="bias+linear"), Reading()), [data[0]]).save(tmp_path / "about.moments")
    with pytest.raises(PartsError):
        files.merge([paths[0], tmp_path / "about.moments"])
    final = files.following(task, files.merge(paths))
    with pytest.raises(PartsError):
        files.fold(final, [data[0]])
    with pytest.raises(PartsError):
        files.personal(task, [data[0]])


def test_parts_whose_data_does_not_fit_together_are_refused(tmp_path):
    asked = files.begin(gf.AFL(), Reading())
    files.fold(asked, [write(tmp_path / "a.npz", 0)]).save(tmp_path / "a.about")
    files.fold(asked, [write(tmp_path / "b.npz", 1, features=4)]).save(tmp_path / "b.about")
    with pytest.raises(gf.GramfoldError, match=r"b.about cannot be added to the others: they differ in their numbers per sample"):
        files.merge([tmp_path / "a.about", tmp_path / "b.about"])


def test_what_was_folded_already_is_given_back(six):
    task, paths = six
    before = PartFile.load(paths[0])
    assert files.fold(task, [paths[0].with_suffix(".npz")], before=before) is before
    assert files.fold(task, [paths[1].with_suffix(".npz")], before=before) is not before


@pytest.mark.parametrize("kind", ["cut", "flipped", "claims", "npz", "empty"])
def test_damaged_and_foreign_files_are_refused(kind, six, tmp_path):
    _, paths = six
    path, content = tmp_path / "bad.moments", paths[0].read_bytes()
    if kind == "claims":  # with a checksum that fits
        packet = Packet.from_bytes(content)
        parts = {part: {**about, "clients": 7} for part, about in packet.meta["parts"].items()}
        wire.write_atomically(path, Packet(packet.arrays, {**packet.meta, "parts": parts}).to_bytes())
    else:
        flipped = bytes([*content[:900], content[900] ^ 1, *content[901:]])
        path.write_bytes({
            "cut": content[:-5], "flipped": flipped, "npz": paths[0].with_suffix(".npz").read_bytes(), "empty": b"",
        }[kind])  # fmt: skip
    with pytest.raises(gf.GramfoldError, match=r"bad.moments"):
        PartFile.load(path)
    with pytest.raises(gf.GramfoldError, match=r"bad.moments"):
        files.TaskFile.load(path)


def test_a_task_file_is_no_part_file(six, tmp_path):
    task, paths = six
    task.save(tmp_path / "a.task")
    with pytest.raises(PartsError):
        PartFile.load(tmp_path / "a.task")
    with pytest.raises(PartsError):
        files.TaskFile.load(paths[0])


def test_hashes_of_clients_are_of_their_names_alone():
    assert hashes(["b", "a"]).tolist() == hashes(["a", "b"]).tolist()
    assert len(hashes(map(str, range(10_000)))) == 10_000
