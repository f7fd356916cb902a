"""A training step that a GPU is told once and repeats.

Small networks on small batches leave a GPU waiting for Python: a step of a narrow residual network is a thousand launches. A CUDA
graph records them the second time a step of some number of clients is taken and replays them as one. Everything the step reads
and writes must therefore stay where it is in memory.
"""

import threading
from collections.abc import Callable

import torch

MIN_REPEATS = 8
"""Fewer steps than this are not worth recording."""
_memory = threading.local()
"""The last graph recorded in a thread: as long as one is there, the next takes over its working memory."""


class Recorded:
    """`step(m)` on the first m clients; repeated on a GPU, plainly called elsewhere."""

    def __init__(self, step: Callable[[int], None], on_gpu: bool) -> None:
        self._step, self._on_gpu = step, on_gpu
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def run(self, m: int, repeats: int) -> Callable[[], None]:
        """What takes one step; the first call for an m that repeats often enough takes it slowly, and so warms up."""
        if not self._on_gpu or repeats < MIN_REPEATS:
            return lambda: self._step(m)
        return self._replay(m)

    def _replay(self, m: int) -> Callable[[], None]:
        taken = 0

        def replay() -> None:
            nonlocal taken
            taken += 1
            if taken == 1:
                self._step(m)
                return
            if m not in self._graphs:
                graph, last = torch.cuda.CUDAGraph(), getattr(_memory, "last", None)
                with torch.cuda.graph(graph, pool=last and last.pool(), capture_error_mode="thread_local"):
                    self._step(m)
                self._graphs[m] = _memory.last = graph
            self._graphs[m].replay()

        return replay
