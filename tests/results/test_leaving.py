"""A client leaves without its samples where its sum was kept; a class may come later. Both are what a run on the rest gives."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import OptionError, ResultError

NAMES = "abcd"
ONE_SUM = [
    gf.AFL(features="bias+linear", penalty=0.3),
    gf.APFL(features="bias+linear", penalty=0.3),
    gf.FedHiP(features="bias+linear"),
]
ONE_SUM += [gf.LocalClasses(features="bias+linear"), gf.PACE(features="bias+relu:12", penalty=0.5, groups=False)]
CLOSE = {"rtol": 1e-7, "atol": 1e-9}  # a sum less one of its parts is off by rounding, and a solve of it by its condition


def clients(seed, classes=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(8, 30, len(NAMES))
    made = {}
    for name, n in zip(NAMES, sizes, strict=True):
        y = np.concatenate([np.arange(classes), rng.integers(0, classes, n)])
        made[name] = rng.normal(size=(len(y), 4)) + y[:, None], y
    return made


def run(method, data, **kept):
    return gf.run(method, gf.Federation.from_clients(data, test_size=0.0, labels=range(3)), **kept)


@pytest.mark.parametrize("method", ONE_SUM, ids=lambda method: method.name)
@given(seed=st.integers(0, 50), gone=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
@settings(max_examples=10)
def test_leaving_is_never_having_been_there(method, seed, gone):
    data = clients(seed)
    left = run(method, data, keep_clients=True).leave(*sorted(gone))
    rest = {name: part for name, part in data.items() if name not in gone}
    never = run(method, rest)
    X = data["a"][0]
    assert np.allclose(left.global_head.forward(X), never.global_head.forward(X), **CLOSE)
    name = min(rest)
    assert np.allclose(left.personalize(*rest[name], name).forward(X), never.heads[name].forward(X), **CLOSE)
    assert left.run.samples == never.run.samples


def test_leaving_is_forgetting_with_the_samples_and_survives_the_disk(tmp_path):
    data = clients(0)
    result = run("afl", data, keep_clients=True)
    result.save(tmp_path / "kept")
    again = gf.load_result(tmp_path / "kept")
    X = data["a"][0]
    expected = result.forget(*data["b"], "b").global_head.forward(X)
    assert np.allclose(result.leave("b").global_head.forward(X), expected, **CLOSE)
    assert np.allclose(again.leave("b").global_head.forward(X), expected, **CLOSE)


def test_what_is_kept_follows_updates():
    data, other = clients(0), clients(1)
    result = run("afl", data, keep_clients=True)
    grown = result.update(add={"b": other["b"], "e": other["c"]})
    rest = {name: part for name, part in data.items() if name != "b"}
    X = data["a"][0]
    gone = grown.leave("b", "e")
    assert np.allclose(gone.global_head.forward(X), run("afl", rest).global_head.forward(X), **CLOSE)
    some = result.forget(data["b"][0][:5], data["b"][1][:5], "b").leave("b")
    assert np.allclose(some.global_head.forward(X), gone.global_head.forward(X), **CLOSE)
    with pytest.raises(gf.GramfoldError, match="does not hold what client 'b' sent; there are: a, c, d"):
        gone.leave("b")


def test_learned_features_have_seen_who_left():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    federation = gf.Federation.split(X, y, clients=4, partition="iid")
    result = gf.run(gf.PACE(groups=False), federation, keep_clients=True)
    with pytest.warns(gf.LearnedFeaturesWarning, match="were learned with them"):
        result.leave("0")


@pytest.mark.parametrize("method", ONE_SUM, ids=lambda method: method.name)
def test_a_class_may_come_later(method):
    data = clients(0)
    early = {name: (X[y < 2], y[y < 2]) for name, (X, y) in data.items()}
    late = {"e": (data["a"][0][data["a"][1] == 2], np.full((data["a"][1] == 2).sum(), 2))}
    result = gf.run(method, gf.Federation.from_clients(early, test_size=0.0), keep_clients=True)
    with pytest.raises(gf.GramfoldError, match=r"a new class is named by labels=\[\.\.\.\], in update"):
        result.update(add=late)
    later = result.update(add=late, labels=[2])
    at_once = run(method, early | late)
    X = data["a"][0]
    assert np.allclose(later.global_head.forward(X), at_once.global_head.forward(X), **CLOSE)
    assert np.allclose(later.personalize(*late["e"], "e").forward(X), at_once.heads["e"].forward(X), **CLOSE)
    assert set(later.personalize(*late["e"], "e").labels) == {0, 1, 2}
    back = later.leave("e")
    assert back.run.task.labels == (0, 1, 2), "its place stays"


def test_what_cannot_be_is_one_line():
    data = clients(0)
    plain = run("afl", data)
    with pytest.raises(gf.GramfoldError, match="does not hold what client 'b' sent; run with keep_clients=True"):
        plain.leave("b")
    with pytest.raises(ResultError):
        run("afl", data, keep_clients=True).leave(*NAMES)
    with pytest.raises(ResultError):
        plain.update(add={"e": data["a"]}, labels=["new"])
    with pytest.raises(gf.GramfoldError, match="keep_clients is for methods of one sum of moments, which local is not"):
        run("local", data, keep_clients=True)
    with pytest.raises(OptionError):
        run("afl", data, keep_clients=True, secure=gf.SecureSum())
    values = {name: (X, X[:, 0]) for name, (X, _) in data.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = gf.run("afl", gf.Federation.from_clients(values, test_size=0.0, regression=True))
    with pytest.raises(ResultError):
        numbers.update(add={"e": values["a"]}, labels=[3])
