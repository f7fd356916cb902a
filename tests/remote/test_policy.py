"""A site's own say: what its configuration does not allow does not leave it, and both sides read why."""

import json
from typing import Any

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites
from gradient_cases import quick
from gramfold.remote.policy import Policy

SITE = "2"


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def diary(sites: Sites) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (sites.folder / "state" / SITE / "sent.jsonl").read_text().splitlines()]


REFUSED = {
    "methods": ({"release-methods": "afl, fedhip"}, "this site's policy allows afl, fedhip, not pace"),
    "maps": ({"release-maps": "bias+linear"}, "allows the maps bias+linear; this run has another"),
    "sites": ({"release-sites": 5}, "a sum of at least 5 sites, and the server would release one of 3; it must set"),
    "secure": ({"release-require": "secure"}, "requires a secure sum, which this run does not have"),
    "dp": ({"release-require": "dp"}, "requires differential privacy, which this run does not have"),
    "times": ({"release-times": 0}, "allows 0 uploads, and 0 have left it already"),
    "a name that is none": ({"release-site": 5}, "'release-site', which is no policy; there are release-class-samples"),
    "a number that is none": ({"release-samples": "many"}, "release-samples in this site's configuration must be a whole number"),
    "a protection that is none": ({"release-require": "luck"}, "release-require lists 'luck'"),
    "a map that is none": ({"release-maps": "quadratic"}, "quadratic"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_site_does_not_allow_does_not_leave_it(what, sites):
    config, words = REFUSED[what]
    sites.config[SITE] |= config
    result = sites.run(gf.PACE(features="linear"), **{"release-sites": 3})
    assert list(result["sites"]["excluded"]) == [SITE]
    assert words in result["sites"]["excluded"][SITE]
    assert all("bytes" not in entry for entry in diary(sites))
    assert words in diary(sites)[0]["refused"]
    method = gf.PACE(features="linear")
    assert sites.distance(method, gf.run(method, sites.without(SITE))) < 1e-9


def test_what_a_site_allows_it_takes_part_in(sites):
    sites.config[SITE] |= {
        "release-methods": "pace", "release-maps": "bias+linear,relu:16", "release-sites": 3, "release-samples": 2,
        "release-class-samples": 1, "release-times": 1,
    }  # fmt: skip
    method = gf.PACE(features="bias+linear", refinement="relu:16")
    assert sites.run(method, **{"release-sites": 3})["sites"]["answered"] == sites.names
    # the same upload again is not another release
    assert sites.run(method, **{"release-sites": 3}, out="again")["sites"]["answered"] == sites.names


@pytest.mark.parametrize("method", [gf.AFL(), gf.PACE(learn=False), quick(gf.FedAvg, rounds=2)], ids=repr)
@pytest.mark.parametrize("config", [{"release-samples": 10**6}, {"release-class-samples": 10**6}], ids=repr)
def test_a_site_with_too_few_samples_receives_and_does_not_contribute(method, config, sites):
    sites.config[SITE] |= config
    result = sites.run(method)
    assert result["sites"]["answered"] == sites.names
    assert "it receives, and does not contribute" in result["sites"]["receiving"][SITE]
    assert SITE not in result["sites"]["folded"]
    assert sites.distance(method, gf.run(method, sites.without(SITE))) < 1e-6
    assert [entry["bytes"] for entry in diary(sites)] == [0] * method.rounds
    assert sites.head(SITE, method).predict(np.zeros((1, 8))).shape == (1,)


def test_uploads_are_counted_over_all_runs(sites):
    sites.config[SITE] |= {"release-times": 1}
    assert sites.run(gf.AFL())["sites"]["excluded"] == {}
    excluded = sites.run(gf.FedHiP(), out="other")["sites"]["excluded"]
    assert "allows 1 uploads, and 1 have left it already" in excluded[SITE]


def test_a_run_that_says_it_is_secure_is_taken_at_its_word():
    policy = Policy.read({"release-require": "secure,dp"})
    policy.check_run({"method": "pace", "secure": True, "dp": {"eps": 1.0}})
    with pytest.raises(gf.GramfoldError, match="differential privacy"):
        policy.check_run({"method": "pace", "secure": True, "dp": None})
