"""Moments of real samples pass every check, however ill-conditioned; the checks cost little beside making the moments."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import gramfold as gf
from gramfold.errors import GramfoldError
from gramfold.features import draw, parse
from gramfold.moments import Implied, check_consistent, check_implied

SHAPES = {
    "plain": lambda X: X,
    "scales far apart": lambda X: X * np.logspace(-60, 60, X.shape[1]),
    "far from zero": lambda X: X + 1e8,
    "nearly one direction": lambda X: X[:, :1] + 1e-9 * X,
    "features twice": lambda X: np.repeat(X[:, ::2], 2, axis=1),
    "features that are always zero": lambda X: X * (np.arange(X.shape[1]) % 3 > 0),
    "one sample many times": lambda X: np.repeat(X[:1], len(X), axis=0),
    "nothing but zeros": lambda X: 0 * X,
}


@pytest.mark.parametrize("n", [5, 12, 13, 400])
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_of_samples_are_believed(shape, n, rng):
    X = SHAPES[shape](rng.standard_normal((n, 12)))
    own = X @ rng.standard_normal((12, 2)) if np.abs(X).max() < 1e20 else rng.standard_normal((n, 2))
    for made in (gf.Moments.from_features(X, rng.integers(0, 3, n), classes=3), gf.Moments.from_features(X, own)):
        check_consistent(made)
        check_consistent(gf.Moments.unpack(made.pack()))


MAPS = [
    "linear",
    "bias+linear",
    "bias+linear+fourier:40",
    "tanh:20",
    "bias+sigmoid:9",
    "relu:30",
    "raw+linear",
    "raw+bias+fourier:8",
]


@pytest.mark.parametrize("spec", MAPS)
@pytest.mark.parametrize("n", [4, 300])
def test_what_a_map_implies_holds_for_its_moments(spec, n, rng):
    drawn = draw(parse(spec), 7, 0)
    X = 1e3 * rng.standard_normal((n, 7))
    X[0] = 0
    made = gf.Moments.from_features(drawn(X), rng.integers(0, 3, n), classes=3, fingerprint=drawn.fingerprint)
    check_implied(made, drawn.implied)
    check_implied(gf.Moments.unpack(made.pack()), drawn.implied)


def test_maps_say_what_they_can():
    said = {spec: draw(parse(spec), 7, 0).implied for spec in MAPS}
    assert said["bias+linear+fourier:40"] == Implied((0,), ((1, 8, 7.0), (8, 48, 40.0)))
    assert said["linear"] == Implied((), ((0, 7, 7.0),))
    assert said["relu:30"] == said["raw+linear"] == Implied()
    assert said["raw+bias+fourier:8"] == Implied((0,), ((1, 9, 8.0),))


def test_moments_of_none_are_refused(rng):
    made = gf.Moments.from_features(rng.standard_normal((40, 6)), rng.standard_normal((40, 1)))
    for gram, cross in ((made.gram - 2 * np.eye(6) * made.gram[0, 0], made.cross), (made.gram, 30 * made.cross)):
        made.products = type(made.products).of(gram, cross)
        with pytest.raises(GramfoldError):
            check_consistent(made)


def test_the_checks_cost_less_than_the_moments_they_check(rng):
    X, y = rng.standard_normal((3000, 1500)), rng.integers(0, 10, 3000)

    def seconds(work: Callable[[], object]) -> float:
        """Of the processor, the least of three: what other processes do is no cost of ours."""
        spent = []
        for _ in range(3):
            begun = time.process_time()
            work()
            spent.append(time.process_time() - begun)
        return min(spent)

    with threadpool_limits(1):  # threads that wait for one another count too
        packet = gf.Moments.from_features(X, y, classes=10).pack()
        making = seconds(lambda: gf.Moments.from_features(X, y, classes=10).pack())
        assert seconds(lambda: check_consistent(gf.Moments.unpack(packet))) < making
