"""Extraction and its cache: read twice computed once, resumed after a kill, repaired after damage."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold import GramfoldError
from gramfold.backbones import open_backbone
from gramfold.extraction import extract, load_data, save_features
from gramfold.federation import Federation, load_npz
from gramfold.numerics.sharded import ShardedRows
from gramfold.sources import image_folder, source_of
from raw_cases import write_function, write_photos

SHARD = 32


@pytest.fixture
def colours(tmp_path):
    return open_backbone(f"python:{write_function(tmp_path)}:colours")


@pytest.fixture
def photos(tmp_path) -> Path:
    write_photos(tmp_path / "photos", 100)
    return tmp_path / "photos"


def run(photos, colours, cache, **options):
    return extract(image_folder(photos), colours, cache, shard=SHARD, **options)


def content(cache: Path) -> dict[str, bytes]:
    return {
        path.relative_to(cache).as_posix(): path.read_bytes() for path in cache.rglob("*") if path.suffix in (".npy", ".jsonl")
    }


# --- the cache ---


def test_a_second_run_reads(photos, colours, tmp_path):
    first, second = (run(photos, colours, tmp_path / "c") for _ in range(2))
    assert (first.computed, second.computed) == (100, 0)
    assert np.array_equal(first.rows[:], second.rows[:])
    assert np.array_equal(first.rows[:], colours(image_folder(photos).items))
    assert run(photos, colours, None).computed == 100


def test_the_content_counts_and_not_the_name(photos, colours, tmp_path):
    run(photos, colours, tmp_path / "c")
    photos.rename(tmp_path / "moved")
    assert run(tmp_path / "moved", colours, tmp_path / "c").computed == 0
    changed = image_folder(tmp_path / "moved").items[-1]
    changed.write_bytes(image_folder(tmp_path / "moved").items[0].read_bytes())
    assert run(tmp_path / "moved", colours, tmp_path / "c").computed == 100 % SHARD, "the last shard alone"


def test_another_backbone_shares_nothing(photos, colours, tmp_path):
    run(photos, colours, tmp_path / "c")
    other = tmp_path / "other"
    other.mkdir()
    path = Path(write_function(other))
    path.write_text(path.read_text().replace("(8, 8)", "(6, 6)"))
    assert run(photos, open_backbone(f"python:{path}:colours"), tmp_path / "c").computed == 100


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"x"), lambda path: path.unlink(), "flip"])
def test_a_damaged_shard_is_made_again_with_a_word(photos, colours, tmp_path, damage):
    whole = run(photos, colours, tmp_path / "c").rows[:]
    before = content(tmp_path / "c")
    shard = sorted((tmp_path / "c").rglob("*.npy"))[0]
    if damage == "flip":
        damaged = bytearray(shard.read_bytes())
        damaged[-5] ^= 1
        shard.write_bytes(damaged)
    else:
        damage(shard)
    with pytest.warns(UserWarning, match=rf"shard {shard.name} in .* is damaged; it is made again"):
        again = run(photos, colours, tmp_path / "c")
    assert again.computed in (SHARD, 100 % SHARD)
    assert np.array_equal(again.rows[:], whole)
    assert content(tmp_path / "c") == before


def test_a_torn_journal_costs_one_shard(photos, colours, tmp_path):
    run(photos, colours, tmp_path / "c")
    before = content(tmp_path / "c")
    journal = next((tmp_path / "c").rglob("journal.jsonl"))
    journal.write_bytes(journal.read_bytes()[:-20])
    assert run(photos, colours, tmp_path / "c").computed == 100 % SHARD
    assert content(tmp_path / "c") == before


SLOW = """
import sys, time
from pathlib import Path
import numpy as np
from gramfold.backbones.function import FunctionBackbone
from gramfold.extraction import extract
from gramfold.sources import source_of

def slow(texts):
    for text in texts:
        with open("seen.txt", "a") as seen:
            seen.write(text + "\\n")
    time.sleep({pause})
    return np.array([[len(text), int(text)] for text in texts], dtype=float)

