"""The gradient methods as APFL's and FedHiP's papers run them beside their own, every learning rate validated."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gramfold.bench.frame import Figures, Options
from gramfold.bench.measuring import run_method
from gramfold.federation import Federation
from gramfold.methods import Method, make_method
from gramfold.methods.gradient.base import Gradient

RIVALS = ("fedavg", "fedavg-ft", "fedprox", "fedprox-ft", "ditto", "fedala", "feddbe", "fedas", "fedpcl", "fedselect")
"""With AFL the eleven of APFL's paper."""
POINTS = 10
"""How often a run is evaluated on its way."""


def rival(name: str, rounds: int, sweep_rounds: int) -> Method:
    """A gradient method. Its undecided parameters are swept on validation data, `sweep_rounds` rounds for each value; with none,
    as in a smoke run, each is the middle of its grid."""
    method = make_method(name, rounds=rounds, sweep_rounds=max(sweep_rounds, 1))
    if sweep_rounds or not isinstance(method, Gradient):
        return method
    middle: dict[str, Any] = {key: method.grids[key][len(method.grids[key]) // 2] for key in method.undecided}
    return replace(method, **middle)


def run_rival(name: str, federation: Federation, options: Options) -> Figures:
    method = rival(name, options["rounds"], options["sweep_rounds"])
    return run_method(method, federation, options.device, evaluate_every=max(1, method.rounds // POINTS))


def spent(figures: Mapping[str, Any], rounds: int) -> tuple[float, float] | None:
    """Seconds, and bytes of a client both ways, after so many rounds, without sweeps; None if it ended before."""
    for entry in figures["history"]:
        if entry["round"] == rounds:
            return entry["seconds"], (entry["uplink_bytes"] + entry["downlink_bytes"]) / figures["clients"]
    return None


def whole(figures: Mapping[str, Any]) -> tuple[float, float]:
    """The same of a method of one round."""
    return figures["seconds"], figures["uplink_bytes"] + figures["downlink_bytes"]


def saved(mine: float, theirs: float) -> float:
    """In per cent; negative where it cost more.

    >>> saved(1.0, 4.0)
    75.0
    """
    return 100 * (1 - mine / theirs)
