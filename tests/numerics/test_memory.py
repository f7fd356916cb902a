"""What is needed is asked for first, of the machine and of its control group."""

import numpy as np
import pytest
from scipy.sparse import random_array

import gramfold as gf
from gramfold.export import onnx_model
from gramfold.numerics import memory


def test_the_smaller_of_machine_and_group_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 4000000 kB\n")
    assert memory.available() == 4_096_000_000
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "memory.current").write_text("600000000\n")
    (tmp_path / "memory.stat").write_text("anon 400000000\ninactive_file 150000000\n")
    assert memory.available() == 550_000_000
    memory.ask(5e8, "half of it", "nothing")
    with pytest.raises(gf.GramfoldError, match=r"^sums take 0\.6 GB, and 0\.6 GB are there; use less$"):
        memory.ask(6e8, "sums", "use less")
    (tmp_path / "memory.max").write_text("max\n")
    memory.ask(6e8, "sums", "use less")


def test_a_gram_matrix_that_does_not_fit_is_one_line(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 8e9)
    X = random_array((60, 50_000), density=0.001, format="csr", rng=0)
    y = np.arange(60) % 2
    federation = gf.Federation.split(X, y, 2, "iid")
    with pytest.raises(gf.GramfoldError, match=r"50001 features take 80\.0 GB, and 8\.0 GB are there; .*directions:512"):
        gf.run(gf.AFL(features="bias+linear"), federation)


def test_a_site_asks_for_its_own_rows(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 3e8)
    X = random_array((800, 50_000), density=0.001, format="csr", rng=0)
    federation = gf.Federation.split(X, np.arange(800) % 2, 2, "iid")
    with pytest.raises(gf.GramfoldError, match=r"samples of 50001 features take .* GB, .*; give fewer columns"):
        gf.run(gf.Local(), federation)


def test_an_export_asks_for_its_matrices(monkeypatch):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 30_000)), np.arange(40) % 2
    head = gf.run(gf.AFL(features="bias+relu:400"), gf.Federation.split(X, y, 2, "iid")).heads["0"]
    monkeypatch.setattr(memory, "available", lambda: 2e8)
    with pytest.raises(gf.GramfoldError, match=r"take 0\.3 GB, and 0\.2 GB are there; export a head of a smaller map"):
        onnx_model(head)


def test_predictions_that_do_not_fit_are_one_line(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    head = gf.run(gf.AFL(features="bias+relu:2000"), gf.Federation.split(X, y, 2, "iid")).heads["0"]
    monkeypatch.setattr(memory, "available", lambda: 1e8)
    with pytest.raises(gf.GramfoldError, match=r"features of 20000 samples take 0\.3 GB, .*in parts"):
        head.predict(np.zeros((20_000, 3)))
