"""Names of before: taken for one release with a warning, in Python and on the command line; in files without a word."""

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import gramfold as gf
from gramfold.methods import make_method, saved_method
from gramfold.remote.settings import Settings
from gramfold.renamed import FORMER_OPTIONS, FormerNameWarning, options
from gramfold.results.saved import RUN
from gramfold.wire import Packet

BEFORE: dict[str, Any] = {"test": 0.5, "seed": 4, "small": "drop"}
METHODS = {
    "afl": ("beta", "penalty"), "local": ("beta", "penalty"), "pace": ("beta", "penalty"), "localclasses": ("beta", "penalty"),
    "apfl": ("gamma", "refinement_penalty"), "fedhip": ("gamma", "penalty"), "fedcof": ("gamma", "penalty"),
    "gh-ofl": ("shrink", "shrinkage"), "safle": ("beta", "penalty"), "deepafl": ("beta", "penalty"),
    "fedacnnl": ("beta", "penalty"), "pfedacnnl": ("beta", "penalty"), "pacecnn": ("beta", "penalty"),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_its_parameters_by_former_names(name):
    old, new = METHODS[name]
    kind, wanted = type(make_method(name)), make_method(name, **{new: 0.5})
    with pytest.warns(FormerNameWarning, match=f"{old} is called {new} now") as said:
        assert kind(**{old: 0.5}) == wanted
    assert said[0].filename == __file__
    with pytest.warns(FormerNameWarning):
        assert make_method(name, **{old: 0.5}) == wanted
    with pytest.warns(FormerNameWarning):
        assert replace(kind(), **{old: 0.5}) == wanted
    with pytest.warns(FormerNameWarning):
        assert getattr(wanted, old) == 0.5
    assert saved_method(name, {old: 0.5}) == wanted  # a file's names are nobody's mistake
    assert old not in wanted.parameters()


def test_cuts_take_their_arguments_by_former_names(blobs):
    usual: dict[str, Any] = {"clients": 9, "partition": "dirichlet:0.1", "min_size": 9}
    wanted = gf.Federation.split(*blobs, test_size=0.5, random_state=4, drop_small=True, **usual)
    with pytest.warns(FormerNameWarning) as said:
        found = gf.Federation.split(*blobs, **usual, **BEFORE)
    assert {str(each.message).split(" now")[0] for each in said} == {
        "test is called test_size", "seed is called random_state", "small is called drop_small"
    }  # fmt: skip
    assert found.description == wanted.description
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.test().inputs, other.test().inputs)
    with pytest.warns(FormerNameWarning):
        again = gf.Federation.from_clients({"a": blobs, "b": blobs}, **{"test": 0.5, "seed": 1})
    assert len(again.clients[0].test().targets) == 150


def test_estimators_take_a_seed_and_old_pickles_have_one():
    with pytest.warns(FormerNameWarning):
        old = gf.PersonalizedClassifier(**{"seed": 3})
    assert old.get_params()["random_state"] == clone(old).random_state == 3
    with pytest.warns(FormerNameWarning):
        assert gf.PersonalizedRegressor().set_params(seed=5).random_state == 5
    then = dict(old.__getstate__())
    state = {"seed" if key == "random_state" else key: value for key, value in then.items()}
    made = gf.PersonalizedClassifier.__new__(gf.PersonalizedClassifier)
    made.__setstate__(state)
    assert pickle.loads(pickle.dumps(made)).random_state == 3


@pytest.mark.parametrize("method", [gf.APFL(penalty=2.0, refinement_penalty=3.0), gf.PACE(penalty=2.0, learn=False)])
def test_saved_results_of_before_load(method, blobs, tmp_path):
    result = gf.run(method, gf.Federation.split(*blobs, clients=3, random_state=0))
    result.save(tmp_path)
    packet = Packet.from_bytes((tmp_path / RUN).read_bytes())
    before = json.loads(json.dumps(packet.meta).replace("refinement_penalty", "gamma").replace("penalty", "beta"))
    assert before != packet.meta
    (tmp_path / RUN).write_bytes(Packet(packet.arrays, before).to_bytes())
    loaded, X = gf.load_result(tmp_path), blobs[0]
    np.testing.assert_array_equal(loaded.join(*blobs).scores(X), result.join(*blobs).scores(X))
    one, other = (one.update(add={"new": blobs}).join(*blobs).scores(X) for one in (loaded, result))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)  # of order ten; summed in another order


@pytest.mark.filterwarnings("default::gramfold.renamed.FormerNameWarning")
def test_the_command_line_takes_former_options(gramfold):
    usual = ["--clients", "3", "--methods", "afl", "--json"]
    code, out, err = gramfold("run", "--data", "digits", "--seed", "5", "--test=0.5", *usual, "--out", "a")
    assert code == 0
    assert "warning: --seed is called --random-state now; the former name goes with the next release\n" in err
    assert "warning: --data is an argument now" in err
    wanted = gramfold("run", "digits", "--random-state", "5", "--test-size", "0.5", *usual, "--out", "b")
    assert "former" not in wanted[2]
    figures = [[client["accuracy"] for client in json.loads(text)["methods"][0]["clients"]] for text in (out, wanted[1])]
    assert figures[0] == figures[1]


def test_an_option_is_former_only_where_it_was():
    new = ["flower", "new", "ours", "--sites", "a,b"]
    assert options(new) == new
    with pytest.warns(FormerNameWarning):
        assert options(["flower", "up", "--sites", "2"]) == ["flower", "up", "--clients", "2"]
    assert all(name.startswith("--") for each in FORMER_OPTIONS.values() for name in each)


def test_a_run_over_a_network_takes_a_seed():
    assert Settings.read({"random-state": 3}).seed == 3
    with pytest.warns(FormerNameWarning, match="seed is called random-state"):
        assert Settings.read({"seed": 4}).seed == 4
