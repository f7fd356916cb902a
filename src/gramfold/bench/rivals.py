"""The gradient methods as APFL's and FedHiP's papers run them beside their own, every learning rate validated."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gramfold.bench.frame import Figures, Options
from gramfold.bench.measuring import run_method
from gramfold.engines import run
from gramfold.federation import Federation
from gramfold.methods import Method, make_method
from gramfold.methods.gradient.base import Gradient

RIVALS = ("fedavg", "fedavg-ft", "fedprox", "fedprox-ft", "ditto", "fedala", "feddbe", "fedas", "fedpcl", "fedselect")
"""With AFL the eleven of APFL's paper."""
POINTS = 10
"""How often a run is evaluated on its way."""


def sweep(name: str, federation: Federation, options: Options) -> Figures:
    """What a method leaves undecided, chosen on a validation part of the clients' training data, `sweep_rounds` rounds for each
    value; with none, as in a smoke run, each is the middle of its grid."""
    method = make_method(name, rounds=max(options["sweep_rounds"], 2), sweep_rounds=max(options["sweep_rounds"], 2))
    assert isinstance(method, Gradient)
    if not options["sweep_rounds"]:
        return {key: method.grids[key][len(method.grids[key]) // 2] for key in method.undecided}

    def score(candidate: Method, trial: Federation) -> float:
        return run(candidate, trial, device=options.device, keep_heads=False, keep_total=False).mean_accuracy or 0.0

    return dict(method.tune(federation, score)[1])


def run_rival(name: str, federation: Federation, options: Options, swept: Figures) -> Figures:
    method = make_method(name, rounds=options["rounds"])
    found = {key: value for key, value in swept.items() if key in method.parameters()}
    figures = run_method(replace(method, **found), federation, options.device, evaluate_every=max(1, method.rounds // POINTS))
    return {**figures, "chosen": found}


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
