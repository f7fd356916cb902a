"""The methods as a set: names, parameters, and hyper-parameters that cannot be."""

import dataclasses
import math

import numpy as np
import pytest

import gramfold as gf
from gramfold import features
from gramfold.methods import METHODS, make_method
from gramfold.methods.protocol import IN_CODE, OF_RUN


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_frozen_set_of_hyperparameters_with_a_name_and_a_source(name):
    method = make_method(name)
    assert method == METHODS[name]()
    assert (method.name, bool(method.summary), bool(method.paper)) == (name, True, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.features = "linear"  # type: ignore[attr-defined]
    own = {field.name for field in dataclasses.fields(method) if field.metadata not in (IN_CODE, OF_RUN)}
    assert method.parameters().keys() == own
    assert dataclasses.replace(method, precision="float16").parameters().keys() == own | {"precision"}


def test_unknown_methods_and_parameters_are_named():
    with pytest.raises(gf.GramfoldError, match=r"unknown method 'sgd'; known: .*afl"):
        make_method("sgd")
    with pytest.raises(gf.GramfoldError, match=r"method 'afl' has no parameter depth; it has: .*penalty"):
        make_method("afl", depth=3)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [("local", "penalty"), ("afl", "penalty"), ("localclasses", "penalty"), ("fedhip", "alpha"), ("fedhip", "penalty"),
     ("apfl", "penalty"), ("apfl", "refinement_penalty")],
)  # fmt: skip
def test_hyperparameters_that_cannot_be_are_refused(name, parameter, value):
    with pytest.raises(gf.GramfoldError, match=parameter):
        make_method(name, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "parameter", "value", "words"),
    [
        ("apfl", "lam", "x", "a number or none"),
        ("pace", "weights", 3, "a list of 2 numbers or none"),
        ("pace", "weights", [1.0], "a list of 2 numbers or none"),
        ("pace", "penalty", True, "a number or none"),
        ("fedavg", "rounds", 2.5, "a whole number"),
        ("fedavg", "lr", "banana", "a number or none"),
        ("deepafl", "personal", 1, "true or false"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_in_words(name, parameter, value, words):
    with pytest.raises(gf.GramfoldError, match=f"{name}'s {parameter} must be {words}"):
        make_method(name, **{parameter: value})


def test_whole_numbers_are_numbers_and_lists_tuples():
    assert make_method("pace", penalty=1, weights=[14, 0.02]).weights == (14, 0.02)  # type: ignore[attr-defined]


def test_fedhip_personalises_at_the_client_or_the_server():
    with pytest.raises(gf.GramfoldError, match="'client' or 'server', not 'moon'"):
        gf.FedHiP(at="moon")
    assert (gf.FedHiP().answer is None, gf.FedHiP(at="server").answer is None) == (True, False)


def test_maps_may_be_given_as_objects(federation, blobs):
    text = gf.run(gf.FedHiP(features="bias+fourier:16:0.5"), federation)
    spec = gf.run(gf.FedHiP(features=features.parse("bias+fourier:16:0.5")), federation)
    np.testing.assert_array_equal(text.heads["0"].scores(blobs[0]), spec.heads["0"].scores(blobs[0]))
    assert spec.to_dict()["parameters"]["features"]["kind"] == "chain"


def test_two_streams_may_have_landmarks_of_their_own(federation, blobs):
    X = blobs[0]
    method = gf.APFL(features=features.Nystroem(X[:20]), refinement=features.Nystroem(X[20:50]))
    head = gf.run(method, federation).heads["0"]
    assert [stream.map.dim for stream in head.streams] == [20, 30]


@pytest.mark.parametrize("method", [gf.Local, gf.AFL, gf.FedHiP, gf.APFL])
def test_methods_learn_what_can_be_learnt(method):
    # linearly separable up to noise: chance is 1/3
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = 3 * np.eye(3)[y] @ rng.standard_normal((3, 6)) + rng.standard_normal((400, 6))
    federation = gf.Federation.split(X, y, clients=5, partition="dirichlet:1", random_state=0)
    assert gf.run(method(), federation).mean_accuracy > 0.85


def test_the_leave_one_out_accuracy_predicts_the_test_accuracy(blobs):
    federation = gf.Federation.split(*blobs, clients=3, partition="iid", random_state=1)
    result = gf.run(gf.Local(), federation)
    assert result.leave_one_out_accuracy == pytest.approx(result.mean_accuracy, abs=0.12)  # 75 samples: three standard errors
