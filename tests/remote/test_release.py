"""Two releases never differ by one site, unless the operator says so: their difference would be that site's moments."""

import json

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites, write_site
from gradient_cases import quick
from gramfold.engines.flower.local_grid import run_locally
from gramfold.errors import GramfoldError
from gramfold.federation import Client
from gramfold.remote.release import check_release

SAFE = {"release-sites": 3}


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def nodes(sites: Sites, count: int) -> dict:
    return {name: sites.node(name) for name in sites.names[:count]}


@pytest.mark.parametrize("method", [gf.AFL(), gf.PACE(learn=False), quick(gf.FedAvg, rounds=2)], ids=repr)
def test_a_sum_of_two_sites_is_not_released_unless_the_operator_says_so(method, sites):
    with pytest.raises(GramfoldError, match=r"the sum of 2 sites is not released: .* set release-sites=2"):
        sites.run(method, nodes(sites, 2), **SAFE)
    assert not (sites.folder / "out" / "run.safetensors").exists()
    assert not list((sites.folder / "state").rglob("head.safetensors"))
    assert sites.run(method, nodes(sites, 2), **{"release-sites": 2})["sites"]["answered"] == sites.names[:2]


def test_three_is_the_default(sites):
    config = sites.run_config(gf.AFL())
    del config["release-sites"]
    with pytest.raises(GramfoldError, match="release-sites=2"):
        run_locally(sites.grid(nodes(sites, 2)), config)
    run_locally(sites.grid(nodes(sites, 3)), config)


def test_newcomers_wait_for_each_other(sites, federation):
    method = gf.PACE(learn=False)
    sites.run(method, nodes(sites, 4), **SAFE)
    before = sites.head("0", method)
    for count in (5, 6):
        with pytest.raises(GramfoldError, match=r"has changed by 4(, 5)? only"):
            sites.run(method, nodes(sites, count), **SAFE)
    np.testing.assert_array_equal(sites.head("0", method).streams[0].weights, before.streams[0].weights)
    result = sites.run(method, **SAFE)
    assert result["sites"]["answered"] == sites.names
    sent = {client["name"] for client in result["methods"][0]["clients"] if client["uplink_bytes"]}
    assert sent == {"6"}, "what came in vain was kept"
    assert sites.distance(method, gf.run(method, federation)) < 1e-9


def test_the_same_sum_can_be_released_again(sites):
    sites.run(gf.PACE(learn=False), **SAFE)
    assert sites.run(gf.PACE(learn=False), **SAFE)["sites"]["answered"] == sites.names
    assert sites.run(gf.PACE(learn=False), nodes(sites, 1), **SAFE)["sites"]["answered"] == ["0"]


def test_changed_data_of_one_site_is_a_difference_too(sites, federation):
    sites.run(gf.AFL(), **SAFE)
    first = federation.clients[0]
    write_site(sites.data("0"), Client("0", federation.clients[1].train, first.test))
    with pytest.raises(GramfoldError, match="has changed by 0 only"):
        sites.run(gf.AFL(), **SAFE)
    assert sites.run(gf.AFL(), **{"release-sites": 1})["sites"]["answered"] == sites.names


def test_a_damaged_note_of_the_last_release_is_not_taken_for_none(sites):
    sites.run(gf.AFL(), **SAFE)
    path = sites.folder / "out" / "released.json"
    written = path.read_text()
    assert sorted(json.loads(written)["uploads"]) == sites.names
    for damaged in ("[]", written.replace(f'"{sites.names[0]}"', '"somebody"')):
        path.write_text(damaged)
        with pytest.raises(GramfoldError, match="damaged"):
            sites.run(gf.AFL(), **SAFE)


@pytest.mark.parametrize("method", [quick(gf.FedAvg, rounds=2), gf.PACE(features="bias+linear+fourier:16@learned:1")], ids=repr)
def test_the_rule_remembers_methods_of_several_rounds(method, sites, federation):
    """Their uploads are others in every run, so a second one with one changed site was released."""
    sites.run(method, **SAFE)
    assert sites.run(method, **SAFE)["sites"]["answered"] == sites.names, "of the same samples"
    first = federation.clients[0]
    write_site(sites.data("0"), Client("0", federation.clients[1].train, first.test))
    with pytest.raises(GramfoldError, match="has changed by 0 only"):
        sites.run(method, **SAFE)
    with pytest.raises(GramfoldError, match="has changed by 0, 6 only"):
        sites.run(method, nodes(sites, 6), **SAFE)
    assert sites.run(method, **{"release-sites": 1})["sites"]["answered"] == sites.names


def test_a_sum_of_too_few_sites_is_not_released_whatever_has_changed(tmp_path):
    """After one was forgotten and the other two sent anew, three uploads have changed; but only two sites are in the sum."""
    check_release(tmp_path, {"north": "1", "south": "1", "east": "1"}, 3)
    with pytest.raises(GramfoldError, match="the sum of 2 sites is not released"):
        check_release(tmp_path, {"north": "2", "south": "2"}, 3)
    with pytest.raises(GramfoldError, match="the sum of 2 sites is not released"):
        check_release(tmp_path, {"north": "1", "south": "1"}, 3)
    check_release(tmp_path, {"north": "2", "south": "2", "west": "1"}, 3)
