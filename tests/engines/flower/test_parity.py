"""Over Flower's messages every method gives what it gives in process: the same heads, figures and bytes."""

import json
import subprocess
import sys

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites, all_answered
from gradient_cases import quick
from gramfold.engines.flower.local_grid import run_locally
from gramfold.errors import GramfoldError
from gramfold.features import parse

EXACT = [
    gf.Local(), gf.AFL(), gf.LocalClasses(), gf.FedHiP(), gf.FedHiP(at="server"), gf.APFL(),
    gf.APFL(lam=0.3, refinement_penalty=2.0), gf.PACE(), gf.PACE(regime="sketch"),
    gf.PACE(features="bias+linear", precision="float16"),
    gf.PACE(features="bias+linear+fourier:300", regime="sketch", precision="int8"), gf.DeepAFL(depth=2),
    gf.DeepAFL(depth=1, regime="sketch"), ]  # fmt: skip
DIGITS = [(gf.AFL(features="bias+linear+fourier:300"), "float32"), (gf.PACE(features="bias+linear+fourier:300"), "int8")]
SMALL = "conv:4:3:6+relu+max:2"
NETWORKS = [
    gf.FedACnnL(network=SMALL),
    gf.PFedACnnL(network=SMALL, groups=2),
    gf.PFedACnnL(network=SMALL, groups=1),
    gf.PaceCNN(network=SMALL),
]
GRADIENT = [quick(kind) for kind in (gf.FedAvg, gf.FedPCL, gf.Ditto, gf.FedDBE, gf.FedSelect, gf.LocalSGD)]


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def figures(entry: dict) -> dict:
    """What must agree: everything but times, and choices that tie."""
    kept = ("name", "rounds", "mean_accuracy", "weighted_accuracy", "global_accuracy", "uplink_bytes", "parameters")
    return {key: entry[key] for key in kept} | {"clients": [(c["name"], c["train"], c["test"]) for c in entry["clients"]]}


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_analytic_heads_are_those_of_the_in_process_engine(method, sites, federation):
    result, expected = sites.run(method, **{"minimum-sites": 7}), gf.run(method, federation)
    # two orders of one float64 sum, and what a solve makes of the difference
    assert sites.distance(method, expected) < 1e-9
    mine, theirs = figures(result["methods"][0]), figures(json.loads(json.dumps(expected.to_dict())))
    if getattr(method, "at", "") == "server":  # such a site is sent its head alone, and cannot test the shared one
        mine["global_accuracy"] = theirs["global_accuracy"]
    assert mine == theirs
    assert all_answered(result, sites)


@pytest.mark.parametrize(("method", "precision"), DIGITS, ids=["afl", "pace"])
def test_numbers_travel_in_the_bits_of_the_run_s_configuration(method, precision, sites, federation):
    result = sites.run(method, **{"minimum-sites": 7, "precision": precision})
    expected = gf.run(method, federation, precision=precision)
    assert sites.distance(method, expected) < 1e-9
    assert figures(result["methods"][0]) == figures(json.loads(json.dumps(expected.to_dict())))


LEARNED = [
    (gf.PACE(features="bias+linear+fourier:32@learned"), 1e-9),
    (gf.FedHiP(features="columns+bias+linear+fourier:16@learned"), 1e-9),
    # a solve, its gradients, a root of their products, and again a solve: rounding grows at each
    (gf.PACE(features="bias+linear+fourier:32@learned:1"), 1e-8),
]


@pytest.mark.parametrize(("method", "tolerance"), LEARNED, ids=repr)
def test_learned_features_are_those_of_the_in_process_engine(method, tolerance, sites, federation):
    sites.run(method, **{"minimum-sites": 7})
    expected = gf.run(method, federation)
    largest = max(float(np.abs(head.scores(federation.clients[0].test().inputs)).max()) for head in expected.heads.values())
    assert sites.distance(method, expected) < tolerance * largest


def test_own_parts_are_those_of_the_in_process_engine(tmp_path, rng):
    """In a table whose sites differ, clients take what is their own out of their targets: at a site as in process."""
    X = rng.standard_normal((400, 3)) * [1.0, 10.0, 0.1]
    site = np.arange(400) % 4
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 10 + 3.0 * site + 0.2 * rng.standard_normal(400)
    shops = gf.Federation.from_clients({str(s): (X[site == s], y[site == s]) for s in range(4)}, regression=True)
    method, sites = gf.PACE(features="columns+bias+linear+fourier:32@learned:1"), Sites(tmp_path, shops)
    sites.run(method)
    expected = gf.run(method, shops)
    assert getattr(expected.run.broadcast, "offsets", None) is not None
    assert sites.distance(method, expected) < 1e-7  # of values up to 12, after two solves and a root
    masked = gf.run(method, shops, secure=gf.SecureSum())
    for name, head in expected.heads.items():
        np.testing.assert_allclose(masked.heads[name].predict(X), head.predict(X), atol=1e-6)


