"""The gradient methods as APFL's and FedHiP's papers run them beside their own, every learning rate validated."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

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
    if not options["sweep_rounds"]:
        return middle(name)
    method = replace(rival(name, options["sweep_rounds"]), sweep_rounds=options["sweep_rounds"])

    def score(candidate: Method, trial: Federation) -> float:
        return (
            run(candidate, trial, device=options.device, keep_heads=False, keep_total=False, progress=False).mean_accuracy or 0.0
        )

    return dict(method.tune(federation, score)[1])


def rival(name: str, rounds: int) -> Gradient:
    """A gradient method of so many rounds; one that has none, each client alone, stays as it is."""
    method = make_method(name)
    assert isinstance(method, Gradient)
    return replace(method, rounds=rounds) if method.rounds else method


def middle(name: str) -> dict[str, float]:
    """What a method leaves undecided, each at the middle of its grid."""
    method = rival(name, 1)
    return {key: method.grids[key][len(method.grids[key]) // 2] for key in method.undecided}


def run_rival(name: str, federation: Federation, options: Options, swept: Figures, everywhere: bool = False) -> Figures:
    method = rival(name, options["rounds"])
    found = {key: value for key, value in swept.items() if key in method.parameters()}
    method, every = replace(method, **found), max(1, options["rounds"] // POINTS)
    figures = run_method(method, federation, options.device, evaluate_every=every, everywhere=everywhere)
    return {**figures, "chosen": found}


# --- what is saved ---


def time_beside(mine: Method, names: Sequence[str], federation: Federation, options: Options) -> Figures:
    """Seconds and bytes (of a client, both ways) of a method of one round, and of a round of each rival: measured in one go, the
    method before and after the rivals. Their seconds do not depend on what is swept, so that nothing is."""

    def alone() -> Figures:
        return run_method(mine, federation, options.device)

    alone()  # what is loaded and compiled on first use is nobody's
    before, rivals = alone(), dict[str, Figures]()
    for name in names:
        method = replace(rival(name, options["timed_rounds"]), **middle(name))  # type: ignore[arg-type]
        history = run(method, federation, device=options.device, keep_heads=False, keep_total=False, progress=False).history
        moments = [entry["seconds"] for entry in history]
        sent = [(entry["uplink_bytes"] + entry["downlink_bytes"]) / len(federation) for entry in history]
        rivals[name] = {
            "first_seconds": moments[0], "seconds": float(np.median(np.diff(moments))),
            "first_bytes": sent[0], "bytes": sent[-2] - sent[-3],
        }  # fmt: skip
    seconds = (before["seconds"] + alone()["seconds"]) / 2
    return {"seconds": seconds, "bytes": before["uplink_bytes"] + before["downlink_bytes"], "rivals": rivals}


def saved(timed: Figures, rival: str, what: str, rounds: int) -> float:
    """By how many per cent less `seconds` or `bytes` it took than so many rounds of a rival; negative where it took more.

    >>> timed = {"seconds": 1.0, "rivals": {"fedavg": {"first_seconds": 1.0, "seconds": 0.5}}}
    >>> saved(timed, "fedavg", "seconds", 7)
    75.0
    """
    cost = timed["rivals"][rival]
    return 100 * (1 - float(timed[what]) / float(cost[f"first_{what}"] + (rounds - 1) * cost[what]))
