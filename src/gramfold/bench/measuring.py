"""What most cells do: cut a data set into clients, run a method over them, and keep the figures that papers print."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gramfold import evaluation
from gramfold.bench.frame import Figures, Options
from gramfold.engines import Result, run
from gramfold.errors import GramfoldError
from gramfold.federation import Dataset, Federation, load_dataset
from gramfold.methods import Method

EMBEDDED = "digits"
"""What a smoke run takes where no file is given."""


def data_file(options: Options, name: str = "", embedded: str = EMBEDDED) -> str:
    """The file that was given; a smoke run does without one."""
    path = options.path(name)
    if path is None and not options.quick:
        raise GramfoldError("give the data: FILE.npz (or --quick, for a smoke run on digits)")
    return path or embedded


@lru_cache(maxsize=1)
def load(path: str) -> Dataset:
    """Cells come one after another and mostly take the same data."""
    return load_dataset(path)


def cut(path: str, clients: int, partition: str, seed: int, min_size: int = 2) -> Federation:
    return Federation.from_dataset(load(path), clients, partition, random_state=seed, min_size=min_size)


def run_method(
    method: Method, federation: Federation, device: str = "cpu", evaluate_every: int = 0, everywhere: bool = False
) -> Figures:
    """A method's figures on a federation; `everywhere`: also how every client's head does on all clients' test samples."""
    result = run(method, federation, device=device, keep_heads=everywhere, keep_total=False, evaluate_every=evaluate_every,
                 progress=False)  # fmt: skip
    if not everywhere:
        return figures_of(result)
    mean = evaluation.mean(list(result.everywhere(federation, device).values()))
    return {**figures_of(result), "everywhere_accuracy": mean}


def figures_of(result: Result) -> dict[str, Any]:
    """What papers print of a run: accuracies as shares; bytes of a client, on average; seconds without evaluation.

    `primary_accuracy` is the shared model on each client's own test split, averaged as `mean_accuracy` is. The history has the
    rounds that were evaluated.
    """
    clients = list(result.clients.values())
    shared = [client.shared.accuracy for client in clients if client.shared is not None and client.shared.accuracy is not None]
    return {
        "mean_accuracy": result.mean_accuracy, "weighted_accuracy": result.weighted_accuracy,
        "worst_decile_accuracy": result.worst_decile_accuracy, "global_accuracy": result.global_accuracy,
        "primary_accuracy": evaluation.mean(shared), "rounds": result.rounds, "clients": len(clients),
        "uplink_bytes": result.uplink_bytes / len(clients), "downlink_bytes": result.downlink_bytes / len(clients),
        "seconds": sum(spent for phase, spent in result.seconds.items() if phase not in ("evaluate", "tuning")),
        "chosen": _plain(result.chosen), "history": [dict(entry) for entry in result.history if "mean_accuracy" in entry],
    }  # fmt: skip


def _plain(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and names; what a method says at length stays with it, and so does what is no number."""
    short = {key: value for key, value in chosen.items() if isinstance(value, str | int | float | bool)}
    return {key: value for key, value in short.items() if not isinstance(value, float) or math.isfinite(value)}
