"""The frame: cells are measured once, kept at once, and taken up again; folders of other settings are refused."""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from gramfold.bench import Bench, Cell, open_bench, run_bench, running
from gramfold.bench.figures import over_seeds, table
from gramfold.errors import GramfoldError


class Squares(Bench):
    """A bench that counts how often it is asked, and fails where it is told to."""

    name: ClassVar[str] = "squares"
    paper: ClassVar[str] = "nobody"
    summary: ClassVar[str] = "squares of seeds"
    settings: ClassVar[Mapping[str, Any]] = {"power": 2}

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.fails_at: int | None = None

    def cells(self, options):
        def measure(seed):
            if seed == self.fails_at:
                raise KeyboardInterrupt
            self.asked.append(seed)
            return {"value": seed ** options["power"]}

        return [Cell(f"square/seed {seed}", lambda seed=seed: measure(seed)) for seed in options.seeds]

    def tables(self, found, options):
        cell = over_seeds(found, options.seeds, lambda seed: f"square/seed {seed}", "value", published=4.0, scale=1.0)
        return [table("Squares", ["what", "value"], [["square", cell]])]


def test_a_run_that_was_stopped_goes_on_where_it_was_and_has_tables_of_what_there_is(tmp_path):
    bench = Squares()
    options = bench.options({}, range(4))
    bench.fails_at = 2
    with pytest.raises(KeyboardInterrupt):
        run_bench(bench, options, tmp_path)
    half = json.loads((tmp_path / "bench.json").read_text())
    assert half["tables"][0]["rows"] == [["square", {"mean": 0.5, "error": 0.5, "published": 4.0, "seeds": 2}]]
    bench.fails_at = None
    seen: list[str] = []
    content = run_bench(bench, options, tmp_path, progress=lambda done, total, key, seconds: seen.append(f"{done}/{total} {key}"))
    assert bench.asked == [0, 1, 2, 3]  # each of them once
    assert seen == ["1/2 square/seed 2", "2/2 square/seed 3"]
    assert [cell["value"] for cell in content["cells"].values()] == [0, 1, 4, 9]
    assert content == json.loads((tmp_path / "bench.json").read_text())
    assert {"bench", "versions", "machine", "seeds", "options", "cells", "tables", "plots"} <= set(content)


class Sums(Squares):
    """Cells that need others, named before them."""

    def cells(self, options):
        added = Cell("sum", lambda *parts: {"value": sum(part["value"] for part in parts)}, ("square/seed 1", "square/seed 2"))
        return [*super().cells(options), added]


def test_what_a_cell_needs_is_measured_first(tmp_path):
    bench = Sums()
    content = run_bench(bench, bench.options({}, range(4)), tmp_path, only=["sum"])
    assert bench.asked == [1, 2]
    assert content["cells"]["sum"]["value"] == 5


def test_side_by_side_each_cell_is_measured_once_after_what_it_needs(tmp_path, monkeypatch):
    bench = Sums()
    monkeypatch.setattr(running, "ProcessPoolExecutor", lambda jobs, context: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(running, "open_bench", lambda name: bench)  # threads, which know this bench
    monkeypatch.setattr(os, "environ", dict(os.environ))
    seen: list[str] = []
    options = bench.options({}, range(4))
    content = run_bench(bench, options, tmp_path, jobs=3, progress=lambda done, total, key, seconds: seen.append(key))
    assert sorted(bench.asked) == [0, 1, 2, 3]
    assert set(seen) == set(content["cells"])
    assert content["cells"]["sum"]["value"] == 5
    assert seen.index("sum") > max(seen.index(f"square/seed {seed}") for seed in (1, 2))


def test_side_by_side_a_cell_that_fails_stops_only_those_that_need_it(tmp_path, monkeypatch):
    class Broken(Sums):
        def cells(self, options):
            broken = Cell("square/seed 1", lambda: dict[str, int]()["nothing"])
            return [broken if cell.key == broken.key else cell for cell in super().cells(options)]

    bench = Broken()
    monkeypatch.setattr(running, "ProcessPoolExecutor", lambda jobs, context: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(running, "open_bench", lambda name: bench)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(GramfoldError, match="1 cells failed, such as square/seed 1: 'nothing'"):
        run_bench(bench, bench.options({}, range(4)), tmp_path, jobs=2)
    assert bench.asked == [0, 2, 3]


def test_only_some_cells_and_no_time(tmp_path):
    bench = Squares()
    options = bench.options({}, range(4))
    run_bench(bench, options, tmp_path, only=["*seed 3", "square/seed 1"])
    assert bench.asked == [1, 3]
    assert len(run_bench(bench, options, tmp_path, minutes=0)["cells"]) == 2


def test_what_does_not_belong_together_is_refused(tmp_path):
    bench = Squares()
    run_bench(bench, bench.options({}, [2]), tmp_path)
    with pytest.raises(GramfoldError, match=r"cells of another run \(settings"):
        run_bench(bench, bench.options({}, [2], power=3), tmp_path)
    with pytest.raises(GramfoldError, match="no setting 'round'; there are: 'power'"):
        bench.options({}, [0], round=3)
    with pytest.raises(GramfoldError, match="no file 'images'; there are: none"):
        bench.options({"images": "a.npz"}, [0])
    with pytest.raises(GramfoldError, match="no bench is called 'squares'; there are: apfl"):
        open_bench("squares")


def test_only_the_name_of_a_file_is_kept(tmp_path):
    identity = open_bench("apfl").options({"": str(tmp_path / "a.npz")}, [0]).identity()
    assert identity["data"] == {"": "a.npz"}


def test_rows_without_figures_are_left_out_and_one_seed_has_no_error():
    assert table("t", ["a", "b"], [["x", None], ["y", 1.0]])["rows"] == [["y", 1.0]]
    cell = over_seeds({"0": {"value": 0.5}}, [0, 1], str, "value")
    assert cell == {"mean": 50.0, "error": None, "published": None, "seeds": 1}
    assert over_seeds({}, [0], str, "value") is None
