"""Whose name a node may use."""

import gramfold as gf
from flower_cases import Sites
from gramfold.engines.flower.local_grid import LocalGrid, run_locally


def run(there: Sites, names: list[str], registered: list[str], /, **config: object) -> dict:
    run_locally(LocalGrid([there.node(name) for name in names], registered), there.run_config(gf.AFL(), **config))
    return there.result(str(config.get("out", "out")))


def test_a_node_without_a_name_cannot_take_that_of_a_registered_one(tmp_path, federation):
    """It answered first, and the one whose name it was could not take part."""
    sites = Sites(tmp_path, federation)
    sites.config["6"]["name"] = "0"
    result = run(sites, ["6", "0", "1", "2"], ["", "0", "1", "2"])
    assert result["sites"]["answered"] == ["0", "1", "2"]
    assert result["sites"]["folded"] == ["0", "1", "2"]
    assert any("already called '0'" in reason for reason in result["sites"]["excluded"].values())


def test_nor_that_of_one_that_is_expected_or_counted(tmp_path, federation):
    sites = Sites(tmp_path, federation)
    run(sites, ["0", "1", "2"], ["0", "1", "2"])
    sites.config["6"]["name"] = "0"
    result = run(sites, ["6", "1", "2"], ["", "1", "2"])
    assert result["sites"]["answered"] == ["1", "2"]
    result = run(sites, ["6", "1", "2"], ["", "1", "2"], out="new", sites="0,1,2")
    assert result["sites"]["answered"] == ["1", "2"]


def test_where_nobody_has_a_registered_name_all_give_their_own(tmp_path, federation):
    sites = Sites(tmp_path, federation)
    for _ in range(2):
        assert run(sites, ["0", "1", "2"], [])["sites"]["answered"] == ["0", "1", "2"]
