"""Workers: every item once, in an order that only their number decides."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.engines.workers import Workers, cpu_count
from gramfold.numerics import stopwatch


@given(st.integers(1, 6), st.integers(0, 20))
def test_every_item_is_worked_on_once_and_worker_w_takes_every_nth(count, items):
    shares = Workers(count).each("phase", list(range(items)), lambda state, item: state.append(item), list)
    active = min(count, max(items, 1))
    assert shares == [list(range(w, items, active)) for w in range(active)]


def test_workers_work_side_by_side():
    meet = threading.Barrier(3, timeout=10)
    Workers(3).each("phase", [0, 1, 2], lambda state, item: meet.wait(), list)


def test_the_first_error_stops_all():
    done = []

    def work(state, item):
        if item == 2:
            raise KeyError(item)
        done.append(item)

    with pytest.raises(KeyError):
        Workers(2).each("phase", range(1000), work, list)
    assert len(done) < 1000


def test_wall_clock_time_is_shared_among_the_phases():
    workers = Workers(2)

    def work(state, item):
        with stopwatch.phase("outer"), stopwatch.phase("inner"):
            threading.Event().wait(0.02)

    workers.each("phase", range(4), work, list)
    assert workers.server("aggregate", lambda: 7) == 7
    assert workers.seconds.keys() == {"outer", "inner", "aggregate"}
    assert workers.seconds["inner"] > 10 * workers.seconds["outer"]
    assert 0.03 < workers.seconds["inner"] < 1.0  # two threads, two waits each: 0.04 s of wall clock, not 0.08 of thread time


def test_there_is_at_least_one_processor_and_one_worker():
    assert cpu_count() >= 1
    assert Workers(0).count == 1
