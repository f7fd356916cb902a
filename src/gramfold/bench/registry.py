"""The benches by name. Each is a module of this package with a `BENCH`, imported when it is asked for."""

import importlib

from gramfold.bench.frame import Bench
from gramfold.errors import GramfoldError

BENCHES = ("apfl", "fedacnnl", "fedhip", "gpu", "heart-pfl", "leaderboard", "memory", "scale", "speed")


def open_bench(name: str) -> Bench:
    if name not in BENCHES:
        raise GramfoldError(f"no bench is called {name!r}; there are: {', '.join(BENCHES)}")
    bench: Bench = importlib.import_module(f"gramfold.bench.{name.replace('-', '_')}").BENCH
    return bench
