"""Several labels, ordered classes and counts over Flower's messages: the heads of the in-process run, also under a secure sum."""

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites, all_answered
from gramfold.remote.tasks import task_from_json, task_to_json

PACE = gf.PACE(features="bias+linear")


def federation(kind: str) -> gf.Federation:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 6))
    scores = X @ rng.standard_normal((6, 3)) + rng.standard_normal((240, 3))
    y = {
        "labels": (scores > 1).astype(int),
        "ordered": np.digitize(scores[:, 0], [-1, 1]),
        "counts": rng.poisson(np.exp(scores[:, 0] / 4)),
    }
    return gf.Federation.split(X, y[kind], clients=3, partition="iid", targets=kind)


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
@pytest.mark.parametrize("method", [PACE, gf.AFL()], ids=["pace", "afl"])
def test_heads_are_those_of_the_in_process_engine(kind, method, tmp_path):
    made = federation(kind)
    sites, expected = Sites(tmp_path, made), gf.run(method, made)
    result = sites.run(method, **{"minimum-sites": 3})
    assert all_answered(result, sites)
    assert sites.distance(method, expected) < 1e-9
    entry, key = result["methods"][0], f"mean_{expected.measures[0]}"
    assert entry["measures"] == expected.measures
    assert entry[key] == pytest.approx(getattr(expected, key), abs=0.1)  # figures leave a site as far as 20 samples tell them


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
def test_a_secure_sum_gives_the_same_shared_head(kind):
    made = federation(kind)
    plain, hidden = (gf.run(PACE, made, secure=secure).global_head for secure in (None, gf.SecureSum()))
    X = np.asarray(made.clients[0].test().inputs)
    np.testing.assert_allclose(hidden.scores(X), plain.scores(X), rtol=1e-5, atol=1e-5)  # fixed point


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
def test_a_task_as_json_says_what_its_targets_are(kind):
    task = federation(kind).task
    assert task_from_json(task_to_json(task)) == task
    with pytest.raises(gf.GramfoldError, match="cannot read the task"):
        task_from_json(task_to_json(task).replace(f'"{kind}"', '"else"'))
