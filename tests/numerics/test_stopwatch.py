"""Seconds are counted once, for the innermost phase, over all threads."""

import threading
from types import SimpleNamespace

import pytest

from gramfold.numerics import stopwatch
from gramfold.numerics.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances only on request."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


def spend(clock, name, seconds, *inner):
    with stopwatch.phase(name):
        clock.now += seconds
        for part in inner:
            spend(clock, *part)


def test_a_phase_does_not_count_the_phases_inside_it(clock):
    watch = Stopwatch()
    with stopwatch.on(watch):
        spend(clock, "local", 1, ("features", 2), ("aggregate", 4, ("features", 8)))
        spend(clock, "features", 16)
        spend(clock, "local", 32, ("local", 64))
    assert watch.seconds == {"local": 1 + 32 + 64, "features": 2 + 8 + 16, "aggregate": 4}
    assert sum(watch.seconds.values()) == clock.now


def test_a_phase_that_fails_is_counted_and_leaves_the_watch_in_order(clock):
    watch = Stopwatch()
    with stopwatch.on(watch):
        with pytest.raises(TypeError):
            spend(clock, "outer", 1, ("inner", 2, ("broken", None)))
        spend(clock, "after", 4)
    assert watch.seconds == {"outer": 1, "inner": 2, "broken": 0, "after": 4}


def test_nothing_is_counted_where_no_stopwatch_runs(clock):
    watch, other = Stopwatch(), Stopwatch()
    spend(clock, "before", 1)
    with stopwatch.on(watch):
        with stopwatch.on(other):
            spend(clock, "a", 1)
        spend(clock, "b", 2)
        thread = threading.Thread(target=spend, args=(clock, "elsewhere", 5))
        thread.start()
        thread.join()
    spend(clock, "after", 1)
    assert (watch.seconds, other.seconds) == ({"b": 2}, {"a": 1})


def test_threads_add_to_one_stopwatch(clock):
    watch = Stopwatch()

    def work():
        with stopwatch.on(watch):
            for _ in range(100):
                watch._add("work", 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.seconds == {"work": 400}
