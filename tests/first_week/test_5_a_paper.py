"""Step 5: a comparison for a paper, in Python and on the command line."""

import csv
import io

import pytest
from sklearn.datasets import load_digits

import gramfold as gf


@pytest.fixture(scope="module")
def comparison() -> gf.Comparison:
    return gf.compare(["afl", gf.PACE()], load_digits(return_X_y=True), seeds=2, clients=10, partition="dirichlet:0.1")


def test_the_comparison_prints_as_a_table(comparison):
    assert len(str(comparison).splitlines()) < 12
    assert comparison.difference("pace").mean > 0


def test_the_table_in_three_formats(comparison, tmp_path):
    latex = comparison.to_latex(tmp_path / "table.tex")
    assert r"\toprule" in latex
    assert (tmp_path / "table.tex").read_text() == latex
    rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert [row["method"] for row in rows] == ["afl", "pace"]
    assert comparison.to_markdown().startswith("| method | accuracy %")
    assert comparison.plot(tmp_path / "figure.svg").startswith("<svg")


def test_the_same_on_the_command_line(gramfold, tmp_path):
    for out, partition in (("A", "iid"), ("B", "dirichlet:0.1")):
        asked = f"run --methods afl,pace --clients 5 --seeds 2 --out {out} --partition {partition}"
        code, printed, _ = gramfold(*asked.split())
        assert code == 0
        assert "pace" in printed
        assert {path.name for path in (tmp_path / out).iterdir()} == {
            "result.json", "report.html", "comparison.csv", "comparison.tex", "comparison.md",
        }  # fmt: skip
    code, printed, _ = gramfold("report", "A", "B")
    assert (code, printed) == (0, "wrote comparison.html\n")
    page = (tmp_path / "comparison.html").read_text()
    assert "iid" in page
    assert "dirichlet:0.1" in page


def test_the_methods_fit_eighty_columns(gramfold, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (["methods"], ["methods", "pace"]):
        code, printed, _ = gramfold(*arguments)
        assert code == 0
        assert max(map(len, printed.splitlines())) <= 80
