"""What clients take out of their targets before they are folded."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.methods import ClientData
from gramfold.methods.learning import offsets


def sites(rng, slopes=0.0, n=1800, count=6):
    """A curve that all share, an offset of each site, and perhaps a slope of its own."""
    X = rng.standard_normal((n, 4)) * [1.0, 10.0, 0.1, 5.0]
    site = np.arange(n) % count
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 10 + 3 * rng.standard_normal(count)[site]
    y += slopes * rng.standard_normal(count)[site] * X[:, 3] / 5 + 0.3 * rng.standard_normal(n)
    return X, y, site


def off(method, X, y, site):
    """The error of personal heads on every third sample."""
    test = np.arange(len(X)) // len(np.unique(site)) % 3 == 0
    parts = {str(s): (X[(site == s) & ~test], y[(site == s) & ~test]) for s in np.unique(site)}
    result = gf.run(method, gf.Federation.from_clients(parts, regression=True, test_size=0.0))
    left = [y[(site == s) & test] - result.heads[str(s)].predict(X[(site == s) & test]) for s in np.unique(site)]
    return float(np.sqrt(np.mean(np.concatenate(left) ** 2))), result


@pytest.mark.parametrize("slopes", [0.0, 2.0])
def test_what_sites_share_is_found_better_without_what_they_do_not(rng, slopes):
    data = sites(rng, slopes)
    taken, result = off(gf.PACE(), *data)
    left_in, _ = off(gf.PACE(own_parts=False), *data)
    assert taken < left_in
    assert taken < 0.45  # the noise is 0.3
    # newcomers have no offset that is known: what they are told is off by as much as sites differ
    assert float(result.global_head.errors.spread[0]) > 1.0


def test_without_it_no_head_depends_on_how_the_others_are_cut(rng):
    X, y, site = sites(rng, count=3)
    method = gf.PACE(own_parts=False, groups=False, personal=False)
    heads = []
    for cut in (site, np.where(site == 2, 1, site)):
        parts = {str(s): (X[cut == s], y[cut == s]) for s in np.unique(cut)}
        heads.append(gf.run(method, gf.Federation.from_clients(parts, regression=True, test_size=0.0)).heads["0"])
    np.testing.assert_allclose(heads[0].predict(X), heads[1].predict(X), atol=1e-8)


def test_noise_is_no_part_of_ones_own(rng):
    once = np.ones(60)
    parts = [offsets.shrunk_mean(rng.standard_normal((60, 1)), once) for _ in range(50)]
    assert np.mean([part[0] ** 2 for part in parts]) < 1 / 60
    np.testing.assert_allclose(offsets.shrunk_mean(5 + 0.1 * rng.standard_normal((60, 1)), once), 5, atol=0.05)  # four errors
    np.testing.assert_array_equal(offsets.shrunk_mean(np.full((2, 1), 5.0), np.ones(2)), 0)  # two samples are sure of nothing


def test_weights_of_samples_count_as_often(rng):
    left = 1 + rng.standard_normal((30, 1))
    twice = offsets.shrunk_mean(np.repeat(left, 2, 0), np.ones(60))
    np.testing.assert_allclose(offsets.shrunk_mean(left, np.full(30, 2.0)), twice, atol=1e-12)


@pytest.fixture
def shared_curve(rng):
    """Sites of `sites`, and PACE's result on them."""
    X, y, site = sites(rng, slopes=1.0)
    parts = {str(s): (X[site == s], y[site == s]) for s in np.unique(site)}
    return X, parts, gf.run(gf.PACE(), gf.Federation.from_clients(parts, regression=True, test_size=0.0))


@pytest.mark.filterwarnings("ignore::gramfold.errors.LearnedFeaturesWarning")
def test_who_is_forgotten_was_never_folded(shared_curve):
    X, parts, result = shared_curve
    run = result.run
    begin = run.method.revisable(run.broadcast).again(run.task)
    assert begin.offsets is not None
    names = [name for name in parts if name != "5"]
    total = sum((run.method.local(ClientData(name, run.given(name, *parts[name])), begin) for name in names[1:]),
                run.method.local(ClientData("0", run.given("0", *parts["0"])), begin))  # fmt: skip
    never = run.method.global_head(run.method.aggregate(total, begin))
    forgotten = result.forget(*parts["5"], "5")
    np.testing.assert_allclose(forgotten.global_head.predict(X), never.predict(X), atol=1e-9)
    back = forgotten.update(add={"5": parts["5"]})
    np.testing.assert_allclose(back.personalize(*parts["5"], "5").predict(X), result.heads["5"].predict(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore::gramfold.errors.LearnedFeaturesWarning")
def test_some_samples_go_with_all_and_come_back_without(shared_curve):
    X, parts, result = shared_curve
    some = tuple(part[:20] for part in parts["3"])
    with pytest.raises(gf.GramfoldError, match="depends on all of its samples"):
        result.forget(*some, "3")
    with pytest.raises(gf.GramfoldError, match="depends on all of its samples"):
        result.update(add={"3": some})
    rest = tuple(part[20:] for part in parts["3"])
    updated = result.update(add={"3": rest}, forget={"3": parts["3"]})
    assert updated.run.samples["3"] == len(rest[1])
    again = updated.update(add={"3": parts["3"]}, forget={"3": rest})
    np.testing.assert_allclose(again.global_head.predict(X), result.global_head.predict(X), atol=1e-9)


def test_who_comes_late_has_a_part_of_its_own(shared_curve):
    _, parts, result = shared_curve
    A, b = parts["0"]
    late = result.join(A[:100], b[:100] + 50, "late")
    assert np.sqrt(np.mean((late.predict(A[100:]) - b[100:] - 50) ** 2)) < 0.7  # they lie 50 away from everybody's
