"""Numbers whose products are no numbers, or nothing, are refused with what to do: never an error of the linear algebra."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import MessageError

METHODS = [
    kind(features=features, **more)
    for features in ("raw+linear", "raw+bias+linear")
    for kind in (gf.AFL, gf.PACE, gf.FedHiP, gf.APFL, gf.Local, gf.LocalClasses)
    for more in ({}, {"penalty": 0.0})
    if not more or kind in (gf.AFL, gf.Local)
]


def federation(scale: float, targets: float | None = None) -> gf.Federation:
    rng = np.random.default_rng(0)
    X, codes, values = scale * rng.standard_normal((60, 4)), rng.integers(0, 3, 60), rng.standard_normal((60, 2))
    y = codes if targets is None else targets * values
    return gf.Federation.from_clients({str(k): (X[k::3], y[k::3]) for k in range(3)}, regression=targets is not None)


@pytest.mark.filterwarnings("ignore::gramfold.errors.IllConditionedWarning")
@pytest.mark.parametrize("targets", [None, 1.0])
@pytest.mark.parametrize("scale", [1e160, 1e-160, 1e300])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_features_out_of_range_say_to_scale_them(method, scale, targets):
    if targets is not None and isinstance(method, gf.LocalClasses):
        pytest.skip("classes only")
    try:
        gf.run(method, federation(scale, targets))
    except gf.GramfoldError as error:
        assert "scale the features" in str(error)  # noqa: PT017
    else:
        assert scale < 1, "beside a bias small features are nothing, and all is well without them"
        assert "bias" in method.features


@pytest.mark.parametrize("scale", [1e160, 1e-160])
@pytest.mark.parametrize("kind", [gf.AFL, gf.FedHiP, gf.PACE])
def test_targets_out_of_range_say_to_scale_them(kind, scale):
    with pytest.raises(gf.GramfoldError, match="scale the targets"):
        gf.run(kind(), federation(1.0, scale))


@pytest.mark.parametrize("scale", [1e60, 1e-60])
@pytest.mark.parametrize("kind", [gf.AFL, gf.Local, gf.PACE])
def test_what_can_be_computed_is(kind, scale):
    method, usual = kind(features="raw+linear"), federation(1.0)
    far, near = gf.run(method, federation(scale)), gf.run(method, usual)
    for name, head in near.heads.items():
        X = usual.clients[0].test().inputs
        np.testing.assert_array_equal(far.heads[name].predict(scale * X), head.predict(X))


def test_moments_from_elsewhere_are_in_range_too():
    with pytest.raises(MessageError):
        gf.Moments.from_arrays(1e200 * np.eye(2), np.zeros((2, 1)), np.zeros(1), 3)


def test_normalised_features_may_be_of_any_size():
    X = np.random.default_rng(1).standard_normal((5, 4))
    results = [gf.run(gf.AFL("bias+linear"), federation(scale)) for scale in (1.0, 1e160, 1e-160)]
    for name in results[0].heads:
        first, *others = (result.heads[name].scores(X) for result in results)
        for scores in others:
            np.testing.assert_allclose(scores, first, rtol=1e-9)
