"""The single maps: the same numbers everywhere, and what each is said to approximate."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import GramfoldError
from gramfold.features import ACTIVATIONS, Bias, Fourier, Linear, Normalize, Nystroem, Projection, draw
from strategies import problems, relative

TORCH_NAMES = {"leakyrelu": "leaky_relu"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_torchs(name):
    x = np.concatenate([np.linspace(-6, 6, 241), [0.5, -0.5, 3.0, -3.0, 0.0, -0.0]])
    with_torch = getattr(torch.nn.functional, TORCH_NAMES.get(name, name), lambda x: x)
    expected = with_torch(torch.as_tensor(x)).numpy()
    np.testing.assert_allclose(ACTIVATIONS[name](x), expected, rtol=1e-14, atol=1e-15)


def test_random_numbers_are_these_everywhere_and_for_ever():
    # a change here breaks every saved head and every federation of mixed versions
    x = np.array([[1.0, -2.0, 0.5]])
    fourier = draw(Fourier(3, 0.7), 3, seed=5)(x)
    projection = draw(Projection(3, "tanh"), 3, seed=5)(x)
    # matrix products and libm differ in the last digits between machines
    np.testing.assert_allclose(fourier, [[0.7765803430341837, -0.943216949585323, 0.24831503084340567]], rtol=1e-12)
    np.testing.assert_allclose(projection, [[0.47501966043131927, -5.237759117411036e-05, -0.20615681072179834]], rtol=1e-10)
    assert draw(Fourier(3, 0.7), 3, seed=5).fingerprint == "e7b72d68552fad4f"


@pytest.mark.parametrize("spec", [Fourier(6), Projection(6)])
def test_a_map_depends_on_its_seed_and_name_and_nothing_else(spec, rng):
    x = rng.standard_normal((4, 5))
    first = draw(spec, 5, seed=1)(x)
    np.random.seed(0)
    np.testing.assert_array_equal(draw(spec, 5, seed=1)(x), first)
    for other in (draw(spec, 5, seed=2), draw(spec, 5, seed=1, name="refinement")):
        assert relative(other(x), first) > 0.1


def test_a_map_leaves_its_input_as_it_was(rng):
    x = rng.standard_normal((4, 5))
    before = x.copy()
    for spec in (Linear(), Bias(), Normalize(), Fourier(3), Projection(3), Nystroem(np.eye(5))):
        draw(spec, 5, seed=0)(x)
        np.testing.assert_array_equal(x, before)


@given(problems(samples=(2, 6), width=(1, 8)), st.floats(0.2, 2.0))
def test_fourier_features_approximate_the_gaussian_kernel(problem, scale):
    dim, d = 20_000, problem.X.shape[1]
    F = draw(Fourier(dim, scale), d, seed=0)(problem.X)
    distance = ((problem.X[:, None] - problem.X[None]) ** 2).sum(2)
    kernel = np.exp(-(scale**2) * distance / (2 * d))
    # a mean of `dim` terms 2 cos cos, each of variance below 2: six standard errors
    np.testing.assert_allclose(2 / dim * F @ F.T, kernel, rtol=0, atol=6 * math.sqrt(2 / dim))


@given(problems(samples=(1, 12), width=(1, 8)), st.floats(0.2, 3.0))
def test_nystroem_is_exact_on_its_landmarks(problem, gamma):
    X, d = problem.X, problem.X.shape[1]
    F = draw(Nystroem(X, gamma), d, seed=0)(X)
    kernel = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(2) / d)
    np.testing.assert_allclose(F @ F.T, kernel, rtol=0, atol=1e-9)  # eigenvalues below 1e-12 are raised to it


def test_projections_keep_the_scale_of_normalised_inputs(rng):
    x = rng.standard_normal((50, 400))
    assert draw(Projection(2000, "identity"), 400, seed=0)(x).std() == pytest.approx(1.0, rel=0.05)


@given(problems())
def test_normalised_samples_have_length_sqrt_d_and_zero_stays_zero(problem):
    X = np.vstack([problem.X, np.zeros((1, problem.X.shape[1]))])
    F = draw(Normalize(), X.shape[1], seed=0)(X)
    np.testing.assert_allclose((F[:-1] ** 2).sum(1), X.shape[1], rtol=1e-12)
    np.testing.assert_array_equal(F[-1], 0.0)


@pytest.mark.parametrize("inputs", [0.0, np.nan])
def test_no_input_warns(inputs, recwarn):
    draw(Normalize(), 3, seed=0)(np.full((2, 3), inputs))
    assert not recwarn.list


def test_bias_and_linear_are_what_they_say(rng):
    x = rng.standard_normal((4, 3))
    np.testing.assert_array_equal(draw(Bias(), 3, seed=0)(x), np.ones((4, 1)))
    np.testing.assert_array_equal(draw(Linear(), 3, seed=0)(x), x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Projection(0),
        lambda: Projection(-3),
        lambda: Projection(4, "sine"),
        lambda: Fourier(0),
        lambda: Fourier(4, 0.0),
        lambda: Fourier(4, -1.0),
        lambda: Fourier(4, math.nan),
        lambda: Fourier(4, math.inf),
        lambda: Nystroem(np.zeros(3)),
        lambda: Nystroem(np.full((2, 2), np.nan)),
        lambda: draw(Nystroem(np.eye(3)), 4, seed=0),
    ],
)
def test_maps_that_make_no_sense_are_refused(make):
    with pytest.raises(GramfoldError):
        make()


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 5)])
def test_rows_of_another_width_are_refused(shape):
    with pytest.raises(GramfoldError, match="expected rows of 5 numbers"):
        draw(Linear(), 5, seed=0)(np.zeros(shape))
