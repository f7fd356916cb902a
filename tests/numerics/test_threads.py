"""The number of BLAS threads is the process's: whoever asks, in whatever order they end, it is as it was afterwards."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import gramfold as gf
from gramfold.numerics import arrays, threads


def counts() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms())
def test_limits_that_end_in_any_order_leave_the_process_as_it_was(asked, random):
    before = counts()
    open_limits = []
    for count in asked:
        limit = threads.limit(count)
        limit.__enter__()
        open_limits.append((count, limit))
        least = min(count for count, _ in open_limits)
        assert counts() == [least] * len(before)
    random.shuffle(open_limits)
    for _, limit in open_limits:
        limit.__exit__(None, None, None)
    assert counts() == before


def test_two_runs_in_two_threads_leave_the_process_as_it_was(federation):
    before = counts()
    runs = [threading.Thread(target=lambda: [gf.run(gf.PACE(), federation) for _ in range(5)]) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert counts() == before


def test_outside_an_engine_nothing_is_set(monkeypatch):
    def refuse(count: int) -> None:
        raise AssertionError("the caller's threads were touched")

    monkeypatch.setattr(threads, "limit", refuse)
    arrays.eigh(np.eye(4))
    with threads.engine(), pytest.raises(AssertionError, match="were touched"):
        arrays.eigh(np.eye(4))
