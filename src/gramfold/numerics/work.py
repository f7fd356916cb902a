"""How much work was done, counted and not timed: a test that counts sees a slower program on any machine, however busy.

Nobody counts unless somebody asks. What is counted, by name:

    features          rows times features that drawn maps have made, and gradients likewise; learned maps are made of drawn ones
    factorisations    symmetric systems that were factorised, one for each of a stack
    decompositions    eigendecompositions, likewise
    calls             calls that multiplied, factorised, decomposed or solved: a stack is one where it is done in one
    operations        floating-point operations of these, about
    transfers         bytes that went to an accelerator or came back
    lots              rows whose lots were drawn

Products and solves that NumPy does by an operator (`@`) are not seen.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_counters: list[Counter[str]] = []


def add(**amounts: float) -> None:
    """Note work that was done."""
    if _counters:
        with _lock:
            for counter in _counters:
                counter.update({name: int(amount) for name, amount in amounts.items()})


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """What all threads do within the block."""
    counter: Counter[str] = Counter()
    with _lock:
        _counters.append(counter)
    try:
        yield counter
    finally:
        with _lock:
            _counters[:] = [each for each in _counters if each is not counter]
