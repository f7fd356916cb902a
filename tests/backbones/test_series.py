"""Series: kernels drawn from a seed alone, so that everybody has the same features of the same series."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.backbones import open_backbone
from gramfold.backbones.series import GROUP, LENGTH, _competing, _quantile, rows_of
from gramfold.errors import ClientsError, GramfoldError
from gramfold.federation import load_npz


def waves(n: int, steps: int = 60, channels: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Series of two kinds: a bump that rises slowly and falls fast, and the other way round, anywhere in noise."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, n)
    bump = np.concatenate([np.linspace(0, 3, 12), np.linspace(3, 0, 4)])
    found = 0.5 * rng.standard_normal((n, steps, channels))
    for one, kind in zip(found, kinds, strict=True):
        start = rng.integers(0, steps - len(bump))
        one[start : start + len(bump), 0] += bump if kind else bump[::-1]
    return found, kinds


def test_heads_tell_kinds_of_series_apart_and_take_new_ones_as_they_are(tmp_path):
    X, y = waves(400)
    result = gf.run(gf.PACE(), gf.Federation.split(gf.series(X, "rocket:256"), y, clients=4, partition="iid", random_state=0))
    assert result.mean_accuracy > 0.85  # guessing: a half
    new, kinds = waves(100, seed=1)
    head = result.heads["0"]
    head.save(tmp_path / "head.safetensors")
    opened = gf.load_head(tmp_path / "head.safetensors")
    assert (opened.predict(new) == kinds).mean() > 0.85
    np.testing.assert_array_equal(opened.predict_proba(new), head.predict_proba(gf.series(new, "rocket:256", steps=60)))
    np.testing.assert_allclose(opened.predict_proba(list(new[:3])), head.predict_proba(new[:3]), rtol=1e-6)


def test_clients_that_are_read_apart_have_the_features_of_one_table():
    X, y = waves(40)
    apart = {"a": (gf.series(X[:20], "rocket:64"), y[:20]), "b": (gf.series(X[20:], "rocket:64"), y[20:])}
    federation = gf.Federation.from_clients(apart, test_size=0.0)
    together = gf.series(X, "rocket:64")
    apart = np.concatenate([client.train().inputs for client in federation])
    np.testing.assert_allclose(apart, together, rtol=2e-6, atol=1e-6)  # other series in a block: float32 sums in another order
    assert federation.task.origin == together.origin


def test_clients_with_series_of_different_lengths_must_name_one():
    X, y = waves(20)
    with pytest.raises(ClientsError):
        gf.Federation.from_clients({"a": (gf.series(X), y), "b": (gf.series(X[:, :30]), y)})
    gf.Federation.from_clients({"a": (gf.series(X, steps=60), y), "b": (gf.series(X[:, :30], steps=60), y)})


@given(st.integers(0, 3), st.integers(1, 7))
def test_a_series_has_the_same_features_in_any_company(place, others):
    X, _ = waves(others + 4, steps=30)
    backbone = open_backbone("rocket:64:30x2")
    alone, among = rows_of(backbone, [X[place]]), rows_of(backbone, list(X))
    np.testing.assert_allclose(alone[0], among[place], rtol=2e-6, atol=1e-6)


def test_steps_before_and_after_a_recording_do_not_count():
    X, _ = waves(3, steps=50)
    longer = np.pad(X, ((0, 0), (7, 5), (0, 0)), constant_values=np.nan)
    backbone = open_backbone("rocket:128:50x2")
    np.testing.assert_allclose(rows_of(backbone, list(longer)), rows_of(backbone, list(X)), rtol=1e-5, atol=1e-5)


def test_shape_tells_whatever_the_level_and_the_unit():
    """The kernels' answers do; the statistics at the end tell level and unit."""
    X, _ = waves(4, steps=50)
    backbone = open_backbone("rocket:128:50x2")
    kernels = rows_of(backbone, list(X)).shape[1] - 15 * 2
    moved = rows_of(backbone, [one * 8.0 + 3.0 for one in X])
    np.testing.assert_allclose(moved[:, :kernels], rows_of(backbone, list(X))[:, :kernels], rtol=1e-3, atol=1e-3)
    assert not np.allclose(moved[:, kernels:], rows_of(backbone, list(X))[:, kernels:])


@given(st.integers(1, 9), st.integers(0, 2**16))
def test_quartiles_are_numpy_s(steps, seed):
    values = np.sort(np.random.default_rng(seed).standard_normal((3, steps)), axis=1)
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        np.testing.assert_allclose(_quantile(values, part), np.quantile(values, part, axis=1), rtol=1e-12, atol=1e-12)


