"""What one server's run does to a site leaves its place in another's sum alone."""

import shutil

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites, write_site
from gramfold.federation import Client, Samples
from gramfold.remote.places import SUMS, UPLOADS, needed

SITE = "2"


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def other_data(sites: Sites, seed: int) -> gf.Federation:
    """New samples at a site; returns the federation as it is now."""
    rng = np.random.default_rng(seed)
    old = next(client for client in sites.federation if client.name == SITE)
    data = Samples(rng.standard_normal((30, 8)), rng.integers(0, 4, 30))
    changed = Client(SITE, lambda: data, old.test)
    write_site(sites.data(SITE), changed)
    return gf.Federation([changed if client.name == SITE else client for client in sites.federation], sites.federation.task)


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(at="server")], ids=repr)
def test_a_trial_with_another_folder_leaves_a_sites_place_in_production_alone(method, sites):
    sites.run(method)
    for seed in (1, 2):
        now = other_data(sites, seed)
        sites.run(method, out=f"trial-{seed}")
    result = sites.run(method)
    assert result["sites"]["excluded"] == {}
    assert sites.distance(method, gf.run(method, now)) < 1e-8


def test_a_server_that_was_restored_from_a_backup_goes_on(sites):
    sites.run(gf.AFL())
    shutil.copytree(sites.folder / "out", sites.folder / "backup")
    for seed in (1, 2):
        now = other_data(sites, seed)
        sites.run(gf.AFL())
    shutil.rmtree(sites.folder / "out")
    shutil.copytree(sites.folder / "backup", sites.folder / "out")
    result = sites.run(gf.AFL())
    assert result["sites"]["excluded"] == {}
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), now)) < 1e-8


def test_what_is_kept_is_bounded(tmp_path):
    kept: set[str] = set()
    for k in range(3 * UPLOADS):
        kept = needed(tmp_path, "production", f"u{k}", ["u0"], {*kept, f"u{k}"})
    assert "u0" in kept
    assert len(kept) == UPLOADS + 2
    for k in range(2 * SUMS):
        kept = needed(tmp_path, f"trial-{k}", f"t{k}", [], {*kept, f"t{k}"})
    assert len(kept) == SUMS


def test_where_nothing_is_written_down_nothing_is_deleted(tmp_path):
    assert needed(tmp_path, "sum", "new", [], {"a", "b"}) == {"a", "b", "new"}
    (tmp_path / "places.json").write_text("{")
    assert needed(tmp_path, "sum", "newer", [], {"a", "b", "new"}) == {"a", "b", "new", "newer"}
