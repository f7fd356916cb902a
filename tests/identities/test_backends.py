"""NumPy and torch give the same numbers: the same algorithms, so only the order of summation differs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import features
from gramfold.methods import ANALYTIC
from gramfold.methods.pace.candidates import Blend
from gramfold.numerics import arrays
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel, leverages
from gramfold.solve.ridge import Spectrum, factorise
from gramfold.solve.update import update_solution
from strategies import PENALTIES, problems, relative

SOLVED = 1e-9  # summation error 1e-14 times condition numbers below 1e5 (PENALTIES)
MAPS = ["bias+linear", "raw+linear", "fourier:16:0.7", "bias+fourier:8", *(f"{name}:16" for name in features.ACTIVATIONS)]
TORCH_ON_CPU = "cpu:0"  # "cpu" means NumPy; with an index it is an ordinary torch device


def to_torch(*parts):
    return tuple(torch.as_tensor(part) for part in parts)


@given(problems(), st.sampled_from(["float64", "float32"]))
def test_moments_agree(problem, dtype):
    F = problem.X.astype(dtype)
    on_numpy, on_torch = (
        gf.Moments.from_features(*data, classes=problem.classes) for data in ((F, problem.codes), to_torch(F, problem.codes))
    )
    assert arrays.is_torch(on_torch.gram)
    for name in ("gram", "cross", "squares"):
        assert relative(arrays.to_numpy(getattr(on_torch, name)), getattr(on_numpy, name)) < 1e-13
    np.testing.assert_array_equal(on_torch.counts, on_numpy.counts)
    assert on_torch.wire_bytes == on_numpy.wire_bytes == len(on_torch.pack().to_bytes())
    back = gf.Moments.unpack(on_torch.pack())
    assert relative(back.gram, on_numpy.gram) < 1e-12
    assert relative(arrays.to_numpy((on_torch + on_torch - on_torch).gram), on_numpy.gram) < 1e-12


@given(problems(samples=(2, 30), clients=(2, 2)), PENALTIES)
def test_solvers_agree(problem, penalty):
    def everything(F, Y, F2, Y2):
        factor, spectrum, kernel = factorise(arrays.gram(F), penalty), Spectrum.of(arrays.gram(F)), Kernel.of(F)
        solution = factor.solve(F.T @ Y)
        gram = arrays.gram(F)
        arrays.mirror(gram)
        return {
            "gram": gram,
            "solve": solution,
            "dual": ridge_from_rows(F, Y, penalty),
            "leverages": leverages(factor, F),
            "update": update_solution(factor, solution, F2, Y2, 2.0),
            "downdate": update_solution(factor, solution, F[:1], Y[:1], -0.5),
            # eigenvectors have free signs; what is made of them has not
            "eigenvalues": spectrum.values,
            "spectral": spectrum.solve(F.T @ Y, penalty),
            "left out": kernel.left_out_residuals(Y, penalty),
            "diagonal": kernel.diagonal(kernel.values, 0.0),
        }

    (F, y), (F2, y2) = problem.parts()
    data = (F, np.eye(problem.classes)[y], F2, np.eye(problem.classes)[y2])
    on_numpy, on_torch = everything(*data), everything(*to_torch(*data))
    for name, value in on_numpy.items():
        assert arrays.is_torch(on_torch[name])
        assert relative(arrays.to_numpy(on_torch[name]), value) < SOLVED, name


def test_both_fall_back_where_a_system_is_singular(rng):
    F = np.repeat(rng.standard_normal((9, 2)), 2, axis=1)
    right = F.T @ rng.standard_normal((9, 2))
    with pytest.warns(gf.IllConditionedWarning):
        on_numpy = factorise(F.T @ F).solve(right)
    with pytest.warns(gf.IllConditionedWarning):
        on_torch = factorise(torch.as_tensor(F.T @ F)).solve(torch.as_tensor(right))
    assert relative(on_torch.numpy(), on_numpy) < 1e-9


@pytest.mark.parametrize("spec", [*map(features.parse, MAPS), features.Nystroem(np.eye(5))], ids=[*MAPS, "nystroem"])
@given(problem=problems(width=(5, 5)))
def test_feature_maps_agree(spec, problem):
    drawn = features.draw(spec, 5, seed=3)
    on_torch = drawn(torch.as_tensor(problem.X))
    assert arrays.is_torch(on_torch)
    assert on_torch.dtype == torch.float64
    assert relative(on_torch.numpy(), drawn(problem.X)) < 1e-12


def test_a_map_takes_integers_and_float32_of_both_kinds(rng):
    drawn = features.draw(features.parse("bias+relu:8"), 4, seed=0)
    pixels = rng.integers(0, 256, (3, 4)).astype(np.uint8)
    for rows in (pixels, pixels.astype(np.float32)):
        assert relative(drawn(torch.as_tensor(rows)).numpy(), drawn(pixels.astype(np.float64))) < 1e-13
        assert relative(drawn(rows), drawn(pixels.astype(np.float64))) < 1e-13


def given_as(kind, federation: gf.Federation) -> gf.Federation:
    """The same clients, as arrays of a kind."""
    data = {c.name: tuple(kind(part) for part in (*c.train(), *c.test())) for c in federation}
    return gf.Federation.from_clients(data, labels=federation.task.labels, random_state=federation.task.seed)


RUNS = [*(method() for method in ANALYTIC), gf.FedHiP(at="server"), gf.APFL(features="relu:16", refinement="fourier:64")]


@pytest.mark.parametrize("method", RUNS, ids=repr)
def test_whole_runs_agree(method, blobs, federation):
    X = blobs[0]
    given_arrays, given_tensors = (given_as(kind, federation) for kind in (np.asarray, torch.as_tensor))
    on_numpy = gf.run(method, given_arrays)
    for on_torch in (gf.run(method, given_arrays, device=TORCH_ON_CPU), gf.run(method, given_tensors)):
        for name, head in on_numpy.heads.items():
            assert arrays.is_torch(on_torch.heads[name].streams[0].weights)
            assert on_torch.heads[name].chosen.keys() == head.chosen.keys()
            for rows in (X, torch.as_tensor(X)):  # a head takes either kind, whatever it was solved with
                scores = arrays.to_numpy(on_torch.heads[name].scores(rows))
                np.testing.assert_allclose(scores, head.scores(X), rtol=0, atol=1e-9)  # of order one
            assert on_torch.clients[name].accuracy == on_numpy.clients[name].accuracy
            assert on_torch.clients[name].uplink_bytes == on_numpy.clients[name].uplink_bytes


def test_a_regression_agrees(rng):
    X, Y = rng.standard_normal((60, 5)), rng.standard_normal((60, 2))
    federation = gf.Federation.split(X, Y, clients=3, partition="iid", regression=True)
    for method in (gf.AFL(), gf.FedHiP(), gf.APFL(refinement="relu:16"), gf.Local(), gf.PACE(refinement="relu:16")):
        on_numpy, on_torch = gf.run(method, federation), gf.run(method, federation, device=TORCH_ON_CPU)
        # a root of a personal metric, features drawn in it, and again a solve: rounding grows at each
        assert on_torch.mean_rmse == pytest.approx(on_numpy.mean_rmse, rel=1e-8)


def test_clients_that_go_their_own_way_agree(rng):
    centres, parts = 1.5 * rng.standard_normal((4, 8)), {}
    for k in range(6):
        codes = rng.integers(0, 4, 100)
        turned = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        parts[str(k)] = ((centres[codes] + rng.standard_normal((100, 8))) @ turned, codes)
    federation = gf.Federation.from_clients(parts, test_size=0.0, labels=range(4))
    method = gf.PACE(features="bias+linear+fourier:256", refinement="relu:16", parts=(Blend(),))
    on_numpy, on_torch = gf.run(method, federation), gf.run(method, federation, device=TORCH_ON_CPU)
    assert max(head.chosen["alpha"] for head in on_numpy.heads.values()) > 0
    for name, head in on_numpy.heads.items():
        X = parts[name][0]
        assert on_torch.heads[name].chosen["alpha"] == pytest.approx(head.chosen["alpha"], rel=1e-6)
        np.testing.assert_allclose(arrays.to_numpy(on_torch.heads[name].scores(X)), head.scores(X), rtol=0, atol=1e-7)


def test_an_unusable_device_is_refused(federation):
    with pytest.raises(gf.GramfoldError, match="not usable here"):
        gf.run(gf.AFL(), federation, device="abacus")