slow.kind = "texts"
found = extract(source_of([str(i) for i in range(320)]), FunctionBackbone(slow, "slow"), Path(sys.argv[1]), shard=64)
print(found.computed)
"""


def test_killed_in_the_middle_it_goes_on_and_ends_the_same(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW.format(pause="float(sys.argv[2])"))

    def start(cache: str, pause: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "slow.py", cache, pause], cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    def lines() -> int:
        journals = list((tmp_path / "killed").rglob("journal.jsonl"))
        return len(journals[0].read_text().splitlines()) if journals else 0

    process = start("killed", "0.1")
    deadline = time.monotonic() + 60
    while lines() < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    complete = lines()
    assert 2 <= complete < 5
    seen = (tmp_path / "seen.txt").read_text().splitlines()
    (tmp_path / "seen.txt").unlink()
    resumed = start("killed", "0")
    assert int(resumed.communicate(timeout=60)[0]) == 320 - 64 * complete
    again = set((tmp_path / "seen.txt").read_text().splitlines()) & set(seen)
    assert len(again) <= 64, "nothing but the last shard is computed twice"
    start("whole", "0").communicate(timeout=60)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


# --- what cannot be read ---


def test_an_unreadable_image_is_named(photos, colours, tmp_path):
    broken = photos / "green" / "broken.jpg"
    broken.write_bytes(b"no image at all")
    with pytest.raises(GramfoldError, match=r"broken\.jpg cannot be read as an image: .*; remove it, or skip"):
        run(photos, colours, tmp_path / "c")
    with pytest.warns(UserWarning, match=r"broken\.jpg cannot be read as an image: .*; it is skipped"):
        found = run(photos, colours, tmp_path / "c", unreadable="skip")
    assert found.rows.shape[0] == 100 == len(found.kept)
    with pytest.raises(GramfoldError, match=r"broken\.jpg cannot be read; remove it"):  # also where the cache knows it
        run(photos, colours, tmp_path / "c")


def test_skipped_samples_take_their_labels_along(photos, colours):
    (photos / "blue" / "000.jpg").write_bytes(b"")
    with pytest.warns(UserWarning, match="it is skipped"):
        dataset = load_data(photos, colours, unreadable="skip")
    plain = colours([path for path in image_folder(photos).items if path.suffix == ".png"])
    assert np.array_equal(np.asarray(dataset.inputs), plain)
    assert len(dataset.targets) == 100


def test_nothing_readable(tmp_path, colours):
    (tmp_path / "p" / "a").mkdir(parents=True)
    (tmp_path / "p" / "a" / "x.png").write_bytes(b"")
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(GramfoldError, match="no sample of p can be read"):
        extract(image_folder(tmp_path / "p"), colours, unreadable="skip")


def test_a_model_that_gives_nonsense_is_refused():
    from gramfold.backbones.function import FunctionBackbone

    for answer, words in ((np.zeros(3), "it must be n x d"), (np.full((2, 3), np.nan), "NaN or infinite")):

        def wrong(texts, answer=answer):
            return answer

        setattr(wrong, "kind", "texts")  # noqa: B010
        with pytest.raises(GramfoldError, match=words):
            extract(source_of(["a", "b"]), FunctionBackbone(wrong, "wrong"))


# --- rows on disk ---


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_sharded_rows_read_like_one_array(sizes, data):
    whole = np.arange(sum(sizes) * 3, dtype=np.float32).reshape(-1, 3)
    kept = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))))
    rows = ShardedRows(np.split(whole, np.cumsum(sizes)[:-1]), kept)
    assert np.array_equal(np.asarray(rows), whole[kept])
    assert rows.shape == whole[kept].shape
    if len(kept):
        some = np.array(data.draw(st.lists(st.integers(-len(kept), len(kept) - 1), max_size=6)), dtype=int)
        assert np.array_equal(rows[some], whole[kept][some])
        assert np.array_equal(rows[1:], whole[kept][1:])
        assert np.array_equal(rows[0], whole[kept][0])


def test_a_federation_over_a_cache_reads_only_what_a_client_needs(photos, colours, tmp_path):
    dataset = load_data(photos, colours, cache=tmp_path / "c")
    assert isinstance(dataset.inputs, ShardedRows)
    federation = Federation.from_dataset(dataset, 4, "iid")
    assert sum(client.train().n + client.test().n for client in federation) == 100


def test_features_are_saved_with_their_origin(photos, colours, tmp_path):
    dataset = load_data(photos, colours)
    save_features(tmp_path / "f.npz", dataset)
    again = load_npz(tmp_path / "f.npz")
    assert np.array_equal(again.inputs, np.asarray(dataset.inputs))
    assert (again.labels, again.origin) == (dataset.labels, dataset.origin)
    assert json.loads(str(np.load(tmp_path / "f.npz")["origin"]))["fingerprint"] == colours.fingerprint
