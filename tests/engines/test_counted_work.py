"""How much work small runs take, counted (`numerics/work.py`) and not timed: who makes a run twice as dear sees it here.

A count that moves on purpose is written down anew: `python -m pytest tests/engines/test_counted_work.py` says which, and to what.
"""

from collections.abc import Iterator

import numpy as np
import pytest

import gramfold as gf
from gramfold.methods import Method
from gramfold.methods.pooled import PooledRidge
from gramfold.numerics import work
from gramfold.solve.units import Units

CLIENTS, ROWS, TESTS, INPUTS, CLASSES = 20, 30, 10, 8, 4
MOVED = 0.05
"""By so much of itself a count may differ, up or down (a wide limit hides the next loss): another BLAS rounds otherwise, and a
descent or a client's choice takes another step."""
USUAL = {
    "linear": {
        "features": 837_200, "factorisations": 250, "operations": 21_701_349, "calls": 117,
        "sent": 23_040, "received": 101_440,
    },
    "curved": {
        "features": 947_200, "factorisations": 309, "operations": 40_208_961, "calls": 112,
        "sent": 267_040, "received": 464_000,
    },
    "default": {
        "lots": 3_000, "features": 2_867_864, "factorisations": 448, "decompositions": 203,
        "operations": 2_189_246_530, "calls": 670, "sent": 5_159_840, "received": 22_990_240,
    },
    "values": {
        "lots": 2_400, "features": 2_855_876, "factorisations": 846, "decompositions": 203,
        "operations": 3_922_306_509, "calls": 984, "sent": 5_106_064, "received": 22_708_160,
    },
    "apfl": {
        "features": 837_200, "factorisations": 38, "decompositions": 40, "operations": 47_147_760,
        "calls": 252, "sent": 23_040, "received": 48_800,
    },
    "afl": {
        "features": 12_600, "factorisations": 18, "decompositions": 20, "operations": 5_099_760,
        "calls": 132, "sent": 23_040, "received": 35_360,
    },
    "fedhip": {
        "features": 18_000, "factorisations": 38, "decompositions": 40, "operations": 5_409_180,
        "calls": 292, "sent": 23_040, "received": 45_280,
    },
    "streamed": {
        "features": 1_561_600, "factorisations": 309, "operations": 58_640_961, "calls": 126,
    },
}  # fmt: skip
METHODS = {
    "linear": gf.PACE(features="bias+linear"), "curved": gf.PACE(features="bias+relu:63"), "default": gf.PACE(),
    "values": gf.PACE(), "apfl": gf.APFL(), "afl": gf.AFL(), "fedhip": gf.FedHiP(),
}  # fmt: skip


def customers(clients: int = CLIENTS, values: bool = False) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLASSES, INPUTS))
    for k in range(clients):
        y = rng.integers(0, CLASSES, ROWS + TESTS)
        X = centres[y] + rng.standard_normal((len(y), INPUTS)) + 0.3 * rng.standard_normal(INPUTS)
        yield str(k), X, X @ centres[0] + rng.standard_normal(len(y)) if values else y


def federation(clients: int = CLIENTS, values: bool = False) -> gf.Federation:
    given = {name: (X, y) for name, X, y in customers(clients, values)}
    return gf.Federation.from_clients(given, test_size=TESTS / (ROWS + TESTS), regression=values)


@pytest.fixture(autouse=True)
def _one_core(monkeypatch):
    """Which clients are worked on together depends on how many cores there are to share them."""
    monkeypatch.setattr("gramfold.engines.inprocess.cpu_count", lambda: 1)


def counts_of(method: Method, clients: gf.Federation) -> dict[str, int]:
    with work.counted() as done:
        result = gf.run(method, clients, progress=False)
    return {**done, "sent": result.uplink_bytes, "received": result.downlink_bytes}


def require_usual(name: str, found: dict[str, int]) -> None:
    known = {key: USUAL[name].get(key, 0) for key in {*USUAL[name], *found}}
    moved = {key: found.get(key, 0) for key, usual in known.items() if abs(found.get(key, 0) - usual) > MOVED * usual}
    assert not moved, f"{name} takes other work than it did: {moved} of {found}, where USUAL has {known}"


@pytest.mark.parametrize("name", METHODS)
def test_a_run_takes_the_work_that_it_took(name):
    require_usual(name, counts_of(METHODS[name], federation(values=name == "values")))


def test_heads_in_a_folder_take_the_work_that_they_took(tmp_path):
    with work.counted() as done:
        gf.run_streamed(METHODS["curved"], gf.Federation.from_stream(customers), tmp_path / "heads", processes=1, progress=False)
    require_usual("streamed", dict(done))


@pytest.mark.parametrize("name", ["linear", "curved", "apfl"])
def test_twice_as_many_clients_take_at_most_twice_the_work(name):
    few, many = (counts_of(METHODS[name], federation(clients)) for clients in (CLIENTS, 2 * CLIENTS))
    # a tenth more: blends are tried together, as long as they help any of those side by side
    assert {key: count for key, count in many.items() if count > 2.2 * few[key]} == {}


def test_a_linear_maps_features_are_made_three_times_of_training_rows_and_once_of_test_rows():
    """To fold them, for the head, and for how unusual a sample is; AFL's clients make no heads."""
    width = INPUTS + 1
    for name, times in (("fedhip", 3), ("afl", 2)):
        found = counts_of(METHODS[name], federation())
        assert found["features"] == CLIENTS * (times * ROWS + TESTS) * width


def test_other_targets_of_the_same_samples_cost_one_factorisation():
    rng = np.random.default_rng(0)
    rows, targets = np.column_stack([np.ones(200), rng.standard_normal((200, 6))]), rng.standard_normal((200, 2))
    one, same = (gf.Moments.from_features(rows, targets) for _ in range(2))
    units = Units(0, None, straight=4)
    with work.counted() as alone:
        ridge = PooledRidge.of(one, None, units)
    with work.counted() as both:
        ridges = PooledRidge.of_targets([one, same], None, units)
    assert alone["factorisations"] > 10  # the penalties that were tried
    assert both["factorisations"] == alone["factorisations"] + 1
    for each in ridges:
        np.testing.assert_allclose(each.weights, ridge.weights, rtol=1e-12)


def test_what_is_counted():
    with work.counted() as outer:
        with work.counted() as inner:
            work.add(calls=1, operations=2.5)
        work.add(calls=1)
    work.add(calls=1)
    assert (dict(outer), dict(inner)) == ({"calls": 2, "operations": 2}, {"calls": 1, "operations": 2})
