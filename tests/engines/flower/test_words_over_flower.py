"""The same over Flower: in no byte that travels, and in none that the server or a site writes."""

import json
import re

import pytest
from flwr.common.serde import message_to_proto

import gramfold as gf
from gramfold.engines.flower.local_grid import LocalGrid, app_node, run_locally
from gramfold.remote.site import head_file
from gramfold.sources import TableEncoder
from planted import RELEASED, SITES, found_in, write_tables


def recorded(node, folder):
    """A node whose messages and answers are kept as they travel."""

    def answer(message):
        replied = node(message)
        for what, travelling in (("in", message), ("out", replied)):
            number = len(list(folder.iterdir()))
            (folder / f"{number:03}-{what}").write_bytes(message_to_proto(travelling).SerializeToString())
        return replied

    return answer


def run(tmp_path, out: str, **changed) -> None:
    paths = write_tables(tmp_path / "data", changed.pop("split", True))
    sites = {
        site: {"name": site, "data": str(path), "label-column": "sick", "state-dir": str(tmp_path / "state" / site), **changed}
        for site, path in paths.items()
    }
    wire = tmp_path / "wire"
    wire.mkdir(exist_ok=True)
    grid = LocalGrid([recorded(app_node(site), wire) for site in sites.values()], sites)
    run_locally(grid, {"method": "pace", "out": str(tmp_path / out), "deadline-seconds": 300.0, "release-sites": 3})


@pytest.mark.parametrize("split", [True, False])
def test_over_flower(split, tmp_path, caplog, capsys):
    run(tmp_path, "out", split=split)
    shown = capsys.readouterr()
    (tmp_path / "log").write_text(caplog.text + shown.out + shown.err)
    assert found_in(tmp_path, beside=(tmp_path / "data").iterdir()) == []
    for site in SITES:
        head = gf.load_head(head_file(tmp_path / "state" / site, "pace"))
        titles = TableEncoder.reopen(head.origin).columns
        assert {f"ward = {word}" for word in RELEASED.values()} <= set(titles), "what enough have, all get"
    assert any(RELEASED["north"].encode() in path.read_bytes() for path in (tmp_path / "wire").iterdir())


def test_a_sites_own_floor(tmp_path):
    run(tmp_path, "out", **{"release-words": 1000})
    assert not [path for path in (tmp_path / "wire").iterdir() if any(w.encode() in path.read_bytes() for w in RELEASED.values())]
    head = gf.load_head(head_file(tmp_path / "state" / "north", "pace"))
    assert TableEncoder.reopen(head.origin).names == ["age"]


def test_a_site_and_the_server_check_before_anything_is_fitted(tmp_path, caplog):
    paths = write_tables(tmp_path / "data")
    table = paths["south"].read_text(encoding="utf-8").splitlines()
    place = table[0].split(",").index("sex")
    assert place > 0
    monthly = [table[0], *(_older(line) for line in table[1:])]
    paths["south"].write_text("\n".join(monthly) + "\n", encoding="utf-8")
    sites = {
        site: {"name": site, "data": str(path), "label-column": "sick", "state-dir": str(tmp_path / "state" / site)}
        for site, path in paths.items()
    }
    grid = LocalGrid([app_node(site) for site in sites.values()], sites)
    run_locally(grid, {"method": "afl", "out": str(tmp_path / "out"), "deadline-seconds": 300.0, "release-sites": 3})
    assert "check: south, column 'age': its numbers are" in caplog.text, "the server, of the sums"
    for site in SITES:
        (kept,) = (tmp_path / "state" / site).rglob("check.json")
        kinds = {(each["kind"], each["column"]) for each in json.loads(kept.read_text())["findings"]}
        assert ("id", "patient") in kinds, "each site, of its own table"
    assert found_in(tmp_path / "state") == found_in(tmp_path / "out") == []


def _older(line: str) -> str:
    """A patient's row with the age in months."""
    return re.sub(r",(\d\d\.\d+),([fm]),", lambda found: f",{12 * float(found[1]):.2f},{found[2]},", line)
