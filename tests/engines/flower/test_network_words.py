"""Planted words over a real network: in no byte of the server's folder, its database and logs, or another site's."""

import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

from gramfold.deploy.template import write_app
from gramfold.engines.flower.network import Network, Site
from gramfold.remote.site import head_file
from planted import RELEASED, found_in, write_tables

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_planted_words_stay_at_their_sites(tmp_path):
    paths = write_tables(tmp_path / "data")
    sites = [Site(site, {"data": str(path), "label-column": "sick"}) for site, path in paths.items()]
    folder, out = tmp_path / "network", tmp_path / "out"
    folder.mkdir()
    write_app(tmp_path / "app", {})
    with Network(folder, sites) as network:
        network.wait_online()
        network.run(tmp_path / "app", {"method": "afl", "out": str(out), "release-sites": 3, "deadline-seconds": 300.0})
        heads = [head_file(network.state(site), "afl").read_bytes() for site in paths]
        assert found_in(folder) == []
    assert found_in(tmp_path, beside=(tmp_path / "data").iterdir()) == []
    assert all(word.encode() in head for head in heads for word in RELEASED.values()), "what enough have, all get"
    assert (out / "result.json").exists()
