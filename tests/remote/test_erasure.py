"""Whoever is forgotten is gone: out of the sum, the files and later runs, with a receipt."""

import json
import shutil
from typing import Any

import pytest

import gramfold as gf
from flower_cases import PACE, Sites
from gramfold.engines.flower import records
from gramfold.engines.flower.local_grid import LocalGrid, app_node, run_locally
from gramfold.errors import GramfoldError
from gramfold.remote.erasure import forget

GONE = "2"


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def others(sites: Sites) -> dict[str, Any]:
    return {name: sites.node(name) for name in sites.names if name != GONE}


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(at="server")], ids=repr)
def test_a_site_that_is_forgotten_is_in_nothing_that_follows(method, sites):
    sites.run(method)
    out = sites.folder / "out"
    receipt = forget(out, GONE)
    samples = next(client for client in sites.federation if client.name == GONE).train().n
    assert (receipt["site"], len(receipt["sha256"]), receipt["samples"]) == (GONE, 64, samples)
    written = json.loads((out / "forgotten.jsonl").read_text())
    assert {key: written[key] for key in receipt} == receipt
    anew = "made anew" if method.answer is not None else "begun anew"
    assert anew in receipt["sum"]
    left = {path.name for path in out.iterdir()}
    assert not left & {"run.safetensors", "shared.safetensors", "result.json", "report.html"}
    if method.answer is not None:
        assert len(list((out / "uploads").iterdir())) == 6
    result = sites.run(method, others(sites))
    assert GONE not in result["sites"]["folded"]
    assert sites.distance(method, gf.run(method, sites.without(GONE))) < 1e-9
    # nor is it taken in again
    again = sites.run(method)
    assert "it was forgotten on 20" in again["sites"]["excluded"][GONE]
    assert sites.distance(method, gf.run(method, sites.without(GONE))) < 1e-9


def test_after_forgetting_one_the_next_sum_is_released_only_if_the_operator_says_so(sites):
    """The two differ by what was forgotten."""
    sites.run(PACE)
    forget(sites.folder / "out", GONE)
    with pytest.raises(GramfoldError, match="has changed by 2 only"):
        sites.run(PACE, others(sites), **{"release-sites": 3})


def test_a_site_that_is_not_there_cannot_be_forgotten(sites, tmp_path):
    sites.run(gf.AFL())
    with pytest.raises(GramfoldError, match=r"nothing of site 'north' is in .*; there are: 0, 1, 2"):
        forget(sites.folder / "out", "north")
    with pytest.raises(GramfoldError, match="no folder"):
        forget(tmp_path / "nowhere", "2")


def test_the_command_prints_the_receipt(sites, gramfold):
    sites.run(gf.AFL())
    code, out, _ = gramfold("flower", "forget", GONE, "--out", str(sites.folder / "out"))
    assert (code, json.loads(out)["site"]) == (0, GONE)
    assert gramfold("flower", "forget", GONE, "--out", str(sites.folder / "out"))[0] == 2


def test_the_outcome_of_a_run_is_an_exit_code(sites, gramfold):
    out = sites.folder / "out"
    sites.run(gf.AFL())
    code, text, _ = gramfold("flower", "outcome", str(out))
    assert (code, text) == (0, "7 sites have their heads: 0, 1, 2, 3, 4, 5, 6\n")
    with pytest.raises(GramfoldError):
        sites.run(gf.AFL(), **{"minimum-sites": 8, "deadline-seconds": 0.1, "sites": "north"})
    code, _, error = gramfold("flower", "outcome", str(out))
    assert code == 2
    assert "not connected: north" in error


def test_a_run_that_was_killed_has_not_succeeded(sites, gramfold, monkeypatch):
    sites.run(gf.AFL())

    def killed(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr("gramfold.remote.run.write_page", killed)
    with pytest.raises(SystemExit):
        sites.run(gf.AFL())
    code, _, error = gramfold("flower", "outcome", str(sites.folder / "out"))
    assert code == 2
    assert "ended without a word" in error


# --- what was left behind ---


@pytest.mark.parametrize(
    "method", [gf.FedHiP(features="columns+bias+linear+fourier:16@learned", at="server"), gf.FedHiP(at="server")], ids=repr
)
def test_uploads_that_a_method_keeps_are_gone(method, sites):
    """Those of methods of several rounds were in no ledger, and stayed."""
    sites.run(method)
    kept = sites.folder / "out" / "uploads"
    assert len(list(kept.iterdir())) == 7
    forget(sites.folder / "out", GONE)
    assert len(list(kept.iterdir())) == (6 if method.rounds == 1 else 0)


def test_cards_and_the_reason_of_the_last_failure_are_gone(sites):
    sites.run(gf.AFL())
    out = sites.folder / "out"
    assert (out / "shared.card.json").exists()
    (out / "error.txt").write_text("2: it said something\n")
    removed = forget(out, GONE)["removed"]
    assert {"shared.card.json", "shared.card.md", "shared.safetensors", "error.txt"} <= set(removed)
    assert not list(out.glob("shared*"))
    assert not (out / "error.txt").exists()


def test_forgetting_works_again_and_again(sites):
    """The second one found nothing: the sum had begun anew, and the figures that named the sites were gone."""
    sites.run(gf.AFL())
    out = sites.folder / "out"
    for name in ("2", "3", "5"):
        assert forget(out, name)["site"] == name
    with pytest.raises(GramfoldError, match=r"nothing of site '3' is in .*; it was forgotten on 20.*; there are: 0, 1, 4, 6"):
        forget(out, "3")
    result = sites.run(gf.AFL())
    assert sorted(result["sites"]["excluded"]) == ["2", "3", "5"]
    assert result["sites"]["folded"] == ["0", "1", "4", "6"]
    forget(out, "0")
    assert sites.run(gf.AFL())["sites"]["folded"] == ["1", "4", "6"]


def test_a_backup_that_is_restored_brings_nobody_back(sites, tmp_path):
    sites.run(gf.AFL())
    out, backup = sites.folder / "out", tmp_path / "backup"
    shutil.copytree(out, backup)
    forget(out, GONE)
    shutil.rmtree(out)
    shutil.copytree(backup, out)
    result = sites.run(gf.AFL())
    assert GONE not in result["sites"]["folded"]
    assert "was forgotten" in result["sites"]["excluded"][GONE]
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), sites.without(GONE))) < 1e-9