@pytest.mark.parametrize("method", GRADIENT, ids=lambda method: method.name)
def test_gradient_heads_are_those_of_the_in_process_engine(method, sites, federation):
    result, expected = sites.run(method), gf.run(method, federation)
    # float32 training, side by side in process and one by one here
    largest = max(float(np.abs(head.scores(federation.clients[0].test().inputs)).max()) for head in expected.heads.values())
    assert sites.distance(method, expected) < 1e-3 * max(largest, 1.0)
    assert figures(result["methods"][0])["uplink_bytes"] == expected.uplink_bytes


@pytest.mark.parametrize("method", NETWORKS, ids=repr)
def test_networks_solved_layer_by_layer_are_those_of_the_in_process_engine(method, pictures, tmp_path):
    sites = Sites(tmp_path, pictures)
    result, expected = sites.run(method), gf.run(method, pictures)
    assert sites.distance(method, expected) < 1e-9
    assert figures(result["methods"][0]) == figures(json.loads(json.dumps(expected.to_dict())))
    assert all_answered(result, sites)


def test_bytes_down_do_not_count_what_a_site_knows_already(sites, federation):
    method = gf.DeepAFL(depth=2)
    assert sites.run(method)["methods"][0]["downlink_bytes"] == gf.run(method, federation).downlink_bytes


def test_rounds_of_one_round_methods_are_two_messages_a_site(sites):
    grid = sites.grid()
    run_locally(grid, sites.run_config(gf.PACE(learn=False)))
    assert [message.metadata.message_type for message in grid.sent] == ["query"] * 7 + ["evaluate"] * 7


def test_rounds_of_many_round_methods_train(sites):
    grid = sites.grid()
    run_locally(grid, sites.run_config(quick(gf.FedAvg, rounds=3)))
    assert [message.metadata.message_type for message in grid.sent] == ["train"] * 21 + ["evaluate"] * 7


def test_sampled_sites_only_take_part_and_all_get_a_head(sites):
    method = quick(gf.FedAvg, rounds=3, participation=0.3)
    grid = sites.grid()
    run_locally(grid, sites.run_config(method))
    assert sum(message.metadata.message_type == "train" for message in grid.sent) == 6
    assert sites.result()["sites"]["answered"] == sites.names


def test_sites_that_are_asked_agree_on_the_task(sites, federation):
    result = sites.run(gf.AFL(), task="", **{"random-state": 3})
    assert result["data"]["inputs"] == 8
    assert result["data"]["samples"] == federation.task.samples
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), federation)) < 1e-9


def test_the_server_keeps_the_shared_model_and_the_broadcast_but_no_heads(sites, federation):
    method = gf.PACE(learn=False)
    sites.run(method)
    out = sites.folder / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "events.jsonl", "fold.safetensors", "released.json", "report.html", "result.json", "run.safetensors",
        "shared.card.json", "shared.card.md", "shared.safetensors",
    ]  # fmt: skip
    expected = gf.run(method, federation)
    X = federation.clients[0].test().inputs
    np.testing.assert_allclose(gf.load_head(out / "shared.safetensors").scores(X), expected.global_head.scores(X), atol=1e-9)
    again = gf.load_result(out)
    assert again.run.broadcast.pack().arrays.keys() == expected.run.broadcast.pack().arrays.keys()
    assert (again.run.task, again.run.method) == (federation.task, method.settled(federation.task))
    assert again.mean_accuracy == expected.mean_accuracy


def test_a_feature_map_travels_as_its_description(sites, federation):
    method = gf.AFL(features=parse("bias+linear+fourier:32"))
    sites.run(method)
    assert sites.distance(method, gf.run(method, federation)) < 1e-9


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"method": "fedavg", "parameters": "{}"}, "tune lr by trial"),
        ({"method": "nothing"}, "unknown method"),
        ({"parameters": "[]"}, "not a JSON object"),
        ({"parameters": "{"}, "cannot read the run's configuration"),
        ({"parameters": '{"penalty": "much"}'}, "penalty must be a number"),
        ({"minimum-sites": 0}, "minimum-sites"),
        ({"deadline-seconds": -1.0}, "deadline-seconds"),
        ({"task": "{}"}, "cannot read the task"),
        ({"method": "heart-pfl", "parameters": '{"lr": 0.1}'}, "heart-pfl takes images"),
        ({"minimum-sites": 8, "deadline-seconds": 0.1}, "only 7 of at least 8 sites connected"),
    ],
)
def test_a_run_that_cannot_be_ends_with_one_line(config, match, sites):
    given = {**sites.run_config(gf.AFL()), **config}
    (sites.folder / "out").mkdir()
    with pytest.raises(GramfoldError, match=match) as caught:
        run_locally(sites.grid(), given)
    assert "\n" not in str(caught.value)
    assert (sites.folder / "out" / "error.txt").read_text() == f"{caught.value}\n"


def test_no_nodes(sites):
    with pytest.raises(GramfoldError, match="no site is connected"):
        run_locally(sites.grid({}), sites.run_config(gf.AFL(), **{"deadline-seconds": 0.1}))


def test_gramfold_does_without_flower():
    code = "import sys, gramfold, gramfold.cli.main, gramfold.engines.flower; sys.exit('flwr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