def test_kernels_answers_are_those_of_the_definition(rng):
    """Step by step and kernel by kernel: the best of a group gains what it answers, the worst a count."""
    values, dilation = rng.standard_normal((3, 2, 20)).astype(np.float32), 2
    there = (rng.random((3, 20)) < 0.8).astype(np.float32)
    kernels = rng.standard_normal((2, GROUP, LENGTH)).astype(np.float32)
    channels = np.array([[0, 1], [1, 0]])
    expected = np.zeros((3, 2, 2, GROUP))
    for i, group, step in np.ndindex(3, 2, 20):
        places = step + dilation * (np.arange(LENGTH) - LENGTH // 2)
        inside = (places >= 0) & (places < 20)
        meets = np.where(inside, values[i][channels[group]].sum(0)[np.clip(places, 0, 19)], 0.0)
        answers = kernels[group] @ meets
        expected[i, 0, group, answers.argmax()] += there[i, step] * answers.max()
        expected[i, 1, group, answers.argmin()] += there[i, step]
    found = _competing(values, there, kernels, channels, dilation)
    np.testing.assert_allclose(found, np.maximum(expected, 0).reshape(3, -1), rtol=1e-4, atol=1e-4)  # float32 sums


def test_gaps_are_bridged():
    X, _ = waves(30, steps=80, channels=1)
    X = np.cumsum(X, axis=1)
    gappy = X.copy()
    gappy[:, 20:22] = np.nan
    whole, bridged = gf.series(X, "rocket:128"), gf.series(gappy, "rocket:128")
    other = np.linalg.norm(whole - np.roll(whole, 1, axis=0), axis=1)
    assert (np.linalg.norm(whole - bridged, axis=1) < 0.5 * other).mean() > 0.9


def test_a_file_of_series_is_read_and_predicted_on(tmp_path, gramfold):
    X, y = waves(200)
    np.savez(tmp_path / "series.npz", series=X.astype(np.float32), labels=y)
    assert load_npz(tmp_path / "series.npz").origin.name.endswith(":60x2")
    code, _, err = gramfold("run", str(tmp_path / "series.npz"), "--clients", "2", "--methods", "afl", "--heads",
                            str(tmp_path / "heads"), "--partition", "iid", "--out", str(tmp_path / "out"))  # fmt: skip
    assert code == 0, err
    np.savez(tmp_path / "new.npz", series=waves(20, seed=3)[0].astype(np.float32))
    head = tmp_path / "heads" / "afl" / "0.safetensors"
    code, _, err = gramfold("predict", str(head), str(tmp_path / "new.npz"), "--out", str(tmp_path / "p.csv"))
    assert code == 0, err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 21


def test_recordings_are_cut_into_windows():
    recording = np.arange(40.0).reshape(20, 2)
    X, y = gf.windows(recording, 5, labels=["rest"] * 12 + ["walk"] * 8)
    assert X.shape == (4, 5, 2)
    np.testing.assert_array_equal(X[1], recording[5:10])
    assert y.tolist() == ["rest", "rest", "walk", "walk"]
    assert gf.windows(recording, 5, 2)[1] is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((2, 3, 4, 5)), "expected series"),
        ([np.zeros((9, 2)), np.zeros((9, 3))], "series 1 has shape"),
        ([np.zeros(9), np.full(9, np.nan)], "series 1 has no number"),
        ([], "no series"),
        (np.zeros((2, 3)), "4 steps at least"),
        (np.zeros((2, 3, 50)), r"3 steps of 50 channels; where steps come last, give X.transpose\(0, 2, 1\)"),
        ("a file", "expected numbers, n x steps"),
    ],
)
def test_what_is_no_series_is_said_in_a_line(values, said):
    with pytest.raises(GramfoldError, match=said):
        gf.series(values)


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(GramfoldError, match="cannot be cut into windows of 9 steps"):
        gf.windows(np.zeros(5), 9)
    with pytest.raises(GramfoldError, match="give several recordings as a list"):
        gf.windows(np.zeros((3, 20, 2)), 5)
    with pytest.raises(GramfoldError, match="20 steps"):
        gf.windows(np.zeros(20), 5, labels=[1, 2])


def test_series_that_look_like_grey_images_are_told_what_to_become(rng):
    X, y = rng.standard_normal((40, 60, 3)), np.arange(40) % 2
    with pytest.raises(
        gf.GramfoldError, match=r"series \(n x steps x channels\), which look like grey images, make rows by gf.series"
    ):
        gf.run("pace", gf.Federation.split(X, y, clients=2, partition="iid"))


def test_series_whose_steps_come_last_are_noticed(rng):
    with pytest.warns(UserWarning, match="6 steps and 50 channels; where steps come last"):
        gf.series(rng.standard_normal((3, 6, 50)))


@pytest.mark.parametrize(("key", "shape"), [("images", (40, 60, 3)), ("features", (40, 60, 3))])
def test_a_file_that_calls_series_something_else_is_told_the_name(gramfold, tmp_path, rng, key, shape):
    np.savez(tmp_path / "data.npz", **{key: rng.standard_normal(shape)}, labels=np.arange(40) % 2)
    code, _, err = gramfold("run", str(tmp_path / "data.npz"), "--methods", "afl", "--clients", "2")
    assert code == 2
    assert "`series`" in err


def test_a_file_of_events_and_times_is_refused_in_words(gramfold, tmp_path):
    times = np.array([(True, 3.0)] * 20, dtype=[("event", "?"), ("time", "f8")])
    np.savez(tmp_path / "data.npz", features=np.eye(20), labels=times)
    code, _, err = gramfold("run", str(tmp_path / "data.npz"), "--methods", "afl")
    assert code == 2
    assert "survival times" in err