def test_a_backup_that_is_copied_in_as_another_folder_counts_nobody_again(sites):
    sites.run(gf.AFL())
    out = sites.folder / "out"
    shutil.copytree(out, sites.folder / "copy")
    forget(out, GONE)
    result = sites.run(gf.AFL(), others(sites), out="copy")
    assert GONE not in result["sites"]["folded"]
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), sites.without(GONE))) < 1e-9


def test_in_a_folder_of_its_own_a_site_can_take_part_again(sites):
    sites.run(gf.AFL())
    forget(sites.folder / "out", GONE)
    assert GONE in sites.run(gf.AFL(), out="new")["sites"]["folded"]


def test_what_is_kept_beside_the_folders_names_nobody(sites):
    sites.run(gf.AFL())
    forget(sites.folder / "out", GONE)
    path = sites.folder / "gramfold-forgotten.jsonl"
    line = json.loads(path.read_text())
    assert sorted(line) == ["checksum", "format", "marks", "time"]
    assert all(len(mark) == 64 for mark in line["marks"])
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("nonsense")
    with pytest.raises(GramfoldError, match="damaged"):
        sites.run(gf.AFL())


@pytest.mark.parametrize("registered", [True, False])
def test_a_forgotten_site_that_returns_sends_nothing(sites, registered):
    """It sent its whole upload before it was refused."""
    sites.run(gf.AFL())
    forget(sites.folder / "out", GONE)
    grid = LocalGrid([sites.node(name) for name in sites.names], sites.names if registered else ())
    answers: list[Any] = []
    pull = grid.pull_messages
    grid.pull_messages = lambda ids: [answers.append(found) or found for found in pull(ids)]
    run_locally(grid, sites.run_config(gf.AFL()))
    result = sites.result()
    assert "was forgotten" in result["sites"]["excluded"][GONE]
    asked = [message for message in grid.sent if message.metadata.dst_node_id == 101 + sites.names.index(GONE)]
    assert len(asked) == (0 if registered else 1)
    for answer in answers:
        header = records.read(answer.content)
        if header.header["site"] == GONE:
            assert not header.packets


def test_words_of_a_table_do_not_go_out_again(tmp_path):
    """The encoder holds all sites' categories: it is made anew by those who are left."""
    from gramfold.remote.ledger import Ledger

    tables = {name: tmp_path / f"{name}.csv" for name in ("a", "b", "c")}
    for number, (name, path) in enumerate(tables.items()):
        ward = ["er", "icu", "leprosy" if name == "c" else "er"]
        rows = [f"{30 + (7 * i + number) % 40},{ward[i % 3]},{'yes' if (i + number) % 2 else 'no'}" for i in range(40)]
        path.write_text("age,ward,sick\n" + "\n".join(rows))
    configs = {
        name: {"name": name, "data": str(path), "label-column": "sick", "state-dir": str(tmp_path / "state" / name)}
        for name, path in tables.items()
    }
    out = tmp_path / "out"
    method = gf.FedHiP(at="server")
    config = {"method": "fedhip", "parameters": json.dumps(dict(method.parameters())), "out": str(out), "release-sites": 1}

    def run(names: list[str]) -> None:
        run_locally(LocalGrid([app_node(configs[name]) for name in names], names), config)

    run(["a", "b", "c"])
    assert "leprosy" in Ledger.open(out / "fold.safetensors", None)[1]["task"]
    forget(out, "c")
    run(["a", "b"])
    left = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"leprosy" not in left
    for name in ("a", "b"):
        head = gf.load_head(tmp_path / "state" / name / "fedhip" / "head.safetensors")
        assert "leprosy" not in str(head.origin.options)
